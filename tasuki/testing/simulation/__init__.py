"""The simulation: the whole house under faults, from one seed. See `simulation.py`."""

from tasuki.testing.simulation.simulation import Outcome, Plan, simulate

__all__ = ["Outcome", "Plan", "simulate"]
