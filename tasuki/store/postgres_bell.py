"""The bell between nodes: LISTEN and NOTIFY on a connection of its own. Losing a ring costs latency, never correctness.

A NOTIFY inside each transaction would make commits wait for each other (measured in the plan: four times the cost). So
rings are passed on after the commit, and what rings while a NOTIFY is on its way goes with the next one. Who is alone in
the house (nobody was heard for a while) passes nothing on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import asyncpg

from tasuki.values.documents import dumps, loads
from tasuki.values.errors import TasukiError
from tasuki.values.instant import MINUTE, Clock, Instant

log = logging.getLogger("tasuki.store")

CHANNEL = "tasuki_"
GATHER_S = 0.002
"""How long a ring waits for others that go with it."""
HELLO_S = 15.0
"""How often a node says that it is there."""
HEARD_MS = MINUTE
"""Whoever was heard within this time listens."""
MAX_TOPICS = 60
"""Topics in one NOTIFY, whose payload may have 8,000 bytes; more of them ring as "look at everything"."""
PAUSE_S = 1.0

EVERYTHING = "clock"
"""The topic that all polls listen to."""


class PostgresBell:
    """Passes rings on to other nodes, and theirs to ours."""

    def __init__(
        self,
        connect: "Callable[[], Awaitable[asyncpg.Connection[Any]]]",
        schema: str,
        clock: Clock,
        on_ring: Callable[[str, int], None],
    ) -> None:
        self._connect, self._clock, self._on_ring = connect, clock, on_ring
        self._channel = CHANNEL + schema
        self._topics: dict[str, int] = {}
        self._wanted = asyncio.Event()
        self._heard_at: Instant | None = None
        self._task: asyncio.Task[None] | None = None
        self._own_pid = 0

    def start(self) -> None:
        """Listen from now on."""
        self._task = asyncio.get_running_loop().create_task(self._serve(), name="bell between nodes")

    def tell(self, rings: list[tuple[str, int]]) -> None:
        """Pass on what rang here, if anybody listens."""
        if self._heard_at is None or self._clock.now() - self._heard_at > HEARD_MS:
            return
        for topic, times in rings:
            self._topics[topic] = self._topics.get(topic, 0) + times
        self._wanted.set()

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _serve(self) -> None:
        while True:
            connection: asyncpg.Connection[Any] | None = None
            try:
                connection = await self._connect()
                await self._ring_for_others(connection)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError, TasukiError) as bad:
                log.warning("the bell between nodes is lost (%s); listening again in %s s", bad, PAUSE_S)
            finally:
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep(PAUSE_S)

    async def _ring_for_others(self, connection: "asyncpg.Connection[Any]") -> None:
        gone = asyncio.Event()

        def lost(_connection: object) -> None:
            gone.set()
            self._wanted.set()

        connection.add_termination_listener(lost)
        self._own_pid = connection.get_server_pid()
        await connection.add_listener(self._channel, self._heard)
        self._on_ring(EVERYTHING, 1)  # what rang before we listened
        await self._notify(connection, {"hello": True})
        while not gone.is_set():
            try:
                async with asyncio.timeout(HELLO_S):
                    await self._wanted.wait()
            except TimeoutError:
                await self._notify(connection, {"hello": False})
                continue
            await asyncio.sleep(GATHER_S)
            self._wanted.clear()
            topics, self._topics = self._topics, {}
            if topics:
                await self._notify(connection, {"rings": topics if len(topics) <= MAX_TOPICS else {EVERYTHING: 1}})
        raise ConnectionError("the database closed the connection")

    async def _notify(self, connection: "asyncpg.Connection[Any]", said: dict[str, Any]) -> None:
        await connection.execute("SELECT pg_notify($1, $2)", self._channel, dumps(said))

    def _heard(self, _connection: Any, pid: int, _channel: str, payload: object) -> None:
        if pid == self._own_pid:
            return
        self._heard_at = self._clock.now()
        said = loads(str(payload))
        if said.get("hello"):  # it asks who is there
            self._topics[EVERYTHING] = 1
            self._wanted.set()
        for topic, times in said.get("rings", {}).items():
            self._on_ring(topic, times)
