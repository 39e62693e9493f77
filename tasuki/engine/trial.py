"""A state tried by itself: entered on a given input, answered at once, and left; nothing is saved (TestState).

The state is run by its own module, as in an execution, with a turn that keeps notes. What a trial does differently is
only who answers: a Task's answer is handed in by the caller, a Wait's time passes at once, and the branches of a
Parallel and the iterations of a Map do not run, their answer is mocked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tasuki.engine.commands import ScheduleTask
from tasuki.engine.events import Event, TaskFailed, TaskSucceeded, TimerFired
from tasuki.engine.execution import Execution, Frame, Phase
from tasuki.engine.failing import fail_by_engine, fail_state
from tasuki.engine.flow import make_scope, mode_of
from tasuki.engine.step import ENTER, RESUME
from tasuki.engine.turn import Failure, Turn
from tasuki.language.definition import Block, Machine, Map, Parallel, Scope, State, Task, Wait
from tasuki.language.errors import StatesError
from tasuki.language.retry import find_retrier
from tasuki.values.documents import Doc
from tasuki.values.instant import MINUTE, SECOND, Instant

LONGEST_MS = 5 * MINUTE
"""How long a trial may take (TestState): a longer Wait is a timeout."""

_ENTERED_EVENT = 2
"""A trial begins as an execution does: its first event, then the state's."""

Status = Literal["SUCCEEDED", "FAILED", "RETRIABLE", "CAUGHT_ERROR"]


@dataclass(frozen=True, slots=True)
class Mock:
    """An answer that nobody has to work for. `failed_items`: how many iterations of a Map failed."""

    result: Doc | None = None
    failure: Failure | None = None
    failed_items: int | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """What a trial starts from.

    `context` is the whole of `$$` when it is given. `retries` are the tries that the retrier has used which will match.
    `items` stands for what a Map's ItemReader reads.
    """

    block: Block
    state: State
    input: Doc
    variables: Mapping[str, Any] = field(default_factory=dict)
    context: dict[str, Any] | None = None
    retries: int = 0
    items: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """How it went. `notes` are the data flow's, by AWS's names for its stations, and what handled an error."""

    status: Status
    output: Doc | None
    failure: Failure
    following: str | None
    backoff_seconds: int | None
    variables: Mapping[str, Any]
    notes: Mapping[str, Any]


def try_state(
    machine: Machine,
    execution: Execution,
    now: Instant,
    setup: Setup,
    answer: Mock | Callable[[ScheduleTask], Event],
) -> Trial:
    """Run one state of a machine. `answer` is a mock, or does the work of a Task."""
    turn = Turn(machine, execution, now)
    turn.trace = {}
    turn.given_context = setup.context
    execution.last_event = _ENTERED_EVENT - 1
    frame = Frame(
        1, None, 0, setup.block.path, setup.state.name, Phase.READY, setup.input, 0, variables=dict(setup.variables)
    )
    turn.frames.open(frame)
    try:
        _run(turn, frame, setup, answer)
    except StatesError as error:
        fail_by_engine(turn, frame, setup.state, error)
    return _outcome(turn, frame)


def _run(turn: Turn, frame: Frame, setup: Setup, answer: Mock | Callable[[ScheduleTask], Event]) -> None:
    state = setup.state
    if isinstance(state, Map | Parallel):
        assert isinstance(answer, Mock), "branches and iterations do not run in a trial"
        turn.enter(frame, state)
        _take_mock(turn, frame, state, setup, answer)
        return
    ENTER[type(state)](turn, frame, state)
    if isinstance(state, Wait) and frame.wake_at is not None:
        if frame.wake_at - turn.now > LONGEST_MS:
            fail_state(turn, frame, state, Failure("States.Timeout", "The state took longer than five minutes"))
            return
        turn.now = frame.wake_at
        RESUME[Wait](turn, frame, state, TimerFired(frame.id))
    elif isinstance(state, Task):
        _answer_task(turn, frame, state, setup, answer)


def _answer_task(
    turn: Turn, frame: Frame, state: Task, setup: Setup, answer: Mock | Callable[[ScheduleTask], Event]
) -> None:
    wish = next(command for command in turn.commands if isinstance(command, ScheduleTask))
    event: Event
    if not isinstance(answer, Mock):
        event = answer(wish)
    elif answer.failure is not None:
        event = TaskFailed(wish.frame, wish.attempt, *answer.failure)
    else:
        event = TaskSucceeded(wish.frame, wish.attempt, answer.result or Doc(None))
    if isinstance(event, TaskFailed):
        _use_up(frame, state, event.error, setup.retries)
    elif isinstance(event, TaskSucceeded):
        _note(turn, "result", event.output)
    RESUME[Task](turn, frame, state, event)


def _take_mock(turn: Turn, frame: Frame, state: Map | Parallel, setup: Setup, mock: Mock) -> None:
    """Let the mock stand for everything below a Parallel or Map."""
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    failure = mock.failure
    if isinstance(state, Map):
        threshold = _look_at_map(turn, frame, state, setup, scope)
        if failure is None and threshold is not None and _exceeds(mock, *threshold):
            failure = Failure(
                "States.ExceedToleratedFailureThreshold", "The specified tolerated failure threshold was exceeded"
            )
    else:
        mode.arguments(scope, frame, state)
    if failure is not None:
        _use_up(frame, state, failure.error, setup.retries)
        fail_state(turn, frame, state, failure, f"{type(state).__name__}StateFailed")
        return
    result = mock.result or Doc(None)
    turn.weigh(result, state.name)
    output, assigned = mode.finish(mode.begin(turn, frame, state), frame, state, result, state.assign)
    turn.leave(frame, state, output, assigned, state.next)


def _look_at_map(
    turn: Turn, frame: Frame, state: Map, setup: Setup, scope: Scope
) -> tuple[int | None, float | None] | None:
    """Evaluate what a Map reads before its iterations begin; answer its tolerated failures, if it says any."""
    _note(turn, "maxConcurrency", _number(state.max_concurrency, scope))
    count = _number(state.tolerated_failure_count, scope)
    share = _number(state.tolerated_failure_percentage, scope)
    if count is not None:
        _note(turn, "toleratedFailureCount", count)
    if share is not None:
        _note(turn, "toleratedFailurePercentage", float(share))
    items = setup.items
    if items is None and state.items is not None:
        items = state.items(scope)
    _note(turn, "afterItemsPath", Doc(items))
    if state.item_selector is not None and isinstance(items, list):
        # `$` is the state's input after InputPath for every item, as when the iterations are opened.
        chosen = [
            state.item_selector(make_scope(turn, frame, state, scope.input, (index, Doc(item))))
            for index, item in enumerate(items)
        ]
        _note(turn, "afterItemSelector", Doc(chosen))
    return None if count is None and share is None else (count, share)


def _number(given: Any, scope: Scope) -> Any:
    return given(scope) if callable(given) else given


def _exceeds(mock: Mock, count: int | None, share: float | None) -> bool:
    """Tell whether more iterations failed than a Map tolerates. One that says no threshold is not looked at (recorded)."""
    failed = mock.failed_items or 0
    result = mock.result.value if mock.result is not None else None
    total = len(result) if isinstance(result, list) else failed
    return (count is not None and failed > count) or (share is not None and total > 0 and failed * 100 > share * total)


def _use_up(frame: Frame, state: Task | Map | Parallel, error: str | None, tries: int) -> None:
    """Have the retrier that covers an error look as if it had been used before."""
    place = find_retrier(state.retry, error or "")
    if place is not None and tries:
        frame.retries = [0] * len(state.retry)
        frame.retries[place] = tries
        frame.retry_count = tries


def _note(turn: Turn, name: str, value: Any) -> None:
    assert turn.trace is not None, "a trial keeps notes"
    turn.trace[name] = value


def _outcome(turn: Turn, frame: Frame) -> Trial:
    assert turn.trace is not None, "a trial keeps notes"
    notes = turn.trace
    failure: Failure = notes.get("failure", Failure())
    status: Status = "SUCCEEDED"
    output: Doc | None = frame.input
    following = frame.state if frame.phase is Phase.READY else None
    backoff = None
    if turn.execution.status == "FAILED":
        status, output, failure = "FAILED", None, turn.failure
    elif frame.phase is Phase.RETRYING:
        assert frame.wake_at is not None, "a retry has its time"
        status, output, backoff = "RETRIABLE", None, round((frame.wake_at - turn.now) / SECOND)
    elif "catchIndex" in notes:
        status = "CAUGHT_ERROR"
    return Trial(status, output, failure, following, backoff, frame.variables, notes)
