"""Map (distributed): has a Map Run started, and waits for its end.

The items are not run here: the shell opens a child execution for each item or batch, with a history of its own, and
tells the end (`MapRunEnded`). What the shell must know is evaluated when the state is entered; an ItemSelector is
evaluated item by item, when its turn comes (`Selector`).

Order and causes as recorded (scenarios/test_map_state_config_distributed*, ..._tolerated_failure_*,
test_map_item_reader*): what a path says of the tolerated failures or of MaxItems is looked at after MapStateStarted, whose
length is 0 with an ItemReader. Until autumn 2024 AWS gave MapStateExited the previousEventId of MapRunSucceeded, since
then that of MapRunStarted; two thirds of the recordings are of the older kind, and so are we.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from tasuki.engine.commands import MapRunPlan, StartMapRun
from tasuki.engine.context import STATE_DATA
from tasuki.engine.events import Event, MapRunEnded, TimerFired
from tasuki.engine.execution import Execution, Frame, Phase
from tasuki.engine.failing import fail_state, is_time_to_retry, located
from tasuki.engine.flow import make_scope, mode_of
from tasuki.engine.turn import Failure, Happening, Turn
from tasuki.language.definition import Distributed, Expression, ItemBatcher, ItemReader, Machine, Map, Scope
from tasuki.language.errors import StatesError
from tasuki.values.documents import Doc, dumps
from tasuki.values.instant import Instant

MAX_CONCURRENCY = 10_000
"""How many child executions run at a time when MaxConcurrency doesn't say (Step Functions quotas)."""


def start(turn: Turn, frame: Frame, state: Map) -> None:
    """Have a Map Run started."""
    distributed = state.distributed
    assert distributed is not None, "an inline Map has no Map Run"
    execution = turn.execution
    scope = mode_of(state).begin(turn, frame, state)
    concurrency = _whole("MaxConcurrency", state.max_concurrency, scope) or 0
    items = None if distributed.reader is not None else _items(state, frame, scope)
    turn.write(frame, "MapStateStarted", {"length": len(items) if items is not None else 0})
    plan = MapRunPlan(
        state=state.name,
        block=state.processor.path,
        express=distributed.express,
        max_concurrency=concurrency,
        tolerated_count=_tolerated_count(state, scope),
        tolerated_percentage=_tolerated_percentage(state, scope),
        reader=_reader(distributed.reader, scope),
        batcher=_batcher(distributed.batcher, scope),
        writer=_writer(distributed, scope),
        selects=state.item_selector is not None,
    )
    execution.last_attempt += 1
    frame.attempt = execution.last_attempt
    label = distributed.label or _made_label(execution.machine_arn, state)
    name = turn.chance(f"map-run/{frame.attempt}/").uuid()
    arn = f"{execution.machine_arn.replace(':stateMachine:', ':mapRun:')}/{label}:{name}"
    turn.write(frame, "MapRunStarted", {"mapRunArn": arn})
    frame.handle = arn
    frame.phase = Phase.RUNNING
    turn.commands.append(StartMapRun(frame.id, frame.attempt, label, name, plan, items))


def resume(turn: Turn, frame: Frame, state: Map, event: Event | Happening) -> None:
    """The Map Run has ended, or it is time for another one."""
    if isinstance(event, TimerFired):
        if is_time_to_retry(turn, frame):
            frame.wake_at = None
            turn.frames.touch(frame)
            start(turn, frame, state)
        return
    if not isinstance(event, MapRunEnded) or frame.phase is not Phase.RUNNING or event.attempt != frame.attempt:
        return
    turn.frames.touch(frame)
    frame.handle = None
    if event.output is None:
        failure = Failure(event.error, event.cause)
        turn.write(frame, "MapRunFailed", failure.details())
        fail_state(turn, frame, state, failure, "MapStateFailed")
        return
    turn.write(frame, "MapRunSucceeded", None)
    turn.note(frame.last_event, "MapStateSucceeded", None)
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    output, assigned = mode.finish(scope, frame, state, event.output, state.assign)
    turn.leave(frame, state, output, assigned, state.next)


class Selector:
    """Makes the documents that a Map Run's children get, in the scope of the state that started it."""

    def __init__(
        self, machine: Machine, execution: Execution, frame: Frame, now: Instant, source: str = STATE_DATA
    ) -> None:
        self._turn = Turn(machine, execution, now)
        self._frame = frame
        self._source = source
        state = self._turn.state(frame)
        assert isinstance(state, Map), "a Map Run belongs to a Map"
        self._state = state
        self._input: Any = mode_of(state).begin(self._turn, frame, state).input

    def __call__(self, index: int, item: Any) -> Any:
        """Answer what a child gets for an item. Raises `StatesError`, its cause already in AWS's words."""
        select = self._state.item_selector
        if select is None:
            return item
        scope = make_scope(self._turn, self._frame, self._state, self._input, (index, Doc(item)), source=self._source)
        self._turn.fuel.refill()
        # No event is written for an item: what it draws depends on its place.
        scope.chance = self._turn.chance(f"item/{index}/")
        try:
            return select(scope)
        except StatesError as error:
            raise StatesError(error.error, located(self._frame, self._state, error)) from None


def _items(state: Map, frame: Frame, scope: Scope) -> list[Any]:
    """Answer the items of the state's input."""
    found = state.items(scope) if state.items is not None else frame.input.value
    if isinstance(found, list):
        return found
    raise StatesError("States.QueryEvaluationError", f"Map state input must be an array but was: {dumps(found)}")


def _made_label(machine_arn: str, state: Map) -> str:
    """Answer the label of a Map that has none: a UUID, the same for every run of this state."""
    digest = hashlib.sha256(f"{machine_arn}/{state.processor.path}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def _whole(name: str, field: int | Expression | None, scope: Scope) -> int | None:
    """Answer a whole number, or what an expression says it is."""
    if field is None or isinstance(field, int):
        return field
    value = field(scope)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise StatesError("States.Runtime", f"{name} must be an integer but was: {dumps(value)}")
    return value


def _tolerated_count(state: Map, scope: Scope) -> int | None:
    count = _whole("ToleratedFailureCount", state.tolerated_failure_count, scope)
    if count is not None and count < 0:
        raise StatesError("States.Runtime", "ToleratedFailureCount cannot be negative.")
    return count


def _tolerated_percentage(state: Map, scope: Scope) -> float | None:
    field = state.tolerated_failure_percentage
    if field is None or isinstance(field, int | float):
        return field
    value = field(scope)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise StatesError("States.Runtime", "ToleratedFailurePercentage must be between 0 and 100.")
    return float(value)


def _reader(reader: ItemReader | None, scope: Scope) -> Mapping[str, Any] | None:
    """Answer what is read, and how, in plain words that can be kept in a row."""
    if reader is None:
        return None
    return {
        "action": reader.action,
        "arguments": reader.arguments(scope) if reader.arguments is not None else {},
        "input_type": reader.input_type,
        "header_location": reader.header_location,
        "headers": list(reader.headers),
        "delimiter": reader.delimiter,
        "pointer": reader.pointer,
        "transformation": reader.transformation,
        "max_items": _whole("MaxItems", reader.max_items, scope) or 0,
    }


def _batcher(batcher: ItemBatcher | None, scope: Scope) -> Mapping[str, Any] | None:
    """Answer how items are grouped."""
    if batcher is None:
        return None
    made: dict[str, Any] = {}
    for name, key, field in (
        ("MaxItemsPerBatch", "max_items", batcher.max_items),
        ("MaxInputBytesPerBatch", "max_bytes", batcher.max_bytes),
    ):
        number = _whole(name, field, scope)
        if number is not None and number <= 0:
            raise StatesError("States.Runtime", f"{name} must be positive.")
        made[key] = number
    if batcher.batch_input is not None:
        made["input"] = batcher.batch_input(scope)
    return made


def _writer(distributed: Distributed, scope: Scope) -> Mapping[str, Any] | None:
    """Answer where results go, and in which form."""
    writer = distributed.writer
    if writer is None:
        return None
    return {
        "arguments": writer.arguments(scope) if writer.arguments is not None else None,
        "output_type": writer.output_type,
        "transformation": writer.transformation,
    }
