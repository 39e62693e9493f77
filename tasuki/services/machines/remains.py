"""What an execution that ended badly left open, in one row, and whether it can be redriven (engine/redrive.py).

Chosen over building it again from history: the frames are there when the execution ends, in a format that is read after
months anyway (engine/saved.py), and history does not say what a Map's items were or which branch an event is of. The row::

    [1, [[frame, [[index, output text], ...]], ...]]

is kept for the fortnight in which an execution can be redriven, and is gone when it is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tasuki.engine.execution import Remain
from tasuki.engine.history import MAX_EVENTS
from tasuki.engine.saved import pack_frame, unpack_frame
from tasuki.services.machines import redriving_queries as sql
from tasuki.store.store import Tx
from tasuki.values.documents import Doc, pack, unpack
from tasuki.values.errors import StoreNewer
from tasuki.values.instant import DAY, Instant

REDRIVABLE_MS = 14 * DAY
LONGEST_MS = 365 * DAY
"""How long ago an execution may have been started (Step Functions quotas, "maximum execution time")."""
_VERSION = 1


class Ended(NamedTuple):
    """What decides whether an execution can be redriven."""

    status: str
    started_at: Instant
    stopped_at: Instant | None
    last_event: int
    machine_status: str
    kept: int
    """1 when its remains are there."""


def why_not(ended: Ended, now: Instant) -> str | None:
    """Answer why an execution cannot be redriven; None when it can (DescribeExecution, `redriveStatusReason`)."""
    if ended.status in {"RUNNING", "SUCCEEDED"}:
        return f"Execution is {ended.status} and cannot be redriven"
    if ended.machine_status != "ACTIVE":
        return "State machine is in DELETING status"
    if ended.last_event > MAX_EVENTS - 2:
        return "Execution history event limit exceeded"
    if now - ended.started_at > LONGEST_MS:
        return "Execution has exceeded the max execution time"
    if ended.stopped_at is not None and now - ended.stopped_at > REDRIVABLE_MS:
        return "Execution redrivable period exceeded"
    return None if ended.kept else "Execution was started before the launch of RedriveExecution"


def redrive_status(ended: Ended, redrives: int, redriven_at: Instant | None, now: Instant) -> dict[str, Any]:
    """Answer what DescribeExecution says about redriving."""
    reason = why_not(ended, now)
    said: dict[str, Any] = {"redriveCount": redrives}
    if redriven_at is not None:
        said["redriveDate"] = redriven_at
    if reason is None:
        return {**said, "redriveStatus": "REDRIVABLE"}
    return {**said, "redriveStatus": "NOT_REDRIVABLE", "redriveStatusReason": reason}


def keep_remains(tx: Tx, execution: int, remains: Sequence[Remain]) -> None:
    """Keep what an execution left open that ends in this unit."""
    rows = [
        (pack_frame(remain.frame), [(index, output.text) for index, output in remain.results.items()])
        for remain in remains
    ]
    tx.run(sql.ADD_REMAINS, (execution, tx.now, pack((_VERSION, rows))))


def take_remains(tx: Tx, execution: int) -> tuple[Remain, ...]:
    """Take them out again; none if they were taken. Raises `StoreNewer` for a format this version doesn't know."""
    row = tx.one(sql.TAKE_REMAINS, (execution,))
    if row is None:
        return ()
    version, rows = unpack(row[0])
    if version != _VERSION:
        raise StoreNewer(f"the remains of an execution have format {version}; this Tasuki reads up to {_VERSION}")
    return tuple(
        Remain(unpack_frame(body), {index: Doc.of_text(text) for index, text in results}) for body, results in rows
    )
