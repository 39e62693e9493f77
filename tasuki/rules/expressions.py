"""Schedule expressions: `at(...)`, `rate(...)`, `cron(...)`, and when they are due. Pure.

=================  ====================================================  ===========================================================
                   schedules of EventBridge Scheduler ("scheduler")      rules of EventBridge ("rule")
=================  ====================================================  ===========================================================
at                 `at(2026-10-09T16:00:00)` in the schedule's zone      refused
rate               `rate(5 minutes)`; unit in singular or plural         the unit must agree: `1 minute`, `5 minutes`
cron               in the schedule's zone                                in UTC
=================  ====================================================  ===========================================================

Daylight saving (Scheduler user guide, "Schedule types"; AWS re:Post, "adjust my EventBridge schedule for daylight saving"):

- A cron time that doesn't exist on some day is skipped on that day.
- A cron time that comes twice fires once. Ours is the first of the two. That holds for every wall-clock time, so
  `cron(*/15 * * * ? *)` is silent while the clock shows an hour again: AWS's sentence makes no exception for frequent schedules,
  and a target that names its work by wall-clock time sees no name twice. Work due every 15 minutes of *elapsed* time is a rate.
- A rate counts elapsed time: `rate(1 day)` is 24 hours, whatever the clock does.
- `at` a time that doesn't exist fires as late as if the clock had not moved (02:30 in a gap of one hour is 03:30); of a time that
  comes twice, the first. The guide is silent; what is asked for once should happen.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal, TypeAlias

from tasuki.rules.cron import BadExpression, Cron, parse_cron
from tasuki.rules.zones import end_of_change, known_zone, offsets_of, second_of, wall_at, zone_of
from tasuki.values.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_datetime

Dialect: TypeAlias = Literal["scheduler", "rule"]
Kind: TypeAlias = Literal["at", "rate", "cron"]

_FORM = re.compile(r"(at|rate|cron)\((.*)\)", re.DOTALL)
_RATE = re.compile(r"([0-9]+) ([a-z]+)")
_AT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})")
_UNITS = {"minute": MINUTE, "hour": HOUR, "day": DAY}
_MOST = 2**31 - 1
"""Of a rate's number: periods stay far inside a 64-bit integer (ours; AWS names no limit)."""
_EARLIEST = from_datetime(datetime(1969, 12, 25, tzinfo=UTC))
_LATEST = from_datetime(datetime(2200, 1, 7, tzinfo=UTC))
"""No cron time is outside, in any zone."""
_END_OF_TIME = from_datetime(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
"""Later instants cannot be written down."""

__all__ = ["BadExpression", "Dialect", "Expression", "Kind", "known_zone", "parse_expression"]


@dataclass(frozen=True, slots=True)
class Expression:
    """A schedule expression that has been read. Immutable; `parse_expression` keeps it by its text."""

    kind: Kind
    period_ms: int | None = None
    """Of a rate."""
    wall: datetime | None = None
    """Of an at: what the clock shows."""
    cron: Cron | None = None

    def next(self, after: Instant, zone: str = "UTC", start: Instant | None = None) -> Instant | None:
        """Answer the first time strictly after `after` and not before `start`, in milliseconds; None for never again.

        `start` is where a rate counts from, so a rate needs it; `at` pays no heed to it (nor does AWS). Raises `ValueError` for
        a zone that isn't known and for a rate without start.
        """
        if self.period_ms is not None:
            if start is None:
                raise ValueError("a rate counts from its start: give one")
            due: Instant | None = start + max(0, (after - start) // self.period_ms + 1) * self.period_ms
        elif self.wall is not None:
            due = SECOND * second_of(self.wall, offsets_of(zone_of(zone), self.wall)[0])
            due = due if due > after else None
        else:
            due = self._next_cron(after if start is None else max(after, start - 1), zone)
        return due if due is not None and due <= _END_OF_TIME else None

    def _next_cron(self, after: Instant, zone: str) -> Instant | None:
        assert self.cron is not None
        rules = zone_of(zone)
        if after >= _LATEST:
            return None
        second = max(after, _EARLIEST) // SECOND
        wall = wall_at(rules, second).replace(second=0) + timedelta(minutes=1)
        while True:
            found = self.cron.at_or_after(wall)
            if found is None:
                return None
            before, behind = offsets = offsets_of(rules, found)
            due = second_of(found, before)  # the first, where the time comes twice
            if before >= behind and due > second:
                return due * SECOND
            wall = end_of_change(rules, found, offsets)


@lru_cache(maxsize=8192)
def parse_expression(text: str, dialect: Dialect) -> Expression:
    """Read a schedule expression. Raises `BadExpression` with what to change."""
    form = _FORM.fullmatch(text) if text.isascii() else None
    if form is None:
        forms = "rate(...) or cron(...)" if dialect == "rule" else "at(...), rate(...) or cron(...)"
        raise BadExpression(f"expression: {text!r} must be {forms}, in lower case, with nothing around it")
    kind, body = form.groups()
    if kind == "cron":
        return Expression("cron", cron=parse_cron(body))
    if kind == "rate":
        return Expression("rate", period_ms=_read_rate(body, dialect))
    if dialect == "rule":
        raise BadExpression("expression: a rule takes rate(...) or cron(...); at(...) is for schedules of Scheduler")
    return Expression("at", wall=_read_at(body))


def _read_rate(body: str, dialect: Dialect) -> int:
    form = _RATE.fullmatch(body)
    if form is None:
        raise BadExpression(f"rate: {body!r} must be a whole number, one blank and minutes, hours or days")
    digits, unit = form.groups()
    size = _UNITS.get(unit.removesuffix("s"))
    if size is None or unit.endswith("ss"):
        raise BadExpression(f"rate: the unit {unit!r} must be minutes, hours or days")
    if len(digits) > 10 or not 1 <= (number := int(digits)) <= _MOST:
        raise BadExpression(f"rate: the number {digits} must be from 1 to {_MOST}")
    if dialect == "rule" and unit.endswith("s") != (number > 1):
        agreeing = unit.removesuffix("s") + ("s" if number > 1 else "")
        raise BadExpression(f"rate: {unit!r} does not agree with {number}: write {number} {agreeing}")
    return number * size


def _read_at(body: str) -> datetime:
    form = _AT.fullmatch(body)
    if form is None:
        raise BadExpression(f"at: {body!r} must be written yyyy-mm-ddThh:mm:ss, without a zone: the schedule has one")
    year, month, day, hour, minute, second = map(int, form.groups())
    try:
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 wall time
    except ValueError as wrong:
        raise BadExpression(f"at: {body} is not on the calendar or the clock: {wrong}") from None
