"""PostgreSQL for the tests' houses (`tests/stores.py`): a store is a schema, made once and emptied for the next test.

Making one takes sixty statements and more; emptying one takes a question and what it deletes. Serials begin at 1 again.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg

from tasuki.store.postgres import PostgresStore
from tasuki.store.store import Store
from tasuki.testing import House
from tests.postgres import drop_schema, in_schema, new_schema, server
from tests.stores import Opener

OBJECTS = """
SELECT relname, relkind = 'S' AS is_serial FROM pg_class
WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'p', 'S') ORDER BY relname
"""
_FACTS = "('page_secret', 'schema')"
"""What the migrations put into `house`; everything else is a test's."""


def what_to_empty(schema: str, objects: Sequence[tuple[str, bool]]) -> str:
    """Answer a query that answers the statements which empty this schema, given what the migrations made in it.

    Tables that have rows lose them, serials begin at 1 again, and what a test made for its stand-ins goes.
    """
    parts = []
    for name, is_serial in objects:
        but = f" WHERE name NOT IN {_FACTS}" if name == "house" else ""
        if is_serial:
            parts.append(
                f"SELECT $_$SELECT setval('{schema}.{name}', 1, false)$_$ FROM {schema}.{name} WHERE is_called"
            )
        else:
            rows = f"{schema}.{name}{but}"
            parts.append(f"SELECT $_$DELETE FROM {rows}$_$ WHERE EXISTS (SELECT 1 FROM {rows})")
    known = ", ".join(f"'{name}'" for name, _ in objects)
    parts.append(
        f"SELECT 'DROP TABLE {schema}.' || relname FROM pg_class "
        f"WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r' AND relname NOT IN ({known})"
    )
    return " UNION ALL ".join(parts)


class Lot:
    """The schemas of this test run: which are in use, and which wait for the next test."""

    def __init__(self) -> None:
        self.base = server()
        self._names: list[str] = []
        self._free: list[str] = []
        self._kept: dict[Path, str] = {}
        self._open: dict[int, _Lent] = {}
        self.emptied_by: dict[str, str] = {}
        """The query for each schema that is made."""
        self._loop = asyncio.new_event_loop()
        self._line: asyncpg.Connection[Any] = self._loop.run_until_complete(asyncpg.connect(self.base))

    def anew(self, house: House) -> Store:
        """Open a store with nothing in it."""
        return _Lent(self, self._take(), house, is_kept=False)

    def kept(self, path: Path) -> Opener:
        """Open the store of that path: the first time there is nothing in it."""

        def opened(house: House) -> Store:
            if path not in self._kept:
                self._kept[path] = self._take()
            return _Lent(self, self._kept[path], house, is_kept=True)

        return opened

    def lend(self, store: "_Lent") -> None:
        """Note a store that is open."""
        self._open[id(store)] = store

    def give_back(self, store: "_Lent", *, is_kept: bool) -> None:
        """Take back a store that is closed, and its schema unless the test wants it again."""
        self._open.pop(id(store), None)
        name = store.address.schema
        if not is_kept and name not in self._free:
            self._free.append(name)

    def test_is_over(self) -> None:
        """Take back all: what a test kept, and what it had no time to close when it failed."""
        for store in list(self._open.values()):
            store.let_go()
        self._kept.clear()
        self._free = list(self._names)

    def close(self) -> None:
        """Drop all schemas. A second time does nothing."""
        if self._loop.is_closed():
            return
        self._loop.run_until_complete(self._line.close())
        self._loop.close()
        for name in self._names:
            drop_schema(self.base, name)

    def _take(self) -> str:
        if self._free:
            name = self._free.pop()
            self._empty(name)
            return name
        name = new_schema()
        self._names.append(name)
        return name

    def _empty(self, name: str) -> None:
        query = self.emptied_by.get(name)
        if query is None:
            return  # nobody has come so far as to make it
        todo = [row[0] for row in self._loop.run_until_complete(self._line.fetch(query))]
        if todo:
            self._loop.run_until_complete(self._line.execute("; ".join(todo)))


class _Lent(PostgresStore):
    """A store that gives its schema back. Nothing of a test need outlast a power cut: commits don't wait for the disk."""

    def __init__(self, lot: Lot, schema: str, house: House, *, is_kept: bool) -> None:
        super().__init__(
            f"{in_schema(lot.base, schema)}&synchronous_commit=off",
            chance=house.chance,
            wall=house.clock,
            clock=house.clock,
            real_clock=house.clock,
            on_ring=house.bell.ring,
            connections=2,
        )
        self._lot, self._is_kept = lot, is_kept

    async def open(self) -> None:
        """Open it, and note its tables when it is new."""
        self._lot.lend(self)
        await super().open()
        schema = self.address.schema
        if schema not in self._lot.emptied_by:
            connection = await self._connect()
            made = [(row[0], row[1]) for row in await connection.fetch(OBJECTS, schema)]
            await connection.close()
            self._lot.emptied_by[schema] = what_to_empty(schema, made)

    def close(self) -> None:
        """Close it, and give the schema back."""
        super().close()
        self._lot.give_back(self, is_kept=self._is_kept)

    def let_go(self) -> None:
        """Close it with its loop: of a test that failed nobody does that, and the next one would be told of it."""
        self.close()
        if self._loop is not None:
            self._loop.close()
