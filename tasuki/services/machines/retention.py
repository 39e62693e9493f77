"""Ended executions and their history are kept for 90 days, then forgotten, in slices (Step Functions quotas).

One timer, `retention:ID`, goes through the executions in the order of their starts, from ID on; at the end it begins
again a day later. Setting: `quotas.execution_days`.
"""

from tasuki.services.machines import queries as sql
from tasuki.services.machines.logging_records import forget_logged
from tasuki.services.machines.map_runs import forget_map_runs
from tasuki.services.machines.redriving_queries import FORGET_ALL
from tasuki.services.machines.remains import forget_remains
from tasuki.services.machines.setting import ROOM, Setting
from tasuki.store.store import Tx
from tasuki.store.timers import set_timer
from tasuki.values.instant import DAY

OWNER = "retention"
SLICE = 200
"""Executions looked at in one unit."""


def begin_retention(tx: Tx) -> None:
    """Look for the first time in a day."""
    set_timer(tx, ROOM, f"{OWNER}:0", tx.now + DAY)


def forget_ended(tx: Tx, setting: Setting, after: int) -> None:
    """Forget what ended long enough ago among the next executions after id `after`, and set the timer anew."""
    if forget_remains(tx):
        set_timer(tx, ROOM, f"{OWNER}:{after}", tx.now)
        return
    cutoff = tx.now - setting.kept_ms
    rows = tx.all(sql.EXECUTIONS_AFTER, (after, SLICE))
    old = [(execution,) for execution, _, stopped_at in rows if stopped_at is not None and stopped_at <= cutoff]
    if old:
        tx.many(sql.DROP_HISTORY, old)
        tx.many(sql.DROP_EXECUTION, old)
        tx.many(FORGET_ALL, old)
        forget_map_runs(tx, old)
    if len(rows) == SLICE and rows[-1][1] <= cutoff:
        set_timer(tx, ROOM, f"{OWNER}:{rows[-1][0]}", tx.now)
    else:
        begin_retention(tx)
        forget_logged(tx, setting)
