"""`rule list`, `show` and `past`: the rules of event buses, and what became of the events that they matched."""

from typing import Any

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.events import short
from tasuki.cli.pages import every
from tasuki.cli.reach import Reach
from tasuki.cli.schedules import (
    SHOWN_PAST,
    flat,
    handed_over,
    list_deliveries,
    show_member,
    show_on_its_way,
    show_past,
    target_of,
)

COLUMNS = ("rule", "bus", "state", "schedule", "pattern", "targets")
PAST_COLUMNS = ("event", "handed_over", "to", "arrived_as", "outcome")
_DEFAULT = "default"


def ls(reach: Reach, bus: str | None, *, as_json: bool) -> None:
    """List the rules of a bus, or of all."""
    rows = []
    for name in [bus] if bus is not None else _buses(reach):
        for rule in every(reach, "events", "list_rules", "Rules", EventBusName=name):
            targets = every(
                reach, "events", "list_targets_by_rule", "Targets", Rule=rule["Name"], EventBusName=rule["EventBusName"]
            )
            rows.append(
                {
                    "rule": rule["Name"],
                    "bus": rule["EventBusName"],
                    "state": rule["State"],
                    "schedule": rule.get("ScheduleExpression"),
                    "pattern": rule.get("EventPattern"),
                    "targets": [target["Arn"] for target in targets],
                }
            )
    if as_json:
        screen.show_json(rows)
        return
    for row in rows:
        row["pattern"] = short(row["pattern"])
        row["targets"] = ", ".join(target_of(arn) for arn in row["targets"])
    screen.show_table(rows, COLUMNS, empty="no rule yet; make one with PutRule")


def show(reach: Reach, wanted: str, *, as_json: bool) -> None:
    """Show a rule: how it was defined, its targets, what is on its way, and what it handed over last."""
    arn = _rule_arn(reach, wanted)
    bus, _, name = arn.rpartition(":rule/")[2].rpartition("/")
    told = reach.client("events").describe_rule(Name=name, EventBusName=bus or _DEFAULT)
    definition = {member: value for member, value in told.items() if member != "ResponseMetadata"}
    targets = every(reach, "events", "list_targets_by_rule", "Targets", Rule=name, EventBusName=told["EventBusName"])
    on_its_way = list_deliveries(reach, SourceArn=arn)
    rows = _past(reach, arn)[-SHOWN_PAST:]
    if as_json:
        screen.show_json({**definition, "targets": list(targets), "deliveries": on_its_way, "past": rows})
        return
    for member, value in definition.items():
        show_member(member, value)
    for number, target in enumerate(targets):
        for member, value in flat(f"Targets[{number}]", target):
            show_member(member, value)
    show_on_its_way(on_its_way)
    if rows:
        screen.line("")
        show_past(rows, PAST_COLUMNS)


def past(reach: Reach, wanted: str, count: int, *, as_json: bool) -> None:
    """List what a rule handed over lately, with each try that was refused and what was dropped, oldest first."""
    rows = _past(reach, _rule_arn(reach, wanted))[-count:]
    if as_json:
        screen.show_json(rows)
    else:
        show_past(rows, PAST_COLUMNS)


def _past(reach: Reach, arn: str) -> list[dict[str, Any]]:
    return [
        {"event": row["planned"], **{name: row[name] for name in PAST_COLUMNS[1:]}} for row in handed_over(reach, arn)
    ]


def _rule_arn(reach: Reach, wanted: str) -> str:
    """Answer the ARN of a rule by ARN (also of one that is deleted), BUS/NAME or name."""
    if wanted.startswith("arn:"):
        return wanted
    bus, slash, name = wanted.rpartition("/")
    found = {
        one: str(rule["Arn"])
        for one in ([bus] if slash else _buses(reach))
        for rule in every(reach, "events", "list_rules", "Rules", EventBusName=one, NamePrefix=name)
        if rule["Name"] == name
    }
    if _DEFAULT in found or len(found) == 1:
        return found.get(_DEFAULT) or next(iter(found.values()))
    if found:
        names = ", ".join(f"{one}/{name}" for one in found)
        raise Complaint(f"{len(found)} buses have a rule {name}", Code.USAGE, hint=f"name one: {names}")
    raise Complaint(f"no rule is called {wanted}", hint="see: tasuki rule list")


def _buses(reach: Reach) -> list[str]:
    events, names, token = reach.client("events"), [], None
    while True:
        page = events.list_event_buses(**({"NextToken": token} if token else {}))
        names += [str(one["Name"]) for one in page["EventBuses"]]
        token = page.get("NextToken")
        if not token:
            return names
