"""StartSyncExecution (states.md section 11; recorded: express/*, sfn_api_express/*)."""

from typing import Any

from tasuki.services.machines import express_queries as sql
from tasuki.services.machines.express import LONGEST_MS, begin, ending_of, take_answer, topic_of
from tasuki.services.machines.model import express_arn, machine_arn
from tasuki.services.machines.setting import Setting
from tasuki.services.machines.starting import Start, prepare
from tasuki.store.store import Tx
from tasuki.values.documents import loads
from tasuki.values.instant import SECOND, Instant
from tasuki.values.operations import NotYet, Request

BILLED_STEP_MS = 100
BILLED_MIB = 64
"""The smallest step of billed memory; what an execution really takes is not measured."""
PATIENCE_MS = 10 * SECOND
"""How much longer than an execution may take its caller waits for word of the end."""


def start_sync_execution(tx: Tx, request: Request, setting: Setting) -> dict[str, Any] | NotYet:
    """StartSyncExecution: the first try starts the execution, the later ones look whether it has ended.

    Raises InvalidArn, InvalidName, InvalidExecutionInput, StateMachineDoesNotExist, StateMachineDeleting,
    StateMachineTypeNotSupported.
    """
    row = tx.one(sql.EXPRESS_OF_CALLER, (request.request_id,))
    if row is None:
        return _start(tx, request, setting)
    execution, name, given, started_at, answer, account, region, machine = row
    facts = {
        "executionArn": express_arn(account, region, machine, name, execution),
        "stateMachineArn": machine_arn(account, region, machine),
        "name": name,
        "startDate": started_at,
        "input": given,
    }
    if answer is None:
        return _not_yet(request, facts)
    take_answer(tx, execution)
    return _answer(request, facts, loads(answer))


def _start(tx: Tx, request: Request, setting: Setting) -> dict[str, Any] | NotYet:
    given = request.input
    wish = Start(
        arn=given["stateMachineArn"],
        input=given.get("input", "{}"),
        name=given.get("name"),
        trace=request.trace or given.get("traceHeader") or None,
        synchronous=True,
    )
    run = prepare(tx, setting, wish)
    begin(tx, setting, run, request.request_id)
    facts = {
        "executionArn": run.state.arn,
        "stateMachineArn": run.state.machine_arn,
        "name": run.state.name,
        "startDate": run.state.started_at,
        "input": run.state.input.text,
    }
    if run.finish is None:
        return _not_yet(request, facts)
    return _answer(request, facts, ending_of(run, tx.now))


def _not_yet(request: Request, facts: dict[str, Any]) -> NotYet:
    """Have the caller wait for the end; it comes by a timer of the execution's own, five minutes after the start at last."""
    deadline = facts["startDate"] + LONGEST_MS
    nothing = {"status": "TIMED_OUT", "stopDate": deadline, "output": None, "error": None, "cause": None}
    answer = _answer(request, facts, nothing)
    return NotYet(topic_of(facts["executionArn"].rpartition(":")[2]), deadline + PATIENCE_MS, None, answer)


def _answer(request: Request, facts: dict[str, Any], ending: dict[str, Any]) -> dict[str, Any]:
    included = {"included": request.input.get("includedData") != "METADATA_ONLY"}
    answer = {**facts, "inputDetails": included, "outputDetails": included}
    answer |= {name: value for name, value in ending.items() if value is not None}
    if not included["included"]:
        answer.pop("input")
        answer.pop("output", None)
    trace = request.trace or request.input.get("traceHeader")
    if trace:
        answer["traceHeader"] = trace
    answer["billingDetails"] = _billing(facts["startDate"], ending["stopDate"])
    return answer


def _billing(started_at: Instant, stopped_at: Instant) -> dict[str, int]:
    steps = max(1, -(-(stopped_at - started_at) // BILLED_STEP_MS))
    return {"billedDurationInMilliseconds": steps * BILLED_STEP_MS, "billedMemoryUsedInMB": BILLED_MIB}
