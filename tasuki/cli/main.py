"""The commands and their options. What they do stands in the modules beside this one."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import click
import typer

from tasuki.cli.clock_commands import clock
from tasuki.cli.complaints import Code, Complaint, complaint_of
from tasuki.cli.options import Data, Json, Place, StoreUrl, folder, url
from tasuki.cli.queue_commands import queue
from tasuki.cli.schedule_commands import deliveries, rule, schedule

app = typer.Typer(
    name="tasuki",
    help="Event-driven batch pipelines with the AWS APIs, as one durable program.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # importing rich for the help alone would triple the time it takes
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _group, _name in ((queue, "queue"), (schedule, "schedule"), (rule, "rule"), (clock, "clock")):
    app.add_typer(_group, name=_name)


Execution = Annotated[
    str | None, typer.Argument(help="ARN, MACHINE:NAME, name, or a machine: its latest. Left out: the latest of all.")
]


def _version(wanted: bool) -> None:
    if wanted:
        from tasuki import __version__

        typer.echo(f"tasuki {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


@app.command()
def up(
    *,
    data: Annotated[
        Path,
        typer.Option("--data", envvar="TASUKI_DATA", parser=folder, metavar="DIR", help="Where everything is kept."),
    ] = Path(".tasuki"),
    port: Annotated[int, typer.Option(help="The port to listen at.")] = 4566,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    dev: Annotated[bool, typer.Option("--dev", help="Accept the key test/test. Loopback only.")] = False,
    config: Annotated[Path | None, typer.Option(help="Settings and images. Default: DIR/tasuki.toml")] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            envvar="TASUKI_STORE",
            parser=url,
            metavar="URL",
            help="Keep everything in PostgreSQL, shared with other nodes: postgresql://USER@HOST/DATABASE. Default: a file in DIR. "
            "A password is better given by TASUKI_STORE, PGPASSWORD or ~/.pgpass: command lines can be read by others.",
        ),
    ] = None,
    clock: Annotated[
        str,
        typer.Option(
            metavar="real|manual",
            help="manual: time stands still in this house until it is moved, by tasuki clock. See docs/CLOCK.md.",
        ),
    ] = "real",
    as_json: Json = False,
) -> None:
    """Start a node. Prints one line when it is ready; Ctrl-C or SIGTERM ends it, and nothing is lost."""
    from tasuki.cli import node

    raise typer.Exit(node.up(data, config, store, host=host, port=port, dev=dev, clock=clock, as_json=as_json))


@app.command()
def env(data: Data = None, as_json: Json = False) -> None:
    """Print exports that point AWS clients, and later commands, at the node.

    For boto3, the AWS CLI, SAM, CDK and Terraform: eval $(tasuki env). Waits for a node that is just starting.
    """
    from tasuki.cli import node, reach

    try:
        node.env(reach.find_node(data, patience_s=reach.SIGN_WITHIN_S), as_json=as_json)
    except Complaint:
        if not as_json:
            node.refuse_env()
        raise


@app.command()
def demo(
    *,
    name: Annotated[str, typer.Argument(help="The story to play.")] = "dispatch",
    crash: Annotated[bool, typer.Option("--crash", help="Kill the node with SIGKILL while two tasks run.")] = False,
    jobs: Annotated[int, typer.Option(min=6, max=100, help="How many jobs.")] = 8,
    seconds: Annotated[int, typer.Option(min=1, max=600, help="How long each job searches.")] = 5,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the data directory for a look.")] = False,
    as_json: Json = False,
) -> None:
    """Play a story end to end, and check it.

    It runs on a node of its own, in a folder of its own.
    """
    from tasuki.cli import stories

    options = stories.Options(crash=crash, jobs=jobs, seconds=seconds, keep=keep, as_json=as_json)
    raise typer.Exit(stories.play(name, options))


@app.command()
def start(
    *,
    machine: Annotated[str, typer.Argument(help="Name, ARN, MACHINE:ALIAS or MACHINE:VERSION.")],
    text: Annotated[str, typer.Option("--input", "-i", help="JSON, or @FILE.")] = "{}",
    name: Annotated[str | None, typer.Option(help="The execution's name.")] = None,
    follow: Annotated[bool, typer.Option("--watch", "-w", help="Follow it until it ends.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Start an execution."""
    from tasuki.cli import executions, pages, reach

    node = reach.find_node(data)
    if follow and pages.is_express(node, machine):
        raise typer.Exit(executions.run_express(node, machine, text, name, as_json=as_json))
    arn = executions.start(node, machine, text, name, as_json=as_json)
    if follow:
        raise typer.Exit(executions.watch(node, arn, as_json=as_json, named=True))


@app.command()
def watch(execution: Execution = None, data: Data = None, as_json: Json = False) -> None:
    """Follow an execution live; exit code 1 if it does not succeed."""
    from tasuki.cli import executions, reach

    raise typer.Exit(executions.watch(reach.find_node(data), execution, as_json=as_json))


@app.command()
def history(execution: Execution = None, data: Data = None, as_json: Json = False) -> None:
    """Print everything that an execution did."""
    from tasuki.cli import executions, reach

    executions.history(reach.find_node(data), execution, as_json=as_json)


@app.command()
def ps(
    stopped: Annotated[bool, typer.Option("--all", "-a", help="Also those that ended lately.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the tasks that run."""
    from tasuki.cli import reach, tasks

    tasks.ps(reach.find_node(data), stopped=stopped, as_json=as_json)


@app.command()
def logs(
    task: Annotated[str, typer.Argument(help="ARN, id, or the first characters of the id.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Print what a task wrote."""
    from tasuki.cli import reach, tasks

    tasks.logs(reach.find_node(data), task, following=follow, as_json=as_json)


@app.command()
def pipes(data: Data = None, as_json: Json = False) -> None:
    """List the pipes: what they do, why they stopped, and what became of their messages."""
    from tasuki.cli import pipes as listing
    from tasuki.cli import reach

    listing.ls(reach.find_node(data), as_json=as_json)


app.command()(deliveries)


@app.command()
def nodes(data: Data = None, as_json: Json = False) -> None:
    """List the nodes that serve this house: where they are, their state and tasks, and clocks that are wrong."""
    from tasuki.cli import nodes as listing
    from tasuki.cli import reach

    listing.ls(reach.find_node(data), as_json=as_json)


@app.command()
def trace(
    wanted: Annotated[
        str,
        typer.Argument(metavar="ID", help="A message's or event's id, a correlation id, an execution, a task's ARN."),
    ],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show what became of a message, or where an execution came from."""
    from tasuki.cli import reach
    from tasuki.cli import trace as tracing

    tracing.trace(reach.find_node(data), wanted, as_json=as_json)


@app.command()
def lint(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Definitions and requests in JSON, templates in JSON or YAML, Terraform; - reads standard input.",
        ),
    ],
    pipe_target: Annotated[
        bool, typer.Option("--pipe-target", help="A pipe starts the machine: nobody sees an execution fail.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what is wrong with state machine definitions, schedules, rules and pipes, before they run.

    What AWS would refuse or warn of, and what it would not. Exit code 1 if there is something. Needs no node.
    """
    from tasuki.cli import lint as linting

    raise typer.Exit(linting.check(files, pipe_target=pipe_target, as_json=as_json))


def _legend(wanted: bool) -> None:
    if wanted:
        from tasuki.cli import simulate_table

        simulate_table.show_legend()
        raise typer.Exit


@app.command()
def simulate(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What is played: docs/SIMULATE.md.")],
    seed: Annotated[int | None, typer.Option(min=0, help="Other jobs of the same kind. Default: the file's.")] = None,
    days: Annotated[float | None, typer.Option(help="How many days are played. Default: the file's.")] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only these: always_on, backlog, backlog_protected, task_per_job."),
    ] = None,
    no_sweep: Annotated[bool, typer.Option("--no-sweep", help="Leave out the table of other loads.")] = False,
    legend: Annotated[
        bool,
        typer.Option(
            "--legend", callback=_legend, is_eager=True, help="Only say what the report's lines and columns are."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Play a load through the house, for workers and for a task per job: waits, failures, cost. Needs no node."""
    from tasuki.cli import simulate as simulation

    del legend
    options = simulation.Options(seed, days, tuple(strategy or ()), sweep=not no_sweep, as_json=as_json)
    raise typer.Exit(simulation.simulate(file, options))


@app.command()
def doctor(
    data: Annotated[
        Path,
        typer.Option(
            "--data", envvar="TASUKI_DATA", parser=folder, metavar="DIR", help="Where a node would keep its data."
        ),
    ] = Path(".tasuki"),
    port: Annotated[int, typer.Option(help="The port a node would listen at.")] = 4566,
    store: Annotated[
        bool, typer.Option("--store", help="Look at the store instead: its health, and what waits.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="With --store: which one. Default: TASUKI_STORE, as tasuki.toml in DIR says, else the file in DIR.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what this machine can do; with --store, how the store is doing.

    Exit code 1 if a node could not run, or something is wrong with the store.
    """
    from tasuki.cli import doctor as examination

    if store or url is not None:
        raise typer.Exit(examination.examine_store(data, url, as_json=as_json))
    raise typer.Exit(examination.examine(data, port, as_json=as_json))


@app.command()
def backup(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where it is written.")],
    data: Place = Path(".tasuki"),
    store: StoreUrl = None,
    with_credentials: Annotated[
        bool, typer.Option("--with-credentials", help="Also the owner's key: who has the file may then sign.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")] = False,
    as_json: Json = False,
) -> None:
    """Write everything that is durable into one file, while nodes run. For either store."""
    from tasuki.cli import backups

    backups.back_up(file, data, store, with_credentials=with_credentials, force=force, as_json=as_json)


@app.command()
def restore(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
    data: Data = None,
    store: StoreUrl = None,
    force: Annotated[bool, typer.Option("--force", help="Replace all that is there.")] = False,
    tasks_ended: Annotated[
        bool,
        typer.Option("--tasks-ended", help="Tasks that ran when it was made, and not in DIR, run no more: retry them."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Fill an empty store from a backup, whichever store it was made of. No node may run there."""
    from tasuki.cli import backups

    backups.restore(file, data, store, force=force, tasks_ended=tasks_ended, as_json=as_json)


def main() -> None:
    """Run a command; end with one of the exit codes of `complaints.py`."""
    sys.exit(_guarded(app))


def _guarded(run: Callable[..., int | None]) -> int:
    try:
        return run(standalone_mode=False) or Code.DONE
    except (KeyboardInterrupt, click.Abort):
        return Code.INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; what is still buffered has nowhere to go.
        sys.stdout = Path("/dev/null").open("w")  # noqa: SIM115 - until the process ends, which is now
        return Code.DONE
    except click.ClickException as wrong:
        if not _wants_json():
            wrong.show()
            return wrong.exit_code
        complaint: Complaint | None = Complaint(wrong.format_message(), Code.USAGE)
    except Exception as error:
        complaint = complaint_of(error)
        if complaint is None:
            raise
    assert complaint is not None
    _complain(complaint)
    return complaint.code


def _wants_json() -> bool:
    return "--json" in sys.argv[1:]


def _complain(complaint: Complaint) -> None:
    """Tell it on standard error: in words, or with --json as one document. Standard output holds results only."""
    if _wants_json():
        from tasuki.cli import screen

        screen.show_json({"error": complaint.document}, sys.stderr)
        return
    typer.echo(f"tasuki: {complaint.text}", err=True)
    for line in complaint.hint.splitlines():
        typer.echo(f"        {line}", err=True)


if __name__ == "__main__":
    main()
