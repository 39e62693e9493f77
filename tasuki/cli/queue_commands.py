"""The commands of `tasuki queue`, and their options. What they do stands in `queues.py`."""

from typing import Annotated

import typer

from tasuki.cli.options import Data, Json

queue = typer.Typer(help="Look at queues and their messages.", no_args_is_help=True, rich_markup_mode=None)
Queue = Annotated[str, typer.Argument(help="Name, URL or ARN.")]


@queue.command("list", hidden=True)
@queue.command("ls")
def queue_ls(data: Data = None, as_json: Json = False) -> None:
    """List the queues and how full they are."""
    from tasuki.cli import queues, reach

    queues.ls(reach.find_node(data), as_json=as_json)


@queue.command("show")
def queue_show(name: Queue, data: Data = None, as_json: Json = False) -> None:
    """Show a queue's attributes."""
    from tasuki.cli import queues, reach

    queues.show(reach.find_node(data), name, as_json=as_json)


@queue.command("send")
def queue_send(
    name: Queue,
    body: Annotated[str, typer.Argument(help="The message, or @FILE.")],
    delay: Annotated[int, typer.Option(help="Seconds before it can be received.")] = 0,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Send one message."""
    from tasuki.cli import queues, reach

    queues.send(reach.find_node(data), name, body, delay, as_json=as_json)


@queue.command("receive")
def queue_receive(
    *,
    name: Queue,
    count: Annotated[int, typer.Option("--max", min=1, help="At most so many messages.")] = 10,
    hide: Annotated[int, typer.Option(help="Keep them invisible for so many seconds; 0 gives them back at once.")] = 0,
    delete: Annotated[bool, typer.Option("--delete", help="Delete what was received.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show messages. It is a receive like any other: it counts towards a redrive policy."""
    from tasuki.cli import queues, reach

    queues.receive(reach.find_node(data), name, count, hide, delete=delete, as_json=as_json)


@queue.command("purge")
def queue_purge(
    name: Queue,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Delete every message of a queue."""
    from tasuki.cli import queues, reach

    if not yes:
        queues.ask_to_purge(name)
    queues.purge(reach.find_node(data), name, as_json=as_json)
