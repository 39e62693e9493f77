"""The kit we test with and give away: a house in memory whose clock stands still until it is told to move."""

from tasuki.testing.clock import ManualClock
from tasuki.testing.house import House

__all__ = ["House", "ManualClock"]
