"""Redrive: what failed goes on where it failed, what was done stays done (engine/redrive.py)."""

import json
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasuki.engine.events import Redriven, TimerFired
from tasuki.engine.execution import Frames, Phase, Remain
from tasuki.engine.history import MAX_EVENTS
from tasuki.engine.saved import pack_frame, unpack_frame
from tasuki.values.documents import Doc
from tests.engine.machines import ALL, TOKEN, machine, map_, parallel, pass_, task, wait
from tests.engine.player import BEGIN, Handler, Play, fail, nothing, succeed
from tests.engine.test_properties import machines


def saved(remains: tuple[Remain, ...]) -> tuple[Remain, ...]:
    """Answer remains as they come back from their row."""
    return tuple(
        Remain(
            unpack_frame(pack_frame(remain.frame)),
            {index: Doc.of_text(output.text) for index, output in remain.results.items()},
        )
        for remain in remains
    )


def redriven(play: Play, handler: Handler | None = None) -> Play:
    """Redrive a run that ended badly, as the shell does."""
    assert play.finish is not None
    remains = saved(play.finish.remains)
    if play.save_every:
        play.save()
    assert play.rows.bodies == {}, "nothing of an ended execution is open"
    play.finish = None
    play.handler = handler or play.handler
    execution = play.execution
    execution.frames = Frames(play.rows)
    execution.status, execution.deadline = "RUNNING", None
    execution.redrive_count += 1
    execution.redriven_at = play.now
    return play.tell(Redriven(remains))


def test_a_task_is_scheduled_again_with_its_input() -> None:
    retry = [{"ErrorEquals": ALL, "MaxAttempts": 1}]
    play = Play(machine(A=pass_(Result={"n": 1}, Next="B"), B=task(Retry=retry)), handler=fail()).run()
    assert play.types.count("TaskScheduled") == 2
    first = play.execution.last_event
    redriven(play, succeed({"done": True}))
    assert play.output == {"done": True}
    after = play.wire()[first:]
    assert [(event["id"], event["previousEventId"], event["type"]) for event in after] == [
        (first + 1, first, "ExecutionRedriven"),
        (first + 2, first + 1, "TaskScheduled"),
        (first + 3, first + 2, "TaskStarted"),
        (first + 4, first + 3, "TaskSucceeded"),
        (first + 5, first + 4, "TaskStateExited"),
        (first + 6, first + 5, "ExecutionSucceeded"),
    ]
    assert after[0]["executionRedrivenEventDetails"] == {"redriveCount": 1}
    assert after[1]["taskScheduledEventDetails"]["parameters"] == '{"n":1}'
    attempts = [command.attempt for command in play.scheduled]
    assert attempts == sorted(set(attempts)), "an attempt is never asked for twice"


def test_retries_are_counted_anew() -> None:
    retry = [{"ErrorEquals": ALL, "MaxAttempts": 2}]
    play = Play(machine(A=task(Retry=retry)), handler=fail()).run()
    redriven(play).run()
    assert (play.status, play.types.count("TaskFailed")) == ("FAILED", 6)
    redriven(play, succeed()).run()
    assert play.status == "SUCCEEDED"
    assert [e["executionRedrivenEventDetails"] for e in play.wire() if e["type"] == "ExecutionRedriven"] == [
        {"redriveCount": 1},
        {"redriveCount": 2},
    ]


def test_only_the_branches_that_failed_run_again() -> None:
    branches = [
        {"StartAt": "P", "States": {"P": pass_(Result="kept")}},
        {"StartAt": "T", "States": {"T": task()}},
        {"StartAt": "W", "States": {"W": wait(10, Next="V"), "V": pass_(Result="waited")}},
    ]
    play = Play(machine(A=parallel(*branches))).start().fail()
    assert play.types[-2:] == ["ParallelStateFailed", "ExecutionFailed"]
    redriven(play).succeed("again").run()
    assert play.output == ["kept", "again", "waited"]
    assert play.types.count("PassStateEntered") == 2
    assert play.types.count("ParallelStateStarted") == 1
    assert play.types.count("WaitStateEntered") == 1


def test_a_map_keeps_what_was_done_and_goes_on_after_the_item_that_failed() -> None:
    block = {"StartAt": "T", "States": {"T": task(Parameters={"x.$": "$", "i.$": "$$.Map.Item.Index"})}}
    play = Play(machine(A=map_(block, MaxConcurrency=1)), [10, 20, 30]).start().succeed("first").fail()
    assert play.status == "FAILED"
    redriven(play).succeed("second").succeed("third")
    assert play.output == ["first", "second", "third"]
    asked = [json.loads(command.parameters.text) for command in play.scheduled]
    assert asked == [{"x": 10, "i": 0}, {"x": 20, "i": 1}, {"x": 20, "i": 1}, {"x": 30, "i": 2}]
    assert play.types.count("MapIterationStarted") == 3


def test_aborted_iterations_are_redriven_with_the_one_that_failed() -> None:
    block = {"StartAt": "T", "States": {"T": task(Next="W"), "W": wait(60)}}
    play = Play(machine(A=map_(block)), [1, 2, 3]).start()
    play.succeed("one", place=0).fail(place=1)
    assert play.status == "FAILED"
    before = len(play.scheduled)
    redriven(play)
    assert [command.frame for command in play.scheduled[before:]] == [command.frame for command in play.scheduled[1:3]]
    play.succeed("two", place=before).succeed("three", place=before + 1).run()
    assert play.output == ["one", "two", "three"]


def test_nested_scopes_come_back() -> None:
    inner = {
        "StartAt": "T",
        "States": {"T": task(Parameters={"v.$": "$v", "w.$": "$w"})},
    }
    outer = {
        "StartAt": "B",
        "States": {
            "B": pass_(Assign={"w.$": "$$.Map.Item.Value"}, Next="C"),
            "C": parallel(inner, {"StartAt": "D", "States": {"D": pass_(Result=0)}}),
        },
    }
    play = Play(machine(A=pass_(Assign={"v": 1}, Next="M"), M=map_(outer, ItemsPath="$.xs")), {"xs": [7, 8]})
    play.start().succeed("seven", place=0).fail(place=1)
    redriven(play)
    assert play.scheduled[-1].parameters.value == {"v": 1, "w": 8}
    play.succeed("eight")
    assert play.output == [["seven", 0], ["eight", 0]]


def test_a_parallel_that_failed_by_itself_runs_anew() -> None:
    branch = {"StartAt": "T", "States": {"T": task()}}
    play = Play(machine(A=parallel(branch, ResultSelector={"x.$": "$[0].needed"})), handler=succeed({})).run()
    assert play.status == "FAILED"
    redriven(play, succeed({"needed": 5}))
    assert play.output == {"x": 5}
    assert play.types.count("ParallelStateStarted") == 2
    assert play.types.count("ParallelStateEntered") == 1


def test_what_was_caught_is_not_redriven() -> None:
    branch = {"StartAt": "T", "States": {"T": task()}}
    caught = parallel(branch, branch | {"StartAt": "U", "States": {"U": task()}}, Next="B")
    caught["Catch"] = [{"ErrorEquals": ALL, "Next": "B"}]
    play = Play(machine(A=caught, B=task())).start().fail(place=0).fail()
    assert play.finish is not None
    assert [remain.frame.state for remain in play.finish.remains] == ["B"]
    redriven(play).succeed("done")
    assert play.output == "done"


def test_a_stopped_execution_waits_again() -> None:
    play = Play(machine(A=wait(60))).start()
    play.now += 50_000
    play.stop("Operator")
    play.now += 1_000_000
    redriven(play)
    assert play.next_due() == (BEGIN + 1_110_000, 1)
    play.run()
    assert play.types[1:] == [
        "WaitStateEntered",
        "ExecutionAborted",
        "ExecutionRedriven",
        "WaitStateExited",
        "ExecutionSucceeded",
    ]


def test_the_machines_time_begins_again() -> None:
    play = Play(machine(A=task(TOKEN), timeout=30)).start().submit()
    play.fire()
    assert play.status == "TIMED_OUT"
    play.now += 100_000
    redriven(play)
    assert play.next_due() == (play.now + 30_000, 0)
    play.submit().succeed("in time")
    assert play.output == "in time"


def test_a_fail_state_fails_again_and_says_so() -> None:
    play = Play(machine(A={"Type": "Fail", "Error": "E"})).run()
    redriven(play)
    assert play.types[-3:] == ["ExecutionRedriven", "FailStateEntered", "ExecutionFailed"]


def test_an_expression_is_evaluated_again_without_a_second_entry() -> None:
    play = Play(machine(A=pass_(Parameters={"x.$": "$.missing"}))).run()
    redriven(play)
    assert play.types == [
        "ExecutionStarted",
        "PassStateEntered",
        "ExecutionFailed",
        "ExecutionRedriven",
        "ExecutionFailed",
    ]
    assert "entered at the event id #2" in play.wire()[-1]["executionFailedEventDetails"]["cause"]


def test_the_context_tells_of_it() -> None:
    given = {"count.$": "$$.Execution.RedriveCount", "execution.$": "$$.Execution"}
    play = Play(machine(A=task(Parameters=given)), handler=fail()).run()
    assert "RedriveTime" not in play.scheduled[0].parameters.value["execution"]
    redriven(play, succeed())
    assert play.scheduled[1].parameters.value["count"] == 1
    assert play.scheduled[1].parameters.value["execution"]["RedriveTime"].endswith("Z")


def test_a_full_history_leaves_nothing_to_redrive() -> None:
    rule = {"Variable": "$.done", "IsPresent": True, "Next": "C"}
    looping = machine(A=pass_(Next="B"), B={"Type": "Choice", "Choices": [rule], "Default": "A"}, C={"Type": "Succeed"})
    play = Play(looping, save_every=0).start()
    assert play.types[-1] == "ExecutionFailed"
    assert play.execution.last_event == MAX_EVENTS
    assert play.finish is not None
    assert play.finish.remains == ()


def test_an_execution_that_never_began_can_be_stopped_and_redriven() -> None:
    play = Play(machine(A=pass_(Result=1))).stop()
    assert play.types == ["ExecutionStarted", "ExecutionAborted"]
    redriven(play)
    assert play.output == 1


def without_ids(output: Any) -> str:
    """Answer an output as text; causes name events, which a redrive numbers otherwise."""
    return re.sub(r"event id #\d+", "event id #n", json.dumps(output))


def interrupted(definition: dict[str, Any], dice: list[int]) -> Play:
    """Play a machine with every task done well, by the dice, and stop it there."""
    play = Play(definition, {"xs": [1, {"k": 2}]}).start()
    for roll in dice:
        open_tasks = [frame.attempt for frame in play.frames() if frame.phase is Phase.RUNNING]
        waiting = [frame.id for frame in play.frames() if frame.phase is Phase.WAITING]
        if open_tasks and (roll % 3 or not waiting):
            attempt = open_tasks[roll % len(open_tasks)]
            play.succeed({"ok": 1}, place=[command.attempt for command in play.scheduled].index(attempt))
        elif waiting:
            play.now += 3_000 if not open_tasks else 0
            play.tell(TimerFired(waiting[roll % len(waiting)]))
    return play


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(machines(), st.lists(st.integers(0, 1_000), max_size=15))
def test_stopped_anywhere_and_redriven_comes_to_the_same_end(definition: dict[str, Any], dice: list[int]) -> None:
    definition.pop("TimeoutSeconds", None)
    straight = Play(definition, {"xs": [1, {"k": 2}]}, handler=succeed({"ok": 1})).run()
    play = interrupted(definition, dice)
    if play.status == "RUNNING":
        play.stop()
    if play.status == "SUCCEEDED":
        return
    redriven(play, succeed({"ok": 1})).run()
    assert play.status == straight.status
    assert [event.id for event in play.history] == list(range(1, len(play.history) + 1))
    if "UUID" not in json.dumps(definition) and straight.status == "SUCCEEDED":
        assert without_ids(play.output) == without_ids(straight.output)
    # Retries are counted anew: what fails and is tried again may be tried more often.
    if straight.status == "SUCCEEDED" and "FailStateEntered" not in straight.types:
        assert sorted(kind for kind in play.types if kind.endswith("StateEntered")) == sorted(
            kind for kind in straight.types if kind.endswith("StateEntered")
        )


def test_a_redriven_activity_is_another_task() -> None:
    arn = "arn:aws:states:us-east-1:111111111111:activity:a"
    play = Play(machine(A=task(arn, TimeoutSeconds=5)), handler=nothing).start()
    assert play.next_due() is None, "its time begins when a worker takes it"
    play.stop()
    redriven(play)
    assert play.scheduled[0].token != play.scheduled[1].token
    assert play.scheduled[1].resource.arn == arn
