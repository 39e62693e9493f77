"""The jobs of a load, drawn once and played to every strategy: the same arrivals, durations and failures for all.

Each job's luck is drawn from the seed and its number, so it does not depend on what a strategy does with the others.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist

from tasuki.testing.loads.plan import Duration, Load, Plan, Version
from tasuki.values.chance import Chance
from tasuki.values.instant import HOUR, Instant

P95 = NormalDist().inv_cdf(0.95)


@dataclass(slots=True, eq=False)
class Job:
    """One job, and what became of it so far in the play."""

    number: int
    arrives: Instant
    version: Version
    duration_ms: int
    hopeless: bool
    seed: str
    tries: int = 0
    """Tries that were begun."""
    ended: int = 0
    """Tries that came to an end of their own."""
    first: Instant | None = None
    """The first instruction of the first try."""
    began: Instant | None = None
    """The first instruction of the try that succeeded."""
    done: Instant | None = None
    buried: bool = False
    """Whether its message was found in the dead-letter queue."""

    def try_begins(self, at: Instant) -> None:
        """Another try of it begins to work."""
        self.tries += 1
        if self.first is None:
            self.first = at

    def fails(self) -> bool:
        """Tell whether the try that comes to its end next fails."""
        if self.hopeless:
            return True
        rate = self.version.failure_rate
        return rate > 0 and Chance.seeded(f"{self.seed}/{self.number}/{self.ended}").fraction() < rate

    @property
    def works_ms(self) -> int:
        """How long that try works."""
        return round(self.duration_ms * self.version.fails_after) if self.fails() else self.duration_ms


def draw_jobs(plan: Plan) -> list[Job]:
    """Draw all jobs of a plan, in the order of their arrival."""
    chance = Chance.seeded(f"{plan.seed}/load")
    jobs = []
    for number, given in enumerate(_arrivals(plan, chance)):
        luck = Chance.seeded(f"{plan.seed}/{number}")
        share, how_long, hopeless = luck.fraction(), luck.fraction(), luck.fraction()
        version = plan.version(given[1]) if given[1] is not None else _version(plan.versions, share)
        duration_ms = given[2] if given[2] is not None else draw(version.duration, how_long)
        jobs.append(Job(number, given[0], version, duration_ms, hopeless < version.hopeless_rate, str(plan.seed)))
    return jobs


def draw(duration: Duration, fraction: float) -> int:
    """Answer the duration below which `fraction` of all are."""
    numbers = duration.numbers_ms
    if duration.kind == "lognormal":
        spread = math.log(numbers[1] / numbers[0]) / P95
        drawn = round(numbers[0] * math.exp(spread * NormalDist().inv_cdf(min(max(fraction, 1e-12), 1 - 1e-12))))
    elif duration.kind == "uniform":
        drawn = round(numbers[0] + (numbers[1] - numbers[0]) * fraction)
    else:
        drawn = numbers[int(fraction * len(numbers))]
    return drawn if duration.most_ms is None else min(drawn, duration.most_ms)


def _version(versions: tuple[Version, ...], fraction: float) -> Version:
    limits = list(accumulate(one.share for one in versions))
    return versions[min(bisect_right(limits, fraction), len(versions) - 1)]


def _arrivals(plan: Plan, chance: Chance) -> Iterator[tuple[Instant, str | None, int | None]]:
    load = plan.load
    if load.arrivals == "trace":
        for one in sorted(load.trace, key=lambda given: given.at):
            if one.at < plan.ends:
                yield one.at, one.version, one.duration_ms
    elif load.arrivals == "bursts":
        size = max(1, round(load.burst_size))
        for at in range(load.burst_first_ms, plan.ends, load.burst_every_ms):
            for _ in range(size):
                yield at, None, None
    else:
        for at in _poisson(load, plan, chance):
            yield at, None, None


def _poisson(load: Load, plan: Plan, chance: Chance) -> Iterator[Instant]:
    """Arrivals at the rate of each hour: waits of a process of rate one, laid along the sum of the rates."""
    due = -math.log(1 - chance.fraction())
    passed = 0.0
    for hour in range(math.ceil(plan.ends / HOUR)):
        day = (plan.weekday + hour // 24) % 7
        rate = load.per_hour[hour % 24] * load.weekdays[day]
        while rate > 0 and due < passed + rate:
            at = hour * HOUR + math.floor((due - passed) / rate * HOUR)
            if at < plan.ends:
                yield at
            due += -math.log(1 - chance.fraction())
        passed += rate
