"""Frames in rows: where `step` finds what was saved, and how what it changed is saved again."""

from tasuki.engine.execution import Execution, Frame, Phase
from tasuki.engine.saved import pack_counts, pack_frame, unpack_frame
from tasuki.services.machines.chunks import unpack_submitted
from tasuki.services.machines.queries import (
    ADD_RESULT,
    DROP_FRAME,
    DROP_FRAMES,
    DROP_INBOX_OF,
    DROP_READY_OF,
    DROP_RESULTS,
    DROP_RESULTS_OF,
    FRAME,
    FRAMES_BELOW,
    INBOX,
    READY_FRAMES,
    RESULTS,
    SAVE_COUNTS,
    SAVE_FRAME,
    SAVE_TIMER,
)
from tasuki.services.machines.setting import ROOM
from tasuki.store.store import Row, Tx
from tasuki.store.timers import clear_timer, clear_timers, set_timer
from tasuki.values.documents import Doc
from tasuki.values.instant import Instant

EVERY_ROW = 1 << 31


class SavedFrames:
    """The saved frames of one execution, read when the engine asks (`FrameSource`).

    Remembers what each frame's timer row says. A timer is written when a nearer deadline needs it, or none is left;
    a deadline that moved away (a heartbeat) leaves the row as it is, and firing looks again.
    """

    def __init__(self, tx: Tx, execution: int) -> None:
        self._tx = tx
        self._execution = execution
        self.timers: dict[int, Instant | None] = {}

    def frame(self, frame_id: int) -> Frame | None:
        """Answer a saved frame."""
        row = self._tx.one(FRAME, (self._execution, frame_id))
        return self._made(row) if row is not None else None

    def children(self, parent: int) -> list[Frame]:
        """Answer the saved open frames below `parent`."""
        return [self._made(row) for row in self._tx.all(FRAMES_BELOW, (self._execution, parent))]

    def ready(self) -> list[Frame]:
        """Answer the saved frames that wait for nothing."""
        return [self._made(row) for row in self._tx.all(READY_FRAMES, (self._execution,))]

    def results(self, parent: int) -> list[tuple[int, Doc]]:
        """Answer the saved results of `parent`'s finished children."""
        return [(child, Doc.of_text(text)) for child, text in self._tx.all(RESULTS, (self._execution, parent))]

    def _made(self, row: Row) -> Frame:
        frame_id, body, counts, timer = row
        self.timers.setdefault(frame_id, timer)
        return unpack_frame(body, counts)


def submitted_handles(tx: Tx, execution: int) -> dict[tuple[int, int], str]:
    """Answer the handles of what was started and is not told yet, by frame and attempt: they wait in the inbox."""
    rows = tx.all(INBOX, (execution, EVERY_ROW))
    return dict(found for _, body in rows if (found := unpack_submitted(body)) is not None)


def timer_key(execution: int, frame: int) -> str:
    """Name a frame's timer; frame 0 is the execution's deadline."""
    return f"{execution}:{frame}"


def drop_rows(tx: Tx, execution: int, *, has_results: bool, was_served: bool) -> None:
    """An execution is over: nothing of it waits any more.

    `has_results`: its machine has branches or iterations. `was_served`: its ready rows are taken. They go before the inbox:
    news that comes in between leaves a row there, and is swept by whoever serves it.
    """
    tx.run(DROP_FRAMES, (execution,))
    if has_results:
        tx.run(DROP_RESULTS, (execution,))
    if not was_served:
        tx.run(DROP_READY_OF, (execution,))
    tx.run(DROP_INBOX_OF, (execution,))
    clear_timers(tx, ROOM, str(execution))


def save_frames(tx: Tx, execution: int, state: Execution, timers: dict[int, Instant | None], fired: int | None) -> None:
    """Save what a unit changed in the frames of an execution that goes on.

    `timers` is what their timer rows say, `fired` the frame whose timer row was just taken.
    """
    frames = state.frames
    if fired is not None:
        timers[fired] = None
    for parent in frames.dropped | frames.closed:
        tx.run(DROP_RESULTS_OF, (execution, parent))
    for frame_id in frames.closed:
        tx.run(DROP_FRAME, (execution, frame_id))
        if timers.get(frame_id) is not None:
            clear_timer(tx, ROOM, timer_key(execution, frame_id))
    for frame_id in frames.changed:
        frame = frames.get(frame_id)
        assert frame is not None
        timer = _keep_timer(tx, execution, frame, timers.get(frame_id))
        ready = 1 if frame.phase is Phase.READY else 0
        tx.run(SAVE_FRAME, (execution, frame_id, frame.parent, timer, ready, frame.token, pack_frame(frame)))
    for frame_id in frames.counted:
        frame = frames.get(frame_id)
        assert frame is not None
        tx.run(SAVE_COUNTS, (pack_counts(frame), execution, frame_id))
    for parent, outputs in frames.new_results.items():
        tx.many(ADD_RESULT, [(execution, parent, child, output.text) for child, output in outputs.items()])
    if fired and fired not in frames.changed and fired not in frames.closed:
        frame = frames.get(fired)
        if frame is not None:
            tx.run(SAVE_TIMER, (_keep_timer(tx, execution, frame, None), execution, fired))


def _keep_timer(tx: Tx, execution: int, frame: Frame, timer: Instant | None) -> Instant | None:
    """Bring a frame's timer row in step with its nearest deadline; answer what the row says now."""
    due = frame.due
    if due is None:
        if timer is not None:
            clear_timer(tx, ROOM, timer_key(execution, frame.id))
        return None
    if timer is None or due < timer:
        set_timer(tx, ROOM, timer_key(execution, frame.id), due)
        return due
    return timer
