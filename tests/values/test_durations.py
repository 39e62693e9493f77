"""Durations and instants as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.values.durations import parse_duration, parse_instant
from tasuki.values.instant import DAY, HOUR, MINUTE, SECOND, to_iso


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("90", 90 * SECOND),
        ("0", 0),
        ("1.5", 1_500),
        ("500ms", 500),
        ("36h", 36 * HOUR),
        ("1d12h", 36 * HOUR),
        ("1d 12h 30m", 36 * HOUR + 30 * MINUTE),
        ("2w", 14 * DAY),
        ("30D", 30 * DAY),
        ("PT36H", 36 * HOUR),
        ("P1DT12H", 36 * HOUR),
        ("P2W", 14 * DAY),
        ("PT0.5S", 500),
        (" 5m ", 5 * MINUTE),
    ],
)
def test_the_forms(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "soon", "-1h", "1x", "h", "P", "PT", "P1H", "1h garbage", "1.h", "nan", "1e3"])
def test_what_is_none_names_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"no duration; write 90 \(seconds\), 36h"):
        parse_duration(text)


def test_a_duration_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="thousand years"):
        parse_duration("9" * 30 + "d")


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_iso_and_short_agree(days: int, hours: int, minutes: int, seconds: int) -> None:
    short, iso = f"{days}d{hours}h{minutes}m{seconds}s", f"P{days}DT{hours}H{minutes}M{seconds}S"
    assert (
        parse_duration(short) == parse_duration(iso) == days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND
    )


def test_an_instant_says_its_zone() -> None:
    assert to_iso(parse_instant("2026-10-10T01:00:00+09:00")) == "2026-10-09T16:00:00.000Z"
    assert parse_instant("2026-10-09T16:00:00Z") == parse_instant("2026-10-10T01:00:00+09:00")
    with pytest.raises(ValueError, match="does not say its zone"):
        parse_instant("2026-10-10T01:00:00")
    with pytest.raises(ValueError, match="is no instant"):
        parse_instant("tomorrow")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+09:00", "9999-12-31T23:59:59-09:00"])
def test_an_instant_that_is_no_date_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not between the year 1 and the year 9999"):
        parse_instant(text)
