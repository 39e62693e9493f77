"""Distributed Maps in a whole house: children, what is tolerated, ends of every kind."""

import json
from typing import Any

import pytest

from tests.services.machines.stubs import Play

FAIL_ODD = {
    "StartAt": "C",
    "States": {
        "C": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.odd", "BooleanEquals": True, "Next": "F"}],
            "Default": "P",
        },
        "F": {"Type": "Fail", "Error": "Odd", "Cause": "not even"},
        "P": {"Type": "Pass", "End": True},
    },
}
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
WAIT = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}}
THRESHOLD = ("States.ExceedToleratedFailureThreshold", "The specified tolerated failure threshold was exceeded")


def distributed(block: dict[str, Any], kind: str = "STANDARD", **fields: Any) -> dict[str, Any]:
    """A state: a distributed Map that ends its block unless it has a Next."""
    processor = {**block, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": kind}}
    made = {"Type": "Map", "Label": "L", "ItemProcessor": processor, **fields}
    return made if "Next" in made else {**made, "End": True}


def machine(block: dict[str, Any], kind: str = "STANDARD", **fields: Any) -> dict[str, Any]:
    return {"StartAt": "M", "States": {"M": distributed(block, kind, **fields)}}


def map_runs(play: Play, execution: str) -> list[dict[str, Any]]:
    """Answer the Map Runs of an execution, the oldest first."""
    listed = play.call("ListMapRuns", executionArn=execution)["mapRuns"]
    return [play.call("DescribeMapRun", mapRunArn=one["mapRunArn"]) for one in reversed(listed)]


def children(play: Play, run: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return list(play.call("ListExecutions", mapRunArn=run["mapRunArn"], **more)["executions"])


def left_over(play: Play) -> dict[str, int]:
    """Answer what is left in the tables that only something open has rows in."""
    counts = {**play.left_over(), "map_ready": play.rows("map_ready")}
    return {table: count for table, count in counts.items() if count}


def odd(*flags: bool) -> list[dict[str, bool]]:
    return [{"odd": flag} for flag in flags]


def test_every_item_is_an_execution_of_its_own(play: Play) -> None:
    execution = play.run(machine(PASS), ["a", "b", "c"])
    play.house.drain()
    assert play.output(execution) == ["a", "b", "c"]
    [run] = map_runs(play, execution)
    assert run["mapRunArn"].startswith("arn:aws:states:us-east-1:000000000000:mapRun:m/L:")
    assert (run["status"], run["executionArn"]) == ("SUCCEEDED", execution)
    newest, *_, first = children(play, run)
    assert newest["executionArn"] == f"arn:aws:states:us-east-1:000000000000:execution:m/L:{newest['name']}"
    assert play.types(first["executionArn"]) == [
        "ExecutionStarted",
        "PassStateEntered",
        "PassStateExited",
        "ExecutionSucceeded",
    ]
    assert left_over(play) == {}
    assert play.rows("map_items") == 0


def test_an_empty_map_run_succeeds(play: Play) -> None:
    execution = play.run(machine(PASS), [])
    play.house.drain()
    assert play.output(execution) == []
    assert map_runs(play, execution)[0]["executionCounts"]["total"] == 0


def test_what_a_child_can_see(play: Play) -> None:
    block = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Parameters": {"c.$": "$$"}, "End": True}}}
    execution = play.run(
        machine(block, ItemsPath="$.l", ItemSelector={"v.$": "$$.Map.Item.Value", "all.$": "$.l"}), {"l": ["x", "y"]}
    )
    play.house.drain()
    second = play.output(execution)[1]["c"]
    assert second["Map"] == {"Item": {"Index": 1, "Value": "y"}}
    assert second["Execution"]["Input"] == {"v": "y", "all": ["x", "y"]}
    assert second["Execution"]["Id"] == children(play, map_runs(play, execution)[0])[0]["executionArn"]
    assert second["StateMachine"] == {"Id": "arn:aws:states:us-east-1:000000000000:stateMachine:m/L", "Name": "m/L"}


def test_a_failed_item_fails_the_map(play: Play) -> None:
    """PITFALLS PF-17."""
    execution = play.run(machine(FAIL_ODD), odd(False, True, False))
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["error"], described["cause"]) == ("FAILED", *THRESHOLD)
    assert play.types(execution)[-5:] == [
        "MapStateStarted",
        "MapRunStarted",
        "MapRunFailed",
        "MapStateFailed",
        "ExecutionFailed",
    ]
    counts = map_runs(play, execution)[0]["itemCounts"]
    assert (counts["succeeded"], counts["failed"], counts["pending"]) == (1, 1, 1)
    assert left_over(play) == {}


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"ToleratedFailureCount": 1}, "FAILED"),
        ({"ToleratedFailureCount": 2}, "SUCCEEDED"),
        ({"ToleratedFailurePercentage": 49}, "FAILED"),
        ({"ToleratedFailurePercentage": 50}, "SUCCEEDED"),
        ({"ToleratedFailureCount": 1, "ToleratedFailurePercentage": 50}, "FAILED"),
        ({"ToleratedFailureCount": 2, "ToleratedFailurePercentage": 40}, "FAILED"),
    ],
)
def test_some_failures_are_tolerated(play: Play, fields: dict[str, Any], status: str) -> None:
    execution = play.run(machine(FAIL_ODD, **fields), odd(True, False, True, False))
    play.house.drain()
    assert play.describe(execution)["status"] == status
    assert map_runs(play, execution)[0]["status"] == status


def test_a_tolerated_failure_is_in_the_output_with_all_that_is_known_of_it(play: Play) -> None:
    execution = play.run(machine(FAIL_ODD, ToleratedFailurePercentage=100), odd(True, False))
    play.house.drain()
    lost, fine = play.output(execution)
    assert fine == {"odd": False}
    assert (lost["Status"], lost["Error"], lost["Cause"], lost["Input"]) == (
        "FAILED",
        "Odd",
        "not even",
        '{"odd":true}',
    )


def test_a_map_that_is_entered_twice_has_two_map_runs(play: Play) -> None:
    """PITFALLS PF-18."""
    again = {"Type": "Choice", "Choices": [{"Variable": "$[0]", "NumericEquals": 1, "Next": "M"}], "Default": "E"}
    more = {
        "StartAt": "P",
        "States": {
            "P": {"Type": "Pass", "Parameters": {"n.$": "States.MathAdd($, 1)"}, "OutputPath": "$.n", "End": True}
        },
    }
    states = {"M": distributed(more, Next="C"), "C": again, "E": {"Type": "Succeed"}}
    execution = play.run({"StartAt": "M", "States": states}, [0])
    play.house.drain()
    assert play.output(execution) == [2]
    one, other = map_runs(play, execution)
    assert one["mapRunArn"] != other["mapRunArn"]


def test_the_older_names_of_fields_are_taken(play: Play) -> None:
    """PITFALLS PF-19."""
    iterator = {**PASS, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    state = {"Type": "Map", "Iterator": iterator, "Label": "old", "ToleratedFailurePercentage": 5, "End": True}
    execution = play.run({"StartAt": "M", "States": {"M": state}}, [1])
    play.house.drain()
    assert play.output(execution) == [1]


def test_thousands_of_items_do_not_touch_the_parents_history(play: Play) -> None:
    """PITFALLS PF-21: 13,000 items of three events each, in an execution of at most 25,000."""
    done = {"StartAt": "D", "States": {"D": {"Type": "Succeed"}}}
    execution = play.run(machine(done), [0] * 13_000)
    play.house.drain()
    assert play.output(execution) == [0] * 13_000
    assert len(play.events(execution)) == 8
    assert map_runs(play, execution)[0]["executionCounts"]["succeeded"] == 13_000
    assert left_over(play) == {}


def test_only_so_many_run_at_a_time(play: Play) -> None:
    execution = play.run(machine(WAIT, MaxConcurrency=2), [1, 2, 3, 4, 5])
    play.house.drain()
    counts = map_runs(play, execution)[0]["executionCounts"]
    assert (counts["running"], counts["pending"]) == (2, 3)
    play.house.advance(seconds=61)
    assert map_runs(play, execution)[0]["executionCounts"]["succeeded"] == 2
    play.house.advance(minutes=2)
    assert play.output(execution) == [1, 2, 3, 4, 5]


def test_the_house_bounds_what_is_open() -> None:
    play = Play(map_run_children=3)
    try:
        execution = play.run(machine(WAIT), list(range(5)))
        play.house.drain()
        assert map_runs(play, execution)[0]["executionCounts"]["running"] == 3
        play.house.advance(minutes=3)
        assert play.output(execution) == list(range(5))
    finally:
        play.house.close()


def test_a_stopped_parent_stops_its_children(play: Play) -> None:
    execution = play.run(machine(WAIT), [1, 2])
    play.house.drain()
    play.call("StopExecution", executionArn=execution, error="E", cause="because")
    play.house.drain()
    [run] = map_runs(play, execution)
    assert run["status"] == "ABORTED"
    assert {child["status"] for child in children(play, run)} == {"ABORTED"}
    assert play.types(execution)[-3:] == ["MapRunAborted", "MapStateAborted", "ExecutionAborted"]
    assert left_over(play) == {}


def test_a_parent_that_times_out_stops_its_children(play: Play) -> None:
    execution = play.run({**machine(WAIT), "TimeoutSeconds": 5}, [1, 2])
    play.house.advance(seconds=6)
    assert play.describe(execution)["status"] == "TIMED_OUT"
    [run] = map_runs(play, execution)
    assert (run["status"], run["executionCounts"]["aborted"]) == ("ABORTED", 2)
    assert left_over(play) == {}


def test_a_failing_branch_ends_a_map_run_beside_it(play: Play) -> None:
    fails = {"StartAt": "B", "States": {"B": {"Type": "Wait", "Seconds": 1, "Next": "F"}, "F": {"Type": "Fail"}}}
    beside = {"StartAt": "M", "States": {"M": distributed(WAIT)}}
    state = {"Type": "Parallel", "Branches": [fails, beside], "End": True}
    execution = play.run({"StartAt": "S", "States": {"S": state}}, [1, 2])
    play.house.advance(seconds=2)
    assert play.describe(execution)["status"] == "FAILED"
    assert map_runs(play, execution)[0]["status"] == "ABORTED"
    assert left_over(play) == {}


def test_children_stop_what_they_had_started(play: Play) -> None:
    task: dict[str, Any] = {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "End": True}
    task["Parameters"] = {"TaskDefinition": "t"}
    execution = play.run(machine({"StartAt": "T", "States": {"T": task}}), [1, 2])
    play.house.drain()
    assert len(play.ecs.calls) == 2
    play.call("StopExecution", executionArn=execution)
    play.house.drain()
    assert len(play.ecs.cancelled) == 2


def test_a_child_that_is_stopped_counts_as_failed(play: Play) -> None:
    execution = play.run(machine(WAIT), [1, 2])
    play.house.drain()
    play.call("StopExecution", executionArn=children(play, map_runs(play, execution)[0])[0]["executionArn"])
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", THRESHOLD[0])
    assert map_runs(play, execution)[0]["executionCounts"]["aborted"] == 2


def test_a_map_run_that_failed_is_tried_again_and_then_caught(play: Play) -> None:
    state = distributed(
        FAIL_ODD,
        Retry=[{"ErrorEquals": [THRESHOLD[0]], "IntervalSeconds": 1, "MaxAttempts": 1}],
        Catch=[{"ErrorEquals": ["States.ALL"], "Next": "E", "ResultPath": "$[1]"}],
    )
    # A catcher's ResultPath leads into the raw input, which is an array here.
    state["Catch"][0].pop("ResultPath")
    execution = play.run({"StartAt": "M", "States": {"M": state, "E": {"Type": "Succeed"}}}, odd(True))
    play.house.advance(seconds=2)
    assert play.output(execution) == {"Error": THRESHOLD[0], "Cause": THRESHOLD[1]}
    assert [run["status"] for run in map_runs(play, execution)] == ["FAILED", "FAILED"]
    assert play.types(execution).count("MapStateStarted") == 2


def test_results_that_are_too_large_fail_the_map(play: Play) -> None:
    big = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": "x" * 100_000, "End": True}}}
    execution = play.run(machine(big), [1, 2, 3])
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", "States.DataLimitExceeded")
    assert "MapRunFailed" in play.types(execution)


def test_an_item_that_cannot_be_selected_fails_the_map_run(play: Play) -> None:
    execution = play.run(machine(PASS, ItemSelector={"v.$": "$$.Map.Item.Value.there"}), [{"there": 1}, {}])
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", "States.Runtime")
    assert described["cause"].startswith(
        "An error occurred while executing the state 'M' (entered at the event id #2). The JSONPath "
    )
    assert map_runs(play, execution)[0]["status"] == "FAILED"


def test_express_children_have_five_minutes_and_no_history(play: Play) -> None:
    slow = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 301, "End": True}}}
    execution = play.run(machine(slow, "EXPRESS"), [1])
    play.house.drain()
    [child] = children(play, map_runs(play, execution)[0])
    with pytest.raises(Exception, match="Execution Does Not Exist"):
        play.events(child["executionArn"])
    play.house.advance(seconds=300)
    assert play.describe(child["executionArn"])["status"] == "TIMED_OUT"
    assert play.describe(execution)["error"] == THRESHOLD[0]
    assert map_runs(play, execution)[0]["executionCounts"]["timedOut"] == 1


def test_a_deleted_machine_takes_its_map_runs_with_it(play: Play) -> None:
    arn = play.create(machine(WAIT, MaxConcurrency=1))
    execution = play.start(arn, [1, 2])
    play.house.drain()
    play.call("DeleteStateMachine", stateMachineArn=arn)
    play.house.advance(seconds=61)
    assert play.describe(execution)["status"] == "ABORTED"
    assert left_over(play) == {}


def test_map_runs_lie_in_each_other(play: Play) -> None:
    inner = {"StartAt": "I", "States": {"I": {**distributed(PASS), "Label": "inner"}}}
    execution = play.run(machine(inner), [[1, 2], [3]])
    play.house.drain()
    assert play.output(execution) == [[1, 2], [3]]
    [outer] = map_runs(play, execution)
    nested = [run for child in children(play, outer) for run in map_runs(play, child["executionArn"])]
    assert [run["mapRunArn"].split(":")[6] for run in nested] == ["m/L/inner", "m/L/inner"]


def test_ended_map_runs_are_forgotten_with_their_executions() -> None:
    play = Play(execution_days=1)
    try:
        play.run(machine(PASS), [1, 2])
        play.house.drain()
        play.house.advance(days=2, hours=1)
        assert (play.rows("map_runs"), play.rows("map_items"), play.rows("map_children")) == (0, 0, 0)
        assert play.rows("executions") == 1  # the number of the newest stays, so that none is given twice
    finally:
        play.house.close()


def test_items_keep_their_numbers_and_texts(play: Play) -> None:
    given = [10**30, 1.5, "é", None, {"a": [True]}]
    execution = play.run(machine(PASS), given)
    play.house.drain()
    assert json.dumps(play.output(execution)) == json.dumps(given)


def test_a_map_in_jsonata(play: Play) -> None:
    state = distributed(
        PASS,
        QueryLanguage="JSONata",
        Items="{% $states.input.l %}",
        MaxConcurrency="{% $states.input.most %}",
        ItemSelector={"v": "{% $states.context.Map.Item.Value * 2 %}", "i": "{% $states.context.Map.Item.Index %}"},
        ItemBatcher={"MaxItemsPerBatch": "{% 2 %}", "BatchInput": {"of": "{% $states.input.most %}"}},
        Output="{% $states.result.Items.v %}",
    )
    execution = play.run({"StartAt": "M", "States": {"M": state}}, {"l": [1, 2, 3], "most": 7})
    play.house.drain()
    assert play.output(execution) == [2, 4, 6]
    [run] = map_runs(play, execution)
    assert (run["maxConcurrency"], run["executionCounts"]["total"]) == (7, 2)
