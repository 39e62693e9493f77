"""Callbacks: SendTaskSuccess, SendTaskFailure, SendTaskHeartbeat (PITFALLS PF-14, PF-24, PF-28)."""

from typing import Any

import pytest

from tasuki.services.machines.errors import InvalidOutput, InvalidToken, TaskTimedOut
from tests.services.machines.stubs import Play, task

MESSAGE = {"QueueUrl": "http://q", "MessageBody": {"token.$": "$$.Task.Token"}}


def callback(**more: Any) -> dict[str, Any]:
    return task("sqs:sendMessage.waitForTaskToken", MESSAGE, **more)


def token(play: Play, call: int = -1) -> str:
    return str(play.sqs.calls[call][0]["MessageBody"]["token"])


def test_success_ends_the_task(play: Play) -> None:
    execution = play.run(callback())
    assert play.types(execution)[-1] == "TaskSubmitted"
    play.call("SendTaskSuccess", taskToken=token(play), output='{"a": 1}')
    assert play.output(execution) == {"a": 1}
    assert play.left_over() == {}


def test_failure_fails_it_with_its_words_or_without(play: Play) -> None:
    arn = play.create(callback())
    execution = play.start(arn)
    play.call("SendTaskFailure", taskToken=token(play), error="E", cause="C")
    described = play.describe(execution)
    assert (described["status"], described["error"], described["cause"]) == ("FAILED", "E", "C")
    execution = play.start(arn)
    play.call("SendTaskFailure", taskToken=token(play))
    assert play.describe(execution)["status"] == "FAILED"
    assert not {"error", "cause"} & play.describe(execution).keys()


def test_heartbeats_keep_it_alive_and_write_neither_history_nor_timers(play: Play) -> None:
    execution = play.run(callback(HeartbeatSeconds=60))
    timers = play.house.unit(lambda tx: tx.all("SELECT key, due FROM timers ORDER BY due"))
    for _ in range(5):
        play.house.advance(seconds=50)
        before = len(play.events(execution))
        play.call("SendTaskHeartbeat", taskToken=token(play))
        assert len(play.events(execution)) == before
    assert play.house.unit(lambda tx: tx.all("SELECT key FROM timers ORDER BY due")) == [(key,) for key, _ in timers]
    assert play.describe(execution)["status"] == "RUNNING"
    play.house.advance(seconds=60)
    described = play.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", "States.Timeout")
    assert described["stopDate"] - described["startDate"] == 310_000


def test_many_executions_heartbeat_and_every_token_stays_good(play: Play) -> None:
    arn = play.create(callback(HeartbeatSeconds=60))
    executions = [play.start(arn) for _ in range(6)]
    assert len({token(play, call) for call in range(6)}) == 6
    for _ in range(3):
        play.house.advance(seconds=40)
        for call in range(6):
            play.call("SendTaskHeartbeat", taskToken=token(play, call))
    for call, execution in enumerate(executions):
        play.call("SendTaskSuccess", taskToken=token(play, call), output=str(call))
        assert play.output(execution) == call


@pytest.mark.parametrize("how", ["timed out", "answered", "stopped", "retried"])
def test_a_token_whose_task_is_over_has_timed_out(play: Play, how: str) -> None:
    retry = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1}] if how == "retried" else []
    execution = play.run(callback(TimeoutSeconds=10, Retry=retry))
    first = token(play)
    if how == "timed out":
        play.house.advance(seconds=10)
    elif how == "answered":
        play.call("SendTaskSuccess", taskToken=first, output="1")
    elif how == "stopped":
        play.call("StopExecution", executionArn=execution)
    else:
        play.call("SendTaskFailure", taskToken=first, error="E")
        play.house.advance(seconds=1)
        assert token(play) != first
    events = play.events(execution)
    for operation, more in (("SendTaskSuccess", {"output": "1"}), ("SendTaskFailure", {}), ("SendTaskHeartbeat", {})):
        with pytest.raises(TaskTimedOut, match="Task Timed Out: 'Provided task does not exist anymore'"):
            play.call(operation, taskToken=first, **more)
    assert play.events(execution) == events


def test_what_is_no_token_is_refused(play: Play) -> None:
    play.run(callback())
    for wrong in ("nothing", token(play)[:-1], token(play).upper() + "Z"):
        with pytest.raises(InvalidToken, match="Invalid Token: 'Invalid token'"):
            play.call("SendTaskSuccess", taskToken=wrong, output="1")


def test_output_must_be_json(play: Play) -> None:
    execution = play.run(callback())
    with pytest.raises(InvalidOutput):
        play.call("SendTaskSuccess", taskToken=token(play), output="{")
    assert play.describe(execution)["status"] == "RUNNING"


def test_the_work_of_a_callback_is_not_stopped(play: Play) -> None:
    execution = play.run(task("ecs:runTask.waitForTaskToken", {"Group.$": "$$.Task.Token"}))
    assert play.ecs.calls[0][1].watcher is None
    play.call("StopExecution", executionArn=execution)
    assert play.ecs.cancelled == []
