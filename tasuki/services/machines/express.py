"""Express executions: the same steps as Standard ones, without history, names and frames in rows.

::

    StartExecution, StartSyncExecution ─► begin ─┐         ┌─ it ended ─► nothing is kept, or the caller's answer
    a pipe, a Task ─► begin_later ─► timer ─┐    ▼         │
                                            └► fire ─► proceed ─ it waits ─► one row, one timer `express:ID`

What begins and ends inside one unit never becomes a row: a StartSyncExecution of such a machine that sends nothing
writes nothing at all. What waits (a Wait state, a retrier's delay, the bound of a unit) is one row, saved whole, and one
timer at the nearest of all its deadlines, so there is no second kind of queue: who goes on by itself has a timer that is due
now, behind those that are due already.

Promises, see docs/ARCHITECTURE.md. A step and the messages it sends are one unit, as everywhere; after a crash an execution
goes on behind its last unit.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

from tasuki.engine.commands import Finish
from tasuki.engine.events import Continued, Event, Started, StopRequested, TimerFired
from tasuki.engine.execution import Execution
from tasuki.language.integration_parameters import sdk_action
from tasuki.services.machines import express_queries as sql
from tasuki.services.machines.express_answers import sync_answer
from tasuki.services.machines.express_state import pack_standing, unpack_standing, with_news
from tasuki.services.machines.logging_records import log_history
from tasuki.services.machines.model import express_arn, machine_arn
from tasuki.services.machines.running import Run, in_hand, tell
from tasuki.services.machines.setting import ROOM, Setting
from tasuki.services.switchboard import Ending
from tasuki.store.store import Tx
from tasuki.store.timers import clear_timer, set_timer
from tasuki.values.documents import Doc, dumps
from tasuki.values.instant import HOUR, MINUTE, Instant
from tasuki.values.sdk_shapes import show

OWNER = "express"
LONGEST_MS = 5 * MINUTE
"""How long an Express execution may take (Step Functions quotas)."""
KEPT_MS = HOUR
"""How long an answer waits for a caller who does not take it (he has left)."""
STANDING_BYTES = 32 << 20
"""How large an execution may be that waits; the documents in it are bounded one by one, their number is not."""


def express_id(run: Run) -> str:
    """Answer the id of an Express execution: the end of its ARN."""
    return run.state.arn.rpartition(":")[2]


def topic_of(execution: str) -> str:
    """Answer the bell that rings when an execution has an answer for its caller."""
    return f"express:{execution}"


def begin(tx: Tx, setting: Setting, run: Run, caller: str | None = None) -> None:
    """Start an execution and let it do its first share in this unit; `run.finish` tells whether that was all."""
    _proceed(tx, setting, run, (Started(),), caller, is_row=False)


def begin_later(tx: Tx, run: Run) -> None:
    """Write an execution that begins in a later unit."""
    _insert(tx, run, None, None)
    set_timer(tx, ROOM, f"{OWNER}:{express_id(run)}", tx.now)


def hold(tx: Tx, execution: str) -> None:
    """Take an execution in hand before anything that is read of it, and before its timer."""
    tx.lock(sql.HOLD_EXPRESS, (execution,))


def fire(tx: Tx, setting: Setting, execution: str) -> None:
    """The execution's timer has come: it begins, goes on, or is forgotten. Its timer row is taken."""
    row = tx.one(sql.LOAD_EXPRESS, (execution,))
    if row is None:
        return
    machine_id, revision, name, text, started_at, seed, trace, caller, watcher, standing, ended, *machine = row
    if ended:
        tx.run(sql.DROP_EXPRESS, (execution,))
        return
    account, region, machine_name, status, digest, role_arn, logging = machine
    run = Run(
        machine=setting.definitions.machine(tx, digest, revision),
        state=Execution(
            arn=express_arn(account, region, machine_name, name, execution),
            name=name,
            machine_arn=machine_arn(account, region, machine_name),
            machine_name=machine_name,
            role_arn=role_arn,
            input=Doc.of_text(text),
            started_at=started_at,
            seed=seed,
            trace=trace,
            express=True,
        ),
        machine_id=machine_id,
        revision=revision,
        account=account,
        region=region,
        watcher=watcher,
        id=0,
        deleting=status != "ACTIVE",
        logging=logging,
    )
    events: Iterable[Event] = (Started(),) if standing is None else _news(run.state, standing, tx.now)
    run.first_bytes = run.state.history_bytes
    run.last_at = max((frame.entered_at for frame in run.state.frames.loaded()), default=started_at)
    _proceed(tx, setting, run, events, caller, is_row=True)


def _news(state: Execution, standing: bytes, now: Instant) -> list[Event]:
    """Put an execution where it stood; answer what it is to be told now."""
    news, goes_on = unpack_standing(state, standing)
    if state.deadline is not None and state.deadline <= now:
        return [TimerFired(0)]
    frames = sorted(state.frames.loaded(), key=lambda frame: frame.id)
    news += [TimerFired(frame.id) for frame in frames if frame.due is not None and frame.due <= now]
    return [*news, Continued()] if goes_on else news


def send(tx: Tx, execution: str, event: Event) -> None:
    """Have an execution told something in a later unit, if it is open.

    The one place where a unit waits for a second execution: who called is told by whom it called, and never the other way
    round, so nobody waits in a circle.
    """
    row = tx.one(sql.EXPRESS_STANDING, (execution,))
    if row is None or row[0] is None:
        return
    tx.run(sql.SAVE_EXPRESS, (with_news(row[0], event), execution))
    set_timer(tx, ROOM, f"{OWNER}:{execution}", tx.now)


def _proceed(tx: Tx, setting: Setting, run: Run, events: Iterable[Event], caller: str | None, *, is_row: bool) -> None:
    """Tell an execution what happened, do what it wants, and save or end it."""
    held = in_hand(tx)
    held.append(run)
    try:
        standing = _tell(tx, setting, run, events)
    finally:
        held.pop()
    log_history(tx, run.logging, run.state.arn, run.history)
    if run.finish is not None:
        _end(tx, setting, run, caller, is_row=is_row)
        return
    if is_row:
        tx.run(sql.SAVE_EXPRESS, (standing, express_id(run)))
    else:
        _insert(tx, run, caller, standing)
    set_timer(tx, ROOM, f"{OWNER}:{express_id(run)}", tx.now if run.goes_on else _due(run.state))


def _tell(tx: Tx, setting: Setting, run: Run, events: Iterable[Event]) -> bytes:
    """Tell an execution what happened and do what it wants; answer where it stands then, packed."""
    given: deque[Event] = deque(events)
    if run.deleting:
        run.finish = Finish("ABORTED", cause="The state machine has been deleted.")
    follow: deque[Event] = deque()
    while (given or follow) and run.finish is None and not run.is_full:
        tell(tx, setting, run, (follow or given).popleft(), follow)
        latest = run.state.started_at + LONGEST_MS
        if run.state.deadline is None or run.state.deadline > latest:
            run.state.deadline = latest
    if run.finish is not None:
        return b""
    # Timers that were not told are due still.
    news = [*follow, *(event for event in given if not isinstance(event, TimerFired | Continued))]
    run.goes_on = run.goes_on or bool(given or follow)
    standing = pack_standing(run.state, news, goes_on=run.goes_on)
    if len(standing) > STANDING_BYTES:
        cause = f"An Express execution that waits may not be larger than {STANDING_BYTES} bytes."
        tell(tx, setting, run, StopRequested("States.Runtime", cause), follow)
    return standing


def _due(state: Execution) -> Instant:
    """Answer the nearest deadline in an execution; it always has one, its own."""
    assert state.deadline is not None
    return min(state.deadline, *(frame.due for frame in state.frames.loaded() if frame.due is not None), state.deadline)


def _insert(tx: Tx, run: Run, caller: str | None, standing: bytes | None) -> None:
    state = run.state
    facts = (express_id(run), run.machine_id, run.revision, state.name, state.input.text, state.started_at)
    tx.run(sql.ADD_EXPRESS, (*facts, state.seed, state.trace, caller, run.watcher, standing))


def _end(tx: Tx, setting: Setting, run: Run, caller: str | None, *, is_row: bool) -> None:
    """An execution is over: forget it, but keep the answer for a caller who waits."""
    assert run.finish is not None
    execution = express_id(run)
    if run.watcher is not None:
        action = sdk_action("sfn", "startSyncExecution")
        assert action is not None, "the model of Step Functions has it"
        output = show(action.output, sync_answer(facts_of(run), ending_of(run, tx.now), trace=run.state.trace))
        setting.switchboard.finished(tx, run.watcher, Ending(run.finish.status == "SUCCEEDED", output))
    if not is_row:
        return
    if caller is None:
        tx.run(sql.DROP_EXPRESS, (execution,))
        clear_timer(tx, ROOM, f"{OWNER}:{execution}")
        return
    tx.run(sql.END_EXPRESS, (dumps(ending_of(run, tx.now)), execution))
    set_timer(tx, ROOM, f"{OWNER}:{execution}", tx.now + KEPT_MS)
    tx.ring(topic_of(execution))


def facts_of(run: Run) -> dict[str, Any]:
    """Answer what StartSyncExecution says of the start."""
    return {
        "executionArn": run.state.arn,
        "stateMachineArn": run.state.machine_arn,
        "name": run.state.name,
        "startDate": run.state.started_at,
        "input": run.state.input.text,
    }


def ending_of(run: Run, now: Instant) -> dict[str, str | int | None]:
    """Answer what StartSyncExecution says of the end: status, stopDate, output, error, cause."""
    end = run.finish
    assert end is not None
    output = end.output.text if end.output is not None else None
    return {
        "status": end.status,
        "stopDate": max(now, run.last_at),
        "output": output,
        "error": end.error,
        "cause": end.cause,
    }


def take_answer(tx: Tx, execution: str) -> None:
    """The caller has the answer."""
    tx.run(sql.DROP_EXPRESS, (execution,))
    clear_timer(tx, ROOM, f"{OWNER}:{execution}")
