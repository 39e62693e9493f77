"""Map Runs as clients see them, over restarts, and what labelled ARNs are good for."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tasuki.values.errors import DomainError
from tests.services.machines.stubs import Play
from tests.services.machines.test_map_runs import (
    FAIL_ODD,
    PASS,
    WAIT,
    children,
    distributed,
    left_over,
    machine,
    map_runs,
    odd,
)
from tests.services.machines.test_restart import Node

RUN = "arn:aws:states:us-east-1:000000000000:mapRun:m/L:00000000-0000-4000-8000-000000000000"
LABELLED = "arn:aws:states:us-east-1:000000000000:stateMachine:m/L"


def refusal(call: Callable[[], Any]) -> tuple[str, str]:
    """Answer the code and message of a refusal."""
    with pytest.raises(DomainError) as no:
        call()
    return no.value.code, no.value.message


def test_a_map_run_in_progress_is_described(play: Play) -> None:
    state = machine(WAIT, MaxConcurrency=2, ToleratedFailureCount=1, ToleratedFailurePercentage=30)
    execution = play.run(state, [1, 2, 3])
    play.house.drain()
    [run] = map_runs(play, execution)
    assert run["status"] == "RUNNING"
    assert "stopDate" not in run
    limits = (run["maxConcurrency"], run["toleratedFailureCount"], run["toleratedFailurePercentage"])
    assert limits == (2, 1, 30.0)
    assert run["itemCounts"] == {
        "pending": 1,
        "running": 2,
        "succeeded": 0,
        "failed": 0,
        "timedOut": 0,
        "aborted": 0,
        "total": 3,
        "resultsWritten": 0,
        "failuresNotRedrivable": 0,
        "pendingRedrive": 0,
    }
    assert run["executionCounts"] == run["itemCounts"]


def test_limits_of_a_map_run_in_progress_are_changed(play: Play) -> None:
    execution = play.run(machine(WAIT, MaxConcurrency=1), [1, 2, 3])
    play.house.drain()
    [run] = map_runs(play, execution)
    play.call("UpdateMapRun", mapRunArn=run["mapRunArn"], maxConcurrency=3, toleratedFailureCount=2)
    play.house.drain()
    [run] = map_runs(play, execution)
    assert (run["executionCounts"]["running"], run["maxConcurrency"], run["toleratedFailureCount"]) == (3, 3, 2)
    for child in children(play, run)[:2]:
        play.call("StopExecution", executionArn=child["executionArn"])
    play.house.advance(seconds=61)
    assert play.describe(execution)["status"] == "SUCCEEDED"
    late = {"mapRunArn": run["mapRunArn"], "maxConcurrency": 1}
    assert refusal(lambda: play.call("UpdateMapRun", **late))[0] == "ValidationException"


def test_an_update_must_change_something(play: Play) -> None:
    execution = play.run(machine(WAIT), [1])
    play.house.drain()
    [run] = map_runs(play, execution)
    assert refusal(lambda: play.call("UpdateMapRun", mapRunArn=run["mapRunArn"]))[0] == "ValidationException"


def test_map_runs_are_listed_in_pages(play: Play) -> None:
    branches = []
    for name in ("A", "B", "C"):
        block = {"StartAt": f"P{name}", "States": {f"P{name}": {"Type": "Pass", "End": True}}}
        branches.append({"StartAt": name, "States": {name: distributed(block, Label=name)}})
    state = {"Type": "Parallel", "Branches": branches, "End": True}
    execution = play.run({"StartAt": "S", "States": {"S": state}}, [1])
    play.house.drain()
    first = play.call("ListMapRuns", executionArn=execution, maxResults=2)
    second = play.call("ListMapRuns", executionArn=execution, maxResults=2, nextToken=first["nextToken"])
    labels = [run["stateMachineArn"].rpartition("/")[2] for run in (*first["mapRuns"], *second["mapRuns"])]
    assert sorted(labels) == ["A", "B", "C"]
    assert "nextToken" not in second


def test_children_are_listed_by_status_in_pages(play: Play) -> None:
    execution = play.run(machine(FAIL_ODD, ToleratedFailurePercentage=100), odd(True, False, True, False, True))
    play.house.drain()
    [run] = map_runs(play, execution)
    found: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while True:
        page = play.call("ListExecutions", mapRunArn=run["mapRunArn"], statusFilter="FAILED", maxResults=2, **more)
        found += page["executions"]
        if "nextToken" not in page:
            break
        more = {"nextToken": page["nextToken"]}
    assert [one["status"] for one in found] == ["FAILED"] * 3
    assert {(one["itemCount"], one["mapRunArn"], one["stateMachineArn"]) for one in found} == {
        (1, run["mapRunArn"], LABELLED)
    }


def test_a_child_is_described_with_its_map_run(play: Play) -> None:
    execution = play.run(machine(FAIL_ODD), odd(True))
    play.house.drain()
    [run] = map_runs(play, execution)
    [child] = children(play, run)
    described = play.describe(child["executionArn"])
    assert (described["mapRunArn"], described["stateMachineArn"]) == (run["mapRunArn"], LABELLED)
    assert described["redriveStatus"] == "REDRIVABLE_BY_MAP_RUN"
    of = play.call("DescribeStateMachineForExecution", executionArn=child["executionArn"])
    assert (of["mapRunArn"], of["label"]) == (run["mapRunArn"], "L")
    assert "mapRunArn" not in play.describe(execution)


def test_the_machine_of_a_label_is_shown_to_nobody(play: Play) -> None:
    execution = play.run(machine(PASS), [1])
    play.house.drain()
    assert [one["name"] for one in play.call("ListStateMachines")["stateMachines"]] == ["m"]
    arn = execution.replace(":execution:", ":stateMachine:").rpartition(":")[0]
    assert [one["executionArn"] for one in play.call("ListExecutions", stateMachineArn=arn)["executions"]] == [
        execution
    ]


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("DescribeStateMachine", {}),
        ("DeleteStateMachine", {}),
        ("UpdateStateMachine", {"roleArn": "r"}),
        ("StartExecution", {"input": "{}"}),
        ("ListExecutions", {}),
    ],
)
def test_labelled_arns_are_refused(play: Play, operation: str, given: dict[str, str]) -> None:
    play.run(machine(PASS), [1])
    play.house.drain()
    code, message = refusal(lambda: play.call(operation, stateMachineArn=LABELLED, **given))
    assert code == "ValidationException"
    assert LABELLED in message


def test_what_is_no_map_run(play: Play) -> None:
    assert refusal(lambda: play.call("DescribeMapRun", mapRunArn=RUN))[0] == "ResourceNotFound"
    assert refusal(lambda: play.call("ListExecutions", mapRunArn=RUN))[0] == "ResourceNotFound"
    for arn in (LABELLED, "nonsense", RUN.replace("m/L", "m")):
        assert refusal(partial(play.call, "DescribeMapRun", mapRunArn=arn))[0] == "InvalidArn"
    both = {"mapRunArn": RUN, "stateMachineArn": LABELLED}
    assert refusal(lambda: play.call("ListExecutions", **both))[0] == "ValidationException"
    gone = "arn:aws:states:us-east-1:000000000000:execution:m:e"
    assert refusal(lambda: play.call("ListMapRuns", executionArn=gone))[0] == "ExecutionDoesNotExist"


def test_a_map_run_goes_on_over_restarts(tmp_path: Path) -> None:
    """Between any two units the node may be gone (P2): every item is worked on once."""
    node = Node(tmp_path / "tasuki.db")
    with node.up() as play:
        execution = play.run(machine(WAIT, MaxConcurrency=2), [1, 2, 3, 4])
    for _ in range(5):
        with node.up() as play:
            play.house.advance(seconds=31)
    with node.up() as play:
        assert play.output(execution) == [1, 2, 3, 4]
        [run] = map_runs(play, execution)
        assert run["executionCounts"]["total"] == 4
        assert left_over(play) == {}
