"""What this room does by itself: serve executions that are ready, in turn; and timers."""

import logging
from contextlib import nullcontext

from tasuki.engine.events import Continued, Event, Started, TimerFired
from tasuki.services.machines import activities_queue, express
from tasuki.services.machines import queries as sql
from tasuki.services.machines.chunks import unpack_event
from tasuki.services.machines.map_redriving import redriven
from tasuki.services.machines.running import Run, load, make_ready, proceed, send
from tasuki.services.machines.setting import Setting
from tasuki.store.store import Tx
from tasuki.values.instant import SECOND, Instant

log = logging.getLogger("tasuki.machines")

INBOX_ROWS = 64
"""What happened to an execution is told in portions; a unit stays small."""
PAUSE_MS = 10 * SECOND
"""How long an execution is left alone whose unit failed: it alone, and no other."""
_RETIRED = frozenset({"retention", "logs"})
"""Owners of timers that older versions set; a poll does their work now (retention.py)."""


class Turns:
    """Serves ready executions, the one that waits the longest first.

    Each look notes the last turn given out, and the rounds that follow serve no later one: an execution that goes on is
    put behind all others, and no two rounds that share a commit serve the same. An execution whose unit fails (which
    only a fault of ours can do) is passed over for a while, so that it holds up nobody.
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
        return tx.now if self._next(tx) is not None else min(self._paused.values())

    def serve(self, tx: Tx) -> Instant | None:
        """Serve the execution whose turn it is; tell whether another one waits."""
        transitions = self._setting.transitions
        if transitions is not None and (opens := transitions.opens(tx.now)) > tx.now:
            return opens
        taken = self._next(tx)
        if taken is None:
            return None
        turn, execution, goes_on = taken
        tx.run(sql.DROP_READY, (turn,))
        try:
            with transitions.front() if transitions is not None else nullcontext():
                self._serve(tx, execution, goes_on=bool(goes_on))
        except Exception:
            # Said here, where its name is known: the store runs the group again without it.
            log.exception("execution %s could not go on; tried again in %s s", execution, PAUSE_MS // SECOND)
            self._paused[execution] = tx.now + PAUSE_MS
            raise
        self._paused.pop(execution, None)
        return tx.now if self._next(tx) is not None else None

    def _next(self, tx: Tx) -> tuple[int, int, int] | None:
        """Answer (turn, execution, goes on) of whose turn it is."""
        for turn, execution, goes_on in tx.all(sql.NEXT_READY, (self._last_turn, 1 + len(self._paused))):
            if execution not in self._paused:
                return turn, execution, goes_on
        return None

    def _serve(self, tx: Tx, execution: int, *, goes_on: bool) -> None:
        run = load(tx, self._setting, execution)
        if run is None:
            tx.run(sql.DROP_INBOX_OF, (execution,))
            return
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
        tx.run(sql.DROP_INBOX, (run.id, rows[told - 1][0]))
    if len(rows) == INBOX_ROWS:
        make_ready(tx, run.id)


def _next_step(tx: Tx, run: Run) -> Event:
    """Answer what lets an execution go on: it begins, goes on where it stopped at its bound, or was redriven."""
    if not run.state.last_event:
        return Started()
    if run.state.redriven_at is not None and run.id is not None and (event := redriven(tx, run.id)).remains:
        return event
    return Continued()


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
