"""StartSyncExecution (states.md section 11; recorded: express/*, sfn_api_express/*)."""

from typing import Any

from tasuki.services.machines import express_queries as sql
from tasuki.services.machines.express import LONGEST_MS, begin, ending_of, facts_of, take_answer, topic_of
from tasuki.services.machines.express_answers import sync_answer
from tasuki.services.machines.model import express_arn, machine_arn
from tasuki.services.machines.setting import Setting
from tasuki.services.machines.starting import Start, prepare
from tasuki.store.store import Tx
from tasuki.values.documents import loads
from tasuki.values.instant import SECOND
from tasuki.values.operations import NotYet, Request

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
    facts = facts_of(run)
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
    included = request.input.get("includedData") != "METADATA_ONLY"
    return sync_answer(facts, ending, included=included, trace=request.trace or request.input.get("traceHeader"))
