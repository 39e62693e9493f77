"""Status changes of Standard executions are told in the unit that makes them, with AWS's payload."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tasuki.services.switchboard import Happening
from tasuki.store.store import Tx
from tests.engine.recorded import FOLDER, Matcher, parsed
from tests.services.machines.stubs import PASS, WAIT, Play, task
from tests.services.machines.test_map_runs import machine


class Told:
    """A status change as a bus gets it."""

    def __init__(self, happening: Happening) -> None:
        self.account = happening.account
        self.execution = happening.resources[0]
        self.detail: dict[str, Any] = json.loads(happening.detail)


def listen(play: Play) -> list[Told]:
    heard: list[Told] = []

    def publish(_tx: Tx, happenings: Sequence[Happening]) -> None:
        heard.extend(map(Told, happenings))

    play.house.switchboard.wants = lambda *_: True
    play.house.switchboard.publish = publish
    return heard


def test_the_payload_is_the_recorded_one(recorded_play: Play) -> None:
    play = recorded_play
    path = FOLDER / "cases.jsonl"
    if not path.exists():
        pytest.skip("the recorded AWS answers are not beside this checkout")
    with path.open() as lines:
        case = next(c for c in map(json.loads, lines) if c["id"] == "asl/base:base/test_event_bridge_events_base")
    heard = listen(play)
    play.start(play.create(case["definition"]), case["input"])
    play.house.advance(minutes=1)
    matcher = Matcher()
    events = case["expected"]["observed_via"]["stepfunctions_events"]
    assert len(events) == len(heard)
    for event, change in zip(events, heard, strict=True):
        said = event["detail"] | {"name": "<name>", "startDate": 0, "stopDate": 0}
        ours = parsed(change.detail) | {"startDate": 0, "stopDate": 0}
        assert not list(matcher.differences(said, ours))
        assert (event["account"], [change.execution]) == (change.account, [change.detail["executionArn"]])


@pytest.mark.parametrize("later", [False, True])
def test_a_start_and_an_end_are_told_once_each(play: Play, *, later: bool) -> None:
    heard = listen(play)
    child = play.create(WAIT, "child")
    if later:
        play.run(task("states:startExecution", {"StateMachineArn": child, "Name": "c"}))
        play.house.drain()
    else:
        play.start(child, name="c")
        play.start(child, name="c")  # a repeat is no second start
    play.house.advance(seconds=60)
    told = [change.detail for change in heard if change.detail["name"] == "c"]
    assert [detail["status"] for detail in told] == ["RUNNING", "SUCCEEDED"]
    assert told[1]["stopDate"] - told[1]["startDate"] == 60_000
    assert told[0]["stopDate"] is None


def test_how_it_ended(play: Play) -> None:
    heard = listen(play)
    execution = play.run(WAIT)
    play.call("StopExecution", executionArn=execution, error="E", cause="C")
    detail = heard[-1].detail
    assert (detail["status"], detail["error"], detail["cause"]) == ("ABORTED", "E", "C")
    assert (detail["redriveStatus"], detail["redriveStatusReason"]) == ("REDRIVABLE", None)
    assert (detail["output"], detail["outputDetails"]) == (None, None)


@pytest.mark.parametrize(("size", "included"), [(100_000, (True, True)), (130_000, (False, True))])
def test_large_documents_are_left_out(play: Play, size: int, included: tuple[bool, bool]) -> None:
    heard = listen(play)
    play.run({"StartAt": "S", "States": {"S": {"Type": "Succeed"}}}, "x" * size)
    detail: dict[str, Any] = heard[-1].detail
    assert (detail["inputDetails"]["included"], detail["outputDetails"]["included"]) == included
    assert (detail["input"] is not None, detail["output"] is not None) == included


def test_a_listener_belongs_to_the_unit(play: Play) -> None:
    class Fault(Exception):
        pass

    def fault(*_: object) -> None:
        raise Fault

    arn = play.create(PASS)
    play.house.switchboard.wants = lambda *_: True
    play.house.switchboard.publish = fault
    with pytest.raises(Fault):
        play.start(arn)
    assert play.rows("executions") == 0


def test_express_executions_tell_nothing(play: Play) -> None:
    heard = listen(play)
    arn = play.create(PASS, type="EXPRESS")
    play.start(arn)
    play.call("StartSyncExecution", stateMachineArn=arn)
    assert heard == []


@pytest.mark.parametrize(("kind", "told"), [("STANDARD", ["RUNNING", "SUCCEEDED"]), ("EXPRESS", [])])
def test_children_of_a_map_run(play: Play, kind: str, told: list[str]) -> None:
    heard = listen(play)
    play.run(machine(PASS, kind), [1])
    play.house.drain()
    assert [change.detail["status"] for change in heard if "/L:" in change.execution] == told
    assert [change.detail["status"] for change in heard if "/L:" not in change.execution] == ["RUNNING", "SUCCEEDED"]


def test_the_version_is_told(play: Play) -> None:
    heard = listen(play)
    version = play.call("PublishStateMachineVersion", stateMachineArn=play.create(PASS))["stateMachineVersionArn"]
    play.start(version)
    assert [change.detail["stateMachineVersionArn"] for change in heard] == [version] * 2
