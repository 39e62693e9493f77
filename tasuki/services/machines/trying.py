"""TestState: one state, run by itself on a given input, with the answers of services mocked or real.

The run is the engine's (`engine/trial.py`); here stand what AWS refuses, in its words (recorded: state_mock_validation),
and what it shows of the data's way through a state, which depends on the state's type (recorded: state_scenarios).

A Task that is not mocked calls its integration in this unit, as an execution would.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tasuki.engine.commands import ScheduleTask
from tasuki.engine.events import Event, TaskFailed, TaskSucceeded
from tasuki.engine.execution import Execution
from tasuki.engine.trial import Mock, Setup, Trial, try_state
from tasuki.engine.turn import WORDS, Failure
from tasuki.language.definition import Block, Machine, Map, Parallel, Pass, State, Task
from tasuki.language.errors import InvalidDefinition as InvalidText
from tasuki.language.parse import LONE_STATE, parse, parse_state
from tasuki.services.machines.errors import InvalidDefinition, InvalidExecutionInput, Unsupported, ValidationException
from tasuki.services.machines.item_readers import Cursor, read_items
from tasuki.services.machines.mocking import check_result
from tasuki.services.machines.model import machine_arn, trace_header
from tasuki.services.machines.performing import Wishes
from tasuki.services.machines.setting import Setting
from tasuki.services.switchboard import ObjectFacts, Switchboard
from tasuki.store.store import Tx
from tasuki.values.documents import Doc, dumps, loads
from tasuki.values.errors import MalformedDocument
from tasuki.values.operations import Request
from tasuki.values.unreadable import json_complaint

_ANY_OBJECT = {"Bucket": "given", "Key": "mapItemReaderData"}
_WITHOUT_MOCK = "[Task, Wait, Pass, Succeed, Fail, Choice]"
_PATHS = frozenset({"afterInputPath"})
_RESULT = frozenset({"afterResultSelector", "afterResultPath"})
_SHOWN: Mapping[type[State], frozenset[str]] = {
    Pass: _PATHS | _RESULT | {"afterParameters"},
    Task: _PATHS | _RESULT | {"afterParameters", "afterArguments", "result"},
    Parallel: _RESULT | {"afterArguments"},
    Map: _PATHS
    | _RESULT
    | {
        "afterItemsPath",
        "afterItemSelector",
        "afterItemBatcher",
        "afterItemsPointer",
        "maxConcurrency",
        "toleratedFailureCount",
        "toleratedFailurePercentage",
    },
}
"""The stations that AWS shows of a type; of the types that are not here, InputPath alone."""
_OF_PATHS = frozenset({"afterInputPath", "afterParameters", "afterItemsPath"}) | _RESULT
"""What JSONata does not have."""


def test_state(tx: Tx, request: Request, setting: Setting) -> dict[str, Any]:
    """TestState. Raises InvalidDefinition, InvalidExecutionInput, ValidationException."""
    given = request.input
    mock = given.get("mock")
    _check_combinations(given, mock)
    document = _input(given.get("input") or "{}")
    machine, block, state = _find(given["definition"], given.get("stateName"))
    _check_type(state, mock, given.get("roleArn"))
    configuration = given.get("stateConfiguration") or {}
    context = _object(given.get("context"), "Context object")
    _check_context(context, state)
    setup = Setup(
        block=block,
        state=state,
        input=document,
        variables=_object(given.get("variables"), "Variables") or {},
        context=context,
        retries=configuration.get("retrierRetryCount") or 0,
        read=_reader(tx, setting, configuration.get("mapItemReaderData")),
    )
    execution = _execution(tx, request, document)
    answer: Mock | Callable[[ScheduleTask], Event] = (
        _worker(tx, request, setting, execution) if mock is None else _mock(mock, state, configuration)
    )
    trial = try_state(machine, execution, tx.now, setup, answer)
    return _shown(trial, setup, given.get("inspectionLevel") or "INFO")


def _check_combinations(given: Mapping[str, Any], mock: Mapping[str, Any] | None) -> None:
    """Refuse what makes no sense together. Raises `ValidationException`."""
    if mock is None:
        configuration = given.get("stateConfiguration") or {}
        for name in ("retrierRetryCount", "errorCausedByState", "mapIterationFailureCount", "mapItemReaderData"):
            if configuration.get(name) is not None:
                raise _needs_mock(name)
        if given.get("context") is not None:
            raise _needs_mock("context")
        return
    if given.get("revealSecrets"):
        raise ValidationException("TestState does not support RevealSecrets when a mock is specified.")
    if mock.get("result") is not None and mock.get("errorOutput") is not None:
        raise ValidationException("A test mock should have only one of the following fields: [result, errorOutput].")


def _needs_mock(name: str) -> ValidationException:
    shown = name[0].upper() + name[1:]
    return ValidationException(f"TestState does not support {shown} when a mock is not specified.")


def _input(text: str) -> Doc:
    complaint = json_complaint(text)
    if complaint is not None:
        raise InvalidExecutionInput(complaint)
    return Doc.of_text(text)


def _object(text: str | None, what: str) -> dict[str, Any] | None:
    """Read a parameter that is the text of a JSON object. Raises `ValidationException`."""
    if text is None:
        return None
    try:
        value = loads(text)
    except MalformedDocument:
        value = None
    if not isinstance(value, dict):
        raise ValidationException(f"{what} must be a valid JSON object")
    return value


def _find(definition: str, name: str | None) -> tuple[Machine, Block, State]:
    """Compile the definition and answer the state, wherever in the machine it is.

    Raises InvalidDefinition, ValidationException.
    """
    try:
        machine = parse_state(definition) if name is None else parse(definition)
    except InvalidText as bad:
        raise InvalidDefinition(", ".join(map(str, bad.diagnoses))) from None
    wanted = LONE_STATE if name is None else name
    # A lone state's own block comes first, so that a state of the same name below it is not taken for it.
    for block in [machine.root, *machine.blocks.values()]:
        if wanted in block.states:
            return machine, block, block.states[wanted]
    raise ValidationException("State not found in definition")


def _check_type(state: State, mock: Mapping[str, Any] | None, role: str | None) -> None:
    """Raises InvalidDefinition (as `Unsupported`), ValidationException."""
    if mock is not None:
        if not isinstance(state, Task | Map | Parallel):
            raise ValidationException(f"State type '{WORDS[type(state)]}' is not supported when a mock is specified")
        return
    if isinstance(state, Map | Parallel):
        raise Unsupported(
            f"TestState API does not support Map or Parallel states. Supported state types include: {_WITHOUT_MOCK}"
        )
    if not isinstance(state, Task):
        return
    if state.resource.kind == "activity" or state.resource.pattern:
        what = "Activity tasks" if state.resource.kind == "activity" else f"the .{state.resource.pattern} pattern"
        raise Unsupported(f"TestState API supports {what} only when a mock is specified.")
    if role is None:
        raise ValidationException("RoleArn must be specified when testing a Task state")


def _check_context(context: dict[str, Any] | None, state: State) -> None:
    """A context may only hold what the state would see. Raises `ValidationException`."""
    if context is None or "Task" not in context:
        return
    if isinstance(state, Task) and (state.resource.kind == "activity" or state.resource.pattern == "waitForTaskToken"):
        return
    raise ValidationException(
        "Context object contains 'Task' when state is not a Task state with "
        "'.waitForTaskToken' service integration pattern or Activity resource"
    )


def _reader(tx: Tx, setting: Setting, text: str | None) -> Callable[[Mapping[str, Any]], list[Any]] | None:
    """Answer what reads items out of a text as an ItemReader would out of an object."""
    if text is None:
        return None
    given = Setting(setting.config, Switchboard(objects=_Given(text)))

    def read(reader: Mapping[str, Any]) -> list[Any]:
        found = {**reader, "arguments": _ANY_OBJECT}
        if reader["action"] == "listObjectsV2":
            found |= {"action": "getObject", "input_type": "JSON", "pointer": "", "transformation": "NONE"}
        items: list[Any] = []
        cursor: Cursor | None = {}
        while cursor is not None:
            more, cursor = read_items(tx, given, found, cursor, len(items))
            items += more
        return items

    return read


class _Given:
    """An object store of one object: what the caller says an ItemReader found."""

    def __init__(self, text: str) -> None:
        self._content = text.encode()

    def get(self, tx: Tx, bucket: str, key: str, start: int, length: int) -> bytes:  # noqa: ARG002 - there is only one
        """Answer bytes of the object."""
        return self._content[start : start + length]

    def list(self, tx: Tx, bucket: str, prefix: str, after: str, limit: int) -> Sequence[ObjectFacts]:  # noqa: ARG002
        """Answer nothing: what a listing found is given as an array."""
        return ()

    def put(self, tx: Tx, bucket: str, key: str, body: bytes) -> None:
        """Nothing is written in a test."""


def _mock(mock: Mapping[str, Any], state: State, configuration: Mapping[str, Any]) -> Mock:
    """Check a mock and take it in. Raises `ValidationException`."""
    failed = configuration.get("mapIterationFailureCount")
    error = mock.get("errorOutput")
    if error is not None:
        _check_origin(state, configuration.get("errorCausedByState"))
        return Mock(failure=Failure(error.get("error"), error.get("cause")), failed_items=failed)
    text = mock.get("result")
    if text is None:
        raise ValidationException("A test mock must have one of the following fields: [result, errorOutput].")
    try:
        result = loads(text)
    except MalformedDocument:
        raise ValidationException("Mocked result must be valid JSON") from None
    if isinstance(state, Map) and _writes_results(state):
        if not isinstance(result, dict):
            raise ValidationException("Mocked result must be a JSON object.")
    elif isinstance(state, Map | Parallel):
        if not isinstance(result, list):
            raise ValidationException("Mocked result must be an array.")
        if isinstance(state, Parallel) and len(result) != len(state.branches):
            raise ValidationException(
                "Mocked result must contain the same number of items as number of Parallel branches."
            )
        if failed is not None and failed > len(result):
            raise ValidationException(
                "Map iteration failure count must be less than or equal to the number of Map iterations"
            )
    mode = mock.get("fieldValidationMode") or "STRICT"
    if isinstance(state, Task) and mode != "NONE":
        check_result(state.resource, result, strict=mode == "STRICT")
    return Mock(result=Doc.of_text(text), failed_items=failed)


def _writes_results(state: Map) -> bool:
    """Tell whether a Map's result is where its results lie."""
    writer = state.distributed.writer if state.distributed is not None else None
    return writer is not None and writer.arguments is not None


def _check_origin(state: State, name: str | None) -> None:
    """The state that an error comes from must be one below. Raises `ValidationException`."""
    if name is None or not isinstance(state, Map | Parallel):
        return
    todo = [state.processor] if isinstance(state, Map) else list(state.branches)
    while todo:
        block = todo.pop()
        if name in block.states:
            return
        for inner in block.states.values():
            if isinstance(inner, Map):
                todo.append(inner.processor)
            elif isinstance(inner, Parallel):
                todo.extend(inner.branches)
    raise ValidationException(f"State '{name}' not found in the {WORDS[type(state)]} state")


def _execution(tx: Tx, request: Request, document: Doc) -> Execution:
    """Make the execution that the state believes to be in: an Express one that nobody can find."""
    name, machine = tx.chance.uuid(), tx.chance.uuid()
    return Execution(
        arn=f"arn:aws:states:{request.region}:{request.account}:express:{machine}:{name}",
        name=name,
        machine_arn=machine_arn(request.account, request.region, machine),
        machine_name=machine,
        role_arn=request.input.get("roleArn") or "",
        input=document,
        started_at=tx.now,
        seed=tx.chance.hex(32),
        trace=request.trace or trace_header(tx.chance.hex(24), tx.now),
        express=True,
    )


def _worker(tx: Tx, request: Request, setting: Setting, execution: Execution) -> Callable[[ScheduleTask], Event]:
    """Answer what does the work of a Task for real."""
    wishes = Wishes(
        tx,
        setting.switchboard,
        execution=0,
        arn=execution.arn,
        account=request.account,
        region=request.region,
        trace=execution.trace,
    )

    def work(wish: ScheduleTask) -> Event:
        event = wishes.schedule(wish)
        if not isinstance(event, TaskSucceeded | TaskFailed):
            # It answers later, and a unit does not wait: what was begun is taken back with it.
            raise Unsupported(f"TestState API supports {wish.resource.arn} only when a mock is specified.")
        return event

    return work


def _shown(trial: Trial, setup: Setup, level: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"status": trial.status}
    if trial.output is not None:
        answer["output"] = trial.output.text
    if trial.status != "SUCCEEDED":
        answer.update(trial.failure.details())
    if trial.following is not None and trial.output is not None:
        answer["nextState"] = trial.following
    if level != "INFO":
        answer["inspectionData"] = _inspection(trial, setup)
    return answer


def _inspection(trial: Trial, setup: Setup) -> dict[str, Any]:
    """Answer what AWS shows of the data's way through a state of this type and language."""
    state = setup.state
    wanted = _SHOWN.get(type(state), _PATHS)
    if state.query_language == "JSONata":
        wanted -= _OF_PATHS
        if "afterArguments" in wanted and getattr(state, "arguments", None) is None:
            wanted -= {"afterArguments"}
    shown: dict[str, Any] = {"input": setup.input.text}
    if isinstance(state, Pass) and state.result is not None:
        shown["result"] = state.result.text
        wanted = _RESULT
    shown.update(
        {name: note.text if isinstance(note, Doc) else note for name, note in trial.notes.items() if name in wanted}
    )
    if trial.variables:
        shown["variables"] = dumps(dict(trial.variables))
    handled = {name: trial.notes[name] for name in ("catchIndex", "retryIndex") if name in trial.notes}
    if trial.backoff_seconds is not None:
        handled["retryBackoffIntervalSeconds"] = trial.backoff_seconds
    if handled and trial.status != "FAILED":
        shown["errorDetails"] = handled
    return shown
