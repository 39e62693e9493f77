"""What ended long enough ago is forgotten, in slices (Step Functions quotas, "execution history retention").

====================  =======================================================================================
executions            90 days after they ended (`quotas.execution_days`), with all that is theirs. A Map Run's
                      children go with its execution: until then their results may be asked for
remains               the fortnight in which an execution can be redriven
logged events         14 days (`quotas.log_days`)
====================  =======================================================================================

Found by an index on their end, so that nothing is looked at that is not due, and one that runs for a year holds up
nobody. A slice removes so many rows and bytes. What does not fit into one is *put aside*: it is forgotten for everybody
at once (its name is free), and its rows go in the slices that follow. Looked for once an hour.
"""

from dataclasses import dataclass

from tasuki.services.machines import retention_queries as sql
from tasuki.services.machines.map_runs import SLICE_BYTES
from tasuki.services.machines.remains import REDRIVABLE_MS
from tasuki.services.machines.setting import ROOM, Setting
from tasuki.services.room import Poll
from tasuki.store.store import Tx
from tasuki.store.timers import CLEAR_BELOW
from tasuki.values.instant import DAY, HOUR, Instant

NAME = "machines.retention"
ROWS, BYTES = 1_000, 4 << 20
"""What one unit removes at most: some milliseconds of the writer. The row that passes a bound still goes."""
EXECUTIONS = 100
"""Executions that one unit forgets at most."""
LARGEST_ROW = 1 << 19
"""What an execution's own row may take: its input and output are 256 KiB each at most."""
LOG_DAYS = 14


@dataclass(slots=True)
class _Share:
    """What a unit may still remove."""

    rows: int
    bytes: int

    @property
    def is_left(self) -> bool:
        """Tell whether another row may go."""
        return self.rows > 0 and self.bytes > 0

    def take(self, size: int) -> None:
        """Use it for one row."""
        self.rows -= 1
        self.bytes -= size


class Retention:
    """Forgets what is too old. Any number of nodes may do so at a time: each takes rows that no other has in hand."""

    def __init__(self, setting: Setting) -> None:
        self._kept_ms = setting.kept_ms
        self._logs_kept_ms = setting.config.quotas.get("log_days", LOG_DAYS) * DAY

    def poll(self) -> Poll:
        """Answer the room's poll."""
        return Poll(NAME, (), self.look, self.run)

    def look(self, tx: Tx) -> Instant | None:
        """Answer the full hour after the next time is over; now, when there is more to do of what was begun."""
        if tx.one(sql.ANY_ASIDE) is not None:
            return tx.now
        kept = (
            (sql.OLDEST_ENDED, self._kept_ms),
            (sql.OLDEST_REMAINS, REDRIVABLE_MS + 1),
            (sql.OLDEST_LOGGED, self._logs_kept_ms),
        )
        over: list[Instant] = [
            row[0] + kept_ms for statement, kept_ms in kept if (row := tx.one(statement)) is not None
        ]
        next_look = min([*over, tx.now + DAY])
        return max(next_look + -next_look % HOUR, tx.now)

    def run(self, tx: Tx) -> Instant | None:
        """Forget a slice."""
        share = _Share(ROWS, BYTES)
        _forget_logged(tx, tx.now - self._logs_kept_ms, share)
        _forget_remains(tx, share)
        _forget_executions(tx, tx.now - self._kept_ms, share)
        return self.look(tx)


def _forget_executions(tx: Tx, ended_until: Instant, share: _Share) -> None:
    """Forget executions: first those that are put aside, then those that ended until an instant."""
    row = tx.one(sql.NEWEST)
    newest = row[0] if row is not None else None
    found = tx.all(sql.ASIDE, (EXECUTIONS,))
    if len(found) < EXECUTIONS:
        found += tx.all(sql.DUE, (ended_until, EXECUTIONS - len(found)))
    gone: list[tuple[int]] = []
    aside: list[tuple[int]] = []
    for execution, machine, size in found:
        if not share.is_left:
            break
        if _clear(tx, execution, share):
            gone.append((execution,))
            share.take(min(size, LARGEST_ROW))
        elif machine:
            aside.append((execution,))
    tx.many(sql.PUT_ASIDE, aside)
    tx.many(sql.PUT_RUNS_ASIDE, aside)
    tx.many(CLEAR_BELOW, [(ROOM, f"{execution}:", f"{execution};") for (execution,) in gone])
    for statement in sql.DROP_ALL:
        tx.many(statement, gone)
    tx.many(sql.DROP_EXECUTION, [one for one in gone if one[0] != newest])
    tx.many(sql.KEEP_NUMBER, [one for one in gone if one[0] == newest])


def _clear(tx: Tx, execution: int, share: _Share) -> bool:
    """Remove what an execution may have much of; tell whether that was all."""
    limit = share.rows
    chunks = tx.all(sql.CHUNKS, (execution, limit))
    last, whole = None, len(chunks) < limit
    for first, size in chunks:
        if not share.is_left:
            whole = False
            break
        share.take(size)
        last = first
    if last is not None:
        tx.run(sql.DROP_CHUNKS, (execution, last))
    while whole:
        run = tx.one(sql.RUNS, (execution, 1))
        if run is None:
            return True
        whole = _clear_run(tx, run[0], share)
    return False


def _clear_run(tx: Tx, run: int, share: _Share) -> bool:
    """Put the children of a Map Run aside and remove its items and itself; tell whether that was all."""
    children = [(row[0],) for row in tx.all(sql.CHILDREN, (run, max(share.rows, 0)))]
    tx.many(sql.PUT_ASIDE, children)
    tx.many(sql.PUT_RUNS_ASIDE, children)
    tx.many(sql.DROP_CHILD, children)
    share.rows -= len(children)
    last = None
    for (first,) in tx.all(sql.ITEMS, (run, max(share.rows, 0))):
        if not share.is_left:
            break
        share.take(SLICE_BYTES)
        last = first
    if last is not None:
        tx.run(sql.DROP_ITEMS, (run, last))
    if not share.is_left or tx.one(sql.CHILDREN, (run, 1)) is not None or tx.one(sql.ITEMS, (run, 1)) is not None:
        return False
    share.take(0)
    tx.run(sql.DROP_TURN, (run,))
    tx.run(sql.DROP_RUN, (run,))
    return True


def _forget_remains(tx: Tx, share: _Share) -> None:
    """Forget what can be redriven no more. What was, and is not taken up yet, is kept for another day."""
    over = tx.now - REDRIVABLE_MS
    gone: list[tuple[int]] = []
    kept: list[tuple[Instant, int]] = []
    for execution, size, wanted in tx.all(sql.DUE_REMAINS, (over, EXECUTIONS)):
        if not share.is_left:
            break
        share.take(size)
        if wanted:
            kept.append((over + DAY, execution))
        else:
            gone.append((execution,))
    tx.many(sql.DROP_REMAINS, gone)
    tx.many(sql.KEEP_REMAINS, kept)


def _forget_logged(tx: Tx, written_until: Instant, share: _Share) -> None:
    """Forget chunks of logged events that were written until an instant."""
    gone: list[tuple[int]] = []
    for chunk, at, size in tx.all(sql.FIRST_LOGGED, (share.rows,)):
        if at > written_until or not share.is_left:
            break
        share.take(size)
        gone.append((chunk,))
    tx.many(sql.DROP_LOGGED, gone)
