"""REQUEST_RESPONSE to an Express machine: what its end says decides about the messages. Real rooms all through."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasuki.services import handovers, machines, pipes, queues
from tasuki.services.pipes.calls import CALLS_AT_ONCE
from tasuki.testing import House
from tasuki.values.config import Config
from tasuki.values.errors import DomainError

ROLE = "arn:aws:iam::000000000000:role/any"
SUCCEED = {"Type": "Succeed"}
WAIT = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 10, "Next": "S"}, "S": SUCCEED}}
FAILS = {"Type": "Fail", "Error": "E", "Cause": "C"}
FAIL = {"StartAt": "F", "States": {"F": FAILS}}


class Line:
    """A queue, an Express machine, and a pipe between them."""

    def __init__(self) -> None:
        self.house = House(handovers.room, queues.room, machines.room, pipes.room, config=Config(data=Path(), dev=True))
        self.url = self.house.call("sqs", "CreateQueue", QueueName="q")["QueueUrl"]

    def machine(self, definition: dict[str, Any], kind: str = "EXPRESS") -> str:
        given = {"name": "m", "definition": json.dumps(definition), "roleArn": ROLE, "type": kind}
        return str(self.house.call("stepfunctions", "CreateStateMachine", given)["stateMachineArn"])

    def pipe(self, definition: dict[str, Any], batch: int = 10, **parameters: Any) -> None:
        self.create_pipe(self.machine(definition), batch, **parameters)

    def create_pipe(self, target: str, batch: int = 10, **parameters: Any) -> None:
        given = {
            "Name": "p",
            "RoleArn": ROLE,
            "Source": "arn:aws:sqs:us-east-1:000000000000:q",
            "Target": target,
            "SourceParameters": {"SqsQueueParameters": {"BatchSize": batch}},
            "TargetParameters": parameters,
        }
        self.house.call("pipes", "CreatePipe", given)

    def send(self, *bodies: str) -> list[str]:
        sent = [self.house.call("sqs", "SendMessage", QueueUrl=self.url, MessageBody=body) for body in bodies]
        return [message["MessageId"] for message in sent]

    def counts(self) -> tuple[int, int]:
        """Answer how many messages are visible, and in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        given = {"QueueUrl": self.url, "AttributeNames": names}
        found = self.house.call("sqs", "GetQueueAttributes", given)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])

    def outcomes(self) -> list[str]:
        found = self.house.call("tasuki", "ListHandovers", MaxResults=1000)["Handovers"]
        return sorted(handover["Outcome"] for handover in found)

    def rows(self, table: str) -> int:
        return int(self.house.unit(lambda tx: tx.all(f"SELECT count(*) FROM {table}"))[0][0])


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line()
    yield line
    line.house.close()


def test_messages_are_in_flight_until_the_execution_has_ended(line: Line) -> None:
    line.pipe(WAIT)
    line.send("a", "b")
    line.house.advance(seconds=9)
    assert line.counts() == (0, 2)
    assert line.outcomes() == []
    line.house.advance(seconds=1)
    assert line.counts() == (0, 0)
    assert line.outcomes() == ["DELIVERED", "DELIVERED"]
    assert line.rows("pipe_calls") == line.rows("express") == 0


def test_the_messages_of_an_execution_that_failed_come_back(line: Line) -> None:
    line.pipe(FAIL)
    line.send("a")
    line.house.drain()
    assert line.counts() == (0, 1)
    assert line.outcomes() == ["FAILED: the execution ended with FAILED: E: C"]
    reason = line.house.call("pipes", "DescribePipe", Name="p")["StateReason"]
    assert reason.endswith("the execution ended with FAILED: E: C")
    line.house.advance(seconds=30)
    assert len(line.outcomes()) == 2
    assert line.counts() == (0, 1)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ({}, 0),
        (None, 0),
        ({"batchItemFailures": []}, 0),
        ({"batchItemFailures": None}, 0),
        ({"batchItemFailures": [{"itemIdentifier.$": "$[1].messageId"}]}, 1),
        ({"batchItemFailures": [{"itemIdentifier.$": "$[1].messageId"}] * 2}, 1),
        ({"batchItemFailures": [{"itemIdentifier": ""}]}, 3),
        ({"batchItemFailures": [{"itemIdentifier": {"a": 1}}]}, 3),
        ({"batchItemFailures": [{"itemIdentifier": None}]}, 3),
        ({"batchItemFailures": [{"id": "x"}]}, 3),
        ({"batchItemFailures": [{"itemIdentifier.$": "$[1].messageId"}, {"itemIdentifier": "nobody"}]}, 3),
        ({"batchItemFailures": "all"}, 3),
    ],
)
def test_an_answer_names_the_messages_that_failed(line: Line, answer: Any, left: int) -> None:
    say = {"Type": "Pass", "End": True} | ({"Parameters": answer} if answer is not None else {"Result": 1})
    line.send("a", "b", "c")
    line.pipe({"StartAt": "P", "States": {"P": say}})
    line.house.drain()
    assert line.counts() == (0, left)
    assert sum(outcome.startswith("FAILED") for outcome in line.outcomes()) == left
    if left == 1:
        kept = line.house.unit(lambda tx: tx.all("SELECT called FROM pipe_calls"))
        assert kept == []


def test_messages_stay_hidden_while_an_execution_takes_longer_than_the_visibility(line: Line) -> None:
    line.pipe({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 290, "End": True}}})
    line.send("a")
    line.house.advance(seconds=289)
    assert line.rows("pipe_calls") == 1
    line.house.advance(seconds=2)
    assert line.outcomes() == ["DELIVERED"]
    assert line.counts() == (0, 0)


def test_an_execution_that_fails_early_has_its_messages_back_after_the_visibility_and_not_later(line: Line) -> None:
    wait = {"Type": "Wait", "Seconds": 20, "Next": "F"}
    line.pipe({"StartAt": "W", "States": {"W": wait, "F": FAILS}})
    line.send("a")
    line.house.advance(seconds=29)
    assert len(line.outcomes()) == 1
    assert line.rows("pipe_calls") == 0
    line.house.advance(seconds=1)
    assert line.rows("pipe_calls") == 1
    line.house.advance(seconds=20)
    assert len(line.outcomes()) == 2


def test_a_batch_is_given_up_after_five_minutes(line: Line) -> None:
    line.pipe({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 3600, "End": True}}})
    line.send("a")
    line.house.advance(seconds=299)
    assert line.outcomes() == []
    line.house.advance(seconds=1)
    (outcome,) = line.outcomes()
    assert outcome.startswith("FAILED: ")
    line.house.advance(seconds=1)
    assert line.rows("pipe_calls") == 1  # it came back at once, its visibility being over long since
    assert line.rows("express") == 1


def test_a_pipe_has_so_many_calls_open_and_no_more(line: Line) -> None:
    line.pipe(WAIT, batch=1)
    line.send(*(str(number) for number in range(CALLS_AT_ONCE + 60)))
    line.house.advance(seconds=5)
    visible, flying = line.counts()
    assert CALLS_AT_ONCE <= flying < CALLS_AT_ONCE + 50
    assert visible == 60 - (flying - CALLS_AT_ONCE)
    line.house.advance(seconds=15)
    assert line.counts() == (0, 0)


def test_a_pipe_that_is_gone_still_settles_its_messages(line: Line) -> None:
    line.pipe(WAIT)
    line.send("a")
    line.house.drain()
    line.house.call("pipes", "DeletePipe", Name="p")
    line.house.advance(seconds=10)
    assert line.counts() == (0, 0)
    assert line.rows("pipe_calls") == 0


def test_a_queue_that_is_gone_does_not_hold_up_the_end(line: Line) -> None:
    line.pipe(WAIT)
    line.send("a")
    line.house.drain()
    line.house.call("sqs", "DeleteQueue", QueueUrl=line.url)
    line.house.advance(seconds=10)
    assert line.rows("pipe_calls") == line.rows("express") == 0


def test_fire_and_forget_does_not_wait_for_an_express_machine(line: Line) -> None:
    line.pipe(WAIT, StepFunctionStateMachineParameters={"InvocationType": "FIRE_AND_FORGET"})
    line.send("a")
    line.house.drain()
    assert line.counts() == (0, 0)
    assert line.rows("express") == 1


def test_a_standard_machine_is_refused_and_a_missing_one_is_missing(line: Line) -> None:
    with pytest.raises(DomainError, match="FIRE_AND_FORGET for a state machine of type STANDARD"):
        line.create_pipe(line.machine(WAIT, "STANDARD"))
    with pytest.raises(DomainError, match="State Machine Does Not Exist"):
        line.create_pipe("arn:aws:states:us-east-1:000000000000:stateMachine:none")
