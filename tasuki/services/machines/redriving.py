"""RedriveExecution: an execution that ended badly goes on where it failed (states.md section 11; engine/redrive.py).

Redriven are executions of Standard machines, at most a fortnight after their end. Same ARN, same history, same revision.
The same client token within a quarter of an hour is the same request.
"""

from typing import Any

from tasuki.services.machines import redriving_queries as sql
from tasuki.services.machines.errors import ExecutionDoesNotExist, ExecutionNotRedrivable
from tasuki.services.machines.map_redriving import redriven
from tasuki.services.machines.model import parse_execution_arn
from tasuki.services.machines.queries import FIND_EXECUTION, HOLD_EXECUTION, HOLD_FREE_EXECUTION
from tasuki.services.machines.remains import Ended, why_not
from tasuki.services.machines.running import in_hand, load, make_ready, proceed
from tasuki.services.machines.setting import Setting
from tasuki.services.machines.status_events import tell_status
from tasuki.store.store import Conflict, Tx
from tasuki.values.instant import MINUTE
from tasuki.values.operations import Operation, Operations, Request

TOKENS_MAX = 10
TOKEN_MS = 15 * MINUTE
"""How many client tokens are remembered, and for how long (RedriveExecution, `clientToken`)."""


def operations(setting: Setting) -> Operations:
    """Answer the operation that redrives."""
    return {"RedriveExecution": Operation("write", lambda tx, request: redrive_execution(tx, request, setting))}


def redrive_execution(tx: Tx, request: Request, setting: Setting) -> dict[str, Any]:
    """RedriveExecution. Raises InvalidArn, ExecutionDoesNotExist, ExecutionNotRedrivable, ExecutionLimitExceeded."""
    arn, token = request.input["executionArn"], request.input.get("clientToken")
    parts, machine, name = parse_execution_arn(arn)
    names = (parts.account, parts.region, machine, name)
    _hold(tx, names)
    row = tx.one(sql.TO_REDRIVE, names)
    if row is None:
        raise ExecutionDoesNotExist(arn)
    execution, *ended = row
    if token is not None:
        for known, redriven_at in tx.all(sql.REMEMBERED, (execution, TOKENS_MAX)):
            if known == token and tx.now - redriven_at <= TOKEN_MS:
                return {"redriveDate": redriven_at}
    reason = why_not(Ended(*ended), tx.now)
    if "/" in machine:
        reason = "Child executions of a Map Run are redriven with the execution that started the Map Run"
    if reason is not None:
        raise ExecutionNotRedrivable(reason)
    setting.admit_execution(tx)
    tx.run(sql.REDRIVE, (tx.now, execution))
    tx.run(sql.FORGET_OLD, (execution, tx.now - TOKEN_MS))
    if token is not None:
        tx.run(sql.REMEMBER, (execution, token, tx.now))
    run = load(tx, setting, execution)
    assert run is not None, "an execution that was made to run runs"
    tell_status(tx, setting.switchboard, run.state)
    if in_hand(tx):  # a Task of some execution asks
        make_ready(tx, execution, goes_on=True)
    else:
        proceed(tx, setting, run, (redriven(tx, execution),))
    return {"redriveDate": tx.now}


def _hold(tx: Tx, names: tuple[str, str, str, str]) -> None:
    """Take an execution in hand before its end is read.

    Where a Task of another one asks, it is taken only if nobody else has it: who holds one execution waits for no second.
    """
    row = tx.one(FIND_EXECUTION, names)
    if row is None:
        return
    if not in_hand(tx):
        tx.lock(HOLD_EXECUTION, row[:1])
    elif tx.one(HOLD_FREE_EXECUTION, row[:1]) is None:
        raise Conflict
