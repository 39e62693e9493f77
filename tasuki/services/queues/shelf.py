"""Messages on the shelf: put, claim, move to a dead-letter queue, expire. Used by the API and the plugs.

Every function runs inside its caller's unit. Cost: a put is two statements and one for each long body, a claim three
and one for ten long bodies; neither depends on how many messages wait or are in flight (`messages_visible`).

Where units run beside each other, nobody waits for anybody here: a claim passes over what another unit has in hand, and
counters stand in stripes. Who does hold rows of several kinds took them in one order: a queue's owner (a pipe's flow, a move
task, the shelf under a sweep), then messages, then counters, the lower shelf's first.
"""

from collections.abc import Sequence
from typing import Any

from tasuki.services.queues import queries
from tasuki.services.queues.errors import OverLimit, QueueDoesNotExist
from tasuki.services.queues.model import (
    INLINE_BYTES,
    Claimed,
    Content,
    Outgoing,
    Queue,
    Receipt,
    name_in_arn,
    trace_of,
    write_handle,
)
from tasuki.store.store import STRIPES, Row, Tx
from tasuki.values.documents import pack, unpack
from tasuki.values.instant import SECOND, Instant

LONGEST_POLL_MS = 20 * SECOND
"""No long poll lasts longer: what becomes visible later than that need not be told to those who wait now."""
SEEN = "queues.seen"
"""Where a unit notes the queues that it looked at, by ARN; what changes one forgets them."""
SCAN_LIMIT = 1_000
"""Expired and dead messages that one receive clears away at most, before it answers with what it has."""
HELD_MS = 50
"""When to look again at what is due and in another unit's hands: it ends soon, and perhaps undone."""
BODIES_AT_ONCE = 10
LOOKS = tuple(queries.LOOK_MANY)
"""How many queues one statement looks at."""
SMALLEST_SHARE = 128
"""Into so many parts the cap on messages in flight is divided, at the least, where several stripes receive."""


def find_queue(tx: Tx, account: str, region: str, name: str) -> Queue:
    """Answer the queue of that name. Raises `QueueDoesNotExist`."""
    row = (
        tx.one(queries.QUEUE, (account, region, name)) if "\0" not in name else None
    )  # no text of PostgreSQL's has one
    if row is None:
        raise QueueDoesNotExist
    return Queue(*row)


def look_at(tx: Tx, account: str, region: str, name: str) -> tuple[Queue, Instant | None] | None:
    """Answer the queue of that name and when its next message becomes receivable (not after now: one is)."""
    row = tx.one(queries.LOOK, (account, region, name)) if "\0" not in name else None
    return (Queue(*row[1:]), row[0]) if row is not None else None


def look_at_all(tx: Tx, account: str, region: str, names: Sequence[str]) -> list[tuple[Queue, Instant | None]]:
    """Answer the same of up to a hundred names at once."""
    if len(names) == 1:
        found = look_at(tx, account, region, names[0])
        return [found] if found is not None else []
    given = [name for name in names if "\0" not in name]
    size = LOOKS[0] if len(given) <= LOOKS[0] else LOOKS[1]
    rows = tx.all(queries.LOOK_MANY[size], (account, region, *given, *[""] * (size - len(given))))
    return [(Queue(*row[1:]), row[0]) for row in rows]


def find_by_arn(tx: Tx, arn: str, account: str, region: str) -> Queue | None:
    """Answer the queue of that ARN, if it is one of ours and exists."""
    name = name_in_arn(arn, account, region)
    row = tx.one(queries.QUEUE, (account, region, name)) if name is not None and "\0" not in name else None
    return Queue(*row) if row is not None else None


def begin_change(tx: Tx) -> None:
    """See to it that nobody uses queues while this unit changes one, itself included."""
    tx.alone()
    tx.notes.pop(SEEN, None)


# -- in -----------------------------------------------------------------------------------------------------


def put(tx: Tx, queue: Queue, messages: Sequence[Outgoing]) -> None:
    """Put checked messages on the queue's shelf and wake as many who wait."""
    now, count, shelf, stripe = tx.now, len(messages), queue.shelf, tx.stripe
    tx.run(queries.COUNT_SENT, (shelf, stripe, count))
    rows: list[tuple[Any, ...]] = []
    soon, after = 0, count
    for content, size, delay_s, _ in messages:
        after -= 1
        body_id, packed = _lay_down(tx, pack(content))
        rows.append((now, after, now + delay_s * SECOND, size, body_id, packed, shelf, stripe))
        if delay_s * SECOND < LONGEST_POLL_MS:
            soon += 1
    if count == 1:
        tx.run(queries.INSERT_MESSAGE, rows[0])
    else:
        tx.many(queries.INSERT_MESSAGE, rows)
    ring(tx, queue, soon)
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


def ring(tx: Tx, queue: Queue, times: int) -> None:
    """Wake `times` long polls, and the pipes."""
    if times:
        tx.ring(queue.topic, times)
    tx.ring("queues")


def read_contents(tx: Tx, places: Sequence[tuple[int | None, bytes | None]]) -> list[Content]:
    """Answer messages' contents, each from its row or beside it, by (body_id, content)."""
    beside = [body_id for body_id, packed in places if packed is None]
    bodies: dict[int | None, bytes] = {}
    if len(beside) == 1:
        row = tx.one(queries.BODY, beside)
        assert row is not None, "a message that points at a body has one"
        bodies[beside[0]] = row[0]
    else:
        for at in range(0, len(beside), BODIES_AT_ONCE):
            some = beside[at : at + BODIES_AT_ONCE]
            bodies.update(tx.all(queries.BODIES, some + [-1] * (BODIES_AT_ONCE - len(some))))
    return [Content(*unpack(bodies[body_id] if packed is None else packed)) for body_id, packed in places]


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
    contents = read_contents(tx, [(row[7], row[8]) for row in chosen])
    for content, (sent_at, seq, received, _, first, size, source, body_id, _) in zip(contents, chosen, strict=True):
        handle = write_handle(Receipt(queue.id, shelf, sent_at, seq, nonce, body_id or 0))
        claimed.append(Claimed(content, handle, sent_at, received + 1, first or now, source, size))
    return claimed


def _choose(tx: Tx, queue: Queue, limit: int, max_bytes: int | None) -> list[Row]:
    """Choose the first receivable messages, clearing away what has expired or is dead."""
    oldest = tx.now - queue.retention_s * SECOND
    most = queue.max_receives
    dlq: Queue | None = None
    cleared = late = 0
    while True:
        rows = tx.all(queries.RECEIVABLE, (queue.shelf, tx.now, limit))
        fit: list[Row] = []
        expired: list[Row] = []
        dead: list[Row] = []
        for row in rows:
            if row[0] <= oldest:
                expired.append(row)
            elif most is not None and row[2] - row[3] >= most:
                dead.append(row)
            else:
                fit.append(row)
        if dead:
            dlq = dlq or find_by_arn(tx, queue.dlq_arn or "", queue.account, queue.region)
            if dlq is None:  # it is gone: they stay, and are received on
                fit, dead, most = [row for row in rows if row[0] > oldest], [], None
        if expired:
            remove(tx, queue.shelf, [(row[0], row[1], row[7]) for row in expired])
            late += len(expired)
        if dead and dlq is not None:
            bury(tx, queue, dlq, dead)
        cleared += len(expired) + len(dead)
        if (not expired and not dead) or len(rows) < limit or cleared >= SCAN_LIMIT:
            if late:  # after the last burial: the dead-letter queue's counters may come first
                tx.run(queries.COUNT_EXPIRED, (queue.shelf, tx.stripe, late))
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
    until then: constant work per receive, on average. Where many stripes receive at once, each gets a share of what is
    left, and at most one 128th of the cap: so they pass it by an eighth at most (SQS: "approximately 120,000").
    """
    if tx.run(queries.COUNT_RECEIVED, (count, queue.shelf, tx.stripe, count)):
        return
    row = tx.one(queries.IN_FLIGHT_NOW, (queue.shelf, tx.now))
    assert row is not None, "a count answers"
    in_flight, shares = row
    if in_flight > cap:
        raise OverLimit(f"Too many messages are in flight in queue {queue.name}: at most {cap} at a time.")
    left = cap - in_flight
    allowance = left if shares == 1 else min(left // shares, cap // SMALLEST_SHARE)
    tx.run(queries.COUNT_RECEIVED_TO, (queue.shelf, tx.stripe, count, count + allowance))


# -- elsewhere ----------------------------------------------------------------------------------------------


def bury(tx: Tx, queue: Queue, dlq: Queue, rows: Sequence[Row]) -> None:
    """Move messages to the dead-letter queue: same id and sent time (retention keeps running), count carried on."""
    first = _count_move(tx, queue, dlq, queries.COUNT_TO_DLQ, len(rows))
    tx.many(
        queries.MOVE_TO_DLQ,
        [
            (dlq.shelf, first + at * STRIPES, tx.now, queue.arn, queue.shelf, row[0], row[1])
            for at, row in enumerate(rows)
        ],
    )
    ring(tx, dlq, len(rows))
    _sweep_by(tx, dlq, min(row[0] for row in rows))


def _count_move(tx: Tx, source: Queue, destination: Queue, counter: str, count: int) -> int:
    """Count a move on both shelves; answer the arrival number of its first message (the others' follow in steps of STRIPES).

    The lower shelf is counted on first, so that who moves to and who moves fro don't wait for each other.
    """
    moved = (source.shelf, tx.stripe, count)
    if source.shelf < destination.shelf:
        tx.run(counter, moved)
    arrived = tx.one(queries.COUNT_MOVED_IN, (destination.shelf, tx.stripe, count))
    assert arrived is not None, "an upsert answers its row"
    if source.shelf >= destination.shelf:
        tx.run(counter, moved)
    last: int = arrived[0]
    return (last - count + 1) * STRIPES + tx.stripe


def redrive(tx: Tx, dlq: Queue, destination: Queue, rows: Sequence[Row]) -> None:
    """Move messages out of a dead-letter queue: new id, sent time and retention (SQS guide, "DLQ redrive")."""
    seq = _count_move(tx, dlq, destination, queries.COUNT_REDRIVEN, len(rows))
    contents = read_contents(tx, [(row[7], row[8]) for row in rows])
    moved: list[tuple[Any, ...]] = []
    for at, (row, content) in enumerate(zip(rows, contents, strict=True)):
        anew = content._replace(message_id=tx.chance.uuid(), trace=trace_of(content, row[0]))
        body_id, packed = _lay_down(tx, pack(anew))
        moved.append(
            (destination.shelf, tx.now, seq + at * STRIPES, tx.now, body_id, packed, dlq.shelf, row[0], row[1])
        )
    tx.many(queries.REDRIVE, moved)
    beside = [(row[7],) for row in rows if row[7] is not None]
    if beside:
        tx.many(queries.DELETE_BODY, beside)
    ring(tx, destination, len(rows))
    _sweep_by(tx, destination, tx.now)


def expire(tx: Tx, shelf: int, rows: Sequence[tuple[Instant, int, int | None]]) -> None:
    """Delete messages whose retention is over, by (sent_at, seq, body_id), and count them as expired."""
    remove(tx, shelf, rows)
    tx.run(queries.COUNT_EXPIRED, (shelf, tx.stripe, len(rows)))


def remove(tx: Tx, shelf: int, rows: Sequence[tuple[Instant, int, int | None]]) -> None:
    """Delete messages by (sent_at, seq, body_id), with what lies beside them."""
    tx.many(queries.EXPIRE_MESSAGE, [(shelf, sent_at, seq) for sent_at, seq, _ in rows])
    beside = [(body_id,) for _, _, body_id in rows if body_id is not None]
    if beside:
        tx.many(queries.DELETE_BODY, beside)
