"""Retention: handovers are kept for 30 days of house time (`[quotas] handover_days`), then forgotten in slices."""

from tasuki.services.handovers import queries
from tasuki.services.room import Poll
from tasuki.store.store import Tx
from tasuki.values.config import Config
from tasuki.values.instant import DAY, HOUR, Instant

DEFAULT_DAYS = 30
SLICE = 500
"""Rows forgotten per unit."""
OTHERS_MS = 50
"""When to look again at what another node forgets: its slice is over soon, and perhaps undone."""


class Retention:
    """Forgets what is too old, looking once an hour at most: nobody needs it to the minute."""

    def __init__(self, config: Config) -> None:
        self._kept_ms = config.quotas.get("handover_days", DEFAULT_DAYS) * DAY

    def poll(self) -> Poll:
        """Answer the room's poll."""
        return Poll("handovers", (), self.look, self.run)

    def look(self, tx: Tx) -> Instant | None:
        """Answer the full hour after the oldest row's time is over."""
        row = tx.one(queries.OLDEST)
        if row is None:
            return tx.now + max(HOUR, self._kept_ms)
        over: Instant = row[0] + self._kept_ms
        return over + -over % HOUR

    def run(self, tx: Tx) -> Instant | None:
        """Forget a slice."""
        forgotten = tx.run(queries.DELETE_OLD, (SLICE, tx.now - self._kept_ms))
        due = self.look(tx)
        if not forgotten and due is not None and due <= tx.now:  # another node is at it
            return tx.now + OTHERS_MS
        return due
