"""RedriveExecution over the API: what can be redriven, until when, and what is shown of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services.machines.errors import (
    ExecutionDoesNotExist,
    ExecutionLimitExceeded,
    ExecutionNotRedrivable,
    ThrottlingException,
    ValidationException,
)
from tests.services.machines.stubs import PASS, Play, task

FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E"}}}
JOB = task("ecs:runTask.sync", {"TaskDefinition": "job"})


def redrive(play: Play, execution: str, **more: Any) -> int:
    return int(play.call("RedriveExecution", executionArn=execution, **more)["redriveDate"])


def failed_job(play: Play) -> str:
    execution = play.run(JOB)
    play.finish_task(succeeded=False)
    assert play.describe(execution)["status"] == "FAILED"
    return execution


def test_a_failed_job_runs_again(play: Play) -> None:
    execution = failed_job(play)
    described = play.describe(execution)
    assert (described["redriveCount"], described["redriveStatus"]) == (0, "REDRIVABLE")
    assert "redriveDate" not in described
    assert play.left_over() == {}
    assert play.rows("remains") == 1
    play.house.advance(days=3)
    at = redrive(play, execution)
    described = play.describe(execution)
    assert (described["status"], described["redriveCount"], described["redriveDate"]) == ("RUNNING", 1, at)
    assert at == play.house.now
    assert "stopDate" not in described
    assert "error" not in described
    assert described["redriveStatusReason"] == "Execution is RUNNING and cannot be redriven"
    assert play.rows("remains") == 0
    assert len(play.ecs.calls) == 2
    assert len({caller.idempotency for _, caller in play.ecs.calls}) == 2
    play.finish_task(output={"TaskArn": "t-2"})
    assert play.output(execution) == {"TaskArn": "t-2"}
    assert play.types(execution)[5:] == [
        "TaskFailed",
        "ExecutionFailed",
        "ExecutionRedriven",
        "TaskScheduled",
        "TaskStarted",
        "TaskSubmitted",
        "TaskSucceeded",
        "TaskStateExited",
        "ExecutionSucceeded",
    ]
    [listed] = play.call("ListExecutions", stateMachineArn=described["stateMachineArn"])["executions"]
    assert (listed["redriveCount"], listed["redriveDate"], listed["status"]) == (1, at, "SUCCEEDED")
    assert play.left_over() == {}
    assert play.describe(execution)["redriveStatus"] == "NOT_REDRIVABLE"


def test_it_runs_on_the_definition_it_had(play: Play) -> None:
    execution = failed_job(play)
    arn = play.describe(execution)["stateMachineArn"]
    play.call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(PASS))
    redrive(play, execution)
    play.finish_task(output={"TaskArn": "old"})
    assert play.output(execution) == {"TaskArn": "old"}


def test_the_same_token_is_the_same_request(play: Play) -> None:
    execution = play.run(FAIL)
    at = redrive(play, execution, clientToken="one")
    play.house.advance(minutes=15)
    assert redrive(play, execution, clientToken="one") == at
    assert play.describe(execution)["redriveCount"] == 1
    play.house.advance(seconds=1)
    assert redrive(play, execution, clientToken="one") == play.house.now
    assert play.describe(execution)["redriveCount"] == 2


def test_the_last_ten_tokens_are_remembered(play: Play) -> None:
    execution = play.run(FAIL)
    dates = []
    for number in range(11):
        play.house.advance(seconds=1)
        dates.append(redrive(play, execution, clientToken=str(number)))
    assert redrive(play, execution, clientToken="1") == dates[1]
    assert redrive(play, execution, clientToken="0") == play.house.now
    assert play.describe(execution)["redriveCount"] == 12


def test_what_cannot_be_redriven(play: Play) -> None:
    done = play.run(PASS)
    with pytest.raises(ExecutionNotRedrivable, match=r"^Execution is SUCCEEDED and cannot be redriven$"):
        redrive(play, done)
    running = play.start(play.create(JOB, "job"))
    with pytest.raises(ExecutionNotRedrivable, match=r"^Execution is RUNNING and cannot be redriven$"):
        redrive(play, running)
    with pytest.raises(ExecutionDoesNotExist):
        redrive(play, running + "x")


def test_it_can_be_redriven_for_a_fortnight(play: Play) -> None:
    execution = play.run(FAIL)
    play.house.advance(days=14)
    assert play.describe(execution)["redriveStatus"] == "REDRIVABLE"
    redrive(play, execution)
    play.house.advance(days=14, ms=1)
    described = play.describe(execution)
    assert (described["status"], described["redriveStatus"]) == ("FAILED", "NOT_REDRIVABLE")
    assert described["redriveStatusReason"] == "Execution redrivable period exceeded"
    with pytest.raises(ExecutionNotRedrivable):
        redrive(play, execution)
    play.house.advance(days=2)
    assert play.rows("remains") == 0


def test_an_execution_of_last_year_is_too_old(play: Play) -> None:
    machine = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 366 * 86_400, "End": True}}}
    execution = play.run(machine)
    play.house.advance(days=365, seconds=1)
    play.call("StopExecution", executionArn=execution)
    assert play.describe(execution)["redriveStatusReason"] == "Execution has exceeded the max execution time"


def test_a_deleted_machine_redrives_nothing(play: Play) -> None:
    execution = play.run(FAIL)
    play.call("DeleteStateMachine", stateMachineArn=play.describe(execution)["stateMachineArn"])
    assert play.describe(execution)["redriveStatusReason"] == "State machine is in DELETING status"
    with pytest.raises(ExecutionNotRedrivable):
        redrive(play, execution)


def test_a_full_history_cannot_go_on(play: Play) -> None:
    rule = {"Variable": "$.done", "IsPresent": True, "Next": "S"}
    states = {
        "A": {"Type": "Pass", "Next": "C"},
        "C": {"Type": "Choice", "Choices": [rule], "Default": "A"},
        "S": {"Type": "Succeed"},
    }
    execution = play.run({"StartAt": "A", "States": states})
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", "States.Runtime")
    assert described["redriveStatusReason"] == "Execution history event limit exceeded"


def test_what_ended_before_remains_were_kept(play: Play) -> None:
    execution = play.run(FAIL)
    play.house.unit(lambda tx: tx.run("DELETE FROM remains"))
    described = play.describe(execution)
    assert described["redriveStatusReason"] == "Execution was started before the launch of RedriveExecution"


def test_a_redriven_execution_can_time_out_and_be_stopped(play: Play) -> None:
    execution = play.run({**JOB, "TimeoutSeconds": 60})
    play.house.advance(seconds=60)
    assert play.describe(execution)["status"] == "TIMED_OUT"
    redrive(play, execution)
    play.house.advance(seconds=59)
    assert play.describe(execution)["status"] == "RUNNING"
    play.house.advance(seconds=1)
    assert play.describe(execution)["status"] == "TIMED_OUT"
    redrive(play, execution)
    play.call("StopExecution", executionArn=execution, error="Enough")
    described = play.describe(execution)
    assert (described["status"], described["error"], described["redriveCount"]) == ("ABORTED", "Enough", 2)
    assert [handle for handle, _ in play.ecs.cancelled] == ["t-1", "t-2", "t-3"]


def test_a_wide_map_redriven_in_many_units(play: Play) -> None:
    block = task("sqs:sendMessage", {"MessageBody.$": "States.Format('{}', $)", "QueueUrl": "q"})
    wide = {"Type": "Map", "ItemProcessor": block, "MaxConcurrency": 1, "End": True}
    machine = {"StartAt": "M", "States": {"M": wide}}
    execution = play.start(play.create(machine), list(range(300)))

    class Full(ExecutionLimitExceeded):
        code = "OverLimit"

    while len(play.sqs.calls) < 200:
        [poll, *_] = play.house.rooms["machines"].polls
        play.house.unit(poll.look)
        play.house.unit(poll.run)
    play.sqs.refusal = Full("no more")
    play.house.drain()
    assert play.describe(execution)["status"] == "FAILED"
    sent = len(play.sqs.calls) - 1
    play.sqs.refusal = None
    redrive(play, execution)
    play.house.drain()
    assert len(play.output(execution)) == 300
    bodies = [int(parameters["MessageBody"]) for parameters, _ in play.sqs.calls]
    assert bodies == [*range(sent + 1), *range(sent, 300)], "only the one that failed was sent twice"


def test_a_machine_may_redrive(play: Play) -> None:
    execution = play.run(FAIL)
    redriver = play.create(task("aws-sdk:sfn:redriveExecution", {"ExecutionArn": execution}), "redriver")
    play.start(redriver)
    play.house.drain()
    assert play.describe(execution)["redriveCount"] == 1
    assert play.types(execution)[-3:] == ["ExecutionRedriven", "FailStateEntered", "ExecutionFailed"]


def test_listing_by_what_was_redriven(play: Play) -> None:
    arn = play.create(FAIL)
    first, second = play.start(arn), play.start(arn)
    redrive(play, first)

    def listed(**more: Any) -> list[str]:
        return [one["executionArn"] for one in play.call("ListExecutions", stateMachineArn=arn, **more)["executions"]]

    assert listed(redriveFilter="REDRIVEN") == [first]
    assert listed(redriveFilter="NOT_REDRIVEN") == [second]
    assert listed(redriveFilter="REDRIVEN", statusFilter="SUCCEEDED") == []
    with pytest.raises(ValidationException):
        listed(statusFilter="PENDING_REDRIVE")
    with pytest.raises(ValidationException):
        listed(mapRunArn="arn:aws:states:us-east-1:000000000000:mapRun:m/l:1")


def test_forgotten_executions_leave_nothing(play: Play) -> None:
    execution = play.run(FAIL)
    redrive(play, execution, clientToken="t")
    play.start(play.create(PASS, "last"))  # the newest is kept
    play.house.advance(days=95)
    assert play.rows("redrive_tokens") == 0
    with pytest.raises(ExecutionDoesNotExist):
        play.describe(execution)


@pytest.fixture
def throttled() -> Iterator[Play]:
    play = Play(open_executions=2, start_executions_per_second=1, start_executions_burst=2)
    yield play
    play.house.close()


def test_quotas_hold_for_redrives_and_starts(throttled: Play) -> None:
    failed = throttled.run(FAIL)
    job = throttled.create(JOB, "job")
    throttled.start(job)
    with pytest.raises(ThrottlingException, match="Rate exceeded"):
        throttled.start(job)
    throttled.house.advance(seconds=1)
    throttled.start(job)
    with pytest.raises(ExecutionLimitExceeded):
        redrive(throttled, failed)
