"""What this room does by itself: serve executions that are ready, in turn; and timers."""

from tasuki.engine.events import Continued, Event, Started, TimerFired
from tasuki.services.machines import queries as sql
from tasuki.services.machines.chunks import unpack_event
from tasuki.services.machines.running import Run, load, make_ready, proceed
from tasuki.services.machines.setting import Setting
from tasuki.store.store import Tx
from tasuki.values.instant import Instant

INBOX_ROWS = 64
"""What happened to an execution is told in portions; a unit stays small."""


def look_ready(tx: Tx) -> Instant | None:
    """Tell whether an execution has something to do now."""
    return tx.now if tx.one(sql.ANY_READY) is not None else None


def serve_ready(tx: Tx, setting: Setting) -> Instant | None:
    """Serve the execution whose turn it is; one that goes on is put behind all others."""
    row = tx.one(sql.NEXT_READY)
    if row is None:
        return None
    turn, execution, goes_on = row
    tx.run(sql.DROP_READY, (turn,))
    run = load(tx, setting, execution)
    if run is None:
        tx.run(sql.DROP_INBOX_OF, (execution,))
    else:
        _serve(tx, setting, run, goes_on=bool(goes_on))
    following = tx.one(sql.NEXT_READY)
    if following is None:
        return None
    return tx.now if following[1] != execution else tx.now + 1  # one alone takes a commit for each of its rounds


def _serve(tx: Tx, setting: Setting, run: Run, *, goes_on: bool) -> None:
    """Tell an execution what is in its inbox, or let it go on."""
    assert run.id is not None
    events: list[Event] = []
    if goes_on:
        events.append(Continued() if run.state.last_event else Started())
    rows = tx.all(sql.INBOX, (run.id, INBOX_ROWS))
    events += [unpack_event(body) for _, body in rows]
    told = proceed(tx, setting, run, events) - len(events) + len(rows)
    if run.finish is not None:
        return
    if told > 0:
        tx.run(sql.DROP_INBOX, (run.id, rows[told - 1][0]))
    if len(rows) == INBOX_ROWS:
        make_ready(tx, run.id)


def fire(tx: Tx, setting: Setting, key: str) -> None:
    """A frame's deadline has come, or seemed to: its timer row is taken, the engine looks again."""
    execution, _, frame = key.partition(":")
    run = load(tx, setting, int(execution))
    if run is None:
        return
    run.fired = int(frame)
    proceed(tx, setting, run, (TimerFired(int(frame)),))
