"""`schedule list`, `show`, `next` and `past`: what is due when, and what became of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any
from zoneinfo import available_timezones

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.events import short
from tasuki.cli.pages import every
from tasuki.cli.reach import Reach
from tasuki.cli.trace import call_house
from tasuki.rules.expressions import BadExpression, known_zone, parse_expression
from tasuki.rules.zones import zone_of
from tasuki.runtime.clock import SystemClock
from tasuki.values.durations import parse_instant
from tasuki.values.instant import Instant, to_datetime, to_iso

COLUMNS = ("schedule", "state", "expression", "zone", "next", "to")
TICK_COLUMNS = ("planned", "local", "fires")
PAST_COLUMNS = ("planned", "handed_over", "late", "to", "arrived_as", "outcome")
SHOWN_PAST = 5
PAGE = 1_000
_DEFAULT = "default"


def ls(reach: Reach, *, as_json: bool) -> None:
    """List the schedules of all groups, with the next planned time of each."""
    ticks = {one["ScheduleArn"]: one for one in _house(reach, "ListScheduleTicks", "Ticks")}
    rows = []
    for one in every(reach, "scheduler", "list_schedules", "Schedules"):
        told = _get(reach, one["GroupName"], one["Name"])
        rows.append(
            {
                "schedule": _shown_name(one["GroupName"], one["Name"]),
                "state": one["State"],
                "expression": told["ScheduleExpression"],
                "zone": told["ScheduleExpressionTimezone"],
                "next": ticks.get(one["Arn"], {}).get("ScheduledTime"),
                "to": target_of(one["Target"]["Arn"]),
            }
        )
    if as_json:
        screen.show_json(rows)
    else:
        screen.show_table(rows, COLUMNS, empty="no schedule yet; make one with CreateSchedule")


def show(reach: Reach, wanted: str, *, as_json: bool) -> None:
    """Show a schedule: how it was defined, what is next, what is on its way, and what fired last."""
    told = find(reach, wanted)
    arn = told["Arn"]
    coming = _ticks(reach, told, 1)
    on_its_way = _house(reach, "ListDeliveries", "Deliveries", SourceArn=arn)
    fired = handed_over(reach, arn)[-SHOWN_PAST:]
    definition = {name: value for name, value in told.items() if name != "ResponseMetadata"}
    if as_json:
        screen.show_json(
            {
                **definition,
                "next": coming[0] if coming else None,
                "deliveries": on_its_way,
                "past": fired,
            }
        )
        return
    for name, value in flat("", definition):
        show_member(name, value)
    show_member("next", coming[0]["planned"] + "  " + coming[0]["local"] if coming else "never again")
    show_on_its_way(on_its_way)
    if fired:
        screen.line("")
        show_past(fired)


def coming(reach: Reach, wanted: str, count: int, *, as_json: bool) -> None:
    """List the next planned times of a schedule; of one that is disabled those that it would have."""
    told = find(reach, wanted)
    rows = _ticks(reach, told, count)
    if as_json:
        screen.show_json(rows)
        return
    if told["State"] == "DISABLED":
        screen.line(f"{_shown_name(told['GroupName'], told['Name'])} is disabled; enabled, it would be due")
    columns = TICK_COLUMNS if any(row["fires"] != row["planned"] for row in rows) else TICK_COLUMNS[:2]
    screen.show_table(rows, columns, empty="never again")


def coming_of_expression(text: str, zone: str, count: int, after: str | None, *, as_json: bool) -> None:
    """List when an expression is due. Needs no node. Raises `Complaint` for one that Scheduler refuses."""
    if not known_zone(zone):
        near = get_close_matches(zone, available_timezones(), 1, 0.7)
        hint = f"did you mean {near[0]}?" if near else "names are IANA's: UTC, Asia/Tokyo, Europe/Berlin ..."
        raise Complaint(f"--zone: there is no time zone {zone!r}", Code.USAGE, hint=hint)
    try:
        expression = parse_expression(text, "scheduler")
        at: Instant = SystemClock().now() if after is None else parse_instant(after)
    except BadExpression as bad:
        raise Complaint(str(bad), Code.USAGE, hint="see: tasuki schedule next --help") from None
    except ValueError as bad:
        raise Complaint(f"--after: {bad}", Code.USAGE) from None
    start = at if expression.period_ms is not None else None
    due = at if start is None else at - 1  # a rate is due when it starts
    rows: list[dict[str, str]] = []
    while len(rows) < count:
        found = expression.next(due, zone, start)
        if found is None:
            break
        rows.append(_tick_row(to_datetime(found), zone))
        due = found
    if as_json:
        screen.show_json(rows)
    else:
        screen.show_table(rows, TICK_COLUMNS[:2], empty=f"never after {to_iso(at)}")


def past(reach: Reach, wanted: str, count: int, *, as_json: bool) -> None:
    """List what a schedule handed over lately, with each try that was refused, oldest first."""
    rows = handed_over(reach, find(reach, wanted)["Arn"])[-count:]
    if as_json:
        screen.show_json(rows)
    else:
        show_past(rows)


def find(reach: Reach, wanted: str) -> dict[str, Any]:
    """Answer GetSchedule of a schedule by name, GROUP/NAME or ARN. A name alone is looked for in `default` first, then in all groups."""
    name = wanted.rpartition(":schedule/")[2] if wanted.startswith("arn:") else wanted
    group, slash, rest = name.rpartition("/")
    if slash:
        return _get(reach, group, rest)
    there = [
        one["GroupName"]
        for one in every(reach, "scheduler", "list_schedules", "Schedules", NamePrefix=rest)
        if one["Name"] == rest
    ]
    if _DEFAULT in there or len(there) == 1:
        return _get(reach, _DEFAULT if _DEFAULT in there else there[0], rest)
    if there:
        names = ", ".join(f"{one}/{rest}" for one in there)
        raise Complaint(f"{len(there)} groups have a schedule {rest}", Code.USAGE, hint=f"name one: {names}")
    raise Complaint(f"no schedule is called {rest}", hint="see: tasuki schedule list")


def target_of(arn: str) -> str:
    """Shorten a target's ARN to its service and name."""
    parts = arn.split(":")
    if "aws-sdk" in parts:
        return ":".join(parts[parts.index("aws-sdk") :])
    return f"{parts[2]}:{':'.join(parts[5:])}" if len(parts) > 5 else arn


def list_deliveries(reach: Reach, **by: str) -> list[dict[str, Any]]:
    """Call ListDeliveries, the house's own operation; answer all pages."""
    return _house(reach, "ListDeliveries", "Deliveries", **by)


def handed_over(reach: Reach, arn: str) -> list[dict[str, Any]]:
    """Answer what a schedule or rule handed over, oldest first; `planned` is an event's id where a rule did it."""
    return [
        {
            "planned": _planned(one),
            "handed_over": one["At"],
            "late": _late(one),
            "to": one.get("TargetArn"),
            "arrived_as": one.get("ExecutionArn"),
            "outcome": one["Outcome"],
        }
        for one in _house(reach, "ListHandovers", "Handovers", SourceArn=arn)
    ]


def show_member(name: str, value: Any) -> None:
    """Print a member of a definition."""
    screen.line(f"{name:<44} {screen.text_of(value)}")


def show_on_its_way(deliveries: Sequence[dict[str, Any]]) -> None:
    """Print deliveries that no target has taken yet."""
    for one in deliveries:
        why = f", {one['Error']}: {short(one.get('Message'))}" if one.get("Error") else ""
        show_member("on its way", f"{_planned(one)}  {one['State']}, tries: {one['Attempts']}{why}")


def show_past(rows: list[dict[str, Any]], columns: Sequence[str] = PAST_COLUMNS) -> None:
    """Print what was handed over."""
    shown = [
        {
            **row,
            "to": target_of(row["to"] or ""),
            "late": f"{row['late']:.1f} s" if row.get("late") is not None else "",
            "arrived_as": (row["arrived_as"] or "").rpartition(":")[2],
            "outcome": short(row["outcome"]),
        }
        for row in rows
    ]
    screen.show_table(shown, columns, empty="nothing was handed over yet")


def _shown_name(group: str, name: str) -> str:
    return name if group == _DEFAULT else f"{group}/{name}"


def _house(reach: Reach, operation: str, member: str, **request: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    asked = {"MaxResults": PAGE, **request}
    while True:
        page = call_house(reach, operation, asked)
        found += page[member]
        if "NextToken" not in page:
            return found
        asked["NextToken"] = page["NextToken"]


def _get(reach: Reach, group: str, name: str) -> dict[str, Any]:
    told: dict[str, Any] = reach.client("scheduler").get_schedule(GroupName=group, Name=name)
    return told


def _ticks(reach: Reach, told: dict[str, Any], count: int) -> list[dict[str, str]]:
    page = call_house(reach, "ListScheduleTicks", {"ScheduleArn": told["Arn"], "MaxResults": count})
    zone = told.get("ScheduleExpressionTimezone", "UTC")
    return [
        _tick_row(datetime.fromisoformat(one["ScheduledTime"]), zone, one.get("FiresAt", "")) for one in page["Ticks"]
    ]


def _tick_row(planned: datetime, zone: str, fires: str | None = None) -> dict[str, str]:
    """`fires`: when, of a window that is drawn already; nothing as long as nobody knows; None where there is no window."""
    at = _seconds(planned)
    if fires is None:
        return {"planned": at, "local": _local(planned, zone)}
    moment = _seconds(datetime.fromisoformat(fires)) if fires else ""
    return {"planned": at, "local": _local(planned, zone), "fires": moment}


def _seconds(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _local(moment: datetime, zone: str) -> str:
    there = moment.astimezone(zone_of(zone) if known_zone(zone) else UTC)
    return f"{there:%a %Y-%m-%d %H:%M:%S %z} {zone}"


def _planned(one: dict[str, Any]) -> str:
    """Answer the planned time, under which a schedule's deliveries and hand-overs are known; of a rule's, the event's id."""
    text = str(one.get("SourceId") or one.get("MessageId") or "")
    try:
        return _seconds(datetime.fromisoformat(text))
    except ValueError:
        return text


def _late(one: dict[str, Any]) -> float | None:
    """Answer by how many seconds the hand-over came after the planned time."""
    try:
        planned = datetime.fromisoformat(str(one.get("MessageId")))
    except ValueError:
        return None
    return (datetime.fromisoformat(one["At"]) - planned).total_seconds()


def flat(at: str, value: Any) -> list[tuple[str, Any]]:
    """Write nested members as `Target.RetryPolicy.MaximumRetryAttempts`."""
    if not isinstance(value, dict):
        return [(at, value)]
    return [pair for name, inner in value.items() for pair in flat(f"{at}.{name}" if at else name, inner)]
