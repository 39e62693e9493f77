"""A step is bounded and fair; an execution's history is bounded."""

from typing import Any

import pytest

from tasuki.engine.events import Continued, Started, TimerFired
from tasuki.engine.execution import READY_AT_ONCE, Phase
from tests.engine.machines import TOKEN, machine, map_, parallel, pass_, task
from tests.engine.player import Play


def loop(name: str, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """Answer a block that goes round for ever."""
    way_out = {"Variable": "$", "IsPresent": False, "Next": f"{name}Out"}
    return {
        "StartAt": name,
        "States": {
            name: pass_(Next=f"{name}Again") if state is None else {**state, "Next": f"{name}Again"},
            f"{name}Again": {"Type": "Choice", "Choices": [way_out], "Default": name},
            f"{name}Out": {"Type": "Succeed"},
        },
    }


WORK = {"StartAt": "T", "States": {"T": task(TOKEN)}}


def test_a_step_stops_after_two_hundred_transitions() -> None:
    play = Play(loop("A"))
    _, ready = play.step(Started())
    assert ready
    assert len(play.history) == 1 + 2 * 200
    assert [frame.phase for frame in play.frames()] == [Phase.READY]
    _, ready = play.step(Continued())
    assert ready
    assert len(play.history) == 1 + 4 * 200


def test_a_step_stops_after_a_mebibyte_of_documents() -> None:
    text = "x" * 200_000
    play = Play(loop("A", {"Type": "Pass", "Parameters": {"v.$": "$.v", "n.$": "States.UUID()"}}), {"v": text})
    _, ready = play.step(Started())
    assert ready
    assert len(play.history) < 20
    assert 1_000_000 < play.execution.history_bytes < 1_500_000


def test_a_wide_map_of_quick_items_is_served_in_portions() -> None:
    play = Play(machine(A=map_({"StartAt": "I", "States": {"I": pass_()}})), list(range(1_000))).start()
    assert play.output == list(range(1_000))
    assert play.steps > 5


def test_nobody_starves() -> None:
    play = Play(machine(A=parallel(loop("L"), loop("M"), WORK)))
    play.step(Started())
    for _ in range(5):
        play.step(Continued())
    names = [event.details["name"] for event in play.history if event.details and "name" in event.details]
    assert play.types.count("TaskScheduled") == 1
    assert names.count("L") > 300
    assert names.count("M") > 300


def test_continued_without_anything_to_do_is_harmless() -> None:
    play = Play(machine(A=task(TOKEN))).start()
    events = len(play.history)
    play.tell(Continued())
    assert len(play.history) == events


def test_ready_frames_hear_of_nothing_else() -> None:
    play = Play(loop("A"))
    play.step(Started())
    events = len(play.history)
    play.step(TimerFired(1))
    assert len(play.history) == events


@pytest.mark.parametrize(
    "definition",
    [loop("A"), machine(A=parallel(loop("L"), WORK)), loop("A", {"Type": "Wait", "Seconds": 1})],
    ids=["quick", "beside a task", "slow"],
)
def test_the_twenty_five_thousandth_event_is_the_last(definition: dict[str, object]) -> None:
    play = Play(definition, save_every=0).run(most=30_000)
    assert play.finish is not None
    assert play.status == "FAILED"
    assert play.finish.cause == "The execution reached the maximum number of history events (25000)."
    assert [event.id for event in play.history] == list(range(1, 25_001))
    assert play.types[-1] == "ExecutionFailed"
    assert play.frames() == []
    assert len(play.cancelled) == len(play.scheduled)


def test_a_stop_at_the_brim_is_a_stop() -> None:
    play = Play(machine(A=parallel(loop("L"), WORK)), save_every=0)
    play.step(Started())
    while play.execution.last_event < 24_999:
        play.execution.last_event += 1
    play.stop()
    assert play.status == "ABORTED"
    assert play.types[-1] == "ExecutionAborted"
    assert play.frames() == []


def test_a_document_counts_once_however_often_it_is_told() -> None:
    text = "x" * 1_000
    play = Play(machine(A=task(TOKEN, Next="B"), B=pass_(Next="C"), C=pass_()), 1).start().succeed(text)
    assert play.status == "SUCCEEDED"
    assert play.execution.history_bytes == len('"' + text + '"') + len("1")


@pytest.mark.parametrize("kind", ["map", "parallel"])
def test_results_that_are_too_large_together_fail_the_state_that_joins_them(kind: str) -> None:
    catch = [{"ErrorEquals": ["States.DataLimitExceeded"], "Next": "B"}]
    joins = (
        map_(WORK, Catch=catch)
        if kind == "map"
        else parallel(WORK, {"StartAt": "U", "States": {"U": task(TOKEN)}}, Catch=catch)
    )
    play = Play(machine(A=joins, B=pass_()), [1, 2]).start()
    play.succeed("x" * 200_000, place=0).succeed("x" * 200_000, place=1)
    assert play.output["Error"] == "States.DataLimitExceeded"
    assert play.output["Cause"].startswith("The state/task 'A' returned a result")
    assert play.frames() == []


def test_more_frames_are_ready_than_one_step_can_serve() -> None:
    leaf = {"StartAt": "I", "States": {"I": pass_(Parameters={"at.$": "$$.Map.Item.Index"})}}
    inner = {"StartAt": "M", "States": {"M": map_(leaf, ItemsPath="$$.Execution.Input.inner")}}
    play = Play(machine(A=map_(inner, ItemsPath="$.outer")), {"outer": list(range(35)), "inner": list(range(12))})
    _, ready = play.step(Started())
    assert ready
    assert sum(frame.phase is Phase.READY for frame in play.frames()) > READY_AT_ONCE
    play.tell(Continued())
    assert play.output == [[{"at": at} for at in range(12)]] * 35
    assert play.rows.bodies == {}
