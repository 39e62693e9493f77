"""Cron expressions of AWS: six fields, read into sets of numbers, and the next wall-clock minute that fits. Pure.

No zone here: a wall time is a naive `datetime`, and `tasuki.rules.zones` says which instant it is. The search jumps by fields
(year, month, day, hour, minute), so it looks at some thousand months at the most, however rare a match is.

=============  ===================  ==========================================================================================
field          values               what may stand there (upper or lower case)
=============  ===================  ==========================================================================================
minutes        0-59                 `5`, `5,35`, `0-10`, `*`, steps `0/15` (from 0 to the end), `*/15`, `0-29/5`
hours          0-23                 the same; a range may wrap: `20-2` is 20, 21, 22, 23, 0, 1, 2
day-of-month   1-31                 and `?`, `L` (last day), `L-3` (three days before it), `15W` (the nearest Monday to Friday
                                    of the same month), `LW` (the last Monday to Friday)
month          1-12 or JAN-DEC      as minutes
day-of-week    1-7 or SUN-SAT       and `?`, `L` (Saturday), `6L` (last Friday of the month), `3#2` (second Tuesday, alone)
year           1970-2199            as minutes
=============  ===================  ==========================================================================================

Exactly one of day-of-month and day-of-week is `?`. Sources: EventBridge user guide, "Cron expressions reference"; recorded
answers of PutRule and CreateSchedule; `LW`, `5L` and names in any case as people found them on AWS
(grumBit/aws_cron_expression_validator, issues 12 and 18). The guide is silent about `L-3`, about lists that contain `L` or `W`,
and about steps of weekdays; they are read as Quartz reads them, whose dialect this is: refusing what AWS takes would break
somebody's schedule.
"""

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Protocol

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEK = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
SATURDAY = 7
FIRST_YEAR, LAST_YEAR = 1970, 2199


class BadExpression(ValueError):
    """An expression that says no times. The text names the field and the fix; the rooms answer with AWS's own words."""


class Days(Protocol):
    """Which days of a month fit."""

    def of(self, year: int, month: int) -> Sequence[int]:
        """Answer the days that fit, ascending."""


@dataclass(frozen=True, slots=True)
class MonthDays:
    """Days by their number in the month."""

    plain: tuple[int, ...]
    before_last: tuple[int, ...] = ()
    """`L` is 0, `L-3` is 3."""
    near: tuple[int, ...] = ()
    """`15W`: the working day nearest to the 15th, in the same month; no day where the month has no such day."""
    last_working: bool = False

    def of(self, year: int, month: int) -> Sequence[int]:
        """Answer the days that fit, ascending."""
        first, length = _month(year, month)
        plain = self.plain[: bisect_left(self.plain, length + 1)]
        if not (self.before_last or self.near or self.last_working):
            return plain
        found = {*plain, *(length - before for before in self.before_last if before < length)}
        found.update(_working(day, first, length) for day in self.near if day <= length)
        if self.last_working:
            found.add(_working(length, first, length))
        return sorted(found)


@dataclass(frozen=True, slots=True)
class WeekDays:
    """Days by their name; Sunday is 1."""

    plain: tuple[int, ...]
    last: tuple[int, ...] = ()
    """`6L`: the last Friday of the month."""
    nth: tuple[int, int] | None = None
    """`3#2`: the second Tuesday of the month."""

    def of(self, year: int, month: int) -> Sequence[int]:
        """Answer the days that fit, ascending."""
        first, length = _month(year, month)
        found = {day for name in self.plain for day in range(1 + (name - first) % 7, length + 1, 7)}
        found.update(length - (length - 1 - (name - first)) % 7 for name in self.last)
        if self.nth:
            name, count = self.nth
            day = 1 + (name - first) % 7 + 7 * (count - 1)
            found.update([day] if day <= length else [])
        return sorted(found)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression as the numbers that fit, ascending."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    months: tuple[int, ...]
    years: tuple[int, ...]

    def at_or_after(self, wall: datetime) -> datetime | None:
        """Answer the first minute that fits and is not before `wall` (naive, whole minutes), or None."""
        for year in self.years[bisect_left(self.years, wall.year) :]:
            same_year = year == wall.year
            for month in self.months[bisect_left(self.months, wall.month) if same_year else 0 :]:
                same_month = same_year and month == wall.month
                days = self.days.of(year, month)
                for day in days[bisect_left(days, wall.day) if same_month else 0 :]:
                    if not (same_month and day == wall.day):
                        return datetime(year, month, day, self.hours[0], self.minutes[0])  # noqa: DTZ001 wall time
                    time = self._time_from(wall.hour, wall.minute)
                    if time is not None:
                        return datetime(year, month, day, *time)  # noqa: DTZ001 wall time
        return None

    def _time_from(self, hour: int, minute: int) -> tuple[int, int] | None:
        """Answer the first time of a day that is not before this one."""
        here = bisect_left(self.hours, hour)
        if here < len(self.hours) and self.hours[here] == hour:
            later = bisect_left(self.minutes, minute)
            if later < len(self.minutes):
                return hour, self.minutes[later]
            here += 1
        return (self.hours[here], self.minutes[0]) if here < len(self.hours) else None


@lru_cache(maxsize=4096)
def _month(year: int, month: int) -> tuple[int, int]:
    """Answer the name of the month's first day (Sunday is 1) and the number of its days."""
    monday_is_0, length = monthrange(year, month)
    return (monday_is_0 + 1) % 7 + 1, length


def _working(day: int, first: int, length: int) -> int:
    """Answer the Monday to Friday nearest to `day` that the same month has."""
    name = (first - 1 + day - 1) % 7 + 1
    if name == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if name == 1:
        return day + 1 if day < length else day - 2
    return day


@dataclass(frozen=True, slots=True)
class _Field:
    """What a field's numbers are."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    written: re.Pattern[str] = field(default=re.compile(r"[0-9]{1,2}"))

    def bad(self, why: str) -> BadExpression:
        return BadExpression(f"{self.name}: {why}")

    def number(self, text: str) -> int:
        """Read a number or a name."""
        if text in self.names:
            return self.low + self.names.index(text)
        if not self.written.fullmatch(text):
            also = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
            raise self.bad(f"{text!r} is not one of {self.low}-{self.high}{also}")
        number = int(text)
        if number > self.high:
            raise self.bad(f"{text} is above {self.high}")
        if number < self.low:
            raise self.bad(f"{text} is below {self.low}")
        return number

    def values(self, item: str) -> Iterable[int]:
        """Read one item of a list: a number, `*`, a range (which may wrap), each with or without a step."""
        base, slash, step = item.partition("/")
        if slash and not (re.fullmatch(r"[0-9]{1,4}", step) and int(step)):
            raise self.bad(f"the step of {item!r} must be a whole number from 1")
        start, dash, end = base.partition("-")
        if base == "*":
            first, last = self.low, self.high
        elif dash:
            first, last = self.number(start), self.number(end)
        else:
            first = self.number(base)
            last = self.high if slash else first
        size = self.high - self.low + 1
        if last < first:
            last += size
        return [self.low + (value - self.low) % size for value in range(first, last + 1, int(step or 1))]

    def items(self, text: str) -> list[str]:
        items = text.split(",")
        if "" in items:
            raise self.bad(f"{text!r} has a comma with nothing beside it")
        return items


_MINUTES = _Field("minutes", 0, 59)
_HOURS = _Field("hours", 0, 23)
_MONTH_DAYS = _Field("day-of-month", 1, 31)
_MONTH = _Field("month", 1, 12, _MONTHS)
_WEEK_DAYS = _Field("day-of-week", 1, 7, _WEEK)
_YEARS = _Field("year", FIRST_YEAR, LAST_YEAR, written=re.compile(r"[0-9]{4}"))


@lru_cache(maxsize=1024)
def _numbers(of: _Field, text: str) -> tuple[int, ...]:
    """Read a field that is numbers only. Kept, as most are `*` and a handful of others."""
    return tuple(sorted({value for item in of.items(text) for value in of.values(item)}))


def parse_cron(body: str) -> Cron:
    """Read what stands between the parentheses of `cron(...)`. Raises `BadExpression`."""
    fields = body.upper().split()
    if len(fields) != 6:
        raise BadExpression(
            f"cron: six fields are needed (minutes hours day-of-month month day-of-week year), there are {len(fields)}"
        )
    if body != body.strip():
        raise BadExpression("cron: a blank stands beside a parenthesis: leave it out")
    minutes, hours, month_days, months, week_days, years = fields
    by_number = None if month_days == "?" else _read_month_days(month_days)
    by_name = None if week_days == "?" else _read_week_days(week_days)
    cron = Cron(
        _numbers(_MINUTES, minutes),
        _numbers(_HOURS, hours),
        by_number or by_name or WeekDays(()),
        _numbers(_MONTH, months),
        _numbers(_YEARS, years),
    )
    if (by_number is None) == (by_name is None):
        many = "both are" if by_name is None else "neither is"
        raise BadExpression(f"day-of-month, day-of-week: exactly one of the two must be ?, {many}")
    return cron


def _read_month_days(text: str) -> MonthDays:
    plain: set[int] = set()
    before_last: list[int] = []
    near: list[int] = []
    last_working = False
    for item in _MONTH_DAYS.items(text):
        if item == "LW":
            last_working = True
        elif item == "L":
            before_last.append(0)
        elif item.startswith("L-"):
            if not re.fullmatch(r"[0-9]{1,2}", item[2:]) or not 1 <= int(item[2:]) <= 30:
                raise _MONTH_DAYS.bad(f"{item!r}: after L- comes a number of days from 1 to 30")
            before_last.append(int(item[2:]))
        elif item.endswith("W"):
            near.append(_MONTH_DAYS.number(item[:-1]))
        else:
            plain.update(_MONTH_DAYS.values(item))
    return MonthDays(tuple(sorted(plain)), tuple(before_last), tuple(near), last_working)


def _read_week_days(text: str) -> WeekDays:
    plain: set[int] = set()
    last: list[int] = []
    for item in (items := _WEEK_DAYS.items(text)):
        name, hash_sign, count = item.partition("#")
        if hash_sign:
            if len(items) > 1:
                raise _WEEK_DAYS.bad(f"{item!r} must stand alone: a day with # is the only one of its field")
            if count not in {"1", "2", "3", "4", "5"}:
                raise _WEEK_DAYS.bad(f"{item!r}: after # comes a number from 1 to 5")
            return WeekDays((), (), (_WEEK_DAYS.number(name), int(count)))
        if item == "L":
            plain.add(SATURDAY)
        elif item.endswith("L"):
            last.append(_WEEK_DAYS.number(item[:-1]))
        else:
            plain.update(_WEEK_DAYS.values(item))
    return WeekDays(tuple(sorted(plain)), tuple(last))
