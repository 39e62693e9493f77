"""`deliveries`: what schedules and rules have posted and no target has taken yet, and why not."""

from typing import Any

from tasuki.cli import screen
from tasuki.cli.events import short
from tasuki.cli.reach import Reach
from tasuki.cli.schedules import list_deliveries, target_of

COLUMNS = ("from", "what", "to", "state", "tries", "next_try", "given_up", "error")


def ls(reach: Reach, source: str | None, target: str | None, *, as_json: bool) -> None:
    """List deliveries on their way, oldest first: all, or those of one source or to one target (ARNs)."""
    by = {name: arn for name, arn in (("SourceArn", source), ("TargetArn", target)) if arn is not None}
    found = list_deliveries(reach, **by)
    if as_json:
        screen.show_json(found)
        return
    screen.show_table([shown(one) for one in found], COLUMNS, empty="nothing is on its way")


def shown(one: dict[str, Any]) -> dict[str, Any]:
    """Answer the line of a delivery."""
    why = f"{one['Error']}: {one.get('Message', '')}" if one.get("Error") else ""
    turn = one.get("TurnAt")
    return {
        "from": target_of(one["SourceArn"]),
        "what": one.get("SourceId"),
        "to": target_of(one["TargetArn"]),
        "state": one["State"],
        "tries": f"{one['Attempts']} of {one['MaxAttempts']}",
        "next_try": f"waits for its turn at {turn} (rate)" if turn else one.get("NextTryAt"),
        "given_up": one.get("GivenUpAt"),
        "error": short(why),
    }
