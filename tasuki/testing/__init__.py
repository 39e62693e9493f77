"""The kit we test with and give away: a house whose clock stands still until it is told to move.

`Kit` is a whole house for a user's own tests, with boto3 outside in (docs/TESTING.md; the pytest plugin makes it a fixture). `House` is
rooms over a store in memory, without the door: what our own tests use. `simulate(Plan(seed))` plays a whole house under faults
and says which promise broke (testing/simulation).

Everything is loaded when it is first asked for: pytest loads the plugin beside us whenever it starts.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasuki.runtime.conductor import Restless
    from tasuki.testing.acting import Part, Run, ScriptMissing
    from tasuki.testing.clock import ManualClock
    from tasuki.testing.house import House
    from tasuki.testing.kit import Kit
    from tasuki.testing.scripted import Script
    from tasuki.testing.simulation import Outcome, Plan, simulate

__all__ = [
    "House",
    "Kit",
    "ManualClock",
    "Outcome",
    "Part",
    "Plan",
    "Restless",
    "Run",
    "Script",
    "ScriptMissing",
    "simulate",
]

_HOMES = {
    "House": "house",
    "Kit": "kit",
    "ManualClock": "clock",
    "Outcome": "simulation",
    "Part": "acting",
    "Plan": "simulation",
    "Restless": "life",
    "Run": "acting",
    "Script": "scripted",
    "ScriptMissing": "acting",
    "simulate": "simulation",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
