"""When a schedule fires. Pure.

A *tick* is a planned time: what `<aws.scheduler.scheduled-time>` says, however late it is delivered. Its *moment* is when it
fires: the tick itself, or with a flexible window one instant in [tick, tick + window), drawn when the tick is planned.

=====  ===================================================================================================================
rate   counts from its *anchor*: StartDate, or the second in which it was created (so it fires at once: user guide, "Schedule
       types"; PITFALLS PF-46). An update with the same expression and StartDate keeps the anchor (PF-51)
cron   strictly after the instant at which it is made
at     once; an instant that has passed is accepted and never fires. StartDate and EndDate don't concern it
=====  ===================================================================================================================

Each tick follows from the one before, never from the present: lateness doesn't drift, and what a node missed comes next.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasuki.rules.expressions import Expression, parse_expression
from tasuki.values.chance import Chance
from tasuki.values.instant import MINUTE, SECOND, Instant

LATE_START_MS = 5 * MINUTE
"""How far StartDate may lie in the past: "The StartDate you specify cannot be earlier than 5 minutes ago." A rate that begins
within that time still fires for it."""
_OF_PHASE = ("ScheduleExpression", "StartDate")
_OF_TICKS = (*_OF_PHASE, "ScheduleExpressionTimezone")


@dataclass(frozen=True, slots=True)
class Plan:
    """A definition, as far as it says when. `anchor` is where a rate counts from."""

    expression: Expression
    zone: str
    anchor: Instant
    begins: Instant | None
    ends: Instant | None
    window_ms: int

    @classmethod
    def of(cls, definition: Mapping[str, Any], anchor: Instant) -> "Plan":
        """Read a definition that was checked."""
        expression = parse_expression(definition["ScheduleExpression"], "scheduler")
        once = expression.kind == "at"
        return cls(
            expression,
            definition["ScheduleExpressionTimezone"],
            anchor,
            None if once else definition.get("StartDate"),
            None if once else definition.get("EndDate"),
            definition["FlexibleTimeWindow"].get("MaximumWindowInMinutes", 0) * MINUTE,
        )

    def next(self, after: Instant) -> Instant | None:
        """Answer the first tick after an instant; None when none comes any more."""
        start = self.anchor if self.expression.kind == "rate" else self.begins
        tick = self.expression.next(after, self.zone, start)
        return None if tick is None or (self.ends is not None and tick > self.ends) else tick

    def moment(self, tick: Instant | None, chance: Chance) -> Instant | None:
        """Draw when a tick fires."""
        if tick is None or not self.window_ms:
            return tick
        return tick + int(chance.fraction() * self.window_ms)


@dataclass(frozen=True, slots=True)
class Ticks:
    """What a schedule has planned (a row of `schedule_ticks`): `last` is the last tick that fired."""

    anchor: Instant
    tick: Instant | None
    moment: Instant | None
    last: Instant | None


def begin(definition: Mapping[str, Any], now: Instant, chance: Chance, *, enabled: bool) -> Ticks:
    """Plan a new schedule's first tick."""
    anchor = definition.get("StartDate", now - now % SECOND)
    plan = Plan.of(definition, anchor)
    tick = plan.next(_before_first(plan, now)) if enabled else None
    return Ticks(anchor, tick, plan.moment(tick, chance), None)


def change(
    old: Mapping[str, Any], new: Mapping[str, Any], was: Ticks, now: Instant, chance: Chance, *, enabled: bool
) -> Ticks:
    """Plan the next tick of a schedule that was given another definition.

    What was planned stands when the definition still says so, also when it is overdue; a schedule that was disabled begins with
    what comes next. No tick that fired comes again.
    """
    same_phase = _same(old, new, _OF_PHASE)
    anchor = new["StartDate"] if "StartDate" in new else was.anchor if same_phase else now - now % SECOND
    plan = Plan.of(new, anchor)
    if not enabled:
        return Ticks(anchor, None, None, was.last)
    if was.tick is not None and _same(old, new, _OF_TICKS) and (plan.ends is None or was.tick <= plan.ends):
        same_window = _same(old, new, ("FlexibleTimeWindow",))
        return Ticks(anchor, was.tick, was.moment if same_window else plan.moment(was.tick, chance), was.last)
    after = now if same_phase and plan.expression.kind == "rate" else _before_first(plan, now)
    tick = plan.next(after if was.last is None else max(after, was.last))
    return Ticks(anchor, tick, plan.moment(tick, chance), was.last)


def _before_first(plan: Plan, now: Instant) -> Instant:
    """Answer after which instant the first tick comes."""
    if plan.expression.kind == "rate":
        return plan.anchor - 1 if plan.anchor >= now - LATE_START_MS else now
    return now - 1 if plan.expression.kind == "at" else now


def _same(old: Mapping[str, Any], new: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return all(old.get(name) == new.get(name) for name in names)
