"""Plays of a load: a pipeline under the manual clock, through the house's own engine, for several ways to run its jobs.

`read_plan` reads what is to be played, `play` plays one strategy and answers its figures, `run_sweep` plays multiples of the
load. `tasuki simulate` prints them; docs/SIMULATE.md says what is played and what is not.
"""

from tasuki.testing.loads.figures import Figures, Waits
from tasuki.testing.loads.plan import SHOWN, STRATEGIES, Plan, Strategy
from tasuki.testing.loads.reading import read_plan
from tasuki.testing.loads.sizing import Smaller, play
from tasuki.testing.loads.sweep import Point, over_start, run_sweep, saves, saving_of, sentences, why_no_sweep

__all__ = [
    "SHOWN",
    "STRATEGIES",
    "Figures",
    "Plan",
    "Point",
    "Smaller",
    "Strategy",
    "Waits",
    "over_start",
    "play",
    "read_plan",
    "run_sweep",
    "saves",
    "saving_of",
    "sentences",
    "why_no_sweep",
]
