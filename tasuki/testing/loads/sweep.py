"""At which loads what is claimed of a task per job holds, and at which it does not: played at multiples of the load.

Twice at each multiple: as the file spreads the jobs over the day, and spread evenly. A fleet is sized for its busiest hour, so
how much of it stands idle on average is a matter of that, and with it how much is saved.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, TypeAlias

from tasuki.testing.loads import abreast
from tasuki.testing.loads.figures import Figures
from tasuki.testing.loads.jobs import draw_jobs
from tasuki.testing.loads.plan import Claim, Plan, Strategy
from tasuki.testing.loads.sizing import Tell, play
from tasuki.values.errors import ConfigError
from tasuki.values.instant import SECOND

Shape: TypeAlias = Literal["as given", "even"]
WORTH_IT = 2000
"""So many jobs in all points together pay for the start of more processes (about a second each)."""


@dataclass(frozen=True, slots=True)
class Point:
    """A multiple of the load, played. `saving` is None where no fleet within most_workers keeps the target."""

    factor: float
    shape: Shape
    jobs_per_day: float
    workers: int
    busy: float
    fleet_cost: float
    cost: float
    saving: float | None
    first_try_p95_s: float | None
    over_start_s: float | None
    """The p95 wait beyond the time that a task takes to start."""
    calls: float
    """Queue calls as AWS would charge them, as a part of the fleet's."""
    refused: int
    saves: bool
    waits_not: bool


def why_no_sweep(plan: Plan) -> str | None:
    """Answer what is missing for a sweep, or None."""
    if plan.sweep is None:
        return "the file has no [report.sweep]"
    if plan.always_on is None or plan.task_per_job is None:
        return "it compares always_on with task_per_job, and the file has not both"
    if plan.load.arrivals == "trace":
        return "a trace can't be multiplied"
    if plan.always_on.target_ms is None:
        return "give strategies.always_on.target_p95_wait_seconds, by which the fleets for other loads are sized"
    return None


def run_sweep(plan: Plan, tell: Tell, processes: int | None = None) -> list[Point]:
    """Play all points of a plan's sweep; none where there can't be one. All fleets are sized, whatever the file's size is.

    In so many processes; None: in as many as are worth it. The points are the same.
    """
    if why_no_sweep(plan) is not None:
        return []
    assert plan.sweep is not None
    assert plan.always_on is not None
    shapes: list[tuple[Shape, tuple[float, ...]]] = [("as given", plan.sweep.factors)]
    if plan.load.arrivals == "poisson":
        shapes.append(("even", plan.sweep.even_factors))
    short = replace(
        plan, days=plan.sweep.days, always_on=replace(plan.always_on, workers=None, most=10 * plan.always_on.most)
    )
    wanted = [
        (short.times(factor, even=shape == "even"), factor, shape) for shape, factors in shapes for factor in factors
    ]
    jobs = [len(draw_jobs(one)) for one, _, _ in wanted]
    if processes is None:
        processes = abreast.processors() if sum(jobs) >= WORTH_IT else 1
    both: Sequence[Strategy] = ("task_per_job", "always_on")
    played = abreast.each(_figures, [(one, strategy) for one, _, _ in wanted for strategy in both], processes)
    points = []
    for at, (one, factor, shape) in enumerate(wanted):
        tell(f"sweep {at + 1} of {len(wanted)}: {factor:g} times the load, {shape}, {jobs[at]:,} jobs")
        tasks, fleet = next(played), next(played)
        assert tasks is not None, "only a fleet may be too small"
        points.append(_point(one, factor, shape, tasks, fleet))
    return points


def _figures(given: tuple[Plan, Strategy]) -> Figures | None:
    """Play; answer None if no fleet that is allowed keeps the target."""
    try:
        return play(*given, lambda _: None, thorough=False)[0]
    except ConfigError:
        return None


def _point(plan: Plan, factor: float, shape: Shape, tasks: Figures, fleet: Figures | None) -> Point:
    over = over_start(plan, tasks)
    saving = saving_of(fleet, tasks) if fleet is not None else None
    return Point(
        factor=factor,
        shape=shape,
        jobs_per_day=round(tasks.jobs / plan.days, 1),
        workers=sum(fleet.workers.values()) if fleet is not None else 0,
        busy=fleet.busy if fleet is not None else 0.0,
        fleet_cost=fleet.cost if fleet is not None else 0.0,
        cost=tasks.cost,
        saving=saving,
        first_try_p95_s=tasks.first_tries.p95,
        over_start_s=over,
        calls=tasks.calls_on_aws / fleet.calls_on_aws if fleet is not None and fleet.calls_on_aws else 0.0,
        refused=tasks.refused,
        saves=saving is not None and saves(plan.claim, saving),
        waits_not=over is not None and over * SECOND <= plan.claim.wait_ms,
    )


def saving_of(fleet: Figures, tasks: Figures) -> float:
    """Answer which part of the fleet's cost is saved; negative if a task per job costs more."""
    return 1 - tasks.cost / fleet.cost if fleet.cost else 0.0


def saves(claim: Claim, saving: float) -> bool:
    """Tell whether so much is saved as is claimed, or about so much."""
    return saving >= claim.least_saving


def over_start(plan: Plan, tasks: Figures) -> float | None:
    """Answer how much longer than the start of a task jobs wait for their first try (p95, seconds; by the slowest start)."""
    slowest = max(one.start_ms for one in plan.versions) / SECOND
    return None if tasks.first_tries.p95 is None else max(0.0, tasks.first_tries.p95 - slowest)


def sentences(plan: Plan, points: Iterable[Point]) -> list[str]:
    """Say where the claim holds and where not, one sentence or two for each shape."""
    said = []
    for shape, group in groupby(points, key=lambda point: point.shape):
        ordered = sorted(group, key=lambda point: point.jobs_per_day)
        how = "spread over the day as in the file" if shape == "as given" else "spread evenly over the day"
        holding = [point for point in ordered if point.saves and point.waits_not]
        claim = f"about {plan.claim.saving:.0%} lower cost without waiting"
        if holding:
            said.append(f"{how}: {claim} holds from {_jobs(holding[0])} to {_jobs(holding[-1])}.")
        else:
            said.append(f"{how}: {claim} holds at none of these loads.")
        said += [f"{how}: {_why(plan.claim, point)}" for point in _first_failures(ordered, holding)]
        more = [point for point in ordered if point.calls > 1]
        if more:
            said.append(
                f"{how}: up to {_jobs(more[-1])} there are not fewer queue calls on AWS: there {more[-1].workers} workers poll less "
                "than a pipe's own pollers would."
            )
    return said


def _first_failures(ordered: list[Point], holding: list[Point]) -> list[Point]:
    """Answer the first point on either side of those at which it holds."""
    if not holding:
        return [ordered[0], ordered[-1]] if len(ordered) > 1 else ordered
    below = [point for point in ordered if point.jobs_per_day < holding[0].jobs_per_day]
    above = [point for point in ordered if point.jobs_per_day > holding[-1].jobs_per_day]
    return [*below[-1:], *above[:1]]


def _why(claim: Claim, point: Point) -> str:
    at = f"at {_jobs(point)} the claim does not hold:"
    if not point.waits_not:
        over = "no job ended" if point.over_start_s is None else f"p95 is {point.over_start_s:,.0f} s above the start"
        quota = f", since limits.running_tasks refused {point.refused:,} tasks" if point.refused else ""
        return f"{at} jobs wait again ({over}{quota})."
    if point.saving is None:
        return f"{at} no fleet of allowed size keeps the target, so there is nothing to compare with."
    busy = f"since a fleet of {point.workers} workers is busy for {point.busy:.0%} of its time there"
    if point.saving < 0:
        return f"{at} an always-on fleet is cheaper by {-point.saving:.0%}, {busy}."
    return f"{at} the saving is {point.saving:.1%}, below the {claim.least_saving:.0%} that count as about {claim.saving:.0%}, {busy}."


def _jobs(point: Point) -> str:
    return f"{point.jobs_per_day:,.0f} jobs a day"
