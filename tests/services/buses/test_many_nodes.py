"""Buses that several nodes serve on one PostgreSQL: each event reaches each target once, whoever looks at it."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tasuki.services import buses, deliveries, handovers, queues
from tasuki.services.switchboard import Switchboard
from tasuki.store import timers
from tasuki.store.postgres import PostgresStore
from tasuki.store.store import Tx
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.operations import NotYet, Principal, Request

URL = "http://127.0.0.1:4566/000000000000/"
ARN = "arn:aws:sqs:us-east-1:000000000000:"
LEFT = "SELECT (SELECT count(*) FROM bus_events) + (SELECT count(*) FROM deliveries)"


class Node:
    """The rooms of a node on its own store, without loops."""

    def __init__(self, url: str, clock: ManualClock, seed: int) -> None:
        self.config, self.chance = Config(data=Path(), dev=True), Chance.seeded(seed)
        self.store = PostgresStore(
            f"{url}&synchronous_commit=off",
            chance=self.chance,
            wall=clock,
            clock=clock,
            real_clock=clock,
            connections=6,
        )
        self.switchboard = Switchboard()
        rooms = [
            make(self.config, self.switchboard) for make in (handovers.room, queues.room, deliveries.room, buses.room)
        ]
        self.switchboard.connect(rooms)
        self.room = rooms[-1]

    async def call(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        found = self.switchboard.operations[service, operation]
        config = self.config
        request = Request(
            service, operation, given, self.chance.uuid(), Principal("test"), config.account, config.region, URL
        )
        run = self.store.read if found.kind == "read" else self.store.write
        answer = await run(lambda tx: found.run(tx, request))
        return answer.answer if isinstance(answer, NotYet) else answer

    async def round(self) -> Any:
        return await self.store.write(self.room.polls[0].run)

    async def put(self, *numbers: int) -> None:
        entries = [{"Source": "shop", "DetailType": "d", "Detail": json.dumps({"n": number})} for number in numbers]
        await self.call("events", "PutEvents", Entries=entries)

    async def fire(self, key: str) -> bool:
        """Fire a timer as the loop does; tell whether it was ours."""

        def unit(tx: Tx) -> bool:
            assert self.room.lock_owner is not None
            assert self.room.on_timer is not None
            self.room.lock_owner(tx, key)
            ours = timers.claim(tx, self.room.name, key)
            if ours:
                self.room.on_timer(tx, key)
            return ours

        return await self.store.write(unit)


def play(url: str, scene: Any) -> None:
    async def run() -> None:
        clock = ManualClock()
        house = [Node(url, clock, seed) for seed in range(2)]
        try:
            for node in house:
                await node.store.open()
            await scene(house, clock)
        finally:
            await asyncio.gather(*(node.store.leave() for node in house))

    asyncio.run(run())


async def rule(node: Node, name: str, queue: str, **more: Any) -> None:
    await node.call("sqs", "CreateQueue", QueueName=queue)
    given = more or {"EventPattern": '{"source":["shop"]}'}
    await node.call("events", "PutRule", Name=name, **given)
    await node.call("events", "PutTargets", Rule=name, Targets=[{"Id": "t", "Arn": ARN + queue}])


async def received(node: Node, queue: str) -> list[Any]:
    found: list[Any] = []
    while messages := (await node.call("sqs", "ReceiveMessage", QueueUrl=URL + queue, MaxNumberOfMessages=10)).get(
        "Messages"
    ):
        found += [json.loads(message["Body"]) for message in messages]
    return found


def test_each_event_reaches_each_target_once(postgres_url: str) -> None:
    async def scene(house: list[Node], _clock: ManualClock) -> None:
        for number in range(3):
            await rule(house[0], f"r{number}", f"q{number}")

        async def puts(node: Node, first: int) -> None:
            for number in range(first, first + 100, 10):
                await node.put(*range(number, number + 10))

        async def looks(node: Node) -> None:
            for _ in range(15):
                await node.round()

        async def changes(node: Node) -> None:
            for _ in range(3):
                await node.call("events", "PutRule", Name="other", EventPattern='{"source":["else"]}')

        first, second = house
        await asyncio.gather(
            puts(first, 0), puts(second, 100), looks(first), looks(second), looks(second), changes(first)
        )
        while await first.store.look(lambda tx: tx.one(LEFT)) != (0,):
            await asyncio.gather(first.round(), second.round())
        for number in range(3):
            assert sorted(event["detail"]["n"] for event in await received(first, f"q{number}")) == list(range(200))

    play(postgres_url, scene)


def test_a_planned_time_fires_on_one_node(postgres_url: str) -> None:
    async def scene(house: list[Node], clock: ManualClock) -> None:
        await rule(house[0], "r", "q", ScheduleExpression="rate(1 minute)")
        (key,) = await house[0].store.look(lambda tx: tx.all("SELECT key FROM timers WHERE room = 'buses'"))
        for _ in range(5):
            clock.set(clock.now() + 60_000)
            assert sorted(await asyncio.gather(*(node.fire(key[0]) for node in house * 2))) == [
                False,
                False,
                False,
                True,
            ]
        times = [event["time"] for event in await received(house[0], "q")]
        assert sorted(times) == [f"2026-01-01T00:0{minute}:00Z" for minute in range(1, 6)]

    play(postgres_url, scene)


def test_whoever_asks_who_wants_an_event_looks_once_in_a_unit(postgres_url: str) -> None:
    async def scene(house: list[Node], _clock: ManualClock) -> None:
        node = house[0]
        await rule(node, "r", "q")
        place = (node.config.account, node.config.region)

        async def statements(*sources: str) -> int:
            before = node.store.counters.statements
            wanted = await node.store.write(lambda tx: [node.switchboard.wants(tx, *place, one) for one in sources])
            assert wanted == [one == "shop" for one in sources]
            return node.store.counters.statements - before

        assert await statements("shop", "other", "shop") - await statements() == 1

    play(postgres_url, scene)
