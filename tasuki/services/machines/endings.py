"""How an execution ended, as whoever started it is told: DescribeExecution in PascalCase (states.md section 9).

Recorded: callback/test_start_execution_sync, ..._sync2, ..._delegate_failure. Instants are epoch milliseconds.
"""

from typing import Any

from tasuki.engine.commands import Finish
from tasuki.engine.execution import Execution
from tasuki.services.switchboard import Ending, Switchboard
from tasuki.store.store import Tx


def tell_watcher(tx: Tx, switchboard: Switchboard, watcher: str, state: Execution, end: Finish) -> None:
    """Tell who waits for an execution how it ended."""
    switchboard.finished(tx, watcher, Ending(end.status == "SUCCEEDED", _described(state, end, tx.now)))


def _described(state: Execution, end: Finish, now: int) -> dict[str, Any]:
    described: dict[str, Any] = {}
    if end.cause is not None:
        described["Cause"] = end.cause
    if end.error is not None:
        described["Error"] = end.error
    described |= {
        "ExecutionArn": state.arn,
        "Input": state.input.text,
        "InputDetails": {"Included": True},
        "Name": state.name,
    }
    if end.output is not None:
        described |= {"Output": end.output.text, "OutputDetails": {"Included": True}}
    return described | {
        "StartDate": state.started_at,
        "StateMachineArn": state.machine_arn,
        "Status": end.status,
        "StopDate": now,
    }
