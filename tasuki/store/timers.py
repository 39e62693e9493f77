"""Due instants for everybody: one row per (room, key), in house time.

Set and cleared by the room that owns the key; fired by `fire`, inside the unit that claims the row.
"""

from tasuki.store.store import Tx
from tasuki.values.instant import Instant

SET = "INSERT INTO timers (room, key, due) VALUES (?, ?, ?) ON CONFLICT (room, key) DO UPDATE SET due = excluded.due"
CLEAR = "DELETE FROM timers WHERE room = ? AND key = ?"
NEXT = "SELECT room, key, due FROM timers ORDER BY due LIMIT 1"


def set_timer(tx: Tx, room: str, key: str, due: Instant) -> None:
    """Have the room's `on_timer(tx, key)` called at `due`, instead of any earlier wish for the same key."""
    tx.run(SET, (room, key, due))
    tx.ring("timers")


def clear_timer(tx: Tx, room: str, key: str) -> None:
    """Forget the wish for this key, if there is one."""
    tx.run(CLEAR, (room, key))


def next_due(tx: Tx) -> Instant | None:
    """Answer the nearest due instant of the house, or None."""
    row = tx.one(NEXT)
    return row[2] if row else None


def claim(tx: Tx) -> tuple[str, str] | None:
    """Take the nearest timer if it is due and answer its (room, key); the row is gone when this unit commits."""
    row = tx.one(NEXT)
    if row is None or row[2] > tx.now:
        return None
    tx.run(CLEAR, (row[0], row[1]))
    return row[0], row[1]
