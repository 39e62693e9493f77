"""PostgreSQL for the tests' houses (`tests/stores.py`): a store is a schema, made once and emptied for the next test.

Making a schema takes sixty statements and more, and a new connection has to learn every table and statement anew: that took
most of the time of a test. So the houses of a run share one loop, and the connections of a schema go from house to house.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from tasuki.store.postgres import PostgresStore
from tasuki.store.postgres_seats import Seats
from tasuki.store.store import Store
from tasuki.testing import House
from tests.postgres import drop_schema, in_schema, new_schema, server
from tests.stores import Opener

CONNECTIONS = 2
"""Units of a house that run at once."""
OBJECTS = """
SELECT relname, relkind = 'S' AS is_serial FROM pg_class
WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'p', 'S') ORDER BY relname
"""
_FACTS = "('page_secret', 'schema')"
"""What the migrations put into `house`; everything else is a test's."""
_EMPTIER = """
CREATE FUNCTION pg_temp.empty_{schema}() RETURNS void LANGUAGE plpgsql AS $_$
DECLARE made text;
BEGIN
{statements}
    FOR made IN SELECT relname FROM pg_depend JOIN pg_class ON pg_class.oid = objid AND classid = 'pg_class'::regclass
        WHERE refclassid = 'pg_namespace'::regclass AND refobjid = '{schema}'::regnamespace AND relkind = 'r'
        AND relname NOT IN ({known})
    LOOP EXECUTE format('DROP TABLE {schema}.%I', made);
    END LOOP;
END $_$
"""


def emptier(schema: str, objects: Sequence[tuple[str, bool]]) -> str:
    """Answer the statement that makes a function, of its connection alone, that empties this schema of what tests leave.

    `objects` is what the migrations made. Tables lose their rows, serials begin at 1 again, and what a test made for its
    stand-ins goes.
    """
    parts = []
    for name, is_serial in objects:
        if is_serial:
            parts.append(f"    PERFORM setval('{schema}.{name}', 1, false) FROM {schema}.{name} WHERE is_called;")
        else:
            but = f" WHERE name NOT IN {_FACTS}" if name == "house" else ""
            parts.append(f"    DELETE FROM {schema}.{name}{but};")
    known = ", ".join(f"'{name}'" for name, _ in objects)
    return _EMPTIER.format(schema=schema, statements="\n".join(parts), known=known)


class Lot:
    """The schemas of this test run: which are in use, and which wait for the next test."""

    def __init__(self) -> None:
        self.base = server()
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()  # as a node's
        self._names: list[str] = []
        self._free: list[str] = []
        self._kept: dict[Path, str] = {}
        self._open: dict[int, _Lent] = {}
        self._warm: dict[str, _Lent] = {}
        self._emptiers: dict[str, str] = {}
        self._can_empty: set[str] = set()
        self._line: asyncpg.Connection[Any] = self.loop.run_until_complete(
            asyncpg.connect(self.base, server_settings={"lock_timeout": "10s", "synchronous_commit": "off"})
        )

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

    def warm(self, schema: str) -> "_Lent | None":
        """Answer a store that had this schema, whose connections the next one can use; None if it has them still."""
        together = [store for store in self._open.values() if store.address.schema == schema]
        for store in together:
            store.listen()
        return None if together or asyncio.get_running_loop() is not self.loop else self._warm.get(schema)

    def has_warm(self, store: "_Lent") -> bool:
        """Whether this store's connections outlast it."""
        mine = self._warm.get(store.address.schema)
        return mine is not None and mine.seats is store.seats

    async def lend(self, store: "_Lent") -> None:
        """Note a store that is open, and its tables when it is new."""
        schema = store.address.schema
        self._open[id(store)] = store
        if schema not in self._emptiers:
            self._emptiers[schema] = emptier(schema, await store.objects())
        if schema not in self._warm and asyncio.get_running_loop() is self.loop:
            self._warm[schema] = store

    def give_back(self, store: "_Lent", *, is_kept: bool) -> None:
        """Take back a store that is closed, and its schema unless the test wants it again."""
        if self._open.pop(id(store), None) is not None and not is_kept:
            self._free.append(store.address.schema)
        if not self._open and not self.loop.is_running():
            self._calm()

    def test_is_over(self) -> None:
        """Take back all: what a test kept, and what it had no time to close when it failed."""
        for store in list(self._open.values()):
            store.let_go()
        self._kept.clear()
        self._free = list(self._names)

    def close(self) -> None:
        """Drop all schemas. A second time does nothing."""
        if self.loop.is_closed():
            return
        for store in self._warm.values():
            store.seats.close()
        self.loop.run_until_complete(self._line.close())
        self.loop.close()
        for name in self._names:
            drop_schema(self.base, name)

    def _take(self) -> str:
        if self._free:
            name = self._free.pop()
            if name in self._emptiers:  # else nobody has come so far as to make it
                self.loop.run_until_complete(self._empty(name))
            return name
        name = new_schema()
        self._names.append(name)
        return name

    async def _empty(self, name: str) -> None:
        if name not in self._can_empty:
            await self._line.execute(self._emptiers[name])
            self._can_empty.add(name)
        await self._line.execute(f"SELECT pg_temp.empty_{name}()")

    def _calm(self) -> None:
        """End what a closed house has left to do, as the end of its loop did; what was in mid-statement is no good any more."""
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        for store in self._warm.values():
            if not store.is_at_rest:
                store.seats.close()


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
            connections=CONNECTIONS,
        )
        self._lot, self._is_kept = lot, is_kept

    @property
    def seats(self) -> Seats:
        """Its connections."""
        return self._seats

    @property
    def is_at_rest(self) -> bool:
        """Whether no unit has a connection in hand."""
        return len(self._seats._free) == len(self._seats._all)

    async def open(self) -> None:
        """Take over the connections of the store before, or open one's own."""
        before = self._lot.warm(self.address.schema)
        if before is None:
            await super().open()
        else:
            self._loop = asyncio.get_running_loop()
            self._seats, self._lock_key = before._seats, before._lock_key
        await self._lot.lend(self)

    async def leave(self) -> None:
        """Let the units in hand come to their end. The connections stay, for the next store of this schema."""
        if self._lot.has_warm(self):
            self.fail_pending()
            if self._running:
                await asyncio.wait(self._running, timeout=self._patience_s)
            await self._bell.close()
        else:
            await super().leave()

    def close(self) -> None:
        """Close it, and give the schema back."""
        super().close()
        self._lot.give_back(self, is_kept=self._is_kept)

    def let_go(self) -> None:
        """Close it with its loop: of a test that failed nobody does that, and the next one would be told of it."""
        self.close()
        if self._loop is not None and self._loop is not self._lot.loop:
            self._loop.close()

    def listen(self) -> None:
        """Be told what rings at another store of this schema: alone in it, nobody need listen."""
        if self._bell._task is None:
            self._bell.start()

    async def objects(self) -> list[tuple[str, bool]]:
        """Answer the tables and serials of the schema, and which are serials."""
        connection = await self._connect()
        made = [(row[0], row[1]) for row in await connection.fetch(OBJECTS, self.address.schema)]
        await connection.close()
        return made
