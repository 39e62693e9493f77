"""What this room plugs into the switchboard: a Task's and a pipe's way to start executions, and an ear for endings."""

from collections.abc import Mapping
from typing import Any

from tasuki.engine.events import Event, StopRequested, TaskFailed, TaskSucceeded
from tasuki.services.machines import express
from tasuki.services.machines import queries as sql
from tasuki.services.machines.errors import ValidationException
from tasuki.services.machines.model import parse_execution_arn
from tasuki.services.machines.revisions import choose_revision
from tasuki.services.machines.running import send
from tasuki.services.machines.setting import Setting
from tasuki.services.machines.starting import Start, start_later
from tasuki.services.switchboard import NOTHING, Answer, Caller, Ending
from tasuki.store.store import Tx
from tasuki.values.documents import Doc, dumps, loads
from tasuki.values.errors import DomainError


class StartExecutionCall:
    """`states:startExecution`, with all its patterns."""

    error_prefix = "StepFunctions"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def call(self, tx: Tx, parameters: dict[str, Any], caller: Caller) -> Answer:
        """Start a child execution; it takes its first step in a unit of its own.

        Parameters: StateMachineArn, Name, Input (a document, or JSON text), TraceHeader. Null counts as not given
        (recorded: callback/test_start_execution_sync has `Input: null`, and the child gets `{}`).
        """
        arn, name, given = (parameters.get(key) for key in ("StateMachineArn", "Name", "Input"))
        if not isinstance(arn, str):
            raise ValidationException(
                "1 validation error detected: Value null at 'stateMachineArn' failed to satisfy constraint: Member must not be null"
            )
        wish = Start(
            arn=arn,
            input="{}" if given is None else given if isinstance(given, str) else dumps(given),
            name=None if name is None else str(name),
            trace=parameters.get("TraceHeader") or caller.trace,
            origin=caller.origin,
            origin_id=caller.idempotency,
            watcher=caller.watcher,
        )
        started, started_at = start_later(tx, self._setting, wish)
        return Answer({"ExecutionArn": started, "StartDate": started_at}, handle=started)

    def cancel(self, tx: Tx, handle: str, cause: str) -> None:  # noqa: ARG002 - AWS stops children without a word
        """Stop a child execution, in a unit of its own."""
        parts, machine, name = parse_execution_arn(handle)
        row = tx.one(sql.FIND_EXECUTION, (parts.account, parts.region, machine, name))
        if row is not None and row[1] == "RUNNING":
            send(tx, row[0], StopRequested())


class MachineTarget:
    """A machine as a pipe or a schedule sees it (switchboard `Target`)."""

    takes_arrays = True
    takes_text = False

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def check(self, tx: Tx, arn: str, parameters: dict[str, Any]) -> str | None:
        """Answer None if a machine takes deliveries, else why not.

        A Standard machine is only started, never waited for: the `InvocationType` must be FIRE_AND_FORGET, which is not the
        default (pipes.md section 4; PITFALLS PF-42).
        """
        try:
            chosen = choose_revision(tx, arn)
        except DomainError as no:
            return no.message
        if chosen is None:
            return f"State Machine Does Not Exist: '{arn}'"
        kind = parameters.get("InvocationType", "REQUEST_RESPONSE")
        if kind != "FIRE_AND_FORGET" and chosen.type != "EXPRESS":
            return (
                f"InvocationType {kind} is not supported for the STANDARD state machine {arn}: set "
                "StepFunctionStateMachineParameters.InvocationType to FIRE_AND_FORGET."
            )
        return None

    def waits(self, tx: Tx, arn: str) -> bool | None:
        """Tell whether a machine is an Express one, whose end can be waited for; None when it is not there."""
        try:
            chosen = choose_revision(tx, arn)
        except DomainError:
            return None
        return chosen.type == "EXPRESS" if chosen is not None else None

    def deliver(
        self,
        tx: Tx,
        arn: str,
        payload: str,
        name: str | None,
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,  # noqa: ARG002 - whether it is waited for, the caller's watcher says
    ) -> str:
        """Start an execution in the sender's unit; it takes its first step in a later one."""
        wish = Start(
            arn=arn,
            input=payload,
            name=name,
            trace=caller.trace or None,
            origin=caller.origin,
            origin_id=caller.idempotency,
            watcher=caller.watcher,
            synchronous=caller.watcher is not None,
            again=name is not None,
        )
        return start_later(tx, self._setting, wish)[0]


class TaskWatcher:
    """Hears of the end of what `.sync` tasks started."""

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:
        """Put the ending into the inbox of the execution that waits. `key`: `EXECUTION:FRAME:ATTEMPT[:2|:call]`.

        `2`: `.sync:2`. `call`: the call of an operation that waits, to which a failure is an answer like any other.
        """
        execution, frame, attempt, *pattern = key.split(":")
        output = ending.output
        if pattern == ["2"]:
            texts = {name: loads(output[name]) for name in ("Input", "Output") if isinstance(output.get(name), str)}
            output = {**output, **texts}
        event: Event
        if ending.succeeded or pattern == ["call"]:
            event = TaskSucceeded(int(frame), int(attempt), Doc(output))
        else:
            cause = ending.cause if ending.cause is not None else dumps(output)
            event = TaskFailed(int(frame), int(attempt), ending.error, cause)
        if execution.isdecimal():
            send(tx, int(execution), event)
        else:
            express.send(tx, execution, event)
