"""Executions over the API: start, describe, list, stop; names, inputs, quotas, time."""

import json

import pytest

from tasuki.services.machines import starting
from tasuki.services.machines.errors import (
    ExecutionAlreadyExists,
    ExecutionDoesNotExist,
    ExecutionLimitExceeded,
    InvalidArn,
    InvalidExecutionInput,
    InvalidName,
    InvalidToken,
    ResourceNotFound,
    StateMachineDoesNotExist,
    ValidationException,
)
from tasuki.services.machines.running import Run
from tasuki.store.store import Tx
from tests.services.machines.stubs import PASS, WAIT, Play, task


def test_an_execution_that_needs_nobody_ends_at_once_and_leaves_only_its_record(play: Play) -> None:
    execution = play.run(PASS, {"a": 1})
    described = play.describe(execution)
    assert described["status"] == "SUCCEEDED"
    assert described["input"] == '{"a": 1}'
    assert described["startDate"] == described["stopDate"] == play.house.now
    assert play.output(execution) == {"done": True}
    assert (play.rows("executions"), play.rows("history")) == (1, 1)
    assert play.left_over() == {}


def test_waiting_and_the_end_leave_no_rows(play: Play) -> None:
    execution = play.run(WAIT)
    assert play.left_over() == {"frames": 1, "timers": 1}
    play.house.advance(seconds=59)
    assert play.describe(execution)["status"] == "RUNNING"
    play.house.advance(seconds=1)
    assert play.output(execution) == {}
    assert play.left_over() == {}


def test_a_start_whose_namesake_is_forgotten_meanwhile_runs_again(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention on another node may take the row between the two statements."""
    arn = play.create(PASS)
    play.start(arn, name="n")
    namesake, turns = starting._namesake, []

    def forgotten_once(tx: Tx, run: Run, wish: starting.Start) -> tuple[str, int]:
        turns.append(1)
        if len(turns) == 1:
            tx.run("UPDATE executions SET name = 'another'")
        return namesake(tx, run, wish)

    monkeypatch.setattr(starting, "_namesake", forgotten_once)
    with pytest.raises(ExecutionAlreadyExists):  # what was staged in the first turn is undone
        play.start(arn, name="n")
    assert len(turns) == 2


def test_the_same_name_and_input_answer_the_running_execution(play: Play) -> None:
    arn = play.create(WAIT)
    first = play.call("StartExecution", stateMachineArn=arn, name="one", input='{"a":1}')
    play.house.advance(seconds=1)
    assert play.call("StartExecution", stateMachineArn=arn, name="one", input='{"a":1}') == first
    with pytest.raises(ExecutionAlreadyExists):
        play.call("StartExecution", stateMachineArn=arn, name="one", input='{"a":2}')
    play.house.advance(minutes=1)
    with pytest.raises(ExecutionAlreadyExists, match=f"Execution Already Exists: '{first['executionArn']}'"):
        play.call("StartExecution", stateMachineArn=arn, name="one", input='{"a":1}')
    assert play.rows("executions") == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Invalid execution input."),
        (
            "not some json",
            "Unrecognized token 'not': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')",
        ),
        ("{'not': 'json'", "Unexpected character (''' (code 39)): was expecting double-quote to start field name"),
    ],
)
def test_input_must_be_json(play: Play, text: str, reason: str) -> None:
    arn = play.create(PASS)
    with pytest.raises(InvalidExecutionInput) as refused:
        play.call("StartExecution", stateMachineArn=arn, input=text)
    assert refused.value.message == f"Invalid State Machine Execution Input: '{reason}'"


def test_input_is_bounded_in_bytes(play: Play) -> None:
    arn = play.create(PASS)
    with pytest.raises(InvalidExecutionInput):
        play.call("StartExecution", stateMachineArn=arn, input=json.dumps("日" * 90_000, ensure_ascii=False))


@pytest.mark.parametrize("text", ["2", '"text"', "null", "[]"])
def test_input_may_be_any_json(play: Play, text: str) -> None:
    arn = play.create({"StartAt": "S", "States": {"S": {"Type": "Succeed"}}})
    made = play.call("StartExecution", stateMachineArn=arn, input=text)
    assert play.describe(made["executionArn"])["output"] == text


def test_starting_what_is_not_there(play: Play) -> None:
    arn = play.create(PASS)
    with pytest.raises(StateMachineDoesNotExist):
        play.start(arn + "x")
    with pytest.raises(StateMachineDoesNotExist):
        play.start(arn.replace("000000000000", "111111111111"))
    with pytest.raises(InvalidName):
        play.start(arn, name="a:b")
    with pytest.raises(InvalidArn):
        play.start("nothing")


def test_the_trace_is_taken_or_made_and_kept(play: Play) -> None:
    arn = play.create(PASS)
    header = "Root=1-5759e988-bd862e3fe1be46a994272793"
    assert play.describe(play.start(arn, traceHeader=header))["traceHeader"] == header
    other = play.house.call(
        "stepfunctions", "StartExecution", {"stateMachineArn": arn, "traceHeader": header}, trace="Root=1-0-0"
    )
    assert play.describe(other["executionArn"])["traceHeader"] == "Root=1-0-0"
    made = play.describe(play.start(arn))["traceHeader"]
    root, version, rest = made.split("-")
    assert (root, version, len(rest)) == ("Root=1", f"{play.house.now // 1000:08x}", 24)


def test_a_machine_that_takes_too_long_times_out_without_error(play: Play) -> None:
    execution = play.run({**WAIT, "TimeoutSeconds": 10})
    assert play.left_over() == {"frames": 1, "timers": 2}
    play.house.advance(seconds=10)
    described = play.describe(execution)
    assert described["status"] == "TIMED_OUT"
    assert described["stopDate"] - described["startDate"] == 10_000
    assert "error" not in described
    assert described["redriveStatus"] == "REDRIVABLE"
    assert play.left_over() == {}


def test_stopping_wins_and_is_final(play: Play) -> None:
    execution = play.run(WAIT)
    stopped = play.call("StopExecution", executionArn=execution, error="E", cause="C")
    play.house.advance(minutes=5)
    assert play.call("StopExecution", executionArn=execution) == stopped
    described = play.describe(execution)
    assert (described["status"], described["error"], described["cause"]) == ("ABORTED", "E", "C")
    assert play.types(execution) == ["ExecutionStarted", "WaitStateEntered", "ExecutionAborted"]
    assert play.left_over() == {}


def test_stopping_without_words_leaves_none(play: Play) -> None:
    execution = play.run(WAIT)
    play.call("StopExecution", executionArn=execution)
    assert not {"error", "cause"} & play.describe(execution).keys()
    last = play.events(execution)[-1]
    assert (last["type"], last["previousEventId"], last["executionAbortedEventDetails"]) == ("ExecutionAborted", 0, {})


@pytest.mark.parametrize(
    "operation", ["DescribeExecution", "StopExecution", "GetExecutionHistory", "DescribeStateMachineForExecution"]
)
def test_executions_that_are_not_there(play: Play, operation: str) -> None:
    arn = "arn:aws:states:us-east-1:000000000000:execution:m:e"
    with pytest.raises(ExecutionDoesNotExist, match=f"Execution Does Not Exist: '{arn}'"):
        play.call(operation, executionArn=arn)
    with pytest.raises(InvalidArn):
        play.call(operation, executionArn="nothing")
    with pytest.raises(InvalidArn, match="Resource type not valid in this context: express"):
        play.call(operation, executionArn="arn:aws:states:us-east-1:000000000000:express:m:e:u")


def test_executions_are_listed_newest_first_and_by_status(play: Play) -> None:
    arn = play.create(
        {
            "StartAt": "C",
            "States": {
                "C": {
                    "Type": "Choice",
                    "Choices": [{"Variable": "$", "NumericEquals": 1, "Next": "W"}],
                    "Default": "S",
                },
                "W": {"Type": "Wait", "Seconds": 9, "End": True},
                "S": {"Type": "Succeed"},
            },
        }
    )
    made = [play.start(arn, number % 3) for number in range(9)]

    def listed(**more: object) -> list[str]:
        found: list[str] = []
        token: dict[str, str] = {}
        while True:
            page = play.call("ListExecutions", stateMachineArn=arn, maxResults=2, **more, **token)
            found += [one["executionArn"] for one in page["executions"]]
            if "nextToken" not in page:
                return found
            token = {"nextToken": page["nextToken"]}

    assert listed() == made[::-1]
    assert listed(statusFilter="RUNNING") == [made[7], made[4], made[1]]
    assert listed(statusFilter="SUCCEEDED") == [made[n] for n in (8, 6, 5, 3, 2, 0)]
    assert listed(statusFilter="FAILED") == []
    one = play.call("ListExecutions", stateMachineArn=arn, statusFilter="RUNNING")["executions"][0]
    assert "stopDate" not in one
    assert one["redriveCount"] == 0


def test_a_page_token_opens_its_own_listing_only(play: Play) -> None:
    arn = play.create(PASS)
    for _ in range(3):
        play.start(arn)
    token = play.call("ListExecutions", stateMachineArn=arn, maxResults=1)["nextToken"]
    with pytest.raises(InvalidToken):
        play.call("ListExecutions", stateMachineArn=arn, maxResults=1, nextToken=token, statusFilter="SUCCEEDED")
    other = play.create(PASS, "other")
    with pytest.raises(InvalidToken):
        play.call("ListExecutions", stateMachineArn=other, nextToken=token)


def test_listing_needs_a_machine(play: Play) -> None:
    with pytest.raises(ValidationException):
        play.call("ListExecutions")
    with pytest.raises(ResourceNotFound):
        play.call("ListExecutions", mapRunArn="arn:aws:states:us-east-1:000000000000:mapRun:m/l:u")
    with pytest.raises(StateMachineDoesNotExist):
        play.call("ListExecutions", stateMachineArn="arn:aws:states:us-east-1:000000000000:stateMachine:m")


def test_the_quota_of_open_executions() -> None:
    play = Play(open_executions=2)
    arn = play.create(WAIT)
    play.start(arn)
    first = play.start(arn)
    with pytest.raises(ExecutionLimitExceeded):
        play.start(arn)
    play.call("StopExecution", executionArn=first)
    play.start(arn)
    with pytest.raises(ExecutionLimitExceeded):
        play.start(arn)
    play.house.close()


def test_an_execution_has_a_byte_quota() -> None:
    play = Play(execution_bytes=1_000_000)
    loop = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Pass", "Parameters": {"x.$": "States.Format('{}', $.x)"}, "Next": "C"},
            "C": {"Type": "Choice", "Choices": [{"Variable": "$.x", "IsNull": True, "Next": "S"}], "Default": "A"},
            "S": {"Type": "Succeed"},
        },
    }
    execution = play.run(loop, {"x": "y" * 100_000})
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["error"]) == ("ABORTED", "States.Runtime")
    assert "quotas.execution_bytes" in described["cause"]
    play.house.close()


def test_a_text_may_hold_a_zero_character(play: Play) -> None:
    machine = {"StartAt": "F", "States": {"F": {"Type": "Fail", "ErrorPath": "$.e", "CausePath": "$.c"}}}
    execution = play.run(machine, {"e": "E\0\x1a0", "c": "a\0b\x1a\0"})
    described = play.describe(execution)
    assert (described["error"], described["cause"]) == ("E\0\x1a0", "a\0b\x1a\0")
    details = play.events(execution)[-1]["executionFailedEventDetails"]
    assert details == {"error": "E\0\x1a0", "cause": "a\0b\x1a\0"}
    asking = play.create(task("sqs:sendMessage.waitForTaskToken", {"MessageBody": {"t.$": "$$.Task.Token"}}), "asking")
    waiting = play.start(asking)
    play.call("SendTaskFailure", taskToken=play.sqs.calls[-1][0]["MessageBody"]["t"], error="\0", cause="\0")
    assert play.describe(waiting)["cause"] == "\0"
    parent = play.start(play.create(task("states:startExecution.sync", {"StateMachineArn": asking}), "parent"))
    play.house.drain()
    play.call("SendTaskFailure", taskToken=play.sqs.calls[-1][0]["MessageBody"]["t"], error="E", cause="\0")
    play.house.drain()
    assert json.loads(play.describe(parent)["cause"])["Cause"] == "\0"
