"""Map Runs that two nodes serve at once, on one PostgreSQL: what is counted, what is bounded, what is stopped, and what it costs."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tasuki.runtime.bell import Bell
from tasuki.runtime.loop import Duty, PollDuty, TimerDuty
from tasuki.services import machines
from tasuki.services.machines.errors import ValidationException
from tasuki.services.switchboard import Switchboard
from tasuki.store.postgres import PostgresStore
from tasuki.store.store import Params, Row, Tx
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.operations import Principal, Request
from tests.services.machines.stubs import ROLE, Play
from tests.services.machines.test_map_runs import PASS, left_over, machine

ITEMS = 300
CONFIG = Config(data=Path(), dev=True, memory_mib=1024)
WAIT = {"Type": "Wait", "Seconds": 1, "Next": "C"}
SLOW = {
    "StartAt": "W",
    "States": {
        "W": WAIT,
        "C": {"Type": "Choice", "Choices": [{"Variable": "$.bad", "BooleanEquals": True, "Next": "F"}], "Default": "P"},
        "F": {"Type": "Fail", "Error": "Bad"},
        "P": {"Type": "Pass", "OutputPath": "$.n", "End": True},
    },
}
OPEN = "SELECT count(*) FROM map_children c JOIN executions e ON e.id = c.execution WHERE e.status = 'RUNNING'"
ENDED_TWICE = "SELECT execution FROM history GROUP BY execution, first HAVING count(*) > 1"
LEFT = "SELECT (SELECT count(*) FROM map_ready) + (SELECT count(*) FROM ready) + (SELECT count(*) FROM inbox)"


class Node:
    """The machines room on a store that others have open, too; it shares its clock and its loop with them."""

    def __init__(self, url: str, seed: int, clock: ManualClock) -> None:
        self.clock, self.bell, self.chance = clock, Bell(), Chance.seeded(seed)
        self.store = PostgresStore(
            f"{url}&synchronous_commit=off",
            chance=self.chance,
            wall=clock,
            clock=clock,
            real_clock=clock,
            on_ring=self.bell.ring,
            connections=6,
        )
        self.switchboard = Switchboard()
        self.room = machines.room(CONFIG, self.switchboard)
        rooms = {self.room.name: self.room}
        self.switchboard.connect(rooms.values())
        polls = [PollDuty(poll, self.store, clock) for poll in self.room.polls]
        self.duties: list[Duty] = [TimerDuty(rooms, self.store, clock), *polls]

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        found = self.switchboard.operations["stepfunctions", operation]
        request = Request(
            service="stepfunctions",
            operation=operation,
            input=given,
            request_id=self.chance.uuid(),
            principal=Principal("test"),
            account=CONFIG.account,
            region=CONFIG.region,
            base_url="http://127.0.0.1:4566",
            trace=None,
        )
        run = self.store.read if found.kind == "read" else self.store.write
        answer: dict[str, Any] = await run(lambda tx: found.run(tx, request))  # type: ignore[arg-type, return-value]
        return answer

    async def start(self, block: dict[str, Any], items: list[Any], name: str = "m", **fields: Any) -> str:
        """Create a machine of one distributed Map and start it."""
        definition = json.dumps(machine(block, **fields))
        made = await self.call("CreateStateMachine", name=name, definition=definition, roleArn=ROLE)
        arn = made["stateMachineArn"]
        return str((await self.call("StartExecution", stateMachineArn=arn, input=json.dumps(items)))["executionArn"])

    async def map_run(self, execution: str) -> dict[str, Any]:
        [listed] = (await self.call("ListMapRuns", executionArn=execution))["mapRuns"]
        return await self.call("DescribeMapRun", mapRunArn=listed["mapRunArn"])

    async def drain_ready(self) -> None:
        """Serve the executions that are ready, once."""
        await self.duties[1].round()

    async def fire(self) -> None:
        """Fire the timers that are due."""
        await self.duties[0].round()

    @asynccontextmanager
    async def holding(self, sql: str) -> AsyncIterator[None]:
        """Hold rows as a third node would that takes its time."""
        address = self.store.address
        line = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
        try:
            async with line.transaction():
                await line.fetch(sql)
                yield
        finally:
            await line.close()

    async def ask(self, sql: str) -> int:
        """Answer the only number of a statement; 0 when there is none."""
        rows = await self.store.look(lambda tx: tx.all(sql))
        return int(rows[0][0]) if rows else 0


class Pair:
    """Two nodes that work side by side."""

    def __init__(self, loop: asyncio.AbstractEventLoop, one: Node, other: Node) -> None:
        self._loop, self.nodes = loop, (one, other)
        self.most_open = 0

    def play(self, story: Coroutine[Any, Any, None]) -> None:
        self._loop.run_until_complete(story)

    async def watch(self) -> None:
        for _ in range(3):
            self.most_open = max(self.most_open, await self.nodes[0].ask(OPEN))

    async def drain(self, *beside: Awaitable[Any]) -> None:
        """Let both do what there is to do now, at once, and `beside` with the first round."""
        clock, more = self.nodes[0].clock, True
        while more:
            rounds = (duty.round() for node in self.nodes for duty in node.duties)
            await asyncio.gather(self.watch(), *rounds, *beside)
            beside = ()
            looks = [node.store.look(poll.look) for node in self.nodes for poll in node.room.polls]
            more = any(due is not None and due <= clock.now() for due in await asyncio.gather(*looks))

    async def until_over(self, execution: str, seconds: int = 60) -> dict[str, Any]:
        """Let time go on until an execution has ended; answer what is said of it."""
        for _ in range(seconds):
            await self.drain()
            described = await self.nodes[1].call("DescribeExecution", executionArn=execution)
            if described["status"] != "RUNNING":
                return described
            self.nodes[0].clock.set(self.nodes[0].clock.now() + 1_000)
        raise AssertionError(f"{execution} does not end")

    async def limit(self, execution: str, most: int) -> None:
        """UpdateMapRun of an execution's, if that is not over."""
        run = await self.nodes[0].map_run(execution)
        with suppress(ValidationException):
            await self.nodes[1].call("UpdateMapRun", mapRunArn=run["mapRunArn"], maxConcurrency=most)

    async def nothing_is_left(self) -> None:
        assert await self.nodes[0].ask(LEFT) == 0
        assert await self.nodes[0].ask(ENDED_TWICE) == 0

    @property
    def met(self) -> int:
        """How often a unit ran again that had met another; a server without a free connection is another matter."""
        counters = [node.store.counters for node in self.nodes]
        return sum(one.replays - one.reconnects for one in counters)


@pytest.fixture
def pair(postgres_url: str) -> Iterator[Pair]:
    clock, loop = ManualClock(), asyncio.new_event_loop()
    nodes = [Node(postgres_url, seed, clock) for seed in (1, 2)]
    for node in nodes:
        loop.run_until_complete(node.store.open())
    yield Pair(loop, *nodes)
    for node in nodes:
        node.store.close()
    loop.close()


def items(*bad: int, count: int = ITEMS) -> list[dict[str, Any]]:
    return [{"n": n, "bad": n in bad} for n in range(count)]


def test_two_nodes_serve_one_map_run(pair: Pair) -> None:
    one, other = pair.nodes

    async def story() -> None:
        execution = await one.start(SLOW, items(), MaxConcurrency=40)
        before = [node.store.counters.units for node in pair.nodes]
        described = await pair.until_over(execution)
        assert json.loads(described["output"]) == list(range(ITEMS))
        run = await other.map_run(execution)
        done = {name: count for name, count in run["executionCounts"].items() if count}
        assert done == {"succeeded": ITEMS, "resultsWritten": ITEMS, "total": ITEMS}
        assert run["itemCounts"] == run["executionCounts"]
        assert pair.most_open == 40
        shares = [node.store.counters.units - was for node, was in zip(pair.nodes, before, strict=True)]
        assert min(shares) > 50, "both took part"
        await pair.nothing_is_left()
        assert pair.met <= 5

    pair.play(story())


@pytest.mark.parametrize(("failures", "status"), [(20, "SUCCEEDED"), (21, "FAILED")])
def test_what_is_tolerated_is_exact(pair: Pair, failures: int, status: str) -> None:
    async def story() -> None:
        bad = range(3, 3 + 7 * failures, 7)
        execution = await pair.nodes[0].start(SLOW, items(*bad), MaxConcurrency=100, ToleratedFailureCount=20)
        assert (await pair.until_over(execution))["status"] == status
        counts = (await pair.nodes[1].map_run(execution))["executionCounts"]
        if status == "SUCCEEDED":
            assert (counts["failed"], counts["succeeded"]) == (20, ITEMS - 20)
        assert counts["running"] == 0
        assert counts["total"] == ITEMS
        await pair.nothing_is_left()

    pair.play(story())


def test_a_stop_in_the_middle_ends_all_and_a_redrive_goes_on(pair: Pair) -> None:
    one, other = pair.nodes

    async def story() -> None:
        execution = await one.start(SLOW, items(), MaxConcurrency=50)
        await pair.drain()
        one.clock.set(one.clock.now() + 500)
        await pair.drain(pair.limit(execution, 100))
        one.clock.set(one.clock.now() + 500)
        await pair.drain(other.call("StopExecution", executionArn=execution))  # while half of those that run end
        run = await one.map_run(execution)
        counts = run["executionCounts"]
        assert (run["status"], counts["running"]) == ("ABORTED", 0)
        begun = counts["succeeded"] + counts["aborted"]
        assert begun + counts["pending"] == ITEMS
        assert counts["aborted"] >= 50
        assert await one.ask(OPEN) == 0
        await pair.nothing_is_left()
        await pair.drain(other.call("RedriveExecution", executionArn=execution))
        assert json.loads((await pair.until_over(execution))["output"]) == list(range(ITEMS))
        after = (await one.map_run(execution))["executionCounts"]
        assert (after["succeeded"], after["aborted"], after["total"]) == (ITEMS, 0, ITEMS)
        assert pair.most_open <= 100
        await pair.nothing_is_left()
        assert pair.met <= 10

    pair.play(story())


def test_stops_race_the_polls_without_a_deadlock(pair: Pair) -> None:
    """A parent is held and wants its Map Run, which is held and has news for its parent; children end meanwhile."""
    one, other = pair.nodes

    async def story() -> None:
        parents = [await one.start(SLOW, items(count=20), name=f"m{n}", MaxConcurrency=5) for n in range(10)]
        await pair.drain()
        for n, parent in enumerate(parents):
            one.clock.set(one.clock.now() + 500)
            await pair.drain(
                pair.nodes[n % 2].call("StopExecution", executionArn=parent),
                other.call("StopExecution", executionArn=parent),
                pair.limit(parents[-1 - n], 5 + n % 3),
            )
        for parent in parents:
            await pair.until_over(parent)
            run = await other.map_run(parent)
            counts = run["executionCounts"]
            ended = counts["succeeded"] + counts["aborted"]
            assert (run["status"], counts["running"], ended + counts["pending"]) in {
                ("ABORTED", 0, 20),
                ("SUCCEEDED", 0, 20),
            }
        assert await one.ask(OPEN) == 0
        await pair.nothing_is_left()
        assert pair.met <= 10

    pair.play(story())


def test_who_serves_a_map_run_waits_for_nobody_and_nobody_for_it(pair: Pair) -> None:
    one, other = pair.nodes
    maps = next(poll for poll in other.room.polls if poll.name == "map_runs")

    async def story() -> None:
        execution = await one.start(SLOW, items(count=6), MaxConcurrency=3)
        await one.drain_ready()
        async with one.holding("SELECT 1 FROM executions FOR UPDATE"):
            await other.store.write(maps.run)
            assert await one.ask(OPEN) == 3, "the parent is read, not held"
        async with one.holding("SELECT 1 FROM map_runs FOR UPDATE"):
            one.clock.set(one.clock.now() + 1_000)
            await one.fire()
            assert await one.ask(OPEN) == 0, "children end while their Map Run is in other hands"
            assert (await other.map_run(execution))["executionCounts"]["succeeded"] == 3
            assert await other.store.write(maps.run) == one.clock.now() + 20, (
                "and whoever would serve it looks a moment later"
            )
        await other.store.write(maps.run)
        assert await one.ask(OPEN) == 3
        await one.call("StopExecution", executionArn=execution)
        async with one.holding("SELECT 1 FROM executions FOR UPDATE"):
            await other.store.write(maps.run)
            assert await one.ask("SELECT count(*) FROM inbox") == 3, "children are told, not held"
        await pair.drain()
        counts = (await one.map_run(execution))["executionCounts"]
        assert (counts["succeeded"], counts["aborted"], counts["running"]) == (3, 3, 0)
        await pair.nothing_is_left()

    pair.play(story())


class Counting:
    """A unit's transaction that counts its statements."""

    def __init__(self, inner: Tx) -> None:
        self._inner, self.count = inner, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        self.count += 1
        return self._inner.all(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        self.count += 1
        return self._inner.one(sql, params)

    def run(self, sql: str, params: Params = ()) -> int:
        self.count += 1
        return self._inner.run(sql, params)

    def many(self, sql: str, rows: Sequence[Params]) -> None:
        self.count += 1
        self._inner.many(sql, rows)


def counted(play: Play, unit: Callable[[Tx], Any]) -> int:
    """Answer how many statements a unit runs."""

    def watched(tx: Tx) -> int:
        counting = Counting(tx)
        unit(counting)
        return counting.count

    return play.house.unit(watched)


def test_what_children_cost(play: Play) -> None:
    """On either store: four statements for a child that ends at once, and eight for fifty of them."""
    play.run(machine(PASS), list(range(200)))
    _, maps, _ = play.house.rooms["machines"].polls
    assert [counted(play, maps.run) for _ in range(3)] == [4 * 50 + 8] * 3


def test_what_a_childs_end_costs_more_than_anothers(play: Play) -> None:
    """It asks whose child it is, and leaves a row; no row is changed that others change."""
    block = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9, "End": True}}}
    alone = play.start(play.create(block, "alone"))
    execution = play.run(machine(block), [1])
    play.house.drain()
    play.house.clock.set(play.house.now + 9_000)
    on_timer = play.house.rooms["machines"].on_timer
    assert on_timer is not None
    keys = [f"{number}:1" for (number,) in play.house.look(lambda tx: tx.all("SELECT id FROM executions ORDER BY id"))]
    costs = [counted(play, partial(_fired, on_timer, key)) for key in (keys[0], keys[2])]
    assert costs[1] - costs[0] == 2
    play.house.drain()
    assert play.describe(alone)["status"] == "SUCCEEDED"
    assert play.output(execution) == [1]


def _fired(on_timer: Callable[[Tx, str], None], key: str, tx: Tx) -> None:
    on_timer(tx, key)


def test_a_map_run_that_cannot_go_on_is_said_and_holds_up_no_other(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    arn = play.create(machine(PASS))
    bad, good = play.start(arn, [1]), play.start(arn, [2])
    [cursor] = play.house.look(lambda tx: tx.all("SELECT cursor FROM map_runs WHERE execution = 1"))
    play.house.unit(lambda tx: tx.run("UPDATE map_runs SET cursor = ? WHERE execution = 1", (b"no cursor",)))
    play.house.drain()
    assert play.output(good) == [2]
    assert play.describe(bad)["status"] == "RUNNING"
    assert "could not go on" in caplog.text
    play.house.unit(lambda tx: tx.run("UPDATE map_runs SET cursor = ? WHERE execution = 1", cursor))
    play.house.advance(seconds=11)
    assert play.output(bad) == [1]
    assert left_over(play) == {}
