"""`deliveries` against a real node: what can't be delivered is told of, with its reason."""

import pytest

from tasuki.cli.deliveries import shown
from tasuki.cli.own_node import OwnNode
from tests.cli.conftest import Command, decoded
from tests.cli.test_schedules import make


def test_a_call_that_waits_for_its_turn_says_until_when() -> None:
    told = {
        "SourceArn": "arn:aws:events:us-east-1:000000000000:rule/r",
        "TargetArn": "arn:aws:events:us-east-1:000000000000:api-destination/hook/1",
        "State": "CALLING",
        "Attempts": 1,
        "MaxAttempts": 186,
        "TurnAt": "2026-10-10T01:00:00.000Z",
    }
    assert shown(told)["next_try"] == "waits for its turn at 2026-10-10T01:00:00.000Z (rate)"
    later = {**told, "State": "WAITING", "TurnAt": None, "NextTryAt": "2026-10-10T02:00:00.000Z"}
    assert shown(later)["next_try"] == "2026-10-10T02:00:00.000Z"


@pytest.mark.clients
def test_what_is_stuck_and_why(tasuki: Command, node: OwnNode) -> None:
    missing = "arn:aws:sqs:us-east-1:000000000000:not-there"
    arn = make(node, "stuck", "rate(1 hour)", to=missing)

    def found() -> list[dict[str, object]]:
        told = decoded(tasuki("deliveries", "--source", arn, "--json"))
        return [one for one in told if one.get("Error")]

    while not (rows := found()):
        pass  # the node tries it meanwhile, and pytest's timeout ends this
    (row,) = rows
    assert (row["SourceArn"], row["TargetArn"], row["MaxAttempts"]) == (arn, missing, 186)
    line = next(line for line in tasuki("deliveries").stdout.splitlines() if "not-there" in line)
    assert line.startswith("scheduler:schedule/default/stuck ")
    assert " of 186 " in line
    assert "NonExistentQueue" in line
    assert "on its way" in tasuki("schedule", "show", "stuck").stdout
    assert decoded(tasuki("deliveries", "--target", missing, "--json"))
    assert tasuki("deliveries", "--target", f"{missing}-either").stdout == "nothing is on its way\n"
