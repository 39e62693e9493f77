"""The shell around `step`: load, tell, perform, save. One execution at a time, inside the caller's unit.

::

    StartExecution ─► begin ─┐
    SendTask..., Stop ───────┤            ┌── ScheduleTask ─► integration ─► an event more
    a timer ─────────────────┼─► proceed ─┤   CancelTask   ─► integration.cancel
    a ready row, its inbox ──┘     │      └── Finish       ─► the end: rows dropped, the watcher told
                                   └► save: execution, chunk, frames, timers

A unit is bounded: `step` yields by itself, and when the events of a unit together reach the same bounds, what is left
goes to the inbox and the execution behind all others that are ready.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from tasuki.engine.commands import CancelMapRun, CancelTask, Command, Finish, RedriveMapRun, ScheduleTask, StartMapRun
from tasuki.engine.events import Event, StopRequested, TaskStarted
from tasuki.engine.execution import Execution, Frames
from tasuki.engine.history import HistoryEvent
from tasuki.engine.turn import MAX_STEP_BYTES, MAX_STEP_EVENTS
from tasuki.language.definition import Machine
from tasuki.services.machines import queries as sql
from tasuki.services.machines.activities_queue import (
    activity_exists,
    found_no_task,
    hold_to_wait,
    is_poll,
    offer,
    wait_for_task,
    withdraw,
)
from tasuki.services.machines.chunks import pack_event, pack_history
from tasuki.services.machines.endings import ending_columns, told_ending, too_large
from tasuki.services.machines.logging_records import log_history
from tasuki.services.machines.map_runs import Child, begin_map_run, change_map_run, child_ended, child_of
from tasuki.services.machines.model import execution_arn, machine_arn
from tasuki.services.machines.performing import Wishes
from tasuki.services.machines.remains import keep_remains
from tasuki.services.machines.rows import SavedFrames, drop_rows, save_frames, submitted_handles, timer_key
from tasuki.services.machines.setting import ROOM, Setting
from tasuki.services.machines.status_events import tell_status
from tasuki.services.machines.throttling import Purse, step_within
from tasuki.store.store import Tx
from tasuki.store.timers import set_timer
from tasuki.values.documents import Doc
from tasuki.values.instant import Instant

_IN_HAND = "machines.in_hand"


class NameTaken(Exception):
    """The name of a new execution is taken. Nothing was written."""


@dataclass(slots=True)
class Run:
    """An execution in hand, and what concerns the shell alone."""

    machine: Machine
    state: Execution
    machine_id: int
    revision: int
    account: str
    region: str
    watcher: str | None = None
    origin: str | None = None
    origin_id: str | None = None
    version: int | None = None
    alias: str | None = None
    """By which version and alias it was started."""
    id: int | None = None
    """None while it has no row; 0 for an Express execution, which has none here (express.py)."""
    saved: SavedFrames | None = None
    """None while it never had a frame in a row."""
    deleting: bool = False
    """Its machine was deleted."""
    logging: str = ""
    """The revision's logging configuration, as it is stored."""
    child: Child | None = None
    """What it is to a Map Run."""
    fired: int | None = None
    """The frame whose timer row was taken in this unit."""
    last_at: Instant = 0
    """When its newest event was written, or it started: no later event may have an earlier time, whatever a node's clock says."""
    purse: Purse | None = None
    """It is served in its turn, and this is what it has for it."""
    history: list[HistoryEvent] = field(default_factory=list)
    goes_on: bool = False
    finish: Finish | None = None
    wishes: Wishes | None = None
    submitted: dict[tuple[int, int], str] | None = None
    """Handles that wait in the inbox, once somebody looked."""
    first_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Tell whether this unit has done its share."""
        return len(self.history) >= MAX_STEP_EVENTS or self.state.history_bytes - self.first_bytes >= MAX_STEP_BYTES


def load(tx: Tx, setting: Setting, execution_id: int, statement: str = sql.LOAD) -> Run | None:
    """Take an open execution in hand; None when it has ended or is not known.

    On PostgreSQL it is held from here on until the unit is over, so what is read of it afterwards is how it stands.
    """
    row = tx.one(statement, (execution_id,))
    if row is None or row[4] != "RUNNING":
        return None
    (_, machine_id, revision, name, _, text, started_at, seed, trace, watcher, deadline, *rest) = row
    last_event, last_frame, last_attempt, history_bytes, variable_bytes, *machine = rest
    account, region, machine_name, status, digest, role_arn, logging, *more = machine
    version, alias, redrives, redriven_at, last_at = more
    own_arn = machine_arn(account, region, machine_name)
    saved = SavedFrames(tx, execution_id)
    run = Run(
        machine=setting.definitions.machine(tx, digest, revision),
        state=Execution(
            arn=execution_arn(account, region, machine_name, name),
            name=name,
            machine_arn=own_arn,
            machine_name=machine_name,
            role_arn=role_arn,
            input=Doc.of_text(text),
            started_at=started_at,
            seed=seed,
            trace=trace,
            frames=Frames(saved, variable_bytes),
            last_event=last_event,
            last_frame=last_frame,
            last_attempt=last_attempt,
            deadline=deadline,
            history_bytes=history_bytes,
            redrive_count=redrives,
            redriven_at=redriven_at,
            version_arn=f"{own_arn}:{version}" if version is not None else None,
            alias_arn=f"{own_arn}:{alias}" if alias is not None else None,
            has_activity=partial(activity_exists, tx),
        ),
        machine_id=machine_id,
        revision=revision,
        account=account,
        region=region,
        watcher=watcher,
        version=version,
        alias=alias,
        id=execution_id,
        saved=saved,
        deleting=status != "ACTIVE",
        logging=logging,
        first_bytes=history_bytes,
        last_at=last_at,
    )
    if "/" in machine_name:
        run.child, run.state.block, run.state.item = child_of(tx, execution_id, run.state.input)
        run.state.express = run.child.express
    return run


def in_hand(tx: Tx) -> list[Run]:
    """Answer the execution that this unit steps (and what it runs within itself): it steps no other until that is done."""
    held: list[Run] = tx.notes.setdefault(_IN_HAND, [])
    return held


def proceed(tx: Tx, setting: Setting, run: Run, events: Iterable[Event]) -> int:
    """Tell an execution what happened, do what it wants, and save it; answer how many of `events` it was told.

    Raises `NameTaken` when the execution is new and its name is not.
    """
    held = in_hand(tx)
    held.append(run)
    try:
        return _proceed(tx, setting, run, events)
    finally:
        held.pop()


def _proceed(tx: Tx, setting: Setting, run: Run, events: Iterable[Event]) -> int:
    given = deque(events)
    if run.deleting and not any(isinstance(event, StopRequested) for event in given):
        given = deque([StopRequested(None, "The state machine has been deleted.")])
    follow: deque[Event] = deque()
    told = 0
    while (given or follow) and run.finish is None and not run.is_full:
        if follow:
            event = follow.popleft()
        else:
            event = given.popleft()
            told += 1
        tell(tx, setting, run, event, follow)
        if run.state.history_bytes > setting.execution_bytes and run.finish is None:
            tell(tx, setting, run, too_large(setting.execution_bytes), follow)
    _save(tx, setting, run)
    if run.finish is not None:
        _end(tx, setting, run)
        return told
    assert run.id is not None
    for event in follow:
        tx.run(sql.ADD_TO_INBOX, (run.id, pack_event(event)))
    if run.goes_on or follow or given:
        make_ready(tx, run.id, goes_on=run.goes_on)
    return told


def tell(tx: Tx, setting: Setting, run: Run, event: Event, follow: deque[Event]) -> None:
    """Tell an execution one thing and do what it wants; what that leads to at once is put behind `follow`.

    Saves nothing.
    """
    outcome = step_within(setting.transitions, run, event, max(tx.now, run.last_at))
    if outcome.history:
        run.history += outcome.history
        run.last_at = outcome.history[-1].at
    run.goes_on = run.goes_on or outcome.ready
    if outcome.commands:
        _perform(tx, setting, run, outcome.commands, follow)


def make_ready(tx: Tx, execution_id: int, *, goes_on: bool = False) -> None:
    """Have an execution served in its turn."""
    tx.run(sql.ADD_READY, (execution_id, int(goes_on)))
    tx.ring(ROOM)


def send(tx: Tx, execution_id: int, event: Event) -> None:
    """Have an execution told something in a later unit."""
    tx.run(sql.ADD_TO_INBOX, (execution_id, pack_event(event)))
    make_ready(tx, execution_id)


def _perform(
    tx: Tx,
    setting: Setting,
    run: Run,
    commands: Iterable[Command],
    follow: deque[Event],
) -> None:
    """Turn commands into calls and rows; what integrations answer at once is put behind `follow`."""
    cancelled = {(c.frame, c.attempt) for c in commands if isinstance(c, CancelTask)}
    for command in commands:
        if isinstance(command, Finish):
            run.finish = command
        elif isinstance(command, CancelTask):
            _cancel(tx, setting, run, command, follow)
        elif isinstance(command, StartMapRun):
            begin_map_run(
                tx,
                command,
                execution=insert_row(tx, setting, run),
                revision=run.revision,
                account=run.account,
                region=run.region,
                machine=run.state.machine_name,
            )
        elif isinstance(command, CancelMapRun | RedriveMapRun):
            change_map_run(tx, insert_row(tx, setting, run), command)
        elif (command.frame, command.attempt) in cancelled:
            continue
        elif command.resource.kind == "activity":
            _offer(tx, setting, run, command, follow)
        else:
            wishes = _wishes(tx, setting, run)
            may_wait = is_poll(command.resource) and not run.state.express
            if may_wait:
                hold_to_wait(tx, command)
            answer = wishes.schedule(command)
            if may_wait and found_no_task(answer):
                wait_for_task(tx, insert_row(tx, setting, run), command)
            else:
                follow.append(answer)


def _offer(tx: Tx, setting: Setting, run: Run, command: ScheduleTask, follow: deque[Event]) -> None:
    """Have an activity's task wait for a worker; a Task of some execution may have waited for it."""
    taken = offer(tx, insert_row(tx, setting, run), command)
    if taken is not None:
        follow.append(TaskStarted(command.frame, command.attempt, taken.worker))
        send(tx, taken.execution, taken.answer)


def _cancel(tx: Tx, setting: Setting, run: Run, command: CancelTask, follow: deque[Event]) -> None:
    """Stop what a task started: known to the frame, to this unit, or to the inbox."""
    if command.resource.kind == "activity" or (is_poll(command.resource) and not run.state.express):
        withdraw(tx, insert_row(tx, setting, run), command.frame, command.attempt)
    if not command.resource.pattern.startswith("sync"):
        return
    handle = command.handle
    if handle is None and run.wishes is not None:
        handle = run.wishes.handles.get((command.frame, command.attempt))
    if handle is None and run.id is not None and run.saved is not None:
        if run.submitted is None:
            run.submitted = submitted_handles(tx, run.id)
        handle = run.submitted.get((command.frame, command.attempt))
    if handle is not None:
        _wishes(tx, setting, run).cancel(command, handle)
    for waiting in [event for event in follow if getattr(event, "attempt", None) == command.attempt]:
        follow.remove(waiting)


def _wishes(tx: Tx, setting: Setting, run: Run) -> Wishes:
    """Answer who calls integrations for this execution; it needs its row for that."""
    if run.wishes is None:
        run.wishes = Wishes(
            tx,
            setting.switchboard,
            execution=insert_row(tx, setting, run),
            arn=run.state.arn,
            account=run.account,
            region=run.region,
            trace=run.state.trace,
        )
    return run.wishes


def insert_row(tx: Tx, setting: Setting, run: Run) -> int:
    """Answer the id of an execution's row, which is written now if it was not. Raises `NameTaken`."""
    if run.id is None:
        _insert(tx, setting, run)
    assert run.id is not None
    return run.id


def _insert(tx: Tx, setting: Setting, run: Run) -> None:
    """Write the row of a new execution. Raises `NameTaken`."""
    state = run.state
    status, output, error, cause, stopped_at = ending_columns(run.finish, run.last_at)
    row = tx.one(
        sql.ADD_EXECUTION,
        (
            run.machine_id,
            run.revision,
            state.name,
            status,
            state.input.text,
            output,
            error,
            cause,
            state.started_at,
            stopped_at,
            state.seed,
            state.trace,
            run.origin,
            run.origin_id,
            run.watcher,
            state.deadline,
            state.last_event,
            state.last_frame,
            state.last_attempt,
            state.history_bytes,
            state.frames.variable_bytes,
            run.version,
            run.alias,
            run.child.run if run.child is not None else None,
            run.last_at or state.started_at,
        ),
    )
    if row is None:
        raise NameTaken
    run.id = row[0]
    tell_status(tx, setting.switchboard, state)


def insert_unstepped(tx: Tx, setting: Setting, run: Run) -> None:
    """Write a new execution that begins in a later unit. Raises `NameTaken`."""
    _insert(tx, setting, run)
    assert run.id is not None
    make_ready(tx, run.id, goes_on=True)


def _save(tx: Tx, setting: Setting, run: Run) -> None:
    """Write the execution, its chunk and its frames."""
    state = run.state
    if run.id is None:
        _insert(tx, setting, run)
    elif run.history or run.finish is not None:
        status, output, error, cause, stopped_at = ending_columns(run.finish, run.last_at)
        ending = (status, output, error, cause, stopped_at)
        numbers = (state.last_event, state.last_frame, state.last_attempt, state.history_bytes)
        weight = state.frames.variable_bytes
        tx.run(sql.SAVE_EXECUTION, (*ending, state.deadline, *numbers, weight, run.last_at, run.id))
    assert run.id is not None
    # An Express child has no history that anybody could ask for.
    for first, count, body in pack_history(run.history) if not state.express else ():
        tx.run(sql.ADD_CHUNK, (run.id, first, count, body))
    log_history(tx, run.logging, state.arn, run.history, state.redrive_count)
    if run.finish is not None:
        return
    save_frames(tx, run.id, state, run.saved.timers if run.saved is not None else {}, run.fired)
    begun = bool(run.history) and (run.history[0].id == 1 or run.history[0].type == "ExecutionRedriven")
    if begun and state.deadline is not None:
        set_timer(tx, ROOM, timer_key(run.id, 0), state.deadline)


def _end(tx: Tx, setting: Setting, run: Run) -> None:
    """An execution is over: nothing of it waits any more, and who watches it hears of it.

    What its tasks started has been stopped: the engine wants a CancelTask for every one that is open.
    """
    assert run.id is not None
    assert run.finish is not None
    if run.saved is not None:
        below = f"{run.state.block}/"
        has_results = any(path.startswith(below) for path in run.machine.blocks)
        drop_rows(tx, run.id, has_results=has_results, was_served=run.purse is not None)
    if run.finish.remains and not run.state.express:
        keep_remains(tx, run.id, run.finish.remains)
    tell_status(tx, setting.switchboard, run.state, run.finish, run.last_at)
    if run.child is not None:
        child_ended(tx, run.child, run.finish)
    if run.watcher is not None:
        setting.switchboard.finished(tx, run.watcher, told_ending(run.state, run.finish, run.last_at))
    if run.deleting:
        tx.lock(sql.HOLD_MACHINE, (run.machine_id,))
        if tx.one(sql.ANY_OPEN, (run.machine_id,)) is None:
            tx.run(sql.END_DELETING, (run.machine_id,))
