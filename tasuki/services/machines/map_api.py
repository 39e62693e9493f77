"""Map Runs as clients see them: list, describe, update, and the children of one.

Behaviour from the API model; recorded: sfn_api_map_run/test_list_map_runs_and_describe_map_run.
"""

from typing import Any

from tasuki.services.machines import map_queries as sql
from tasuki.services.machines import queries
from tasuki.services.machines.api import open_token, page_size
from tasuki.services.machines.errors import ExecutionDoesNotExist, InvalidArn, ResourceNotFound, ValidationException
from tasuki.services.machines.map_runs import (
    MapRun,
    Stage,
    hold,
    labelled_arn,
    made,
    map_run_arn,
    read_settings,
    wake,
    with_news,
)
from tasuki.services.machines.model import execution_arn, machine_arn, parse_execution_arn
from tasuki.store.pages import page_tokens
from tasuki.store.store import Row, Tx
from tasuki.values.arns import parse_arn
from tasuki.values.operations import Request

SCANNED_ROWS = 5_000
"""How many children a filtered page looks at before it ends, full or not."""


def find_run(tx: Tx, arn: str) -> MapRun:
    """Answer a Map Run by its ARN. Raises InvalidArn, ResourceNotFound."""
    parts = parse_arn(arn)
    if parts is None or parts.service != "states":
        raise InvalidArn(f"Invalid ARN prefix: {arn}")
    kind, _, rest = parts.resource.partition(":")
    machine, _, name = rest.partition(":")
    if kind != "mapRun":
        raise InvalidArn(f"Resource type not valid in this context: {kind}")
    if not name or "/" not in machine:
        raise InvalidArn(f"Invalid ARN prefix: {arn}")
    row = tx.one(sql.FIND_RUN, (parts.account, parts.region, machine, name))
    if row is None:
        raise ResourceNotFound(arn)
    return made(row)


def list_map_runs(tx: Tx, request: Request) -> dict[str, Any]:
    """ListMapRuns of an execution, newest first. Raises InvalidArn, ExecutionDoesNotExist, InvalidToken."""
    given = request.input
    arn = given["executionArn"]
    parts, machine, name = parse_execution_arn(arn)
    row = tx.one(queries.FIND_EXECUTION, (parts.account, parts.region, machine, name))
    if row is None:
        raise ExecutionDoesNotExist(arn)
    query = f"map runs {arn}"
    before = open_token(tx, query, given.get("nextToken")) or 1 << 62
    limit = page_size(given)
    rows = tx.all(sql.RUNS_OF, (row[0], int(before), limit + 1))
    answer: dict[str, Any] = {"mapRuns": [_listed(arn, row) for row in rows[:limit]]}
    if len(rows) > limit:
        answer["nextToken"] = page_tokens(tx).seal(query, rows[limit - 1][0])
    return answer


def _listed(execution: str, row: Row) -> dict[str, Any]:
    _, name, started_at, stopped_at, account, region, machine = row
    listed = {
        "executionArn": execution,
        "mapRunArn": map_run_arn(account, region, machine, name),
        "stateMachineArn": machine_arn(account, region, machine),
        "startDate": started_at,
    }
    return {**listed, "stopDate": stopped_at} if stopped_at is not None else listed


def describe_map_run(tx: Tx, request: Request) -> dict[str, Any]:
    """DescribeMapRun. Raises InvalidArn, ResourceNotFound."""
    run = with_news(tx, find_run(tx, request.input["mapRunArn"]))
    parent = tx.one(sql.PARENT, (run.execution,))
    assert parent is not None, "a Map Run is forgotten with its execution"
    answer: dict[str, Any] = {
        "mapRunArn": run.arn,
        "executionArn": execution_arn(*parent),
        "status": run.status if run.stage is Stage.OVER else "RUNNING",
        "startDate": run.started_at,
        "maxConcurrency": run.max_concurrency,
        "toleratedFailurePercentage": run.tolerated_percentage or 0.0,
        "toleratedFailureCount": run.tolerated_count or 0,
        **_counts(run),
        "redriveCount": run.redrives,
    }
    if run.stopped_at is not None:
        answer["stopDate"] = run.stopped_at
    if run.redriven_at is not None:
        answer["redriveDate"] = run.redriven_at
    return answer


def _counts(run: MapRun) -> dict[str, Any]:
    """Answer both counts. Results count as written when their child succeeded, with or without a ResultWriter (recorded).

    How many children batches will make is not known before: those that are still to come are in the items' counts only.
    """
    pending = run.total - run.taken
    to_come = pending if run.settings["batcher"] is None else 0
    return {
        "itemCounts": {
            "pending": pending,
            "running": run.running_items,
            "succeeded": run.succeeded_items,
            "failed": run.failed_items,
            "timedOut": run.timed_out_items,
            "aborted": run.aborted_items,
            "total": run.total,
            "resultsWritten": run.succeeded_items,
            "failuresNotRedrivable": run.lost_items,
            "pendingRedrive": run.pending_items,
        },
        "executionCounts": {
            "pending": to_come,
            "running": run.running,
            "succeeded": run.succeeded,
            "failed": run.failed,
            "timedOut": run.timed_out,
            "aborted": run.aborted,
            "total": run.children + to_come,
            "resultsWritten": run.succeeded,
            "failuresNotRedrivable": run.lost,
            "pendingRedrive": run.pending,
        },
    }


def update_map_run(tx: Tx, request: Request) -> dict[str, Any]:
    """UpdateMapRun: new limits for one in progress. Raises InvalidArn, ResourceNotFound, ValidationException."""
    given = request.input
    run = hold(tx, find_run(tx, given["mapRunArn"]).id)
    if run is None or run.stage is Stage.OVER:
        raise ValidationException(
            "The Map Run has completed and cannot be updated.", reason="CANNOT_UPDATE_COMPLETED_MAP_RUN"
        )
    wanted = ("maxConcurrency", "toleratedFailureCount", "toleratedFailurePercentage")
    if all(given.get(name) is None for name in wanted):
        raise ValidationException(
            f"At least one of these must be specified: {', '.join(wanted)}", reason="MISSING_REQUIRED_PARAMETER"
        )
    tx.run(sql.SET_LIMITS, (*(given.get(name) for name in wanted), run.id))
    wake(tx, run.id)
    return {}


def list_children(tx: Tx, request: Request) -> dict[str, Any]:
    """ListExecutions of a Map Run, newest first. Raises InvalidArn, InvalidToken, ResourceNotFound."""
    given = request.input
    run, wanted, redriven = find_run(tx, given["mapRunArn"]), given.get("statusFilter"), given.get("redriveFilter")
    query = f"children {run.arn} {wanted} {redriven}"
    before = int(open_token(tx, query, given.get("nextToken")) or 1 << 62)
    limit = page_size(given)
    found: list[Row] = []
    scanned = 0
    more = True
    while more and len(found) < limit and scanned < SCANNED_ROWS:
        rows = tx.all(sql.CHILDREN, (run.id, before, limit + 1))
        more = len(rows) > limit
        for row in rows[:limit]:
            before = row[0]
            if wanted in {None, row[2]} and redriven in {None, "REDRIVEN" if row[6] else "NOT_REDRIVEN"}:
                found.append(row)
            if len(found) == limit:
                more = more or row is not rows[-1]
                break
        scanned += len(rows)
    answer: dict[str, Any] = {"executions": [_listed_child(run, row) for row in found]}
    if more:
        answer["nextToken"] = page_tokens(tx).seal(query, before)
    return answer


def _listed_child(run: MapRun, row: Row) -> dict[str, Any]:
    _, name, status, started_at, stopped_at, items, redrives, redriven_at = row
    listed = {
        "executionArn": execution_arn(run.account, run.region, run.machine_name, name),
        "stateMachineArn": labelled_arn(run),
        "name": name,
        "status": status,
        "startDate": started_at,
        "mapRunArn": run.arn,
        "itemCount": items,
        "redriveCount": redrives,
    }
    if redriven_at is not None:
        listed["redriveDate"] = redriven_at
    return {**listed, "stopDate": stopped_at} if stopped_at is not None else listed


def with_child_facts(tx: Tx, answer: dict[str, Any]) -> dict[str, Any]:
    """Answer what DescribeExecution says of an execution, and what it says more if that is a Map Run's child."""
    found = _run_of(tx, answer["executionArn"])
    if found is None:
        return answer
    answer["mapRunArn"] = found[0]
    failed = answer["status"] in {"FAILED", "TIMED_OUT", "ABORTED"}
    if failed and (found[2] or answer["redriveStatus"] == "REDRIVABLE"):
        answer["redriveStatus"] = "REDRIVABLE_BY_MAP_RUN"
        answer.pop("redriveStatusReason", None)
    if found[3]:
        answer["status"] = "PENDING_REDRIVE"
    return answer


def label_facts(tx: Tx, arn: str) -> dict[str, Any]:
    """Answer what DescribeStateMachineForExecution says more of such an execution."""
    found = _run_of(tx, arn)
    return {"mapRunArn": found[0], "label": found[1]} if found is not None else {}


def has_no_history(tx: Tx, arn: str) -> bool:
    """Tell whether an execution is a Map Run's child of ExecutionType EXPRESS."""
    found = _run_of(tx, arn)
    return found is not None and found[2]


def _run_of(tx: Tx, arn: str) -> tuple[str, str, bool, bool] | None:
    """Answer the Map Run's ARN, the label, whether its children are Express, and whether this one waits for its redrive.

    None for an execution of another kind.
    """
    parts, machine, name = parse_execution_arn(arn)
    _, slash, label = machine.partition("/")
    row = tx.one(sql.RUN_OF_CHILD, (parts.account, parts.region, machine, name)) if slash else None
    if row is None:
        return None
    express = bool(read_settings(row[1])["express"])
    return map_run_arn(parts.account, parts.region, machine, row[0]), label, express, bool(row[2])
