"""The clocks of a node. The only place that reads the system's time."""

import time

from tasuki.values.instant import Instant


class SystemClock:
    """The machine's wall clock. It never answers an instant earlier than the one before: a clock set back stands still."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> Instant:
        """Answer the present instant."""
        present = time.time_ns() // 1_000_000
        self._last = max(self._last, present)
        return self._last
