"""Cron expressions: what each field takes, which days are meant, and that a search ends."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tasuki.rules.cron import BadExpression, Days, parse_cron

NEW_YEAR = datetime(2026, 1, 1)  # noqa: DTZ001 wall time


def days(month_days: str, week_days: str, year: int, months: str = "*") -> list[str]:
    """Answer the days of a year that fit, as mm-dd."""
    cron, found, wall = parse_cron(f"0 0 {month_days} {months} {week_days} {year}"), [], NEW_YEAR.replace(year=year)
    while (fit := cron.at_or_after(wall)) is not None:
        found.append(f"{fit:%m-%d}")
        wall = fit + timedelta(minutes=1)
    return found


def times(minutes: str, hours: str) -> list[str]:
    """Answer the times of a day that fit."""
    cron, found, wall = parse_cron(f"{minutes} {hours} 1 1 ? 2026"), [], NEW_YEAR
    while (fit := cron.at_or_after(wall)) is not None:
        found.append(f"{fit:%H:%M}")
        wall = fit + timedelta(minutes=1)
    return found


@pytest.mark.parametrize(
    ("minutes", "hours", "expected"),
    [
        ("5,35", "14", ["14:05", "14:35"]),
        ("35,5,5", "14", ["14:05", "14:35"]),
        ("0/20", "7", ["07:00", "07:20", "07:40"]),
        ("*/20", "7", ["07:00", "07:20", "07:40"]),
        ("1/25", "7", ["07:01", "07:26", "07:51"]),
        ("10-30/10", "07", ["07:10", "07:20", "07:30"]),
        ("30-30", "8-8", ["08:30"]),
        ("1-31/30", "1", ["01:01", "01:31"]),
        ("55-2", "7", ["07:00", "07:01", "07:02", "07:55", "07:56", "07:57", "07:58", "07:59"]),
        ("50-10/10", "7", ["07:00", "07:10", "07:50"]),
        ("0", "20-2", ["00:00", "01:00", "02:00", "20:00", "21:00", "22:00", "23:00"]),
        ("0", "21-3/2", ["01:00", "03:00", "21:00", "23:00"]),
        ("0", "7/5", ["07:00", "12:00", "17:00", "22:00"]),
        ("0/100", "7", ["07:00"]),
    ],
)
def test_times(minutes: str, hours: str, expected: list[str]) -> None:
    assert times(minutes, hours) == expected


@pytest.mark.parametrize(
    ("month_days", "week_days", "year", "months", "expected"),
    [
        ("31", "?", 2026, "*", ["01-31", "03-31", "05-31", "07-31", "08-31", "10-31", "12-31"]),
        ("29", "?", 2028, "FEB", ["02-29"]),
        ("29", "?", 2026, "FEB", []),
        ("29", "?", 2100, "FEB", []),  # no leap year
        ("30-2", "?", 2026, "1-2", ["01-01", "01-02", "01-30", "01-31", "02-01", "02-02"]),
        ("L", "?", 2028, "1-4", ["01-31", "02-29", "03-31", "04-30"]),
        ("L-3", "?", 2026, "1-4", ["01-28", "02-25", "03-28", "04-27"]),
        ("L-30", "?", 2026, "*", ["01-01", "03-01", "05-01", "07-01", "08-01", "10-01", "12-01"]),
        ("1,L", "?", 2026, "feb", ["02-01", "02-28"]),
        ("3W", "?", 2026, "1-5", ["01-02", "02-03", "03-03", "04-03", "05-04"]),  # a Saturday; ordinary days; a Sunday
        ("1W", "?", 2026, "2,8", ["02-02", "08-03"]),  # a Sunday and a Saturday the 1st: never the month before
        ("31W", "?", 2026, "1-5", ["01-30", "03-31", "05-29"]),  # a Sunday the 31st: never the month behind
        ("30W", "?", 2026, "2", []),
        ("LW", "?", 2026, "1-5", ["01-30", "02-27", "03-31", "04-30", "05-29"]),
        ("1W,15W", "?", 2026, "2", ["02-02", "02-16"]),
        ("?", "3#2", 2026, "1-3", ["01-13", "02-10", "03-10"]),
        ("?", "TUE#5", 2026, "1-6", ["03-31", "06-30"]),
        ("?", "6L", 2026, "1-3", ["01-30", "02-27", "03-27"]),
        ("?", "satL", 2026, "1-2", ["01-31", "02-28"]),
        ("?", "L", 2026, "2", ["02-07", "02-14", "02-21", "02-28"]),
        ("?", "sun,3L", 2026, "2", ["02-01", "02-08", "02-15", "02-22", "02-24"]),
        ("?", "FRI-MON", 2026, "2", [f"02-{day:02}" for day in range(1, 29) if (day - 1) % 7 in {0, 1, 5, 6}]),
        ("?", "2/3", 2026, "2", [f"02-{day:02}" for day in range(1, 29) if (day - 1) % 7 in {1, 4}]),
        ("1", "?", 2026, "NOV-FEB", ["01-01", "02-01", "11-01", "12-01"]),
        ("1", "?", 2026, "MAR/4", ["03-01", "07-01", "11-01"]),
        ("1", "?", 2026, "JAN-APR,6,9/3", ["01-01", "02-01", "03-01", "04-01", "06-01", "09-01", "12-01"]),
    ],
)
def test_days(month_days: str, week_days: str, year: int, months: str, expected: list[str]) -> None:
    assert days(month_days, week_days, year, months) == expected


def test_years() -> None:
    assert parse_cron("0 0 1 1 ? 2026-2030/2").years == (2026, 2028, 2030)
    assert parse_cron("0 0 1 1 ? 2198-1971").years == (1970, 1971, 2198, 2199)  # ranges wrap everywhere
    assert len(parse_cron("0 0 1 1 ? *").years) == 230


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("71 8 1 * ? *", "minutes: 71 is above 59"),
        ("0 24 1 * ? *", "hours: 24 is above 23"),
        ("0 0 0 * ? *", "day-of-month: 0 is below 1"),
        ("0 0 32W * ? *", "day-of-month: 32 is above 31"),
        ("0 0 1 13 ? *", "month: 13 is above 12"),
        ("0 0 ? * 8L *", "day-of-week: 8 is above 7"),
        ("0 0 1 * ? 1969", "year: 1969 is below 1970"),
        ("0 0 1 * ? 26", "year: '26' is not one of 1970-2199"),
        ("7 20 * * NOT *", "day-of-week: 'NOT' is not one of 1-7 or SUN-SAT"),
        ("0 dummy ? * MON-FRI *", "hours: 'DUMMY' is not one of 0-23"),
        ("? 0 1 * ? *", "minutes: '?' is not one of 0-59"),
        ("0 5- 1 * ? *", "hours: '' is not one of 0-23"),
        ("5, 0, 1, *, ?, *", "day-of-month: '1,' has a comma with nothing beside it"),
        ("5/0 0 1 * ? *", "minutes: the step of '5/0' must be a whole number from 1"),
        ("*/ 0 1 * ? *", "minutes: the step of '*/' must be a whole number from 1"),
        ("5/2/3 0 1 * ? *", "minutes: the step of '5/2/3' must be a whole number from 1"),
        ("0 0 L-31 * ? *", "day-of-month: 'L-31': after L- comes a number of days from 1 to 30"),
        ("0 0 L-3W * ? *", "day-of-month: 'L-3W': after L- comes a number of days from 1 to 30"),
        ("0 0 1-5W * ? *", "day-of-month: '1-5' is not one of 1-31"),
        ("0 0 ? * 3#6 *", "day-of-week: '3#6': after # comes a number from 1 to 5"),
        ("0 0 ? * 3#1,6#3 *", "day-of-week: '3#1' must stand alone: a day with # is the only one of its field"),
        ("0 1 * * * *", "day-of-month, day-of-week: exactly one of the two must be ?, neither is"),
        ("0 1 ? * ? *", "day-of-month, day-of-week: exactly one of the two must be ?, both are"),
        (
            "0 1 * * ?",
            "cron: six fields are needed (minutes hours day-of-month month day-of-week year), there are 5",
        ),
        (" 0 1 * * ? *", "cron: a blank stands beside a parenthesis: leave it out"),
    ],
)
def test_a_bad_field_is_named_with_what_to_change(body: str, said: str) -> None:
    with pytest.raises(BadExpression) as refused:
        parse_cron(body)
    assert str(refused.value) == said


def test_more_than_one_blank_parts_fields_as_one_does() -> None:
    assert parse_cron("0  1 *\t* ? *") == parse_cron("0 1 * * ? *")


@pytest.mark.parametrize("body", ["0 0 30 2 ? *", "0 0 31 2,4,6,9,11 ? *", "* * 29 2 ? 2001-2099/2", "0 0 30W 2 ? *"])
def test_what_can_never_be_is_found_out_by_looking_at_each_month_once(body: str) -> None:
    looked: list[tuple[int, int]] = []

    class Watched:
        def __init__(self, days: Days) -> None:
            self.days = days

        def of(self, year: int, month: int) -> Sequence[int]:
            looked.append((year, month))
            return self.days.of(year, month)

    cron = parse_cron(body)
    assert replace(cron, days=Watched(cron.days)).at_or_after(datetime(1970, 1, 1)) is None  # noqa: DTZ001
    assert looked
    assert len(looked) == len(set(looked)) <= 230 * 5
