"""Message move tasks: from a dead-letter queue back to where its messages came from, or to a queue of choice.

A task is a row with its next due instant; each round of `queues.move` (polls.py) moves one slice in one unit: a hundred
messages at once, or with MaxNumberOfMessagesPerSecond that many each second.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, NamedTuple

from tasuki.services.queues import queries, shelf, tallies
from tasuki.services.queues.errors import InvalidParameterValue, OverLimit, QueueDoesNotExist, ResourceNotFound
from tasuki.services.queues.model import Queue
from tasuki.store.store import Row, Tx
from tasuki.values.documents import dumpb, loads
from tasuki.values.errors import MalformedDocument
from tasuki.values.instant import HOUR, SECOND, Instant
from tasuki.values.operations import Request

SLICE = 100
LONGEST_MS = 36 * HOUR
MOST_RUNNING = 100


class MoveTask(NamedTuple):
    """A task's row. `next_at` is None when it has ended."""

    id: str
    account: str
    region: str
    source_id: int
    source_arn: str
    destination_arn: str | None
    per_second: int | None
    status: str
    failure: str | None
    started_at: Instant
    moved: int
    to_move: int
    next_at: Instant | None


def start_message_move_task(tx: Tx, request: Request) -> dict[str, Any]:
    """StartMessageMoveTask: SourceArn, DestinationArn?, MaxNumberOfMessagesPerSecond? → TaskHandle."""
    source_arn: str = request.input.get("SourceArn") or ""
    destination_arn: str | None = request.input.get("DestinationArn")
    per_second: int | None = request.input.get("MaxNumberOfMessagesPerSecond")
    source = _source(tx, request, source_arn)
    if destination_arn and shelf.find_by_arn(tx, destination_arn, request.account, request.region) is None:
        raise ResourceNotFound("The resource that you specified for the DestinationArn parameter doesn't exist.")
    if per_second is not None and not 1 <= per_second <= 500:
        raise InvalidParameterValue.of(
            per_second, "MaxNumberOfMessagesPerSecond", "Must be between 1 and 500, if provided."
        )
    if tx.one(queries.IS_DLQ, (source_arn,)) is None:
        raise InvalidParameterValue("Source queue must be configured as a Dead Letter Queue.")
    if destination_arn == source_arn:
        raise InvalidParameterValue("Source queue arn and destination queue arn cannot be the same.")
    if tx.one(queries.RUNNING_TASK, (source_arn,)) is not None:
        raise InvalidParameterValue(
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
        )
    running = tx.one(queries.COUNT_RUNNING)
    if running is not None and running[0] >= MOST_RUNNING:
        raise OverLimit(f"At most {MOST_RUNNING} message move tasks can be active.")
    tx.alone()
    visible, _, _ = tallies.counts(tx, source)
    task = MoveTask(
        tx.chance.uuid(),
        request.account,
        request.region,
        source.id,
        source_arn,
        destination_arn,
        per_second,
        "RUNNING",
        None,
        tx.now,
        0,
        visible,
        tx.now,
    )
    tx.run(queries.INSERT_TASK, task)
    tx.ring("queues.move")
    return {"TaskHandle": _handle(task)}


def list_message_move_tasks(tx: Tx, request: Request) -> dict[str, Any]:
    """ListMessageMoveTasks: the newest first, one unless MaxResults says more (up to ten)."""
    source_arn: str = request.input.get("SourceArn") or ""
    _source(tx, request, source_arn)
    limit = request.input.get("MaxResults")
    if limit is not None and not 1 <= limit <= 10:
        raise InvalidParameterValue.of(limit, "MaxResults", "Must be between 1 and 10, if provided.")
    tasks = [MoveTask(*row) for row in tx.all(queries.TASKS, (source_arn, limit or 1))]
    return {"Results": [_show(task) for task in tasks]} if tasks else {}


def cancel_message_move_task(tx: Tx, request: Request) -> dict[str, Any]:
    """CancelMessageMoveTask: what was moved stays moved."""
    task_id, source_arn = _read_handle(request.input.get("TaskHandle") or "")
    _source(tx, request, source_arn)
    row = tx.one(queries.TASK, (task_id, source_arn)) if "\0" not in task_id else None
    if row is None:
        raise ResourceNotFound("Task does not exist.")
    task = MoveTask(*row)
    if task.next_at is None:
        raise InvalidParameterValue("Only active tasks can be cancelled.")
    tx.alone()
    tx.run(queries.END_TASK, (0, "CANCELLED", None, task.id))
    return {"ApproximateNumberOfMessagesMoved": task.moved}


def _source(tx: Tx, request: Request, arn: str) -> Queue:
    source = shelf.find_by_arn(tx, arn, request.account, request.region)
    if source is None:
        raise ResourceNotFound("The resource that you specified for the SourceArn parameter doesn't exist.")
    return source


def _handle(task: MoveTask) -> str:
    return base64.b64encode(dumpb({"taskId": task.id, "sourceArn": task.source_arn})).decode()


def _read_handle(handle: str) -> tuple[str, str]:
    try:
        said = loads(base64.b64decode(handle, validate=True))
        return str(said["taskId"]), str(said["sourceArn"])
    except (binascii.Error, ValueError, MalformedDocument, KeyError, TypeError):
        raise InvalidParameterValue("Value for parameter TaskHandle is invalid.") from None


def _show(task: MoveTask) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "Status": task.status,
        "SourceArn": task.source_arn,
        "ApproximateNumberOfMessagesMoved": task.moved,
        "ApproximateNumberOfMessagesToMove": task.to_move,
        "StartedTimestamp": task.started_at,
    }
    if task.next_at is not None:
        shown["TaskHandle"] = _handle(task)
    if task.destination_arn:
        shown["DestinationArn"] = task.destination_arn
    if task.per_second is not None:
        shown["MaxNumberOfMessagesPerSecond"] = task.per_second
    if task.failure is not None:
        shown["FailureReason"] = task.failure
    return shown


# -- rounds -------------------------------------------------------------------------------------------------


def move_slice(tx: Tx, task: MoveTask) -> None:
    """Move the next messages of a task, or end it: all moved, too long, or a queue it needs is gone."""
    source = shelf.find_by_arn(tx, task.source_arn, task.account, task.region)
    if source is None or source.id != task.source_id:
        _end(tx, task, "FAILED", QueueDoesNotExist.query_code)
        return
    if tx.now - task.started_at > LONGEST_MS:
        _end(tx, task, "FAILED", "TaskTimedOut")
        return
    limit = min(task.per_second or SLICE, SLICE, task.to_move - task.moved)
    rows = tx.all(queries.RECEIVABLE, (source.shelf, tx.now, max(limit, 0)))
    oldest = tx.now - source.retention_s * SECOND
    moved = 0
    for arn, group in _by_destination(task, [row for row in rows if row[0] > oldest]):
        destination = shelf.find_by_arn(tx, arn, task.account, task.region) if arn else None
        if destination is None:
            reason = QueueDoesNotExist.query_code if arn else "CouldNotDetermineMessageSource"
            _end(tx, task, "FAILED", reason, moved)
            return
        shelf.redrive(tx, source, destination, group)
        moved += len(group)
    if not rows and limit > 0:
        due = shelf.nearest(tx, source)
        if due is not None and due <= tx.now:  # consumers have in hand what is left
            tx.run(queries.STEP_TASK, (0, tx.now + shelf.HELD_MS, task.id))
            return
    if not rows or task.moved + moved >= task.to_move:
        _end(tx, task, "COMPLETED", None, moved)
        return
    pause_ms = SECOND * len(rows) // task.per_second if task.per_second else 0
    tx.run(queries.STEP_TASK, (moved, tx.now + pause_ms, task.id))


def _by_destination(task: MoveTask, rows: Sequence[Row]) -> list[tuple[str | None, list[Row]]]:
    """Group messages by where they go: the task's destination, else each message's own source."""
    if task.destination_arn:
        return [(task.destination_arn, list(rows))] if rows else []
    groups: dict[str | None, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[6], []).append(row)
    return list(groups.items())


def _end(tx: Tx, task: MoveTask, status: str, failure: str | None, moved: int = 0) -> None:
    tx.run(queries.END_TASK, (moved, status, failure, task.id))
