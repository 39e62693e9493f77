"""Starting executions: over the API, from a Task, from a pipe."""

from dataclasses import dataclass
from functools import partial

from tasuki.engine.events import Started
from tasuki.engine.execution import Execution
from tasuki.services.machines import express
from tasuki.services.machines import queries as sql
from tasuki.services.machines.activities_queue import activity_exists
from tasuki.services.machines.errors import (
    ExecutionAlreadyExists,
    InvalidExecutionInput,
    StateMachineDeleting,
    StateMachineDoesNotExist,
    StateMachineTypeNotSupported,
)
from tasuki.services.machines.model import (
    check_name,
    execution_arn,
    express_arn,
    machine_arn,
    trace_header,
)
from tasuki.services.machines.revisions import choose_revision
from tasuki.services.machines.running import NameTaken, Run, insert_unstepped, proceed
from tasuki.services.machines.setting import Setting
from tasuki.store.store import Conflict, Tx
from tasuki.values import documents
from tasuki.values.documents import Doc
from tasuki.values.errors import MalformedDocument
from tasuki.values.instant import Instant
from tasuki.values.unreadable import json_complaint

INPUT_BYTES = 262_144
"""The largest input (API model, in bytes of UTF-8)."""
DEEP, ROOM = 400, 100
"""An input with more brackets than DEEP must leave so many levels free: later units read it with more around it, and would
fail again and again at what was just deep enough to be taken."""


@dataclass(frozen=True, slots=True)
class Start:
    """What somebody wants started. `arn` is the machine's, `input` JSON text; a name is made if there is none."""

    arn: str
    input: str
    name: str | None = None
    trace: str | None = None
    origin: str | None = None
    origin_id: str | None = None
    watcher: str | None = None
    again: bool = False
    """A second start with the name counts as success, whatever became of the first."""
    synchronous: bool = False
    """StartSyncExecution: whoever starts it waits for the end."""


def start_now(tx: Tx, setting: Setting, wish: Start) -> tuple[str, Instant]:
    """Start an execution and let it do its first share in this unit; answer its ARN and start.

    An Express execution is always a new one, whatever its name.
    Raises InvalidArn, InvalidName, InvalidExecutionInput, StateMachineDoesNotExist, StateMachineDeleting,
    ExecutionAlreadyExists, ExecutionLimitExceeded, ThrottlingException.
    """
    run = prepare(tx, setting, wish)
    if run.state.express:
        express.begin(tx, setting, run)
        return run.state.arn, run.state.started_at
    try:
        proceed(tx, setting, run, (Started(),))
    except NameTaken:
        return _namesake(tx, run, wish)
    return run.state.arn, run.state.started_at


def start_later(tx: Tx, setting: Setting, wish: Start) -> tuple[str, Instant]:
    """Start an execution whose steps are later units. As `start_now` otherwise."""
    run = prepare(tx, setting, wish)
    if run.state.express:
        express.begin_later(tx, run)
        return run.state.arn, run.state.started_at
    try:
        insert_unstepped(tx, setting, run)
    except NameTaken:
        return _namesake(tx, run, wish)
    return run.state.arn, run.state.started_at


def prepare(tx: Tx, setting: Setting, wish: Start) -> Run:
    """Answer a new execution that nobody has written or told anything yet.

    Raises what `start_now` raises but ExecutionAlreadyExists, and StateMachineTypeNotSupported when the caller wants to wait
    in a way that the machine's type does not have: StartSyncExecution of a Standard machine, `.sync` of an Express one.
    """
    chosen = choose_revision(tx, wish.arn)
    name = check_name(wish.name) if wish.name is not None else tx.chance.uuid()
    if chosen is None:
        raise StateMachineDoesNotExist(wish.arn)
    if chosen.status != "ACTIVE":
        raise StateMachineDeleting(wish.arn)
    document = _read_input(wish.input)
    is_express = chosen.type == "EXPRESS"
    if is_express != wish.synchronous and (wish.synchronous or wish.watcher is not None):
        raise StateMachineTypeNotSupported("This operation is not supported by this type of state machine")
    parts, own_arn = chosen.parts, machine_arn(chosen.parts.account, chosen.parts.region, chosen.name)
    place = parts.account, parts.region, chosen.name, name
    if is_express:
        arn = express_arn(*place, tx.chance.uuid())
    else:
        setting.admit_execution(tx)
        arn = execution_arn(*place)
    setting.admit_start(tx)  # last: a unit that is refused runs twice, and must not take two of the rate
    return Run(
        machine=setting.definitions.machine(tx, chosen.digest, chosen.revision),
        state=Execution(
            arn=arn,
            name=name,
            machine_arn=own_arn,
            machine_name=chosen.name,
            role_arn=chosen.role_arn,
            input=document,
            started_at=tx.now,
            seed=tx.chance.hex(32),
            trace=wish.trace or trace_header(tx.chance.hex(24), tx.now),
            express=is_express,
            version_arn=f"{own_arn}:{chosen.version}" if chosen.version is not None else None,
            alias_arn=f"{own_arn}:{chosen.alias}" if chosen.alias is not None else None,
            has_activity=partial(activity_exists, tx),
        ),
        machine_id=chosen.machine,
        revision=chosen.revision,
        account=parts.account,
        region=parts.region,
        watcher=wish.watcher,
        version=chosen.version,
        alias=chosen.alias,
        id=0 if is_express else None,
        logging=chosen.logging,
        origin=wish.origin,
        origin_id=wish.origin_id,
    )


def _read_input(text: str) -> Doc:
    """Answer the input as a document, its text as given. Raises `InvalidExecutionInput`."""
    if len(text) > INPUT_BYTES // 4 and len(text.encode()) > INPUT_BYTES:
        raise InvalidExecutionInput(f"Input exceeds the maximum of {INPUT_BYTES} bytes.")
    document = Doc.of_text(text)
    try:
        _ = document.value
        if text.count("[") + text.count("{") > DEEP:
            documents.loads("[" * ROOM + text + "]" * ROOM)
    except MalformedDocument as bad:
        raise InvalidExecutionInput(json_complaint(text) or str(bad)) from None
    return document


def _namesake(tx: Tx, run: Run, wish: Start) -> tuple[str, Instant]:
    """Answer the execution that has the name already, if this start is a repeat of its own.

    Same input while it runs: a repeat (StartExecution, "idempotent"). Raises `ExecutionAlreadyExists` otherwise.
    """
    row = tx.one(sql.EXECUTION_NAMED, (run.machine_id, run.state.name))
    if row is None:  # it was forgotten since (retention.py), and the name is free
        raise Conflict
    status, text, started_at = row
    if not wish.again and (status != "RUNNING" or text != wish.input):
        raise ExecutionAlreadyExists(run.state.arn)
    return run.state.arn, started_at
