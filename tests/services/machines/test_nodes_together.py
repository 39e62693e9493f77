"""Many nodes on one PostgreSQL: what a unit costs, what it does when it meets others, and everything at once."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from tasuki.services.machines.errors import (
    ExecutionAlreadyExists,
    ExecutionNotRedrivable,
    TaskTimedOut,
)
from tasuki.store import timers
from tasuki.store.store import Conflict
from tests.services.machines.nodes import Street, long_one, of_activity
from tests.services.machines.stubs import PASS, task


@pytest.fixture
def street(postgres_url: str) -> Iterator[Street]:
    street = Street(postgres_url, behind_ms=7)
    yield street
    street.close()


CHAIN = {
    "StartAt": "P0",
    "States": {
        **{f"P{n}": {"Type": "Pass", "Next": f"P{n + 1}"} for n in range(32)},
        "P32": {"Type": "Pass", "End": True},
    },
}
WAITING = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 1, "End": True}}}


def test_how_many_statements_a_unit_takes(street: Street) -> None:
    """Each is a round trip; BEGIN, the house lock and COMMIT come on top of them."""

    async def play() -> dict[str, int]:
        one = street.nodes[0]
        chain, waiting = await one.create(CHAIN, "chain"), await one.create(WAITING, "waiting")
        sending = await one.create(task("sqs:sendMessage"), "sending")
        asking = await one.create(
            task("sqs:sendMessage.waitForTaskToken", {"MessageBody": {"t.$": "$$.Task.Token"}}), "asking"
        )
        counters = one.store.counters
        counts: dict[str, int] = {}

        async def count(name: str, work: Any) -> None:
            before, units = counters.statements, counters.units
            await work
            counts[name] = counters.statements - before
            assert counters.units == units + 1

        await one.start(chain)  # counts what is open
        await count("StartExecution, 33 states", one.start(chain))
        await count("StartExecution, a message sent", one.start(sending))
        await count("StartExecution, then it waits", one.start(waiting))
        await count("StartExecution, a token given", one.start(asking))
        token = one.sqs.calls[-1][0]["MessageBody"]["t"]
        await count("SendTaskSuccess", one.call("SendTaskSuccess", taskToken=token, output="{}"))
        await count("delivered", one.deliver(chain))
        turns = one.room.polls[0]
        await one.store.look(turns.look)
        await count("served, 33 states", one.store.write(turns.run))
        street.clock.set(street.clock.now() + 1_000)
        due = await one.store.look(lambda tx: timers.due(tx, 10))
        assert len(due) == 1
        before, units = counters.statements, counters.units
        await one.duties[0].round()
        assert counters.units == units + 1
        counts["a timer fires"] = counters.statements - before - LOOKS_OF_TIMERS
        return counts

    assert street.run(play()) == {
        "StartExecution, 33 states": 3,
        "StartExecution, a message sent": 4,
        "StartExecution, then it waits": 5,
        "StartExecution, a token given": 5,
        "SendTaskSuccess": 10,
        "delivered": 3,
        "served, 33 states": 10,
        "a timer fires": 10,
    }


LOOKS_OF_TIMERS = 2


def test_who_finds_all_in_other_hands_looks_again_a_moment_later(street: Street) -> None:
    async def play() -> None:
        one = street.nodes[0]
        execution = await one.deliver(await one.create(PASS))
        other = await asyncpg.connect(one.store.address.dsn, server_settings={"search_path": one.store.address.schema})
        turns = next(duty for duty in one.duties if duty.name == "machines")
        try:
            async with other.transaction():
                await other.execute("SELECT 1 FROM executions FOR UPDATE")
                assert await turns.round() == one.clock.now() + 20
                assert await turns.round() == one.clock.now() + 20
                assert await one.rows("ready") == 1
        finally:
            await other.close()
        assert await turns.round() == one.clock.now()
        assert await one.status(execution) == "SUCCEEDED"

    street.run(play())


def test_a_unit_that_met_another_pauses_nothing(street: Street, caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        one = street.nodes[0]
        arn = await one.create(task("sqs:sendMessage"))
        working, met = one.sqs.call, iter((True, True, False))

        def call(*given: Any) -> Any:
            if next(met):
                raise Conflict
            return working(*given)

        one.sqs.call = call  # type: ignore[method-assign,assignment]
        execution = await one.deliver(arn)
        turns = next(duty for duty in one.duties if duty.name == "machines")
        await turns.round()
        assert await one.status(execution) == "SUCCEEDED"
        assert street.replays == 3
        assert "could not go on" not in caplog.text

    street.run(play())


EXPECTED = (
    TaskTimedOut,
    ExecutionNotRedrivable,
    ExecutionAlreadyExists,
)
"""What clients are told who come too late."""


def drawn(
    dice: random.Random, started: list[str], arns: list[str], tokens: list[str], activity: str
) -> tuple[str, dict[str, Any]]:
    """Draw what a client does next."""
    execution, token = dice.choice(started), dice.choice(tokens)
    name = str(dice.random())[:4]
    return dice.choice(
        [
            ("StopExecution", {"executionArn": execution}),
            ("RedriveExecution", {"executionArn": execution}),
            ("SendTaskSuccess", {"taskToken": token, "output": "{}"}),
            ("SendTaskHeartbeat", {"taskToken": token}),
            ("SendTaskFailure", {"taskToken": token, "error": "E"}),
            ("GetActivityTask", {"activityArn": activity}),
            ("StartExecution", {"stateMachineArn": dice.choice(arns), "input": '{"n": 120}', "name": name}),
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_everything_at_once_comes_to_an_end(street: Street, seed: int) -> None:
    """Clients of both nodes do whatever they can while both serve: nothing fails, and hardly a unit runs again."""
    dice = random.Random(seed)
    told: list[BaseException] = []

    async def client(number: int, calls: "list[tuple[str, dict[str, Any]]]") -> None:
        node = street.nodes[number % 2]
        for operation, given in calls:
            try:
                await node.call(operation, **given)
            except EXPECTED as late:
                told.append(late)

    async def play() -> None:
        one, other = street.nodes
        activity = str((await one.call("CreateActivity", name="a"))["activityArn"])
        asking = task("sqs:sendMessage.waitForTaskToken", {"MessageBody": {"t.$": "$$.Task.Token"}}, TimeoutSeconds=3)
        child = await one.create(asking, "child")
        express = await one.create(WAITING, "express", type="EXPRESS")
        works = [
            task("states:startExecution.sync:2", {"StateMachineArn": child})["States"]["T"],
            task("aws-sdk:sfn:startSyncExecution", {"StateMachineArn": express})["States"]["T"],
            {**of_activity(activity)["States"]["A"], "TimeoutSeconds": 3},
            {"Type": "Wait", "Seconds": 1, "End": True},
            asking["States"]["T"],
        ]
        branches = [{"StartAt": f"B{n}", "States": {f"B{n}": work}} for n, work in enumerate(works)]
        arns = [
            await one.create(
                {"StartAt": "P", "States": {"P": {"Type": "Parallel", "Branches": branches, "End": True}}}
            ),
            child,
            await one.create(long_one(), "long"),
        ]
        started = await asyncio.gather(
            *(dice.choice(street.nodes).start(dice.choice(arns), {"n": dice.randrange(130)}) for _ in range(60))
        )
        replayed = street.replays
        for _ in range(6):
            tokens = [
                call[0]["MessageBody"]["t"]
                for node in (one, other)
                for call in node.sqs.calls
                if "t" in call[0]["MessageBody"]
            ]
            clients = [client(n, [drawn(dice, started, arns, tokens, activity) for _ in range(6)]) for n in range(12)]
            street.clock.set(street.clock.now() + 600)
            await asyncio.gather(*clients, street.quiet(), street.quiet())
        for _ in range(12):
            await street.advance(1_000)
            while await other.call("GetActivityTask", activityArn=activity):  # else they wait for ever
                pass
        met = street.replays - replayed
        all_ = await one.store.look(
            lambda tx: tx.all("SELECT m.name, e.name, e.status FROM executions e JOIN machines m ON m.id = e.machine")
        )
        assert {status for _, _, status in all_} <= {"SUCCEEDED", "FAILED", "ABORTED"}
        for machine, name, _ in all_:
            events = await one.history(f"arn:aws:states:us-east-1:000000000000:execution:{machine}:{name}")
            assert [event["id"] for event in events] == list(range(1, len(events) + 1))
            times = [event["timestamp"] for event in events]
            assert times == sorted(times)
        assert await street.left_over() == {}
        units = sum(node.store.counters.units for node in street.nodes)
        assert Counter(type(one_) for one_ in told)[TaskTimedOut] > 20, "the clients did get in each other's way"
        assert met <= units // 50

    street.run(play())
