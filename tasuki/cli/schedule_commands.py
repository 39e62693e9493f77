"""The commands of `tasuki schedule`, `rule` and `deliveries`, and their options. What they do stands in modules of these names."""

from typing import Annotated

import typer

from tasuki.cli.options import Data, Json

schedule = typer.Typer(
    help="Look at schedules: what is due next, and what became of it.", no_args_is_help=True, rich_markup_mode=None
)
rule = typer.Typer(help="Look at the rules of event buses.", no_args_is_help=True, rich_markup_mode=None)

Schedule = Annotated[str, typer.Argument(metavar="NAME", help="Name, GROUP/NAME or ARN.")]
Count = Annotated[int, typer.Option("--count", "-n", min=1, max=1_000, help="How many.")]


@schedule.command("ls", hidden=True)
@schedule.command("list")
def schedule_list(data: Data = None, as_json: Json = False) -> None:
    """List the schedules, each with its next planned time."""
    from tasuki.cli import reach, schedules

    schedules.ls(reach.find_node(data), as_json=as_json)


@schedule.command("show")
def schedule_show(name: Schedule, data: Data = None, as_json: Json = False) -> None:
    """Show a schedule: its definition, what is next, what is on its way, and what fired last."""
    from tasuki.cli import reach, schedules

    schedules.show(reach.find_node(data), name, as_json=as_json)


@schedule.command("next")
def schedule_next(
    *,
    wanted: Annotated[
        str,
        typer.Argument(
            metavar="NAME|EXPRESSION",
            help="A schedule; or cron(...), rate(...) or at(...), for which no node is needed.",
        ),
    ],
    zone: Annotated[str | None, typer.Option(help="Of an expression: its time zone, Asia/Tokyo. Default: UTC")] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="INSTANT", help="Of an expression: from when on, 2026-10-09T12:00:00+09:00. Default: now"),
    ] = None,
    count: Count = 10,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the next planned times of a schedule, or of an expression."""
    from tasuki.cli import reach, schedules

    if "(" in wanted or " " in wanted:
        schedules.coming_of_expression(wanted, zone or "UTC", count, after, as_json=as_json)
        return
    if zone is not None or after is not None:
        raise typer.BadParameter(
            "a schedule has a zone of its own, and is told of from now on", param_hint="--zone, --after"
        )
    schedules.coming(reach.find_node(data), wanted, count, as_json=as_json)


@schedule.command("past")
def schedule_past(name: Schedule, count: Count = 10, data: Data = None, as_json: Json = False) -> None:
    """List what a schedule handed over lately and each try that was refused, with the planned time."""
    from tasuki.cli import reach, schedules

    schedules.past(reach.find_node(data), name, count, as_json=as_json)


@rule.command("ls", hidden=True)
@rule.command("list")
def rule_list(
    bus: Annotated[str | None, typer.Option(help="Only this bus: name or ARN. Default: all")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the rules, with their targets."""
    from tasuki.cli import reach, rules

    rules.ls(reach.find_node(data), bus, as_json=as_json)


@rule.command("show")
def rule_show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name, BUS/NAME or ARN.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show a rule: its definition, its targets, what is on its way, and what it handed over last."""
    from tasuki.cli import reach, rules

    rules.show(reach.find_node(data), name, as_json=as_json)


@rule.command("past")
def rule_past(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name, BUS/NAME or ARN.")],
    count: Count = 10,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List what a rule handed over lately, each try that was refused, and what was dropped and why."""
    from tasuki.cli import reach, rules

    rules.past(reach.find_node(data), name, count, as_json=as_json)


def deliveries(
    source: Annotated[str | None, typer.Option(metavar="ARN", help="Only those of this schedule or rule.")] = None,
    target: Annotated[str | None, typer.Option(metavar="ARN", help="Only those to this target.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List what schedules and rules have posted and no target has taken yet, and why not."""
    from tasuki.cli import deliveries as listing
    from tasuki.cli import reach

    listing.ls(reach.find_node(data), source, target, as_json=as_json)
