"""What clients were told about schedules, and which ticks follow from it: worked out apart from the room's own plans.

A *life* is a schedule from its creation to its end; another one of the same name is another life. An *era* is what one definition says
until the next. From an era follow the ticks that must fire and those that may: what was planned before an update, and is overdue
at it, may or may not have fired by then.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasuki.rules.expressions import parse_expression
from tasuki.values.instant import MINUTE, SECOND, Instant, from_datetime

ARN = "arn:aws:scheduler:us-east-1:000000000000:schedule/"
_LATE_START_MS = 5 * MINUTE


@dataclass(slots=True)
class Era:
    """What a definition says from `at` on. Ticks from `may` on belong to it, those from `must` on have to fire."""

    at: Instant
    given: Mapping[str, Any]
    anchor: Instant
    must: Instant
    may: Instant

    @property
    def is_enabled(self) -> bool:
        """Whether it fires at all."""
        return bool(self.given.get("State", "ENABLED") == "ENABLED")

    @property
    def window_ms(self) -> int:
        """How much later than planned a tick may fire."""
        return int(self.given["FlexibleTimeWindow"].get("MaximumWindowInMinutes", 0)) * MINUTE

    def next(self, after: Instant) -> Instant | None:
        """Answer the first tick after an instant."""
        expression = parse_expression(self.given["ScheduleExpression"], "scheduler")
        once, rate = expression.kind == "at", expression.kind == "rate"
        start = self.anchor if rate else None if once else self.given.get("StartDate")
        tick = expression.next(after, self.given.get("ScheduleExpressionTimezone", "UTC"), start)
        end = None if once else self.given.get("EndDate")
        return None if tick is None or (end is not None and tick > end) else tick

    def has(self, tick: Instant) -> bool:
        """Tell whether a planned time is one of its ticks."""
        return self.is_enabled and tick >= self.may and self.next(tick - 1) == tick

    def ticks(self, until: Instant) -> Iterator[Instant]:
        """Answer the ticks that must have fired by an instant."""
        tick = self.next(self.must - 1) if self.is_enabled else None
        while tick is not None and tick + self.window_ms <= until:
            yield tick
            tick = self.next(tick)


@dataclass(slots=True)
class Life:
    """A schedule from its creation to its end. `dying`: its group is being deleted."""

    arn: str
    eras: list[Era]
    ended: Instant | None = None
    dying: bool = False

    @property
    def goes_by_itself(self) -> bool:
        """Whether it may be deleted when its last tick is over."""
        return any(era.given.get("ActionAfterCompletion") == "DELETE" for era in self.eras)

    def allows(self, tick: Instant, fired: Instant) -> bool:
        """Tell whether a tick may have fired at an instant. What happened at one instant has no order here."""
        ends = [*(era.at for era in self.eras[1:]), self.ended]
        return any(
            era.at <= fired and (end is None or fired <= end) and era.has(tick)
            for era, end in zip(self.eras, ends, strict=True)
        )


@dataclass(slots=True)
class ToldSchedules:
    """All lives, by ARN."""

    lives: dict[str, list[Life]] = field(default_factory=lambda: defaultdict(list))
    groups: set[str] = field(default_factory=set)

    def current(self, arn: str) -> Life | None:
        """Answer the life that goes on, as far as anybody was told."""
        known = self.lives.get(arn)
        return known[-1] if known and known[-1].ended is None else None

    def created(self, given: Mapping[str, Any], at: Instant) -> None:
        """CreateSchedule was committed: whatever had that name before is over."""
        arn = arn_of(given)
        before = self.current(arn)
        if before is not None:
            before.ended = at
        self.lives[arn].append(Life(arn, [first_era(given, at)]))

    def updated(self, given: Mapping[str, Any], at: Instant) -> None:
        """UpdateSchedule was committed."""
        life = self.current(arn_of(given))
        if life is not None:
            life.eras.append(next_era(life.eras[-1], given, at))

    def deleted(self, arn: str, at: Instant) -> None:
        """DeleteSchedule was committed."""
        life = self.current(arn)
        if life is not None:
            life.ended = at

    def group_deleted(self, group: str) -> None:
        """DeleteScheduleGroup was committed: its schedules go, one after the other."""
        for arn in list(self.lives):
            life = self.current(arn)
            if life is not None and arn.startswith(f"{ARN}{group}/"):
                life.dying = True


def arn_of(given: Mapping[str, Any]) -> str:
    """Answer the ARN of the schedule that a request is about."""
    return f"{ARN}{given.get('GroupName', 'default')}/{given['Name']}"


def first_era(given: Mapping[str, Any], at: Instant) -> Era:
    """Answer what follows from CreateSchedule: a rate counts from its StartDate, or from the second in which it was made."""
    anchor = given.get("StartDate", at - at % SECOND)
    kind = parse_expression(given["ScheduleExpression"], "scheduler").kind
    begin = anchor if kind == "rate" else at if kind == "at" else at + 1
    return Era(at, given, anchor, begin, begin)


def next_era(before: Era, given: Mapping[str, Any], at: Instant) -> Era:
    """Answer what follows from UpdateSchedule: with the same expression and StartDate a rate goes on as it was."""
    same_phase = _same(before, given, "ScheduleExpression", "StartDate")
    anchor = given["StartDate"] if "StartDate" in given else before.anchor if same_phase else at - at % SECOND
    if before.is_enabled and same_phase and _same(before, given, "ScheduleExpressionTimezone"):
        return Era(at, given, anchor, at + 1, before.may)
    kind = parse_expression(given["ScheduleExpression"], "scheduler").kind
    may = anchor if kind == "rate" and anchor >= at - _LATE_START_MS else at
    return Era(at, given, anchor, at + 1, may)


def _same(before: Era, given: Mapping[str, Any], *names: str) -> bool:
    defaults = {"ScheduleExpressionTimezone": "UTC"}
    return all(before.given.get(name, defaults.get(name)) == given.get(name, defaults.get(name)) for name in names)


def instant_of(text: str) -> Instant:
    """Read a planned time as the record of handovers, or a target, has it."""
    from datetime import datetime

    return from_datetime(datetime.fromisoformat(text))
