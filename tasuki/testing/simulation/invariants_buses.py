"""Promises about events: whoever wanted one has it, or a dead letter of it; who did not, has not. Planned times of rules fire once."""

from tasuki.store.store import Row, Unit
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
    """What pipes, schedules and rules put on a bus is an event there. Rules come last: they pass on what the others put."""
    ledger, rules = ledger_of(world), world.told.rules
    for number, one in enumerate(ledger.passed):
        if _BUS in one.target and one.outcome == "DELIVERED" and ("", number) not in rules.forwarded:
            rules.forwarded.add(("", number))
            rules.take(Event(one.target.rpartition(_BUS)[2], one.target_id, "pipe", None, None, one.at))
    onto = [entry for entry in ledger.entries.values() if _BUS in entry.name.target and entry.outcome == "DELIVERED"]
    for entry in sorted(onto, key=lambda entry: ":scheduler:" not in entry.name.source):
        if entry.name in rules.forwarded:
            continue
        rules.forwarded.add(entry.name)
        at, _, event = entry.ends[0]
        bus = entry.name.target.rpartition(_BUS)[2]
        if ":scheduler:" in entry.name.source:
            rules.take(Event(bus, event, "clock", "a", 2, at))
            continue
        before = rules.events.get((bus_of(entry.name.source), event))
        if before is not None:
            rules.take(before._replace(bus=bus, at=at))


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


def the_house_tells_of_its_executions(world: World) -> None:
    """At rest a rule that asks for ends of executions has given each target an event, at least, for each that ended meanwhile."""
    now, told = world.clock.now(), world.told
    for arn, eras in told.rules.eras.items():
        era = eras[-1]
        if not era.enabled or era.pattern != "states" or not era.targets:
            continue
        asked = (max(era.at, told.rules_due[arn]), now)
        told.rules_due[arn] = now
        ended, rows = world.look(_ended_and_kept(asked))
        for target in era.targets.values():
            heard = {entry.name.source_id for entry in ledger_of(world).by_source[arn] if entry.name.target == target}
            heard |= {row[2] for row in rows if (row[1], row[3]) == (arn, target)}
            before = told.heard[arn, target]
            told.heard[arn, target] = len(heard)
            if len(heard) - before < ended:
                raise Violation(
                    "the house tells of its executions",
                    f"{ended} executions ended since {asked[0]}, and {arn} told {target} of {len(heard) - before}",
                )


def _ended_and_kept(asked: tuple[Instant, Instant]) -> Unit[tuple[int, list[Row]]]:
    return lambda tx: (tx.all(queries.ENDED, asked)[0][0], tx.all(queries.DELIVERIES))


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
