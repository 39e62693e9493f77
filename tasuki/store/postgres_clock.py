"""The database's clock, as the nodes of one house share it.

An answer took a while to come: the instant in it is between nothing and the whole round trip old. So between units the
difference between the two clocks is taken from the quickest answer of the last seconds, and a slow one moves nothing. Ours is
never ahead of the database's: at worst it is behind, by as much as that answer was slow.
"""

from collections.abc import Callable

from tasuki.values.instant import SECOND, Clock, Instant

TRUSTED_MS = 10 * SECOND
"""How long a quick answer counts for more than a slower one that came later."""


class DatabaseClock:
    """What the database's clock says, by this machine's own and the difference that was seen. Does not go back.

    `steady` counts milliseconds and is never set; without it the machine's clock is believed between two answers.
    """

    def __init__(self, wall: Clock, steady: Callable[[], int] | None = None) -> None:
        self._wall = wall
        self.steady: Callable[[], int] = steady or wall.now
        self._last = 0
        self._ahead = 0
        self._trip = 0
        self._seen_at: int | None = None
        self.ahead_ms = 0
        """By how much the database's clock was ahead of this machine's, when that was last seen well."""

    def now(self) -> Instant:
        """Answer the present instant."""
        self._last = max(self._last, self.steady() + self._ahead)
        return self._last

    def saw(self, instant: Instant, trip_ms: int = 0) -> Instant:
        """Take note of what the database's clock said in an answer that took `trip_ms`; answer it, or where we already were."""
        steady = self.steady()
        if self._seen_at is None or trip_ms <= self._trip or not 0 <= steady - self._seen_at <= TRUSTED_MS:
            self._seen_at, self._trip = steady, trip_ms
            self._ahead = instant - steady
            self.ahead_ms = instant - self._wall.now()
        self._last = max(self._last, instant)
        return self._last
