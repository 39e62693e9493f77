"""PostgreSQL stores for tests, all in the loop that runs, and the table that tells how often a unit was kept."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tasuki.runtime.clock import WallClock, steady_ms
from tasuki.store.postgres import PostgresStore
from tasuki.store.store import Tx, Unit
from tasuki.values.chance import Chance

MAKE = ("DROP TABLE IF EXISTS told", "CREATE TABLE told (name TEXT NOT NULL)")
TELL = "INSERT INTO told (name) VALUES (?)"
TOLD = "SELECT name FROM told ORDER BY name"


@asynccontextmanager
async def opened(
    url: str, *, on_ring: Callable[[str, int], None] = lambda _topic, _times: None, **options: Any
) -> AsyncIterator[PostgresStore]:
    """A store that is open, and closed in the end."""
    store = PostgresStore(url, chance=Chance.seeded(7), wall=WallClock(), steady=steady_ms, on_ring=on_ring, **options)
    try:
        await store.open()
        yield store
    finally:
        await store.leave()


async def make_told(store: PostgresStore) -> None:
    """Make the table `told`. It has no key: what is kept twice stands there twice."""
    await store.write(lambda tx: [tx.run(sql) for sql in MAKE])


def tell(name: str) -> Unit[str]:
    """Answer a unit that leaves its name in the table."""

    def unit(tx: Tx) -> str:
        tx.run(TELL, (name,))
        return name

    return unit


async def told(store: PostgresStore) -> list[str]:
    """Answer all names that were left."""
    return [str(row[0]) for row in await store.read(lambda tx: tx.all(TOLD))]
