"""What the room does when time passes: it holds events against rules, and fires rules that have a schedule.

::

    PutEvents, publish ─► bus_events ─► Matching.run ─┐
    a timer `rule:ID` ──► on_timer ───────────────────┴─► one delivery per target ─► switchboard.post

What the house tells of itself waits in a lane of its own: it may be a storm, and holds up nobody who puts events.

An event and all that its rules make of it are one unit, so each target gets it once; where more than `MOST_DELIVERIES` are to
be made, the event's row says how far it has come. Rules are those of the moment at which the event is looked at.

A planned time fires for its own rule's targets alone (recorded: a scheduled rule is no pattern). After a downtime each missed
time is delivered, with its planned time in the event, if it is no more than a day old: as long as a delivery may take. The
next one is counted from this one, so lateness never drifts; older ones are skipped, since AWS promises nothing about them.
"""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from tasuki.rules.expressions import parse_expression
from tasuki.rules.templates import TooLong
from tasuki.services.buses import queries as sql
from tasuki.services.buses.errors import InvalidJson
from tasuki.services.buses.inputs import Seen
from tasuki.services.buses.model import LANES, MAX_AGE_MS, NAME, Bus, Rule, in_seconds, trace_header
from tasuki.services.buses.putting import scheduled
from tasuki.services.buses.shelf import Compiler, aims_of
from tasuki.services.buses.targets import Aim
from tasuki.services.room import Poll
from tasuki.services.switchboard import Delivery, Switchboard
from tasuki.store.store import Tx
from tasuki.store.timers import clear_timer, set_timer
from tasuki.values.documents import loads
from tasuki.values.errors import StoreError
from tasuki.values.instant import SECOND, Instant

log = logging.getLogger("tasuki.buses")

MOST_DELIVERIES = 100
"""Deliveries and events of one unit, each counted by its size; the targets of the last rule come on top."""
MOST_EVENTS = 50
COUNTS_ONCE = 16 * 1024
"""Bytes of an event that count as one: one of 256 KiB counts as seventeen."""
PAUSE_MS = 10 * SECOND
"""How long an event is left alone that could not be looked at."""
OTHERS_MS = 50
"""When to look again at what another node has in hand: its unit is over soon, and perhaps undone."""
INVALID = "invalid"
"""In a delivery's context: why its payload could not be made."""
HOPS = "Hops"
"""In a delivery's parameters: through how many buses the event has come."""
_EVENT = "buses.event"


class Waiting(NamedTuple):
    """An event as its row holds it."""

    id: int
    bus: int
    after: int
    hops: int
    ingested: Instant
    trace: str
    body: str


class Matching:
    """Holds events against the rules of their buses."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard
        self._compiler = Compiler()
        self._paused: dict[int, Instant] = {}
        """Events that failed, and until when they are left alone: a round that fails writes nothing."""
        self._broken: set[int] = set()
        """Events that failed ever: given up once they are as old as a delivery may become."""

    def poll(self) -> Poll:
        """Answer the poll."""
        return Poll(name=NAME, topics=(NAME,), look=self.look, run=self.run, failed=self.failed)

    def look(self, tx: Tx) -> Instant | None:
        """Tell whether events wait."""
        for number in [number for number, until in self._paused.items() if until <= tx.now]:
            del self._paused[number]
        rows = tx.all(sql.ANY_EVENT, (1 + len(self._paused),))
        if any(row[0] not in self._paused for row in rows):
            return tx.now
        return min(self._paused.values(), default=None) if rows else None

    def run(self, tx: Tx) -> Instant | None:
        """Look at the next events; where all are in other nodes' hands, again in a little while."""
        lanes = [[Waiting(*row) for row in tx.all(sql.TAKE_EVENTS, (lane, self._most()))] for lane in LANES]
        busy = [lane for lane in lanes if lane]
        over: list[tuple[int]] = []
        for lane in busy:
            self._serve(tx, lane, MOST_DELIVERIES // len(busy), over)
        if over:
            tx.many(sql.DROP_EVENT, over)
        tx.notes.pop(_EVENT, None)
        return tx.now if busy else tx.now + OTHERS_MS

    def _most(self) -> int:
        return MOST_EVENTS + len(self._paused)

    def _serve(self, tx: Tx, waiting: list[Waiting], room: int, over: list[tuple[int]]) -> None:
        """Look at events of a lane as long as there is room for deliveries; note which are over."""
        for event in waiting:
            if event.id in self._paused:
                continue
            if room <= 0:
                return
            if event.id in self._broken and event.ingested + MAX_AGE_MS <= tx.now:
                log.error("event %s could not be matched for a day; dropped", event.id)
                over.append((event.id,))
                continue
            tx.notes[_EVENT] = event.id
            weight = 1 + len(event.body) // COUNTS_ONCE
            made, goes_on = self._match(tx, event, room // weight)
            room -= (1 + made) * weight
            if goes_on is None:
                over.append((event.id,))
            else:
                tx.run(sql.GO_ON, (goes_on, event.id))

    def failed(self, notes: Mapping[str, Any], now: Instant, why: Exception) -> bool:
        """Leave an event alone that could not be looked at; when the store is at fault, it is not."""
        number = notes.get(_EVENT)
        if number is None or isinstance(why, StoreError):
            return False
        log.error("event %s could not be matched; tried again in %s s", number, PAUSE_MS // SECOND, exc_info=why)
        self._paused[number] = now + PAUSE_MS
        self._broken.add(number)
        return True

    def _match(self, tx: Tx, waiting: Waiting, room: int) -> tuple[int, int | None]:
        """Post what the rules make of an event; answer how many deliveries, and the rule after which to go on, if any."""
        rules = self._compiler.rules(tx, waiting.bus)
        made, after = 0, waiting.after
        if rules is None:
            return made, None
        seen = Seen(loads(waiting.body), waiting.body, waiting.ingested, waiting.trace, waiting.hops)
        for rule in rules.for_source(seen.event["source"], after):
            if made >= max(1, room):
                return made, after
            if rule.matches(seen.event):
                for aim in rule.aims:
                    post(tx, self._switchboard, rules.bus, aim, seen)
                made += len(rule.aims)
            after = rule.id
        return made, None


def post(tx: Tx, switchboard: Switchboard, bus: Bus, aim: Aim, seen: Seen) -> None:
    """Post an event's delivery to one target."""
    context: dict[str, str] = {}
    payload, parameters = seen.body, {}
    try:
        payload = aim.render(seen)
        parameters = aim.parameters(seen)
    except (InvalidJson, TooLong) as bad:
        context[INVALID] = str(bad)
    if ":event-bus/" in aim.arn:
        parameters = {HOPS: seen.hops + 1}
    switchboard.post(
        tx,
        Delivery(
            sender=NAME,
            source=aim.rule,
            source_id=seen.event["id"],
            target=aim.arn,
            payload=payload,
            account=bus.account,
            region=bus.region,
            trace=seen.trace,
            since=seen.ingested,
            max_age_ms=aim.max_age_ms,
            max_retries=aim.max_retries,
            parameters=parameters,
            dead_letter=aim.dead_letter,
            context=context,
            letter=None if payload is seen.body else seen.body,
        ),
    )


# -- planned times ------------------------------------------------------------------------------------------


def plan(tx: Tx, rule: Rule, start: Instant) -> None:
    """Plan a rule's next time, from now on; a rate counts from `start`. None for a rule without a schedule, or disabled."""
    due = None
    if rule.schedule is not None and rule.is_enabled:
        due = parse_expression(rule.schedule, "rule").next(tx.now, start=start)
    _set_tick(tx, rule.id, start, due)


def _set_tick(tx: Tx, rule: int, start: Instant | None, due: Instant | None) -> None:
    tx.run(sql.SET_TICK, (start, due, rule))
    if due is None:
        clear_timer(tx, NAME, f"rule:{rule}")
    else:
        # What was missed waits its turn behind what is due by now.
        set_timer(tx, NAME, f"rule:{rule}", max(due, tx.now))


def hold_owner(tx: Tx, key: str) -> None:
    """Take in hand the rule whose timer `rule:ID` is, before the timer is claimed."""
    tx.lock(sql.HOLD_RULE, (int(key.partition(":")[2]),))


def fire(tx: Tx, switchboard: Switchboard, key: str) -> None:
    """A rule's planned time has come: its timer `rule:ID` was taken."""
    row = tx.one(sql.RULE_BY_ID, (int(key.partition(":")[2]),))
    if row is None:
        return
    kept = tx.one(sql.BUS_BY_ID, (row[1],))
    assert kept is not None, "a bus with rules is never deleted"
    rule = Rule.of(Bus(*kept), row)
    if rule.tick is None or rule.schedule is None or not rule.is_enabled:
        return
    expression, tick, oldest = parse_expression(rule.schedule, "rule"), rule.tick, tx.now - MAX_AGE_MS
    if tick < oldest:
        log.warning("rule %s: its times from %s on are more than a day late; skipped", rule.arn, in_seconds(tick))
        found = expression.next(oldest - 1, start=rule.start_at)
        if found is None or found > tx.now:
            _set_tick(tx, rule.id, rule.start_at, found)
            return
        tick = found
    event = scheduled(tx, rule.arn, rule.bus.account, rule.bus.region, tick)
    seen = Seen(loads(event.body), event.body, tx.now, trace_header(tx.chance.hex(24), tx.now))
    documents = [document for _, document in tx.all(sql.TARGETS, (rule.id, "", MOST_DELIVERIES))]
    for aim in aims_of(documents, rule.arn, rule.name):
        post(tx, switchboard, rule.bus, aim, seen)
    _set_tick(tx, rule.id, rule.start_at, expression.next(tick, start=rule.start_at))
