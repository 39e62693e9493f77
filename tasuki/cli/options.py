"""How the values of options are read."""

from pathlib import Path

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
