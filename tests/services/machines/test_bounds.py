"""Units stay small: executions that go on take turns, wide Maps work through the inbox, nothing is lost on the way."""

import json
from functools import partial
from typing import Any

import pytest

from tasuki.services.machines.definitions import Definitions, digest_of
from tasuki.services.machines.errors import InvalidExecutionInput
from tasuki.services.machines.express_state import pack_standing, unpack_standing
from tasuki.services.switchboard import Caller, Ending
from tests.engine.player import Play as Engine
from tests.services.machines.stubs import PASS, Play, task


def counter(limit: int) -> dict[str, Any]:
    """A machine that loops: two transitions a round."""
    return {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Pass", "Parameters": {"n.$": "States.MathAdd($.n, 1)"}, "Next": "C"},
            "C": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.n", "NumericGreaterThanEquals": limit, "Next": "S"}],
                "Default": "A",
            },
            "S": {"Type": "Succeed"},
        },
    }


def test_a_long_run_is_many_units(play: Play) -> None:
    execution = play.run(counter(1000), {"n": 0})
    assert play.describe(execution)["status"] == "RUNNING"
    assert play.left_over() == {"frames": 1, "ready": 1}
    play.house.drain()
    assert play.output(execution) == {"n": 1000}
    assert play.rows("history") > 5
    assert play.left_over() == {}


def test_executions_that_go_on_take_turns(play: Play) -> None:
    arn = play.create(counter(1000))
    play.start(arn, {"n": 0})
    play.start(arn, {"n": 0})
    poll = play.house.rooms["machines"].polls[0]
    served = []
    for _ in range(6):
        row = play.house.unit(lambda tx: tx.one("SELECT execution FROM ready ORDER BY turn"))
        assert row is not None
        served.append(row[0])
        play.house.unit(poll.run)
    assert served == [1, 2, 1, 2, 1, 2]


def test_rounds_that_share_a_commit_serve_different_executions(play: Play) -> None:
    arn = play.create(counter(1000))
    for _ in range(3):
        play.start(arn, {"n": 0})
    poll = play.house.rooms["machines"].polls[0]
    assert play.house.unit(poll.look) == play.house.now
    answers = [play.house.unit(poll.run) for _ in range(5)]
    assert answers == [play.house.now, play.house.now, None, None, None]
    assert play.house.unit(lambda tx: tx.all("SELECT execution FROM ready ORDER BY turn")) == [(1,), (2,), (3,)]


def test_an_execution_whose_unit_fails_holds_up_nobody(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    class Fault(Exception):
        pass

    def fault(*_: object) -> None:
        raise Fault

    bad = play.create(task("sqs:sendMessage"), "bad")
    arn = play.create(counter(1000), "good")
    target = play.house.switchboard.targets["states"]
    caller = Caller("000000000000", "us-east-1", "k", "")
    broken = play.house.unit(lambda tx: target.deliver(tx, bad, "{}", None, caller))
    good = play.house.unit(lambda tx: target.deliver(tx, arn, '{"n": 0}', None, caller))
    working, play.sqs.call = play.sqs.call, fault  # type: ignore[method-assign,assignment]
    play.house.drain()
    assert "Fault" in caplog.text
    assert play.output(good) == {"n": 1000}
    assert play.describe(broken)["status"] == "RUNNING"
    play.sqs.call = working  # type: ignore[method-assign]
    play.house.advance(seconds=10)
    assert play.describe(broken)["status"] == "SUCCEEDED"
    assert play.left_over() == {}


def test_stopping_what_goes_on(play: Play) -> None:
    execution = play.run(counter(10**9), {"n": 0})
    play.call("StopExecution", executionArn=execution)
    play.house.drain()
    assert play.describe(execution)["status"] == "ABORTED"
    assert play.left_over() == {}


def wide(processor: dict[str, Any]) -> dict[str, Any]:
    """A Map of Maps: AWS lets one inline Map have some forty iterations open, so this is how many tasks start at once."""
    inner = {"StartAt": "I", "States": {"I": {"Type": "Map", "ItemProcessor": processor, "End": True}}}
    return {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemProcessor": inner, "End": True}}}


def until_something_waits_in_the_inbox(play: Play) -> None:
    poll = play.house.rooms["machines"].polls[0]
    for _ in range(20):
        if play.rows("inbox"):
            return
        play.house.unit(poll.run)
    raise AssertionError("the unit was never full of follow-ups")


def test_a_wide_map_of_tasks_starts_and_ends_each_once(play: Play) -> None:
    items = [[f"{row}.{column}" for column in range(40)] for row in range(12)]
    execution = play.run(wide(task("ecs:runTask.sync", {"Group.$": "$"})), items)
    until_something_waits_in_the_inbox(play)
    play.house.drain()
    assert sorted(call[0]["Group"] for call in play.ecs.calls) == sorted(name for row in items for name in row)
    for parameters, caller in list(play.ecs.calls):
        assert caller.watcher is not None
        ending = Ending(succeeded=True, output={"N": parameters["Group"]})
        play.house.unit(partial(play.house.switchboard.finished, watcher=caller.watcher, ending=ending))
    play.house.drain()
    assert play.output(execution) == [[{"N": name} for name in row] for row in items]
    events = play.events(execution)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert play.left_over() == {}


def test_stopping_a_wide_map_stops_every_task_once(play: Play) -> None:
    execution = play.run(wide(task("ecs:runTask.sync", {})), [list(range(40))] * 12)
    until_something_waits_in_the_inbox(play)
    play.call("StopExecution", executionArn=execution)
    handles = [handle for handle, _ in play.ecs.cancelled]
    assert len(handles) == len(set(handles)) == len(play.ecs.calls) > 0
    assert play.left_over() == {}


def test_two_callbacks_in_a_wide_map_keep_their_order(play: Play) -> None:
    processor = task("sqs:sendMessage.waitForTaskToken", {"MessageBody.$": "$$.Task.Token"}, HeartbeatSeconds=60)
    execution = play.run(wide(processor), [list(range(40))] * 8)
    until_something_waits_in_the_inbox(play)
    answered = 0
    while answered < 320:  # answers come while submissions still wait in the inbox
        for call in range(answered, len(play.sqs.calls)):
            play.call("SendTaskSuccess", taskToken=play.sqs.calls[call][0]["MessageBody"], output=str(call))
            answered += 1
        play.house.drain()
    assert sorted(number for row in play.output(execution) for number in row) == list(range(320))
    events = [event for event in play.events(execution) if event["type"].startswith("Task")]
    submitted = {event["id"] for event in events if event["type"] == "TaskSubmitted"}
    succeeded = [event for event in events if event["type"] == "TaskSucceeded"]
    assert {event["previousEventId"] for event in succeeded} == submitted
    assert len(submitted) == len(succeeded) == 320


def test_parsed_machines_are_kept_by_content_within_a_bound() -> None:
    text = json.dumps(PASS)
    kept = Definitions(kept_characters=2 * len(text) + 10)
    first = kept.parse(text, digest_of(text))
    assert kept.parse(text, digest_of(text)) is first
    others = [json.dumps({**PASS, "Comment": str(n)}) for n in range(3)]
    for other in others:
        kept.parse(other, digest_of(other))
    assert kept.parse(text, digest_of(text)) is not first


def test_a_frame_written_while_ready_is_found_after_a_restart(play: Play) -> None:
    processor = counter(100)
    machine = {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemProcessor": processor, "End": True}}}
    execution = play.run(machine, [{"n": n} for n in range(0, 100, 10)])
    play.house.drain()
    assert play.output(execution) == [{"n": 100}] * 10
    assert play.left_over() == {}


def test_an_execution_that_cannot_go_on_is_said_and_holds_up_no_other(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    arn = play.create({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 5, "End": True}}})
    bad, good = play.start(arn, {}), play.start(arn, {})
    play.house.unit(lambda tx: tx.run("UPDATE frames SET body = ?, ready = 1 WHERE execution = 1", (b"\0",)))
    play.house.unit(lambda tx: tx.run("INSERT INTO ready (execution, goes_on) VALUES (1, 1)"))
    play.house.advance(seconds=6)
    assert play.describe(good)["status"] == "SUCCEEDED"
    assert play.describe(bad)["status"] == "RUNNING"
    assert "execution 1 could not go on" in caplog.text
    assert "timer machines:1:1 failed" in caplog.text


@pytest.mark.parametrize(("count", "status"), [(38, "SUCCEEDED"), (42, "FAILED")])
def test_variables_count_over_units(play: Play, count: int, status: str) -> None:
    states: dict[str, Any] = {
        f"S{n}": {"Type": "Wait", "Seconds": 1, "Assign": {f"v{n}.$": "$.x"}, "Next": f"S{n + 1}"} for n in range(count)
    }
    states[f"S{count}"] = {"Type": "Pass", "Result": 0, "End": True}
    execution = play.start(play.create({"StartAt": "S0", "States": states}), {"x": "x" * 255_000})
    play.house.advance(minutes=2)
    seen = play.describe(execution)
    assert (seen["status"], seen.get("error")) == (status, "States.DataLimitExceeded" if status == "FAILED" else None)
    assert play.left_over() == {}


def test_an_express_execution_counts_its_variables_when_it_is_read() -> None:
    state = {"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 1, "Assign": {"v": "xyz"}, "Next": "B"}}}
    state["States"]["B"] = {"Type": "Wait", "Seconds": 1, "End": True}  # type: ignore[index]
    played = Engine(state).start()
    played.fire()
    execution = played.execution
    execution.frames.get(1)
    unpack_standing(execution, pack_standing(execution, (), goes_on=False))
    assert execution.frames.variable_bytes == len('"xyz"')


@pytest.mark.parametrize("depth", range(700, 1_000, 20))
def test_an_input_that_is_taken_is_not_too_deep_for_what_comes_after(play: Play, depth: int) -> None:
    target = play.house.switchboard.targets["states"]
    arn = play.create(PASS)
    caller = Caller("000000000000", "us-east-1", "k", "")
    payload = "[" * depth + "]" * depth
    try:
        play.house.unit(lambda tx: target.deliver(tx, arn, payload, None, caller))
    except InvalidExecutionInput:
        assert depth > 800
        return
    play.house.drain()
    assert [one["status"] for one in play.call("ListExecutions", stateMachineArn=arn)["executions"]] == ["SUCCEEDED"]
