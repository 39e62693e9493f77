"""The tables of `simulate`: what each line and each column is called, what it shows, and the legend that says what it is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tasuki.cli import screen

if TYPE_CHECKING:
    from tasuki.testing.loads import Figures, Plan, Point, Strategy

    Played: TypeAlias = Mapping[Strategy, Figures]


def money(dollars: float) -> str:
    """Write an amount, small ones with four decimals."""
    return f"${dollars:,.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}"


def duration(seconds: float | None) -> str:
    """Write a time in the unit that suits it."""
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def percent(part: float | None) -> str:
    """Write a part of something."""
    return "-" if part is None else f"{part:.1%}"


def ratio(played: "Played", one: "Figures") -> float | None:
    """Answer what a strategy costs, as a part of what the fleet that is always on costs; None if that was not played."""
    fleet = played.get("always_on")
    return one.cost / fleet.cost if fleet is not None and fleet.cost else None


def names() -> "Mapping[Strategy, str]":
    """Answer what the strategies are called."""
    from tasuki.testing.loads import SHOWN

    return SHOWN


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table of strategies."""

    name: str
    says: str
    show: "Callable[[Figures], str]"


LINES: tuple[Line, ...] = (
    Line(
        "workers",
        "of a fleet that is always on, by version; the other strategies have no fixed number",
        lambda one: ", ".join(f"{count} {name}" for name, count in one.workers.items()) or "-",
    ),
    Line("jobs", "that arrived", lambda one: f"{one.jobs:,}"),
    Line("done", "jobs of which a try succeeded", lambda one: f"{one.done:,}"),
    Line(
        "dead letters",
        "jobs that were given up: they failed or were killed too often",
        lambda one: f"{one.dead_letters:,}",
    ),
    Line(
        "not ended",
        "jobs that were neither done nor given up a day after the last arrival",
        lambda one: f"{one.unfinished:,}",
    ),
    Line(
        "wait p50",
        "half of the jobs that were done waited no longer, from arrival to the start of the try that succeeded",
        lambda one: duration(one.waits.p50),
    ),
    Line("wait p95", "95% of them", lambda one: duration(one.waits.p95)),
    Line("wait p99", "99% of them", lambda one: duration(one.waits.p99)),
    Line("wait max", "the longest of all", lambda one: duration(one.waits.most)),
    Line(
        "first try p50",
        "half of the jobs waited no longer, from arrival to the start of their first try",
        lambda one: duration(one.first_tries.p50),
    ),
    Line(
        "first try p95",
        "95% of them: what is waited for a worker or a task, and not for a try again",
        lambda one: duration(one.first_tries.p95),
    ),
    Line("first try max", "the longest of all", lambda one: duration(one.first_tries.most)),
    Line("jobs done an hour", "on average", lambda one: f"{one.jobs_per_hour:.2f}"),
    Line("further tries", "tries but the first of each job", lambda one: f"{one.retries:,}"),
    Line("tries that failed", "by themselves", lambda one: f"{one.failed_tries:,}"),
    Line("tries killed", "by scale-in, with their worker", lambda one: f"{one.killed:,}"),
    Line("tasks refused", "how often limits.running_tasks kept a task from starting", lambda one: f"{one.refused:,}"),
    Line(
        "task time, s",
        "seconds of all tasks, from the order to start one to its end: what is paid for",
        lambda one: f"{one.task_s:,.0f}",
    ),
    Line("  useful, s", "of it, the tries that did a job", lambda one: f"{one.useful_s:,.0f}"),
    Line("  starting, s", "before a task's first instruction", lambda one: f"{one.starting_s:,.0f}"),
    Line("  idle, s", "workers that had no job", lambda one: f"{one.idle_s:,.0f}"),
    Line(
        "  wasted, s", "tries that failed, were killed, or did again what was done", lambda one: f"{one.wasted_s:,.0f}"
    ),
    Line("peak tasks", "the most that there were at once", lambda one: f"{one.peak_tasks:,}"),
    Line("queue calls", "send, receive, delete and hold, as they were made here", lambda one: f"{one.queue_calls:,}"),
    Line("  empty receives", "of them, polls that found nothing", lambda one: f"{one.empty_receives:,}"),
    Line(
        "  as on AWS *",
        "queue calls, and the polls of AWS's own pipes besides: what AWS would charge",
        lambda one: f"{one.calls_on_aws:,}",
    ),
    Line("state transitions", "of the state machine's executions", lambda one: f"{one.transitions:,}"),
    Line("cost: tasks *", "dollars for task time, by the second begun", lambda one: money(one.costs["tasks"])),
    Line("cost: queue *", "for queue calls as on AWS", lambda one: money(one.costs["queue"])),
    Line("cost: machine *", "for state transitions", lambda one: money(one.costs["machine"])),
    Line("cost: pipe *", "for what passed the pipe", lambda one: money(one.costs["pipe"])),
    Line("cost in all *", "the sum of these", lambda one: money(one.cost)),
)
OF_ALWAYS_ON = "  of always on's *"


def show_figures(played: "Played") -> None:
    """Print the table: a line for each figure, a column for each strategy."""
    called = names()
    rows = [{"figure": one.name, **{called[key]: one.show(it) for key, it in played.items()}} for one in LINES]
    rows.append({"figure": OF_ALWAYS_ON, **{called[key]: percent(ratio(played, it)) for key, it in played.items()}})
    screen.show_table(rows, ["figure", *(called[key] for key in played)], empty="nothing was played")


SWEEP: Mapping[str, tuple[str, "Callable[[Point], str]"]] = {
    "load": ("multiple of the file's, spread over the day as there, or evenly", lambda one: f"{one.factor:g}x {one.shape}"),
    "jobs a day": ("on average of the days that the sweep plays", lambda one: f"{one.jobs_per_day:,.0f}"),
    "workers": ("of the smallest always-on fleet that keeps the target; -: none does", lambda one: f"{one.workers or '-'}"),
    "busy": ("part of that fleet's time that does jobs", lambda one: percent(one.busy if one.workers else None)),
    "always on *": ("its cost", lambda one: money(one.fleet_cost) if one.workers else "-"),
    "task per job *": ("the cost of a task per job", lambda one: money(one.cost)),
    "saving *": ("of a task per job, as a part of that fleet's cost; below 0 it costs more", lambda one: percent(one.saving)),
    "first try p95": ("of a task per job, as above", lambda one: duration(one.first_try_p95_s)),
    "queue calls, of always on's *": (
        "calls of a task per job, with AWS's own pipes' polls, as a part of the fleet's: above 100% they are more",
        lambda one: percent(one.calls if one.workers else None),
    ),
    "holds": ("yes: so much is saved as claimed, within the tolerance, and first tries (p95) wait for hardly more than a start", lambda one: "yes" if one.saves and one.waits_not else "no"),
}  # fmt: skip


def show_sweep(points: "Sequence[Point]") -> None:
    """Print the table of the sweep."""
    rows = [{name: show(one) for name, (_, show) in SWEEP.items()} for one in points]
    screen.show_table(rows, list(SWEEP), empty="nothing was played")


def about_sweep(plan: "Plan", points: "Sequence[Point]", jobs: int) -> Iterator[str]:
    """Say what the sweep's table is about: its days, its tolerance, and why its figures are not those of the table before."""
    assert plan.sweep is not None
    days, claim = plan.sweep.days, plan.claim
    first = DAYS[plan.weekday]
    which = f"one day ({first})" if days == 1 else f"{days:g} days from a {first} on"
    yield f"The claim at other loads: each is played for {which}, with an always-on fleet sized anew for the same target."
    yield (
        f'"holds": the saving is {claim.least_saving:.0%} or more ({claim.saving:.0%} claimed, tolerance {100 * claim.tolerance:g} points), and p95 '
        f"of first tries is within {claim.wait_ms / 1000:g} s of the start of a task."
    )
    same = next((one for one in points if one.factor == 1 and one.shape == "as given"), None)
    if same is not None and days != plan.days:
        yield (
            f'"1x as given" has {same.jobs_per_day:,.0f} jobs a day, and the table above {jobs / plan.days:,.0f} (all of its '
            f"{plan.days:g} days, by their weekdays): other days, another fleet, and so another saving."
        )


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def show_legend() -> None:
    """Print what each line and each column is."""
    width = max(len(name) for name in (*SWEEP, *(one.name for one in LINES)))
    screen.line("* worked out (amount times price, polls of AWS's own pipes); all else is counted in the play.\n")
    screen.line("A column for each strategy:")
    for name, says in STRATEGIES.items():
        screen.line(f"  {name.ljust(width)}  {says}")
    screen.line("\nA line for each figure:")
    for one in LINES:
        screen.line(f"  {one.name.ljust(width)}  {one.says}")
    screen.line(f"  {OF_ALWAYS_ON.ljust(width)}  cost in all, as a part of what the always-on fleet costs")
    screen.line("\nThe sweep, a line for each load:")
    for name, (says, _) in SWEEP.items():
        screen.line(f"  {name.ljust(width)}  {says}")


STRATEGIES: Mapping[str, str] = {
    "always on": "a queue and a fleet of fixed size for each version; workers poll",
    "by backlog": "the same, with as many workers as the backlog asks for; scale-in stops any of them",
    "by backlog, protected": "the same, but scale-in only ends workers without a job (UpdateTaskProtection)",
    "task per job": "one queue, a pipe, a state machine, and a task for each try",
}
