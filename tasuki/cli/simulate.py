"""`simulate`: what a way to run jobs comes to, played under the manual clock; the table, the plot, and what to make of them."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.simulate_table import about_sweep, duration, money, names, ratio, show_figures, show_sweep
from tasuki.values.errors import ConfigError

if TYPE_CHECKING:
    from tasuki.testing.loads import Figures, Plan, Point, Smaller, Strategy

PLOT_WIDTH, PLOT_HEIGHT = 78, 16
MARKERS: Mapping[str, str] = {"always_on": "=", "backlog": "+", "backlog_protected": "o", "task_per_job": "#"}


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
        _show_sweep(plan, points, holds, next(iter(played.values())).jobs)
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
        "claim": asdict(plan.claim),
        "strategies": [
            {**asdict(one), "calls_on_aws": one.calls_on_aws, "cost_to_always_on": ratio(played, one)}
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
        f"(amount times list price, {plan.prices.region}, {plan.prices.date}) and the polls of AWS's own pipes."
    )
    screen.line("What each line and column is: tasuki simulate --legend\n")
    show_figures(played)
    screen.line("")
    for one in smaller:
        wait = "no wait that ends" if one.p95 is None else f"p95 wait {duration(one.p95)}"
        screen.line(f"Fleet: {one.workers} of {one.version} are too few ({wait}).")
    screen.line("")
    screen.line(plot(plan, played))
    screen.line("")


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
    for key, one in played.items():
        days = [plan.days * (at + 0.5) / len(one.running) for at in range(len(one.running))]
        signal = figure.signal(days, one.running, marker=MARKERS[key])
        figure.draw(signal.lines().label(names()[key]))
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
    guarded = played.get("backlog_protected")
    if fleet is not None and tasks is not None:
        said += [_of_cost(plan, fleet, tasks), _of_waits(plan, fleet, tasks), _of_calls(fleet, tasks)]
    if scaled is not None and scaled.killed:
        part = scaled.wasted_s / scaled.task_s if scaled.task_s else 0
        said.append(
            f"Scaling by backlog without protection killed running jobs {scaled.killed:,} times; {scaled.dead_letters:,} jobs ended as dead letters"
            f"{f' ({tasks.dead_letters:,} with a task per job)' if tasks is not None else ''}, and {part:.0%} of its task-seconds were wasted."
        )
    elif scaled is not None:
        said.append("Scaling by backlog without protection killed no running job at this load.")
    if guarded is not None:
        said += _of_protection(plan, scaled, guarded, tasks)
    said += [
        f"{names()[key]}: {one.unfinished:,} jobs had not ended a day after the last arrival; the waits leave them out."
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
        f"time: {how}, claimed is about {plan.claim.saving:.0%} ({plan.claim.least_saving:.0%} will do): {holds} at this load."
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


def _of_protection(
    plan: "Plan", scaled: "Figures | None", guarded: "Figures", tasks: "Figures | None"
) -> Iterator[str]:
    """Say what protection from scale-in is worth, and what of a task per job it does not give."""
    what = "Scaling by backlog with protection (UpdateTaskProtection, from before a worker asks until it finds nothing)"
    if scaled is not None:
        yield (
            f"{what} killed {guarded.killed:,} tries instead of {scaled.killed:,}, and left {guarded.dead_letters:,} dead letters "
            f"instead of {scaled.dead_letters:,}: who scales by backlog wants it."
        )
    else:
        yield f"{what} killed {guarded.killed:,} tries and left {guarded.dead_letters:,} dead letters."
    if tasks is None or not tasks.cost or guarded.first_tries.p95 is None or tasks.first_tries.p95 is None:
        return
    part = guarded.cost / tasks.cost - 1
    late = guarded.first_tries.p95 > tasks.first_tries.p95
    rule = plan.backlog_protected
    assert rule is not None, "it was played"
    yield (
        f"Against a task per job it costs {abs(part):.0%} {'more' if part >= 0 else 'less'} ({money(guarded.cost)}, {money(tasks.cost)}: its "
        f"workers are busy for {guarded.busy:.0%} of their time). Half of its first tries begin within "
        f"{duration(guarded.first_tries.p50)} (task per job {duration(tasks.first_tries.p50)}: an idle worker needs no start), 95% within "
        f"{duration(guarded.first_tries.p95)} ({duration(tasks.first_tries.p95)}{': jobs wait until it has scaled' if late else ''})."
    )
    versions = len(plan.versions)
    queues = (
        f"a queue, a fleet and a rule for each of {versions} versions"
        if versions > 1
        else "a queue, a fleet and a rule"
    )
    always = f", {rule.least} always on in each" if rule.least and versions > 1 else ""
    yield (
        f"It also takes {queues}{always}, and code in each worker that polls, holds its message, deletes it, and sets and lifts "
        "its protection; a task per job is told its job and ends."
    )


def _of_calls(fleet: "Figures", tasks: "Figures") -> str:
    fewer = "fewer" if tasks.calls_on_aws < fleet.queue_calls else "not fewer"
    return (
        f"Queue calls: {tasks.queue_calls:,} against {fleet.queue_calls:,}, here, where an idle pipe makes none; on AWS "
        f"{tasks.calls_on_aws:,} *, with its pipes' own polls: {fewer}."
    )


def _show_sweep(plan: "Plan", points: Sequence["Point"], holds: Sequence[str], jobs: int) -> None:
    screen.line("")
    for sentence in about_sweep(plan, points, jobs):
        screen.line(sentence)
    screen.line("")
    show_sweep(points)
    screen.line("")
    for sentence in holds:
        screen.line(f"- {sentence}")
