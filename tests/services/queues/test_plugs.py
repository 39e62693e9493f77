"""What pipes and machines see of queues."""

import json
from typing import Any

import pytest

from tasuki.services.queues.errors import MissingRequiredParameter, QueueDoesNotExist, SdkClientException
from tasuki.services.switchboard import Caller, Integration, Source
from tasuki.store.store import Tx
from tests.services.queues.conftest import ARN, Desk

ORIGIN = 1_767_225_600_000
CALLER = Caller("000000000000", "us-east-1", "once", "Root=1-00000001-000000000000000000000001")


def source(desk: Desk) -> Source:
    return desk.house.switchboard.sources["sqs"]


def send(desk: Desk, **parameters: Any) -> dict[str, Any]:
    integration: Integration = desk.house.switchboard.integrations["sqs:sendMessage"]
    return desk.house.unit(lambda tx: integration.call(tx, parameters, CALLER)).output


def test_the_record_that_a_pipe_hands_on(desk: Desk) -> None:
    url = desk.create(VisibilityTimeout=30)
    attributes = {
        "Author": {"DataType": "String", "StringValue": "John"},
        "Key": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
    }
    sent = desk.house.call(
        "sqs",
        "SendMessage",
        {"QueueUrl": url, "MessageBody": "hi", "MessageAttributes": attributes, "MessageGroupId": "g"},
    )
    desk.house.advance(seconds=1)
    (received,) = desk.house.unit(lambda tx: source(desk).receive(tx, ARN + "q", 10, 1_000_000))
    assert received.id == sent["MessageId"]
    assert received.sent == ORIGIN
    assert received.trace == f"Root=1-{ORIGIN // 1000:08x}-{sent['MessageId'].replace('-', '')[8:]}"
    handle = received.record.pop("receiptHandle")
    assert received.record == {
        "messageId": sent["MessageId"],
        "body": "hi",
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": str(ORIGIN),
            "SenderId": "000000000000",
            "ApproximateFirstReceiveTimestamp": str(ORIGIN + 1_000),
            "MessageGroupId": "g",
        },
        "messageAttributes": {
            "Author": {"stringValue": "John", "stringListValues": [], "binaryListValues": [], "dataType": "String"},
            "Key": {"binaryValue": "AAE=", "stringListValues": [], "binaryListValues": [], "dataType": "Binary"},
        },
        "md5OfBody": sent["MD5OfMessageBody"],
        "md5OfMessageAttributes": sent["MD5OfMessageAttributes"],
        "eventSource": "aws:sqs",
        "eventSourceARN": ARN + "q",
        "awsRegion": "us-east-1",
    }
    desk.house.unit(lambda tx: source(desk).delete(tx, ARN + "q", [handle]))
    assert desk.counts(url) == (0, 0, 0)
    assert desk.conserved(url)


def test_a_look_tells_when_the_next_comes_and_counts_what_is_there(desk: Desk) -> None:
    url = desk.create()

    def look() -> tuple[int | None, int]:
        def unit(tx: Tx) -> tuple[int | None, int]:
            sights = source(desk).nearest(tx, [ARN + "q"])
            return sights[ARN + "q"], source(desk).count(tx, ARN + "q")

        return desk.house.unit(unit)

    assert look() == (None, 0)
    desk.send(url)
    desk.send(url, DelaySeconds=9)
    assert look() == (ORIGIN, 1)
    (first,) = desk.receive(url)
    desk.delete(url, first)
    assert look() == (ORIGIN + 9_000, 0)
    desk.house.advance(seconds=9)
    assert look() == (ORIGIN + 9_000, 1)
    assert desk.house.unit(lambda tx: source(desk).count(tx, ARN + "gone")) == 0


@pytest.mark.parametrize("count", [1, 2, 10, 11, 100])
def test_many_queues_are_looked_at_together_and_those_that_are_gone_left_out(desk: Desk, count: int) -> None:
    names = [f"q{at}" for at in range(count)]
    for name in names[1:]:
        desk.create(name)
    desk.send(desk.create("busy"), "x")
    arns = [ARN + name for name in (*names[:-1], "busy")]
    seen = desk.house.unit(lambda tx: source(desk).nearest(tx, [*arns, "arn:aws:sns:us-east-1:000000000000:q1", "?"]))
    assert seen == dict.fromkeys(arns[1:-1]) | {ARN + "busy": ORIGIN}


def test_a_claim_stays_within_its_bytes_but_takes_one(desk: Desk) -> None:
    url = desk.create()
    for size in (900, 50, 51, 10):
        desk.send(url, "x" * size)

    def sizes(limit: int, most: int) -> list[int]:
        found = desk.house.unit(lambda tx: source(desk).receive(tx, ARN + "q", limit, most))
        return [len(received.record["body"]) for received in found]

    assert sizes(10, 100) == [900]
    assert sizes(10, 100) == [50]
    assert sizes(10, 100) == [51, 10]


def test_many_messages_in_one_claim(desk: Desk) -> None:
    url = desk.create()
    for _ in range(150):
        desk.send(url)
    found = desk.house.unit(lambda tx: source(desk).receive(tx, ARN + "q", 120, 6_000_000))
    assert len({received.id for received in found}) == 120
    assert desk.counts(url) == (30, 120, 0)


def test_what_a_pipe_gives_back(desk: Desk) -> None:
    url = desk.create(VisibilityTimeout=30)
    desk.send(url)
    (received,) = desk.house.unit(lambda tx: source(desk).receive(tx, ARN + "q", 10, 1_000))
    handle = received.record["receiptHandle"]
    desk.house.unit(lambda tx: source(desk).release(tx, ARN + "q", [handle], 2_000))
    assert desk.receive(url) == []
    desk.house.advance(seconds=2)
    assert len(desk.receive(url)) == 1
    desk.house.unit(lambda tx: source(desk).release(tx, ARN + "q", [handle], 0))  # no longer the pipe's
    assert desk.receive(url) == []


def test_a_source_that_is_not_there(desk: Desk) -> None:
    desk.create()
    check = source(desk).check
    assert desk.house.unit(lambda tx: check(tx, ARN + "q")) is None
    assert desk.house.unit(lambda tx: check(tx, ARN + "gone")) is not None
    assert desk.house.unit(lambda tx: check(tx, "arn:aws:sqs:eu-west-1:000000000000:q")) is not None
    with pytest.raises(QueueDoesNotExist):
        desk.house.unit(lambda tx: source(desk).receive(tx, ARN + "gone", 1, 1))


@pytest.mark.parametrize(
    ("body", "text"), [("plain", "plain"), ({"a": [1, "x"]}, '{"a":[1,"x"]}'), ([1], "[1]"), (7, "7"), (False, "false")]
)
def test_a_machine_sends_any_json(desk: Desk, body: Any, text: str) -> None:
    url = desk.create()
    output = send(desk, QueueUrl=url, MessageBody=body)
    assert set(output) == {"MD5OfMessageBody", "MessageId"}
    (message,) = desk.receive(url)
    assert (message["Body"], message["MessageId"]) == (text, output["MessageId"])
    assert message["Attributes"]["AWSTraceHeader"] == CALLER.trace


def test_a_machine_sends_attributes(desk: Desk) -> None:
    url = desk.create()
    given = {
        "s": {"DataType": "String", "StringValue": "x"},
        "n": {"DataType": "Number", "StringValue": 7},
        "b": {"DataType": "Binary", "BinaryValue": "AAE="},
    }
    output = send(desk, QueueUrl=url, MessageBody="x", MessageAttributes=given, DelaySeconds=0)
    (message,) = desk.receive(url, MessageAttributeNames=["All"])
    assert message["MD5OfMessageAttributes"] == output["MD5OfMessageAttributes"]
    assert message["MessageAttributes"]["n"]["StringValue"] == "7"
    assert message["MessageAttributes"]["b"]["BinaryValue"] == b"\x00\x01"


def test_what_a_machine_is_told_when_it_cannot_send(desk: Desk) -> None:
    url = desk.create()
    with pytest.raises(MissingRequiredParameter, match=r"The request must contain the parameter MessageBody\."):
        send(desk, QueueUrl=url, MessageBody=None)
    with pytest.raises(QueueDoesNotExist, match=r"The specified queue does not exist\."):
        send(desk, QueueUrl=url + "x", MessageBody="x")
    with pytest.raises(SdkClientException, match="Unable to execute HTTP request: nowhere: Name or service not known"):
        send(desk, QueueUrl="nowhere", MessageBody="x")


def test_a_redriven_message_is_new_but_keeps_its_trace(desk: Desk) -> None:
    dlq = desk.create("dlq")
    policy = json.dumps({"deadLetterTargetArn": ARN + "dlq", "maxReceiveCount": 1})
    url = desk.create("q", VisibilityTimeout=0, RedrivePolicy=policy)
    body = "x" * 2_000
    sent = desk.send(url, body)
    trace = f"Root=1-{ORIGIN // 1000:08x}-{sent.replace('-', '')[8:]}"
    assert [len(desk.receive(url)) for _ in range(2)] == [1, 0]
    desk.house.advance(minutes=1)
    task = desk.house.call("sqs", "StartMessageMoveTask", {"SourceArn": ARN + "dlq"})
    desk.house.drain()
    (received,) = desk.house.unit(lambda tx: source(desk).receive(tx, ARN + "q", 1, 10))
    assert received.id != sent
    assert (received.record["body"], received.trace, received.sent) == (body, trace, desk.house.now)
    assert received.record["attributes"]["ApproximateReceiveCount"] == "1"
    assert "DeadLetterQueueSourceArn" not in received.record["attributes"]
    (shown,) = desk.house.call("sqs", "ListMessageMoveTasks", {"SourceArn": ARN + "dlq"})["Results"]
    assert (shown["Status"], shown["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    assert "TaskHandle" not in shown
    assert task["TaskHandle"]
    assert all(desk.conserved(queue) for queue in (url, dlq))


def test_a_message_sent_straight_to_the_dead_letter_queue_has_no_way_back(desk: Desk) -> None:
    dlq = desk.create("dlq")
    desk.create("q", RedrivePolicy=json.dumps({"deadLetterTargetArn": ARN + "dlq", "maxReceiveCount": 1}))
    desk.send(dlq)
    desk.house.call("sqs", "StartMessageMoveTask", {"SourceArn": ARN + "dlq"})
    desk.house.drain()
    (shown,) = desk.house.call("sqs", "ListMessageMoveTasks", {"SourceArn": ARN + "dlq"})["Results"]
    assert (shown["Status"], shown["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert desk.counts(dlq) == (1, 0, 0)


def test_a_throttled_move_takes_its_time(desk: Desk) -> None:
    dlq, other = desk.create("dlq"), desk.create("other")
    desk.create("q", RedrivePolicy=json.dumps({"deadLetterTargetArn": ARN + "dlq", "maxReceiveCount": 1}))
    for _ in range(10):
        desk.send(dlq)
    started = desk.house.call(
        "sqs",
        "StartMessageMoveTask",
        {"SourceArn": ARN + "dlq", "DestinationArn": ARN + "other", "MaxNumberOfMessagesPerSecond": 3},
    )
    desk.house.drain()
    assert desk.counts(other) == (3, 0, 0)
    desk.house.advance(seconds=1)
    assert desk.counts(other) == (6, 0, 0)
    moved = desk.house.call("sqs", "CancelMessageMoveTask", started)
    assert moved == {"ApproximateNumberOfMessagesMoved": 6}
    desk.house.advance(seconds=10)
    assert (desk.counts(other), desk.counts(dlq)) == ((6, 0, 0), (4, 0, 0))
    assert all(desk.conserved(queue) for queue in (dlq, other))
