"""What stands in a queue and what became of the rest: counts for GetQueueAttributes, and the check of promise P8."""

from tasuki.services.queues import queries
from tasuki.services.queues.model import Counters, Queue
from tasuki.store.store import Tx
from tasuki.values.instant import SECOND


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
    """Check promise P8 for a queue: every message that came is standing here, or counted as what became of it.

    For a `read` (a snapshot) where other units run meanwhile.
    """
    counted = counters(tx, queue)
    standing = tx.one(queries.COUNT_ROWS, (queue.shelf,))
    assert standing is not None, "a count answers"
    gone = counted.deleted + counted.expired + counted.purged + counted.moved_to_dlq + counted.redriven
    return bool(counted.sent + counted.moved_in == standing[0] + gone)
