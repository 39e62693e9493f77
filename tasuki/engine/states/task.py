"""Task: has work done elsewhere, and waits for the answer, a deadline or a missed heartbeat.

Three families of events, by the kind of resource (history events, developer guide; recorded: services/*, timeouts/*,
callback/*, activities/*): Task..., LambdaFunction..., Activity... . The ...Started event of work that answers at once
is written with its first answer.
"""

from collections.abc import Mapping
from typing import Any

from tasuki.engine.children import cancel
from tasuki.engine.commands import ScheduleTask
from tasuki.engine.events import Event, Heartbeat, TaskFailed, TaskStarted, TaskSubmitted, TaskSucceeded, TimerFired
from tasuki.engine.execution import Frame, Phase
from tasuki.engine.failing import fail_state, is_time_to_retry
from tasuki.engine.flow import mode_of
from tasuki.engine.turn import DataLimitExceeded, Failure, Turn
from tasuki.language.definition import Expression, Resource, Scope, Task
from tasuki.language.errors import StatesError
from tasuki.language.integration_parameters import check_parameters
from tasuki.language.retry import HEARTBEAT_TIMEOUT
from tasuki.values.documents import Doc

_FAMILY = {"integration": "Task", "lambda": "LambdaFunction", "activity": "Activity"}
_FAILED_AT = {"running": "Failed", "start": "StartFailed", "submit": "SubmitFailed", "schedule": "ScheduleFailed"}
_PHASES_OF_FAMILY = {
    "Task": frozenset({"start", "submit"}),
    "LambdaFunction": frozenset({"schedule", "start"}),
    "Activity": frozenset({"schedule"}),
}

_ADDED: Mapping[tuple[str, str, str], Mapping[str, Any]] = {
    ("ecs", "runTask", "sync"): {"StartedBy": "AWS Step Functions"},
}
"""What AWS adds to the parameters of an integration (recorded: services/ecs_task_service/test_run_task_sync)."""


def enter(turn: Turn, frame: Frame, state: Task) -> None:
    """Have the work scheduled."""
    turn.enter(frame, state)
    _schedule(turn, frame, state)


def _schedule(turn: Turn, frame: Frame, state: Task) -> None:
    """Schedule an attempt. Parameters are evaluated anew for each (recorded: ..._with_retry_extended_input)."""
    execution = turn.execution
    resource = state.resource
    execution.last_attempt += 1
    frame.attempt = execution.last_attempt
    frame.started = False
    frame.handle = None
    if resource.kind == "activity" and not execution.has_activity(resource.arn):
        raise StatesError("States.Runtime", f"The activity {resource.arn} does not exist.")
    waits_for_token = resource.pattern == "waitForTaskToken" or resource.kind == "activity"
    frame.token = turn.chance(f"token/{frame.attempt}/").hex(64) if waits_for_token else None
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    timeout = _seconds(state.timeout_seconds, scope)
    heartbeat = _seconds(state.heartbeat_seconds, scope)
    credentials = state.credentials(scope) if state.credentials is not None else None
    parameters = _with_added(resource, mode.arguments(scope, frame, state))
    if parameters is not frame.input:
        turn.weigh(parameters, state.name)
    check_parameters(resource, parameters.value, "Arguments" if state.query_language == "JSONata" else "Parameters")
    details = _scheduled_details(execution.arn, resource, parameters)
    if timeout is not None:
        details["timeoutInSeconds"] = timeout
    if heartbeat is not None:
        details["heartbeatInSeconds"] = heartbeat
    if isinstance(credentials, dict) and "RoleArn" in credentials:
        details["taskCredentials"] = {"roleArn": credentials["RoleArn"]}
    turn.write(frame, f"{_FAMILY[resource.kind]}Scheduled", details)
    frame.heartbeat_ms = heartbeat * 1_000 if heartbeat is not None else None
    frame.timeout_at = frame.heartbeat_at = None
    if resource.kind != "activity":  # an activity's time begins when a worker takes it
        _count_time(turn, frame, timeout)
    frame.phase = Phase.RUNNING
    turn.commands.append(ScheduleTask(frame.id, frame.attempt, resource, parameters, frame.token, timeout, heartbeat))


def _with_added(resource: Resource, parameters: Doc) -> Doc:
    added = _ADDED.get((resource.service, resource.action, resource.pattern))
    if added is None or not isinstance(parameters.value, dict):
        return parameters
    return Doc({**added, **parameters.value})


def _scheduled_details(arn: str, resource: Resource, parameters: Doc) -> dict[str, Any]:
    if resource.kind == "integration":
        region = arn.split(":", 4)[3]
        return {**_named(resource), "region": region, "parameters": parameters}
    return {"resource": resource.arn, "input": parameters}


def _named(resource: Resource) -> dict[str, Any]:
    """Answer the members by which Task... events name the resource; the other families don't."""
    if resource.kind == "integration":
        return {"resourceType": resource.resource_type, "resource": resource.resource}
    return {}


def _seconds(field: int | Expression | None, scope: Scope) -> int | None:
    """Answer a number of seconds: a literal, or what an expression says (which `parse` made check itself)."""
    if field is None or isinstance(field, int):
        return field
    seconds: int = field(scope)
    return seconds


def resume(turn: Turn, frame: Frame, state: Task, event: Event) -> None:
    """Go on with an answer, a sign of life, or a deadline. Answers to older attempts change nothing."""
    if isinstance(event, TimerFired):
        _look_at_clock(turn, frame, state)
        return
    assert isinstance(event, TaskStarted | TaskSubmitted | TaskSucceeded | TaskFailed | Heartbeat), "not for a Task"
    if frame.phase is not Phase.RUNNING or event.attempt != frame.attempt:
        return
    if isinstance(event, Heartbeat):
        if frame.heartbeat_ms is not None:
            frame.heartbeat_at = turn.now + frame.heartbeat_ms
            turn.frames.count(frame)
        return
    turn.frames.touch(frame)
    if isinstance(event, TaskStarted):
        _write_started(turn, frame, state, event.worker)
    elif isinstance(event, TaskSubmitted):
        _submitted(turn, frame, state, event)
    elif isinstance(event, TaskSucceeded):
        _succeeded(turn, frame, state, event.output)
    else:
        _failed(turn, frame, state, event)


def _write_started(turn: Turn, frame: Frame, state: Task, worker: str | None = None) -> None:
    """Write that the work began, once an attempt."""
    if frame.started:
        return
    frame.started = True
    kind = state.resource.kind
    details: dict[str, Any] | None = _named(state.resource)
    if kind == "lambda":
        details = None
    elif kind == "activity":
        details = {"workerName": worker} if worker is not None else {}
        _count_time(turn, frame, _seconds(state.timeout_seconds, mode_of(state).begin(turn, frame, state)))
    turn.write(frame, f"{_FAMILY[kind]}Started", details)


def _count_time(turn: Turn, frame: Frame, timeout: int | None) -> None:
    """The time of an attempt begins (of activities with ActivityStarted: states language, "TimeoutSeconds")."""
    frame.timeout_at = turn.now + timeout * 1_000 if timeout is not None else None
    frame.heartbeat_at = turn.now + frame.heartbeat_ms if frame.heartbeat_ms is not None else None


def _submitted(turn: Turn, frame: Frame, state: Task, event: TaskSubmitted) -> None:
    _write_started(turn, frame, state)
    if event.handle is not None:
        frame.handle = event.handle
    turn.write(frame, "TaskSubmitted", {**_named(state.resource), "output": event.output})


def _succeeded(turn: Turn, frame: Frame, state: Task, result: Doc) -> None:
    """Leave with the result; one that is too large is a failure that can be caught (recorded: states_errors)."""
    resource = state.resource
    _write_started(turn, frame, state)
    try:
        turn.weigh(result, resource.resource_type if resource.kind == "integration" else resource.arn)
    except DataLimitExceeded as large:
        _fail(turn, frame, state, "running", Failure(large.error, large.cause))
        return
    turn.write(frame, f"{_FAMILY[resource.kind]}Succeeded", {**_named(resource), "output": result})
    _rest(frame)
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    output, assigned = mode.finish(scope, frame, state, result, state.assign)
    frame.token = None
    turn.leave(frame, state, output, assigned, state.next)


def _failed(turn: Turn, frame: Frame, state: Task, event: TaskFailed) -> None:
    if event.at in {"running", "submit"}:
        _write_started(turn, frame, state)
    _fail(turn, frame, state, event.at, Failure(event.error, event.cause))


def _fail(turn: Turn, frame: Frame, state: Task, at: str, failure: Failure) -> None:
    """Write the failure in the words of the family, which has a name of its own for some phases only; go on with it."""
    family = _FAMILY[state.resource.kind]
    ending = _FAILED_AT[at] if at in _PHASES_OF_FAMILY[family] else "Failed"
    turn.write(frame, family + ending, {**_named(state.resource), **failure.details()})
    fail_state(turn, frame, state, failure)


def _look_at_clock(turn: Turn, frame: Frame, state: Task) -> None:
    """A retry's time, a timeout or a missed heartbeat has come, or none of them."""
    now = turn.now
    if frame.phase is Phase.RETRYING:
        if is_time_to_retry(turn, frame):
            frame.wake_at = None
            turn.frames.touch(frame)
            _schedule(turn, frame, state)
        return
    timed_out = frame.timeout_at is not None and now >= frame.timeout_at
    silent = frame.heartbeat_at is not None and now >= frame.heartbeat_at
    if not timed_out and not silent:
        return
    turn.frames.touch(frame)
    if state.resource.kind != "activity":
        _write_started(turn, frame, state)
    family = _FAMILY[state.resource.kind]
    turn.write(frame, f"{family}TimedOut", {**_named(state.resource), "error": "States.Timeout"})
    cancel(turn, frame, state, "States.Timeout")
    fail_state(turn, frame, state, Failure("States.Timeout" if timed_out else HEARTBEAT_TIMEOUT))


def _rest(frame: Frame) -> None:
    """No deadline is left."""
    frame.timeout_at = frame.heartbeat_at = frame.heartbeat_ms = None
    frame.handle = None
