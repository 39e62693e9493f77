"""What holds for every machine and every order of events; and that saving in between changes nothing (P2's heart)."""

import itertools
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasuki.engine.events import (
    Continued,
    Event,
    Heartbeat,
    TaskFailed,
    TaskStarted,
    TaskSubmitted,
    TaskSucceeded,
    TimerFired,
)
from tasuki.engine.turn import ENDINGS
from tasuki.values.documents import Doc
from tests.engine.machines import SYNC, TOKEN, WORK
from tests.engine.player import Play

ERRORS = ["X", "Y", "States.Timeout"]
RETRY = st.lists(
    st.fixed_dictionaries(
        {
            "ErrorEquals": st.sampled_from([["X"], ["Y"], ["States.TaskFailed"], ["States.Timeout"]]),
            "MaxAttempts": st.integers(0, 2),
            "JitterStrategy": st.sampled_from(["FULL", "NONE"]),
        }
    ),
    max_size=2,
)


@st.composite
def blocks(draw: st.DrawFn, names: Any, depth: int) -> dict[str, Any]:
    """Answer a block of some states in a row."""
    kinds = ["pass", "task", "wait", "task"] + (["parallel", "map"] if depth else [])
    chain = [(f"S{next(names)}", draw(st.sampled_from(kinds))) for _ in range(draw(st.integers(1, 3)))]
    made: dict[str, Any] = {}
    scope = f"v{next(names)}"
    for place, (name, kind) in enumerate(chain):
        following = {"Next": chain[place + 1][0]} if place + 1 < len(chain) else {"End": True}
        state = _simple(draw, kind, scope) if kind in {"pass", "wait"} else _fallible(draw, kind, names, depth, made)
        made[name] = {**state, **following}
    if draw(st.integers(0, 4)) == 0:
        last = chain[-1][0]
        fail = f"S{next(names)}"
        made[last] = {key: value for key, value in made[last].items() if key != "End"} | {"Next": fail}
        made[fail] = {"Type": "Fail", "Error": "X"} if draw(st.booleans()) else {"Type": "Succeed"}
    return {"StartAt": chain[0][0], "States": made}


def _simple(draw: st.DrawFn, kind: str, scope: str) -> dict[str, Any]:
    if kind == "wait":
        return {"Type": "Wait", "Seconds": draw(st.integers(0, 3))}
    return draw(
        st.sampled_from(
            [
                {"Type": "Pass"},
                {"Type": "Pass", "Parameters": {"u.$": "States.UUID()"}},
                {"Type": "Pass", "Result": {"xs": [1, 2]}, "ResultPath": "$.r"},
                {"Type": "Pass", "Parameters": {"x.$": "$.missing"}},
                {"Type": "Pass", "Assign": {scope: "é", f"{scope}w.$": "$$.State.Name"}},
            ]
        )
    )


def _fallible(draw: st.DrawFn, kind: str, names: Any, depth: int, made: dict[str, Any]) -> dict[str, Any]:
    """Answer a state that may retry and catch; what it catches ends in a state of its own."""
    state: dict[str, Any]
    if kind == "task":
        state = {"Type": "Task", "Resource": draw(st.sampled_from([WORK, TOKEN, SYNC]))}
        state |= draw(st.sampled_from([{}, {"TimeoutSeconds": 4}, {"TimeoutSeconds": 9, "HeartbeatSeconds": 2}]))
    elif kind == "parallel":
        count = draw(st.integers(1, 3))
        state = {"Type": "Parallel", "Branches": [draw(blocks(names, depth - 1)) for _ in range(count)]}
    else:
        items = draw(st.lists(st.integers(0, 2**70), max_size=4))
        state = {
            "Type": "Map",
            "ItemProcessor": draw(blocks(names, depth - 1)),
            "ItemsPath": "$$.Execution.Input.xs",
            "ItemSelector": {"item.$": "$$.Map.Item.Value", "of": items},
            "MaxConcurrency": draw(st.integers(0, 2)),
        }
    state["Retry"] = draw(RETRY)
    if draw(st.booleans()):
        caught = f"S{next(names)}"
        made[caught] = {"Type": "Pass", "End": True}
        state["Catch"] = [{"ErrorEquals": draw(st.sampled_from([["X"], ["States.ALL"]])), "Next": caught}]
    return state


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    definition = draw(blocks(itertools.count(), 2))
    return definition | draw(st.sampled_from([{}, {}, {"TimeoutSeconds": 20}]))


def event_for(play: Play, dice: int) -> Event | None:
    """Answer an event that may happen now, or is late: by the dice. None means that time passes to the next deadline."""
    which, dice = dice % 12, dice // 12
    if which < 3 or not play.scheduled:
        return None
    if which == 3:
        return TimerFired(dice % (play.execution.last_frame + 2))
    if which == 4:
        return Continued()
    task = (
        play.scheduled[dice % len(play.scheduled)]
        if which < 7
        else play.scheduled[-1 - dice % min(3, len(play.scheduled))]
    )
    frame, attempt = task.frame, task.attempt
    answers: list[Event] = [
        TaskSucceeded(frame, attempt, Doc({"ok": attempt, "big": 2**66})),
        TaskSucceeded(frame, attempt, Doc([attempt])),
        TaskFailed(frame, attempt, ERRORS[dice % 3], "cause"),
        TaskSubmitted(frame, attempt, Doc({}), f"handle-{attempt}"),
        TaskStarted(frame, attempt, "worker"),
        Heartbeat(frame, attempt),
    ]
    return answers[dice % len(answers)]


def played(definition: dict[str, Any], dice: list[int], save_every: int, *, stop: bool) -> Play:
    """Play a machine by the dice, and then to its end."""
    play = Play(definition, {"xs": [1, {"k": 2}, 2**65]}, save_every=save_every).start()
    for roll in dice:
        event = event_for(play, roll)
        if event is None:
            play.fire()
        else:
            play.tell(event)
    if stop:
        play.stop("Stopped", "by the dice")
    for _ in range(500):
        if play.status != "RUNNING":
            break
        if not play.fire():
            for place in range(len(play.scheduled)):
                play.succeed({"late": place}, place=place)
    if save_every:
        play.save()
    return play


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(machines(), st.lists(st.integers(0, 10_000), max_size=40), st.booleans())
def test_every_execution_is_sound_and_saving_changes_nothing(
    definition: dict[str, Any], dice: list[int], stop: bool
) -> None:
    play = played(definition, dice, 0, stop=stop)

    assert play.status != "RUNNING", "it never ends"
    assert [event.id for event in play.history] == list(range(1, len(play.history) + 1))
    assert all(event.previous < event.id for event in play.history)
    assert [event.type for event in play.history if event.type in ENDINGS] == [play.types[-1]]
    assert play.finish is not None
    assert play.frames() == []
    assert play.execution.frames.new_results == {}
    assert play.execution.frames.variable_bytes == 0
    entered = sum(kind.endswith("StateEntered") for kind in play.types)
    left = sum(kind.endswith("StateExited") for kind in play.types)
    assert left <= entered

    for save_every in (1, 3):
        again = played(definition, dice, save_every, stop=stop)
        assert again.wire() == play.wire()
        assert again.scheduled == play.scheduled
        assert again.cancelled == play.cancelled
        assert again.finish == play.finish
        assert again.rows.bodies == {}
        assert again.rows.counts == {}
        assert again.rows.outputs == {}
        assert again.execution.frames.variable_bytes == 0
