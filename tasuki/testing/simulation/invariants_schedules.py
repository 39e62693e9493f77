"""Promises about schedules: every tick fires once, at its time, and no other; planned by `told_schedules.py` on its own."""

from collections import defaultdict

from tasuki.testing.simulation import queries
from tasuki.testing.simulation.invariants_deliveries import ledger_of, said
from tasuki.testing.simulation.ledger import Entry
from tasuki.testing.simulation.told_schedules import ARN, Life, instant_of
from tasuki.testing.simulation.world import Violation, World
from tasuki.values.instant import Instant


def _ticks_of(world: World, arn: str) -> dict[Instant, list[Entry]]:
    found: dict[Instant, list[Entry]] = defaultdict(list)
    for entry in ledger_of(world).by_source.get(arn, ()):
        found[instant_of(entry.name.source_id)].append(entry)
    return found


def no_tick_comes_unasked(world: World) -> None:
    """No tick before its time, after the end, while disabled, of no schedule, or twice in the life of one."""
    for entry in ledger_of(world).take_fresh("scheduler"):
        source, planned = entry.name.source, entry.name.source_id
        tick = instant_of(planned)
        if entry.fired < tick:
            raise Violation("no tick comes unasked", f"{said(entry.name)} came {tick - entry.fired} ms too soon")
        lives = world.told.schedules.lives.get(source, [])
        used = world.told.fired[source, tick]
        for number, life in enumerate(lives):
            if number not in used and life.allows(tick, entry.fired):
                used.add(number)
                break
        else:
            last = lives[-1].eras[-1] if lives else "no such schedule"
            raise Violation(
                "no tick comes unasked", f"{said(entry.name)}, fired at {entry.fired}, is not planned by {last}"
            )


def no_tick_is_lost(world: World) -> None:
    """At rest every tick that was due while its schedule was there and enabled has fired."""
    now = world.clock.now()
    for arn, lives in world.told.schedules.lives.items():
        life = lives[-1]
        if life.ended is not None or life.dying:
            continue
        fired = _ticks_of(world, arn)
        era = life.eras[-1]
        for tick in era.ticks(now):
            if tick not in fired:
                raise Violation("no tick is lost", f"{arn.removeprefix(ARN)} never fired for {tick}: {dict(era.given)}")
            era.must = tick + 1


def schedules_come_and_go_as_told(world: World) -> None:
    """At rest those schedules are there that clients made, but for those that were to go after their last tick, and went."""
    rows = {f"{ARN}{row[0]}/{row[1]}": row[2] for row in world.look(lambda tx: tx.all(queries.PLANNED))}
    for arn, lives in world.told.schedules.lives.items():
        life = lives[-1]
        if life.ended is not None:
            if arn in rows:
                raise Violation("schedules come and go as told", f"{arn} was deleted and is there")
        elif arn not in rows:
            if not life.dying and not _may_go(world, life):
                raise Violation("schedules come and go as told", f"{arn} is gone, and nobody deleted it")
            life.ended = world.clock.now()
        elif life.dying or (rows[arn] is None and len(life.eras) == 1 and _may_go(world, life)):
            raise Violation("schedules come and go as told", f"{arn} is there still, and was to go")
    strays = sorted(set(rows) - set(world.told.schedules.lives))
    if strays:
        raise Violation("schedules come and go as told", f"nobody made {strays[:3]}")


def _may_go(world: World, life: Life) -> bool:
    """Tell whether a schedule that goes by itself has fired in this life, has no tick to come, and all of that is over."""
    era = life.eras[-1]
    if not life.goes_by_itself or (era.is_enabled and era.next(world.clock.now()) is not None):
        return False
    number = world.told.schedules.lives[life.arn].index(life)
    own = [tick for (arn, tick), used in world.told.fired.items() if arn == life.arn and number in used]
    entries = _ticks_of(world, life.arn)
    return bool(own) and all(entry.ends for tick in own for entry in entries[tick])


def planned_times_have_timers(world: World) -> None:
    """A schedule's next tick fires at its time, or within its window, and a rule's at its time: its timer is due then.

    What was missed waits its turn behind what was due by the time it was looked at: then its timer is later, and due.
    """
    now = world.clock.now()
    for group, name, tick, moment, due in world.look(lambda tx: tx.all(queries.PLANNED)):
        life = world.told.schedules.current(f"{ARN}{group}/{name}")
        window = max((era.window_ms for era in life.eras), default=0) if life is not None else 0
        if not _wakes(moment, due, now):
            raise Violation("planned times have timers", f"{group}/{name} fires at {moment}, its timer is at {due}")
        if tick is not None and not tick <= moment < tick + max(window, 1):
            raise Violation("planned times have timers", f"{group}/{name} of {tick} fires at {moment}: {window} ms")
    for name, state, schedule, tick, due in world.look(lambda tx: tx.all(queries.RULES_PLANNED)):
        if not _wakes(tick, due, now) or (tick is None) != (state == "DISABLED" or schedule is None):
            raise Violation(
                "planned times have timers", f"rule {name} ({state}): {schedule} at {tick}, its timer {due}"
            )


def _wakes(planned: Instant | None, due: Instant | None, now: Instant) -> bool:
    return planned is None or due == planned or (due is not None and planned < due <= now)
