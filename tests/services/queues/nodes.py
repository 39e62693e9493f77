"""Nodes without their loops: the rooms of messages on stores that share one PostgreSQL, one clock and one loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tasuki.services import handovers, pipes, queues
from tasuki.services.queues.model import Counters
from tasuki.services.switchboard import Switchboard, Target
from tasuki.store.postgres import PostgresStore
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.errors import DomainError
from tasuki.values.instant import Instant
from tasuki.values.operations import NotYet, Principal, Request

BASE = "http://127.0.0.1:4566"
CONNECTIONS = 10
"""Of a node: the server may have other guests."""


class Node:
    """A node's rooms on its own store. `call` is what its door would do; `round` is one round of a poll."""

    def __init__(self, url: str, clock: ManualClock, seed: int, target: Target | None, quotas: dict[str, int]) -> None:
        self.config = Config(data=Path(), dev=True, quotas=quotas)
        self.chance = Chance.seeded(seed)
        self.clock = clock
        self.store = PostgresStore(
            f"{url}&synchronous_commit=off",
            chance=self.chance,
            wall=clock,
            clock=clock,
            real_clock=clock,
            connections=CONNECTIONS,
        )
        self.switchboard = Switchboard()
        built = [build(self.config, self.switchboard) for build in (handovers.room, queues.room, pipes.room)]
        if target is not None:
            self.switchboard.targets["states"] = target
        self.switchboard.connect(built)
        self.polls = {poll.name: poll for room in built for poll in room.polls}
        self.rooms = {room.name: room for room in built}

    async def call(self, operation: str, service: str = "sqs", **given: Any) -> dict[str, Any]:
        """Call an operation. A receive that finds nothing answers an empty dict."""
        answer = await self.ask(operation, service, **given)
        return answer.answer if isinstance(answer, NotYet) else answer

    async def ask(self, operation: str, service: str = "sqs", **given: Any) -> dict[str, Any] | NotYet:
        """Call an operation; answer what its unit does."""
        found = self.switchboard.operations[service, operation]
        request = Request(
            service,
            operation,
            given,
            self.chance.uuid(),
            Principal("test"),
            self.config.account,
            self.config.region,
            BASE,
        )
        run = self.store.read if found.kind == "read" else self.store.write
        return await run(lambda tx: found.run(tx, request))

    async def round(self, name: str) -> Instant | None:
        """Do one round of a poll."""
        return await self.store.write(self.polls[name].run)

    async def counters(self, queue: str) -> tuple[Counters, bool]:
        """Answer what became of a queue's messages, and whether all are accounted for."""
        account, region = self.config.account, self.config.region

        def unit(tx: Any) -> tuple[Counters, bool]:
            found = queues.find_queue(tx, account, region, queue)
            return queues.counters(tx, found), queues.conservation(tx, found)

        return await self.store.read(unit)

    @property
    def met(self) -> int:
        """How many units began again because they met another, or to be alone."""
        return self.store.counters.replays - self.store.counters.reconnects

    async def statements(self, work: Callable[[], Awaitable[Any]]) -> int:
        """Answer how many statements a piece of work takes, beside BEGIN, the house lock and COMMIT."""
        before = self.store.counters.statements
        await work()
        return self.store.counters.statements - before


@asynccontextmanager
async def nodes(
    url: str, count: int = 2, *, target: Target | None = None, quotas: dict[str, int] | None = None
) -> AsyncIterator[tuple[list[Node], ManualClock]]:
    """So many nodes on one schema, and the clock that they share."""
    clock = ManualClock()
    made = [Node(url, clock, seed, target, quotas or {}) for seed in range(count)]
    try:
        for node in made:
            await node.store.open()
        yield made, clock
    finally:
        await asyncio.gather(*(node.store.leave() for node in made))


async def tried(work: Awaitable[dict[str, Any]]) -> dict[str, Any] | DomainError:
    """Answer what a call answers, or the error that its client gets."""
    try:
        return await work
    except DomainError as refused:
        return refused
