"""Many nodes on one PostgreSQL: whatever they do at the same time, each execution sees one order of things, and ends once."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services.machines.errors import (
    ExecutionNotRedrivable,
    InvalidToken,
    TaskTimedOut,
)
from tasuki.services.switchboard import Ending
from tests.services.machines.nodes import Street, check_history, long_one, of_activity
from tests.services.machines.stubs import PASS, Refused, task


@pytest.fixture
def street(postgres_url: str) -> Iterator[Street]:
    street = Street(postgres_url, behind_ms=7)
    yield street
    street.close()


def test_two_nodes_step_two_hundred_executions(street: Street) -> None:
    one, other = street.nodes

    async def play() -> None:
        arn = await one.create(long_one())
        started = await asyncio.gather(*(street.nodes[n % 2].deliver(arn, {"n": 0}) for n in range(200)))
        await street.quiet()
        await street.advance(1_500)
        for execution in started:
            assert await one.status(execution) == "SUCCEEDED"
            check_history(await one.history(execution), "SUCCEEDED")
        assert len(one.sqs.calls) + len(other.sqs.calls) >= 200, "a unit that runs again calls again"
        assert await street.left_over() == {}
        assert all(node.store.counters.units > 100 for node in street.nodes)
        assert street.replays <= 10

    street.run(play())


@pytest.mark.parametrize("stops", [1, 3])
def test_a_stop_races_the_end(street: Street, stops: int) -> None:
    async def play() -> None:
        one, other = street.nodes
        arn = await one.create(task("sqs:sendMessage.waitForTaskToken", {"MessageBody": {"t.$": "$$.Task.Token"}}))
        started = [await one.start(arn) for _ in range(20)]
        tokens = [call[0]["MessageBody"]["t"] for call in one.sqs.calls]
        answers = await asyncio.gather(
            *(other.call("SendTaskSuccess", taskToken=token, output="{}") for token in tokens),
            *(one.call("StopExecution", executionArn=execution) for execution in started for _ in range(stops)),
            street.quiet(),
            return_exceptions=True,
        )
        assert {type(answer) for answer in answers if isinstance(answer, BaseException)} <= {TaskTimedOut}
        await street.quiet()
        for execution, answer in zip(started, answers, strict=False):
            status = await one.status(execution)
            assert (status == "ABORTED") == isinstance(answer, TaskTimedOut), "whoever was first has won"
            check_history(await one.history(execution), status)
        assert await street.left_over() == {}

    street.run(play())


def test_a_token_is_good_once(street: Street) -> None:
    async def play() -> None:
        one, other = street.nodes
        arn = await one.create(task("sqs:sendMessage.waitForTaskToken", {"MessageBody": {"t.$": "$$.Task.Token"}}))
        started = [await one.start(arn) for _ in range(10)]
        tokens = [call[0]["MessageBody"]["t"] for call in one.sqs.calls]
        for token in tokens:
            answers = await asyncio.gather(
                *(
                    node.call("SendTaskSuccess", taskToken=token, output=json.dumps(number))
                    for number, node in enumerate((one, other, one, other))
                ),
                return_exceptions=True,
            )
            assert Counter(type(answer) for answer in answers) == {dict: 1, TaskTimedOut: 3}
        for execution in started:
            check_history(await one.history(execution), "SUCCEEDED")
        with pytest.raises(InvalidToken):
            await one.call("SendTaskSuccess", taskToken="made up", output="{}")
        assert street.replays == 1, "the creation, to be alone"

    street.run(play())


def test_timers_that_both_nodes_fire_fire_once(street: Street) -> None:
    async def play() -> None:
        one, other = street.nodes
        wait = {"Type": "Wait", "Seconds": 1}
        arn = await one.create({"StartAt": "A", "States": {"A": {**wait, "Next": "B"}, "B": {**wait, "End": True}}})
        started = await asyncio.gather(*(node.start(arn) for node in (one, other) for _ in range(40)))
        for _ in range(3):
            await street.advance(1_010)
        for execution in started:
            events = await other.history(execution)
            check_history(events, "SUCCEEDED")
            assert [event["type"] for event in events].count("WaitStateExited") == 2
        assert await street.left_over() == {}
        assert street.replays == 1, "the creation, to be alone"

    street.run(play())


def test_a_heartbeat_meets_its_deadline(street: Street) -> None:
    async def play() -> None:
        one, other = street.nodes
        waiting = task(
            "sqs:sendMessage.waitForTaskToken", {"MessageBody": {"t.$": "$$.Task.Token"}}, HeartbeatSeconds=10
        )
        arn = await one.create(waiting)
        started = [await one.start(arn) for _ in range(20)]
        tokens = [call[0]["MessageBody"]["t"] for call in one.sqs.calls]
        street.clock.set(street.clock.now() + 10_010)
        beats = asyncio.gather(
            *(other.call("SendTaskHeartbeat", taskToken=token) for token in tokens), return_exceptions=True
        )
        answers, _ = await asyncio.gather(beats, street.quiet())
        for execution, answer in zip(started, answers, strict=True):
            alive = await one.status(execution) == "RUNNING"
            assert alive == isinstance(answer, dict), "a heartbeat that was taken counts"
            events = await one.history(execution)
            assert [event["id"] for event in events] == list(range(1, len(events) + 1))
        await street.advance(10_010)
        assert {await one.status(execution) for execution in started} == {"FAILED"}
        assert await street.left_over() == {}

    street.run(play())


def test_parents_and_children_end_across_nodes(street: Street) -> None:
    async def play() -> None:
        one, other = street.nodes
        child = await one.create(
            {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 1, "End": True}}}, "child"
        )
        nested = task("states:startExecution.sync:2", {"StateMachineArn": child})["States"]["T"]
        branches = [{"StartAt": name, "States": {name: nested}} for name in "XYZ"]
        both = {"StartAt": "P", "States": {"P": {"Type": "Parallel", "Branches": branches, "End": True}}}
        arn = await one.create(both, "parent")
        started = await asyncio.gather(*(node.deliver(arn) for node in (one, other) for _ in range(15)))
        await street.quiet()
        stopped = started[:6]
        street.clock.set(street.clock.now() + 1_100)
        await asyncio.gather(
            *(node.call("StopExecution", executionArn=execution) for execution in stopped for node in (one, other)),
            street.quiet(),
        )
        await street.quiet()
        for execution in started:
            status = await one.status(execution)
            assert status == "SUCCEEDED" or execution in stopped
            check_history(await one.history(execution), status)
        assert await one.rows("executions WHERE status = 'RUNNING'") == 0
        assert await street.left_over() == {}
        assert street.replays <= 5

    street.run(play())


def test_two_starts_of_one_name_are_one_execution(street: Street) -> None:
    async def play() -> None:
        one, other = street.nodes
        arn = await one.create(task("sqs:sendMessage.waitForTaskToken", {"MessageBody": {"t.$": "$$.Task.Token"}}))
        for name in "abcdefgh":
            made = await asyncio.gather(*(node.start(arn, name=name) for node in (one, other, one, other)))
            assert len(set(made)) == 1
        assert await one.rows("executions") == 8
        assert await one.rows("frames") == 8

    street.run(play())


def test_definitions_change_one_after_the_other(street: Street) -> None:
    async def play() -> None:
        one, other = street.nodes
        arn = await one.create(PASS)
        made = await asyncio.gather(
            *(
                node.call("UpdateStateMachine", stateMachineArn=arn, roleArn=f"r{number}", publish=True)
                for number, node in enumerate((one, other, one, other))
            ),
            *(one.start(arn) for _ in range(10)),
        )
        numbers = sorted(
            str(answer["stateMachineVersionArn"]).rpartition(":")[2] for answer in made if "updateDate" in answer
        )
        assert numbers == ["1", "2", "3", "4"]
        started = [str(answer) for answer in made if isinstance(answer, str)]
        assert {await one.status(execution) for execution in started} == {"SUCCEEDED"}

    street.run(play())


def test_the_last_of_a_deleted_machine_takes_it_along(street: Street) -> None:
    async def play() -> None:
        one, other = street.nodes
        for round_ in range(8):
            arn = await one.create(
                {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9, "End": True}}}, f"m{round_}"
            )
            started = [await one.start(arn) for _ in range(2)]
            await one.call("DeleteStateMachine", stateMachineArn=arn)
            await asyncio.gather(
                *(
                    node.call("StopExecution", executionArn=execution)
                    for node, execution in zip((one, other), started, strict=True)
                )
            )
        assert await one.rows("machines WHERE status = 'DELETED'") == 8

    street.run(play())


def test_news_that_comes_while_an_execution_is_served_is_told(street: Street) -> None:
    """Each of many endings, put into the inbox by units of both nodes while both serve it, is told once."""

    async def play() -> None:
        one = street.nodes[0]
        child = await one.create(
            {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 1000, "End": True}}}, "child"
        )
        work = task("states:startExecution.sync", {"StateMachineArn": child})
        machine = {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemProcessor": work, "End": True}}}
        execution = await one.start(await one.create(machine), list(range(40)))
        await street.quiet()
        waiting = await one.store.look(lambda tx: tx.all("SELECT watcher FROM executions WHERE watcher IS NOT NULL"))
        assert len(waiting) == 40

        def tell(node: Any, watcher: str) -> Any:
            ending = Ending(succeeded=True, output={"Output": "1"})
            return node.store.write(lambda tx: node.switchboard.finished(tx, watcher, ending))

        await asyncio.gather(
            *(tell(street.nodes[n % 2], watcher) for n, (watcher,) in enumerate(waiting)),
            *(street.quiet() for _ in range(3)),
        )
        await street.quiet()
        events = await one.history(execution)
        check_history(events, "SUCCEEDED")
        assert [event["type"] for event in events].count("TaskSucceeded") == 40

    street.run(play())


def test_five_workers_on_two_nodes_get_each_task_once(street: Street) -> None:
    async def play() -> None:
        one = street.nodes[0]
        activity = str((await one.call("CreateActivity", name="a"))["activityArn"])
        arn = await one.create(of_activity(activity))
        got: list[dict[str, Any]] = []

        async def work(number: int) -> None:
            node = street.nodes[number % 2]
            while len(got) < 60:
                task_ = await node.call("GetActivityTask", activityArn=activity, workerName=f"w{number}")
                if task_:
                    got.append(task_)
                    await node.call("SendTaskSuccess", taskToken=task_["taskToken"], output=task_["input"])

        started = asyncio.gather(*(street.nodes[n % 2].deliver(arn, {"n": n}) for n in range(60)))
        await asyncio.gather(started, street.quiet(), *(work(number) for number in range(5)), street.quiet())
        await street.quiet()
        assert sorted(json.loads(one_["input"])["n"] for one_ in got) == list(range(60))
        for execution in await started:
            events = await one.history(execution)
            check_history(events, "SUCCEEDED")
            assert [event["type"] for event in events].count("ActivityStarted") == 1
        assert await street.left_over() == {}
        assert street.replays <= 10

    street.run(play())


def test_a_task_that_is_offered_meets_who_begins_to_wait_for_it(street: Street) -> None:
    """Machines ask for tasks of an activity while others put them in: nobody waits while a task waits."""

    async def play() -> None:
        one, other = street.nodes
        activity = str((await one.call("CreateActivity", name="a"))["activityArn"])
        offers = await one.create(of_activity(activity), "offers")
        sdk = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:sfn:getActivityTask"}
        get = {**sdk, "Parameters": {"ActivityArn": activity}, "Next": "Answer"}
        given = {"TaskToken.$": "$.TaskToken", "Output.$": "$.Input"}
        states = {"Get": get, "Answer": task("aws-sdk:sfn:sendTaskSuccess", given)["States"]["T"]}
        asks = await one.create({"StartAt": "Get", "States": states}, "asks")
        for _ in range(5):
            started = await asyncio.gather(
                *(one.deliver(offers) for _ in range(8)),
                *(other.deliver(asks) for _ in range(8)),
                *(street.quiet() for _ in range(3)),
            )
            await street.quiet()
            for execution in started[:16]:
                assert await one.status(str(execution)) == "SUCCEEDED"
                check_history(await one.history(str(execution)), "SUCCEEDED")
        assert await one.rows("activity_waiters") == 0
        assert await street.left_over() == {}

    street.run(play())


def test_express_executions_and_who_waits_for_them(street: Street) -> None:
    """An Express execution that calls others hears of each end, whichever node it comes from; its caller gets the answer."""
    wait = {"Type": "Wait", "Seconds": 1}

    async def play() -> None:
        one, other = street.nodes
        child = await one.create({"StartAt": "W", "States": {"W": {**wait, "End": True}}}, "child", type="EXPRESS")
        call = {**task("aws-sdk:sfn:startSyncExecution", {"StateMachineArn": child})["States"]["T"]}
        branches = [{"StartAt": name, "States": {name: call}} for name in "XYZ"]
        states = {"P": {"Type": "Parallel", "Branches": branches, "Next": "W"}, "W": {**wait, "End": True}}
        arn = await one.create({"StartAt": "P", "States": states}, "parent", type="EXPRESS")
        standard = await one.create({"StartAt": "P", "States": states}, "standard")
        await asyncio.gather(*(node.start(arn) for node in (one, other) for _ in range(10)))
        started = [await node.start(standard) for node in (one, other) for _ in range(10)]
        for _ in range(4):
            await street.advance(1_010)
        for execution in started:
            check_history(await one.history(execution), "SUCCEEDED")
        assert await street.left_over() == {}
        assert street.replays <= 3 + 5

    street.run(play())


def test_redrives_at_once_are_one(street: Street) -> None:
    async def play() -> None:
        one, other = street.nodes
        one.sqs.refusal = other.sqs.refusal = Refused("no")
        arn = await one.create(task("sqs:sendMessage"))
        started = [await one.start(arn) for _ in range(10)]
        one.sqs.refusal = other.sqs.refusal = None
        for execution in started:
            answers = await asyncio.gather(
                *(node.call("RedriveExecution", executionArn=execution) for node in (one, other, one)),
                return_exceptions=True,
            )
            assert Counter(type(answer) for answer in answers) == {dict: 1, ExecutionNotRedrivable: 2}
            types = [event["type"] for event in await one.history(execution)]
            assert (types.count("ExecutionRedriven"), types[-1]) == (1, "ExecutionSucceeded")
        assert await street.left_over() == {}

    street.run(play())
