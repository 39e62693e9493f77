"""Promises about events: whoever wanted one has it, or a dead letter of it; who did not, has not. Planned times of rules fire once."""

from tasuki.testing.simulation import queries
from tasuki.testing.simulation.invariants_deliveries import ledger_of, policy_of, said
from tasuki.testing.simulation.ledger import Entry
from tasuki.testing.simulation.shapes import TICKS
from tasuki.testing.simulation.told_rules import OF_THE_HOUSE, Event, bus_of, due_between, plans
from tasuki.testing.simulation.told_schedules import instant_of
from tasuki.testing.simulation.world import Violation, World
from tasuki.values.instant import MINUTE, Instant

_BUS = ":event-bus/"
_SLACK_MS = 5 * MINUTE
"""How long a call to an API destination may be in hand; its end is what is written down."""


def note_passed_on(world: World) -> None:
    """What schedules, rules and pipes put on a bus is an event there."""
    ledger, rules = ledger_of(world), world.told.rules
    for entry in ledger.entries.values():
        name = entry.name
        if _BUS not in name.target or entry.outcome != "DELIVERED" or id(entry) in rules.forwarded:
            continue
        rules.forwarded.add(id(entry))
        at, _, event = entry.ends[0]
        bus = name.target.rpartition(_BUS)[2]
        if ":scheduler:" in name.source:
            rules.take(Event(bus, event, "clock", "a", 2, at))
            continue
        before = rules.events.get((bus_of(name.source), event))
        source = before.source if before is not None else "aws"
        kind, n = (before.kind, before.n) if before is not None else ("", None)
        rules.take(Event(bus, event, source, kind, n, at))
    for number, one in enumerate(ledger.passed):
        if _BUS in one.target and one.outcome == "DELIVERED" and -1 - number not in rules.forwarded:
            rules.forwarded.add(-1 - number)
            rules.take(Event(one.target.rpartition(_BUS)[2], one.target_id, "pipe", None, None, one.at))


def events_reach_nobody_else(world: World) -> None:
    """What a rule gives to a target is an event that it matched while it was enabled and had the target; in its time."""
    note_passed_on(world)
    rules = world.told.rules
    for entry in world.ledger.take_fresh("events"):
        name = entry.name
        event = rules.events.get((bus_of(name.source), name.source_id))
        if event is not None:
            if not rules.may(name.source, event, name.target, entry.fired):
                raise Violation("events reach nobody else", f"{said(name)}: {event} is not for it")
            _check_age(entry, event.at)
            continue
        eras = rules.during(name.source, 0, entry.fired)
        if not any(
            era.enabled and (era.schedule or era.pattern in OF_THE_HOUSE) and name.target in era.targets.values()
            for era in eras
        ):
            raise Violation("events reach nobody else", f"{said(name)}: nobody put such an event")


def _check_age(entry: Entry, taken: Instant) -> None:
    """No try after the age that the policy allows."""
    age_ms = policy_of(entry.name.source)[1]
    if entry.outcome == "DELIVERED" and ":api-destination/" not in entry.name.target:
        late = entry.ends[0][0] - taken - age_ms
        if late > _SLACK_MS:
            raise Violation("events reach nobody else", f"{said(entry.name)} was tried {late} ms too late")


def events_reach_who_wants_them(world: World) -> None:
    """At rest: whoever wanted an event from the moment it was taken in until now has it, or it is on its way there."""
    note_passed_on(world)
    rules, now = world.told.rules, world.clock.now()
    there = {
        (entry.name.source, entry.name.source_id, entry.name.target) for entry in ledger_of(world).entries.values()
    }
    there |= {tuple(row[1:4]) for row in world.look(lambda tx: tx.all(queries.DELIVERIES))}
    waiting, rules.waiting = rules.waiting, []
    for event in waiting:
        for rule, target in rules.must(event, now):
            if (rule, event.id, target) not in there:
                raise Violation("events reach who wants them", f"{event} never came from {rule} to {target}")


def planned_times_of_rules_fire_once(world: World) -> None:
    """At rest each planned time of a rule with the queue as a target has come there, and no other has."""
    rules, now = world.told.rules, world.clock.now()
    for arn, eras in rules.eras.items():
        era = eras[-1]
        if not era.schedule or not era.enabled or f":{TICKS}" not in str(era.targets.get("queue")):
            continue
        for due in due_between(era, max(era.at, world.told.rules_due[arn]), now):
            key = f"r:{arn}@{_in_seconds(due)}:q"
            if key not in world.told.sent:
                raise Violation("planned times of rules fire once", f"{key} never came")
            world.told.rules_due[arn] = due
    for key in world.told.sent.keys() - rules.planned:
        rules.planned.add(key)
        if not key.startswith("r:"):
            continue
        arn, _, rest = key[2:].partition("@")
        time = rest.rpartition(":")[0]
        if not any(plans(era, instant_of(time)) for era in rules.eras.get(arn, [])):
            raise Violation("planned times of rules fire once", f"{key} was never planned")


def _in_seconds(at: Instant) -> str:
    from tasuki.values.instant import to_iso

    return to_iso(at)[:19] + "Z"
