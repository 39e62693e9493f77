"""How schedules go: the row, what it had planned, its timer, and its place in the count."""

from tasuki.services.schedules import queries
from tasuki.services.schedules.model import NAME
from tasuki.store.store import Tx
from tasuki.store.timers import clear_timer

SLICE = 100
"""Schedules of a group that go in one unit."""


def forget(tx: Tx, schedule: int) -> None:
    """Delete a schedule. Deliveries of its ticks that are under way go on: they carry all that they need."""
    row = tx.one(queries.PLACE, (schedule,))
    if row is None:
        return
    tx.run(queries.DELETE_TICK, (schedule,))
    clear_timer(tx, NAME, str(schedule))
    tx.run(queries.DELETE, (schedule,))
    tx.run(queries.ADD, (row[0], row[1], tx.stripe, -1))


def delete_slice(tx: Tx, account: str, region: str, group: str) -> int:
    """Delete some schedules of a group; answer how many."""
    rows = tx.all(queries.SOME_OF_GROUP, (account, region, group, SLICE))
    for (schedule,) in rows:
        tx.run(queries.DELETE_TICK, (schedule,))
        clear_timer(tx, NAME, str(schedule))
    tx.many(queries.DELETE, rows)
    if rows:
        tx.run(queries.ADD, (account, region, tx.stripe, -len(rows)))
    return len(rows)
