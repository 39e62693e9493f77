"""Token buckets: so many at once, and then so many in a second, as AWS throttles."""

import math

from tasuki.values.instant import SECOND, Instant


class Bucket:
    """Holds up to `size` tokens and gets `per_second` new ones. Full at first; what it holds is lost with the node."""

    __slots__ = ("_at", "_held", "_per_second", "_size")

    def __init__(self, size: int, per_second: int) -> None:
        self._size = float(max(size, 1))
        self._per_second = per_second
        self._held = self._size
        self._at: Instant | None = None

    def held(self, now: Instant) -> float:
        """Answer how many tokens it holds."""
        if self._at is not None and now > self._at:
            self._held = min(self._size, self._held + (now - self._at) * self._per_second / SECOND)
        self._at = now
        return self._held

    def take(self, now: Instant) -> bool:
        """Take a token; tell whether there was one."""
        if self.held(now) < 1:
            return False
        self._held -= 1
        return True

    def spend(self, count: int) -> None:
        """Take tokens that `held` said are there."""
        self._held -= count

    def wait_ms(self, count: int) -> int:
        """Answer how long after the last look it will hold `count` tokens."""
        return max(0, math.ceil((count - self._held) * SECOND / self._per_second))
