"""Executions that start executions: `states:startExecution` with all its patterns."""

import json
from typing import Any

import pytest

from tests.services.machines.stubs import PASS, WAIT, Play, task

FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "C"}}}


def parent(play: Play, pattern: str, child: dict[str, Any], **parameters: Any) -> str:
    arn = play.create(child, "child")
    return play.run(task(f"states:startExecution{pattern}", {"StateMachineArn": arn, **parameters}))


def test_starting_does_not_wait(play: Play) -> None:
    execution = parent(play, "", WAIT, Input={"a": 1})
    output = play.output(execution)
    child = output["ExecutionArn"]
    assert output["StartDate"] == play.house.now
    assert output["SdkHttpMetadata"]["HttpStatusCode"] == 200
    play.house.drain()
    assert play.describe(child)["status"] == "RUNNING"
    assert play.describe(child)["input"] == '{"a":1}'
    assert play.describe(child)["traceHeader"] == play.describe(execution)["traceHeader"]


@pytest.mark.parametrize(
    ("pattern", "given", "result"), [(".sync", '{"x":1}', '{"done":true}'), (".sync:2", {"x": 1}, {"done": True})]
)
def test_sync_answers_the_childs_description(play: Play, pattern: str, given: Any, result: Any) -> None:
    execution = parent(play, pattern, PASS, Input={"x": 1}, Name="kid")
    play.house.drain()
    now = play.house.now
    assert play.output(execution) == {
        "ExecutionArn": "arn:aws:states:us-east-1:000000000000:execution:child:kid",
        "Input": given,
        "InputDetails": {"Included": True},
        "Name": "kid",
        "Output": result,
        "OutputDetails": {"Included": True},
        "StartDate": now,
        "StateMachineArn": "arn:aws:states:us-east-1:000000000000:stateMachine:child",
        "Status": "SUCCEEDED",
        "StopDate": now,
    }
    assert play.left_over() == {}


@pytest.mark.parametrize("pattern", [".sync", ".sync:2"])
def test_a_child_that_fails_is_a_failed_task(play: Play, pattern: str) -> None:
    execution = parent(play, pattern, FAIL, Input=None)
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", "States.TaskFailed")
    cause = json.loads(described["cause"])
    assert (cause["Status"], cause["Error"], cause["Cause"]) == ("FAILED", "E", "C")
    assert cause["Input"] == ({} if pattern == ".sync:2" else "{}")
    assert list(cause) == sorted(cause)


def test_a_child_is_stopped_with_its_parent(play: Play) -> None:
    execution = parent(play, ".sync", WAIT, Name="kid")
    play.house.drain()
    play.call("StopExecution", executionArn=execution)
    play.house.drain()
    assert play.describe("arn:aws:states:us-east-1:000000000000:execution:child:kid")["status"] == "ABORTED"
    assert play.left_over() == {}


def test_a_child_that_was_never_stepped_is_stopped_too(play: Play) -> None:
    execution = parent(play, ".sync", WAIT, Name="kid")
    play.call("StopExecution", executionArn=execution)
    play.house.drain()
    assert play.describe("arn:aws:states:us-east-1:000000000000:execution:child:kid")["status"] == "ABORTED"


def test_refusals_have_names_of_their_own(play: Play) -> None:
    child = play.create(PASS, "child")
    play.start(child, name="taken")
    wishes: dict[str, dict[str, object]] = {
        "StepFunctions.ExecutionAlreadyExistsException": {"StateMachineArn": child, "Name": "taken"},
        "StepFunctions.StateMachineDoesNotExistException": {"StateMachineArn": child + "x"},
        "StepFunctions.InvalidArnException": {"StateMachineArn": "nothing"},
        "StepFunctions.InvalidExecutionInputException": {"StateMachineArn": child, "Input": "{"},
        "StepFunctions.ValidationException": {"StateMachineArn": None},
    }
    for number, (error, parameters) in enumerate(wishes.items()):
        machine = play.create(task("states:startExecution", parameters), f"parent{number}")
        described = play.describe(play.start(machine))
        assert described["error"] == error
        assert "(Service: AWSStepFunctions; Status Code: 400; Error Code: " in described["cause"]


def test_machines_may_call_themselves_without_end_of_a_unit(play: Play) -> None:
    arn = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
    machine = task(
        "states:startExecution.sync:2", {"StateMachineArn": arn, "Input": {"n.$": "States.MathAdd($.n, -1)"}}
    )
    machine["StartAt"] = "C"
    machine["States"]["C"] = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.n", "NumericEquals": 0, "Next": "S"}],
        "Default": "T",
    }
    machine["States"]["S"] = {"Type": "Succeed"}
    execution = play.run(machine, {"n": 20})
    play.house.drain()
    assert play.describe(execution)["status"] == "SUCCEEDED"
    assert play.rows("executions") == 21
    assert play.left_over() == {}
