"""Cron against an oracle that walks over every minute and reads the fields in a way of its own.

The oracle knows nothing of the parser: it asks of one date, hour or minute whether the text fits, by walking along the text's
range. It starts a day before the window, so as to know which wall-clock times have been shown before.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasuki.rules.expressions import parse_expression
from tasuki.values.instant import DAY, MINUTE, Instant, from_datetime, to_datetime, to_iso

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEK = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
ONE = timedelta(days=1)
WINDOW = 2 * DAY

# -- the oracle ------------------------------------------------------------------------------------------------------


def walk(text: str, value: int, low: int, high: int) -> bool:
    """Tell whether a value is in a list of numbers, ranges and steps: go along each and see."""
    for item in text.split(","):
        base, _, step = item.partition("/")
        if base == "*":
            here, end = low, high
        elif "-" in base:
            here, end = (int(part) for part in base.split("-"))
        else:
            here, end = int(base), high if step else int(base)
        count = 0
        while True:
            if here == value and count % int(step or "1") == 0:
                return True
            if here == end:
                break
            here = low if here == high else here + 1
            count += 1
    return False


def numbered(text: str, names: list[str]) -> str:
    for number, name in enumerate(names, 1):
        text = re.sub(name, str(number), text, flags=re.IGNORECASE)
    return text


def month_of(day: date) -> list[date]:
    first = day.replace(day=1)
    return [one for one in (first + ahead * ONE for ahead in range(31)) if one.month == day.month]


def in_month_days(text: str, day: date) -> bool:
    whole = month_of(day)
    working = [one for one in whole if one.weekday() < 5]
    for item in text.split(","):
        if item == "L":
            fits = day == whole[-1]
        elif item == "LW":
            fits = day == working[-1]
        elif item.startswith("L-"):
            fits = whole[-1] - day == int(item[2:]) * ONE
        elif item.endswith("W"):
            number = int(item[:-1])
            fits = number <= len(whole) and day == min(working, key=lambda one: abs(one.day - number))
        else:
            fits = walk(item, day.day, 1, 31)
        if fits:
            return True
    return False


def in_week_days(text: str, day: date) -> bool:
    name = day.isoweekday() % 7 + 1
    for item in numbered(text, WEEK).split(","):
        if item == "L":
            fits = name == 7
        elif item.endswith("L"):
            fits = name == int(item[:-1]) and (day + 7 * ONE).month != day.month
        elif "#" in item:
            wanted, count = item.split("#")
            fits = name == int(wanted) and [one for one in month_of(day) if one.weekday() == day.weekday()].index(
                day
            ) == (int(count) - 1)
        else:
            fits = walk(item, name, 1, 7)
        if fits:
            return True
    return False


class Oracle:
    """The fields of an expression as questions."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        minutes, hours, self.month_days, months, self.week_days, self.years = fields
        self.minutes = [walk(minutes, minute, 0, 59) for minute in range(60)]
        self.hours = [walk(hours, hour, 0, 23) for hour in range(24)]
        self.months = numbered(months, MONTHS)
        self.on = cache(self._on)

    def _on(self, day: date) -> bool:
        return (
            walk(self.years, day.year, 1970, 2199)
            and walk(self.months, day.month, 1, 12)
            and (self.month_days == "?" or in_month_days(self.month_days, day))
            and (self.week_days == "?" or in_week_days(self.week_days, day))
        )

    def times(self, zone: str, after: Instant, until: Instant) -> Iterator[Instant]:
        """Answer the minutes in (after, until] at which a clock in the zone shows a time that fits for the first time."""
        rules, shown = ZoneInfo(zone), set[datetime]()
        moment = (after - DAY) // MINUTE * MINUTE
        while moment <= until:
            wall = to_datetime(moment).astimezone(rules).replace(tzinfo=None)
            if wall not in shown:
                shown.add(wall)
                if moment > after and self.minutes[wall.minute] and self.hours[wall.hour] and self.on(wall.date()):
                    yield moment
            moment += MINUTE


def ours(fields: tuple[str, ...], zone: str, after: Instant, until: Instant) -> Iterator[Instant]:
    expression = parse_expression(f"cron({' '.join(fields)})", "scheduler")
    while (found := expression.next(after, zone)) is not None and found <= until:
        assert found > after
        yield (after := found)


# -- what is tried ---------------------------------------------------------------------------------------------------


def field(low: int, high: int, names: list[str] | None = None) -> st.SearchStrategy[str]:
    """Draw numbers, names, ranges (also wrapping ones), steps and lists of them."""
    number = st.integers(low, high).map(str)
    if names:
        number |= st.sampled_from([*names, *(name.lower() for name in names), *(name.title() for name in names)])
    step = st.integers(1, high - low + 3).map(str)
    spans = st.builds("{}-{}".format, number, number)
    item = number | spans | st.builds("{}/{}".format, number | spans | st.just("*"), step)
    return st.just("*") | item | st.lists(item, min_size=2, max_size=4).map(",".join)


DAY_NUMBER = st.integers(1, 31).map(str)
NAME = st.integers(1, 7).map(str) | st.sampled_from([*WEEK, *(name.lower() for name in WEEK)])
SPECIAL = st.sampled_from(["L", "LW"]) | DAY_NUMBER.map("{}W".format) | st.integers(1, 30).map("L-{}".format)
MONTH_DAYS = field(1, 31) | SPECIAL | st.lists(SPECIAL | DAY_NUMBER, min_size=2, max_size=3).map(",".join)
LAST = NAME.map("{}L".format) | st.just("L")
NTH = st.builds("{}#{}".format, NAME, st.integers(1, 5))
WEEK_DAYS = field(1, 7, WEEK) | NTH | LAST | st.lists(LAST | NAME, min_size=2, max_size=3).map(",".join)
DAYS = st.tuples(MONTH_DAYS, st.just("?")) | st.tuples(st.just("?"), WEEK_DAYS)
OFTEN = st.just("*")


@st.composite
def expressions(draw: st.DrawFn) -> tuple[str, ...]:
    """Draw six fields, of which most days and months fit: a window is short."""
    month_days, week_days = draw(st.sampled_from([("*", "?"), ("?", "*")]) | DAYS)
    minutes = draw(st.sampled_from(["0", "30", "*", "*/15", "0/10", "59"]) | field(0, 59))
    hours = draw(OFTEN | st.sampled_from(["0", "1", "2", "3", "23", "22-3"]) | field(0, 23))
    months = draw(OFTEN | OFTEN | field(1, 12, MONTHS))
    years = draw(OFTEN | OFTEN | st.sampled_from(["2000-2199/2", "2026,2028", "2100", "2027-2026"]))
    return minutes, hours, month_days, months, week_days, years


def utc(*parts: int) -> Instant:
    return from_datetime(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type,misc]


# Days in the middle of which something happens to the clocks of a zone (UTC).
CHANGES = [
    ("America/New_York", utc(2026, 3, 8, 7)),
    ("America/New_York", utc(2026, 11, 1, 6)),
    ("America/New_York", utc(2150, 11, 1, 6)),
    ("Europe/Berlin", utc(2026, 3, 29, 1)),
    ("Europe/Berlin", utc(2026, 10, 25, 1)),
    ("Australia/Lord_Howe", utc(2026, 4, 4, 15)),
    ("Australia/Lord_Howe", utc(2026, 10, 3, 15, 30)),
    ("America/Santiago", utc(2026, 4, 5, 3)),
    ("America/Santiago", utc(2026, 9, 6, 4)),
    ("Pacific/Apia", utc(2011, 12, 30, 10)),
    ("Africa/Casablanca", utc(2026, 2, 15, 2)),
    ("Africa/Casablanca", utc(2026, 3, 22, 2)),
    ("Asia/Tokyo", utc(2026, 2, 28, 15)),
    ("Asia/Tehran", utc(2022, 3, 21, 20, 30)),
    ("America/Caracas", utc(2016, 5, 1, 7)),
    ("Asia/Pyongyang", utc(2018, 5, 4, 15)),
    ("UTC", utc(2027, 12, 31, 23)),
    ("UTC", utc(2028, 2, 29)),
    ("UTC", utc(2100, 2, 28, 20)),
    ("UTC", utc(2199, 12, 31, 12)),
]
SOME_DAY = st.tuples(st.sampled_from([zone for zone, _ in CHANGES]), st.integers(utc(2000, 1, 1), utc(2199, 12, 30)))
PLACES = st.sampled_from(CHANGES) | SOME_DAY


@settings(max_examples=150, deadline=None)
@given(expressions(), PLACES, st.integers(0, DAY))
def test_the_same_minutes_as_by_walking_over_all_of_them(
    fields: tuple[str, ...], place: tuple[str, Instant], before: int
) -> None:
    zone, about = place
    after = about - before
    until = after + WINDOW
    walked = list(Oracle(fields).times(zone, after, until))
    assert [to_iso(one) for one in ours(fields, zone, after, until)] == [to_iso(one) for one in walked]


@pytest.mark.parametrize(("zone", "about"), CHANGES)
@pytest.mark.parametrize("minutes", ["*", "*/15", "30"])
def test_the_same_minutes_around_every_change_of_a_clock(zone: str, about: Instant, minutes: str) -> None:
    fields = (minutes, "*", "*", "*", "?", "*")
    after, until = about - DAY, about + DAY + 1
    walked = list(Oracle(fields).times(zone, after, until))
    assert walked
    assert list(ours(fields, zone, after, until)) == walked


@settings(max_examples=150, deadline=None)
@example(("L", "?"), "2", utc(2027, 12, 31))
@example(("29", "?"), "FEB", utc(2096, 3, 1))
@example(("31W", "?"), "*", utc(2026, 1, 1))
@example(("?", "SUN#5"), "2", utc(2026, 1, 1))
@given(DAYS, field(1, 12, MONTHS), st.integers(utc(1970, 1, 1), utc(2190, 1, 1)))
def test_the_same_days_as_by_walking_over_years(days: tuple[str, str], months: str, after: Instant) -> None:
    fields = ("0", "12", days[0], months, days[1], "*")
    oracle, until = Oracle(fields), after + 3 * 366 * DAY
    noon = (after // DAY) * DAY + DAY // 2
    walked = [one for one in range(noon, until + 1, DAY) if one > after and oracle.on(to_datetime(one).date())]
    assert list(ours(fields, "UTC", after, until)) == walked


@settings(max_examples=200, deadline=None)
@given(expressions(), PLACES, st.integers(0, DAY), st.data())
def test_next_is_the_same_from_anywhere_in_between(
    fields: tuple[str, ...], place: tuple[str, Instant], before: int, data: st.DataObject
) -> None:
    expression = parse_expression(f"cron({' '.join(fields)})", "scheduler")
    zone, about = place
    after = about - before
    found = expression.next(after, zone)
    between = data.draw(st.integers(after, found - 1 if found is not None else after + 400 * DAY))
    assert expression.next(between, zone) == found
    if found is not None:
        assert expression.next(found - 1, zone) == found
        assert expression.next(after, zone, start=found) == found
        following = expression.next(found, zone)
        assert following is None or following > found
