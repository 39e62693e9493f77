"""What a play comes to: waits, throughput, tries, task-seconds, calls, and what that costs by a price list.

Everything is counted in the play but two things, which are worked out and said to be: money (amount times price), and the
long polls that AWS's Pipes would keep open (`pollers * seconds / 20`), since Tasuki's pipes make none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tasuki.testing.loads.jobs import Job
from tasuki.testing.loads.ledger import Ledger
from tasuki.testing.loads.plan import Plan, Prices, Strategy
from tasuki.values.instant import HOUR, SECOND

AWS_POLL_S = 20
"""How long a long poll of AWS's own pollers lasts that finds nothing."""


@dataclass(frozen=True, slots=True)
class Waits:
    """From arrival to the first instruction of a try, in seconds; None where there was none."""

    p50: float | None
    p95: float | None
    p99: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """A strategy's figures. Times of tasks are in seconds, money in dollars."""

    strategy: Strategy
    workers: dict[str, int]
    """Of a fleet of fixed size, by version."""
    jobs: int
    done: int
    dead_letters: int
    unfinished: int
    """Neither done nor in the dead-letter queue when the play was broken off."""
    waits: Waits
    """To the try that succeeded."""
    first_tries: Waits
    """To the first try: what is waited for room or a worker, and not for a try again."""
    jobs_per_hour: float
    retries: int
    failed_tries: int
    killed: int
    refused: int
    """How often a task was refused for the quota on running tasks."""
    task_s: float
    useful_s: float
    starting_s: float
    idle_s: float
    wasted_s: float
    peak_tasks: int
    calls: dict[str, int]
    queue_calls: int
    empty_receives: int
    aws_polls: int
    """What AWS's Pipes would have polled in vain besides, worked out."""
    transitions: int
    costs: dict[str, float]
    cost: float
    running: list[float] = field(default_factory=list)
    """How many tasks ran, on average in each hour."""

    @property
    def calls_on_aws(self) -> int:
        """Calls at the queue that AWS would charge."""
        return self.queue_calls + self.aws_polls

    @property
    def busy(self) -> float:
        """The part of all task time that was useful."""
        return self.useful_s / self.task_s if self.task_s else 0.0


def figures_of(plan: Plan, strategy: Strategy, jobs: Sequence[Job], ledger: Ledger) -> Figures:
    """Work out a strategy's figures from what was written down."""
    done = [job for job in jobs if job.done is not None]
    piped = strategy == "task_per_job"
    pollers = plan.task_per_job.aws_pollers if piped and plan.task_per_job is not None else 0
    aws_polls = pollers * (ledger.ends // SECOND) // AWS_POLL_S
    calls = {name: count for name, count in sorted(ledger.calls.items()) if name != "empty"}
    queue_calls = sum(calls.values())
    costs = costs_of(plan.prices, ledger, queue_calls + aws_polls)
    task_ms = ledger.task_ms
    last = max((job.done for job in done if job.done is not None), default=0)
    return Figures(
        strategy=strategy,
        workers=ledger.fleet,
        jobs=len(jobs),
        done=len(done),
        dead_letters=sum(job.buried for job in jobs),
        unfinished=sum(job.done is None and not job.buried for job in jobs),
        waits=_waits([job.began - job.arrives for job in done if job.began is not None]),
        first_tries=_waits([job.first - job.arrives for job in jobs if job.first is not None]),
        jobs_per_hour=round(len(done) / (max(plan.ends, last) / HOUR), 3),
        retries=sum(max(0, job.tries - 1) for job in jobs),
        failed_tries=ledger.failed,
        killed=ledger.killed,
        refused=ledger.refused,
        task_s=task_ms / SECOND,
        useful_s=ledger.useful_ms / SECOND,
        starting_s=ledger.starting_ms / SECOND,
        idle_s=(task_ms - ledger.useful_ms - ledger.starting_ms - ledger.wasted_ms) / SECOND,
        wasted_s=ledger.wasted_ms / SECOND,
        peak_tasks=ledger.peak,
        calls=calls,
        queue_calls=queue_calls,
        empty_receives=ledger.calls["empty"],
        aws_polls=aws_polls,
        transitions=ledger.transitions,
        costs=costs,
        cost=math.fsum(costs.values()),
        running=[round(one, 3) for one in ledger.running(max(1, round(plan.ends / HOUR)), plan.ends)],
    )


def costs_of(prices: Prices, ledger: Ledger, queue_calls: int) -> dict[str, float]:
    """Answer dollars by item. Tasks are charged by the second begun, and for `least_task_s` at least."""
    vcpu_s, gb_s = prices.vcpu_hour.dollars / 3600, prices.gb_hour.dollars / 3600
    lasted = [
        (max(prices.least_task_s, math.ceil(stay.lasted_ms(ledger.ends) / SECOND)), stay.version)
        for stay in ledger.stays
    ]
    return {
        "tasks": math.fsum(seconds * (one.vcpu * vcpu_s + one.memory_gb * gb_s) for seconds, one in lasted),
        "queue": queue_calls * prices.queue_million.dollars / 1e6,
        "machine": ledger.transitions * prices.transitions_thousand.dollars / 1e3,
        "pipe": ledger.piped * prices.pipe_million.dollars / 1e6,
    }


def percentile(ordered: Sequence[int], part: float) -> int | None:
    """Answer the smallest of them that `part` of all do not exceed (nearest rank); None if there are none."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else None


def _waits(waits_ms: Sequence[int]) -> Waits:
    ordered = sorted(waits_ms)
    return Waits(*(_seconds(percentile(ordered, part)) for part in (0.5, 0.95, 0.99, 1)))


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / SECOND
