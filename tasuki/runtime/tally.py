"""What happened in a house between two looks, by numbers that cost next to nothing: the newest rows, and what ended since."""

from dataclasses import dataclass
from typing import NamedTuple

from tasuki.store.store import Tx
from tasuki.values.instant import Instant

NEWEST = "SELECT coalesce((SELECT max(id) FROM executions), 0), coalesce((SELECT max(id) FROM handovers), 0)"
ENDED = (
    "SELECT count(*), count(*) FILTER (WHERE status = 'SUCCEEDED') FROM executions "
    "WHERE stopped_at >= ? AND stopped_at IS NOT NULL AND map_run IS NULL"
)
STOPPED = "SELECT count(*) FROM tasks WHERE stopped_at >= ? AND stopped_at IS NOT NULL"
MESSAGES = (
    "SELECT coalesce(CAST(sum(sent) AS BIGINT), 0), coalesce(CAST(sum(deleted) AS BIGINT), 0), "
    "coalesce(CAST(sum(moved_to_dlq) AS BIGINT), 0), coalesce(CAST(sum(expired) AS BIGINT), 0), "
    "coalesce(CAST(sum(purged) AS BIGINT), 0) FROM shelf_counts"
)
HANDED_OVER = (
    "SELECT count(*) FILTER (WHERE outcome = 'DELIVERED'), count(*) FILTER (WHERE outcome LIKE 'FAILED%'), "
    "count(*) FILTER (WHERE outcome LIKE 'DEAD_LETTERED%'), count(*) FILTER (WHERE outcome LIKE 'DROPPED%'), "
    "count(*) FILTER (WHERE source LIKE 'arn:aws:scheduler:%' AND outcome NOT LIKE 'FAILED%') "
    "FROM handovers WHERE id > ?"
)
TICKS_ON_THEIR_WAY = "SELECT count(*) FROM deliveries WHERE source LIKE 'arn:aws:scheduler:%'"
"""A tick is handed over once in the end, however many tries it takes: what fired is what has ended, and what is under way now
and was not before."""


class Counts(NamedTuple):
    """What happened. Executions started include the children of Map Runs, those that ended do not.

    Dead letters are messages that were received too often, and deliveries that were given up; these were sent to their queue,
    and so count as messages sent, too. A delivery that was given up without such a queue is one that was dropped.
    """

    schedule_ticks: int
    executions_started: int
    executions_succeeded: int
    executions_failed: int
    tasks_stopped: int
    messages_sent: int
    messages_deleted: int
    messages_expired: int
    messages_purged: int
    dead_letters: int
    deliveries: int
    tries_failed: int
    deliveries_dropped: int

    @property
    def shown(self) -> dict[str, int]:
        """The same in the words of the API: `ScheduleTicks`, `ExecutionsStarted` ..."""
        return {name.title().replace("_", ""): count for name, count in self._asdict().items()}


@dataclass(frozen=True, slots=True)
class Look:
    """Where the house stood at `since`."""

    since: Instant
    executions: int
    handovers: int
    ended: int
    succeeded: int
    stopped: int
    sent: int
    deleted: int
    dead: int
    expired: int
    purged: int
    ticks: int
    """That are on their way."""


def look(tx: Tx, since: Instant | None = None) -> Look:
    """Count what has happened up to now, and what of it at or after `since` (now, if left out). Reads only."""
    at = tx.now if since is None else since
    executions, handovers = _row(tx, NEWEST)
    ended, succeeded = _row(tx, ENDED, at)
    (stopped,) = _row(tx, STOPPED, at)
    return Look(
        at, executions, handovers, ended, succeeded, stopped, *_row(tx, MESSAGES), *_row(tx, TICKS_ON_THEIR_WAY)
    )


def since(tx: Tx, before: Look) -> Counts:
    """Count what has happened since an earlier look. Reads only. What is gone meanwhile (retention) counts as nothing."""
    now = look(tx, before.since)
    delivered, failed, buried, dropped, ticks = _row(tx, HANDED_OVER, before.handovers)
    succeeded = now.succeeded - before.succeeded
    counts = Counts(
        schedule_ticks=ticks + now.ticks - before.ticks,
        executions_started=now.executions - before.executions,
        executions_succeeded=succeeded,
        executions_failed=now.ended - before.ended - succeeded,
        tasks_stopped=now.stopped - before.stopped,
        messages_sent=now.sent - before.sent,
        messages_deleted=now.deleted - before.deleted,
        messages_expired=now.expired - before.expired,
        messages_purged=now.purged - before.purged,
        dead_letters=now.dead - before.dead + buried,
        deliveries=delivered,
        tries_failed=failed,
        deliveries_dropped=dropped,
    )
    return Counts(*(max(0, one) for one in counts))


@dataclass(slots=True)
class Tally:
    """Adds up over a long way: what happened is looked at while it is still there."""

    before: Look
    counts: Counts = Counts(*(0 for _ in Counts._fields))  # noqa: RUF009 - a tuple, and so no one's to change

    def add(self, tx: Tx) -> None:
        """Add what has happened since the last time. Reads only."""
        new, now = since(tx, self.before), look(tx)  # before anything is kept: what is read may have to be read again
        self.counts = Counts(*(one + other for one, other in zip(self.counts, new, strict=True)))
        self.before = now


def _row(tx: Tx, sql: str, *params: int) -> tuple[int, ...]:
    row = tx.one(sql, params)
    assert row is not None, "a count answers"
    return row
