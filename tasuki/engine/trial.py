"""A state tried by itself: entered on a given input, answered at once, and left; nothing is saved (TestState).

The state is run by its own module, as in an execution, with a turn that keeps notes. What a trial does differently is
only who answers: a Task's answer is handed in by the caller, a Wait's time passes at once, and the branches of a
Parallel and the iterations of a Map do not run, their answer is mocked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tasuki.engine.commands import ScheduleTask, StartMapRun
from tasuki.engine.events import Event, MapRunEnded, TaskFailed, TaskSucceeded, TimerFired
from tasuki.engine.execution import Execution, Frame, Phase
from tasuki.engine.failing import fail_by_engine, fail_state
from tasuki.engine.flow import make_scope, mode_of
from tasuki.engine.step import ENTER, RESUME
from tasuki.engine.turn import MAX_PAYLOAD_BYTES, WORDS, Failure, Turn
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
    `read` stands for a Map's ItemReader: it is given what the reader says (`MapRunPlan.reader`), and answers the items.
    """

    block: Block
    state: State
    input: Doc
    variables: Mapping[str, Any] = field(default_factory=dict)
    context: dict[str, Any] | None = None
    retries: int = 0
    read: Callable[[Mapping[str, Any]], list[Any]] | None = None


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
        if isinstance(state, Map) and state.distributed is not None:
            ENTER[Map](turn, frame, state)
            _end_map_run(turn, frame, state, setup, answer)
        else:
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
    """Let the mock stand for the branches of a Parallel, or for the iterations of an inline Map."""
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    failure = mock.failure
    if isinstance(state, Map):
        count, share = _given(state.tolerated_failure_count, scope), _given(state.tolerated_failure_percentage, scope)
        _note_numbers(turn, _given(state.max_concurrency, scope), count, share)
        if state.items is not None:
            _note_items(turn, frame, state, scope.input, state.items(scope))
        failure = failure or _threshold(mock, count, share)
    else:
        mode.arguments(scope, frame, state)
    if failure is not None:
        _use_up(frame, state, failure.error, setup.retries)
        fail_state(turn, frame, state, failure, f"{WORDS[type(state)]}StateFailed")
        return
    result = mock.result or Doc(None)
    turn.weigh(result, state.name)
    output, assigned = mode.finish(mode.begin(turn, frame, state), frame, state, result, state.assign)
    turn.leave(frame, state, output, assigned, state.next)


def _end_map_run(turn: Turn, frame: Frame, state: Map, setup: Setup, mock: Mock) -> None:
    """Let the mock stand for a Map Run."""
    wish = next(command for command in turn.commands if isinstance(command, StartMapRun))
    plan = wish.plan
    _note_numbers(turn, plan.max_concurrency, plan.tolerated_count, plan.tolerated_percentage)
    items = wish.items
    if items is None and setup.read is not None and plan.reader is not None:
        items = setup.read(plan.reader)
        if plan.reader.get("pointer"):
            _note(turn, "afterItemsPointer", _listed([Doc(item) for item in items]))
    if items is not None:
        chosen = _note_items(turn, frame, state, mode_of(state).begin(turn, frame, state).input, items)
        if plan.batcher is not None:
            _note(turn, "afterItemBatcher", _listed(_batches(plan.batcher, chosen)))
    failure = mock.failure or _threshold(mock, plan.tolerated_count, plan.tolerated_percentage)
    if failure is not None:
        _use_up(frame, state, failure.error, setup.retries)
    output = None if failure is not None else mock.result or Doc(None)
    RESUME[Map](turn, frame, state, MapRunEnded(wish.frame, wish.attempt, output, *(failure or Failure())))


def _note_numbers(turn: Turn, concurrency: Any, count: Any, share: Any) -> None:
    _note(turn, "maxConcurrency", concurrency)
    if count is not None:
        _note(turn, "toleratedFailureCount", count)
    if share is not None:
        _note(turn, "toleratedFailurePercentage", float(share))


def _note_items(turn: Turn, frame: Frame, state: Map, value: Any, items: Any) -> list[Doc]:
    """Note a Map's items, and what its iterations would get; answer the latter. `value` is `$` to the ItemSelector."""
    made = [Doc(item) for item in items]
    _note(turn, "afterItemsPath", _listed(made))
    if state.item_selector is not None:
        made = [
            Doc(state.item_selector(make_scope(turn, frame, state, value, (index, item))))
            for index, item in enumerate(made)
        ]
        _note(turn, "afterItemSelector", _listed(made))
    return made


def _batches(batcher: Mapping[str, Any], items: list[Doc]) -> list[Doc]:
    """Group items as a Map Run does: so many, and so many bytes, to a batch."""
    around = {"BatchInput": batcher["input"]} if "input" in batcher else {}
    most, most_bytes = batcher.get("max_items") or len(items), batcher.get("max_bytes") or MAX_PAYLOAD_BYTES
    groups: list[list[Any]] = []
    size = 0
    for item in items:
        size += len(item.text.encode()) + 1
        if not groups or len(groups[-1]) >= most or size > most_bytes:
            groups.append([])
            size = len(Doc({**around, "Items": []}).text.encode()) + len(item.text.encode())
        groups[-1].append(item.value)
    return [Doc({**around, "Items": group}) for group in groups]


def _listed(documents: list[Doc]) -> Doc:
    """Write a list as AWS shows it here: a blank behind each comma (recorded: test_state_machine_with_state_error)."""
    return Doc.of_text(f"[{', '.join(document.text for document in documents)}]")


def _given(field: Any, scope: Scope) -> Any:
    return field(scope) if callable(field) else field


def _threshold(mock: Mock, count: int | None, share: float | None) -> Failure | None:
    """Answer the failure of a Map of which more iterations failed than it tolerates.

    One that says no threshold is not looked at (recorded: test_map_state_failure_count).
    """
    failed = mock.failed_items or 0
    result = mock.result.value if mock.result is not None else None
    total = len(result) if isinstance(result, list) else failed
    if (count is not None and failed > count) or (share is not None and total and failed * 100 > share * total):
        return Failure(
            "States.ExceedToleratedFailureThreshold", "The specified tolerated failure threshold was exceeded"
        )
    return None


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
