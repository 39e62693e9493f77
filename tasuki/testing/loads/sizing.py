"""Play a strategy; and how large a fleet must be for its waits to stay under the target.

A sketch (first come, first served, nothing fails) says where to begin. What counts are plays: more workers as long as the
target is missed, and fewer as long as it is kept.
"""

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tasuki.testing.loads.figures import Figures, figures_of, percentile
from tasuki.testing.loads.fleet import Fleet
from tasuki.testing.loads.jobs import Job, draw_jobs
from tasuki.testing.loads.per_job import PerJob
from tasuki.testing.loads.plan import SHOWN, Plan, Strategy
from tasuki.values.errors import ConfigError

Tell: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Smaller:
    """With one worker less than was chosen: how long a version's jobs wait for their first try (p95, in seconds). None: some for ever."""

    version: str
    workers: int
    p95: float | None


def play(plan: Plan, strategy: Strategy, tell: Tell, *, thorough: bool = True) -> tuple[Figures, list[Smaller]]:
    """Play a strategy; answer its figures, and the plays that showed that a fleet can't be smaller, if it was sized."""
    if strategy == "always_on":
        return play_always_on(plan, tell, thorough=thorough)
    jobs = draw_jobs(plan)
    tell(f"{SHOWN[strategy]}: {len(jobs)} jobs in {plan.days:g} days")
    if strategy in ("backlog", "backlog_protected"):
        rule = plan.backlog if strategy == "backlog" else plan.backlog_protected
        assert rule is not None, "it is among the strategies"
        ledger = Fleet(plan, jobs, {}, rule).play()
    else:
        assert plan.task_per_job is not None, "it is among the strategies"
        ledger = PerJob(plan, jobs, plan.task_per_job).play()
    return figures_of(plan, strategy, jobs, ledger), []


def play_always_on(plan: Plan, tell: Tell, *, thorough: bool = True) -> tuple[Figures, list[Smaller]]:
    """Play the fleet of fixed size. `thorough`: where it is to be sized, show by play that one worker less is too few.

    Raises `ConfigError` if even the most workers that are allowed miss the target.
    """
    setting = plan.always_on
    assert setting is not None, "it is among the strategies"
    if setting.workers is not None:
        jobs, figures = _play(plan, setting.workers, tell)
        return figures, []
    assert setting.target_ms is not None, "a fleet that is to be sized has a target"
    target, most = setting.target_ms, setting.most
    jobs = draw_jobs(plan)
    names = [one.name for one in plan.versions]
    sizes = {name: sketch([job for job in jobs if job.version.name == name], target, most) for name in names}
    good: dict[str, int] = {}
    bad: dict[str, Smaller] = {}
    seen: dict[tuple[int, ...], Figures] = {}
    while True:
        jobs, figures = _play(plan, sizes, tell)
        seen[tuple(sizes.values())] = figures
        for name, size in sizes.items():
            wait = p95_of(jobs, name)
            if wait is not None and wait <= target:
                good[name] = min(size, good.get(name, size))
            elif size >= most or sum(sizes.values()) >= plan.running_tasks:
                raise _too_few(name, size, target)
            elif name not in bad or bad[name].workers < size:
                bad[name] = Smaller(name, size, _seconds(wait))
        sizes = {name: _next_size(sizes[name], good.get(name), bad.get(name), thorough=thorough) for name in names}
        if tuple(sizes.values()) in seen:
            return seen[tuple(sizes.values())], list(bad.values())


def _next_size(size: int, good: int | None, bad: Smaller | None, *, thorough: bool) -> int:
    """Answer what to play next: one more while it is too few, one less while it may be, the smallest good one in the end."""
    if good is None:
        return size + 1
    known = bad.workers if bad is not None else 0
    return good - 1 if thorough and known < good - 1 else good


def _too_few(version: str, size: int, target_ms: int) -> ConfigError:
    return ConfigError(
        f"strategies.always_on: even {size} workers for {version} keep jobs waiting for longer than target_p95_wait_seconds = "
        f"{target_ms / 1000:g}; allow more with most_workers (and limits.running_tasks), or give less load"
    )


def p95_of(jobs: Sequence[Job], version: str) -> int | None:
    """Answer the p95 wait of a version's jobs for their first try; None if too many had none before the play was broken off."""
    mine = [job for job in jobs if job.version.name == version]
    waits = sorted(job.first - job.arrives for job in mine if job.first is not None)
    rank = math.ceil(0.95 * len(mine))
    return 0 if not mine else waits[rank - 1] if len(waits) >= rank else None


def sketch(jobs: Sequence[Job], target_ms: int, most: int) -> int:
    """Answer how many workers keep the p95 wait under the target, if nothing fails; `most` if none do."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if (percentile(_waits(jobs, middle), 0.95) or 0) <= target_ms:
            high = middle
        else:
            low = middle + 1
    return low


def _waits(jobs: Sequence[Job], workers: int) -> list[int]:
    free = [0] * workers
    waits = []
    for job in jobs:
        begins = max(job.arrives, free[0])
        heapq.heapreplace(free, begins + job.duration_ms)
        waits.append(begins - job.arrives)
    return sorted(waits)


def _play(plan: Plan, sizes: Mapping[str, int], tell: Tell) -> tuple[list[Job], Figures]:
    jobs = draw_jobs(plan)
    fleet = ", ".join(f"{size} of {name}" for name, size in sizes.items())
    tell(f"{SHOWN['always_on']}, {fleet}: {len(jobs)} jobs in {plan.days:g} days")
    ledger = Fleet(plan, jobs, sizes).play()
    return jobs, figures_of(plan, "always_on", jobs, ledger)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
