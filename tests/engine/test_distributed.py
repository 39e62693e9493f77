"""Distributed Maps as the engine sees them: what it wants of a shell, and what it makes of the answer."""

from typing import Any

import pytest

from tasuki.engine.commands import StartMapRun
from tasuki.engine.events import MapRunEnded
from tasuki.engine.execution import Frames
from tasuki.engine.states.distributed import Selector
from tasuki.language.errors import StatesError
from tasuki.values.documents import Doc
from tests.engine.machines import ALL, machine, parallel, wait
from tests.engine.player import Play

PROCESSOR = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    "StartAt": "I",
    "States": {"I": {"Type": "Pass", "End": True}},
}


def state(**fields: Any) -> dict[str, Any]:
    return {"Type": "Map", "ItemProcessor": PROCESSOR, "End": True, **fields}


def end(play: Play, output: Any = None, *, error: str | None = None) -> Play:
    run = play.map_runs[-1]
    doc = Doc(output) if error is None else None
    return play.tell(MapRunEnded(run.frame, run.attempt, doc, error, "cause" if error else None))


def started(definition: dict[str, Any], given: Any) -> tuple[Play, StartMapRun]:
    play = Play(machine(A=definition), given).start()
    return play, play.map_runs[0]


def test_a_map_run_is_started_and_waited_for() -> None:
    play, run = started(state(MaxConcurrency=7, ItemsPath="$.l"), {"l": [1, 2]})
    assert (run.items, run.plan.max_concurrency, run.plan.block) == ([1, 2], 7, "/States/A/ItemProcessor")
    assert (run.plan.tolerated_count, run.plan.tolerated_percentage) == (None, None)
    assert play.status == "RUNNING"
    end(play, ["a", "b"])
    assert play.output == ["a", "b"]
    assert play.types == [
        "ExecutionStarted",
        "MapStateEntered",
        "MapStateStarted",
        "MapRunStarted",
        "MapRunSucceeded",
        "MapStateSucceeded",
        "MapStateExited",
        "ExecutionSucceeded",
    ]


def test_a_label_that_is_made_stays_the_same() -> None:
    labels = {started(state(), [n])[1].label for n in range(3)}
    assert len(labels) == 1
    assert len(labels.pop()) == 36


def test_a_reader_needs_no_items() -> None:
    reader = {
        "Resource": "arn:aws:states:::s3:getObject",
        "Parameters": {"Bucket": "b", "Key.$": "$.k"},
        "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "MaxItemsPath": "$.n"},
    }
    play, run = started(state(ItemReader=reader), {"k": "key", "n": 5})
    assert run.items is None
    assert run.plan.reader is not None
    assert (run.plan.reader["arguments"], run.plan.reader["max_items"]) == ({"Bucket": "b", "Key": "key"}, 5)
    assert play.history[2].details == {"length": 0}


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"ToleratedFailureCountPath": "$.n"}, "ToleratedFailureCount cannot be negative."),
        ({"ToleratedFailurePercentagePath": "$.n"}, "ToleratedFailurePercentage must be between 0 and 100."),
        ({"ItemBatcher": {"MaxItemsPerBatchPath": "$.n"}}, "MaxItemsPerBatch must be positive."),
        ({"ItemBatcher": {"MaxInputBytesPerBatchPath": "$.n"}}, "MaxInputBytesPerBatch must be positive."),
    ],
)
def test_numbers_by_path_are_looked_at_when_the_map_has_started(fields: dict[str, Any], cause: str) -> None:
    play = Play(machine(A=state(ItemsPath="$.l", **fields)), {"l": [], "n": -1}).start()
    assert play.types == ["ExecutionStarted", "MapStateEntered", "MapStateStarted", "ExecutionFailed"]
    assert play.finish is not None
    assert (play.finish.cause or "").endswith(cause)


def test_a_failure_is_retried_then_caught() -> None:
    retry = [{"ErrorEquals": ["Bad"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    catch = [{"ErrorEquals": ALL, "Next": "B"}]
    play = Play(machine(A=state(Retry=retry, Catch=catch), B={"Type": "Succeed"}), [1]).start()
    end(play, error="Bad")
    play.fire()
    assert [run.attempt for run in play.map_runs] == [1, 2]
    assert play.map_runs[0].name != play.map_runs[1].name
    end(play, error="Bad")
    assert play.output == {"Error": "Bad", "Cause": "cause"}
    assert play.types.count("MapRunFailed") == 2
    assert play.types.count("MapStateFailed") == 1


def test_an_answer_that_is_late_or_doubled_changes_nothing() -> None:
    retry = [{"ErrorEquals": ["Bad"], "IntervalSeconds": 1}]
    play = Play(machine(A=state(Retry=retry)), [1]).start()
    first = play.map_runs[0]
    end(play, error="Bad")
    play.fire()
    play.tell(MapRunEnded(first.frame, first.attempt, Doc(["old"])))
    assert play.status == "RUNNING"
    end(play, ["new"])
    end(play, ["newer"])
    assert play.output == ["new"]


def test_a_stop_gives_the_map_run_up() -> None:
    play, run = started(state(), [1])
    play.stop()
    assert [(one.frame, one.attempt) for one in play.cancelled_map_runs] == [(run.frame, run.attempt)]
    assert play.types[-3:] == ["MapRunAborted", "MapStateAborted", "ExecutionAborted"]


def test_a_sibling_that_fails_gives_the_map_run_up() -> None:
    slow = machine("W", W=wait(1, Next="F"), F={"Type": "Fail"})
    play = Play(machine(A=parallel(slow, machine("M", M=state()))), [1]).start()
    play.fire()
    assert play.status == "FAILED"
    assert len(play.cancelled_map_runs) == 1


def test_what_the_children_get_is_selected_item_by_item() -> None:
    select = {"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value.a", "of.$": "$.of", "u.$": "States.UUID()"}
    play, run = started(state(ItemsPath="$.l", ItemSelector=select), {"l": [{"a": 1}, {"a": 2}, {}], "of": "x"})
    play.save()
    play.execution.frames = Frames(play.rows)
    frame = play.execution.frames.get(run.frame)
    assert frame is not None
    selector = Selector(play.machine, play.execution, frame, play.now)
    made = [selector(index, item) for index, item in enumerate([{"a": 1}, {"a": 2}])]
    assert [(one["i"], one["v"], one["of"]) for one in made] == [(0, 1, "x"), (1, 2, "x")]
    assert made[0]["u"] != made[1]["u"]
    assert made[0] == selector(0, {"a": 1})
    with pytest.raises(StatesError, match=r"An error occurred while executing the state 'A'"):
        selector(2, {})
