"""Due instants for everybody: one row per (room, key), in house time.

Set and cleared by the room that owns the key; fired inside the unit that claims the row.
"""

from tasuki.store.store import Tx
from tasuki.values.instant import Instant

SET = "INSERT INTO timers (room, key, due) VALUES (?, ?, ?) ON CONFLICT (room, key) DO UPDATE SET due = excluded.due"
CLEAR = "DELETE FROM timers WHERE room = ? AND key = ?"
CLEAR_BELOW = "DELETE FROM timers WHERE room = ? AND key >= ? AND key < ?"
NEXT = "SELECT due FROM timers ORDER BY due LIMIT 1"
NEXT_AFTER = "SELECT due FROM timers WHERE due > ? ORDER BY due LIMIT 1"
DUE = "SELECT room, key, due FROM timers WHERE due <= ? ORDER BY due LIMIT ?"
CLAIM = "DELETE FROM timers WHERE room = ? AND key = ? AND due <= ?"
POSTPONE = "UPDATE timers SET due = ? WHERE room = ? AND key = ? AND due <= ?"


def set_timer(tx: Tx, room: str, key: str, due: Instant) -> None:
    """Have the room's `on_timer(tx, key)` called at `due`, instead of any earlier wish for the same key."""
    tx.run(SET, (room, key, due))
    tx.ring("timers")


def clear_timer(tx: Tx, room: str, key: str) -> None:
    """Forget the wish for this key, if there is one."""
    tx.run(CLEAR, (room, key))


def clear_timers(tx: Tx, room: str, owner: str) -> None:
    """Forget all wishes under keys `OWNER:...`."""
    tx.run(CLEAR_BELOW, (room, f"{owner}:", f"{owner};"))


def next_due(tx: Tx) -> Instant | None:
    """Answer the nearest due instant of the house, or None."""
    row = tx.one(NEXT)
    return row[0] if row else None


def next_after_now(tx: Tx) -> Instant | None:
    """Answer the nearest due instant that has not come yet, or None."""
    row = tx.one(NEXT_AFTER, (tx.now,))
    return row[0] if row else None


def due(tx: Tx, limit: int) -> list[tuple[str, str, Instant]]:
    """Answer (room, key, since when) of up to `limit` due timers, the longest due first. Reads only."""
    return [(row[0], row[1], row[2]) for row in tx.all(DUE, (tx.now, limit))]


def claim(tx: Tx, room: str, key: str) -> bool:
    """Take a timer if it is (still) due; its row is gone when this unit commits. Once, whoever asks."""
    return tx.run(CLAIM, (room, key, tx.now)) == 1


def postpone(tx: Tx, room: str, key: str, until: Instant) -> None:
    """Put off a due timer whose handler failed; one that was meanwhile set anew or taken stays as it is."""
    tx.run(POSTPONE, (until, room, key, tx.now))
