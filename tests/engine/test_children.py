"""Parallel and Map: order of events, lines of previousEventId, aborts, retries, scopes, wide maps."""

from typing import Any

import pytest

from tasuki.engine.events import TaskSucceeded
from tasuki.engine.execution import Phase
from tests.engine.machines import ALL, SYNC, TOKEN, machine, map_, parallel, pass_, task, wait
from tests.engine.player import Play, fail, succeed

BOOM = {"Type": "Fail", "Error": "Boom", "Cause": "it broke"}


def lines(play: Play) -> list[tuple[int, int, str]]:
    return [(event.id, event.previous, event.type) for event in play.history]


def test_branches_run_side_by_side_and_join_in_their_order() -> None:
    play = Play(
        machine(
            A=parallel({"StartAt": "X", "States": {"X": task(TOKEN)}}, {"StartAt": "Y", "States": {"Y": task(TOKEN)}})
        )
    )
    play.start()
    play.succeed("second", place=1).succeed("first", place=0)
    assert play.output == ["first", "second"]
    assert lines(play) == [
        (1, 0, "ExecutionStarted"),
        (2, 0, "ParallelStateEntered"),
        (3, 2, "ParallelStateStarted"),
        (4, 3, "TaskStateEntered"),
        (5, 4, "TaskScheduled"),
        (6, 3, "TaskStateEntered"),
        (7, 6, "TaskScheduled"),
        (8, 7, "TaskStarted"),
        (9, 8, "TaskSucceeded"),
        (10, 9, "TaskStateExited"),
        (11, 5, "TaskStarted"),
        (12, 11, "TaskSucceeded"),
        (13, 12, "TaskStateExited"),
        (14, 13, "ParallelStateSucceeded"),
        (15, 13, "ParallelStateExited"),
        (16, 15, "ExecutionSucceeded"),
    ]


def test_a_parallel_shapes_its_input_and_result() -> None:
    block = {"StartAt": "X", "States": {"X": pass_()}}
    definition = machine(
        A=parallel(
            block, block | {"StartAt": "Y", "States": {"Y": pass_(Result=2)}},
            InputPath="$.in", Parameters={"v.$": "$.x"}, ResultSelector={"first.$": "$[0]", "second.$": "$[1]"},
            ResultPath="$.out", OutputPath="$.out", Assign={"raw.$": "$[1]"}, Next="B",
        ),
        B=pass_(Parameters={"all.$": "$", "raw.$": "$raw"}),
    )  # fmt: skip
    play = Play(definition, {"in": {"x": 1}}).start()
    assert play.output == {"all": {"first": {"v": 1}, "second": 2}, "raw": 2}


def test_a_failing_branch_aborts_the_others() -> None:
    play = Play(
        machine(
            A=parallel(
                {"StartAt": "T", "States": {"T": task(TOKEN)}},
                {"StartAt": "S", "States": {"S": task(SYNC)}},
                {"StartAt": "W", "States": {"W": wait(60)}},
                Catch=[{"ErrorEquals": ["Boom"], "Next": "B"}],
            ),
            B=pass_(),
        )
    ).start()
    play.submit({}, "handle", place=1).fail(place=0)
    assert play.output == {"Error": "Boom", "Cause": "it broke"}
    failed = next(event.id for event in play.history if event.type == "TaskFailed")
    tail = [(event.previous, event.type) for event in play.history if event.id > failed]
    assert tail[:5] == [
        (failed, "TaskStateAborted"),
        (failed, "TaskStateAborted"),
        (failed, "WaitStateAborted"),
        (failed, "ParallelStateFailed"),
        (failed + 4, "ParallelStateExited"),
    ]
    assert [one.handle for one in play.cancelled] == ["handle"]
    events = len(play.history)
    play.succeed("late", place=1)
    assert len(play.history) == events
    assert play.frames() == []


def test_a_parallel_is_tried_again_from_the_start() -> None:
    retry = [{"ErrorEquals": ["Boom"], "MaxAttempts": 1}]
    blocks = [{"StartAt": name, "States": {name: task(TOKEN)}} for name in ("X", "Y")]
    play = Play(machine(A=parallel(*blocks, Retry=retry))).start()
    play.succeed("kept for nothing", place=0).fail(place=1)
    assert play.status == "RUNNING"
    assert [frame.phase for frame in play.frames()] == [Phase.RETRYING]
    assert play.rows.outputs == {}
    assert "ParallelStateFailed" not in play.types
    play.fire()
    assert play.types.count("ParallelStateStarted") == 2
    play.succeed(1, place=2).succeed(2, place=3)
    assert play.output == [1, 2]


def test_an_error_climbs_until_somebody_wants_it() -> None:
    inner = parallel({"StartAt": "F", "States": {"F": BOOM}}, Catch=[{"ErrorEquals": ["Other"], "Next": "N"}])
    outer = parallel(
        {"StartAt": "P", "States": {"P": inner, "N": pass_()}}, Catch=[{"ErrorEquals": ["Boom"], "Next": "B"}]
    )
    play = Play(machine(A=outer, B=pass_())).start()
    assert play.output == {"Error": "Boom", "Cause": "it broke"}
    assert [kind for kind in play.types if "Failed" in kind] == ["ParallelStateFailed", "ParallelStateFailed"]


def test_a_nested_abort_says_so_from_the_outside_in() -> None:
    deep = map_({"StartAt": "D", "States": {"D": task(SYNC)}}, ItemsPath="$.items")
    play = Play(
        machine(
            A=parallel(
                {"StartAt": "F", "States": {"F": task(TOKEN)}},
                {"StartAt": "M", "States": {"M": deep}},
            )
        ),
        {"items": [1, 2]},
    ).start()
    play.submit({}, "one", place=1).submit({}, "two", place=2).fail(place=0)
    assert play.types[play.types.index("TaskFailed") + 1 :] == [
        "TaskStateAborted",
        "MapStateAborted",
        "MapIterationAborted",
        "TaskStateAborted",
        "MapIterationAborted",
        "TaskStateAborted",
        "ParallelStateFailed",
        "ExecutionFailed",
    ]
    assert sorted(str(one.handle) for one in play.cancelled) == ["one", "two"]
    assert play.rows.bodies == {}
    assert play.rows.outputs == {}


def test_stopping_aborts_what_is_open() -> None:
    block = {"StartAt": "D", "States": {"D": task(SYNC)}}
    play = Play(machine(A=map_(block)), [1, 2]).start()
    play.submit({}, "one", place=0).stop("Why", "because")
    assert [(event.previous, event.type) for event in play.history[-6:]] == [
        (0, "MapStateAborted"),
        (0, "MapIterationAborted"),
        (0, "TaskStateAborted"),
        (0, "MapIterationAborted"),
        (0, "TaskStateAborted"),
        (0, "ExecutionAborted"),
    ]
    assert play.wire()[-1]["executionAbortedEventDetails"] == {"error": "Why", "cause": "because"}
    assert (play.status, play.rows.bodies, len(play.cancelled)) == ("ABORTED", {}, 2)


def test_a_machine_may_last_only_so_long() -> None:
    play = Play(machine(A=task(SYNC, TimeoutSeconds=500), timeout=100)).start()
    assert play.next_due() == (play.now + 100_000, 0)
    play.fire()
    assert play.types[-2:] == ["TaskStateAborted", "ExecutionTimedOut"]
    assert play.wire()[-1]["executionTimedOutEventDetails"] == {}
    assert play.finish is not None
    assert (play.status, play.finish.error, play.finish.cause) == ("TIMED_OUT", None, None)


# Map


def test_places_are_taken_by_the_next_items() -> None:
    block = {"StartAt": "T", "States": {"T": task(TOKEN)}}
    play = Play(machine(A=map_(block, MaxConcurrency=2)), ["a", "b", "c"]).start()
    assert len(play.scheduled) == 2
    play.succeed("B", place=1)
    started = [event for event in play.history if event.type == "MapIterationStarted"]
    exited = next(event for event in play.history if event.type == "TaskStateExited")
    assert [(event.previous, event.details) for event in started] == [
        (3, {"name": "A", "index": 0}),
        (3, {"name": "A", "index": 1}),
        (exited.id, {"name": "A", "index": 2}),
    ]
    play.succeed("C", place=2).succeed("A", place=0)
    assert play.output == ["A", "B", "C"]
    succeeded = play.history[-4]
    assert [(event.previous, event.type) for event in play.history[-3:]] == [
        (succeeded.id, "MapStateSucceeded"),
        (succeeded.id, "MapStateExited"),
        (play.history[-2].id, "ExecutionSucceeded"),
    ]


@pytest.mark.parametrize(("wanted", "runs"), [(0, 40), (3, 3), (100, 40)])
def test_an_inline_map_runs_forty_at_most(wanted: int, runs: int) -> None:
    block = {"StartAt": "T", "States": {"T": task(TOKEN)}}
    play = Play(machine(A=map_(block, MaxConcurrency=wanted)), list(range(60))).start()
    assert len(play.scheduled) == runs


def test_an_empty_map() -> None:
    play = Play(machine(A=map_({"StartAt": "T", "States": {"T": pass_()}})), []).start()
    assert play.output == []
    assert lines(play)[2:] == [
        (3, 2, "MapStateStarted"),
        (4, 3, "MapStateSucceeded"),
        (5, 3, "MapStateExited"),
        (6, 5, "ExecutionSucceeded"),
    ]


def test_items_and_their_place_are_seen_inside() -> None:
    inner = {
        "StartAt": "I",
        "States": {"I": pass_(Parameters={"in.$": "$", "at.$": "$$.Map.Item.Index", "is.$": "$$.Map.Item.Value"})},
    }
    selector = {"v.$": "$$.Map.Item.Value", "i.$": "$$.Map.Item.Index", "of.$": "$.name"}
    play = Play(
        machine(A=map_(inner, ItemsPath="$.xs", ItemSelector=selector)), {"name": "n", "xs": ["a", "b"]}
    ).start()
    assert play.output == [
        {"in": {"v": "a", "i": 0, "of": "n"}, "at": 0, "is": "a"},
        {"in": {"v": "b", "i": 1, "of": "n"}, "at": 1, "is": "b"},
    ]


def test_an_item_selector_that_fails_takes_the_map_with_it() -> None:
    block = {"StartAt": "T", "States": {"T": task(SYNC)}}
    definition = machine(A=map_(block, ItemsPath="$.xs", ItemSelector={"v.$": "$$.Map.Item.Value.k"}))
    play = Play(definition, {"xs": [{"k": 1}, {}]}).start()
    assert play.status == "FAILED"
    assert play.finish is not None
    assert play.finish.error == "States.Runtime"
    assert play.types[3:] == ["MapIterationStarted", "MapIterationAborted", "ExecutionFailed"]
    assert play.frames() == []


def test_a_map_over_something_else_fails() -> None:
    play = Play(machine(A=map_({"StartAt": "T", "States": {"T": pass_()}})), {"no": "array"}).start()
    assert play.types == ["ExecutionStarted", "MapStateEntered", "ExecutionFailed"]
    assert play.finish is not None
    assert str(play.finish.cause).endswith('Reference path "$" must point to array.')


def test_a_failing_iteration_aborts_the_others() -> None:
    block = {"StartAt": "T", "States": {"T": task(TOKEN)}}
    play = Play(machine(A=map_(block)), [1, 2, 3]).start()
    play.succeed("ok", place=2).fail(place=1)
    failed = next(event.id for event in play.history if event.type == "TaskFailed")
    assert [(event.previous, event.type) for event in play.history if event.id > failed] == [
        (failed, "MapIterationFailed"),
        (failed, "TaskStateAborted"),
        (failed, "MapIterationAborted"),
        (failed, "TaskStateAborted"),
        (failed, "MapStateFailed"),
        (failed + 5, "ExecutionFailed"),
    ]
    assert play.wire()[failed]["mapIterationFailedEventDetails"] == {"name": "A", "index": 1}


def test_a_map_is_tried_again_with_all_its_items() -> None:
    retry = [{"ErrorEquals": ALL, "MaxAttempts": 1}]
    block = {"StartAt": "T", "States": {"T": task(TOKEN)}}
    play = Play(machine(A=map_(block, MaxConcurrency=1, Retry=retry)), [1, 2]).start()
    play.succeed("lost").fail()
    play.fire()
    play.succeed("one").succeed("two")
    assert play.output == ["one", "two"]
    assert [one.parameters.value for one in play.scheduled] == [1, 2, 1, 2]


def test_a_retried_iteration_keeps_its_item() -> None:
    retry = [{"ErrorEquals": ALL, "MaxAttempts": 1}]
    inner = task(TOKEN, Parameters={"i.$": "$$.Map.Item.Index", "n.$": "$$.State.RetryCount"}, Retry=retry)
    play = Play(machine(A=map_({"StartAt": "T", "States": {"T": inner}})), ["a", "b"]).start()
    play.fail(place=1)
    play.fire()
    assert play.scheduled[2].parameters.value == {"i": 1, "n": 1}
    play.succeed("B", place=2).succeed("A", place=0)
    assert play.output == ["A", "B"]


def test_a_wide_map_rewrites_counts_not_items() -> None:
    block = {"StartAt": "T", "States": {"T": task(TOKEN)}}
    items = [f"{number}-{'x' * 100}" for number in range(100)]
    play = Play(machine(A=map_(block)), items).start()
    body, writes = play.rows.bodies[1], play.rows.count_writes
    for place in range(90):
        play.succeed(place, place=place)
        assert play.rows.bodies[1] == body, "the items were written again"
        assert len(play.rows.counts[1]) < 40
    assert play.rows.count_writes - writes == 90
    for place in range(90, 100):
        play.succeed(place, place=place)
    assert play.output == list(range(100))


def test_results_survive_in_their_own_rows() -> None:
    block = {"StartAt": "T", "States": {"T": task(TOKEN)}}
    play = Play(
        machine(A=map_(block, Next="B"), B=map_(block | {"States": {"T2": task(TOKEN)}, "StartAt": "T2"})), [1, 2]
    )
    play.start().succeed("x", place=0)
    assert play.rows.outputs == {1: {0: '"x"'}}
    play.succeed("y", place=1)
    assert play.rows.outputs == {}, "the next Map of the same frame begins with none"
    play.succeed("z", place=3)
    assert play.rows.outputs == {1: {1: '"z"'}}
    play.succeed("w", place=2)
    assert play.output == ["w", "z"]


# Variables


def test_inner_scopes_see_the_outer_ones_and_vanish() -> None:
    inner = {
        "StartAt": "I",
        "States": {
            "I": pass_(Assign={"mine.$": "$$.Map.Item.Value"}, Next="J"),
            "J": pass_(Parameters={"outer.$": "$outer", "mine.$": "$mine"}),
        },
    }
    definition = machine(
        A=pass_(Assign={"outer": 1}, Next="M"), M=map_(inner, ItemsPath="$.xs", Next="Z"), Z=pass_(Assign={"outer": 2})
    )
    play = Play(definition, {"xs": ["a", "b"]}).start()
    assert play.output == [{"outer": 1, "mine": "a"}, {"outer": 1, "mine": "b"}]


def test_variables_are_assigned_from_the_values_at_entry() -> None:
    definition = machine(
        A=pass_(Assign={"x": 1, "y": 2}, Next="B"),
        B=pass_(Assign={"x.$": "$y", "y.$": "$x"}, Next="C"),
        C=pass_(Parameters={"x.$": "$x", "y.$": "$y"}),
    )
    assert Play(definition).start().output == {"x": 2, "y": 1}


def test_variables_wait_with_their_frame() -> None:
    definition = machine(
        A=pass_(Assign={"big": 2**70, "text": "é"}, Next="W"),
        W=wait(5, Assign={"waited": True}, Next="C"),
        C=pass_(Parameters={"big.$": "$big", "text.$": "$text", "waited.$": "$waited"}),
    )
    play = Play(definition).run()
    assert play.output == {"big": 2**70, "text": "é", "waited": True}


def test_a_branch_that_answers_at_once_beside_one_that_waits() -> None:
    def handler(command: Any) -> list[Any]:
        if command.parameters.value == 0:
            return [TaskSucceeded(command.frame, command.attempt, command.parameters)]
        return []

    play = Play(machine(A=map_({"StartAt": "T", "States": {"T": task(TOKEN)}})), [0, 1, 0], handler).start()
    assert play.types.count("MapIterationSucceeded") == 2
    play.succeed(1, place=1)
    assert play.output == [0, 1, 0]


@pytest.mark.parametrize("handler", [succeed("ok"), fail()])
def test_nothing_is_left_of_an_execution_that_ended(handler: Any) -> None:
    deep = {"StartAt": "P", "States": {"P": parallel(*[{"StartAt": n, "States": {n: task(TOKEN)}} for n in "QR"])}}
    play = Play(machine(A=map_(deep, MaxConcurrency=2)), [1, 2, 3], handler).run()
    assert play.finish is not None
    assert play.rows.bodies == {}
    assert play.rows.counts == {}
    assert play.rows.outputs == {}
