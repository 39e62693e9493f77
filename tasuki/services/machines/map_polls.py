"""What Map Runs do by themselves: read, open children, stop, write, end. One slice of one run a unit, in turn."""

import logging

from tasuki.engine.events import MapRunEnded, StopRequested
from tasuki.engine.turn import MAX_PAYLOAD_BYTES
from tasuki.language.errors import StatesError
from tasuki.services.machines import map_queries as sql
from tasuki.services.machines.item_readers import read_items
from tasuki.services.machines.map_children import ParentGone, open_children
from tasuki.services.machines.map_redriving import mark_children, redrive_children, unmark_children
from tasuki.services.machines.map_runs import MapRun, Stage, add_items, begin_redrive, find_by_id, wake
from tasuki.services.machines.result_writers import joined, write_results
from tasuki.services.machines.running import load, proceed, send
from tasuki.services.machines.setting import Setting
from tasuki.store.store import Tx
from tasuki.values.documents import Doc
from tasuki.values.instant import SECOND, Instant

log = logging.getLogger("tasuki.machines")

STOPPED_AT_ONCE = 50
PAUSE_MS = 10 * SECOND
"""How long a Map Run is left alone whose unit failed: it alone, and no other."""
TOLERANCE = ("States.ExceedToleratedFailureThreshold", "The specified tolerated failure threshold was exceeded")
"""Recorded."""


class MapTurns:
    """Serves Map Runs that have something to do, the one that waits the longest first."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._paused: dict[int, Instant] = {}

    def look(self, tx: Tx) -> Instant | None:
        """Tell when a Map Run has something to do: now, when a pause ends, or not before the bell."""
        if self._paused:
            self._paused = {one: until for one, until in self._paused.items() if until > tx.now}
        if self._next(tx) is not None:
            return tx.now
        return min(self._paused.values()) if self._paused else None

    def serve(self, tx: Tx) -> Instant | None:
        """Serve the Map Run whose turn it is; tell whether another one waits."""
        taken = self._next(tx)
        if taken is None:
            return None
        turn, number = taken
        tx.run(sql.DROP_READY, (turn,))
        run = find_by_id(tx, number)
        if run is not None:
            try:
                _serve(tx, self._setting, run)
            except Exception:
                log.error(  # noqa: TRY400 - the loop logs the trace
                    "Map Run %s could not go on; tried again in %s s", run.arn, PAUSE_MS // SECOND
                )
                self._paused[number] = tx.now + PAUSE_MS
                raise
        return tx.now if self._next(tx) is not None else None

    def _next(self, tx: Tx) -> tuple[int, int] | None:
        """Answer (turn, run) of whose turn it is."""
        for turn, run in tx.all(sql.NEXT_READY, (1 + len(self._paused),)):
            if run not in self._paused:
                return turn, run
        return None


def _serve(tx: Tx, setting: Setting, run: MapRun) -> None:
    """Let a Map Run do one slice of what it is at."""
    before = run.stage
    try:
        if run.stage is Stage.READING:
            _read(tx, setting, run)
        elif run.stage is Stage.RUNNING:
            _go_on(tx, setting, run)
        elif run.stage is Stage.STOPPING:
            _stop(tx, setting, run)
        elif run.stage is Stage.WRITING:
            _write(tx, setting, run)
        elif run.stage is Stage.REDRIVING:
            mark_children(tx, run)
        else:
            return
    except StatesError as error:
        if before is Stage.WRITING:
            run.error, run.cause = error.error, error.cause
            _end(tx, run, None)
        else:
            run.fail(error.error, error.cause)
    except ParentGone:
        run.abort()
    run.save(tx)
    if run.stage is not Stage.OVER and (run.stage is not Stage.RUNNING or before is not Stage.RUNNING):
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
    if run.has_failed:
        run.fail(*TOLERANCE)
        return
    waited = run.pending + run.total - run.taken
    if run.pending:
        redrive_children(tx, setting, run)
    elif run.taken < run.total:
        open_children(tx, setting, run)
    # What ended meanwhile was counted in the row.
    if waited and run.refresh(tx).has_failed:
        run.fail(*TOLERANCE)
        return
    wait = run.pending + run.total - run.taken
    if wait == 0 and run.running == 0:
        run.stage = Stage.WRITING
        run.cursor = {}
    elif 0 < wait < waited:
        wake(tx, run.id)


def _stop(tx: Tx, setting: Setting, run: MapRun) -> None:
    """Stop the next of the children that are open; each has a cause of its own to look at."""
    if run.pending:
        unmark_children(tx, run)
        return
    rows = tx.all(sql.OPEN_CHILDREN, (run.id, run.cursor["number"], STOPPED_AT_ONCE))
    for number, execution in rows:
        child = load(tx, setting, execution)
        if child is not None:
            proceed(tx, setting, child, (StopRequested(),))
        run.cursor = {"number": number}
    if len(rows) < STOPPED_AT_ONCE:
        run.cursor = {}
        if run.status == "ABORTED":
            _end(tx, run, None)
        else:
            run.stage = Stage.WRITING


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
        begin_redrive(tx, run)
        return
    if run.status == "ABORTED":
        return
    failed = run.error is not None
    run.status = "FAILED" if failed else "SUCCEEDED"
    if not failed:
        tx.run(sql.DROP_ITEMS, (run.id,))
    ended = MapRunEnded(run.frame, run.attempt, None if failed else output, run.error, run.cause)
    send(tx, run.execution, ended)
