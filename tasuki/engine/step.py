"""step(): the funnel. Everything that can change an execution passes through here.

Theory of operation
===================

An execution is a tree of frames (`execution.py`): a frame is a place in a block, and stands in one state. `step` takes
one event from outside, applies it to the one frame it concerns, and then runs everything that can run, until every
frame waits for something. It is a function of its arguments: no clock, no chance but the seeded one, no reads but of
the frames it asks for. So it may be called again after a crash and decides the same.

::

        event ──► the frame it names ──► states/X.resume ─┐
                                                          ▼
      queue of READY frames ──► states/X.enter ──► the frame moves on ──► READY again, or waits
              ▲                                      │        │
              │ opens frames                         │        └► it ended, or failed
              └──────────────────────────────────────┘                │
                                                                      ▼
      parent frame ◄── states/{map,parallel}.resume ◄── a *happening* for its parent (none: the execution is over)

Two kinds of news travel, and never by a call from one state's module into another's. *Events* come from outside, one a
step. *Happenings* go up: a child frame ended or failed, and its parent, which stands in a Parallel or a Map, must know.
They wait in `Turn.happenings` and are looked at before anything else runs, so at any time at most one is there.

A state fails in two ways: its module raises `StatesError` (an expression failed; the cause gets the prefix that names
the state and the event), or its work did (`failing.fail_state`). Either way retriers, catchers and then the parent get
their chance, in that order.

History has one sequence of numbers, and many *lines*: `previousEventId` follows what led to an event, not what was
written before it. A frame's line is `Frame.last_event`; `Turn.write` extends it, `Turn.note` writes an event on the
side, from which nothing goes on.

Bounds: a step stops after 200 transitions, 500 events or a MiB of documents, and says `ready`: frames that still could
run stay READY, and `Continued` serves them, the longest quiet one first. An execution that would write its 25,000th
event fails with it.

Once `status` is no longer RUNNING, and for every event that does not fit (frame gone, attempt old, deadline not
reached), nothing happens: delivering twice is harmless.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasuki.engine.children import abort_frame, cancel
from tasuki.engine.commands import Command, Finish
from tasuki.engine.events import Continued, Event, Redriven, Started, StopRequested, TimerFired
from tasuki.engine.execution import Execution, Frame, Phase
from tasuki.engine.failing import fail_by_engine
from tasuki.engine.history import MAX_EVENTS, HistoryEvent
from tasuki.engine.redrive import redrive
from tasuki.engine.states import choice, fail, map, parallel, pass_, succeed, task, wait  # noqa: A004 - AWS's name
from tasuki.engine.turn import MAX_TRANSITIONS, Failure, Happening, HistoryFull, Turn
from tasuki.language.definition import Choice, Fail, Machine, Map, Parallel, Pass, State, Succeed, Task, Wait
from tasuki.language.errors import StatesError
from tasuki.values.instant import Instant

_ROOT = 1

ENTER: Mapping[type[State], Callable[[Turn, Frame, Any], None]] = {
    Pass: pass_.enter,
    Task: task.enter,
    Choice: choice.enter,
    Wait: wait.enter,
    Succeed: succeed.enter,
    Fail: fail.enter,
    Parallel: parallel.enter,
    Map: map.enter,
}
RESUME: Mapping[type[State], Callable[[Turn, Frame, Any, Any], None]] = {
    Task: task.resume,
    Wait: wait.resume,
    Parallel: parallel.resume,
    Map: map.resume,
}


@dataclass(slots=True)
class Outcome:
    """What a step decided. The execution handed in has been brought up to date."""

    history: list[HistoryEvent] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    ready: bool = False
    """There is more to do at once: `step` stopped at its bound. Call again with `Continued`, in a later unit.

    False says nothing of frames that an earlier step left READY: they still wait for their `Continued`.
    """
    transitions: int = 0
    """How many states were entered."""


def step(machine: Machine, execution: Execution, event: Event, now: Instant, most: int = MAX_TRANSITIONS) -> Outcome:
    """Tell an execution what happened; answer what it did about it, up to the next point where it must wait.

    It enters `most` states at most (a caller's quota), even none: then it is `ready` to.
    Chance is drawn from `execution.seed` and the number of the event being written.
    """
    if execution.status != "RUNNING":
        return Outcome()
    turn = Turn(machine, execution, now)
    turn.most = most
    try:
        _apply(turn, event)
        ready = _run(turn)
    except HistoryFull:
        ready = False
        _overflow(turn)
    execution.history_bytes += turn.bytes
    if execution.status != "RUNNING":
        remains = tuple(turn.lost.values()) if execution.status != "SUCCEEDED" else ()
        turn.commands.append(Finish(execution.status, turn.output, turn.failure.error, turn.failure.cause, remains))
    return Outcome(turn.history, turn.commands, ready, turn.transitions)


def _apply(turn: Turn, event: Event) -> None:
    """Let an event from outside have its effect on the frame it names."""
    if isinstance(event, Started):
        _start(turn)
    elif isinstance(event, Continued):
        frames, turn.more = turn.frames.ready()
        turn.queue.extend(frames)
    elif isinstance(event, Redriven):
        redrive(turn, event)
    elif isinstance(event, StopRequested):
        _start(turn)  # it may not have begun
        _end(turn, "ABORTED", Failure(event.error, event.cause), "The execution was stopped")
    elif isinstance(event, TimerFired) and event.frame == 0:
        deadline = turn.execution.deadline
        if deadline is not None and turn.now >= deadline:
            _end(turn, "TIMED_OUT", Failure(), "The execution timed out")
    else:
        named = turn.frames.get(event.frame)
        if named is not None and named.phase is not Phase.READY:
            _resume(turn, named, event)


def _start(turn: Turn) -> None:
    """Begin: the first event, and the root frame."""
    execution, machine = turn.execution, turn.machine
    if execution.last_event:
        return
    details = {"input": execution.input, "roleArn": execution.role_arn}
    if execution.version_arn is not None:
        details["stateMachineVersionArn"] = execution.version_arn
    if execution.alias_arn is not None:
        details["stateMachineAliasArn"] = execution.alias_arn
    turn.note(0, "ExecutionStarted", details)
    turn.bytes += len(execution.input.text)
    # The machine's time limit is not its Map Runs' children's.
    if machine.timeout_seconds is not None and not execution.block:
        execution.deadline = execution.started_at + machine.timeout_seconds * 1_000
    execution.last_frame = _ROOT
    # The first state's previousEventId is 0, as ExecutionStarted's own (all recordings).
    block = machine.blocks[execution.block]
    index, item = execution.item or (0, None)
    root = Frame(_ROOT, None, index, block.path, block.start_at, Phase.READY, execution.input, 0, item=item)
    turn.frames.open(root)
    turn.queue.append(root)


def _run(turn: Turn) -> bool:
    """Run what can run; tell whether something is left that could."""
    queue, happenings = turn.queue, turn.happenings
    while True:
        while happenings:
            number, happening = happenings.popleft()
            parent = turn.frames.get(number)
            assert parent is not None, "a frame outlived its parent"
            _resume(turn, parent, happening)
        if not queue:
            return turn.more
        if turn.is_full():
            return True
        frame = queue.popleft()
        if frame.phase is Phase.READY:
            _run_frame(turn, frame)


def _run_frame(turn: Turn, frame: Frame) -> None:
    """Take a frame from state to state until it waits, ends, or the step has done its share."""
    states = turn.block(frame).states
    turn.frames.touch(frame)
    while frame.phase is Phase.READY:
        if turn.is_full():
            turn.queue.append(frame)
            return
        state = states[frame.state]
        turn.transitions += 1
        try:
            ENTER[type(state)](turn, frame, state)
        except StatesError as error:
            fail_by_engine(turn, frame, state, error)


def _resume(turn: Turn, frame: Frame, event: Event | Happening) -> None:
    """Go on with the state that a frame stands in."""
    state = turn.state(frame)
    resume = RESUME.get(type(state))
    if resume is None:
        return
    try:
        resume(turn, frame, state, event)
    except StatesError as error:
        turn.frames.touch(frame)
        fail_by_engine(turn, frame, state, error)
    if frame.phase is Phase.READY:
        turn.frames.touch(frame)
        turn.queue.append(frame)


def _end(turn: Turn, status: str, failure: Failure, reason: str) -> None:
    """End the execution from outside. previousEventId is 0 (recorded: sfn_api/test_stop_execution)."""
    root = turn.frames.get(_ROOT)
    if root is not None:  # else it was redriven, and has not gone on yet
        try:
            abort_frame(turn, root, 0, reason)
        except HistoryFull:
            _close_below(turn, root)
    kind = "ExecutionAborted" if status == "ABORTED" else "ExecutionTimedOut"
    turn.note(0, kind, failure.details())
    turn.execution.status = status
    turn.failure = failure


def _overflow(turn: Turn) -> None:
    """Fail the execution with its last event: there is no room for another."""
    root = turn.frames.get(_ROOT)
    if root is not None:
        _close_below(turn, root)
    turn.lost.clear()
    failure = Failure("States.Runtime", f"The execution reached the maximum number of history events ({MAX_EVENTS}).")
    turn.note(turn.execution.last_event, "ExecutionFailed", failure.details())
    turn.execution.status = "FAILED"
    turn.failure = failure


def _close_below(turn: Turn, frame: Frame) -> None:
    """Close a frame and all below it without a word in history; stop what runs."""
    if frame.phase is Phase.JOINING:
        for child in turn.frames.children(frame.id):
            _close_below(turn, child)
    elif frame.phase is Phase.RUNNING:
        cancel(turn, frame, turn.state(frame), "The execution ended")
    turn.close(frame)
