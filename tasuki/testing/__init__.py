"""The kit we test with and give away: a house in memory whose clock stands still until it is told to move.

`simulate(Plan(seed))` plays a whole house under faults and says which promise broke (testing/simulation).
"""

from tasuki.testing.clock import ManualClock
from tasuki.testing.house import House
from tasuki.testing.simulation import Outcome, Plan, simulate

__all__ = ["House", "ManualClock", "Outcome", "Plan", "simulate"]
