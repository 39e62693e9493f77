"""What executions log: written in the unit that makes the history, read by whoever shows log groups.

A chunk is a row: all that one unit of one execution logs, as a MessagePack list that begins with a format version::

    [1, execution ARN, redrive count, [[id, type, previous, at, details as JSON text], ...]]

A record has the shape that AWS writes into log groups (recorded: logs/*): its numbers are texts. Kept for
`quotas.log_days` days (14), then forgotten in slices (retention.py).
"""

from collections.abc import Sequence
from typing import Any

from tasuki.engine.history import HistoryEvent
from tasuki.services.machines.events import details_member, shown_event
from tasuki.services.machines.logging_levels import Logging, logging_of
from tasuki.services.machines.logging_queries import ADD_LOGGED, LOGGED
from tasuki.store.store import Tx
from tasuki.values.documents import dumps, loads, pack, unpack
from tasuki.values.errors import StoreNewer

_VERSION = 1


def log_history(tx: Tx, configuration: str, arn: str, history: Sequence[HistoryEvent], redrive_count: int = 0) -> None:
    """Log what the revision's configuration (its stored text) asks for, of the events that one unit made."""
    logging = logging_of(configuration)
    if logging is None:
        return
    rows = [_row(event, logging) for event in history if logging.asks_for(event.type)]
    if rows:
        tx.run(ADD_LOGGED, (logging.group, tx.now, pack((_VERSION, arn, redrive_count, rows))))


def _row(event: HistoryEvent, logging: Logging) -> tuple[int, str, int, int, str]:
    shown = shown_event(event, with_data=logging.with_data)
    details = shown.get(details_member(event.type), {})
    return event.id, event.type, event.previous, event.at, dumps(details)


def logged(tx: Tx, group: str, after: int, chunks: int) -> tuple[list[dict[str, Any]], int]:
    """Answer the records of a log group's next chunks after place `after` (0: from the first), and the place reached.

    `group` is the log group's ARN, with or without `:*`.
    """
    records: list[dict[str, Any]] = []
    for place, body in tx.all(LOGGED, (group.removesuffix(":*"), after, chunks)):
        records += _records(body)
        after = place
    return records, after


def _records(body: bytes) -> list[dict[str, Any]]:
    version, arn, redrive_count, rows = unpack(body)
    if version != _VERSION:
        raise StoreNewer(f"a chunk of logged events has format {version}; this Tasuki reads up to {_VERSION}")
    return [
        {
            "id": str(number),
            "type": kind,
            "details": loads(details),
            "previous_event_id": str(previous),
            "event_timestamp": str(at),
            "execution_arn": arn,
            "redrive_count": str(redrive_count),
        }
        for number, kind, previous, at, details in rows
    ]
