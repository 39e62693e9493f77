"""What Map Runs do by themselves: read, open children, stop, write, end. One slice of one run a unit, in turn."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from tasuki.engine.events import MapRunEnded, StopRequested
from tasuki.engine.turn import MAX_PAYLOAD_BYTES
from tasuki.language.errors import StatesError
from tasuki.services.machines import map_queries as sql
from tasuki.services.machines import queries
from tasuki.services.machines.chunks import pack_event
from tasuki.services.machines.item_readers import read_items
from tasuki.services.machines.map_children import ParentGone, open_children
from tasuki.services.machines.map_redriving import mark_children, redrive_children, unmark_children
from tasuki.services.machines.map_runs import (
    MapRun,
    Stage,
    add_items,
    begin_redrive,
    made,
    map_run_arn,
    take_news,
    wake,
)
from tasuki.services.machines.result_writers import joined, write_results
from tasuki.services.machines.running import send
from tasuki.services.machines.setting import ROOM, Setting
from tasuki.store.store import Row, Tx
from tasuki.values.documents import Doc
from tasuki.values.errors import StoreError, StoreNewer
from tasuki.values.instant import SECOND, Instant

log = logging.getLogger("tasuki.machines")

STOPPED_AT_ONCE = 50
MOMENT_MS = 20
"""When to look again, while all that has something to do is in other hands."""
PAUSE_MS = 10 * SECOND
"""How long a Map Run is left alone whose unit failed: it alone, and no other."""
TOLERANCE = ("States.ExceedToleratedFailureThreshold", "The specified tolerated failure threshold was exceeded")
"""Recorded."""
_SERVED = "machines.map_run_served"


class MapTurns:
    """Serves Map Runs that have something to do, the one that waits the longest first; those in other hands are passed over.

    A Map Run whose unit fails for good (which only a fault of ours can do) is passed over for a while, too.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._paused: dict[int, Instant] = {}

    def look(self, tx: Tx) -> Instant | None:
        """Tell when a Map Run has something to do: now, when a pause ends, or not before the bell."""
        if self._paused:
            self._paused = {one: until for one, until in self._paused.items() if until > tx.now}
        if self._waits(tx):
            return tx.now
        return min(self._paused.values(), default=None)

    def serve(self, tx: Tx) -> Instant | None:
        """Serve the Map Run whose turn it is; tell whether another one waits."""
        row = next((row for row in self._rows(tx, sql.NEXT_RUNS) if row[1] not in self._paused), None)
        if row is None:
            return tx.now + MOMENT_MS if self._waits(tx) else None
        tx.notes[_SERVED] = row
        run = made(row[1:])
        # Before anything else is read: a child that ends later leaves a row that is not taken now.
        if take_news(tx, run):
            _serve(tx, self._setting, run)
        return tx.now if self._waits(tx) else None

    def failed(self, notes: Mapping[str, Any], now: Instant, why: Exception) -> bool:
        """Leave a Map Run alone whose unit failed for good; when the store is at fault, it is not."""
        row: Row | None = notes.get(_SERVED)
        if row is None or (isinstance(why, StoreError) and not isinstance(why, StoreNewer)):
            return False
        _, number, _, name, *_, account, region, machine = row
        arn = map_run_arn(account, region, machine, name)
        log.error("Map Run %s could not go on; tried again in %s s", arn, PAUSE_MS // SECOND, exc_info=why)
        self._paused[number] = now + PAUSE_MS
        return True

    def _waits(self, tx: Tx) -> bool:
        """Tell whether a Map Run has something to do, in whose hands it ever is."""
        return any(row[1] not in self._paused for row in self._rows(tx, sql.NEXT_READY))

    def _rows(self, tx: Tx, statement: str) -> Iterator[Row]:
        """Go through the turns, as far as they are asked for."""
        after, limit = 0, 1 + 4 * len(self._paused)
        while True:
            rows = tx.all(statement, (after, limit))
            yield from rows
            if len(rows) < limit:
                return
            after = rows[-1][0]


def _serve(tx: Tx, setting: Setting, run: MapRun) -> None:
    """Let a Map Run, which is held, do one slice of what it is at."""
    before = run.stage
    goes_on = True
    try:
        if run.stage is Stage.READING:
            _read(tx, setting, run)
        elif run.stage is Stage.RUNNING:
            _go_on(tx, setting, run)
        elif run.stage is Stage.STOPPING:
            goes_on = _stop(tx, run)
        elif run.stage is Stage.WRITING:
            _write(tx, setting, run)
        elif run.stage is Stage.REDRIVING:
            mark_children(tx, run)
    except StatesError as error:
        if before is Stage.WRITING:
            run.error, run.cause = error.error, error.cause
            _end(tx, run, None)
        else:
            run.fail(error.error, error.cause)
    except ParentGone:
        run.abort()
    run.save(tx)
    if run.stage is not Stage.OVER and (run.stage is not Stage.RUNNING or before is not Stage.RUNNING) and goes_on:
        wake(tx, run.id)


def _read(tx: Tx, setting: Setting, run: MapRun) -> None:
    """Read the next items of an object or a listing."""
    items, cursor = read_items(tx, setting, run.settings["reader"], run.cursor, run.total)
    add_items(tx, run.id, run.total, items)
    run.total += len(items)
    run.cursor = cursor or {}
    if cursor is None:
        run.was_read = 1
        run.stage = Stage.RUNNING


def _go_on(tx: Tx, setting: Setting, run: MapRun) -> None:
    """Look at what failed; open more children; go on to the end when all are over."""
    waited = run.pending + run.total - run.taken
    if not run.has_failed:
        if run.pending:
            redrive_children(tx, setting, run)
        elif run.taken < run.total:
            open_children(tx, setting, run)
    if run.has_failed:  # perhaps only now: some end at once
        run.fail(*TOLERANCE)
        return
    wait = run.pending + run.total - run.taken
    if wait == 0 and run.running == 0:
        run.stage = Stage.WRITING
        run.cursor = {}
    elif 0 < wait < waited:
        wake(tx, run.id)


def _stop(tx: Tx, run: MapRun) -> bool:
    """Have the next of the children that are open stop; go on when all have ended. Tell whether there is more to do now.

    Children that run are held by others: each is told through its inbox, and says when it has ended.
    """
    if run.pending:
        unmark_children(tx, run)
        return True
    rows = tx.all(sql.OPEN_CHILDREN, (run.id, run.cursor["number"], STOPPED_AT_ONCE))
    if rows:
        stop = pack_event(StopRequested())
        tx.many(queries.ADD_TO_INBOX, [(execution, stop) for _, execution in rows])
        tx.many(queries.ADD_READY, [(execution, 0) for _, execution in rows])
        tx.ring(ROOM)
        run.cursor = {"number": rows[-1][0]}
    if len(rows) == STOPPED_AT_ONCE:
        return True
    if run.running:
        return False
    run.cursor = {}
    if run.status == "ABORTED":
        _end(tx, run, None)
    else:
        run.stage = Stage.WRITING
    return True


def _write(tx: Tx, setting: Setting, run: MapRun) -> None:
    """Export the next results, then end; without an export, end with the results joined."""
    writer = run.settings["writer"]
    if writer is not None and writer["arguments"] is not None:
        cursor, output = write_results(tx, setting, run)
        run.cursor = cursor
        if output is None:
            return
        _end(tx, run, output)
    elif run.error is not None:
        _end(tx, run, None)
    else:
        transformation = writer["transformation"] if writer is not None else "COMPACT"
        _end(tx, run, joined(tx, run, transformation, MAX_PAYLOAD_BYTES))


def _end(tx: Tx, run: MapRun, output: Doc | None) -> None:
    """A Map Run is over: tell the execution that waits for it."""
    run.stage = Stage.OVER
    run.stopped_at = tx.now
    run.cursor = {}
    if run.again:
        begin_redrive(run)
        return
    if run.status == "ABORTED":
        return
    failed = run.error is not None
    run.status = "FAILED" if failed else "SUCCEEDED"
    if not failed:
        tx.run(sql.DROP_ITEMS, (run.id,))
    ended = MapRunEnded(run.frame, run.attempt, None if failed else output, run.error, run.cause)
    send(tx, run.execution, ended)
