"""`nodes`: who serves this house."""

from typing import Any

from tasuki.cli import screen
from tasuki.cli.reach import Reach

COLUMNS = ("node", "host", "url", "state", "tasks", "memory", "seen", "clock")
APART_MS = 1_000
"""A clock that differs from the database's by more is shown."""


def ls(reach: Reach, *, as_json: bool) -> None:
    """List the nodes: those that are there, those that are silent or given up, and those that were stopped."""
    rows = [_row(node) for node in listed(reach)]
    if as_json:
        screen.show_json(rows)
        return
    for row in rows:
        row["memory"] = f"{row['memory']} MiB"
        ahead = row["clock"]
        row["clock"] = "" if abs(ahead) <= APART_MS else f"{-ahead / 1000:+.1f} s"
    screen.show_table(rows, COLUMNS, empty="no node has joined yet")


def listed(reach: Reach) -> list[dict[str, Any]]:
    """Call ListNodes, an operation of the house's own."""
    from tasuki.cli.trace import call_house  # which shows tasks, and so knows this module

    nodes: list[dict[str, Any]] = call_house(reach, "ListNodes", {})["Nodes"]
    return nodes


def _row(node: dict[str, Any]) -> dict[str, Any]:
    return {
        "node": node["Id"],
        "host": node["Host"],
        "url": node["Url"],
        "state": node["State"],
        "tasks": node["Tasks"],
        "memory": node["MemoryMiB"],
        "seen": node.get("SeenAt"),
        "clock": node.get("ClockAheadMs", 0),
        "version": node.get("Version"),
    }
