"""Redrive of Map Runs: the same run goes on, with what did not succeed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasuki.services.machines.errors import ExecutionLimitExceeded, ExecutionNotRedrivable
from tests.services.machines.stubs import Play, task
from tests.services.machines.test_map_runs import PASS, WAIT, children, left_over, machine, map_runs
from tests.services.machines.test_redrive import redrive
from tests.services.machines.test_restart import Node

SEND = task("sqs:sendMessage", {"MessageBody.$": "States.Format('{}', $)", "QueueUrl": "q"})
JOB = task("ecs:runTask.sync", {"TaskDefinition": "job"})
BAD = {
    "StartAt": "C",
    "States": {
        "C": {"Type": "Choice", "Choices": [{"Variable": "$", "NumericEquals": 3, "Next": "F"}], "Default": "S"},
        "F": {"Type": "Fail", "Error": "Three"},
        "S": {"Type": "Succeed"},
    },
}


class Full(ExecutionLimitExceeded):
    code = "OverLimit"


def counts(play: Play, execution: str, of: str = "executionCounts") -> dict[str, int]:
    """Answer what is not 0 among the counts of the only Map Run."""
    [run] = map_runs(play, execution)
    return {name: count for name, count in run[of].items() if count and name != "resultsWritten"}


def jobs(play: Play, items: int = 4, kind: str = "STANDARD", **fields: Any) -> str:
    """Start a Map Run of jobs; all of them run."""
    execution = play.run(machine(JOB, kind, **fields), list(range(items)))
    play.house.drain()
    return execution


def test_only_what_failed_runs_again(play: Play) -> None:
    execution = jobs(play)
    for call in range(3):
        play.finish_task(call, succeeded=call != 1, output={"TaskArn": f"first-{call}"})
    assert counts(play, execution) == {"succeeded": 1, "failed": 1, "aborted": 2, "total": 4}
    [failed] = map_runs(play, execution)
    assert (failed["status"], failed["redriveCount"]) == ("FAILED", 0)
    assert left_over(play) == {}
    play.house.advance(hours=1)
    at = redrive(play, execution)
    play.house.drain()
    [run] = map_runs(play, execution)
    assert run["mapRunArn"] == failed["mapRunArn"]
    assert (run["status"], run["redriveCount"], run["redriveDate"]) == ("RUNNING", 1, at)
    assert "stopDate" not in run
    assert counts(play, execution) == {"succeeded": 1, "running": 3, "total": 4}
    assert len(play.ecs.calls) == 4 + 3
    assert len({caller.idempotency for _, caller in play.ecs.calls}) == 7
    for call in range(4, 7):
        play.finish_task(call, output={"TaskArn": f"second-{call}"})
    assert [one["TaskArn"] for one in play.output(execution)] == ["first-0", "second-4", "second-5", "second-6"]
    assert play.types(execution)[-8:] == [
        "MapStateFailed",
        "ExecutionFailed",
        "ExecutionRedriven",
        "MapRunRedriven",
        "MapRunSucceeded",
        "MapStateSucceeded",
        "MapStateExited",
        "ExecutionSucceeded",
    ]
    said = next(one for one in play.events(execution) if one["type"] == "MapRunRedriven")
    assert said["mapRunRedrivenEventDetails"] == {"mapRunArn": run["mapRunArn"], "redriveCount": 1}
    assert left_over(play) == {}
    assert (play.rows("remains"), play.rows("map_items")) == (0, 0)


def test_children_have_a_history_of_their_redrive(play: Play) -> None:
    execution = jobs(play, 2)
    play.finish_task(0)
    play.finish_task(1, succeeded=False)
    [run] = map_runs(play, execution)
    lost, done = children(play, run)
    assert play.describe(lost["executionArn"])["redriveStatus"] == "REDRIVABLE_BY_MAP_RUN"
    assert play.describe(done["executionArn"])["redriveStatus"] == "NOT_REDRIVABLE"
    with pytest.raises(ExecutionNotRedrivable, match="Map Run"):
        redrive(play, lost["executionArn"])
    at = redrive(play, execution)
    play.house.drain()
    [again] = children(play, run, redriveFilter="REDRIVEN")
    assert (again["executionArn"], again["redriveCount"], again["redriveDate"]) == (lost["executionArn"], 1, at)
    assert again["status"] == "RUNNING"
    assert [one["name"] for one in children(play, run, redriveFilter="NOT_REDRIVEN")] == [done["name"]]
    play.finish_task(2)
    assert play.types(lost["executionArn"])[-8:] == [
        "ExecutionFailed",
        "ExecutionRedriven",
        "TaskScheduled",
        "TaskStarted",
        "TaskSubmitted",
        "TaskSucceeded",
        "TaskStateExited",
        "ExecutionSucceeded",
    ]
    assert (play.describe(lost["executionArn"])["redriveCount"], len(play.output(execution))) == (1, 2)


def test_children_wait_for_their_redrive(play: Play) -> None:
    execution = jobs(play, 3, MaxConcurrency=1, ToleratedFailureCount=1)
    play.finish_task(0, succeeded=False)
    play.finish_task(1, succeeded=False)
    redrive(play, execution)
    play.house.drain()
    [run] = map_runs(play, execution)
    assert counts(play, execution) == {"pendingRedrive": 1, "running": 1, "pending": 1, "total": 3}
    assert counts(play, execution, "itemCounts") == counts(play, execution)
    [waiting] = children(play, run, statusFilter="PENDING_REDRIVE")
    assert play.describe(waiting["executionArn"])["status"] == "PENDING_REDRIVE"
    for call in (2, 3, 4):
        play.finish_task(call)
    assert len(play.output(execution)) == 3


def test_a_second_redrive_goes_on_with_the_same_run(play: Play) -> None:
    execution = jobs(play, 3)
    play.finish_task(0)
    play.finish_task(1, succeeded=False)
    redrive(play, execution)
    play.house.drain()
    play.finish_task(3)
    play.finish_task(4, succeeded=False)
    assert play.describe(execution)["status"] == "FAILED"
    redrive(play, execution)
    play.house.drain()
    [run] = map_runs(play, execution)
    assert (run["redriveCount"], len(play.ecs.calls)) == (2, 6)
    play.finish_task(5)
    assert len(play.output(execution)) == 3
    assert [child["redriveCount"] for child in children(play, run)] == [2, 1, 0]
    assert play.types(execution).count("MapRunStarted") == 1


def test_what_is_tolerated_is_counted_anew(play: Play) -> None:
    execution = jobs(play, 4, ToleratedFailureCount=1)
    play.finish_task(0, succeeded=False)
    play.finish_task(1, succeeded=False)
    assert counts(play, execution) == {"failed": 2, "aborted": 2, "total": 4}
    redrive(play, execution)
    play.house.drain()
    play.finish_task(4, succeeded=False)
    for call in (5, 6, 7):
        play.finish_task(call)
    assert play.describe(execution)["status"] == "SUCCEEDED"
    assert counts(play, execution) == {"failed": 1, "succeeded": 3, "total": 4}
    assert map_runs(play, execution)[0]["status"] == "SUCCEEDED"


def test_a_run_that_is_stopped_while_children_wait_can_be_redriven(play: Play) -> None:
    execution = jobs(play, 5, MaxConcurrency=1, ToleratedFailureCount=1)
    play.finish_task(0, succeeded=False)
    play.finish_task(1, succeeded=False)
    redrive(play, execution)
    play.house.drain()
    assert counts(play, execution)["pendingRedrive"] == 1
    play.call("StopExecution", executionArn=execution)
    play.house.drain()
    assert counts(play, execution) == {"failed": 1, "aborted": 1, "pending": 3, "total": 5}
    assert map_runs(play, execution)[0]["status"] == "ABORTED"
    redrive(play, execution)
    play.house.drain()
    for call in range(3, 8):
        play.finish_task(call)
    assert len(play.output(execution)) == 5
    assert left_over(play) == {}


def test_a_redrive_waits_until_the_run_has_stopped(play: Play) -> None:
    execution = play.run(machine(WAIT), list(range(120)))
    play.house.drain()
    play.call("StopExecution", executionArn=execution)
    ready, maps, _ = play.house.rooms["machines"].polls
    play.house.unit(maps.run)
    assert counts(play, execution) == {"running": 120, "total": 120}, "they are told, and have not ended yet"
    play.house.look(ready.look)
    for _ in range(30):
        play.house.unit(ready.run)
    assert counts(play, execution) == {"running": 90, "aborted": 30, "total": 120}, "and these have"
    redrive(play, execution)
    play.house.unit(maps.run)
    assert map_runs(play, execution)[0]["status"] == "RUNNING"
    assert counts(play, execution) == {"running": 90, "aborted": 30, "total": 120}
    play.house.drain()
    assert counts(play, execution) == {"running": 120, "total": 120}
    play.house.advance(seconds=61)
    assert len(play.output(execution)) == 120
    assert left_over(play) == {}


def test_batches_that_failed_run_again_whole(play: Play) -> None:
    play.sqs.refusal = Full("no more")
    block = task("sqs:sendMessage", {"MessageBody.$": "States.JsonToString($.Items)", "QueueUrl": "q"})
    execution = play.run(machine(block, ItemBatcher={"MaxItemsPerBatch": 2}), [1, 2, 3, 4, 5])
    play.house.drain()
    assert counts(play, execution, "itemCounts") == {"failed": 2, "pending": 3, "total": 5}
    play.sqs.refusal = None
    redrive(play, execution)
    play.house.drain()
    assert [json.loads(parameters["MessageBody"]) for parameters, _ in play.sqs.calls[1:]] == [[1, 2], [3, 4], [5]]
    assert counts(play, execution, "itemCounts") == {"succeeded": 5, "total": 5}
    assert len(play.output(execution)) == 3


def test_express_children_start_over(play: Play) -> None:
    slow: dict[str, Any] = {"StartAt": "A", "States": {"A": {**SEND["States"]["T"], "ResultPath": None, "Next": "W"}}}
    slow["States"]["A"].pop("End")
    slow["States"]["W"] = {"Type": "Wait", "Seconds": 301, "End": True}
    execution = play.run(machine(slow, "EXPRESS"), [7])
    play.house.advance(seconds=300)
    [run] = map_runs(play, execution)
    [child] = children(play, run)
    assert child["status"] == "TIMED_OUT"
    assert play.describe(child["executionArn"])["redriveStatus"] == "REDRIVABLE_BY_MAP_RUN"
    redrive(play, execution)
    play.house.advance(seconds=299)
    assert len(play.sqs.calls) == 2
    assert len({caller.idempotency for _, caller in play.sqs.calls}) == 2
    [again] = children(play, run)
    assert (again["status"], again["redriveCount"]) == ("RUNNING", 1)
    assert "redriveDate" not in again
    play.house.advance(seconds=1)
    assert map_runs(play, execution)[0]["executionCounts"]["timedOut"] == 1
    assert play.describe(execution)["status"] == "FAILED"
    assert left_over(play) == {}


def test_what_cannot_be_redriven_stays_a_failure(play: Play) -> None:
    execution = play.run(machine(BAD, ToleratedFailureCount=0), [3, 1])
    play.house.drain()
    play.house.unit(lambda tx: tx.run("DELETE FROM remains WHERE execution <> (SELECT min(id) FROM executions)"))
    redrive(play, execution)
    play.house.drain()
    [run] = map_runs(play, execution)
    assert (run["status"], run["redriveCount"]) == ("FAILED", 1)
    assert counts(play, execution) == {"failed": 1, "failuresNotRedrivable": 1, "pending": 1, "total": 2}
    assert play.describe(children(play, run)[0]["executionArn"])["redriveStatus"] == "NOT_REDRIVABLE"


def test_a_run_whose_output_is_too_large_is_not_gone_on_with(play: Play) -> None:
    big = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": "x" * 100_000, "End": True}}}
    execution = play.run(machine(big), [1, 2, 3])
    play.house.drain()
    redrive(play, execution)
    play.house.drain()
    assert play.types(execution).count("MapRunStarted") == 2
    assert "MapRunRedriven" not in play.types(execution)


def test_a_run_that_could_not_read_is_not_gone_on_with(play: Play) -> None:
    reader: dict[str, Any] = {"Resource": "arn:aws:states:::s3:getObject", "Parameters": {"Bucket": "b", "Key": "k"}}
    reader["ReaderConfig"] = {"InputType": "JSON"}
    execution = play.run(machine(PASS, ItemReader=reader))
    play.house.drain()
    assert play.describe(execution)["status"] == "FAILED"
    redrive(play, execution)
    play.house.drain()
    assert play.types(execution).count("MapRunStarted") == 2


def test_a_run_can_be_redriven_a_thousand_times(play: Play) -> None:
    execution = play.run(machine(BAD), [3])
    play.house.drain()
    play.house.unit(lambda tx: tx.run("UPDATE map_runs SET redrives = 999"))
    for error in ("States.ExceedToleratedFailureThreshold", "States.Runtime"):
        redrive(play, execution)
        play.house.drain()
        assert play.describe(execution)["error"] == error
    redrive(play, execution)
    play.house.drain()
    assert play.types(execution).count("MapRunStarted") == 2


def test_map_runs_in_each_other_are_redriven(play: Play) -> None:
    play.sqs.refusal = Full("no more")
    inner = machine(SEND)["States"]["M"]
    block = {"StartAt": "I", "States": {"I": {**inner, "Label": "inner"}}}
    execution = play.run(machine(block), [[1, 2], [3]])
    play.house.drain()
    assert play.describe(execution)["status"] == "FAILED"
    play.sqs.refusal = None
    redrive(play, execution)
    play.house.drain()
    assert [len(one) for one in play.output(execution)] == [2, 1]
    [outer] = map_runs(play, execution)
    nested = [run for child in children(play, outer) for run in map_runs(play, child["executionArn"])]
    assert max(run["redriveCount"] for run in nested) == 1
    assert left_over(play) == {}


def test_a_redrive_goes_on_over_restarts(tmp_path: Path) -> None:
    node = Node(tmp_path / "tasuki.db")
    with node.up() as play:
        play.sqs.refusal = Full("no more")
        execution = play.run(machine(SEND, ToleratedFailureCount=99, MaxConcurrency=40), list(range(100)))
        play.house.drain()
        play.call("StopExecution", executionArn=execution)
        assert counts(play, execution) == {"failed": 100, "total": 100}
    with node.up() as play:
        redrive(play, execution)
    for _ in range(200):
        with node.up() as play:
            if play.describe(execution)["status"] != "RUNNING":
                break
            for poll in play.house.rooms["machines"].polls:
                play.house.unit(poll.look)
                play.house.unit(poll.run)
    with node.up() as play:
        assert len(play.output(execution)) == 100
        assert len(play.sqs.calls) == 200
        assert map_runs(play, execution)[0]["redriveCount"] == 1
        assert left_over(play) == {}
