"""Redrive of Map Runs: one that failed or was aborted goes on, with the children that did not succeed.

::

    RedriveExecution ─► Redriven(remains, map_runs) ─► RedriveMapRun ─► REDRIVING: failed children marked, slice by slice
                                                                        RUNNING:   these run again, then those not begun

A child that is marked waits (PENDING_REDRIVE) and counts as no failure any more; when the Map Run is stopped before its
turn, it is again what it was. Standard children go on where they failed, those of ExecutionType EXPRESS start over. What
cannot be redriven stays failed and counts towards what is tolerated (developer guide, "Redriving Map Runs").
"""

from collections.abc import Sequence
from typing import Any

from tasuki.engine.events import OldMapRun, Redriven, Started
from tasuki.engine.execution import Phase
from tasuki.engine.turn import MAX_STEP_BYTES, MAX_STEP_EVENTS
from tasuki.services.machines import map_queries as sql
from tasuki.services.machines.map_runs import EXPRESS_MS, MapRun, Stage, map_run_arn
from tasuki.services.machines.redriving_queries import REDRIVE
from tasuki.services.machines.remains import Ended, take_remains, why_not
from tasuki.services.machines.running import Run, load, proceed
from tasuki.services.machines.setting import Setting
from tasuki.services.machines.status_events import tell_status
from tasuki.store.store import Tx

MARKED_AT_ONCE = 200
REDRIVEN_AT_ONCE = 20
_STARTS_ANEW = frozenset({"States.DataLimitExceeded", "States.Runtime"})
"""A Map Run that failed with one of these is not gone on with: another one is started (same page of the guide)."""


def redriven(tx: Tx, execution: int) -> Redriven:
    """Take out what an execution left open; answer the event that has it go on."""
    remains = take_remains(tx, execution)
    found: dict[int, OldMapRun] = {}
    for frame in [remain.frame for remain in remains]:
        # A frame that runs belongs to a Task or to a Map Run: the attempt, which is given once an execution, tells.
        row = None
        if frame.phase is Phase.RUNNING:
            row = tx.one(sql.RUN_SEEN, (execution, frame.id, frame.attempt))
        if row is None:
            continue
        *names, status, error, was_read, redrives = row
        if status in {"FAILED", "ABORTED"} and error not in _STARTS_ANEW and was_read:  # else another one is started
            found[frame.id] = OldMapRun(map_run_arn(*names), redrives + 1)
    return Redriven(remains, found)


def mark_children(tx: Tx, run: MapRun) -> None:
    """Have the next children that failed wait for their redrive; when all do, the run runs."""
    rows = tx.all(sql.UNSUCCESSFUL, (run.id, run.cursor["number"], MARKED_AT_ONCE))
    marked: list[tuple[int, int, str]] = []
    for number, execution, items, *facts in rows:
        run.cursor = {"number": number}
        ended = Ended(*facts)
        if run.settings["express"] or why_not(ended, tx.now) is None:
            marked.append((execution, items, ended.status))
        else:
            run.lost += 1
            run.lost_items += items
    _mark(tx, run, marked, pending=1)
    if len(rows) < MARKED_AT_ONCE:
        run.stage = Stage.RUNNING
        run.cursor = {}


def unmark_children(tx: Tx, run: MapRun) -> None:
    """The run is stopped: the next children that wait are again what they were."""
    _mark(tx, run, tx.all(sql.PENDING, (run.id, MARKED_AT_ONCE)), pending=0)


def _mark(tx: Tx, run: MapRun, children: Sequence[Sequence[Any]], *, pending: int) -> None:
    """Count children, (execution, items, status), among those that wait instead of among those that failed, or back."""
    tx.many(sql.SET_PENDING, [(pending, execution) for execution, *_ in children])
    sign = 1 if pending else -1
    for _, items, status in children:
        run.count(status, -sign, -sign * items)
        run.pending += sign
        run.pending_items += sign * items


def redrive_children(tx: Tx, setting: Setting, run: MapRun) -> None:
    """Redrive as many children as there is room for, up to a unit's share."""
    room = run.room(setting.map_run_children)
    events = size = 0
    for execution, items, _ in tx.all(sql.PENDING, (run.id, min(room, REDRIVEN_AT_ONCE))) if room > 0 else ():
        tx.run(sql.SET_PENDING, (0, execution))
        run.pending -= 1
        run.pending_items -= items
        child = _start_over(tx, setting, execution) if run.settings["express"] else _go_on(tx, setting, execution)
        events += len(child.history)
        size += child.state.history_bytes - child.first_bytes
        failed = child.finish is not None and child.finish.status != "SUCCEEDED"
        if failed or events >= MAX_STEP_EVENTS or size >= MAX_STEP_BYTES:
            return  # perhaps that was one too many


def _go_on(tx: Tx, setting: Setting, execution: int) -> Run:
    """Let a Standard child go on where it failed."""
    tx.run(REDRIVE, (tx.now, execution))
    child = _loaded(tx, setting, execution)
    tell_status(tx, setting.switchboard, child.state)
    proceed(tx, setting, child, (redriven(tx, execution),))
    return child


def _start_over(tx: Tx, setting: Setting, execution: int) -> Run:
    """Let an Express child begin again."""
    tx.run(sql.START_OVER, (tx.now, tx.chance.hex(32), tx.now + EXPRESS_MS, execution))
    child = _loaded(tx, setting, execution)
    proceed(tx, setting, child, (Started(),))
    return child


def _loaded(tx: Tx, setting: Setting, execution: int) -> Run:
    child = load(tx, setting, execution)
    assert child is not None, "an execution that was made to run runs"
    return child
