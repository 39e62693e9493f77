"""What `lint` says of schedules, rules and pipes, wherever they stand: a request, a template, a plan. Pure.

Fields are called as in AWS's APIs, which CloudFormation keeps; what a template only computes when it is deployed is not judged.
"""

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from zoneinfo import available_timezones

from tasuki.cli.lint_sources import Place
from tasuki.language.lint import Finding
from tasuki.rules.expressions import BadExpression, Dialect, Expression, known_zone, parse_expression
from tasuki.values.instant import MINUTE

RESERVED = {
    "scheduler": ("schedule-arn", "scheduled-time", "execution-id", "attempt-number"),
    "pipes": (
        "pipe-arn",
        "pipe-name",
        "source-arn",
        "enrichment-arn",
        "target-arn",
        "event.ingestion-time",
        "event",
        "event.json",
    ),
    "events": ("rule-arn", "rule-name", "event.ingestion-time", "event", "event.json"),
}
"""The reserved variables: `<aws.FAMILY.NAME>`."""
_VARIABLE = re.compile(r"<aws\.([a-z]+)\.([^<>\s]*)>")
_WINDOW = "FlexibleTimeWindow"
_EXPRESSION, _ZONE = "ScheduleExpression", "ScheduleExpressionTimezone"


@dataclass(frozen=True, slots=True)
class Seen:
    """A finding, and the line it is in."""

    finding: Finding
    line: int | None = None


def error(place: Place, code: str, message: str, fix: str) -> Seen:
    """Answer a finding for which AWS, and this house, refuse what stands there."""
    return Seen(Finding(code, "ERROR", place.pointer or "/", message, fix), place.line)


def warning(place: Place, code: str, message: str, fix: str) -> Seen:
    """Answer a finding about what is accepted, and won't do what it looks like."""
    return Seen(Finding(code, "WARNING", place.pointer or "/", message, fix), place.line)


def check_schedule(place: Place) -> Iterator[Seen]:
    """Look at a schedule of Scheduler: CreateSchedule, `AWS::Scheduler::Schedule`, `aws_scheduler_schedule`."""
    expression = yield from check_expression(place.at(_EXPRESSION), "scheduler")
    zone = place.at(_ZONE)
    if zone is not None and zone.text is not None and not _computed(zone):
        yield from _check_zone(zone, zone.text)
    window = place.at(_WINDOW)
    if window is not None:
        yield from _check_window(window, expression)
    for target in (place.at("Target"), place):
        given = target.at("Input") if target is not None else None
        if given is not None:
            yield from check_input(given)


def check_input(place: Place) -> Iterator[Seen]:
    """Look for attributes that Scheduler doesn't know: they stay as they are."""
    for family, name in _VARIABLE.findall(place.text or ""):
        if family != "scheduler" or name not in RESERVED["scheduler"]:
            yield warning(
                place,
                "UNKNOWN_RESERVED_VARIABLE",
                f"Scheduler replaces no <aws.{family}.{name}>: the target gets these words.",
                _known("scheduler", name),
            )


def check_rule(place: Place) -> Iterator[Seen]:
    """Look at a rule of EventBridge: PutRule, PutTargets, `AWS::Events::Rule`."""
    yield from check_expression(place.at(_EXPRESSION), "rule")
    targets = place.at("Targets")
    for _, target in targets.members() if targets is not None and isinstance(targets.value, list) else ():
        yield from check_rule_target(target)


def check_rule_target(place: Place) -> Iterator[Seen]:
    """Look at a target of a rule."""
    transformer = place.at("InputTransformer")
    template = transformer.at("InputTemplate") if transformer is not None else None
    if template is not None:
        yield from _check_template(template, "events")


def check_pipe(place: Place) -> Iterator[Seen]:
    """Look at a pipe: CreatePipe, `AWS::Pipes::Pipe`, `aws_pipes_pipe`."""
    for one in ("EnrichmentParameters", "TargetParameters"):
        template = place.at(one, "InputTemplate")
        if template is not None:
            yield from _check_template(template, "pipes")


def check_expression(place: Place | None, dialect: Dialect) -> Generator[Seen, None, Expression | None]:
    """Look at an expression; answer it if it is one."""
    if place is None or place.text is None or _computed(place):
        return None
    text = place.text
    try:
        expression = parse_expression(text, dialect)
    except BadExpression as bad:
        yield error(
            place,
            "BAD_SCHEDULE_EXPRESSION",
            f"{text!r} is refused: {bad}.",
            "Write cron(MINUTES HOURS DAY-OF-MONTH MONTH DAY-OF-WEEK YEAR) with ? for one of the two days, or rate(5 minutes)"
            + (", or at(2026-10-09T16:00:00)." if dialect == "scheduler" else "."),
        )
        return None
    if expression.kind == "cron" and expression.next(0) is None:
        yield warning(
            place,
            "NEVER_DUE",
            f"{text!r} names a day that never comes, so it is never due.",
            "Correct day, month or year. Its next times are told by: tasuki schedule next '" + text + "'",
        )
    return expression


def _check_zone(place: Place, zone: str) -> Iterator[Seen]:
    if known_zone(zone):
        return
    near = get_close_matches(zone, available_timezones(), 1, 0.7) or [
        one
        for one in sorted(available_timezones())
        if one.rpartition("/")[2].lower() == zone.strip().lower().replace(" ", "_")
    ]
    yield error(
        place,
        "UNKNOWN_TIME_ZONE",
        f"There is no time zone {zone!r}: names are IANA's, spelled exactly.",
        f"Did you mean {near[0]}?" if near else "Write one like UTC, Asia/Tokyo or Europe/Berlin.",
    )


def _check_window(window: Place, expression: Expression | None) -> Iterator[Seen]:
    mode, minutes = window.at("Mode"), window.at("MaximumWindowInMinutes")
    kind = mode.text if mode is not None else None
    given = _number(minutes)
    if kind == "FLEXIBLE" and (minutes is None or minutes.value is None):
        yield error(
            window,
            "BAD_WINDOW",
            "MaximumWindowInMinutes is missing: Mode FLEXIBLE needs it.",
            "Add MaximumWindowInMinutes, from 1 to 1440, or set Mode to OFF.",
        )
    if minutes is None or given is None:
        return
    if kind == "OFF":
        yield error(
            minutes,
            "BAD_WINDOW",
            "MaximumWindowInMinutes is given, and Mode is OFF.",
            "Leave it out, or set Mode to FLEXIBLE.",
        )
    elif not 1 <= given <= 1_440:
        yield error(minutes, "BAD_WINDOW", f"MaximumWindowInMinutes {given} is out of range.", "Write 1 to 1440.")
    elif expression is not None and expression.period_ms is not None and given * MINUTE > expression.period_ms:
        period = expression.period_ms // MINUTE
        yield error(
            minutes,
            "WINDOW_LONGER_THAN_RATE",
            f"MaximumWindowInMinutes {given} is longer than the schedule's rate of {period} minutes: windows would overlap.",
            f"Shorten it to {period} at most, or lengthen the rate.",
        )


def _check_template(place: Place, family: str) -> Iterator[Seen]:
    for other, name in _VARIABLE.findall(place.text or ""):
        if other == family and name in RESERVED[family]:
            continue
        if family == "pipes" and other != family:
            yield warning(
                place,
                "UNKNOWN_RESERVED_VARIABLE",
                f"A pipe replaces no <aws.{other}.{name}>: the target gets these words.",
                _known(family, name),
            )
            continue
        yield error(
            place,
            "UNKNOWN_RESERVED_VARIABLE",
            f"<aws.{other}.{name}> is not a reserved variable of {'pipes' if family == 'pipes' else 'rules'}: the template is refused.",
            _known(family, name),
        )


def _known(family: str, name: str) -> str:
    near = get_close_matches(name, RESERVED[family], 1, 0.6)
    if near:
        return f"Did you mean <aws.{family}.{near[0]}>?"
    return f"Known are {', '.join(f'<aws.{family}.{one}>' for one in RESERVED[family])}."


def _computed(place: Place) -> bool:
    """Tell whether a text is only known when it is deployed: `${Hour}`."""
    return "${" in (place.text or "")


def _number(place: Place | None) -> int | None:
    try:
        return int(place.value) if place is not None else None
    except (TypeError, ValueError, OverflowError):
        return None


Check = Callable[[Place], Iterator[Seen]]
