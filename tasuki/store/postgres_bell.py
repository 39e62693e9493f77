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

from tasuki.store.postgres_errors import BROKEN
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument, TasukiError
from tasuki.values.instant import MINUTE, Clock, Instant

log = logging.getLogger("tasuki.store")

CHANNEL = "tasuki_"
GATHER_S = 0.002
"""How long a ring waits for others that go with it."""
HELLO_S = 15.0
"""How often a node says that it is there."""
HEARD_MS = MINUTE
"""Whoever was heard within this time listens."""
MOST_BYTES = 7_000
"""What one NOTIFY says at most: the server takes payloads of less than 8,000 bytes."""
MOST_NOTIFIES = 8
"""More than this at once rings as "look at everything"."""
PAUSE_S = 1.0
"""The pause before another try to listen."""
LOST_PAUSE_S = 0.05
"""The same when it did listen until now: meanwhile nobody hears what rings elsewhere."""

EVERYTHING = "clock"
"""The topic that all polls and long polls listen to."""


class PostgresBell:
    """Passes rings on to other nodes, and theirs to ours. `on_hello` is awaited whenever there was nothing to say for a while."""

    def __init__(
        self,
        connect: "Callable[[], Awaitable[asyncpg.Connection[Any]]]",
        schema: str,
        clock: Clock,
        on_ring: Callable[[str, int], None],
        on_hello: "Callable[[asyncpg.Connection[Any]], Awaitable[None]]",
    ) -> None:
        self._connect, self._clock, self._on_ring, self._on_hello = connect, clock, on_ring, on_hello
        self._channel = CHANNEL + schema
        self._topics: dict[str, int] = {}
        self._wanted = asyncio.Event()
        self._heard_at: Instant | None = None
        self._task: asyncio.Task[None] | None = None
        self._own_pid = 0
        self._listens = False
        self.notifies = 0
        """How many NOTIFYs went out."""

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
        said, is_lost = "", False
        while True:
            self._listens = False
            connection: asyncpg.Connection[Any] | None = None
            try:
                connection = await self._connect()
                if is_lost:
                    log.info("the bell between nodes is back")
                said, is_lost = "", False
                await self._ring_for_others(connection)
            except (*BROKEN, asyncpg.PostgresError, TasukiError) as bad:
                if str(bad) != said:  # one line for each reason, not for each second
                    said, is_lost = str(bad), True
                    log.warning("the bell between nodes is lost (%s); trying again", bad)
            finally:
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep(LOST_PAUSE_S if self._listens else PAUSE_S)

    async def _ring_for_others(self, connection: "asyncpg.Connection[Any]") -> None:
        gone = asyncio.Event()

        def lost(_connection: object) -> None:
            gone.set()
            self._wanted.set()

        connection.add_termination_listener(lost)
        self._own_pid = connection.get_server_pid()
        await connection.add_listener(self._channel, self._heard)
        self._listens = True
        self._on_ring(EVERYTHING, 1)  # what rang before we listened
        await self._notify(connection, dumps({"hello": True, "rings": {}}))
        while not gone.is_set():
            try:
                async with asyncio.timeout(HELLO_S):
                    await self._wanted.wait()
            except TimeoutError:
                await self._on_hello(connection)
                await self._notify(connection, dumps({"rings": {}}))
                continue
            await asyncio.sleep(GATHER_S)
            self._wanted.clear()
            topics, self._topics = self._topics, {}
            for said in payloads(topics):
                await self._notify(connection, said)
        raise ConnectionError("the database closed the connection")

    async def _notify(self, connection: "asyncpg.Connection[Any]", said: str) -> None:
        self.notifies += 1
        await connection.execute("SELECT pg_notify($1, $2)", self._channel, said)

    def _heard(self, _connection: object, pid: int, _channel: str, payload: object) -> None:
        if pid == self._own_pid:
            return
        try:
            said = loads(str(payload))
            hello, rings = bool(said.get("hello")), {str(topic): int(times) for topic, times in said["rings"].items()}
        except (MalformedDocument, AttributeError, LookupError, TypeError, ValueError):
            return  # of another program
        self._heard_at = self._clock.now()
        if hello:  # it asks who is there
            self._topics.setdefault(EVERYTHING, 1)
            self._wanted.set()
        for topic, times in rings.items():
            self._on_ring(topic, times)


def payloads(topics: dict[str, int]) -> list[str]:
    """Put rings into as few NOTIFYs as they need."""
    said: list[str] = []
    part: dict[str, int] = {}
    size = 0
    for topic, times in topics.items():
        more = len(topic.encode()) * 2 + 24  # quoted, and escaped here and there
        if more > MOST_BYTES:
            part.setdefault(EVERYTHING, 1)
            continue
        if part and size + more > MOST_BYTES:
            said.append(dumps({"rings": part}))
            part, size = {}, 0
        part[topic] = times
        size += more
    if part:
        said.append(dumps({"rings": part}))
    return said if len(said) <= MOST_NOTIFIES else [dumps({"rings": {EVERYTHING: 1}})]
