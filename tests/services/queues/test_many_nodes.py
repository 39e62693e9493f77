"""Queues that several nodes serve on one PostgreSQL: who gets what, what is counted, who waits for whom, what it costs."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from tasuki.services.queues import queries, shelf
from tasuki.services.queues.errors import OverLimit
from tasuki.store.store import STRIPES, Params, Row, Tx
from tasuki.testing import ManualClock
from tasuki.values.operations import NotYet
from tests.services.queues.conftest import ARN
from tests.services.queues.nodes import BASE, Node, nodes, tried

URL = f"{BASE}/000000000000/"
Scene = Callable[[list[Node], ManualClock], Coroutine[Any, Any, None]]


def play(url: str, scene: Scene, count: int = 2, **quotas: int) -> None:
    """Play a scene with so many nodes."""

    async def run() -> None:
        async with nodes(url, count, quotas=quotas) as (all_of_them, clock):
            await scene(all_of_them, clock)

    asyncio.run(run())


async def send(node: Node, queue: str, *bodies: str, **more: Any) -> list[str]:
    """Send a batch; answer the message ids."""
    entries = [{"Id": str(at), "MessageBody": body, **more} for at, body in enumerate(bodies)]
    sent = await node.call("SendMessageBatch", QueueUrl=URL + queue, Entries=entries)
    return [one["MessageId"] for one in sent["Successful"]]


async def receive(node: Node, queue: str, limit: int = 10, **more: Any) -> list[dict[str, Any]]:
    """Receive; answer the messages."""
    given = {"QueueUrl": URL + queue, "MaxNumberOfMessages": limit, **more}
    found: list[dict[str, Any]] = (await node.call("ReceiveMessage", **given)).get("Messages", [])
    return found


class Storm:
    """Producers and consumers at once. It knows what was acknowledged, and who holds what."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sent: set[str] = set()
        self.deleted: set[str] = set()
        self.held: set[str] = set()
        self.received: Counter[str] = Counter()
        self.given_back: Counter[str] = Counter()

    async def produce(self, node: Node, queue: str, times: int) -> None:
        for _ in range(times):
            size = self.random.choice((1, 1, 3, 10))
            body = "x" * self.random.choice((10, 2_000))
            self.sent.update(await send(node, queue, *[body] * size))

    async def consume(self, node: Node, queue: str, times: int) -> None:
        """Receive; delete most, give some back, keep a few."""
        for _ in range(times):
            messages = await receive(node, queue, self.random.choice((1, 3, 10)))
            ids = [one["MessageId"] for one in messages]
            assert self.held.isdisjoint(ids), "nobody else has it"
            self.held.update(ids)
            self.received.update(ids)
            fates = [self.random.random() for _ in messages]
            gone = [one for one, fate in zip(messages, fates, strict=True) if fate < 0.6]
            back = [one for one, fate in zip(messages, fates, strict=True) if 0.6 <= fate < 0.9]
            for some, operation, more in (
                (gone, "DeleteMessageBatch", {}),
                (back, "ChangeMessageVisibilityBatch", {"VisibilityTimeout": 0}),
            ):
                if not some:
                    continue
                names = {one["MessageId"] for one in some}
                self.held -= names
                entries = [
                    {"Id": str(at), "ReceiptHandle": one["ReceiptHandle"], **more} for at, one in enumerate(some)
                ]
                answer = await node.call(operation, QueueUrl=URL + queue, Entries=entries)
                assert len(answer["Successful"]) == len(some)
                if operation == "DeleteMessageBatch":
                    self.deleted |= names
                else:
                    self.given_back.update(names)


async def create(node: Node, queue: str, **attributes: Any) -> None:
    given = {name: str(value) for name, value in attributes.items()}
    await node.call("CreateQueue", QueueName=queue, Attributes=given)


def redrive(queue: str, receives: int) -> str:
    return json.dumps({"deadLetterTargetArn": ARN + queue, "maxReceiveCount": receives})


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_or_had_by_two_while_everybody_sends_and_receives(postgres_url: str, seed: int) -> None:
    async def scene(house: list[Node], clock: ManualClock) -> None:
        await create(house[0], "dead")
        await create(house[0], "q", RedrivePolicy=redrive("dead", 3))
        storm = Storm(seed)
        await asyncio.gather(
            *(storm.produce(house[at % 2], "q", 15) for at in range(4)),
            *(storm.consume(house[at % 2], "q", 20) for at in range(6)),
        )
        assert storm.deleted <= storm.sent
        assert all(storm.received[one] == 1 + storm.given_back[one] for one in storm.deleted)
        assert max(storm.received.values()) <= 3
        (main, is_conserved), (dead, dead_is_conserved) = [await house[1].counters(name) for name in ("q", "dead")]
        assert is_conserved
        assert dead_is_conserved
        assert (main.sent, main.deleted) == (len(storm.sent), len(storm.deleted))
        assert main.received == sum(storm.received.values())
        assert main.moved_to_dlq == dead.moved_in

        clock.set(clock.now() + 31_000)  # what was kept comes back; in the end everything has gone somewhere
        rest: set[str] = set()
        while some := await receive(house[0], "q"):
            rest |= {one["MessageId"] for one in some}
        buried: set[str] = set()
        while some := await receive(house[1], "dead"):
            buried |= {one["MessageId"] for one in some}
        assert storm.deleted | rest | buried == storm.sent
        assert not storm.deleted & (rest | buried)
        assert not rest & buried
        units = sum(node.store.counters.units for node in house)
        assert sum(node.met for node in house) <= units // 50

    play(postgres_url, scene)


def test_purges_among_sends_and_receives_lose_no_count(postgres_url: str) -> None:
    async def scene(house: list[Node], clock: ManualClock) -> None:
        await create(house[0], "q")
        storm = Storm(1)

        async def take(node: Node) -> None:
            for _ in range(15):
                for one in await receive(node, "q", 3):
                    await node.call("DeleteMessage", QueueUrl=URL + "q", ReceiptHandle=one["ReceiptHandle"])

        async def purge() -> None:
            for node in (house[1], house[0], house[1]):
                await node.call("PurgeQueue", QueueUrl=URL + "q")
                clock.set(clock.now() + 60_000)
                await asyncio.gather(*(one.round("queues.sweep") for one in house))

        await asyncio.gather(*(storm.produce(house[at % 2], "q", 10) for at in range(4)), take(house[0]), purge())
        counted, is_conserved = await house[0].counters("q")
        assert is_conserved
        assert counted.sent == len(storm.sent)
        for _ in range(10):
            await asyncio.gather(*(one.round("queues.sweep") for one in house))
        (shelves,) = await house[0].store.read(lambda tx: tx.all("SELECT count(*) FROM shelves"))
        (stripes,) = await house[0].store.read(
            lambda tx: tx.all("SELECT count(*) FROM shelf_counts WHERE shelf NOT IN (SELECT shelf FROM queues)")
        )
        assert (shelves[0], stripes[0]) == (1, 0)

    play(postgres_url, scene)


def test_a_receive_passes_over_what_another_unit_has_in_hand_and_looks_again_soon(postgres_url: str) -> None:
    async def scene(house: list[Node], clock: ManualClock) -> None:
        await create(house[0], "q")
        ids = await send(house[0], "q", "a", "b")
        is_claimed, is_over = asyncio.Event(), asyncio.Event()

        def claims_and_gives_up(tx: Tx) -> None:
            queue = shelf.find_queue(tx, "000000000000", "us-east-1", "q")
            assert len(shelf.claim(tx, queue, 1, 30, cap=100)) == 1
            is_claimed.set()
            while not is_over.is_set():
                tx.one("SELECT 1")
            raise OverLimit("undone")

        holder = asyncio.create_task(house[0].store.write(claims_and_gives_up))
        await is_claimed.wait()
        assert [one["MessageId"] for one in await receive(house[1], "q")] == ids[1:]
        nothing = await house[1].ask("ReceiveMessage", QueueUrl=URL + "q", WaitTimeSeconds=20)
        assert isinstance(nothing, NotYet)
        assert (nothing.wake_at, nothing.until) == (clock.now() + shelf.HELD_MS, clock.now() + 20_000)
        is_over.set()
        with pytest.raises(OverLimit):
            await holder
        assert [one["MessageId"] for one in await receive(house[1], "q")] == ids[:1]

    play(postgres_url, scene)


def test_one_receipt_deletes_once_whoever_asks_however_often(postgres_url: str) -> None:
    async def scene(house: list[Node], _clock: ManualClock) -> None:
        await create(house[0], "q")
        await send(house[0], "q", *"abcdefghij")
        entries = [
            {"Id": str(at), "ReceiptHandle": one["ReceiptHandle"]}
            for at, one in enumerate(await receive(house[0], "q"))
        ]
        draw = random.Random(0)
        orders = [entries, *(draw.sample(entries, draw.randint(5, 10)) for _ in range(31))]
        await asyncio.gather(
            *(
                house[at % 2].call("DeleteMessageBatch", QueueUrl=URL + "q", Entries=order)
                for at, order in enumerate(orders)
            )
        )
        counted, is_conserved = await house[0].counters("q")
        assert is_conserved
        assert counted.deleted == 10
        assert sum(node.met for node in house) == 1  # CreateQueue, which began again alone

    play(postgres_url, scene)


def test_arrivals_of_one_instant_have_numbers_of_their_own(postgres_url: str) -> None:
    async def scene(house: list[Node], _clock: ManualClock) -> None:
        await create(house[0], "q")
        await asyncio.gather(*(send(house[at % 2], "q", *"abcde") for at in range(40)))
        rows = await house[0].store.read(lambda tx: tx.all("SELECT DISTINCT sent_at, seq FROM messages"))
        assert len(rows) == 200
        stripes = await house[0].store.read(lambda tx: tx.all("SELECT stripe, sent FROM shelf_counts"))
        assert 4 < len(stripes) <= STRIPES
        assert sum(row[1] for row in stripes) == 200

    play(postgres_url, scene)


def test_the_cap_on_messages_in_flight_is_kept_about(postgres_url: str) -> None:
    cap = 128 * STRIPES

    async def scene(house: list[Node], _clock: ManualClock) -> None:
        await create(house[0], "q")
        for _ in range(8):
            await asyncio.gather(*(send(house[at % 2], "q", *"abcdefghij") for at in range(30)))

        async def take(node: Node) -> int:
            taken = 0
            while True:
                answer = await tried(node.call("ReceiveMessage", QueueUrl=URL + "q", MaxNumberOfMessages=10))
                if isinstance(answer, OverLimit):
                    return taken
                assert isinstance(answer, dict)
                taken += len(answer["Messages"])

        taken = await asyncio.gather(*(take(house[at % 2]) for at in range(8)))
        assert cap - 10 < sum(taken) <= cap + cap // 8 + 8 * 10

    play(postgres_url, scene, sqs_in_flight=cap)


def test_a_move_task_that_two_nodes_serve_moves_each_message_once(postgres_url: str) -> None:
    async def scene(house: list[Node], clock: ManualClock) -> None:
        await create(house[0], "dead")
        await create(house[0], "q", RedrivePolicy=redrive("dead", 1))
        for _ in range(25):
            await send(house[0], "dead", *["x" * 2_000] * 10)
        await house[1].call("StartMessageMoveTask", SourceArn=ARN + "dead", DestinationArn=ARN + "q")
        for _ in range(25):  # these came later, and stay
            await send(house[0], "dead", *"abcdefghij")
        storm = Storm(3)

        async def moves(node: Node) -> None:
            for _ in range(6):
                due = await node.round("queues.move")
                assert due is None or due <= clock.now() + shelf.HELD_MS

        await asyncio.gather(*(moves(node) for node in house), *(storm.consume(house[0], "q", 5) for _ in range(2)))
        clock.set(clock.now() + shelf.HELD_MS)
        for _ in range(6):
            await house[0].round("queues.move")
        (task,) = (await house[0].call("ListMessageMoveTasks", SourceArn=ARN + "dead"))["Results"]
        assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 250)
        (dead, dead_is_conserved), (main, is_conserved) = [await house[1].counters(name) for name in ("dead", "q")]
        assert dead_is_conserved
        assert is_conserved
        assert (dead.redriven, main.moved_in) == (250, 250)

    play(postgres_url, scene)


class OneStripe:
    """A transaction that counts in stripe 0, and lets others go on for a while after it has counted for the first time."""

    stripe = 0

    def __init__(self, tx: Tx, counted: Callable[[], object]) -> None:
        self._tx, self._counted = tx, counted
        self._has_counted = False

    def run(self, sql: str, params: Params = ()) -> int:
        changed = self._tx.run(sql, params)
        self._after(sql)
        return changed

    def one(self, sql: str, params: Params = ()) -> Row | None:
        row = self._tx.one(sql, params)
        self._after(sql)
        return row

    def _after(self, sql: str) -> None:
        if "INTO shelf_counts" in sql and not self._has_counted:
            self._has_counted = True
            self._counted()
            for _ in range(200):
                self._tx.one("SELECT 1")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


def test_clearing_away_and_moving_back_do_not_wait_for_each_other_in_a_circle(postgres_url: str) -> None:
    """Both count on two shelves, and may have the same stripe when they are of two nodes."""

    async def scene(house: list[Node], clock: ManualClock) -> None:
        await create(house[0], "dead")
        await create(house[0], "q", MessageRetentionPeriod=60, RedrivePolicy=redrive("dead", 1))
        await send(house[0], "q", "expires")
        clock.set(clock.now() + 30_000)
        await send(house[0], "q", "dies")
        assert len(await receive(house[0], "q", VisibilityTimeout=0)) == 2
        await send(house[0], "dead", "comes back")
        clock.set(clock.now() + 31_000)
        place = house[0].config.account, house[0].config.region
        has_counted = asyncio.Event()

        def clear(tx: Tx) -> None:
            one: Any = OneStripe(tx, has_counted.set)
            assert shelf.claim(one, shelf.find_queue(one, *place, "q"), 1, 30, cap=1_000) == []

        def move_back(tx: Tx) -> None:
            one: Any = OneStripe(tx, lambda: None)
            dead, queue = (shelf.find_queue(one, *place, name) for name in ("dead", "q"))
            shelf.redrive(one, dead, queue, one.all(queries.RECEIVABLE, (dead.shelf, one.now, 1)))

        clearing = asyncio.create_task(house[0].store.write(clear))
        await has_counted.wait()
        await house[1].store.write(move_back)
        await clearing
        assert sum(node.met for node in house) - 2 == 0  # two queues were created, alone
        for name, stood in (("q", (2, 1, 1, 1)), ("dead", (1, 1, 0, 0))):
            counted, is_conserved = await house[0].counters(name)
            assert is_conserved
            assert (counted.sent, counted.moved_in, counted.expired, counted.moved_to_dlq) == stood

    play(postgres_url, scene)


def test_two_sweeps_expire_each_message_once_and_a_send_meanwhile_is_swept_later(postgres_url: str) -> None:
    async def scene(house: list[Node], clock: ManualClock) -> None:
        await create(house[0], "q", MessageRetentionPeriod=60)
        for _ in range(12):
            await asyncio.gather(*(send(node, "q", *"abcdefghij") for node in (*house, *house, *house)))
        clock.set(clock.now() + 60_000)
        sweeps = [node.round("queues.sweep") for node in house for _ in range(4)]
        await asyncio.gather(*sweeps, *(send(house[0], "q", "late") for _ in range(5)))
        for _ in range(6):
            clock.set(clock.now() + shelf.HELD_MS)
            await house[1].round("queues.sweep")
        counted, is_conserved = await house[0].counters("q")
        assert is_conserved
        assert (counted.sent, counted.expired) == (725, 720)
        due = await house[0].store.look(house[0].polls["queues.sweep"].look)
        assert due is not None
        clock.set(due)
        await house[0].round("queues.sweep")
        assert (await house[0].counters("q"))[0].expired == 725

    play(postgres_url, scene)


def test_what_a_unit_costs(postgres_url: str) -> None:
    """In statements; BEGIN, the house lock and COMMIT come on top of each unit."""

    async def scene(house: list[Node], _clock: ManualClock) -> None:
        (node,) = house
        await create(node, "dead")
        await create(node, "q", RedrivePolicy=redrive("dead", 5))
        url = {"QueueUrl": URL + "q"}
        for _ in range(STRIPES):  # each stripe's first receive counts what is in flight
            await asyncio.gather(*(send(node, "q", "a") for _ in range(STRIPES)))
            await asyncio.gather(*(receive(node, "q") for _ in range(STRIPES)))
        held: list[dict[str, Any]] = []

        async def take(limit: int) -> None:
            held[:] = await receive(node, "q", limit)
            assert len(held) == limit

        async def settle(operation: str, **more: Any) -> None:
            handles = [{"ReceiptHandle": one["ReceiptHandle"], **more} for one in held]
            if len(handles) == 1:
                await node.call(operation, **url, **handles[0])
            else:
                entries = [{"Id": str(at), **one} for at, one in enumerate(handles)]
                await node.call(f"{operation}Batch", **url, Entries=entries)

        cost: dict[str, int] = {}
        for named, count, body in (("1", 1, "a"), ("10", 10, "a"), ("10 long", 10, "x" * 2_000)):
            cost[f"send {named}"] = await node.statements(partial(send, node, "q", *[body] * count))
            cost[f"receive {named}"] = await node.statements(partial(take, count))
            cost[f"hold {named}"] = await node.statements(
                partial(settle, "ChangeMessageVisibility", VisibilityTimeout=60)
            )
            cost[f"delete {named}"] = await node.statements(partial(settle, "DeleteMessage"))
        cost["receive nothing"] = await node.statements(lambda: receive(node, "q"))
        assert cost == {
            "send 1": 3,
            "receive 1": 4,
            "hold 1": 3,
            "delete 1": 3,
            "send 10": 3,
            "receive 10": 4,
            "hold 10": 3,
            "delete 10": 4,
            "send 10 long": 13,
            "receive 10 long": 5,
            "hold 10 long": 3,
            "delete 10 long": 5,
            "receive nothing": 3,
        }

    play(postgres_url, scene, count=1)
