"""Pipes that several nodes serve on one PostgreSQL: each message is handed over once, whoever takes it, and what a round costs."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

import pytest

from tasuki.services.pipes import polls
from tasuki.services.switchboard import NOTHING, Caller, Ending
from tasuki.store import timers
from tasuki.store.store import Tx
from tasuki.testing import ManualClock
from tasuki.values.errors import DomainError, StoreError
from tests.services.queues.conftest import ARN
from tests.services.queues.nodes import BASE, Node, nodes

URL = f"{BASE}/000000000000/"
ROLE = "arn:aws:iam::000000000000:role/x"
MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
GIVEN = "CREATE TABLE given (execution TEXT NOT NULL, payload TEXT NOT NULL)"
WATCHED = "CREATE TABLE watched (watcher TEXT NOT NULL)"
WATCH = "INSERT INTO watched (watcher) VALUES (?)"
WATCHERS = "SELECT watcher FROM watched"
TIMERS = "SELECT key FROM timers WHERE room = 'pipes' AND due <= ?"
LEFT = "SELECT (SELECT count(*) FROM pipe_calls) + (SELECT count(*) FROM timers WHERE room = 'pipes')"
GIVE = "INSERT INTO given (execution, payload) VALUES (?, ?)"
ALL_GIVEN = "SELECT execution, payload FROM given"
HANDOVERS = "SELECT source_id, outcome FROM handovers"
FLOWS = "SELECT sum(delivered), sum(failed) FROM pipe_flows"
MANY_QUEUES = """
INSERT INTO queues (account, region, name, shelf, created_at, modified_at, delay_s, visibility_s, retention_s, wait_s,
    max_bytes, attributes, tags)
SELECT '000000000000', 'us-east-1', 'idle-' || n, n, 0, 0, 0, 30, 345600, 0, 262144, '{}', '{}'
FROM generate_series(11, 310) AS n
"""
MANY_SHELVES = "INSERT INTO shelves (shelf) SELECT n FROM generate_series(11, 310) AS n"
LATER = 7_000_000_000_000
PAUSE = f"UPDATE pipe_flows SET retry_at = {LATER}"
MANY_FLOWS = """
INSERT INTO pipe_flows (pipe, revision, running, source, batch_size, window_ms, served)
SELECT n, 'r' || n, 1, 'arn:aws:sqs:us-east-1:000000000000:idle-' || n, 10, 0, 0 FROM generate_series(11, 310) AS n
"""
Scene = Callable[[list[Node], ManualClock], Coroutine[Any, Any, None]]


class Refused(DomainError):
    code = "ExecutionLimitExceeded"


class Machine:
    """A machine that writes down what it is given; it refuses now and then, or breaks, when told to."""

    takes_arrays = True
    takes_text = False

    def __init__(self) -> None:
        self.refuses = 0
        self.breaks: BaseException | None = None
        self.is_express = False

    def check(self, _tx: Tx, _arn: str, _parameters: dict[str, Any]) -> str | None:
        return None

    def waits(self, _tx: Tx, _arn: str) -> bool | None:
        return self.is_express

    def deliver(
        self,
        tx: Tx,
        arn: str,
        payload: str,
        name: str | None,
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,  # noqa: ARG002
    ) -> str:
        if self.breaks is not None:
            raise self.breaks
        self.refuses -= 1
        if self.refuses >= 0 and self.refuses % 3 == 0:
            raise Refused("not now")
        execution = f"{arn.replace(':stateMachine:', ':execution:')}:{name or tx.chance.uuid()}"
        tx.run(GIVE, (execution, payload))
        if caller.watcher is not None:
            tx.run(WATCH, (caller.watcher,))
        return execution


def play(url: str, scene: Scene, machine: Machine, count: int = 2) -> None:
    """Play a scene with so many nodes, two queues, and a pipe from each."""

    async def run() -> None:
        async with nodes(url, count, target=machine) as (house, clock):
            for table in (GIVEN, WATCHED):
                await house[0].store.write(partial(run_it, table))
            for queue in ("a", "b"):
                await house[0].call("CreateQueue", QueueName=queue)
            await scene(house, clock)

    asyncio.run(run())


async def pipe(
    node: Node, name: str, queue: str, batch: int = 10, *, target: str = MACHINE, express: bool = False, **members: Any
) -> None:
    forget = {"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}}
    await node.call(
        "CreatePipe",
        "pipes",
        Name=name,
        Source=ARN + queue,
        Target=target,
        RoleArn=ROLE,
        SourceParameters={"SqsQueueParameters": {"BatchSize": batch}},
        TargetParameters=forget if target == MACHINE and not express else {},
        **members,
    )


async def send(node: Node, queue: str, times: int) -> list[str]:
    ids: list[str] = []
    for _ in range(times):
        entries = [{"Id": str(at), "MessageBody": "x"} for at in range(10)]
        sent = await node.call("SendMessageBatch", QueueUrl=URL + queue, Entries=entries)
        ids += [one["MessageId"] for one in sent["Successful"]]
    return ids


async def given(node: Node) -> list[str]:
    """Answer the messages that the machine was given, each as often as it was."""
    rows = await node.store.read(lambda tx: tx.all(ALL_GIVEN))
    return sorted(record["messageId"] for _, payload in rows for record in json.loads(payload))


def test_each_message_is_handed_over_once_though_everybody_pumps(postgres_url: str) -> None:
    machine = Machine()

    async def scene(house: list[Node], clock: ManualClock) -> None:
        for name, queue in (("p", "a"), ("r", "a"), ("s", "b")):  # two of them compete for one queue
            await pipe(house[0], name, queue)
        machine.refuses = 20

        async def pump(node: Node, rounds: int) -> None:
            for _ in range(rounds):
                due = await node.round("pipes")
                assert due is None or due <= clock.now() + polls.LONGEST_BACKOFF_MS

        async def change(node: Node) -> None:
            for operation in ("StopPipe", "StartPipe", "TagResource", "StopPipe", "StartPipe"):
                more = {"resourceArn": ARN.replace(":sqs:", ":pipes:") + "pipe/p", "tags": {"a": "b"}}
                await node.call(operation, "pipes", **(more if operation == "TagResource" else {"Name": "p"}))

        sent = await asyncio.gather(
            *(send(house[at % 2], queue, 5) for at, queue in enumerate("abab")),
            *(pump(house[at % 2], 12) for at in range(4)),
            change(house[1]),
        )
        ids = sorted(one for some in sent if some is not None for one in some)
        for _ in range(40):  # refused ones come back
            clock.set(clock.now() + 15_000)
            await asyncio.gather(*(node.round("pipes") for node in house))
        assert await given(house[0]) == ids
        for queue in ("a", "b"):
            counted, is_conserved = await house[0].counters(queue)
            assert is_conserved
            assert (counted.sent, counted.deleted) == (100, 100)
        told = await house[0].store.read(lambda tx: tx.all(HANDOVERS))
        assert sorted(row[0] for row in told if row[1] == "DELIVERED") == ids
        (flows,) = await house[0].store.read(lambda tx: tx.all(FLOWS))
        assert flows == (200, sum(row[1].startswith("FAILED") for row in told))
        assert flows[1] > 0
        units = sum(node.store.counters.units for node in house)
        alone = 3 + 5 + 2  # definitions begin again, alone
        assert sum(node.met for node in house) <= alone + units // 50

    play(postgres_url, scene, machine)


def test_a_pipe_that_another_node_serves_is_left_to_it(postgres_url: str) -> None:
    async def scene(house: list[Node], clock: ManualClock) -> None:
        await pipe(house[0], "p", "a")
        await send(house[0], "a", 1)
        is_held, is_over = asyncio.Event(), asyncio.Event()

        def serves_and_gives_up(tx: Tx) -> None:
            house[0].polls["pipes"].run(tx)
            is_held.set()
            while not is_over.is_set():
                tx.one("SELECT 1")
            raise Refused("undone")

        holder = asyncio.create_task(house[0].store.write(serves_and_gives_up))
        await is_held.wait()
        assert await house[1].round("pipes") == clock.now() + polls.OTHERS_MS
        await pipe_from_b(house[1])
        is_over.set()
        with pytest.raises(Refused):
            await holder
        assert await given(house[1]) == []
        assert await house[1].round("pipes") == clock.now()
        assert len(await given(house[1])) == 10

    async def pipe_from_b(node: Node) -> None:
        """What the other node does not hold goes on meanwhile."""
        await send(node, "b", 1)
        counted, _ = await node.counters("b")
        assert counted.sent == 10

    play(postgres_url, scene, Machine())


def run_it(statement: str, tx: Tx) -> None:
    tx.run(statement)


def test_messages_in_other_hands_are_looked_at_again_soon(postgres_url: str) -> None:
    async def scene(house: list[Node], clock: ManualClock) -> None:
        await pipe(house[0], "p", "a")
        await send(house[0], "a", 1)
        is_held, is_over = asyncio.Event(), asyncio.Event()

        def receives_and_gives_up(tx: Tx) -> None:
            assert len(house[0].switchboard.sources["sqs"].receive(tx, ARN + "a", 10, 1_000_000)) == 10
            is_held.set()
            while not is_over.is_set():
                tx.one("SELECT 1")
            raise Refused("undone")

        holder = asyncio.create_task(house[0].store.write(receives_and_gives_up))
        await is_held.wait()
        assert await house[1].round("pipes") == clock.now()
        assert await house[1].store.look(house[1].polls["pipes"].look) == clock.now() + polls.OTHERS_MS
        is_over.set()
        with pytest.raises(Refused):
            await holder
        clock.set(clock.now() + polls.OTHERS_MS)
        await house[1].round("pipes")
        assert len(await given(house[1])) == 10

    play(postgres_url, scene, Machine())


def test_a_look_at_many_idle_pipes_costs_few_statements(postgres_url: str) -> None:
    async def scene(house: list[Node], _clock: ManualClock) -> None:
        (node,) = house
        for many in (MANY_SHELVES, MANY_QUEUES, MANY_FLOWS):
            await node.store.write(partial(run_it, many))
        look = node.polls["pipes"].look
        assert await node.store.look(look) is None
        assert await node.statements(lambda: node.store.look(look)) == 1 + 5  # the turns; 1, 10, 100, 100, 100 queues
        await node.store.write(partial(run_it, PAUSE))
        assert await node.statements(lambda: node.store.look(look)) == 1  # who pauses is not asked
        assert await node.store.look(look) == LATER

    play(postgres_url, scene, Machine(), count=1)


def test_a_round_that_breaks_is_left_alone_but_not_one_that_the_store_could_not_do(postgres_url: str) -> None:
    machine = Machine()

    async def scene(house: list[Node], clock: ManualClock) -> None:
        await pipe(house[0], "p", "a")
        await send(house[0], "a", 1)
        poll = house[0].polls["pipes"]
        assert poll.failed is not None
        notes: dict[str, Any] = {}

        def unit(tx: Tx) -> None:
            tx.notes = notes
            poll.run(tx)

        for why, is_heeded in ((StoreError("gone"), False), (RuntimeError("ours"), True)):
            machine.breaks = why
            with pytest.raises(type(why)):
                await house[0].store.write(unit)
            assert poll.failed(notes, clock.now(), why) is is_heeded
            due = await house[0].store.look(poll.look)
            assert due == clock.now() + (polls.HOLD_MS if is_heeded else 0)
        assert poll.failed({}, clock.now(), RuntimeError("no round")) is False

    play(postgres_url, scene, machine)


async def cost_of_ten(node: Node) -> int:
    """Answer the cost of a round of ten messages on a connection that has done one: its first one counts what is in flight."""
    costs = []
    for _ in range(5):
        await send(node, "a", 1)
        costs.append(await node.statements(lambda: node.round("pipes")))
    return min(costs)


def test_what_a_round_costs(postgres_url: str) -> None:
    """In statements, the machine's own beside (here one for an execution); BEGIN, the house lock and COMMIT come on top."""

    async def scene(house: list[Node], _clock: ManualClock) -> None:
        (node,) = house
        await pipe(node, "p", "a")
        assert await cost_of_ten(node) == 12 + 1
        assert len(await given(node)) == 50
        assert await node.statements(lambda: node.round("pipes")) == 2  # the turns, and a look at the queue

    play(postgres_url, scene, Machine(), count=1)


async def tell(node: Node, watcher: str, output: str) -> None:
    """Tell the pipe that a call has ended."""
    ending = Ending(succeeded=True, output={"Output": output})
    await node.store.write(lambda tx: node.switchboard.finished(tx, watcher, ending))


async def fire(node: Node, key: str) -> None:
    """Fire a timer of the room, as the loop does."""
    room = node.rooms["pipes"]

    def unit(tx: Tx) -> None:
        assert room.lock_owner is not None
        assert room.on_timer is not None
        room.lock_owner(tx, key)
        if timers.claim(tx, "pipes", key):
            room.on_timer(tx, key)

    await node.store.write(unit)


async def watched(node: Node) -> list[str]:
    return [row[0] for row in await node.store.read(lambda tx: tx.all(WATCHERS))]


async def due(node: Node) -> list[str]:
    return [row[0] for row in await node.store.read(lambda tx: tx.all(TIMERS, (tx.now,)))]


def test_a_call_that_everybody_hears_of_is_settled_once(postgres_url: str) -> None:
    """Its end is told on two nodes while its time is up on both: either it succeeded or it was given up, and it is once."""
    machine = Machine()
    machine.is_express = True

    async def scene(house: list[Node], clock: ManualClock) -> None:
        await pipe(house[0], "p", "a", express=True)
        sent = await send(house[0], "a", 6)
        for _ in range(8):
            await house[0].round("pipes")
        calls = await watched(house[0])
        assert len(calls) == 6
        clock.set(clock.now() + 300_000)
        keys = await due(house[1])
        assert len(keys) == 6
        await asyncio.gather(
            *(tell(house[at % 2], watcher, "null") for watcher in calls for at in range(2)),
            *(fire(house[at % 2], key) for key in keys for at in range(2)),
        )
        told = await house[0].store.read(lambda tx: tx.all(HANDOVERS))
        assert sorted(row[0] for row in told) == sorted(sent)
        delivered = sum(row[1] == "DELIVERED" for row in told)
        (flows,) = await house[0].store.read(lambda tx: tx.all(FLOWS))
        assert flows == (delivered, 60 - delivered)
        counted, is_conserved = await house[0].counters("a")
        assert is_conserved
        assert counted.deleted == delivered
        assert await house[0].store.read(lambda tx: tx.all(LEFT)) == [(0,)]

    play(postgres_url, scene, machine)


def test_an_enriched_batch_goes_on_once_whoever_takes_it(postgres_url: str) -> None:
    machine = Machine()
    machine.is_express = True

    async def scene(house: list[Node], _clock: ManualClock) -> None:
        await pipe(house[0], "p", "a", target=ARN + "b", Enrichment=MACHINE)
        sent = await send(house[0], "a", 6)
        await asyncio.gather(*(house[at % 2].round("pipes") for at in range(16)))
        for at in range(8):
            await house[at % 2].round("pipes")
        payloads = [row[1] for row in await house[0].store.read(lambda tx: tx.all(ALL_GIVEN))]
        calls = await watched(house[0])
        assert len(calls) == len(payloads) == 6
        await asyncio.gather(
            *(
                tell(house[at % 2], watcher, payload)
                for watcher, payload in zip(calls, payloads, strict=True)
                for at in range(2)
            )
        )
        keys = await due(house[0])
        assert len(keys) == 6
        await asyncio.gather(*(fire(house[at % 2], key) for key in keys for at in range(2)))
        counted, is_conserved = await house[0].counters("b")
        assert is_conserved
        assert counted.sent == 60
        source, is_conserved = await house[0].counters("a")
        assert is_conserved
        assert source.deleted == 60
        told = await house[0].store.read(lambda tx: tx.all(HANDOVERS))
        assert sorted(told) == sorted((one, "DELIVERED") for one in sent)
        assert await house[0].store.read(lambda tx: tx.all(LEFT)) == [(0,)]

    play(postgres_url, scene, machine)


def test_what_a_round_to_a_queue_costs(postgres_url: str) -> None:
    async def scene(house: list[Node], _clock: ManualClock) -> None:
        (node,) = house
        await pipe(node, "p", "a", target=ARN + "b")
        assert await cost_of_ten(node) == 12 + 33  # three for each message

    play(postgres_url, scene, Machine(), count=1)
