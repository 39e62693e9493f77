"""Several nodes on one PostgreSQL: a delivery is tried by one of them at a time, and taken once."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tasuki.runtime.loop import TimerDuty
from tasuki.services import deliveries, handovers, queues
from tasuki.services.switchboard import Delivery, Ending, Switchboard
from tasuki.store.postgres import PostgresStore
from tasuki.store.store import Tx
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.instant import DAY
from tests.services.deliveries.bench import SOURCE, TARGET, StubSender, StubTarget, StubWatcher, Throttled, tables

COUNT = 60
CONNECTIONS = 6


class Node:
    """A node's rooms on its own store, and its timers."""

    def __init__(self, url: str, clock: ManualClock, seed: int) -> None:
        self.store = PostgresStore(
            f"{url}&synchronous_commit=off",
            chance=Chance.seeded(seed),
            wall=clock,
            clock=clock,
            real_clock=clock,
            connections=CONNECTIONS,
        )
        self.target, self.switchboard = StubTarget(), Switchboard()
        config = Config(data=Path(), dev=True)
        built = [build(config, self.switchboard) for build in (handovers.room, queues.room, deliveries.room)]
        self.switchboard.targets["stub"] = self.target
        self.switchboard.senders["stubs"] = StubSender()
        self.switchboard.watchers["watcher"] = StubWatcher()
        self.timers = TimerDuty({room.name: room for room in built}, self.store, clock)

    async def post(self, number: int, now: int) -> None:
        delivery = Delivery(
            sender="stubs",
            source=SOURCE,
            source_id=str(number),
            target=TARGET,
            payload=f"{number}:<attempt>",
            account="000000000000",
            region="us-east-1",
            trace="",
            since=now,
            max_age_ms=DAY,
            max_retries=5,
            watcher=f"watcher:{number}",
        )
        await self.store.write(lambda tx: self.switchboard.post(tx, delivery))


Scene = Callable[[list[Node], ManualClock], Coroutine[Any, Any, None]]


def play(url: str, scene: Scene) -> None:
    async def run() -> None:
        clock = ManualClock()
        nodes = [Node(url, clock, seed) for seed in range(2)]
        try:
            for node in nodes:
                await node.store.open()
            await nodes[0].store.write(tables)
            await scene(nodes, clock)
        finally:
            await asyncio.gather(*(node.store.leave() for node in nodes))

    asyncio.run(run())


async def count(node: Node, sql: str) -> int:
    def unit(tx: Tx) -> int:
        row = tx.one(sql)
        assert row is not None
        return int(row[0])

    return await node.store.look(unit)


async def until_quiet(nodes: list[Node], clock: ManualClock) -> None:
    for _ in range(20):
        await asyncio.gather(*(node.timers.round() for node in nodes for _ in range(2)))
        if not await count(nodes[0], f"SELECT count(*) FROM timers WHERE due <= {clock.now()}"):
            return
    raise AssertionError("timers are left")


def test_two_nodes_take_each_delivery_once(postgres_url: str) -> None:
    async def scene(nodes: list[Node], clock: ManualClock) -> None:
        for node in nodes:
            node.target.refuse = lambda payload: Throttled("no") if int(payload[-1]) < 3 else None
        await asyncio.gather(*(nodes[number % 2].post(number, clock.now()) for number in range(COUNT)))
        assert await count(nodes[0], "SELECT count(*) FROM deliveries") == COUNT
        for _ in range(2):
            clock.set(clock.now() + 10_000)
            await until_quiet(nodes, clock)
        assert await count(nodes[0], "SELECT count(*) FROM stub_taken") == COUNT
        assert await count(nodes[0], "SELECT count(DISTINCT payload) FROM stub_taken") == COUNT
        assert await count(nodes[0], "SELECT count(*) FROM stub_taken WHERE payload LIKE '%:3'") == COUNT
        assert await count(nodes[0], "SELECT count(*) FROM stub_told") == COUNT
        assert await count(nodes[0], "SELECT count(*) FROM handovers WHERE outcome LIKE 'FAILED%'") == 2 * COUNT
        assert await count(nodes[0], "SELECT count(*) FROM handovers WHERE outcome = 'DELIVERED'") == COUNT
        for table in ("deliveries", "timers"):
            assert await count(nodes[0], f"SELECT count(*) FROM {table}") == 0

    play(postgres_url, scene)


def test_an_end_that_is_told_by_two_nodes_counts_once(postgres_url: str) -> None:
    async def scene(nodes: list[Node], clock: ManualClock) -> None:
        for node in nodes:
            node.target.waited = True
        await asyncio.gather(*(nodes[0].post(number, clock.now()) for number in range(10)))
        watchers = [caller.watcher for caller in nodes[0].target.callers]
        assert len({*watchers}) >= 10

        def told(node: Node, watcher: str | None) -> Coroutine[Any, Any, None]:
            assert watcher is not None
            ending = Ending(succeeded=True, output={})
            return node.store.write(lambda tx: node.switchboard.finished(tx, watcher, ending))

        await asyncio.gather(*(told(node, watcher) for watcher in watchers for node in nodes))
        assert await count(nodes[0], "SELECT count(*) FROM handovers WHERE outcome = 'DELIVERED'") == 10
        assert await count(nodes[0], "SELECT count(*) FROM stub_told") == 10
        assert await count(nodes[0], "SELECT count(*) FROM deliveries") == 0

    play(postgres_url, scene)
