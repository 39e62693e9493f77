"""`pipes`: every pipe, its state with the reason, and what became of its messages."""

from typing import Any

from tasuki.cli import screen
from tasuki.cli.events import short
from tasuki.cli.pages import every
from tasuki.cli.reach import Reach
from tasuki.cli.trace import call_house

COLUMNS = ("pipe", "from", "to", "state", "delivered", "duplicates", "filtered", "failed", "reason")


def ls(reach: Reach, *, as_json: bool) -> None:
    """List the pipes. `reason`: why one stopped, or its last failure while it keeps trying."""
    counted = {one["Name"]: one for one in call_house(reach, "ListPipeCounters", {})["Pipes"]}
    rows = [_row(pipe, counted.get(pipe["Name"], {})) for pipe in every(reach, "pipes", "list_pipes", "Pipes")]
    if as_json:
        screen.show_json(rows)
        return
    for row in rows:
        row["reason"] = short(row["reason"])
        if row["state"] != row["desired"]:
            row["state"] += f", to be {row['desired']}"
    screen.show_table(rows, COLUMNS, empty="no pipe yet; make one with CreatePipe")


def _row(pipe: dict[str, Any], counted: dict[str, Any]) -> dict[str, Any]:
    return {
        "pipe": pipe["Name"],
        "from": str(pipe["Source"]).rpartition(":")[2],
        "to": str(pipe["Target"]).split(":", 5)[-1].removeprefix("stateMachine:"),
        "state": pipe["CurrentState"],
        "desired": pipe["DesiredState"],
        "delivered": counted.get("Delivered", 0),
        "duplicates": counted.get("Duplicates", 0),
        "filtered": counted.get("Filtered", 0),
        "failed": counted.get("Failed", 0),
        "reason": pipe.get("StateReason"),
    }
