"""Parallel: runs branches side by side, and goes on when all are done.

previousEventId (recorded: base_scenarios/test_parallel_*): a branch begins after ParallelStateStarted; the state is
left after the last event of the branch that ended last, with ParallelStateSucceeded on the side.
"""

from tasuki.engine.children import abort_children, gather, open_child
from tasuki.engine.events import Event, TimerFired
from tasuki.engine.execution import Frame, Phase
from tasuki.engine.failing import fail_state, is_time_to_retry
from tasuki.engine.flow import mode_of
from tasuki.engine.turn import ChildFailed, ChildSucceeded, Happening, Turn
from tasuki.language.definition import Parallel


def enter(turn: Turn, frame: Frame, state: Parallel) -> None:
    """Open the branches."""
    turn.enter(frame, state)
    _start(turn, frame, state)


def _start(turn: Turn, frame: Frame, state: Parallel) -> None:
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    document = mode.arguments(scope, frame, state)
    if document is not frame.input:
        turn.weigh(document, state.name)
    turn.write(frame, "ParallelStateStarted", None)
    turn.forget_scope(frame)
    frame.phase = Phase.JOINING
    frame.total = frame.opened = len(state.branches)
    frame.done = 0
    for index, block in enumerate(state.branches):
        open_child(turn, frame, index, block, document=document)


def resume(turn: Turn, frame: Frame, state: Parallel, event: Event | Happening) -> None:
    """A branch ended or failed, or it is time to try again."""
    if isinstance(event, ChildSucceeded):
        _branch_done(turn, frame, state, event)
    elif isinstance(event, ChildFailed):
        frame.last_event = event.child.last_event
        if event.aborted is not None:
            turn.note(frame.last_event, event.aborted, None)
        abort_children(turn, frame, state, frame.last_event, "A parallel branch failed")
        turn.frames.touch(frame)
        fail_state(turn, frame, state, event.failure, "ParallelStateFailed")
    elif isinstance(event, TimerFired) and is_time_to_retry(turn, frame):
        frame.wake_at = None
        turn.frames.touch(frame)
        _start(turn, frame, state)


def _branch_done(turn: Turn, frame: Frame, state: Parallel, event: ChildSucceeded) -> None:
    frame.done += 1
    turn.frames.finish_child(frame.id, event.child.index, event.output)
    if frame.done < frame.total:
        turn.frames.count(frame)
        return
    turn.frames.touch(frame)
    frame.last_event = event.child.last_event
    result = gather(turn, frame, state)
    turn.note(frame.last_event, "ParallelStateSucceeded", None)
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    output, assigned = mode.finish(scope, frame, state, result, state.assign)
    turn.leave(frame, state, output, assigned, state.next)
