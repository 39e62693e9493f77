"""A handover's row: written once, never changed, forgotten after its time."""

from collections.abc import Sequence
from typing import Any

from tasuki.services.handovers import queries
from tasuki.services.switchboard import Handover
from tasuki.store.store import Row, Tx
from tasuki.values.instant import to_iso

LONGEST_TRACE = 500
"""Characters of a correlation id that are kept (PutEvents' own limit): a client's header may have any length, and PostgreSQL's
index takes no text of some kilobytes."""


def record(tx: Tx, handover: Handover) -> None:
    """Write down one handover, in the unit in which it happened."""
    record_all(tx, (handover,))


def record_all(tx: Tx, handovers: Sequence[Handover]) -> None:
    """Write down many at once: about half the cost of one by one."""
    now = tx.now
    tx.many(
        queries.INSERT,
        [
            (now, h.source, h.source_id, h.via, h.target, h.target_id, h.trace[:LONGEST_TRACE], h.outcome)
            for h in handovers
        ],
    )


def handed_over(tx: Tx, target_id: str) -> bool:
    """Tell whether this target id was given anything, as far back as the record goes."""
    return tx.one(queries.HANDED_OVER, (target_id,)) is not None


def by_trace(tx: Tx, trace: str, after: int, limit: int) -> list[Row]:
    """Answer what belongs to one correlation id, oldest first."""
    return tx.all(queries.BY_TRACE, (trace[:LONGEST_TRACE], after, limit))


def by_message(tx: Tx, message_id: str, after: int, limit: int) -> list[Row]:
    """Answer all attempts on one message, oldest first."""
    return tx.all(queries.BY_MESSAGE, (message_id, after, limit))


def by_execution(tx: Tx, execution_arn: str, after: int, limit: int) -> list[Row]:
    """Answer the messages that one execution was given, oldest first."""
    return tx.all(queries.BY_EXECUTION, (execution_arn, after, limit))


def by_source(tx: Tx, source: str, after: int, limit: int) -> list[Row]:
    """Answer what became of all that a schedule or rule posted, oldest first."""
    return tx.all(queries.BY_SOURCE, (source, after, limit))


def everything(tx: Tx, after: int, limit: int) -> list[Row]:
    """Answer all handovers, oldest first."""
    return tx.all(queries.ALL, (after, limit))


def described(row: Row) -> dict[str, Any]:
    """Answer a row as ListHandovers shows it; the time in ISO 8601, since no AWS model says how to encode it."""
    _, at, source, source_id, via, target, target_id, trace, outcome = row
    shown = {
        "At": to_iso(at),
        "SourceArn": source,
        "MessageId": source_id,
        "PipeArn": via,
        "TargetArn": target,
        "ExecutionArn": target_id,
        "Trace": trace,
        "Outcome": outcome,
    }
    return {name: value for name, value in shown.items() if value}
