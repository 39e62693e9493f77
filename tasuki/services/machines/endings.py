"""How an execution ended, as whoever started it is told: DescribeExecution in PascalCase (states.md section 9).

Recorded: callback/test_start_execution_sync, ..._sync2, ..._delegate_failure. Instants are epoch milliseconds.
"""

from typing import Any

from tasuki.engine.commands import Finish
from tasuki.engine.events import StopRequested
from tasuki.engine.execution import Execution
from tasuki.services.switchboard import Ending
from tasuki.values.instant import Instant


def told_ending(state: Execution, end: Finish, ended_at: Instant) -> Ending:
    """Answer what who waits for an execution is told of its end."""
    return Ending(end.status == "SUCCEEDED", _described(state, end, ended_at))


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


def ending_columns(end: Finish | None, now: Instant) -> tuple[str, str | None, str | None, str | None, Instant | None]:
    """Answer the columns of an execution that tell whether and how it ended."""
    if end is None:
        return "RUNNING", None, None, None, None
    return end.status, end.output.text if end.output is not None else None, end.error, end.cause, now


def too_large(quota: int) -> StopRequested:
    """Answer why an execution may not go on that has filled its byte quota."""
    cause = f"The documents in the execution's history exceed {quota} bytes (quotas.execution_bytes)."
    return StopRequested("States.Runtime", cause)
