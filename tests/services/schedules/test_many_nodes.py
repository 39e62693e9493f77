"""Schedules that several nodes serve on one PostgreSQL: each tick is posted once, whoever takes it."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from tasuki.runtime.loop import TimerDuty
from tasuki.services import schedules
from tasuki.services.switchboard import Delivery, Ending, Switchboard
from tasuki.store.postgres import PostgresStore
from tasuki.store.store import Tx
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.instant import MINUTE
from tasuki.values.operations import Principal, Request
from tests.services.schedules.bench import ACCOUNT, POST, POSTS, REGION, instant, wanted

BEGIN = "2026-10-09T09:00:00"


class Node:
    """A node's schedules on its own store, and its timers. What is posted is written down."""

    def __init__(self, url: str, clock: ManualClock, seed: int) -> None:
        self.clock, self.chance = clock, Chance.seeded(seed)
        self.store = PostgresStore(
            f"{url}&synchronous_commit=off",
            chance=self.chance,
            wall=clock,
            clock=clock,
            real_clock=clock,
            connections=4,
        )
        self.switchboard = Switchboard()
        self.switchboard.targets["sqs"] = None  # type: ignore[assignment] # it is only asked for
        config = Config(data=Path(), dev=True, account=ACCOUNT, region=REGION)
        room = schedules.room(config, self.switchboard)
        self.room = room
        self.switchboard.connect([room])
        self.switchboard.post = self._post
        self.timers = TimerDuty({room.name: room}, self.store, clock)

    def _post(self, tx: Tx, delivery: Delivery) -> None:
        tx.run(POST, (tx.now, delivery.source, delivery.source_id))
        if delivery.watcher is not None:
            self.switchboard.finished(tx, delivery.watcher, Ending(succeeded=True, output={}))

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        found = self.room.operations[operation]
        request = Request(
            "scheduler",
            operation,
            given,
            self.chance.uuid(),
            Principal("test"),
            ACCOUNT,
            REGION,
            "http://127.0.0.1:4566",
        )
        answer = await self.store.write(lambda tx: found.run(tx, request))
        assert isinstance(answer, dict)
        return answer

    async def serve(self) -> None:
        """Do rounds of the timers until nothing is due."""
        due = await self.timers.round()
        while due is not None and due <= self.clock.now():
            due = await self.timers.round()


async def _race(url: str) -> tuple[Counter[tuple[str, str]], int, int]:
    clock = ManualClock(instant(BEGIN))
    nodes = [Node(url, clock, seed) for seed in range(2)]
    try:
        for node in nodes:
            await node.store.open()
        await nodes[0].store.write(lambda tx: tx.run(POSTS))
        for n in range(12):
            await nodes[n % 2].call("CreateSchedule", **wanted(f"s{n}", "rate(1 minute)"))
        last = wanted("last", "at(2026-10-09T09:05:00)", ActionAfterCompletion="DELETE")
        await nodes[0].call("CreateSchedule", **last)
        for minute in range(8):
            clock.set(instant(BEGIN) + minute * 3 * MINUTE)
            await asyncio.gather(
                *(node.serve() for node in nodes),
                nodes[1].call("UpdateSchedule", **wanted("s3", "rate(1 minute)", Description=f"minute {minute}")),
            )
            await asyncio.gather(*(node.serve() for node in nodes))
        rows = await nodes[0].store.look(lambda tx: tx.all("SELECT source, tick FROM stub_posts"))
        left = await nodes[0].store.look(lambda tx: tx.all("SELECT count(*) FROM schedules"))
        timers = await nodes[0].store.look(lambda tx: tx.all("SELECT count(*) FROM timers"))
        return Counter((source.rpartition("/")[2], tick) for source, tick in rows), left[0][0], timers[0][0]
    finally:
        await asyncio.gather(*(node.store.leave() for node in nodes))


def test_two_nodes_post_each_tick_once(postgres_url: str) -> None:
    posted, left, timers = asyncio.run(_race(postgres_url))
    assert set(posted.values()) == {1}
    assert len(posted) == 12 * 22 + 1
    assert (left, timers) == (12, 12), "the one that is over is gone, with its timer"
