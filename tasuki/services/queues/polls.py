"""What the room does when time passes: sweep away what has expired or was purged, and move what is to be moved.

Both are bounded slices. Receives and counts disregard expired messages anyway, so a late sweep is never seen.
"""

from tasuki.services.queues import queries, shelf
from tasuki.services.queues.model import Queue
from tasuki.services.queues.moves import MoveTask, move_slice
from tasuki.services.room import Poll
from tasuki.store.store import Tx
from tasuki.values.instant import DAY, SECOND, Instant

SLICE = 500
"""Messages that one round removes at most: some milliseconds of the writer."""
_ALL = 200_000 * DAY
"""Later than any message."""


def polls() -> tuple[Poll, ...]:
    """Answer the room's polls."""
    return (
        Poll("queues.sweep", ("queues.sweep",), next_sweep, sweep),
        Poll("queues.move", ("queues.move",), next_move, move),
    )


def next_sweep(tx: Tx) -> Instant | None:
    """Answer when the next message may expire, or now when there is an abandoned shelf."""
    row = tx.one(queries.NEXT_SWEEP)
    return row[0] if row is not None else None


def sweep(tx: Tx) -> Instant | None:
    """Clear one slice of one shelf that no other node clears."""
    due = tx.one(queries.DUE_SWEEP, (tx.now,))
    if due is None:
        return _not_at_once(tx, next_sweep(tx))
    place, queue_id = due
    if queue_id is None:
        _sweep_abandoned(tx, place)
    else:
        _sweep_expired(tx, place, queue_id)
    return next_sweep(tx)


def _not_at_once(tx: Tx, due: Instant | None) -> Instant | None:
    """Put off what is due and in another node's hands."""
    return tx.now + shelf.HELD_MS if due is not None and due <= tx.now else due


def _sweep_abandoned(tx: Tx, place: int) -> None:
    rows = tx.all(queries.OLDEST, (place, _ALL, SLICE))
    if rows:
        shelf.remove(tx, place, [(row[0], row[1], row[2]) for row in rows])
    if len(rows) == SLICE:
        return
    if tx.one(queries.OLDEST_SENT, (place,)) is None:
        tx.run(queries.DELETE_SHELF, (place,))
    else:  # a unit that began before has some in hand
        tx.run(queries.SET_SWEEP, (tx.now + shelf.HELD_MS, place))


def _sweep_expired(tx: Tx, place: int, queue_id: int) -> None:
    found = tx.one(queries.QUEUE_BY_ID, (queue_id,))
    assert found is not None, "a shelf with an owner has one"
    retention_ms = Queue(*found).retention_s * SECOND
    rows = tx.all(queries.OLDEST, (place, tx.now - retention_ms, SLICE))
    if rows:
        shelf.expire(tx, place, [(row[0], row[1], row[2]) for row in rows])
    left = tx.one(queries.OLDEST_SENT, (place,))
    if left is None:
        # Sends that saw this sweep coming rely on it; alone, there are none that it does not see.
        tx.alone()
    following = left[0] + retention_ms if left is not None else None
    if len(rows) < SLICE:
        following = _not_at_once(tx, following)
    tx.run(queries.SET_SWEEP, (following, place))


def next_move(tx: Tx) -> Instant | None:
    """Answer when the next move task is due."""
    row = tx.one(queries.NEXT_TASK)
    return row[0] if row is not None else None


def move(tx: Tx) -> Instant | None:
    """Do one slice of the move task that is due and that no other node does."""
    row = tx.one(queries.DUE_TASK, (tx.now,))
    if row is None:
        return _not_at_once(tx, next_move(tx))
    move_slice(tx, MoveTask(*row))
    return next_move(tx)
