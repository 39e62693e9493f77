"""Deliveries from pipes: the execution and its turn in the sender's unit, the first step later."""

from typing import Any

import pytest

from tasuki.services.machines.errors import StateMachineDoesNotExist
from tasuki.services.switchboard import Caller
from tests.services.machines.stubs import PASS, WAIT, Play

FIRE = {"InvocationType": "FIRE_AND_FORGET"}
CALLER = Caller(
    "000000000000", "us-east-1", "message-1", "Root=1-1-1", origin="arn:aws:pipes:us-east-1:000000000000:pipe/p"
)


def deliver(play: Play, arn: str, payload: str = "[1]", name: str | None = None) -> str:
    target = play.house.switchboard.targets["states"]
    return play.house.unit(lambda tx: target.deliver(tx, arn, payload, name, CALLER))


def test_a_delivery_is_stepped_in_a_later_unit(play: Play) -> None:
    execution = deliver(play, play.create(PASS))
    assert play.describe(execution)["status"] == "RUNNING"
    assert play.events(execution) == []
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["input"], described["traceHeader"]) == ("SUCCEEDED", "[1]", "Root=1-1-1")
    assert play.left_over() == {}


def test_who_started_it_is_on_record(play: Play) -> None:
    deliver(play, play.create(PASS))
    row = play.house.unit(lambda tx: tx.one("SELECT origin, origin_id FROM executions"))
    assert row == (CALLER.origin, "message-1")


def test_a_second_delivery_under_a_name_starts_nothing(play: Play) -> None:
    arn = play.create(WAIT)
    first = deliver(play, arn, "[1]", "message-1")
    assert deliver(play, arn, "[2]", "message-1") == first
    play.house.advance(minutes=2)
    assert deliver(play, arn, "[1]", "message-1") == first
    assert play.rows("executions") == 1


def test_a_delivery_to_nobody_fails_in_the_senders_unit(play: Play) -> None:
    with pytest.raises(StateMachineDoesNotExist):
        deliver(play, "arn:aws:states:us-east-1:000000000000:stateMachine:m")


def test_a_timeout_begins_with_the_start(play: Play) -> None:
    execution = deliver(play, play.create({**WAIT, "TimeoutSeconds": 30}))
    play.house.advance(seconds=30)
    assert play.describe(execution)["status"] == "TIMED_OUT"
    assert play.left_over() == {}


def test_a_target_is_checked_before_a_pipe_is_made(play: Play) -> None:
    arn = play.create(PASS)
    target = play.house.switchboard.targets["states"]

    def check(arn: str, parameters: dict[str, Any]) -> str | None:
        return play.house.unit(lambda tx: target.check(tx, arn, parameters))

    assert check(arn, FIRE) is None
    assert "FIRE_AND_FORGET" in (check(arn, {}) or "")
    assert "REQUEST_RESPONSE" in (check(arn, {"InvocationType": "REQUEST_RESPONSE"}) or "")
    assert "Does Not Exist" in (check(arn + "x", FIRE) or "")
    assert "Invalid Arn" in (check("nothing", FIRE) or "")
