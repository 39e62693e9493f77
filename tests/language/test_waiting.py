"""Timestamps, and when a Wait ends."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.language.definition import Wait
from tasuki.language.errors import StatesError
from tasuki.language.parse import parse
from tasuki.language.timestamps import ceil_ms, parse_timestamp
from tasuki.values.documents import dumps
from tests.language.scopes import scope

NOW = 1_700_000_000_000


def until(fields: dict[str, Any], document: Any = None) -> int:
    """Answer how many milliseconds from now the Wait ends."""
    machine = parse(dumps({"StartAt": "W", "States": {"W": {"Type": "Wait", "End": True, **fields}}}))
    state = machine.root.states["W"]
    assert isinstance(state, Wait)
    return state.until(scope(document), NOW) - NOW


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("2016-03-05T21:29:29.243167252Z", 1_457_213_369_243_167_252),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T22:30:00-01:30", 0),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000_000_000),
        ("1969-12-31T23:59:59Z", -1_000_000_000),
    ],
)
def test_timestamps(text: str, nanoseconds: int) -> None:
    assert parse_timestamp(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2016-12-05 21:29:29Z",
        "2016-12-05T21:29:29",
        "05-12-2016T21:29:29Z",
        "2016-13-05T21:29:29Z",
        "2016-12-05T25:29:29Z",
        "2016-12-05T24:00:00Z",
        "2023-02-29T00:00:00Z",
        "2016-12-05T21:60:29Z",
        "2016-12-05T21:29:60Z",
        "2016-12-05t21:29:29z",
        "2016-12-05T21:29:29.Z",
        "2016-12-05T21:29:29.1234567890Z",
        "2016-12-05T21:29:29+0200",
        "2016-12-05T21:29:29+02:60",
        "2016-12-05T21:29:29+19:00",
        "2016-12-05T21:29:29Z\n",
        "\uff12016-12-05T21:29:29Z",
        "2023-02-24",
    ],
)
def test_what_is_no_timestamp(text: str) -> None:
    """The first four kinds are recorded: test_wait_timestamp_path, test_wait_timestamp_invalid."""
    assert parse_timestamp(text) is None


@given(
    moment=st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)),  # noqa: DTZ001 - a zone follows
    offset=st.integers(-18 * 60, 18 * 60),
)
def test_timestamps_agree_with_the_calendar(moment: datetime, offset: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=offset)))
    sign = "-" if offset < 0 else "+"
    text = f"{moment:%Y-%m-%dT%H:%M:%S.%f}{sign}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"
    expected = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1_000
    assert parse_timestamp(text) == expected


def test_a_wait_never_ends_too_early() -> None:
    assert [ceil_ms(n) for n in (0, 1, 999_999, 1_000_000, -1)] == [0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("fields", "document", "wait_ms"),
    [
        ({"Seconds": 0}, {}, 0),
        ({"Seconds": 90}, {}, 90_000),
        ({"SecondsPath": "$.s"}, {"s": 3}, 3_000),
        ({"SecondsPath": "$$.Execution.Input.n"}, {}, 1_000),
        ({"Timestamp": "2023-11-14T22:13:25Z"}, {}, 5_000),
        ({"Timestamp": "2001-01-01T00:00:00Z"}, {}, 0),
        ({"TimestampPath": "$.t"}, {"t": "2023-11-14T22:13:20.0000001Z"}, 1),
    ],
)
def test_when_a_wait_ends(fields: dict[str, Any], document: Any, wait_ms: int) -> None:
    assert until(fields, document) == wait_ms


@pytest.mark.parametrize(
    ("fields", "value", "cause"),
    [
        ({"SecondsPath": "$.s"}, 1.5, "The SecondsPath parameter cannot be parsed as a long value: $.s == 1.5"),
        ({"SecondsPath": "$.s"}, -1.5, "The SecondsPath parameter cannot be parsed as a long value: $.s == -1.5"),
        ({"SecondsPath": "$.s"}, "x", "The SecondsPath parameter cannot be parsed as a long value: $.s == x"),
        ({"SecondsPath": "$.s"}, True, "The SecondsPath parameter cannot be parsed as a long value: $.s == true"),
        ({"SecondsPath": "$.s"}, -1, "The SecondsPath parameter references a negative value: $.s == -1"),
        ({"SecondsPath": "$.s"}, 10**9, "Wait state delay is too long."),
        ({"SecondsPath": "$.x"}, 1, "The SecondsPath parameter does not reference an input value: $.x"),
        ({"TimestampPath": "$.x"}, 1, "The TimestampPath parameter does not reference an input value: $.x"),
        ({"TimestampPath": "$.s"}, "3000-01-01T00:00:00Z", "Wait state delay is too long."),
        (
            {"TimestampPath": "$.s"},
            "2016-13-05T21:29:29Z",
            (
                "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format string: "
                "$.s == 2016-13-05T21:29:29Z"
            ),
        ),
    ],
)
def test_what_a_wait_cannot_wait_for(fields: dict[str, Any], value: Any, cause: str) -> None:
    """Recorded: test_base_wait_seconds_path, test_wait_timestamp_path."""
    with pytest.raises(StatesError) as caught:
        until(fields, {"s": value})
    assert (caught.value.error, caught.value.cause) == ("States.Runtime", cause)
