"""What the tasks room does when time passes: stopped tasks are shown for a while, then forgotten.

Starting, watching and stopping is the attendant's (`runtime/attendant.py`, with the units in `attending.py`).
"""

from tasuki.services.tasks import queries as sql
from tasuki.services.tasks.setting import NAME, Here, Setting
from tasuki.store import timers
from tasuki.store.store import Tx
from tasuki.values.instant import DAY

SHOWN_MS = 7 * DAY
"""ECS shows a stopped task for an hour at least; its logs are worth more here."""
TOKENS_KEPT_MS = DAY
FORGOTTEN_AT_ONCE = 100


def on_timer(tx: Tx, setting: Setting) -> None:
    """Have the attendant remove what was shown long enough (its folder goes first, then its row)."""
    tx.run(sql.FORGET_TOKENS, (tx.now - TOKENS_KEPT_MS,))
    oldest = tx.one(sql.OLDEST_STOPPED)
    if oldest is None or oldest[0] is None:
        return
    if oldest[0] + setting.shown_ms <= tx.now:
        tx.ring("tasks")
    else:
        timers.set_timer(tx, NAME, "expired", oldest[0] + setting.shown_ms)


def expired(tx: Tx, setting: Setting, here: Here) -> list[tuple[int, str]]:
    """Answer (row, task) of what this node has shown long enough, some at a time. A task's folder is its node's to remove."""
    rows = tx.all(sql.EXPIRED, (tx.now - setting.shown_ms, here.node, FORGOTTEN_AT_ONCE))
    return [(row[0], row[1]) for row in rows]


def forget(tx: Tx, setting: Setting, gone: list[int]) -> None:
    """Delete the rows of tasks whose folders are gone, and be called again for the next."""
    tx.many(sql.FORGET, [(row,) for row in gone])
    oldest = tx.one(sql.OLDEST_STOPPED)
    if oldest is not None and oldest[0] is not None:
        timers.set_timer(tx, NAME, "expired", max(tx.now, oldest[0] + setting.shown_ms))
