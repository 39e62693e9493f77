"""Handovers: what was passed on can be asked for, and is forgotten after its time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasuki.services import handovers
from tasuki.services.handovers.errors import ValidationException
from tasuki.services.switchboard import Handover
from tasuki.testing import House
from tasuki.values.config import Config

EXECUTION = "arn:aws:states:us-east-1:000000000000:execution:m:e"


@pytest.fixture
def house() -> Iterator[House]:
    with House(handovers.room) as made:
        yield made


def record(
    house: House, *ids: str, target_id: str = EXECUTION, trace: str = "Root=1", outcome: str = "DELIVERED"
) -> None:
    def unit(tx: Any) -> None:
        for id_ in ids:
            house.switchboard.record(
                tx, Handover("arn:queue", id_, "arn:pipe", "arn:machine", target_id, trace, outcome)
            )

    house.unit(unit)


def listed(house: House, **given: Any) -> list[str]:
    return [entry["MessageId"] for entry in house.call("tasuki", "ListHandovers", given)["Handovers"]]


def test_what_a_schedule_posted_is_asked_for_by_source(house: House) -> None:
    record(house, "m1")

    def unit(tx: Any) -> None:
        for source, tick, outcome in (
            ("arn:s", "t1", "FAILED: x"),
            ("arn:s", "t1", "DELIVERED"),
            ("arn:r", "e", "DELIVERED"),
        ):
            house.switchboard.record(tx, Handover(source, tick, "", "arn:machine", "", "Root=1", outcome))

    house.unit(unit)
    assert listed(house, SourceArn="arn:s") == ["t1", "t1"]
    assert listed(house, SourceArn="arn:queue") == [], "a pipe's hand-overs are found by message"


def test_asked_for_by_trace_message_and_execution(house: House) -> None:
    record(house, "m1", "m2")
    record(house, "m3", target_id="", trace="Root=2", outcome="FILTERED")
    record(house, "m1", target_id=EXECUTION + "2", trace="Root=3")
    assert listed(house) == ["m1", "m2", "m3", "m1"]
    assert listed(house, Trace="Root=2") == ["m3"]
    assert listed(house, MessageId="m1") == ["m1", "m1"]
    assert listed(house, ExecutionArn=EXECUTION) == ["m1", "m2"]
    assert listed(house, ExecutionArn="") == []
    assert listed(house, Trace="unknown") == []
    assert house.call("tasuki", "ListHandovers", {"Trace": "Root=2"})["Handovers"] == [
        {
            "At": "2026-01-01T00:00:00.000Z",
            "SourceArn": "arn:queue",
            "MessageId": "m3",
            "PipeArn": "arn:pipe",
            "TargetArn": "arn:machine",
            "Trace": "Root=2",
            "Outcome": "FILTERED",
        }
    ]


def test_a_correlation_id_of_any_length_is_kept_as_far_as_an_index_goes(house: House) -> None:
    """Found by attack: one header of seven kilobytes, and PostgreSQL refused whatever was to be passed on after it."""
    trace = "Root=1-" + "".join(f"{number * 7919 % 65_521:04x}" for number in range(2_000))
    record(house, "m1", trace=trace)
    assert listed(house, Trace=trace) == ["m1"]
    assert listed(house, Trace=trace[:500]) == ["m1"]
    assert listed(house, Trace=trace[:499]) == []


def test_whether_an_execution_was_given_anything(house: House) -> None:
    record(house, "m1")
    record(house, "m2", target_id="", outcome="FILTERED")
    assert house.unit(lambda tx: house.switchboard.handed_over(tx, EXECUTION))
    assert not house.unit(lambda tx: house.switchboard.handed_over(tx, EXECUTION + "2"))
    assert not house.unit(lambda tx: house.switchboard.handed_over(tx, ""))


def test_pages(house: House) -> None:
    record(house, *map(str, range(5)))
    page = house.call("tasuki", "ListHandovers", {"MaxResults": 2})
    seen = listed(house, MaxResults=2)
    while "NextToken" in page:
        page = house.call("tasuki", "ListHandovers", {"MaxResults": 2, "NextToken": page["NextToken"]})
        seen += [entry["MessageId"] for entry in page["Handovers"]]
    assert seen == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"Trace": "a", "MessageId": "b"}, "one of"),
        ({"Trace": 1}, "must be a string"),
        ({"Unknown": 1}, "doesn't know Unknown"),
        ({"MaxResults": 0}, "between 1 and 1000"),
        ({"MaxResults": True}, "between 1 and 1000"),
        ({"MaxResults": 1001}, "between 1 and 1000"),
        ({"NextToken": "garbage"}, "NextToken"),
        ({"NextToken": 5}, "NextToken"),
    ],
)
def test_refused(house: House, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationException, match=words):
        house.call("tasuki", "ListHandovers", given)


def test_a_token_opens_only_its_own_listing(house: House) -> None:
    record(house, "m1", "m2")
    token = house.call("tasuki", "ListHandovers", {"MaxResults": 1})["NextToken"]
    with pytest.raises(ValidationException, match="NextToken"):
        house.call("tasuki", "ListHandovers", {"Trace": "Root=1", "NextToken": token})


def test_kept_for_thirty_days_and_forgotten_in_slices(house: House) -> None:
    record(house, *(f"old{n}" for n in range(1200)))
    house.advance(days=29, hours=23)
    record(house, "young")
    assert len(listed(house, MaxResults=1000)) == 1000
    house.advance(hours=1)
    assert listed(house) == ["young"]
    house.advance(days=31)
    assert listed(house) == []


def test_kept_as_long_as_the_configuration_says() -> None:
    with House(handovers.room, config=Config(data=Path(), quotas={"handover_days": 1})) as house:
        record(house, "m1")
        house.advance(hours=23)
        assert listed(house) == ["m1"]
        house.advance(hours=1)
        assert listed(house) == []


def test_an_outcome_with_a_zero_byte_is_kept_as_it_is(house: House) -> None:
    record(house, "m1", outcome="FAILED: a\0b")
    [entry] = house.call("tasuki", "ListHandovers")["Handovers"]
    assert entry["Outcome"] == "FAILED: a\0b"
