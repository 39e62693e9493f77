"""Many seeds, one summary line; and of a seed that fails, the shortest run that still does."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tasuki.testing.simulation.faults import Rates
from tasuki.testing.simulation.grounds import GroundMaker, memory, mingled
from tasuki.testing.simulation.simulation import STEPS, Outcome, Plan, simulate

SHRINK_RUNS = 8
"""Runs spent on finding a shorter one."""


def plan_of(seed: int, ground: GroundMaker, steps: int = STEPS) -> Plan:
    """Answer how a seed is played: mostly with two nodes, in memory often mingled; some in a storm of faults, some in fair weather."""
    rates = Rates()
    if seed % 5 == 3:
        rates = Rates(*(getattr(rates, name) * 4 for name in Rates.__dataclass_fields__))
    elif seed % 7 == 6:
        rates = Rates(*(0.0 for _ in Rates.__dataclass_fields__))
    if ground is memory and seed % 2:
        ground = mingled
    return Plan(seed, steps, nodes=1 if seed % 3 == 0 else 2, rates=rates, ground=ground)


@dataclass(slots=True)
class Summary:
    """What seeds came to, together."""

    seeds: int = 0
    steps: int = 0
    units: int = 0
    crashes: int = 0
    checked: int = 0
    days: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failed: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count a run."""
        self.seeds += 1
        self.steps += outcome.step
        self.units += outcome.units
        self.crashes += outcome.crashes
        self.checked += outcome.checked
        self.days += outcome.days
        self.faults += outcome.faults
        if outcome.violation is not None:
            self.failed.append(outcome)

    def line(self, seconds: float) -> str:
        """Say it in one line."""
        faults = ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items())) or "none"
        return (
            f"simulate: {self.seeds} seeds, {self.steps} steps, {self.units} units, {self.crashes} crashes, "
            f"faults: {faults}; {self.checked} invariants checked, violations {len(self.failed)}; "
            f"{self.days:.0f} simulated days in {seconds:.1f} s"
        )


def play(plans: Iterable[Plan], goes_on: Callable[[], bool] = lambda: True) -> Summary:
    """Play plans until one fails, or until `goes_on` says no."""
    summary = Summary()
    for plan in plans:
        if summary.seeds and not goes_on():
            break
        outcome = simulate(plan)
        if outcome.violation is not None:
            outcome = shortest(plan, outcome)
        summary.add(outcome)
        if summary.failed:
            break
    return summary


def shortest(plan: Plan, failed: Outcome) -> Outcome:
    """Answer the outcome of the run with the fewest steps that fails too, as far as a few tries find it."""
    best, low, high = failed, 0, failed.step
    for _ in range(SHRINK_RUNS):
        middle = (low + high) // 2
        if middle <= low:
            break
        tried = simulate(replace(plan, steps=middle))
        if tried.violation is not None:
            best, high = tried, min(middle, tried.step)
        else:
            low = middle
    return best


def report(failed: Outcome, store: str) -> str:
    """Say what failed and how to play it again."""
    actions = "\n".join(failed.last_actions)
    return (
        f"seed {failed.seed}, step {failed.step}: {failed.violation}\n"
        f"last actions (milliseconds of house time first):\n{actions}\n"
        f"replay with: make simulate SEED={failed.seed} STEPS={failed.step}{f' STORE={store}' if store != 'memory' else ''}"
    )
