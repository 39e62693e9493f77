"""What a consumer does with the messages that it received: delete them, hold them longer, give them back.

Used by the API and the plugs, inside their units. Several messages are locked in the order of their keys.
"""

from collections.abc import Sequence

from tasuki.services.queues import queries
from tasuki.services.queues.errors import InvalidParameterValue, MessageNotInflight
from tasuki.services.queues.model import MAX_BATCH, VISIBILITY_CAP_MS, Queue, Receipt, read_handle
from tasuki.services.queues.shelf import LONGEST_POLL_MS, ring
from tasuki.store.store import Tx
from tasuki.values.errors import DomainError
from tasuki.values.instant import SECOND, Instant


def delete(tx: Tx, queue: Queue, handles: Sequence[str]) -> list[DomainError | None]:
    """Delete what these receipts hold; answer for each None, or why its handle is none.

    An older receipt than the current one, and one whose message is gone, succeed and delete nothing (SQS guide;
    recorded: an expired receipt that nobody followed still deletes).
    """
    answers: list[DomainError | None] = []
    held: dict[tuple[Instant, int, int], int] = {}
    for handle in handles:
        try:
            receipt = read_handle(handle, queue)
        except DomainError as bad:
            answers.append(bad)
            continue
        answers.append(None)
        if receipt.shelf == queue.shelf:  # else purged since
            held[receipt.sent_at, receipt.seq, receipt.nonce] = receipt.body_id
    deleted, bodies = _delete_held(tx, queue.shelf, held)
    if bodies:
        tx.many(queries.DELETE_BODY, [(body_id,) for body_id in bodies])
    if deleted:
        tx.run(queries.COUNT_DELETED, (queue.shelf, tx.stripe, deleted))
    return answers


def _delete_held(tx: Tx, shelf: int, held: dict[tuple[Instant, int, int], int]) -> tuple[int, list[int]]:
    """Delete messages by (sent_at, seq, nonce); answer how many were there, and the ids of the bodies beside them."""
    if len(held) == 1:
        ((key, body_id),) = held.items()
        count = tx.run(queries.DELETE_MESSAGE, (shelf, *key))
        return count, [body_id] if count and body_id else []
    bodies = {key[:2]: body_id for key, body_id in held.items()}
    keys = sorted(held)
    size = MAX_BATCH if len(keys) <= MAX_BATCH else 10 * MAX_BATCH
    gone: list[int] = []
    for at in range(0, len(keys), size):
        some = keys[at : at + size]
        places = [part for key in some for part in key]
        given = (shelf, some[0][0], some[-1][0], *places, *[-1] * (3 * (size - len(some))))
        tx.lock(queries.LOCK_MANY[size], given)
        gone += [bodies[row[0], row[1]] for row in tx.all(queries.DELETE_MANY[size], given)]
    return len(gone), [body_id for body_id in gone if body_id]


def change_visibility(tx: Tx, queue: Queue, wishes: Sequence[tuple[str, int]]) -> list[DomainError | None]:
    """Hide messages for so many seconds from now, up to 12 hours after their receive; 0 gives them back.

    `wishes` are up to ten of (handle, seconds); the answers are None, or why not. A receipt whose time is up still works
    while nobody else received the message (recorded). An older receipt moves the message that is in flight under a newer
    one (AWS passes the recorded test that does so); when none is, it gets `MessageNotInflight`. What is deleted, purged
    or moved gets `InvalidParameterValue` (recorded).
    """
    receipts: list[Receipt | None] = []
    answers: list[DomainError | None] = []
    for handle, _ in wishes:
        try:
            receipts.append(read_handle(handle, queue))
            answers.append(None)
        except DomainError as bad:
            receipts.append(None)
            answers.append(bad)
    keys = {(one.sent_at, one.seq) for one in receipts if one is not None and one.shelf == queue.shelf}
    rows = _in_flight(tx, queue.shelf, sorted(keys))
    changes: list[tuple[Instant, int, Instant, int]] = []
    for at, (wish, receipt) in enumerate(zip(wishes, receipts, strict=True)):
        if receipt is None:
            continue
        key = (receipt.sent_at, receipt.seq)
        row = rows.get(key) if receipt.shelf == queue.shelf else None
        refused = _refusal(tx, queue, wish, receipt, row)
        answers[at] = refused
        if refused is None and row is not None:
            until = tx.now + wish[1] * SECOND
            rows[key] = (row[0], row[1], until)
            changes.append((until, queue.shelf, *key))
    if len(changes) == 1:
        tx.run(queries.SET_VISIBLE, changes[0])
    elif changes:
        tx.many(queries.SET_VISIBLE, changes)
    soon = sum(change[0] - tx.now < LONGEST_POLL_MS for change in changes)
    if soon:
        ring(tx, queue, soon)
    return answers


def _in_flight(
    tx: Tx, shelf: int, keys: Sequence[tuple[Instant, int]]
) -> dict[tuple[Instant, int], tuple[int | None, Instant, Instant]]:
    """Answer (receipt, received at, visible at) of messages by key, and hold them."""
    if not keys:
        return {}
    if len(keys) == 1:
        row = tx.one(queries.IN_FLIGHT, (shelf, *keys[0]))
        return {keys[0]: (row[0], row[1], row[2])} if row is not None else {}
    places = [part for key in keys for part in key]
    bounds = (keys[0][0], keys[-1][0])
    rows = tx.all(queries.IN_FLIGHT_TEN, (shelf, *bounds, *places, *[-1] * (2 * (MAX_BATCH - len(keys)))))
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in rows}


def _refusal(
    tx: Tx, queue: Queue, wish: tuple[str, int], receipt: Receipt, row: tuple[int | None, Instant, Instant] | None
) -> DomainError | None:
    handle, timeout_s = wish
    if row is None or row[0] is None or receipt.sent_at <= tx.now - queue.retention_s * SECOND:
        return InvalidParameterValue.of(
            handle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change."
        )
    nonce, received_at, visible_at = row
    if nonce != receipt.nonce and visible_at <= tx.now:
        return MessageNotInflight()
    held_s = (tx.now - received_at) // SECOND
    if held_s + timeout_s > VISIBILITY_CAP_MS // SECOND:
        return InvalidParameterValue.of(
            timeout_s,
            "VisibilityTimeout",
            "Total VisibilityTimeout for the message is beyond the limit [43200 seconds].",
        )
    return None


def release(tx: Tx, queue: Queue, handles: Sequence[str], delay_ms: int) -> None:
    """Give messages back that are still held by these receipts: receivable again after `delay_ms`."""
    count = 0
    for receipt in sorted(read_handle(handle, queue) for handle in handles):
        key = (receipt.shelf, receipt.sent_at, receipt.seq, receipt.nonce)
        count += tx.run(queries.RELEASE, (tx.now + delay_ms, *key))
    if count:
        ring(tx, queue, count if delay_ms < LONGEST_POLL_MS else 0)
