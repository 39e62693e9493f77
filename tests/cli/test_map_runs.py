"""`watch` on Distributed Maps, and on a Map Run itself."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasuki.cli.own_node import OwnNode
from tests.cli.conftest import ROLE, Command

pytestmark = pytest.mark.clients

WAITS = {
    "Type": "Task",
    "Resource": "arn:aws:states:::ecs:runTask.sync",
    "Parameters": {"TaskDefinition": "waits"},
    "End": True,
}
PICKY = {
    "Type": "Choice",
    "Choices": [{"Variable": "$", "NumericGreaterThan": 2, "Next": "Bad"}],
    "Default": "Good",
}
LEAVES = {"Bad": {"Type": "Fail", "Error": "TooBig", "Cause": "above two"}, "Good": {"Type": "Succeed"}}


def each(node: OwnNode, name: str, states: dict[str, Any], **more: Any) -> None:
    """Create a machine that does this with every item, each in an execution of its own."""
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Only",
        "States": states,
    }
    each = {"Type": "Map", "ItemProcessor": processor, "End": True, "MaxConcurrency": 1, **more}
    node.reach.client("stepfunctions").create_state_machine(
        name=name, definition=json.dumps({"StartAt": "Each", "States": {"Each": each}}), roleArn=ROLE
    )


def map_run(node: OwnNode, execution: str) -> str:
    return str(node.reach.client("stepfunctions").list_map_runs(executionArn=execution)["mapRuns"][0]["mapRunArn"])


def test_a_failed_map_run_tells_its_counts_and_who_failed_first(tasuki: Command, node: OwnNode) -> None:
    each(node, "picky", {"Only": PICKY, **LEAVES})
    done = tasuki("start", "picky", "--watch", "-i", "[1, 2, 3, 4]")
    assert done.returncode == 1
    assert "map run 2 of 4 items succeeded, 1 failed" in done.stdout
    [at] = [number for number, line in enumerate(done.stdout.splitlines()) if "first to fail" in line]
    said, child = done.stdout.splitlines()[at : at + 2]
    assert said.endswith("first to fail: TooBig: above two")
    assert ":execution:picky/" in child
    assert "TooBig" in tasuki("history", child.strip()).stdout, "the ARN is good for a look"

    run = map_run(node, done.stdout.splitlines()[0])
    alone = tasuki("watch", run)
    assert alone.returncode == 1
    assert alone.stdout.splitlines()[:2] == [run, "map run FAILED  2 of 4 items succeeded, 1 failed"]
    assert alone.stdout.splitlines()[2:] == [said, child]
    document = json.loads(tasuki("watch", run, "--json").stdout)
    assert (document["status"], document["itemCounts"]["failed"]) == ("FAILED", 1)
    history = tasuki("history", run)
    assert history.returncode == 1
    assert f"tasuki watch {run}" in history.stderr


def test_a_tolerated_failure_is_told_too(tasuki: Command, node: OwnNode) -> None:
    each(node, "patient", {"Only": PICKY, **LEAVES}, ToleratedFailureCount=1)
    done = tasuki("start", "patient", "--watch", "-i", "[1, 3, 2]")
    assert done.returncode == 0
    assert "map run 2 of 3 items succeeded, 1 failed" in done.stdout
    assert "first to fail: TooBig: above two" in done.stdout
    assert tasuki("watch", map_run(node, done.stdout.splitlines()[0])).returncode == 0


def test_a_map_run_is_seen_at_work(tasuki: Command, node: OwnNode, gate: Path) -> None:
    each(node, "slow", {"Only": WAITS})
    arn = tasuki("start", "slow", "-i", "[1]").stdout.strip()

    def follow(meant: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tasuki.cli.main", "watch", meant, "--data", str(node.data)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    watching = follow(arn)
    assert watching.stdout is not None
    assert any("map run 0 of 1 items succeeded, 1 running" in line for line in watching.stdout)
    alone = follow(map_run(node, arn))
    assert alone.stdout is not None
    assert any("map run RUNNING  0 of 1 items succeeded, 1 running" in line for line in alone.stdout)
    with gate.open("w") as opened:
        opened.write("go\n")
    assert "map run 1 of 1 items succeeded\n" in watching.communicate(timeout=30)[0]
    assert "map run SUCCEEDED  1 of 1 items succeeded\n" in alone.communicate(timeout=30)[0]
    assert (watching.returncode, alone.returncode) == (0, 0)
