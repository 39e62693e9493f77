"""State transitions in a second: who comes too soon waits in line, and nobody fails."""

from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services.machines.throttling import AT_A_TURN
from tests import stores
from tests.services.machines.stubs import Play, task
from tests.services.machines.test_map_runs import machine as map_machine


def chain(length: int) -> dict[str, Any]:
    states: dict[str, Any] = {f"P{n}": {"Type": "Pass", "Next": f"P{n + 1}"} for n in range(length - 1)}
    return {"StartAt": "P0", "States": {**states, f"P{length - 1}": {"Type": "Pass", "End": True}}}


def entered(play: Play, execution: str) -> int:
    return sum(kind.endswith("StateEntered") for kind in play.types(execution))


@pytest.fixture
def slow() -> Iterator[Play]:
    play = Play(state_transitions_per_second=10, state_transitions_burst=5)
    yield play
    play.house.close()


def test_states_are_entered_at_the_rate_after_the_burst(slow: Play) -> None:
    execution = slow.run(chain(15))
    assert entered(slow, execution) == 5
    due = slow.house.drain()
    assert due == slow.house.now + 100
    assert slow.describe(execution)["status"] == "RUNNING"
    slow.house.advance(ms=99)
    assert entered(slow, execution) == 5
    slow.house.advance(ms=1)
    assert entered(slow, execution) == 6
    slow.house.advance(ms=800)
    assert entered(slow, execution) == 14
    slow.house.advance(ms=100)
    assert slow.describe(execution)["status"] == "SUCCEEDED"
    assert slow.left_over() == {}
    due = slow.house.drain()
    assert due is None or due > slow.house.now


def test_nothing_is_looked_at_while_the_bucket_is_empty(slow: Play) -> None:
    slow.run(chain(100))
    slow.house.drain()
    [turns, *_] = slow.house.rooms["machines"].polls
    assert slow.house.unit(turns.look) == slow.house.now + 100
    assert slow.house.unit(turns.run) == slow.house.now + 100
    assert slow.rows("ready") == 1


def test_the_line_is_served_in_turn(slow: Play) -> None:
    arn = slow.create(chain(20))
    first = slow.start(arn)
    others = [slow.start(arn) for _ in range(3)]
    assert [entered(slow, one) for one in others] == [0, 0, 0]
    assert slow.types(others[0]) == ["ExecutionStarted"]
    slow.house.advance(seconds=4)
    counts = [entered(slow, one) for one in (first, *others)]
    assert sum(counts) == 45
    assert (min(counts[1:]), max(counts)) == (10, 15)


def test_who_comes_late_does_not_overtake(slow: Play) -> None:
    arn = slow.create(chain(20))
    first = slow.start(arn)
    slow.house.advance(ms=500)
    assert entered(slow, first) == 10
    late = slow.start(arn)
    slow.house.clock.set(slow.house.now + 100)
    slow.call("StartExecution", stateMachineArn=arn)
    assert entered(slow, late) == 0
    slow.house.drain()
    assert (entered(slow, first), entered(slow, late)) == (11, 0)


def test_what_happens_to_an_execution_is_written_at_once(slow: Play) -> None:
    job = task("ecs:runTask.sync", {"TaskDefinition": "job"})
    job["States"]["T"].pop("End")
    job["States"]["T"]["Next"] = "P"
    job["States"]["P"] = {"Type": "Pass", "End": True}
    arn = slow.create(job)
    execution = slow.start(arn)
    slow.start(slow.create(chain(50), "other"))
    slow.house.drain()
    watcher = slow.ecs.calls[0][1].watcher
    assert watcher is not None
    slow.finish_task()
    assert slow.types(execution)[-1] == "TaskSubmitted", "what comes by inbox stands in line"
    slow.call("StopExecution", executionArn=execution)
    assert slow.describe(execution)["status"] == "ABORTED"
    waiting = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 1, "End": True}}}
    timed = slow.start(slow.create({**waiting, "TimeoutSeconds": 1}, "w"))
    slow.house.advance(seconds=1)
    assert slow.describe(timed)["status"] == "TIMED_OUT"


def test_express_machines_have_no_such_quota(slow: Play) -> None:
    slow.run(chain(50))
    arn = slow.create(chain(50), "express", type="EXPRESS")
    assert slow.call("StartSyncExecution", stateMachineArn=arn)["status"] == "SUCCEEDED"


def test_children_of_map_runs_stand_in_line_too(slow: Play) -> None:
    execution = slow.run(map_machine(chain(3)), [1, 2, 3, 4])
    slow.house.advance(ms=700)
    assert slow.describe(execution)["status"] == "RUNNING"
    slow.house.advance(ms=200)
    assert slow.output(execution) == [1, 2, 3, 4]


def test_a_high_rate_is_kept_without_waking_for_every_token() -> None:
    play = Play(state_transitions_per_second=5_000, state_transitions_burst=1_000)
    try:
        executions = [play.start(play.create(chain(300), f"m{n}")) for n in range(10)]
        due = play.house.drain()
        assert sum(entered(play, one) for one in executions) == 1_000
        assert due == play.house.now + 20
        play.house.advance(ms=200)
        assert sum(entered(play, one) for one in executions) == 2_000
        counts = [entered(play, one) for one in executions]
        # Side by side, two that are served at once may change places.
        apart = AT_A_TURN if stores.shelf is None else 2 * AT_A_TURN
        assert max(counts[5:]) - min(counts[5:]) <= apart
        play.house.advance(ms=200)
        assert {play.describe(one)["status"] for one in executions} == {"SUCCEEDED"}
    finally:
        play.house.close()
