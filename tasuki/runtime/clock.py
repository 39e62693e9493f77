"""The clocks of a node. The only place that reads the system's time."""

import time
from collections.abc import Callable

from tasuki.values.instant import DAY, Instant

MOST_AHEAD_MS = DAY
"""A clock that was set back by more than this was wrong before, and ours with it: then we go back too."""


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def steady_ms() -> int:
    """Count milliseconds by a clock that nobody sets."""
    return time.monotonic_ns() // 1_000_000


class SystemClock:
    """The machine's wall clock, which does not go back: history and order stay true.

    When the wall clock is set back, ours goes on at half its speed until the other has caught up: what waits for a few
    seconds waits for twice as long, and not for the hour by which the clock was moved.
    """

    __slots__ = ("_last", "_since", "_steady", "_wall")

    def __init__(self, wall: Callable[[], int] = _wall_ms, steady: Callable[[], int] = steady_ms) -> None:
        self._wall, self._steady = wall, steady
        self._last = 0
        self._since: tuple[int, int] | None = None
        """Since when we go slowly: our instant and the steady one."""

    def now(self) -> Instant:
        """Answer the present instant."""
        present = self._wall()
        if present >= self._last or self._last - present > MOST_AHEAD_MS:
            self._since = None
            self._last = present
            return present
        if self._since is None:
            self._since = (self._last, self._steady())
        began, steady = self._since
        self._last = began + (self._steady() - steady) // 2
        return self._last


class WallClock:
    """What the machine's clock says, wherever it was moved: for signatures, which are made by that clock."""

    def now(self) -> Instant:
        """Answer the present instant."""
        return _wall_ms()


class HandClock:
    """A clock that stands still until it is moved (`conductor.py`). Never back."""

    __slots__ = ("_now",)

    def __init__(self, start: Instant = 0) -> None:
        self._now = start

    def now(self) -> Instant:
        """Answer where it stands."""
        return self._now

    def set(self, instant: Instant) -> None:
        """Move it; to an instant that is past already it does not go."""
        self._now = max(self._now, instant)
