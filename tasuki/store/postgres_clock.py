"""The database's clock, as the nodes of one house share it."""

from tasuki.values.instant import Clock, Instant


class DatabaseClock:
    """What the database's clock says, by this machine's own and the difference that was last seen. Does not go back."""

    def __init__(self, wall: Clock) -> None:
        self._wall = wall
        self._last = 0
        self.ahead_ms = 0
        """By how much the database's clock is ahead of this machine's."""

    def now(self) -> Instant:
        """Answer the present instant."""
        self._last = max(self._last, self._wall.now() + self.ahead_ms)
        return self._last

    def saw(self, instant: Instant) -> Instant:
        """Take note of what the database's clock said just now; answer it, or where we already were."""
        self.ahead_ms = instant - self._wall.now()
        self._last = max(self._last, instant)
        return self._last
