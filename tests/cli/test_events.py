"""Histories put into words, from a real node's histories."""

import json

import pytest

from tasuki.cli.causes import put_into_words
from tasuki.cli.events import Teller, short
from tasuki.cli.own_node import OwnNode
from tests.cli.conftest import ROLE, Command

pytestmark = pytest.mark.clients

BOTH = {
    "Type": "Parallel",
    "End": True,
    "Branches": [
        {"StartAt": "Left", "States": {"Left": {"Type": "Pass", "End": True}}},
        {
            "StartAt": "Right",
            "States": {
                "Right": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::sqs:sendMessage",
                    "Parameters": {"QueueUrl.$": "$.queue", "MessageBody": "x"},
                    "End": True,
                }
            },
        },
    ],
}
TREE = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "ItemProcessor": {"StartAt": "Both", "States": {"Both": BOTH}},
            "Next": "After",
        },
        "After": {"Type": "Pass", "End": True},
    },
}


def test_iterations_and_branches_are_named_and_documents_shown_once(tasuki: Command, node: OwnNode) -> None:
    url = node.reach.client("sqs").create_queue(QueueName="of-the-tree")["QueueUrl"]
    node.reach.client("stepfunctions").create_state_machine(name="tree", definition=json.dumps(TREE), roleArn=ROLE)
    done = tasuki("start", "tree", "--watch", "-i", json.dumps([{"queue": url, "n": n} for n in (1, 2)]))
    assert done.returncode == 0, done.stdout
    # Seconds, mark, place, what happened.
    told = [tuple(line.split(maxsplit=3)[1:4]) for line in done.stdout.splitlines()[1:]]
    seen = {(mark, place): what for mark, place, what in told}
    for index in (0, 1):
        assert seen["|", f"Each[{index}]"] == "iteration succeeded"
        assert seen["+", f"Each[{index}]/Both"] == "succeeded"
        assert seen["<", f"Each[{index}]/Both"].startswith("exited  [")
        assert seen[">", f"Each[{index}]/Both[0]/Left"].startswith("entered (Pass)")
        assert seen["|", f"Each[{index}]/Both[1]/Right"].startswith("sqs:sendMessage")
    assert seen[">", "After"].startswith("entered (Pass)")
    item = json.dumps({"queue": url, "n": 1}, separators=(",", ":"))
    lines = [line for line in done.stdout.splitlines() if "Each[0]" in line]
    assert len([line for line in lines if line.endswith(item)]) == 1
    assert any(line.endswith("… (as above)") for line in lines)


BAD = {"Type": "Pass", "Output": "{% $nope + 'a' %}", "End": True}
"""Its expression fails."""
FINE = {"Type": "Pass", "End": True}
INNER = {"StartAt": "B", "States": {"B": BAD}}
TOO = "{% 1 + 'a' %}"


@pytest.mark.parametrize(
    ("name", "states", "told"),
    [
        ("first", {"A": BAD}, ["A"]),
        ("second", {"A": {"Type": "Pass", "Next": "B"}, "B": BAD}, ["B"]),
        (
            "in-a-map",
            {"A": {"Type": "Map", "Items": [1, 2], "ItemProcessor": INNER, "End": True}},
            ["A[0]/B", "A[0]", "A[1]", "A"],
        ),
        ("of-a-map", {"A": {"Type": "Map", "Items": TOO, "ItemProcessor": INNER, "End": True}}, ["A", "A"]),
        (
            "in-a-parallel",
            {
                "A": {
                    "Type": "Parallel",
                    "Branches": [{"StartAt": "L", "States": {"L": FINE}}, INNER],
                    "End": True,
                }
            },
            ["A[1]/B", "A"],
        ),
        (
            "of-a-parallel",
            {
                "A": {
                    "Type": "Parallel",
                    "Output": TOO,
                    "Branches": [{"StartAt": "L", "States": {"L": FINE}}],
                    "End": True,
                }
            },
            ["A"],
        ),
    ],
)
def test_a_failed_expression_is_told_of_its_own_state(
    tasuki: Command, node: OwnNode, name: str, states: dict[str, object], told: list[str]
) -> None:
    definition = json.dumps({"QueryLanguage": "JSONata", "StartAt": "A", "States": states})
    node.reach.client("stepfunctions").create_state_machine(name=f"jsonata-{name}", definition=definition, roleArn=ROLE)
    arn = tasuki("start", f"jsonata-{name}").stdout.strip()
    done = tasuki("watch", arn)
    failed = [line.split()[2] for line in done.stdout.splitlines() if line.split()[1:2] == ["x"]]
    assert failed[: len(told)] == told
    looked = tasuki("history", arn).stdout.splitlines()
    assert [line.split()[3] for line in looked if line.split()[2] == "x"] == failed


def test_a_history_that_was_redriven_reads_on(tasuki: Command, node: OwnNode) -> None:
    arn = tasuki("start", "fails").stdout.strip()
    tasuki("watch", arn)
    node.reach.client("stepfunctions").redrive_execution(executionArn=arn)
    done = tasuki("watch", arn)
    assert done.returncode == 1
    assert [line.split()[3] for line in done.stdout.splitlines() if " = " in line] == [
        "started",
        "FAILED",
        "redriven",
        "FAILED",
    ]


def test_events_that_nobody_foresaw_are_words_too() -> None:
    said = Teller().said({"type": "MapRunStarted", "id": 3, "previousEventId": 2, "mapRunStartedEventDetails": {}})
    assert said.verb == "run started"
    assert Teller().said({"type": "NeverSeenBefore", "id": 1}).text.split() == ["|", "never", "seen", "before"]


def test_causes_become_sentences() -> None:
    child = {"ExecutionArn": "arn:aws:states:us-east-1:0:execution:m:n", "Status": "FAILED", "Error": "E", "Cause": "c"}
    assert put_into_words(json.dumps(child)) == "execution m:n FAILED: E: c"
    task = {
        "TaskArn": "arn:aws:ecs:us-east-1:0:task/default/abc",
        "StoppedReason": "Essential container in task exited",
        "Containers": [
            {"Name": "main", "ExitCode": 0},
            {"Name": "side", "ExitCode": 137, "Reason": "OutOfMemoryError"},
        ],
    }
    assert put_into_words(json.dumps(task)) == "task abc: side: exit 137, side: OutOfMemoryError"
    task["Attributes"] = [{"Name": "trace", "Value": "Root=1"}, {"Name": "node", "Value": "n1"}]
    assert put_into_words(json.dumps(task)) == "task abc on node n1: side: exit 137, side: OutOfMemoryError"
    for other in ("plain words", '{"some": "json"}', "[1]", ""):
        assert put_into_words(other) == other
    assert put_into_words(None) == ""
    assert short("a\n b") == "a b"
