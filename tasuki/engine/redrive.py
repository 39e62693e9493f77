"""Redrive: an execution that ended badly goes on where it failed.

While a failure climbs, the frames it closes are kept as they stood (`Turn.lost`); a retrier or catcher that stops it lets
them go again. What is left when the execution has ended are its `remains`::

    Finish.remains ──(rows, for a fortnight)──► Redriven.remains ──► the same frames, open again

A kept frame goes on in the state it had entered and not left: a Task is scheduled again, a Wait waits again, a Parallel or
Map whose children failed runs those again and keeps what the others brought; one that failed by itself runs anew. Nothing
is entered twice in history, except a Fail. A distributed Map goes on with its Map Run, where the shell says that it can. Retries are counted anew, as are the timeouts of states and machine.
(Developer guide, "Redriving executions"; the kinds of states in its table.)
"""

from dataclasses import replace

from tasuki.engine.commands import RedriveMapRun
from tasuki.engine.events import OldMapRun, Redriven
from tasuki.engine.execution import Frame, Phase, Remain
from tasuki.engine.turn import Turn
from tasuki.language.definition import Fail


def keep(turn: Turn, frame: Frame) -> None:
    """Keep a frame that is about to close because of a failure; what was kept first counts."""
    if frame.id not in turn.lost:
        results = turn.frames.results(frame.id) if frame.phase is Phase.JOINING else {}
        turn.lost[frame.id] = Remain(replace(frame), results)


def redrive(turn: Turn, event: Redriven) -> None:
    """Open the remains again: those with children below them wait for these, the others run."""
    execution = turn.execution
    number = turn.note(execution.last_event, "ExecutionRedriven", {"redriveCount": execution.redrive_count})
    if turn.machine.timeout_seconds is not None and not execution.block:
        execution.deadline = turn.now + turn.machine.timeout_seconds * 1_000
    turn.frames.variable_bytes = 0
    parents = {remain.frame.parent for remain in event.remains}
    for remain in sorted(event.remains, key=lambda one: one.frame.id):
        frame = _rested(remain.frame, number)
        turn.frames.open(frame)
        if frame.phase is Phase.JOINING and frame.id in parents:
            for index, output in remain.results.items():
                turn.frames.finish_child(frame.id, index, output)
            continue
        old = event.map_runs.get(frame.id)
        if old is not None:
            _go_on(turn, frame, old)
            continue
        frame.phase = Phase.READY
        frame.items = None
        if isinstance(turn.state(frame), Fail):
            frame.entered_event = 0
        turn.queue.append(frame)


def _go_on(turn: Turn, frame: Frame, old: OldMapRun) -> None:
    """Have the Map Run go on that a distributed Map waited for."""
    turn.write(frame, "MapRunRedriven", {"mapRunArn": old.arn, "redriveCount": old.redrive_count})
    frame.handle = old.arn
    frame.phase = Phase.RUNNING
    turn.commands.append(RedriveMapRun(frame.id, frame.attempt))


def _rested(frame: Frame, last_event: int) -> Frame:
    """Answer a frame without what belonged to its last attempt."""
    return replace(
        frame,
        last_event=last_event,
        started=False,
        token=None,
        handle=None,
        retries=[],
        retry_count=0,
        wake_at=None,
        timeout_at=None,
        heartbeat_at=None,
        heartbeat_ms=None,
    )
