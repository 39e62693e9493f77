"""What this room does by itself: serve executions that are ready, in turn; and timers.

What holds while many units do so at a time (PostgreSQL; on SQLite they come one after the other anyway)::

    whoever serves          whoever has news for it         a timer
    hold the execution      (holds another one, or none)    hold the execution
    take its ready rows     put it into the inbox           claim the timer
    read its inbox          add a ready row                 ...
    ... save; drop what was told, row by row

* An execution is held before anything of it is read or changed, and only one is held; another one is told by its inbox, whose
  rows nobody waits for. So nobody waits in a circle.
* The line is taken before the inbox is read: news that is not seen has a ready row that was not taken, and is served later.
* Inbox rows are told in the order of their numbers. Of two that follow from each other the first is committed when the second
  gets its number; others happened at the same time, and any order is right. Numbers become visible in any order, so each row
  is dropped by its own.
"""

import logging
from collections.abc import Mapping
from typing import Any

from tasuki.engine.events import Continued, Event, Started, TimerFired
from tasuki.services.machines import activities_queue, express
from tasuki.services.machines import queries as sql
from tasuki.services.machines.chunks import unpack_event
from tasuki.services.machines.map_redriving import redriven
from tasuki.services.machines.running import Run, load, make_ready, proceed, send
from tasuki.services.machines.setting import Setting
from tasuki.services.machines.throttling import Purse
from tasuki.store.store import Tx
from tasuki.values.errors import StoreError
from tasuki.values.instant import SECOND, Instant

log = logging.getLogger("tasuki.machines")

INBOX_ROWS = 64
"""What happened to an execution is told in portions; a unit stays small."""
MOMENT_MS = 20
"""When to look again, while all that is ready is in other hands."""
PAUSE_MS = 10 * SECOND
"""How long an execution is left alone whose unit failed: it alone, and no other."""
_SERVED = "machines.served"
_RETIRED = frozenset({"retention", "logs"})
"""Owners of timers that older versions set; a poll does their work now (retention.py)."""


class Turns:
    """Serves ready executions, the one that waits the longest first.

    Each look notes the last turn given out, and the rounds that follow serve no later one, so that rounds which share a
    commit do not serve the same execution over and over. That is all it is for: on PostgreSQL turns become visible in any
    order, and one that does late is served in the next rounds. Which execution is in other hands, is passed over.

    An execution whose unit fails for good (which only a fault of ours can do) is passed over for a while, so that it holds
    up nobody.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._last_turn = 1 << 62
        self._paused: dict[int, Instant] = {}

    def look(self, tx: Tx) -> Instant | None:
        """Tell when an execution has something to do: now, when a pause ends, or not before the bell."""
        row = tx.one(sql.LAST_TURN)
        transitions = self._setting.transitions
        if row is None or row[0] is None:
            if transitions is not None:
                transitions.nobody_waits()
            return None
        self._last_turn = row[0]
        if transitions is not None and (opens := transitions.opens(tx.now)) > tx.now:
            return opens
        if self._paused:
            self._paused = {one: until for one, until in self._paused.items() if until > tx.now}
        return tx.now if self._next(tx) is not None else min(self._paused.values(), default=None)

    def serve(self, tx: Tx) -> Instant | None:
        """Serve the execution whose turn it is; tell whether another one waits."""
        transitions = self._setting.transitions
        if transitions is None:
            return self._serve_next(tx, Purse(0))
        # Taken before anything is asked of the store: others take meanwhile, and whose turn it is would find nothing left.
        if (opens := transitions.opens(tx.now)) > tx.now:
            return opens
        purse = Purse(transitions.take(tx.now, in_front=True))
        try:
            return self._serve_next(tx, purse)
        finally:
            transitions.give_back(purse.tokens, more=False)

    def _serve_next(self, tx: Tx, purse: Purse) -> Instant | None:
        execution = self._next(tx, sql.HOLD_READY)
        if execution is None:
            return tx.now + MOMENT_MS if self._next(tx) is not None else None
        tx.notes[_SERVED] = execution
        # Before the inbox is read: whoever puts something into it later leaves a row here that is not taken now.
        taken = tx.all(sql.TAKE_READY, (execution,))
        if not taken:
            return tx.now  # somebody else has served it since it was found
        self._serve(tx, execution, purse, goes_on=any(goes_on for (goes_on,) in taken))
        if self._paused:
            self._paused.pop(execution, None)
        return tx.now if self._next(tx) is not None else None

    def failed(self, notes: Mapping[str, Any], now: Instant, why: Exception) -> bool:
        """Leave an execution alone whose unit failed for good; when the store is at fault, it is not."""
        execution = notes.get(_SERVED)
        if execution is None or isinstance(why, StoreError):
            return False
        log.error("execution %s could not go on; tried again in %s s", execution, PAUSE_MS // SECOND, exc_info=why)
        self._paused[execution] = now + PAUSE_MS
        return True

    def _next(self, tx: Tx, statement: str = sql.NEXT_READY) -> int | None:
        """Answer whose turn it is."""
        after, limit = 0, 1 + 4 * len(self._paused)
        while True:
            rows = tx.all(statement, (after, self._last_turn, limit))
            for turn, execution in rows:
                if execution not in self._paused:
                    return int(execution)
                after = turn
            if len(rows) < limit:
                return None

    def _serve(self, tx: Tx, execution: int, purse: Purse, *, goes_on: bool) -> None:
        run = load(tx, self._setting, execution)
        if run is None:
            tx.run(sql.DROP_INBOX_OF, (execution,))
            return
        run.purse = purse
        _tell_news(tx, self._setting, run, goes_on=goes_on)


def _tell_news(tx: Tx, setting: Setting, run: Run, *, goes_on: bool) -> None:
    """Tell an execution what is in its inbox, after letting it begin or go on."""
    assert run.id is not None
    events: list[Event] = []
    if goes_on:
        events.append(_next_step(tx, run))
    rows = tx.all(sql.INBOX, (run.id, INBOX_ROWS))
    events += [unpack_event(body) for _, body in rows]
    told = proceed(tx, setting, run, events) - len(events) + len(rows)
    if run.finish is not None:
        return
    if told > 0:
        tx.many(sql.DROP_INBOX, [row[:1] for row in rows[:told]])
    if len(rows) == INBOX_ROWS:
        make_ready(tx, run.id)


def _next_step(tx: Tx, run: Run) -> Event:
    """Answer what lets an execution go on: it begins, goes on where it stopped at its bound, or was redriven."""
    if not run.state.last_event:
        return Started()
    if run.state.redriven_at is not None and run.id is not None and (event := redriven(tx, run.id)).remains:
        return event
    return Continued()


def hold_owner(tx: Tx, key: str) -> None:
    """Take in hand whose timer `key` is, before the timer is claimed: whoever steps an execution takes them in this order."""
    owner, _, place = key.partition(":")
    if owner == express.OWNER:
        express.hold(tx, place)
    elif owner == activities_queue.OWNER:
        tx.lock(sql.HOLD_EXECUTION, (int(place.partition(":")[0]),))
    elif owner not in _RETIRED:
        tx.lock(sql.HOLD_EXECUTION, (int(owner),))


def fire(tx: Tx, setting: Setting, key: str) -> None:
    """A frame's deadline has come, or seemed to: its timer row is taken, the engine looks again.

    `key`: `EXECUTION:FRAME`, or one of the room's own (express.py, activities_queue.py).
    """
    owner, _, place = key.partition(":")
    if owner in _RETIRED:
        return
    if owner == express.OWNER:
        express.fire(tx, setting, place)
        return
    if owner == activities_queue.OWNER:
        found = activities_queue.end_wait(tx, key)
        if found is not None:
            send(tx, found.execution, found.answer)
        return
    run = load(tx, setting, int(owner))
    if run is None:
        return
    run.fired = int(place)
    proceed(tx, setting, run, (TimerFired(int(place)),))
