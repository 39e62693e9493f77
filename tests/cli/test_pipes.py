"""`pipes` against a real node: a pipe that works, one that keeps failing, and one that stopped."""

import json

import pytest

from tasuki.cli.own_node import OwnNode
from tests.cli.conftest import ROLE, Command, decoded

pytestmark = pytest.mark.clients


def make(node: OwnNode, name: str, **source: object) -> str:
    """Make a queue, a machine and a pipe of one name; answer the machine's ARN."""
    sqs, states = node.reach.client("sqs"), node.reach.client("stepfunctions")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    definition = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})
    machine = states.create_state_machine(name=name, definition=definition, roleArn=ROLE)["stateMachineArn"]
    node.reach.client("pipes").create_pipe(
        Name=name,
        RoleArn=ROLE,
        Source=queue,
        SourceParameters={"SqsQueueParameters": {"BatchSize": 1}, **source},
        Target=machine,
        TargetParameters={"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}},
    )
    return str(machine)


def row_when(tasuki: Command, name: str, **wanted: object) -> dict[str, object]:
    """Ask until a pipe's row says what is wanted; the node moves on meanwhile, and pytest's timeout ends it."""
    while True:
        [row] = [one for one in decoded(tasuki("pipes", "--json")) if one["pipe"] == name]
        if {key: row[key] for key in wanted} == wanted:
            assert isinstance(row, dict)
            return row


def test_counters_and_states_are_shown(tasuki: Command, node: OwnNode) -> None:
    make(node, "counted", FilterCriteria={"Filters": [{"Pattern": '{"body": {"keep": [true]}}'}]})
    tasuki("queue", "send", "counted", '{"keep": true}')
    tasuki("queue", "send", "counted", '{"keep": false}')
    row = row_when(tasuki, "counted", delivered=1, filtered=1)
    assert row | {"from": "counted", "to": "counted", "state": "RUNNING", "failed": 0, "reason": None} == row
    shown = tasuki("pipes").stdout.splitlines()
    assert shown[0].split() == [
        "pipe",
        "from",
        "to",
        "state",
        "delivered",
        "duplicates",
        "filtered",
        "failed",
        "reason",
    ]


def test_a_pipe_that_stopped_says_why_in_the_list_and_in_the_log(tasuki: Command, node: OwnNode) -> None:
    machine = make(node, "bereft")
    node.reach.client("stepfunctions").delete_state_machine(stateMachineArn=machine)
    message = decoded(tasuki("queue", "send", "bereft", "{}", "--json"))["MessageId"]
    row = row_when(tasuki, "bereft", state="STOPPED", desired="RUNNING")
    assert str(row["reason"]).startswith("Target: ")
    [shown] = [line for line in tasuki("pipes").stdout.splitlines() if line.startswith("bereft ")]
    assert "STOPPED, to be RUNNING" in shown
    assert str(row["reason"])[:40] in shown
    assert f"pipe bereft stopped: {row['reason']}" in node.log.read_text()
    waiting = tasuki("trace", message)
    assert waiting.returncode == 1
    assert f"the message {message} was not handed over" in waiting.stderr
    assert "tasuki pipes" in waiting.stderr


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("nothing", "no message, correlation id or execution is called nothing"),
        ("Root=1-0-0", "nothing was handed over under the correlation id"),
    ],
)
def test_trace_of_the_unknown_says_what_it_looked_for(tasuki: Command, wanted: str, said: str) -> None:
    done = tasuki("trace", wanted)
    assert done.returncode == 1
    assert said in done.stderr
    assert "give a message's id" in done.stderr
