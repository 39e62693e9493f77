"""What the command line shows: tables for people, aligned text for pipes, JSON for programs."""

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from tasuki.values import documents

Row = Mapping[str, Any]


def interactive() -> bool:
    """Tell whether somebody sits in front of it."""
    return sys.stdout.isatty()


def show_json(value: Any, to: TextIO | None = None) -> None:
    """Print one document on one line."""
    line(documents.dumps(value), to)


def line(text: str, to: TextIO | None = None) -> None:
    """Print one line at once; a reader that went away (`| head`) is no error of ours."""
    print(text, file=to or sys.stdout, flush=True)


def show_table(rows: Sequence[Row], columns: Sequence[str], *, empty: str) -> None:
    """Print rows under their columns (`in_flight` reads "in flight"), or the sentence `empty` when there are none."""
    if not rows:
        line(empty)
        return
    cells = [[text_of(row.get(column)) for column in columns] for row in rows]
    heads = [column.replace("_", " ") for column in columns]
    if interactive():
        _rich_table(heads, cells)
        return
    widths = [max(len(head), *(len(row[at]) for row in cells)) for at, head in enumerate(heads)]
    for row in [heads, *cells]:
        line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _rich_table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(columns):
        numbers = all(row[at].replace(".", "").replace("-", "").isdigit() or not row[at] for row in cells)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell, style=colour_of(cell)) for cell in row))
    Console().print(table)


def text_of(value: Any) -> str:
    """Write a cell: nothing for None, local time for an instant, two decimals for a fraction."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)


_COLOURS = {
    "RUNNING": "cyan",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "TIMED_OUT": "red",
    "ABORTED": "yellow",
    "ok": "green",
    "no": "red",
    "limited": "yellow",
}


def colour_of(cell: str) -> str:
    """Answer the style of a word that is a state, else none."""
    return _COLOURS.get(cell, "")
