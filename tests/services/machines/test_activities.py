"""Activities: workers take turns, one task to one worker, time counts from the hand-out."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services.machines.errors import (
    ActivityDoesNotExist,
    ActivityLimitExceeded,
    InvalidArn,
    InvalidName,
    InvalidToken,
    ResourceNotFound,
    TaskTimedOut,
)
from tasuki.values.operations import NotYet, Principal, Request
from tests.services.machines.stubs import PASS, Play


def activity(play: Play, name: str = "press") -> str:
    return str(play.call("CreateActivity", name=name)["activityArn"])


def of_activity(arn: str, **more: Any) -> dict[str, Any]:
    return {"StartAt": "T", "States": {"T": {"Type": "Task", "Resource": arn, "End": True, **more}}}


def poll(play: Play, arn: str, **more: Any) -> dict[str, Any]:
    return play.call("GetActivityTask", activityArn=arn, **more)


def test_a_worker_does_the_work(play: Play) -> None:
    arn = activity(play)
    execution = play.run(of_activity(arn, Parameters={"n.$": "$.n"}), {"n": 5})
    assert play.types(execution)[-1] == "ActivityScheduled"
    task = poll(play, arn, workerName="anna")
    assert json.loads(task["input"]) == {"n": 5}
    started = play.events(execution)[-1]
    assert (started["type"], started["activityStartedEventDetails"]) == ("ActivityStarted", {"workerName": "anna"})
    assert poll(play, arn) == {}
    play.call("SendTaskHeartbeat", taskToken=task["taskToken"])
    play.call("SendTaskSuccess", taskToken=task["taskToken"], output='{"done": 5}')
    assert play.output(execution) == {"done": 5}
    assert play.types(execution)[2:6] == [
        "ActivityScheduled",
        "ActivityStarted",
        "ActivitySucceeded",
        "TaskStateExited",
    ]
    assert play.left_over() == {}
    assert play.rows("activity_tasks") == 0


def test_tasks_are_handed_out_in_their_order_and_once(play: Play) -> None:
    arn = activity(play)
    machine = play.create(of_activity(arn))
    for number in range(3):
        play.start(machine, number)
    taken = [poll(play, arn) for _ in range(4)]
    assert [task.get("input") for task in taken] == ["0", "1", "2", None]
    assert len({task["taskToken"] for task in taken[:3]}) == 3


def test_a_worker_waits_a_minute(play: Play) -> None:
    arn = activity(play)
    operation = play.house.rooms["machines"].operations["GetActivityTask"]
    request = Request(
        "stepfunctions", "GetActivityTask", {"activityArn": arn}, "r", Principal("k"), "000000000000", "us-east-1", ""
    )
    look = operation.look
    assert look is not None
    waiting = play.house.look(lambda tx: look(tx, request))
    assert isinstance(waiting, NotYet)
    assert (waiting.until, waiting.answer) == (play.house.now + 60_000, {})
    execution = play.run(of_activity(arn))
    assert play.house.look(lambda tx: look(tx, request)) is None
    play.call("StopExecution", executionArn=execution)
    assert play.house.look(lambda tx: look(tx, request)) is not None


def test_an_activity_that_is_missing_fails_the_state(play: Play) -> None:
    arn = activity(play)
    play.call("DeleteActivity", activityArn=arn)
    described = play.describe(play.run(of_activity(arn)))
    assert (described["status"], described["error"]) == ("FAILED", "States.Runtime")
    assert described["cause"].endswith(f"(entered at the event id #2). The activity {arn} does not exist.")


def test_time_counts_from_the_hand_out(play: Play) -> None:
    arn = activity(play)
    execution = play.run(of_activity(arn, TimeoutSeconds=10, HeartbeatSeconds=4))
    play.house.advance(hours=5)
    assert play.describe(execution)["status"] == "RUNNING"
    token = poll(play, arn)["taskToken"]
    play.house.advance(seconds=3)
    play.call("SendTaskHeartbeat", taskToken=token)
    play.house.advance(seconds=3)
    assert play.describe(execution)["status"] == "RUNNING"
    play.house.advance(seconds=2)
    described = play.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", "States.Timeout")
    assert "ActivityTimedOut" in play.types(execution)
    with pytest.raises(TaskTimedOut):
        play.call("SendTaskSuccess", taskToken=token, output="1")


def test_a_failure_may_be_retried_with_another_token(play: Play) -> None:
    arn = activity(play)
    retry = [{"ErrorEquals": ["Jam"], "IntervalSeconds": 1}]
    execution = play.run(of_activity(arn, Retry=retry))
    first = poll(play, arn)["taskToken"]
    play.call("SendTaskFailure", taskToken=first, error="Jam", cause="paper")
    play.house.advance(seconds=1)
    second = poll(play, arn)["taskToken"]
    assert second != first
    play.call("SendTaskSuccess", taskToken=second, output="1")
    assert play.output(execution) == 1
    assert play.types(execution).count("ActivityFailed") == 1


def test_what_nobody_waits_for_is_not_handed_out(play: Play) -> None:
    arn = activity(play)
    machine = play.create(of_activity(arn))
    stopped, other = play.start(machine, "stopped"), play.start(machine, "other")
    play.call("StopExecution", executionArn=stopped)
    assert play.rows("activity_tasks") == 1
    assert poll(play, arn)["input"] == '"other"'
    play.call("StopExecution", executionArn=other)
    assert play.rows("activity_tasks") == 0


def test_a_deleted_activity_gives_its_tasks_to_nobody(play: Play) -> None:
    arn = activity(play)
    play.run(of_activity(arn))
    play.call("DeleteActivity", activityArn=arn)
    play.call("DeleteActivity", activityArn=arn)
    with pytest.raises(ActivityDoesNotExist) as no:
        poll(play, arn)
    assert no.value.message == f"Activity Does Not Exist: '{arn}'"
    assert activity(play) == arn
    assert poll(play, arn) == {}


def test_activities_are_made_shown_and_listed(play: Play) -> None:
    arns = [activity(play, name) for name in ("b", "a", "c")]
    assert activity(play, "b") == arns[0], "idempotent by name"
    described = play.call("DescribeActivity", activityArn=arns[0])
    assert (described["name"], described["creationDate"]) == ("b", play.house.now)
    first = play.call("ListActivities", maxResults=2)
    rest = play.call("ListActivities", maxResults=2, nextToken=first["nextToken"])
    assert [one["name"] for one in first["activities"] + rest["activities"]] == ["a", "b", "c"]
    assert "nextToken" not in rest
    with pytest.raises(InvalidToken):
        play.call("ListActivities", nextToken="made-up")
    with pytest.raises(InvalidName):
        activity(play, "a b")
    with pytest.raises(InvalidArn):
        play.call("DescribeActivity", activityArn=play.create(PASS))


def test_activities_have_tags_and_versions_have_none(play: Play) -> None:
    arn = str(play.call("CreateActivity", name="t", tags=[{"key": "a", "value": "1"}])["activityArn"])
    play.call("TagResource", resourceArn=arn, tags=[{"key": "b", "value": "2"}])
    play.call("UntagResource", resourceArn=arn, tagKeys=["a"])
    assert play.call("ListTagsForResource", resourceArn=arn) == {"tags": [{"key": "b", "value": "2"}]}
    with pytest.raises(ResourceNotFound):
        play.call("ListTagsForResource", resourceArn=arn + "x")


@pytest.fixture
def small() -> Iterator[Play]:
    play = Play(activities=1)
    yield play
    play.house.close()


def test_activities_have_a_quota(small: Play) -> None:
    activity(small, "one")
    with pytest.raises(ActivityLimitExceeded):
        activity(small, "two")


def consumer(arn: str) -> dict[str, Any]:
    """A machine that is a worker itself."""
    return {
        "StartAt": "Get",
        "States": {
            "Get": {
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:sfn:getActivityTask",
                "Parameters": {"ActivityArn": arn, "WorkerName": "machine"},
                "Next": "Got",
            },
            "Got": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.TaskToken", "IsPresent": True, "Next": "Answer"}],
                "Default": "None",
            },
            "Answer": {
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:sfn:sendTaskSuccess",
                "Parameters": {"TaskToken.$": "$.TaskToken", "Output.$": "$.Input"},
                "End": True,
            },
            "None": {"Type": "Succeed"},
        },
    }


@pytest.mark.parametrize("early", [True, False])
def test_a_machine_may_be_the_worker(play: Play, *, early: bool) -> None:
    arn = activity(play)
    made = play.create(of_activity(arn)), play.create(consumer(arn), "consumer")
    machines = made if not early else made[::-1]
    started = {machine: play.start(machine, {"x": 1}) for machine in machines}
    play.house.drain()
    assert play.output(started[made[0]]) == {"x": 1}
    assert play.describe(started[made[1]])["status"] == "SUCCEEDED"
    [event] = [one for one in play.events(started[made[0]]) if one["type"] == "ActivityStarted"]
    assert event["activityStartedEventDetails"] == {"workerName": "machine"}
    assert play.rows("activity_waiters") == 0
    assert play.left_over() == {}


def test_a_machine_that_waits_for_work_waits_a_minute(play: Play) -> None:
    arn = activity(play)
    execution = play.run(consumer(arn))
    play.house.advance(seconds=59)
    assert play.describe(execution)["status"] == "RUNNING"
    play.house.advance(seconds=1)
    assert play.output(execution) == {}
    assert play.left_over() == {}
    stopped = play.start(play.create(consumer(arn), "again"))
    play.call("StopExecution", executionArn=stopped)
    assert play.rows("activity_waiters") == 0
    play.start(play.create(of_activity(arn), "work"))
    assert poll(play, arn)["input"] == "{}", "the one that was stopped took nothing"


def test_one_execution_may_be_both(play: Play) -> None:
    arn = activity(play)
    branches = [of_activity(arn), consumer(arn)]
    both = {"StartAt": "P", "States": {"P": {"Type": "Parallel", "Branches": branches, "End": True}}}
    execution = play.run(both, {"y": 2})
    play.house.drain()
    assert play.output(execution)[0] == {"y": 2}
