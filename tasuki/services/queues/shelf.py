"""Messages on the shelf: put, claim, delete, hold longer, move to a dead-letter queue. Used by the API and the plugs.

Every function runs inside its caller's unit. Cost: a put is three statements, a claim of k three and k short updates;
neither depends on how many messages wait or are in flight (`messages_visible`).
"""

from collections.abc import Sequence
from typing import Any

from tasuki.services.queues import queries
from tasuki.services.queues.errors import (
    InvalidParameterValue,
    MessageNotInflight,
    OverLimit,
    QueueDoesNotExist,
)
from tasuki.services.queues.model import (
    INLINE_BYTES,
    VISIBILITY_CAP_MS,
    Claimed,
    Content,
    Counters,
    Outgoing,
    Queue,
    Receipt,
    name_in_arn,
    read_handle,
    trace_of,
    write_handle,
)
from tasuki.store.store import Row, Tx
from tasuki.values.documents import pack, unpack
from tasuki.values.errors import DomainError
from tasuki.values.instant import SECOND, Instant

LONGEST_POLL_MS = 20 * SECOND
"""No long poll lasts longer: what becomes visible later than that need not be told to those who wait now."""
SCAN_LIMIT = 1_000
"""Expired and dead messages that one receive clears away at most, before it answers with what it has."""


def find_queue(tx: Tx, account: str, region: str, name: str) -> Queue:
    """Answer the queue of that name. Raises `QueueDoesNotExist`."""
    row = tx.one(queries.QUEUE, (account, region, name))
    if row is None:
        raise QueueDoesNotExist
    return Queue(*row)


def find_by_arn(tx: Tx, arn: str, account: str, region: str) -> Queue | None:
    """Answer the queue of that ARN, if it is one of ours and exists."""
    name = name_in_arn(arn, account, region)
    row = tx.one(queries.QUEUE, (account, region, name)) if name is not None else None
    return Queue(*row) if row is not None else None


# -- in -----------------------------------------------------------------------------------------------------


def put(tx: Tx, queue: Queue, messages: Sequence[Outgoing]) -> None:
    """Put checked messages on the queue's shelf and wake as many who wait."""
    now, count, shelf = tx.now, len(messages), queue.shelf
    tx.run(queries.COUNT_SENT, (count, shelf))
    rows: list[tuple[Any, ...]] = []
    soon, after = 0, count
    for content, size, delay_s, _ in messages:
        after -= 1
        body_id, packed = _lay_down(tx, pack(content))
        rows.append((now, after, now + delay_s * SECOND, size, body_id, packed, shelf))
        if delay_s * SECOND < LONGEST_POLL_MS:
            soon += 1
    if count == 1:
        tx.run(queries.INSERT_MESSAGE, rows[0])
    else:
        tx.many(queries.INSERT_MESSAGE, rows)
    _ring(tx, queue, soon)
    _sweep_by(tx, queue, now)


def _sweep_by(tx: Tx, queue: Queue, sent_at: Instant) -> None:
    """See to it that the shelf is swept when what was sent at `sent_at` expires."""
    expiry = sent_at + queue.retention_s * SECOND
    if queue.sweep_at is None or expiry < queue.sweep_at:
        tx.run(queries.SWEEP_SOONER, (expiry, queue.shelf, expiry))
        tx.ring("queues.sweep")


def _lay_down(tx: Tx, packed: bytes) -> tuple[int | None, bytes | None]:
    """Keep a content: in the message's row if it is short, else beside it. Answers (body_id, content)."""
    if len(packed) <= INLINE_BYTES:
        return None, packed
    row = tx.one(queries.INSERT_BODY, (packed,))
    assert row is not None, "an insert answers its id"
    return row[0], None


def _ring(tx: Tx, queue: Queue, times: int) -> None:
    """Wake `times` long polls, and the pipes."""
    if times:
        tx.ring(queue.topic, times)
    tx.ring("queues")


def read_content(tx: Tx, body_id: int | None, packed: bytes | None) -> Content:
    """Answer a message's content, from its row or beside it."""
    if packed is None:
        row = tx.one(queries.BODY, (body_id,))
        assert row is not None, "a message that points at a body has one"
        packed = row[0]
    return Content(*unpack(packed))


# -- out ----------------------------------------------------------------------------------------------------


def nearest(tx: Tx, queue: Queue) -> Instant | None:
    """Answer when the next message becomes receivable (not after now: one is), or None when there is none."""
    row = tx.one(queries.NEAREST, (queue.shelf,))
    return row[0] if row is not None else None


def claim(
    tx: Tx, queue: Queue, limit: int, visibility_s: int, *, cap: int, max_bytes: int | None = None
) -> list[Claimed]:
    """Receive up to `limit` messages (and `max_bytes`, but at least one): hide them, count them, write receipts.

    On the way, expired messages are cleared and those received often enough go to the dead-letter queue instead.
    Raises `OverLimit` when more than `cap` would be in flight.
    """
    chosen = _choose(tx, queue, limit, max_bytes)
    if not chosen:
        return []
    now, nonce = tx.now, tx.chance.bits(62)
    until = now + visibility_s * SECOND
    shelf = queue.shelf
    if len(chosen) == 1:
        row = chosen[0]
        tx.run(queries.CLAIM, (until, row[2] + 1, row[4] or now, now, nonce, shelf, row[0], row[1]))
    else:
        tx.many(
            queries.CLAIM,
            [(until, row[2] + 1, row[4] or now, now, nonce, shelf, row[0], row[1]) for row in chosen],
        )
    _count_received(tx, queue, len(chosen), cap)
    if visibility_s * SECOND < LONGEST_POLL_MS:
        tx.ring(queue.topic)  # whoever waits on has an earlier instant to look again at
    claimed = []
    for sent_at, seq, received, _, first, size, source, body_id, packed in chosen:
        content = read_content(tx, body_id, packed)
        handle = write_handle(Receipt(queue.id, shelf, sent_at, seq, nonce, body_id or 0))
        claimed.append(Claimed(content, handle, sent_at, received + 1, first or now, source, size))
    return claimed


def _choose(tx: Tx, queue: Queue, limit: int, max_bytes: int | None) -> list[Row]:
    """Choose the first receivable messages, clearing away what has expired or is dead."""
    oldest = tx.now - queue.retention_s * SECOND
    most = queue.max_receives
    dlq: Queue | None = None
    if most is not None:
        dlq = find_by_arn(tx, queue.dlq_arn or "", queue.account, queue.region)
    cleared = 0
    while True:
        rows = tx.all(queries.RECEIVABLE, (queue.shelf, tx.now, limit))
        fit: list[Row] = []
        expired: list[Row] = []
        dead: list[Row] = []
        for row in rows:
            if row[0] <= oldest:
                expired.append(row)
            elif dlq is not None and most is not None and row[2] - row[3] >= most:
                dead.append(row)
            else:
                fit.append(row)
        if expired:
            expire(tx, queue.shelf, [(row[0], row[1], row[7]) for row in expired])
        if dead and dlq is not None:
            bury(tx, queue, dlq, dead)
        cleared += len(expired) + len(dead)
        if (not expired and not dead) or len(rows) < limit or cleared >= SCAN_LIMIT:
            return fit if max_bytes is None else _within(fit, max_bytes)


def _within(rows: list[Row], max_bytes: int) -> list[Row]:
    """Answer the first rows that together stay within `max_bytes`; the first one always."""
    total = 0
    for at, row in enumerate(rows):
        total += row[5]
        if at and total > max_bytes:
            return rows[:at]
    return rows


def _count_received(tx: Tx, queue: Queue, count: int, cap: int) -> None:
    """Count a receive; look at how many are in flight only when they could be too many.

    After a count of n in flight, the cap cannot be reached before cap - n further receives, so the next count waits
    until then: constant work per receive, on average.
    """
    if tx.run(queries.COUNT_RECEIVED, (count, queue.shelf, count)):
        return
    _, in_flight = invisible(tx, queue)
    if in_flight > cap:
        raise OverLimit(f"Too many messages are in flight in queue {queue.name}: at most {cap} at a time.")
    tx.run(queries.COUNT_RECEIVED_TO, (count, count + cap - in_flight, queue.shelf))


# -- elsewhere ----------------------------------------------------------------------------------------------


def bury(tx: Tx, queue: Queue, dlq: Queue, rows: Sequence[Row]) -> None:
    """Move messages to the dead-letter queue: same id and sent time (retention keeps running), count carried on."""
    count = len(rows)
    arrived = tx.one(queries.COUNT_MOVED_IN, (count, dlq.shelf))
    assert arrived is not None, "a queue has a shelf"
    first = arrived[0] - count + 1
    tx.many(
        queries.MOVE_TO_DLQ,
        [(dlq.shelf, first + at, tx.now, queue.arn, queue.shelf, row[0], row[1]) for at, row in enumerate(rows)],
    )
    tx.run(queries.COUNT_TO_DLQ, (count, queue.shelf))
    _ring(tx, dlq, count)
    _sweep_by(tx, dlq, min(row[0] for row in rows))


def redrive(tx: Tx, dlq: Queue, destination: Queue, rows: Sequence[Row]) -> None:
    """Move messages out of a dead-letter queue: new id, sent time and retention (SQS guide, "DLQ redrive")."""
    count = len(rows)
    arrived = tx.one(queries.COUNT_MOVED_IN, (count, destination.shelf))
    assert arrived is not None, "a queue has a shelf"
    seq = arrived[0] - count
    for row in rows:
        seq += 1
        content = read_content(tx, row[7], row[8])
        content = content._replace(message_id=tx.chance.uuid(), trace=trace_of(content, row[0]))
        if row[7] is not None:
            tx.run(queries.DELETE_BODY, (row[7],))
        body_id, packed = _lay_down(tx, pack(content))
        at = (destination.shelf, tx.now, seq, tx.now, body_id, packed)
        tx.run(queries.REDRIVE, (*at, dlq.shelf, row[0], row[1]))
    tx.run(queries.COUNT_REDRIVEN, (count, dlq.shelf))
    _ring(tx, destination, count)
    _sweep_by(tx, destination, tx.now)


def expire(tx: Tx, shelf: int, rows: Sequence[tuple[Instant, int, int | None]]) -> None:
    """Delete messages whose retention is over, by (sent_at, seq, body_id), and count them as expired."""
    remove(tx, shelf, rows)
    tx.run(queries.COUNT_EXPIRED, (len(rows), shelf))


def remove(tx: Tx, shelf: int, rows: Sequence[tuple[Instant, int, int | None]]) -> None:
    """Delete messages by (sent_at, seq, body_id), with what lies beside them."""
    tx.many(queries.EXPIRE_MESSAGE, [(shelf, sent_at, seq) for sent_at, seq, _ in rows])
    beside = [(body_id,) for _, _, body_id in rows if body_id is not None]
    if beside:
        tx.many(queries.DELETE_BODY, beside)


# -- settled ------------------------------------------------------------------------------------------------


def delete(tx: Tx, queue: Queue, handles: Sequence[str]) -> list[DomainError | None]:
    """Delete what these receipts hold; answer for each None, or why its handle is none.

    An older receipt than the current one, and one whose message is gone, succeed and delete nothing (SQS guide;
    recorded: an expired receipt that nobody followed still deletes).
    """
    answers: list[DomainError | None] = []
    deleted = 0
    for handle in handles:
        try:
            deleted += _delete_one(tx, queue, handle)
        except DomainError as bad:
            answers.append(bad)
        else:
            answers.append(None)
    if deleted:
        tx.run(queries.COUNT_DELETED, (deleted, queue.shelf))
    return answers


def _delete_one(tx: Tx, queue: Queue, handle: str) -> bool:
    receipt = read_handle(handle, queue)
    if receipt.shelf != queue.shelf:  # purged since
        return False
    if not tx.run(queries.DELETE_MESSAGE, (queue.shelf, receipt.sent_at, receipt.seq, receipt.nonce)):
        return False
    if receipt.body_id:
        tx.run(queries.DELETE_BODY, (receipt.body_id,))
    return True


def change_visibility(tx: Tx, queue: Queue, handle: str, timeout_s: int) -> None:
    """Hide a message for `timeout_s` from now, up to 12 hours after its receive; 0 gives it back.

    A receipt whose time is up still works while nobody else received the message (recorded). An older receipt moves
    the message that is in flight under a newer one (AWS passes the recorded test that does so); when none is, it
    raises `MessageNotInflight`. What is deleted, purged or moved raises `InvalidParameterValue` (recorded).
    """
    receipt = read_handle(handle, queue)
    key = (queue.shelf, receipt.sent_at, receipt.seq)
    row = tx.one(queries.IN_FLIGHT, key) if receipt.shelf == queue.shelf else None
    if row is None or row[0] is None or receipt.sent_at <= tx.now - queue.retention_s * SECOND:
        raise InvalidParameterValue.of(
            handle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change."
        )
    nonce, received_at, visible_at = row
    if nonce != receipt.nonce and visible_at <= tx.now:
        raise MessageNotInflight
    held_s = (tx.now - received_at) // SECOND
    if held_s + timeout_s > VISIBILITY_CAP_MS // SECOND:
        raise InvalidParameterValue.of(
            timeout_s,
            "VisibilityTimeout",
            "Total VisibilityTimeout for the message is beyond the limit [43200 seconds].",
        )
    tx.run(queries.SET_VISIBLE, (tx.now + timeout_s * SECOND, *key))
    if timeout_s * SECOND < LONGEST_POLL_MS:
        _ring(tx, queue, 1)


def release(tx: Tx, queue: Queue, handles: Sequence[str], delay_ms: int) -> None:
    """Give messages back that are still held by these receipts: receivable again after `delay_ms`."""
    count = 0
    for handle in handles:
        receipt = read_handle(handle, queue)
        key = (receipt.shelf, receipt.sent_at, receipt.seq, receipt.nonce)
        count += tx.run(queries.RELEASE, (tx.now + delay_ms, *key))
    if count:
        _ring(tx, queue, count if delay_ms < LONGEST_POLL_MS else 0)


# -- counts -------------------------------------------------------------------------------------------------


def invisible(tx: Tx, queue: Queue) -> tuple[int, int]:
    """Answer (messages not receivable now, those of them in flight). Reads the index over just these."""
    row = tx.one(queries.INVISIBLE, (queue.shelf, tx.now))
    assert row is not None, "a count answers"
    return row[0], row[1]


def counts(tx: Tx, queue: Queue) -> tuple[int, int, int]:
    """Answer (visible, in flight, delayed), expired ones not counted."""
    hidden, in_flight = invisible(tx, queue)
    standing = tx.one(queries.STANDING, (queue.shelf,))
    assert standing is not None, "a queue has a shelf"
    oldest = tx.now - queue.retention_s * SECOND
    late = tx.one(queries.EXPIRED_INVISIBLE, (queue.shelf, oldest, tx.now)) or (0, 0)
    over = tx.one(queries.EXPIRED_VISIBLE, (queue.shelf, oldest, tx.now)) or (0,)
    return standing[0] - hidden - over[0], in_flight - late[1], hidden - in_flight - (late[0] - late[1])


def counters(tx: Tx, queue: Queue) -> Counters:
    """Answer what became of the queue's messages since it was created."""
    row = tx.one(queries.COUNTERS, (queue.shelf,))
    assert row is not None, "a queue has a shelf"
    return Counters(*row)


def conservation(tx: Tx, queue: Queue) -> bool:
    """Check promise P8 for a queue: every message that came is standing here, or counted as what became of it."""
    counted = counters(tx, queue)
    standing = tx.one(queries.COUNT_ROWS, (queue.shelf,))
    assert standing is not None, "a count answers"
    gone = counted.deleted + counted.expired + counted.purged + counted.moved_to_dlq + counted.redriven
    return bool(counted.sent + counted.moved_in == standing[0] + gone)
