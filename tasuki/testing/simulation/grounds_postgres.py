"""A simulated house on PostgreSQL: every node has a store of its own over one schema, which is dropped at the end.

Units of one node run beside each other there, and in which order they come through is the server's affair: the same seed is
the same list of actions, and not always the same run.
"""

import asyncio
import itertools
import os
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg

from tasuki.store.postgres import PostgresStore
from tasuki.store.postgres_address import read_address
from tasuki.store.store import Store
from tasuki.testing.clock import ManualClock
from tasuki.testing.simulation.grounds import Ground, GroundMaker
from tasuki.values.chance import Chance

CONNECTIONS = 4
_NUMBERS = itertools.count(1)


class PostgresGround:
    """A fresh schema in the database of a URL. The nodes work at the same time, and meet each other there."""

    together = True
    fill: Callable[[bool], None] | None = None

    def __init__(self, clock: ManualClock, url: str) -> None:
        self._clock = clock
        self.url = _in_schema(url, f"simulate_{os.getpid()}_{next(_NUMBERS)}")

    def open(self, chance: Chance) -> Store:
        """See `Ground`."""
        clock = self._clock
        return PostgresStore(
            self.url, chance=chance, wall=clock, clock=clock, real_clock=clock, connections=CONNECTIONS
        )

    def close(self) -> None:
        """See `Ground`."""
        asyncio.run(_drop(self.url))


def postgresql(url: str) -> GroundMaker:
    """PostgreSQL; the user of the URL must be allowed to make schemas."""

    def fresh(clock: ManualClock) -> Ground:
        return PostgresGround(clock, url)

    return fresh


def _in_schema(url: str, schema: str) -> str:
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), "schema": schema}
    return parts._replace(query=urlencode(query)).geturl()


async def _drop(url: str) -> None:
    address = read_address(url)
    connection = await asyncpg.connect(address.dsn)
    try:
        await connection.execute(f"DROP SCHEMA IF EXISTS {address.schema} CASCADE")
    finally:
        await connection.close()
