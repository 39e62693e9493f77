"""The commands of `tasuki clock`, and their options. What they do stands in `clock.py`."""

from typing import Annotated

import typer

from tasuki.cli.options import Data, Json

clock = typer.Typer(
    help="Move the clock of a node that was started with --clock manual.", no_args_is_help=True, rich_markup_mode=None
)
Patience = Annotated[
    float,
    typer.Option("--patience", min=0, help="Real seconds that a task that runs is waited for, before time goes on."),
]


@clock.command("show")
def clock_show(data: Data = None, as_json: Json = False) -> None:
    """Say what time it is in the house, and what is due next."""
    from tasuki.cli import clock as clocks
    from tasuki.cli import reach

    clocks.show(reach.find_node(data), as_json=as_json)


@clock.command("advance")
def clock_advance(
    by: Annotated[str, typer.Argument(metavar="DURATION", help="36h, 1d12h, 90 (seconds), PT36H ...")],
    patience: Patience = 60,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Move the clock on, stopping at everything that is due; come back when the house is at rest there."""
    from tasuki.cli import clock as clocks
    from tasuki.cli import reach

    clocks.advance(lambda: reach.find_node(data), by, patience, as_json=as_json)


@clock.command("set")
def clock_set(
    to: Annotated[str, typer.Argument(metavar="INSTANT", help="With its zone: 2026-10-10T01:00:00+09:00")],
    patience: Patience = 60,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Move the clock on to an instant, as advance does. Never back."""
    from tasuki.cli import clock as clocks
    from tasuki.cli import reach

    clocks.set_to(lambda: reach.find_node(data), to, patience, as_json=as_json)


@clock.command("run")
def clock_run(
    speed: Annotated[float, typer.Option("--speed", min=0, help="Seconds of house time in a real one.")] = 1,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Let house time flow, until `tasuki clock stop`. While a task runs it flows no faster than real time."""
    from tasuki.cli import clock as clocks
    from tasuki.cli import reach

    clocks.run(reach.find_node(data), speed, as_json=as_json)


@clock.command("stop")
def clock_stop(data: Data = None, as_json: Json = False) -> None:
    """Let a clock that runs stand still."""
    from tasuki.cli import clock as clocks
    from tasuki.cli import reach

    clocks.run(reach.find_node(data), 0, as_json=as_json)
