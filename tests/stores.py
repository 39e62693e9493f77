"""The stores that the tests' houses open: SQLite, or PostgreSQL where pytest is told `--store postgresql`.

A test says `House(...)` and gets a store with nothing in it, or `House(..., store=kept(path))` and finds what the last house of
that path has left.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Store
from tasuki.testing import House

Opener = Callable[[House], Store]

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
_TABLES_THERE = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"


class Shelf(Protocol):
    """Where stores come from that are not SQLite's."""

    loop: asyncio.AbstractEventLoop
    """The loop on which houses run, so that connections outlast them."""

    def anew(self, house: House) -> Store:
        """Open a store with nothing in it."""

    def kept(self, path: Path) -> Opener:
        """Answer what opens the store of that path: the first time there is nothing in it."""

    def test_is_over(self) -> None:
        """Take back what the test kept, and what it forgot to close."""

    def close(self) -> None:
        """Leave nothing behind."""


shelf: Shelf | None = None
"""Set for the whole run by `tests/conftest.py`."""


def kept(path: Path) -> Opener:
    """Answer what opens the store of that path: a file on SQLite, a schema on PostgreSQL."""
    if shelf is not None:
        return shelf.kept(path)
    return lambda house: SqliteStore(
        path, clock=house.clock, real_clock=house.clock, chance=house.chance, on_ring=house.bell.ring
    )


def table_names(house: House) -> list[str]:
    """Answer the names of all tables of a house's store."""
    sql = _TABLES if shelf is None else _TABLES_THERE
    return [name for (name,) in house.look(lambda tx: tx.all(sql))]
