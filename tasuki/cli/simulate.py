"""`simulate`: what a way to run jobs comes to, played under the manual clock; the table, the plot, and what to make of them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.values.errors import ConfigError

if TYPE_CHECKING:
    from tasuki.testing.loads import Figures, Plan, Point, Smaller, Strategy

PLOT_WIDTH, PLOT_HEIGHT = 78, 16
MARKERS: Mapping[str, str] = {"always_on": "=", "backlog": "+", "task_per_job": "#"}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says besides the file."""

    seed: int | None = None
    days: float | None = None
    strategies: tuple[str, ...] = ()
    sweep: bool = True
    as_json: bool = False


def simulate(file: Path, options: Options) -> Code:
    """Play a file and print its report. Raises `ConfigError` for a file that is wrong."""
    from tasuki.testing import loads

    for name in options.strategies:
        if name not in loads.STRATEGIES:
            known = ", ".join(loads.STRATEGIES)
            raise Complaint(f"there is no strategy {name}", Code.USAGE, hint=f"--strategy takes one of {known}")
    if options.days is not None and not 0 < options.days <= 60:
        raise Complaint(f"--days {options.days:g} can't be played", Code.USAGE, hint="give more than 0 and at most 60")
    plan = loads.read_plan(file, seed=options.seed, days=options.days, strategies=options.strategies)
    tell: Callable[[str], None] = (lambda _: None) if options.as_json else _tell
    played: dict[Strategy, Figures] = {}
    smaller: list[Smaller] = []
    try:
        for strategy in plan.strategies:
            played[strategy], shown = loads.play(plan, strategy, tell)
            smaller += shown
    except ConfigError as bad:
        raise ConfigError(f"{file}: {bad}") from None
    both = {"always_on", "task_per_job"} <= played.keys()
    points = loads.run_sweep(plan, tell) if options.sweep and both else []
    said = verdict(plan, played)
    holds = loads.sentences(plan, points)
    if options.as_json:
        screen.show_json(document(plan, played, smaller, points, [*said, *holds]))
        return Code.DONE
    _show(plan, played, smaller)
    for sentence in said:
        screen.line(f"- {sentence}")
    if points:
        _show_sweep(plan, points, holds)
    elif options.sweep and both and plan.sweep is not None:
        screen.line(f"\nNo sweep: {loads.why_no_sweep(plan)}.")
    return Code.DONE


def _tell(what: str) -> None:
    screen.line(f"playing {what}", sys.stderr)


def document(
    plan: "Plan",
    played: Mapping["Strategy", "Figures"],
    smaller: Sequence["Smaller"],
    points: Sequence["Point"],
    said: Sequence[str],
) -> dict[str, Any]:
    """Answer the whole report for programs."""
    prices = {
        name: {"dollars": one.dollars, "source": one.source}
        for name, one in (
            ("vcpu_hour", plan.prices.vcpu_hour),
            ("gb_hour", plan.prices.gb_hour),
            ("queue_million_requests", plan.prices.queue_million),
            ("machine_thousand_transitions", plan.prices.transitions_thousand),
            ("pipe_million_requests", plan.prices.pipe_million),
        )
    }
    return {
        "title": plan.title,
        "seed": plan.seed,
        "days": plan.days,
        "prices": {"region": plan.prices.region, "date": plan.prices.date, **prices},
        "strategies": [
            {**asdict(one), "calls_on_aws": one.calls_on_aws, "cost_to_always_on": _ratio(played, one)}
            for one in played.values()
        ],
        "smaller_fleets": [asdict(one) for one in smaller],
        "sweep": [asdict(one) for one in points],
        "verdict": list(said),
    }


# -- the table ------------------------------------------------------------------------------------------------------


def _show(plan: "Plan", played: Mapping["Strategy", "Figures"], smaller: Sequence["Smaller"]) -> None:
    versions = ", ".join(f"{one.name} {one.share:.0%}" for one in plan.versions)
    jobs = next(iter(played.values())).jobs
    screen.line(plan.title)
    screen.line(f"{jobs:,} jobs ({versions}) in {plan.days:g} days, seed {plan.seed}; the same jobs for each strategy.")
    screen.line(
        "Counted in the play, through Tasuki's own queues, pipes, machines and tasks. Worked out, marked *: money"
    )
    screen.line(
        f"(amount times list price, {plan.prices.region}, {plan.prices.date}) and the polls of AWS's own pipes.\n"
    )
    show_figures(played)
    for one in smaller:
        wait = "no wait that ends" if one.p95 is None else f"p95 wait {duration(one.p95)}"
        screen.line(f"Fleet: {one.workers} of {one.version} are too few ({wait}).")
    screen.line("")
    screen.line(plot(plan, played))
    screen.line("")


def show_figures(played: Mapping["Strategy", "Figures"]) -> None:
    """Print the table: a line for each figure, a column for each strategy."""
    lines: list[tuple[str, Callable[[Figures], str]]] = [
        ("workers", lambda one: ", ".join(f"{count} {name}" for name, count in one.workers.items()) or "-"),
        ("jobs", lambda one: f"{one.jobs:,}"),
        ("done", lambda one: f"{one.done:,}"),
        ("dead letters", lambda one: f"{one.dead_letters:,}"),
        ("not ended", lambda one: f"{one.unfinished:,}"),
        ("wait p50", lambda one: duration(one.waits.p50)),
        ("wait p95", lambda one: duration(one.waits.p95)),
        ("wait p99", lambda one: duration(one.waits.p99)),
        ("wait max", lambda one: duration(one.waits.most)),
        ("first try p95", lambda one: duration(one.first_tries.p95)),
        ("first try max", lambda one: duration(one.first_tries.most)),
        ("jobs an hour", lambda one: f"{one.jobs_per_hour:.2f}"),
        ("further tries", lambda one: f"{one.retries:,}"),
        ("tries that failed", lambda one: f"{one.failed_tries:,}"),
        ("jobs killed", lambda one: f"{one.killed:,}"),
        ("tasks refused", lambda one: f"{one.refused:,}"),
        ("task-seconds", lambda one: f"{one.task_s:,.0f}"),
        ("  useful", lambda one: f"{one.useful_s:,.0f}"),
        ("  starting", lambda one: f"{one.starting_s:,.0f}"),
        ("  idle", lambda one: f"{one.idle_s:,.0f}"),
        ("  wasted", lambda one: f"{one.wasted_s:,.0f}"),
        ("peak tasks", lambda one: f"{one.peak_tasks:,}"),
        ("queue calls", lambda one: f"{one.queue_calls:,}"),
        ("  empty receives", lambda one: f"{one.empty_receives:,}"),
        ("  on AWS *", lambda one: f"{one.calls_on_aws:,}"),
        ("state transitions", lambda one: f"{one.transitions:,}"),
        ("cost: tasks *", lambda one: money(one.costs["tasks"])),
        ("cost: queue *", lambda one: money(one.costs["queue"])),
        ("cost: machine *", lambda one: money(one.costs["machine"])),
        ("cost: pipe *", lambda one: money(one.costs["pipe"])),
        ("cost in all *", lambda one: money(one.cost)),
        ("to always on *", lambda one: _percent(_ratio(played, one))),
    ]
    names = _names()
    rows = [{"figure": name, **{names[key]: show(one) for key, one in played.items()}} for name, show in lines]
    screen.show_table(rows, ["figure", *(names[key] for key in played)], empty="nothing was played")


def _names() -> Mapping["Strategy", str]:
    from tasuki.testing.loads import SHOWN

    return SHOWN


def _ratio(played: Mapping["Strategy", "Figures"], one: "Figures") -> float | None:
    fleet = played.get("always_on")
    return one.cost / fleet.cost if fleet is not None and fleet.cost else None


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{part:.1%}"


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


# -- the plot -------------------------------------------------------------------------------------------------------


def plot(plan: "Plan", played: Mapping["Strategy", "Figures"]) -> str:
    """Draw how many tasks ran, hour by hour, for all strategies; in colour where somebody sits in front of it."""
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.theme("colorless" if not screen.interactive() else "simple")
    figure.plot_size(PLOT_WIDTH, PLOT_HEIGHT)
    figure.title("tasks, average of each hour")
    figure.label("days")
    names = _names()
    for key, one in played.items():
        days = [plan.days * (at + 0.5) / len(one.running) for at in range(len(one.running))]
        signal = figure.signal(days, one.running, marker=MARKERS[key])
        figure.draw(signal.lines().label(names[key]))
    drawn = str(figure.build())
    figure.clear()
    if not screen.interactive():
        drawn = cast("str", plotext.uncolorize(drawn))
    return "\n".join(line.rstrip() for line in drawn.splitlines())


# -- what to make of it ---------------------------------------------------------------------------------------------


def verdict(plan: "Plan", played: Mapping["Strategy", "Figures"]) -> list[str]:
    """Say whether what is claimed of a task per job holds at this load, and what scaling by backlog does to jobs."""
    said: list[str] = []
    fleet, scaled, tasks = played.get("always_on"), played.get("backlog"), played.get("task_per_job")
    if fleet is not None and tasks is not None:
        said += [_of_cost(plan, fleet, tasks), _of_waits(plan, fleet, tasks), _of_calls(fleet, tasks)]
    if scaled is not None and scaled.killed:
        part = scaled.wasted_s / scaled.task_s if scaled.task_s else 0
        said.append(
            f"Scaling by backlog killed running jobs {scaled.killed:,} times; {scaled.dead_letters:,} jobs ended as dead letters"
            f"{f' ({tasks.dead_letters:,} with a task per job)' if tasks is not None else ''}, and {part:.0%} of its task-seconds were wasted."
        )
    elif scaled is not None:
        said.append("Scaling by backlog killed no running job at this load.")
    names = _names()
    said += [
        f"{names[key]}: {one.unfinished:,} jobs had not ended a day after the last arrival; the waits leave them out."
        for key, one in played.items()
        if one.unfinished
    ]
    return said


def _of_cost(plan: "Plan", fleet: "Figures", tasks: "Figures") -> str:
    from tasuki.testing import loads

    saving = loads.saving_of(fleet, tasks)
    holds = "the claim holds" if loads.saves(plan.claim, saving) else "the claim does not hold"
    how = f"{saving:.0%} less" if saving >= 0 else f"{-saving:.0%} more"
    return (
        f"Cost: {money(tasks.cost)} for a task per job, {money(fleet.cost)} for a fleet that is busy for {fleet.busy:.0%} of its "
        f"time: {how}, claimed is about {plan.claim.saving:.0%}: {holds} at this load."
    )


def _of_waits(plan: "Plan", fleet: "Figures", tasks: "Figures") -> str:
    from tasuki.testing import loads

    over = loads.over_start(plan, tasks)
    if over is None:
        return "Waiting: no task of a task per job began, so nothing can be said."
    holds = "the claim holds" if over * 1000 <= plan.claim.wait_ms else "the claim does not hold"
    return (
        f"Waiting: with a task per job 95% of the first tries begin within {duration(tasks.first_tries.p95)}, {duration(over)} of it "
        f"beyond the start of a task: {holds}. With the fleet within {duration(fleet.first_tries.p95)} (half of them within "
        f"{duration(fleet.first_tries.p50)}, all within {duration(fleet.first_tries.most)}): an idle worker begins at once, a task never."
    )


def _of_calls(fleet: "Figures", tasks: "Figures") -> str:
    fewer = "fewer" if tasks.calls_on_aws < fleet.queue_calls else "not fewer"
    return (
        f"Queue calls: {tasks.queue_calls:,} against {fleet.queue_calls:,}, here, where an idle pipe makes none; on AWS "
        f"{tasks.calls_on_aws:,} *, with its pipes' own polls: {fewer}."
    )


def _show_sweep(plan: "Plan", points: Sequence["Point"], holds: Sequence[str]) -> None:
    assert plan.sweep is not None
    screen.line(f"\nThe claim at other loads, {plan.sweep.days:g} days each (each fleet sized for the same target):\n")
    rows = [
        {
            "load": f"{one.factor:g}x {one.shape}",
            "jobs a day": f"{one.jobs_per_day:,.0f}",
            "workers": one.workers or "-",
            "busy": _percent(one.busy if one.workers else None),
            "fleet": money(one.fleet_cost),
            "task per job": money(one.cost),
            "saving": _percent(one.saving),
            "first try p95": duration(one.first_try_p95_s),
            "calls on AWS *": _percent(one.calls),
            "holds": "yes" if one.saves and one.waits_not else "no",
        }
        for one in points
    ]
    screen.show_table(rows, list(rows[0]), empty="nothing was played")
    screen.line("")
    for sentence in holds:
        screen.line(f"- {sentence}")
