"""Recorded Express executions: answers of StartSyncExecution, and the end of the others in their log."""

import json
from typing import Any

import pytest

from tests.engine.recorded import Matcher, expand, parsed
from tests.services.machines.stubs import Play
from tests.services.machines.test_logging import cases, configuration, records

AREAS = ("express:express_async", "express:express_sync", "sfn_api_express")


def recorded(member: str) -> list[Any]:
    """Answer the cases that need nothing but the engine and have this member in what is expected."""
    found = [case for area in AREAS for case in cases(area) if case["kind"] == "execution" and case["tier"] == 1]
    return [pytest.param(case, id=case["id"]) for case in found if member in case["expected"]]


@pytest.mark.parametrize("case", recorded("start_sync_response"))
def test_a_caller_who_waits_is_answered_as_recorded(case: dict[str, Any], recorded_play: Play) -> None:
    play = recorded_play
    arn = play.create(expand(case["definition"]), type="EXPRESS")
    answer = play.call("StartSyncExecution", stateMachineArn=arn, input=json.dumps(case["input"]))
    assert not list(Matcher().differences(case["expected"]["start_sync_response"], parsed(answer)))


@pytest.mark.parametrize("case", recorded("observed_via"))
def test_an_execution_logs_its_end_as_recorded(case: dict[str, Any], recorded_play: Play) -> None:
    play = recorded_play
    definition = expand(case["definition"])
    arn = play.create(definition, type="EXPRESS", loggingConfiguration=configuration(data=True))
    play.start(arn, case["input"])
    found = records(play)
    assert not list(Matcher().differences(case["expected"]["observed_via"]["end_event"], parsed(found[-1])))
