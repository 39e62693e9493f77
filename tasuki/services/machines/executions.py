"""Executions as clients see them: start, describe, list, history, stop.

Behaviour from the API model and states.md sections 10 and 11; recorded: sfn_api/*.
"""

from typing import Any

from tasuki.engine.events import StopRequested
from tasuki.engine.history import HistoryEvent
from tasuki.services.machines import queries as sql
from tasuki.services.machines.api import open_token, page_size, revision_facts
from tasuki.services.machines.chunks import unpack_history
from tasuki.services.machines.errors import (
    ExecutionDoesNotExist,
)
from tasuki.services.machines.events import shown_event, weight_of
from tasuki.services.machines.listing import started_by
from tasuki.services.machines.map_api import has_no_history, label_facts, with_child_facts
from tasuki.services.machines.model import machine_arn, parse_execution_arn
from tasuki.services.machines.remains import Ended, redrive_status
from tasuki.services.machines.running import in_hand, load, proceed, send
from tasuki.services.machines.setting import Setting
from tasuki.services.machines.starting import Start, start_later, start_now
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.operations import Request

PAGE_BYTES = 4 << 20
"""Where a page of history ends at the latest, whatever its number of events."""


def start_execution(tx: Tx, request: Request, setting: Setting) -> dict[str, Any]:
    """StartExecution. The header `X-Amzn-Trace-Id` counts before `traceHeader` (states.md section 13).

    Raises what `start_now` raises.
    """
    given = request.input
    wish = Start(
        arn=given["stateMachineArn"],
        input=given.get("input", "{}"),
        name=given.get("name"),
        trace=request.trace or given.get("traceHeader") or None,
    )
    arn, started_at = (start_later if in_hand(tx) else start_now)(tx, setting, wish)
    return {"executionArn": arn, "startDate": started_at}


def describe_execution(tx: Tx, request: Request) -> dict[str, Any]:
    """DescribeExecution. Raises InvalidArn, ExecutionDoesNotExist."""
    arn = request.input["executionArn"]
    parts, machine, name = parse_execution_arn(arn)
    row = tx.one(sql.DESCRIBE_EXECUTION, (parts.account, parts.region, machine, name))
    if row is None:
        raise ExecutionDoesNotExist(arn)
    status, started_at, stopped_at, given, output, error, cause, trace, version, alias, *redriven = row
    redrives, redriven_at, *ended = redriven
    own_arn = machine_arn(parts.account, parts.region, machine)
    included = request.input.get("includedData") != "METADATA_ONLY"
    answer = {
        "executionArn": arn,
        "stateMachineArn": own_arn,
        **started_by(own_arn, version, alias),
        "name": name,
        "status": status,
        "startDate": started_at,
        "inputDetails": {"included": included},
        "traceHeader": trace,
        **redrive_status(Ended(status, started_at, stopped_at, *ended), redrives, redriven_at, tx.now),
    }
    if included:
        answer["input"] = given
    if stopped_at is not None:
        answer["stopDate"] = stopped_at
    if output is not None:
        answer["outputDetails"] = {"included": included}
        if included:
            answer["output"] = output
    if error is not None:
        answer["error"] = error
    if cause is not None:
        answer["cause"] = cause
    return with_child_facts(tx, answer)


def describe_state_machine_for_execution(tx: Tx, request: Request, setting: Setting) -> dict[str, Any]:
    """DescribeStateMachineForExecution: the revision it runs on. Raises InvalidArn, ExecutionDoesNotExist."""
    arn = request.input["executionArn"]
    parts, machine_name, name = parse_execution_arn(arn)
    row = tx.one(sql.EXECUTION_REVISION, (parts.account, parts.region, machine_name, name))
    if row is None:
        raise ExecutionDoesNotExist(arn)
    revision, revision_id, definition, role_arn, logging, tracing, created_at, digest = row
    answer = {
        "stateMachineArn": machine_arn(parts.account, parts.region, machine_name),
        "name": machine_name,
        "roleArn": role_arn,
        "updateDate": created_at,
    }
    if revision_id is not None:
        answer["revisionId"] = revision_id
    answer |= label_facts(tx, arn)
    machine = setting.definitions.machine(tx, digest, revision)
    return answer | revision_facts(request, machine, definition, logging, tracing)


def get_execution_history(tx: Tx, request: Request) -> dict[str, Any]:
    """GetExecutionHistory, forward or newest first. Raises InvalidArn, ExecutionDoesNotExist, InvalidToken."""
    given = request.input
    arn = given["executionArn"]
    parts, machine, name = parse_execution_arn(arn)
    row = tx.one(sql.FIND_EXECUTION, (parts.account, parts.region, machine, name))
    if row is None or has_no_history(tx, arn):
        raise ExecutionDoesNotExist(arn)
    execution, _, last = row
    backward = bool(given.get("reverseOrder"))
    query = f"history {arn} {backward}"
    start = open_token(tx, query, given.get("nextToken"))
    at = int(start) if start is not None else (last if backward else 1)
    events, following = _events(tx, execution, at, last, page_size(given), backward=backward)
    with_data = given.get("includeExecutionData", True)
    answer: dict[str, Any] = {"events": [shown_event(event, with_data=with_data) for event in events]}
    if following is not None:
        answer["nextToken"] = page_tokens(tx).seal(query, following)
    return answer


def _events(
    tx: Tx, execution: int, at: int, last: int, limit: int, *, backward: bool
) -> tuple[list[HistoryEvent], int | None]:
    """Answer a page of events from `at` on, and where the next one begins, if there is one."""
    found: list[HistoryEvent] = []
    size = 0
    while 1 <= at <= last:
        row = tx.one(sql.CHUNK_AT, (execution, at))
        assert row is not None, f"execution {execution} has no chunk with event {at}"
        first, _, body = row
        events = unpack_history(first, body)
        for event in reversed(events[: at - first + 1]) if backward else events[at - first :]:
            size += weight_of(event)
            if len(found) == limit or (size > PAGE_BYTES and found):
                return found, event.id
            found.append(event)
        at = first - 1 if backward else first + len(events)
    return found, None


def stop_execution(tx: Tx, request: Request, setting: Setting) -> dict[str, Any]:
    """StopExecution: ends with ABORTED at once; one that has ended stays as it is. Raises InvalidArn, ExecutionDoesNotExist."""
    arn = request.input["executionArn"]
    parts, machine, name = parse_execution_arn(arn)
    row = tx.one(sql.FIND_EXECUTION, (parts.account, parts.region, machine, name))
    if row is None:
        raise ExecutionDoesNotExist(arn)
    stop = StopRequested(request.input.get("error"), request.input.get("cause"))
    if in_hand(tx) and row[1] == "RUNNING":
        send(tx, row[0], stop)
        return {"stopDate": tx.now}
    run = load(tx, setting, row[0])
    if run is None:
        ended = tx.one(sql.DESCRIBE_EXECUTION, (parts.account, parts.region, machine, name))
        return {"stopDate": ended[2] if ended is not None else tx.now}
    proceed(tx, setting, run, (stop,))
    return {"stopDate": tx.now}
