"""Every recorded call of EventBridge that concerns what is built, played against the room."""

import json
from typing import Any

import pytest

from tasuki.services import buses, deliveries, queues
from tasuki.testing import House
from tasuki.values.errors import DomainError
from tests.services.buses.recorded import FOLDER, differences, read_traces

OURS = frozenset({"events", "sqs"})
ABSENT = pytest.mark.skipif(not FOLDER.exists(), reason=f"the recorded answers are not here: {FOLDER}")

# Where we knowingly answer otherwise than the recording, and why.
MISSES = {
    "test_put_events_exceed_limit_ten_entries": "AWS's list of an entry's members has two that botocore does not know",
    "test_list_event_buses_with_prefix": "the recording calls two buses by one token",
    "test_put_target_id_validation": "the recording holds a short id in the place of one that was too long",
}
NOT_OURS = {
    "regions1": "three regions in one trace; a house serves one",
    "archive_and_replay/": "archives and replays are not offered",
}


def _marked(trace: dict[str, Any]) -> Any:
    name = trace["id"].removeprefix("events/")
    others = {step["service"] for step in trace["steps"]} - OURS
    marks = []
    why = next((why for known, why in NOT_OURS.items() if known in name), None)
    if others:
        why = f"needs rooms that come later: {', '.join(sorted(others))}"
    if why is not None:
        marks.append(pytest.mark.skip(reason=why))
    elif (miss := next((why for known, why in MISSES.items() if f"/{known}" in name), None)) is not None:
        marks.append(pytest.mark.xfail(reason=miss, strict=True))
    return pytest.param(trace, id=name, marks=marks)


@ABSENT
@pytest.mark.parametrize("trace", [_marked(trace) for trace in read_traces()])
def test_trace(trace: dict[str, Any]) -> None:
    assert differences(trace) == []


def _expressions() -> list[dict[str, Any]]:
    path = FOLDER.parent / "schedules" / "aws_validated.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    return [row for row in rows if row["api"] == "events.PutRule"]


@ABSENT
@pytest.mark.parametrize("row", [pytest.param(row, id=row["expression"]) for row in _expressions()])
def test_schedule_expression(row: dict[str, Any]) -> None:
    with House(queues.room, deliveries.room, buses.room) as house:
        if row["valid"]:
            assert house.call("events", "PutRule", Name="r", ScheduleExpression=row["expression"])["RuleArn"]
            return
        more: dict[str, Any] = {}
        if "default event bus" in row["error_message"]:
            house.call("events", "CreateEventBus", Name="b")
            more = {"EventBusName": "b"}
        with pytest.raises(DomainError) as refused:
            house.call("events", "PutRule", Name="r", ScheduleExpression=row["expression"], **more)
        assert (refused.value.code, refused.value.message) == (row["error_code"], row["error_message"])


@ABSENT
def test_all_forty_expressions_are_there() -> None:
    assert len(_expressions()) == 40
