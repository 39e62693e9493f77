"""What may be asked of a schedule. The model's own constraints are checked at the door; here is what it doesn't say.

Whether the target is there isn't asked: AWS accepts such a schedule, and its ticks fail, are tried again, and go to the
dead-letter queue (PITFALLS PF-48).
"""

import logging
from collections.abc import Mapping
from typing import Any

from tasuki.rules.escapes import escaped_attributes
from tasuki.rules.expressions import BadExpression, Expression, known_zone, parse_expression
from tasuki.services.schedules.errors import ValidationException
from tasuki.services.schedules.model import DEFAULT_GROUP, MAX_TAGS, RETRY_DEFAULTS
from tasuki.services.schedules.plans import LATE_START_MS
from tasuki.services.schedules.targets import check_target
from tasuki.services.switchboard import Switchboard
from tasuki.values.arns import parse_arn
from tasuki.values.instant import MINUTE, Instant, to_iso
from tasuki.values.operations import Request

log = logging.getLogger("tasuki.schedules")

_OPTIONS = ("StartDate", "EndDate", "Description", "KmsKeyArn")


def read_definition(
    switchboard: Switchboard, request: Request, now: Instant, old: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Check what CreateSchedule or UpdateSchedule was given, and fill in the defaults. Raises `ValidationException`.

    Dates that an update leaves as they are may have passed meanwhile.
    """
    given = request.input
    text = given["ScheduleExpression"]
    try:
        expression = parse_expression(text, "scheduler")
    except BadExpression as bad:
        log.info("refused a schedule expression: %s", bad)
        raise ValidationException(f"Invalid Schedule Expression {text}.") from None
    zone = given.get("ScheduleExpressionTimezone", "UTC")
    if not known_zone(zone):
        raise ValidationException(
            f"Invalid ScheduleExpressionTimezone {zone}: it must be the name of an IANA time zone, like UTC or Asia/Tokyo."
        )
    _check_window(given["FlexibleTimeWindow"], expression)
    if expression.kind != "at":
        _check_dates(given, now, old or {})
    check_target(switchboard, given["Target"])
    _check_dead_letter(given["Target"], request)
    return {
        **{name: given[name] for name in _OPTIONS if given.get(name) is not None},
        "ScheduleExpression": text,
        "ScheduleExpressionTimezone": zone,
        "FlexibleTimeWindow": dict(given["FlexibleTimeWindow"]),
        "ActionAfterCompletion": given.get("ActionAfterCompletion", "NONE"),
        "Target": {**given["Target"], "RetryPolicy": {**RETRY_DEFAULTS, **(given["Target"].get("RetryPolicy") or {})}},
    }


def warn_of_escapes(arn: str, definition: Mapping[str, Any]) -> None:
    """Say in the log that attributes of an Input won't be replaced since an encoder escaped them."""
    found = escaped_attributes(definition["Target"].get("Input", ""))
    if found:
        log.warning(
            "schedule %s: its Input has %s escaped as \\u003c...\\u003e, which is not replaced: the target gets the words as they "
            'stand. Write < and > themselves; in Terraform: replace(replace(jsonencode(...), "\\\\u003c", "<"), '
            '"\\\\u003e", ">")',
            arn,
            ", ".join(found),
        )


def group_of(given: Mapping[str, Any]) -> str:
    """Answer the group that a request is about."""
    group: str = given.get("GroupName") or DEFAULT_GROUP
    return group


def check_tags(tags: Mapping[str, str]) -> None:
    """Refuse too many tags, and AWS's own."""
    if len(tags) > MAX_TAGS:
        raise ValidationException(f"Tags: a schedule group has at most {MAX_TAGS} tags.")
    reserved = next((key for key in tags if key.lower().startswith("aws:")), None)
    if reserved is not None:
        raise ValidationException(f"Tags: keys that start with aws: are reserved; {reserved} is not allowed.")


def _check_window(window: Mapping[str, Any], expression: Expression) -> None:
    minutes = window.get("MaximumWindowInMinutes")
    if window["Mode"] == "OFF":
        if minutes is not None:
            raise ValidationException(
                "FlexibleTimeWindow.MaximumWindowInMinutes must not be given when Mode is OFF; leave it out, or set Mode to FLEXIBLE."
            )
        return
    if minutes is None:
        raise ValidationException(
            "FlexibleTimeWindow.MaximumWindowInMinutes must be given when Mode is FLEXIBLE: from 1 to 1440."
        )
    if expression.period_ms is not None and minutes * MINUTE > expression.period_ms:
        raise ValidationException(
            f"FlexibleTimeWindow.MaximumWindowInMinutes {minutes} is longer than the schedule's rate of "
            f"{expression.period_ms // MINUTE} minutes: shorten the window, or lengthen the rate."
        )


def _check_dates(given: Mapping[str, Any], now: Instant, old: Mapping[str, Any]) -> None:
    begins, ends = given.get("StartDate"), given.get("EndDate")
    if begins is not None and begins != old.get("StartDate") and begins < now - LATE_START_MS:
        raise ValidationException("The StartDate you specify cannot be earlier than 5 minutes ago.")
    if ends is not None and ends != old.get("EndDate") and ends < now:
        raise ValidationException(f"The EndDate you specify, {to_iso(ends)}, is over: the schedule would never run.")
    if begins is not None and ends is not None and ends <= begins:
        raise ValidationException(
            f"The EndDate you specify, {to_iso(ends)}, must be later than the StartDate, {to_iso(begins)}."
        )


def _check_dead_letter(target: Mapping[str, Any], request: Request) -> None:
    text = (target.get("DeadLetterConfig") or {}).get("Arn")
    if text is None:
        return
    arn = parse_arn(text)
    if arn is None or arn.service != "sqs" or arn.resource.endswith(".fifo"):
        raise ValidationException(
            f"Target.DeadLetterConfig.Arn {text} must be the ARN of a standard SQS queue; FIFO queues are not supported."
        )
    if (arn.account, arn.region) != (request.account, request.region):
        raise ValidationException(
            f"Target.DeadLetterConfig.Arn {text} is not of this house: its queues are "
            f"arn:aws:sqs:{request.region}:{request.account}:NAME."
        )
