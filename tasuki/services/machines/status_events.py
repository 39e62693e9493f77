"""Status changes of Standard executions, as EventBridge tells them (recorded: base/test_event_bridge_events_base).

Put on the default bus in the unit that changes the status; while no rule there asks for such events, nothing is made.
Express executions tell nothing (user guide, "EventBridge (Step Functions execution status changes)").
"""

from typing import Any

from tasuki.engine.commands import Finish
from tasuki.engine.execution import Execution
from tasuki.services.machines.model import redrive_facts
from tasuki.services.switchboard import Happening, Switchboard
from tasuki.store.store import Tx
from tasuki.values.documents import dumps
from tasuki.values.instant import Instant

SOURCE, DETAIL_TYPE = "aws.states", "Step Functions Execution Status Change"
MOST_BYTES = 248 * 1024
"""Input and output together, escaped: above it the input is left out, and then the output (cloudwatch.md section 6)."""


def tell_status(
    tx: Tx, switchboard: Switchboard, state: Execution, end: Finish | None = None, ended_at: Instant = 0
) -> None:
    """Tell that an execution began to run, or (with `end`) how and when it ended."""
    if state.express:
        return
    _, _, _, region, account, *_ = state.arn.split(":")
    if not switchboard.wants(tx, account, region, SOURCE):
        return
    at = ended_at or tx.now
    detail = dumps(status_detail(state, end, at))
    told = Happening(SOURCE, DETAIL_TYPE, detail, account, region, at, (state.arn,), trace=state.trace)
    switchboard.publish(tx, (told,))


def status_detail(state: Execution, end: Finish | None, now: Instant) -> dict[str, Any]:
    """Answer the event's `detail`."""
    status = end.status if end is not None else "RUNNING"
    output = end.output.text if end is not None and end.output is not None else None
    given: str | None = state.input.text
    room = MOST_BYTES - (len(dumps(output)) if output is not None else 0)
    with_input = len(dumps(given)) <= room
    with_output = output is not None and room >= 0
    facts = redrive_facts(status)
    return {
        "executionArn": state.arn,
        "stateMachineArn": state.machine_arn,
        "name": state.name,
        "status": status,
        "startDate": state.started_at,
        "stopDate": now if end is not None else None,
        "input": given if with_input else None,
        "output": output if with_output else None,
        "stateMachineVersionArn": state.version_arn,
        "stateMachineAliasArn": state.alias_arn,
        "redriveCount": state.redrive_count,
        "redriveDate": state.redriven_at,
        "redriveStatus": facts["redriveStatus"],
        "redriveStatusReason": facts.get("redriveStatusReason"),
        "inputDetails": {"included": with_input},
        "outputDetails": {"included": with_output} if output is not None else None,
        "error": end.error if end is not None else None,
        "cause": end.cause if end is not None else None,
    }
