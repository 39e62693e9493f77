"""Two nodes on one PostgreSQL schema, in one loop: the rooms' own polls and timers, and what clients call, all at once."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from tasuki.runtime.clock import WallClock
from tasuki.runtime.loop import Duty, PollDuty, TimerDuty
from tasuki.services import machines
from tasuki.services.switchboard import Caller, Switchboard
from tasuki.store.postgres import PostgresStore
from tasuki.store.store import T, Unit
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.instant import Instant
from tasuki.values.operations import NotYet, Principal, Request
from tests.services.machines.stubs import ROLE, Stub, task

ACCOUNT, REGION = "000000000000", "us-east-1"
SOON_MS = 100
"""Who asks to be called again so soon has seen work that is in other hands."""


class Behind:
    """A clock that is behind another one."""

    def __init__(self, clock: ManualClock, by_ms: int) -> None:
        self._clock, self._by_ms = clock, by_ms

    def now(self) -> Instant:
        """Answer the instant it stands at."""
        return self._clock.now() - self._by_ms


class Node:
    """A store, the machines room and its duties."""

    def __init__(self, url: str, seed: int, clock: ManualClock, behind_ms: int = 0) -> None:
        own = Behind(clock, behind_ms)
        self.clock = own
        self.store = PostgresStore(
            url,
            chance=Chance.seeded(seed),
            wall=WallClock(),
            clock=own,
            real_clock=own,
        )
        self.switchboard = Switchboard()
        self.chance = Chance.seeded(1_000 + seed)
        self.sqs = Stub("SQS", {"MessageId": "m-1"})
        self.switchboard.integrations["sqs:sendMessage"] = self.sqs
        self.room = machines.room(Config(data=Path(), dev=True, account=ACCOUNT), self.switchboard)
        self.switchboard.connect([self.room])
        polls = [PollDuty(poll, self.store, own) for poll in self.room.polls if "retention" not in poll.name]
        self.duties: list[Duty] = [TimerDuty({self.room.name: self.room}, self.store, own), *polls]

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        """Call an operation; a long poll answers at once."""
        found = self.switchboard.operations["stepfunctions", operation]
        principal = Principal("test")
        request = Request("stepfunctions", operation, given, self.chance.uuid(), principal, ACCOUNT, REGION, "http://x")
        run: Unit[dict[str, Any] | NotYet] = lambda tx: found.run(tx, request)  # noqa: E731
        answer = await (self.store.read(run) if found.kind == "read" else self.store.write(run))
        return answer.answer if isinstance(answer, NotYet) else answer

    async def create(self, definition: dict[str, Any], name: str = "m", **more: Any) -> str:
        made = await self.call("CreateStateMachine", name=name, definition=json.dumps(definition), roleArn=ROLE, **more)
        return str(made["stateMachineArn"])

    async def start(self, arn: str, given: Any = None, **more: Any) -> str:
        made = await self.call("StartExecution", stateMachineArn=arn, input=json.dumps(given or {}), **more)
        return str(made["executionArn"])

    async def deliver(self, arn: str, given: Any = None) -> str:
        """Start an execution whose first step is a unit of its own, as a pipe does."""
        target = self.switchboard.targets["states"]
        caller = Caller(ACCOUNT, REGION, "k", "")
        return await self.store.write(lambda tx: target.deliver(tx, arn, json.dumps(given or {}), None, caller))

    async def history(self, execution: str) -> list[dict[str, Any]]:
        answer = await self.call("GetExecutionHistory", executionArn=execution, maxResults=1000)
        events: list[dict[str, Any]] = answer["events"]
        return events

    async def status(self, execution: str) -> str:
        return str((await self.call("DescribeExecution", executionArn=execution))["status"])

    async def rows(self, table: str) -> int:
        found = await self.store.look(lambda tx: tx.one(f"SELECT count(*) FROM {table}"))
        assert found is not None
        return int(found[0])


class Street:
    """The nodes, their clock and their loop."""

    def __init__(self, url: str, nodes: int = 2, behind_ms: int = 0) -> None:
        self.clock = ManualClock()
        plain = f"{url}&synchronous_commit=off"
        self.nodes = [Node(plain, seed, self.clock, behind_ms * seed) for seed in range(nodes)]
        self._loop = asyncio.new_event_loop()
        for node in self.nodes:
            self._loop.run_until_complete(node.store.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Let something happen."""
        return self._loop.run_until_complete(work)

    async def quiet(self) -> None:
        """Let all duties of all nodes do rounds side by side, until nobody sees anything to do."""
        for _ in range(2_000):
            dues = await asyncio.gather(*(duty.round() for node in self.nodes for duty in node.duties))
            if all(due is None or due > self.clock.now() + SOON_MS for due in dues):
                return
        raise AssertionError("the nodes did not come to rest")

    async def advance(self, ms: int) -> None:
        """Move the clock, and let happen what is due then."""
        self.clock.set(self.clock.now() + ms)
        await self.quiet()

    @property
    def replays(self) -> int:
        """How often units met each other and ran again."""
        counters = [node.store.counters for node in self.nodes]
        return sum(one.replays - one.reconnects for one in counters)

    async def left_over(self) -> dict[str, int]:
        """Answer what is left in the tables that only open executions have rows in."""
        tables = ("frames", "results", "inbox", "ready", "timers", "activity_tasks", "activity_waiters", "express")
        counts = {table: await self.nodes[0].rows(table) for table in tables}
        return {table: count for table, count in counts.items() if count}

    def close(self) -> None:
        """Let go of everything."""
        for node in self.nodes:
            node.store.close()
        self._loop.close()


def check_history(events: list[dict[str, Any]], status: str) -> None:
    """A history is without gap, goes back in time nowhere, and ends once."""
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    times = [event["timestamp"] for event in events]
    assert times == sorted(times)
    assert all(0 <= event["previousEventId"] < event["id"] for event in events)
    ends = [event["type"] for event in events if event["type"].startswith("Execution")][1:]
    assert ends == ["Execution" + {"SUCCEEDED": "Succeeded", "ABORTED": "Aborted", "FAILED": "Failed"}[status]]


def long_one() -> dict[str, Any]:
    """More transitions than a unit makes, a Wait, branches, and a message at the end."""
    sending = task("sqs:sendMessage")["States"]["T"]
    branches = [{"StartAt": name, "States": {name: {"Type": "Wait", "Seconds": 1, "End": True}}} for name in "BD"]
    return {
        "StartAt": "C",
        "States": {
            "C": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.n", "NumericEquals": 130, "Next": "P"}],
                "Default": "I",
            },
            "I": {"Type": "Pass", "Parameters": {"n.$": "States.MathAdd($.n, 1)"}, "Next": "C"},
            "P": {"Type": "Parallel", "Branches": branches, "Next": "T"},
            "T": {**sending, "End": True},
        },
    }


def of_activity(arn: str) -> dict[str, Any]:
    """A machine of one task of an activity."""
    return {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": arn, "TimeoutSeconds": 60, "End": True}}}
