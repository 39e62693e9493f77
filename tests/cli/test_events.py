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
    for other in ("plain words", '{"some": "json"}', "[1]", ""):
        assert put_into_words(other) == other
    assert put_into_words(None) == ""
    assert short("a\n b") == "a b"
