"""What is to be played: a load, the versions of the jobs, the strategies, and what things cost. Only values.

`reading.py` reads one from a TOML file. Instants are milliseconds from the start of the play.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tasuki.values.instant import HOUR, Instant

Strategy: TypeAlias = Literal["always_on", "backlog", "backlog_protected", "task_per_job"]
STRATEGIES: tuple[Strategy, ...] = ("always_on", "backlog", "backlog_protected", "task_per_job")
SHOWN: Mapping[Strategy, str] = {
    "always_on": "always on",
    "backlog": "by backlog",
    "backlog_protected": "by backlog, protected",
    "task_per_job": "task per job",
}


@dataclass(frozen=True, slots=True)
class Duration:
    """How long jobs take: `fixed` (numbers: one), `uniform` (from, to), `lognormal` (p50, p95) or `list` (any of them).

    Milliseconds. What is drawn above `most_ms` is cut down to it.
    """

    kind: Literal["fixed", "uniform", "lognormal", "list"]
    numbers_ms: tuple[int, ...]
    most_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One engine version: its share of the jobs, how they go, and the task that runs it."""

    name: str
    share: float
    duration: Duration
    failure_rate: float
    """Of the tries; each try's failing is drawn by itself."""
    hopeless_rate: float
    """Of the jobs: those of which every try fails."""
    fails_after: float
    """After which part of its duration a try fails that fails."""
    vcpu: float
    memory_gb: float
    start_ms: int
    """From the order to start a task to its first instruction: placement, network, the pull of the image."""


@dataclass(frozen=True, slots=True)
class Given:
    """An arrival of a trace, with what of the job the trace says."""

    at: Instant
    version: str | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """How jobs arrive. `per_hour` are 24 rates, `weekdays` 7 factors (Monday first) for `poisson`."""

    arrivals: Literal["poisson", "bursts", "trace"]
    per_hour: tuple[float, ...] = ()
    weekdays: tuple[float, ...] = ()
    burst_size: float = 0
    burst_every_ms: int = 0
    burst_first_ms: int = 0
    trace: tuple[Given, ...] = ()


@dataclass(frozen=True, slots=True)
class Workers:
    """What workers do at their queue, those that are always on and those that are scaled."""

    poll_ms: int
    visibility_ms: int
    extend: bool
    """Whether a worker holds its message (ChangeMessageVisibility at half the timeout) for as long as it works."""
    receives: int
    """maxReceiveCount: a message that was received so often goes to the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class AlwaysOn:
    """A fleet of fixed size. `workers` by version, or None: the smallest that keeps the p95 wait under the target."""

    workers: Mapping[str, int] | None
    target_ms: int | None
    most: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """A fleet for each version that follows the messages that wait: wanted are waiting / `per_worker` workers."""

    per_worker: float
    least: int
    most: int
    every_ms: int
    out_after_ms: int
    """For how long more workers must have been wanted than there are, before some are started; `in_after_ms`: fewer, stopped."""
    in_after_ms: int
    out_cooldown_ms: int
    """For how long nothing is started after a start; `in_cooldown_ms`: nothing is stopped after either."""
    in_cooldown_ms: int
    protect: bool = False
    """Whether a worker is protected from scale-in while it has a job in hand (ECS: UpdateTaskProtection)."""


@dataclass(frozen=True, slots=True)
class TaskPerJob:
    """Queue, pipe, machine, one task per try. `tries` in all, with the machine's Retry between them."""

    tries: int
    retry_s: int
    backoff_rate: float
    full_retry_s: int
    """How long the machine waits before it asks again, when no task more may run (`limits.running_tasks`)."""
    aws_pollers: int
    """How many long polls AWS's Pipes keep open at the queue. Tasuki's wait for the bell."""


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for one unit, and where that is from."""

    dollars: float
    source: str


@dataclass(frozen=True, slots=True)
class Prices:
    """A price list."""

    region: str
    date: str
    vcpu_hour: Price
    gb_hour: Price
    least_task_s: int
    """What a task is charged for at least."""
    queue_million: Price
    transitions_thousand: Price
    pipe_million: Price


@dataclass(frozen=True, slots=True)
class Claim:
    """What the verdict and the sweep are about."""

    saving: float
    """The part of the fleet's cost that is said to be saved."""
    tolerance: float
    wait_ms: int
    """Waiting "has disappeared" if the p95 wait is no more than this above the start of a task."""

    @property
    def least_saving(self) -> float:
        """What is taken for "about" the saving that is claimed."""
        return self.saving - self.tolerance


@dataclass(frozen=True, slots=True)
class Sweep:
    """At which multiples of the load the claim is looked at, and for how many days each."""

    factors: tuple[float, ...]
    even_factors: tuple[float, ...]
    """The same for a load that is spread evenly over the day and the week."""
    days: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole file."""

    title: str
    seed: int
    days: float
    weekday: int
    """Of the first day; 0 is a Monday."""
    start: Instant
    load: Load
    versions: tuple[Version, ...]
    workers: Workers
    always_on: AlwaysOn | None
    backlog: Backlog | None
    task_per_job: TaskPerJob | None
    prices: Prices
    running_tasks: int
    claim: Claim
    sweep: Sweep | None = None
    backlog_protected: Backlog | None = None
    strategies: tuple[Strategy, ...] = field(default=STRATEGIES)

    @property
    def ends(self) -> Instant:
        """When the last job has arrived; what is left then is worked on."""
        return round(self.days * 24 * HOUR)

    def version(self, name: str) -> Version:
        """Answer the version of that name."""
        return next(one for one in self.versions if one.name == name)

    def times(self, factor: float, *, even: bool = False) -> "Plan":
        """Answer the same with so many times the jobs; `even`: spread evenly over the day and the week."""
        load = self.load
        rates, days = load.per_hour, load.weekdays
        if even and load.arrivals == "poisson":
            mean = sum(rates) / len(rates) * sum(days) / len(days)
            rates, days = (mean,) * 24, (1.0,) * 7
        return replace(
            self,
            load=replace(
                load,
                per_hour=tuple(rate * factor for rate in rates),
                weekdays=days,
                burst_size=load.burst_size * factor,
            ),
        )
