"""What happens when a state fails: a retry, a catch, or the end of its frame.

The order is AWS's: the retriers first (the first one that matches decides; when it is used up the others are not
asked), then the catchers, then the frame fails, and with it the state that opened the frame, which may retry or catch
in its turn.
"""

from tasuki.engine.children import abort_children
from tasuki.engine.execution import Frame, Phase
from tasuki.engine.flow import make_scope, mode_of
from tasuki.engine.redrive import keep
from tasuki.engine.turn import ChildFailed, DataLimitExceeded, Failure, Turn
from tasuki.language.definition import Map, Parallel, State, Task
from tasuki.language.errors import StatesError
from tasuki.language.jsonata import QueryFailed
from tasuki.language.retry import HEARTBEAT_TIMEOUT, delay_ms, find_catcher, find_retrier
from tasuki.values.documents import Doc


def fail_by_engine(turn: Turn, frame: Frame, state: State, error: StatesError) -> None:
    """A state fails because an expression of its own does: the cause says where it happened."""
    if frame.phase is Phase.JOINING:
        abort_children(turn, frame, state, frame.last_event, "The state failed")
        turn.lost.clear()  # it did not fail because of a child: redriven, it runs anew
        frame.items = None
    failure = Failure(error.error, located(frame, state, error))
    failed_event = note_evaluation(turn, frame, state, error) if isinstance(error, QueryFailed) else None
    fail_state(turn, frame, state, failure, failed_event)


def note_evaluation(turn: Turn, frame: Frame, state: State, error: QueryFailed) -> str | None:
    """Write that a JSONata expression failed; answer the event with which a state ends that had not begun its work.

    AWS evaluates before it writes that the state was entered, so the event comes after what came before the state
    (recorded: assign/test_undefined_reference, base_scenarios/test_map_state_items_eval_jsonata_fail).
    """
    began = frame.last_event != frame.entered_event
    previous = frame.last_event
    if not began and not error.entered and turn.history and turn.history[0].id <= frame.entered_event:
        previous = turn.history[frame.entered_event - turn.history[0].id].previous
    details = {
        "error": error.error,
        "cause": located(frame, state, error),
        "location": error.location,
        "state": state.name,
    }
    frame.last_event = turn.note(previous, "EvaluationFailed", details)
    if began:
        return None
    return (
        "MapStateFailed" if isinstance(state, Map) else "ParallelStateFailed" if isinstance(state, Parallel) else None
    )


def located(frame: Frame, state: State, error: StatesError) -> str:
    """Answer the cause as AWS words it: with the state's name and the event with which it was entered."""
    if isinstance(error, DataLimitExceeded):
        return error.cause
    return (
        f"An error occurred while executing the state '{state.name}' "
        f"(entered at the event id #{frame.entered_event}). {error.cause}"
    )


def fail_state(turn: Turn, frame: Frame, state: State, failure: Failure, failed_event: str | None = None) -> None:
    """A state fails with an error. Its children are closed, its task is over.

    `failed_event` (`MapStateFailed`) is written when it is not tried again. A missed heartbeat is
    `States.HeartbeatTimeout` to retriers and catchers and `States.Timeout` to everybody else (recorded: heartbeats/*).
    """
    frame.wake_at = frame.timeout_at = frame.heartbeat_at = frame.heartbeat_ms = None
    frame.token = frame.handle = None
    matched = failure.error or ""
    if matched == HEARTBEAT_TIMEOUT:
        failure = Failure("States.Timeout", failure.cause)
    if turn.trace is not None:
        turn.trace["failure"] = failure
    if isinstance(state, Task | Parallel | Map):
        if _retry(turn, frame, state, matched):
            return
        if failed_event is not None:
            turn.write(frame, failed_event, None)
        if _catch(turn, frame, state, matched, failure):
            return
    _fail_frame(turn, frame, state, failure, finished=failed_event is not None)


def _retry(turn: Turn, frame: Frame, state: Task | Parallel | Map, error: str) -> bool:
    """Let a retrier have its try; tell whether one did."""
    place = find_retrier(state.retry, error)
    if place is None:
        return False
    if not frame.retries:
        frame.retries = [0] * len(state.retry)
    retrier = state.retry[place]
    used = frame.retries[place]
    if used >= retrier.max_attempts:
        return False
    turn.lost.clear()
    frame.retries[place] = used + 1
    frame.retry_count += 1
    fraction = turn.chance("delay/").fraction() if retrier.full_jitter else 0.0
    frame.wake_at = turn.now + delay_ms(retrier, used, fraction)
    if turn.trace is not None:
        turn.trace["retryIndex"] = place
    frame.phase = Phase.RETRYING
    turn.frames.touch(frame)
    return True


def _catch(turn: Turn, frame: Frame, state: Task | Parallel | Map, matched: str, failure: Failure) -> bool:
    """Let a catcher have the error; tell whether one did."""
    catcher = find_catcher(state.catch, matched)
    if catcher is None:
        return False
    if turn.trace is not None:
        turn.trace["catchIndex"] = state.catch.index(catcher)
    turn.lost.clear()
    error_output = Doc({"Error": failure.error or "", "Cause": failure.cause or ""})
    scope = make_scope(turn, frame, state, frame.input.value)
    try:
        output, assigned = mode_of(state).caught(scope, frame, catcher, error_output)
        turn.leave(frame, state, output, assigned, catcher.next)
    except StatesError as failed:
        # The catcher's own expressions fail: nobody catches that in the same state.
        if isinstance(failed, QueryFailed):
            note_evaluation(turn, frame, state, failed)
        _fail_frame(turn, frame, state, Failure(failed.error, located(frame, state, failed)), finished=False)
    return True


def _fail_frame(turn: Turn, frame: Frame, state: State, failure: Failure, *, finished: bool) -> None:
    """Nobody here wants the error: the frame is over, and so is the execution, or the parent's state."""
    parent = frame.parent
    keep(turn, frame)
    turn.close(frame)
    if parent is not None:
        aborted = "TaskStateAborted" if isinstance(state, Task) and not finished else None
        turn.happenings.append((parent, ChildFailed(frame, failure, aborted)))
        return
    turn.write(frame, "ExecutionFailed", failure.details())
    turn.execution.status = "FAILED"
    turn.failure = failure


def is_time_to_retry(turn: Turn, frame: Frame) -> bool:
    """Tell whether a retrier's delay is over."""
    return frame.phase is Phase.RETRYING and frame.wake_at is not None and turn.now >= frame.wake_at
