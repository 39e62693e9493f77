"""Map: runs its processor once an item, some at a time, and goes on when all are done.

previousEventId (recorded: base_scenarios/test_map_state*): an iteration begins after MapStateStarted, or, when it takes
the place of one that ended, after that one's last event; MapIterationSucceeded is on the side, except that the state is
left after the last of them. Distributed Maps: `distributed.py`.
"""

from tasuki.engine.children import abort_children, gather, open_child
from tasuki.engine.events import Event, TimerFired
from tasuki.engine.execution import Frame, Phase
from tasuki.engine.failing import fail_state, is_time_to_retry
from tasuki.engine.flow import make_scope, mode_of
from tasuki.engine.states import distributed
from tasuki.engine.turn import ChildFailed, ChildSucceeded, Happening, Turn
from tasuki.language.definition import Expression, Map, Scope
from tasuki.values.documents import Doc

MAX_INLINE_CONCURRENCY = 40
"""How many iterations of an inline Map AWS runs at a time, whatever MaxConcurrency says."""


def enter(turn: Turn, frame: Frame, state: Map) -> None:
    """Open the first iterations."""
    turn.enter(frame, state)
    if state.distributed is not None:
        distributed.start(turn, frame, state)
    else:
        _start(turn, frame, state)


def _start(turn: Turn, frame: Frame, state: Map) -> None:
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    concurrency = _concurrency(state.max_concurrency, scope)
    assert state.items is not None, "`parse` gives every Map its items"
    items = state.items(scope)
    turn.write(frame, "MapStateStarted", {"length": len(items)})
    turn.forget_scope(frame)
    frame.phase = Phase.JOINING
    frame.items = [Doc(item) for item in items]
    frame.concurrency = concurrency
    frame.total = len(items)
    frame.opened = frame.done = 0
    for _ in range(min(concurrency, frame.total)):
        _open_next(turn, frame, state, scope, frame.last_event)
    if frame.total == 0:
        _join(turn, frame, state)


def _concurrency(field: int | Expression, scope: Scope) -> int:
    wanted = field if isinstance(field, int) else field(scope)
    return min(wanted or MAX_INLINE_CONCURRENCY, MAX_INLINE_CONCURRENCY)


def _open_next(turn: Turn, frame: Frame, state: Map, scope: Scope | None, previous: int) -> None:
    """Open the next iteration: `previous` is the last event of the place it takes.

    The Map's input is looked into only where an ItemSelector wants it: it may be large, and this is done once an item.
    """
    assert frame.items is not None, "a Map that runs has items"
    index = frame.opened
    item = frame.items[index]
    document = item
    if state.item_selector is not None:
        value = (scope or mode_of(state).begin(turn, frame, state)).input
        document = Doc(state.item_selector(make_scope(turn, frame, state, value, (index, item))))
    turn.weigh(document, state.name)
    frame.opened = index + 1
    number = turn.note(previous, "MapIterationStarted", {"name": state.name, "index": index})
    open_child(turn, frame, index, state.processor, document=document, item=item).last_event = number


def resume(turn: Turn, frame: Frame, state: Map, event: Event | Happening) -> None:
    """An iteration ended or failed, or it is time to try again."""
    if state.distributed is not None:
        distributed.resume(turn, frame, state, event)
    elif isinstance(event, ChildSucceeded):
        _iteration_done(turn, frame, state, event)
    elif isinstance(event, ChildFailed):
        child = event.child
        frame.last_event = child.last_event
        turn.note(child.last_event, "MapIterationFailed", {"name": state.name, "index": child.index})
        if event.aborted is not None:
            turn.note(child.last_event, event.aborted, None)
        abort_children(turn, frame, state, child.last_event, "An iteration of the map failed")
        frame.items = None
        turn.frames.touch(frame)
        fail_state(turn, frame, state, event.failure, "MapStateFailed")
    elif isinstance(event, TimerFired) and is_time_to_retry(turn, frame):
        frame.wake_at = None
        turn.frames.touch(frame)
        _start(turn, frame, state)


def _iteration_done(turn: Turn, frame: Frame, state: Map, event: ChildSucceeded) -> None:
    child = event.child
    frame.done += 1
    number = turn.note(child.last_event, "MapIterationSucceeded", {"name": state.name, "index": child.index})
    turn.frames.finish_child(frame.id, child.index, event.output)
    if frame.done == frame.total:
        frame.last_event = number
        _join(turn, frame, state)
        return
    turn.frames.count(frame)
    if frame.opened < frame.total:
        _open_next(turn, frame, state, None, child.last_event)


def _join(turn: Turn, frame: Frame, state: Map) -> None:
    """All items are done: leave with their outputs, in the items' order."""
    turn.frames.touch(frame)
    frame.items = None
    result = gather(turn, frame, state)
    turn.note(frame.last_event, "MapStateSucceeded", None)
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    output, assigned = mode.finish(scope, frame, state, result, state.assign)
    turn.leave(frame, state, output, assigned, state.next)
