"""How the values of options are read."""

from pathlib import Path
from typing import Annotated

import typer


def folder(text: str | Path) -> Path:
    """Read --data. An empty one comes of a variable that was never set, and would silently mean the folder we stand in."""
    if not str(text).strip():
        raise typer.BadParameter("it is empty; name a directory")
    return Path(text)


def url(text: str) -> str:
    """Read --store. An empty one comes of a variable that was never set, and would silently mean another store."""
    if not text.strip():
        raise typer.BadParameter("it is empty; name a database: postgresql://USER@HOST/DATABASE")
    return text


Place = Annotated[
    Path,
    typer.Option("--data", envvar="TASUKI_DATA", parser=folder, metavar="DIR", help="The node's data directory."),
]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="TASUKI_STORE",
        parser=url,
        metavar="URL",
        help="postgresql://USER@HOST/DATABASE. Default: as tasuki.toml in DIR says, else the file in DIR.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="TASUKI_DATA",
        parser=folder,
        metavar="DIR",
        help="The node's data directory. Default: the variables of `tasuki env`, else .tasuki",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON for programs, one document a line.")]
