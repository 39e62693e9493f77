"""What ended 90 days ago is forgotten; what runs is not, however old."""

import pytest

from tasuki.services.machines import retention
from tasuki.services.machines.errors import ExecutionDoesNotExist
from tests.services.machines.stubs import PASS, Play, task


def test_ended_executions_are_forgotten_after_90_days(play: Play) -> None:
    arn = play.create(PASS)
    old = play.start(arn, name="one")
    running = play.start(
        play.create(task("sqs:sendMessage.waitForTaskToken", {"MessageBody.$": "$$.Task.Token"}), "waits")
    )
    play.house.advance(days=30)
    younger = play.start(arn)
    play.house.advance(days=59)
    assert play.describe(old)["status"] == "SUCCEEDED"
    play.house.advance(days=2)
    with pytest.raises(ExecutionDoesNotExist):
        play.describe(old)
    assert play.describe(younger)["status"] == "SUCCEEDED"
    assert play.describe(running)["status"] == "RUNNING"
    assert play.rows("history") == 2
    assert play.start(arn, name="one") == old
    play.call("SendTaskSuccess", taskToken=play.sqs.calls[0][0]["MessageBody"], output="1")
    assert play.output(running) == 1


def test_forgetting_goes_through_all_in_slices(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SLICE", 3)
    arn = play.create(PASS)
    for _ in range(10):
        play.start(arn)
    play.house.advance(days=91)
    assert (play.rows("executions"), play.rows("history")) == (1, 1)  # the newest keeps its id from being given again
