"""The tasks room under real machines: PF-25, PF-26, retries that wait for room, time-outs that stop the task."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services import machines
from tests.services.tasks.stage import Stage

ROLE = "arn:aws:iam::000000000000:role/r"
SYNC = "arn:aws:states:::ecs:runTask.sync"


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage(memory_mib=200, rooms=(machines.room,))
    yield made
    made.house.close()


def execute(stage: Stage, image: str, **state: Any) -> str:
    stage.define(image)
    states = {"Run": {"Type": "Task", "Resource": SYNC, "Parameters": {"TaskDefinition": image}, "End": True, **state}}
    machine = stage.house.call(
        "stepfunctions",
        "CreateStateMachine",
        {"name": image, "definition": json.dumps({"StartAt": "Run", "States": states}), "roleArn": ROLE},
    )
    started = stage.house.call(
        "stepfunctions", "StartExecution", {"stateMachineArn": machine["stateMachineArn"], "input": "{}"}
    )
    return str(started["executionArn"])


def described(stage: Stage, arn: str) -> dict[str, Any]:
    return stage.house.call("stepfunctions", "DescribeExecution", {"executionArn": arn})


def kinds(stage: Stage, arn: str) -> list[str]:
    history = stage.house.call("stepfunctions", "GetExecutionHistory", {"executionArn": arn})
    return [event["type"] for event in history["events"]]


def test_pf26_an_hour_long_job_succeeds_with_one_task(stage: Stage) -> None:
    arn = execute(stage, "hour")
    stage.house.advance(minutes=60)
    stage.crash()
    assert described(stage, arn)["status"] == "RUNNING"
    stage.house.advance(minutes=2)
    ended = described(stage, arn)
    assert ended["status"] == "SUCCEEDED", ended
    output = json.loads(ended["output"])
    assert (output["LastStatus"], output["Containers"][0]["ExitCode"]) == ("STOPPED", 0)
    assert kinds(stage, arn) == [  # recorded: ecs_task_service/test_run_task_sync
        "ExecutionStarted",
        "TaskStateEntered",
        "TaskScheduled",
        "TaskStarted",
        "TaskSubmitted",
        "TaskSucceeded",
        "TaskStateExited",
        "ExecutionSucceeded",
    ]
    assert len(stage.runner.started) == 1


@pytest.mark.parametrize("image", ["broken", "unmapped"])
def test_a_bad_end_is_task_failed_with_the_task_as_cause(stage: Stage, image: str) -> None:
    arn = execute(stage, image)
    stage.house.advance(minutes=1)
    ended = described(stage, arn)
    assert (ended["status"], ended["error"]) == ("FAILED", "States.TaskFailed")
    cause = json.loads(ended["cause"])
    assert cause["Containers"][0].get("ExitCode") == (3 if image == "broken" else None)


def test_retry_waits_for_room(stage: Stage) -> None:
    stage.define("forever", memory=180)
    holder = stage.call("RunTask", taskDefinition="forever")["tasks"][0]["taskArn"]
    again = {"ErrorEquals": ["AmazonECS.Unknown"], "IntervalSeconds": 10, "MaxAttempts": 50, "BackoffRate": 1.0}
    arn = execute(stage, "quick", Retry=[again])
    stage.house.advance(minutes=2)
    assert described(stage, arn)["status"] == "RUNNING"
    stage.call("StopTask", task=holder)
    stage.house.advance(minutes=1)
    assert described(stage, arn)["status"] == "SUCCEEDED"
    assert len(stage.runner.started) == 2


def test_a_timeout_stops_the_task(stage: Stage) -> None:
    arn = execute(stage, "forever", TimeoutSeconds=60)
    stage.house.advance(minutes=2)
    assert described(stage, arn)["error"] == "States.Timeout"
    (task,) = stage.call("ListTasks", desiredStatus="STOPPED")["taskArns"]
    assert stage.task(task)["stopCode"] == "UserInitiated"


def test_a_stopped_execution_stops_its_task(stage: Stage) -> None:
    arn = execute(stage, "forever")
    stage.house.drain()
    stage.house.call("stepfunctions", "StopExecution", {"executionArn": arn})
    stage.house.advance(minutes=1)
    assert stage.call("ListTasks")["taskArns"] == []
    assert len(stage.call("ListTasks", desiredStatus="STOPPED")["taskArns"]) == 1
