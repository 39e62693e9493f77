"""What SQS refuses, with its codes and texts, and the last value that it takes."""

from typing import Any

import pytest

from tasuki.services import queues
from tasuki.testing import House
from tasuki.values.config import Config
from tasuki.values.errors import DomainError
from tests.services.queues.conftest import ARN, Desk

INVALID = "InvalidParameterValue"


def refused(desk: Desk, operation: str, given: dict[str, Any]) -> tuple[str | None, str]:
    with pytest.raises(DomainError) as caught:
        desk.house.call("sqs", operation, given)
    return caught.value.query_code, caught.value.message


def text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


@pytest.mark.parametrize(
    ("name", "attributes", "code", "message"),
    [
        ("a" * 81, {}, INVALID, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"),
        ("", {}, INVALID, "Can only include alphanumeric"),
        ("a.b", {}, INVALID, "Can only include alphanumeric"),
        ("a.fifo", {}, INVALID, "Can only include alphanumeric"),
        ("a", {"FifoQueue": "true"}, INVALID, "The name of a FIFO queue can only include"),
        (
            "a.fifo",
            {"FifoQueue": "true"},
            "AWS.SimpleQueueService.UnsupportedOperation",
            "FIFO queues come with a later release",
        ),
        ("a", {"Nonsense": "1"}, "InvalidAttributeName", "Unknown Attribute Nonsense."),
        ("a", {"QueueArn": "x"}, "InvalidAttributeName", "Unknown Attribute QueueArn."),
        ("a", {"DelaySeconds": "901"}, "InvalidAttributeValue", "Invalid value for the parameter DelaySeconds."),
        ("a", {"DelaySeconds": "-1"}, "InvalidAttributeValue", "Invalid value for the parameter DelaySeconds."),
        ("a", {"VisibilityTimeout": "43201"}, "InvalidAttributeValue", "Invalid value"),
        ("a", {"MessageRetentionPeriod": "59"}, "InvalidAttributeValue", "Invalid value"),
        ("a", {"MessageRetentionPeriod": "1209601"}, "InvalidAttributeValue", "Invalid value"),
        ("a", {"MaximumMessageSize": "1023"}, "InvalidAttributeValue", "Invalid value"),
        ("a", {"MaximumMessageSize": "1048577"}, "InvalidAttributeValue", "Invalid value"),
        ("a", {"ReceiveMessageWaitTimeSeconds": "21"}, "InvalidAttributeValue", "Invalid value"),
        ("a", {"SqsManagedSseEnabled": "perhaps"}, "InvalidAttributeValue", "Invalid value"),
        ("a", {"Policy": "no json"}, "InvalidAttributeValue", "Invalid value for the parameter Policy."),
        ("a", {"RedrivePolicy": "no json"}, INVALID, "Value no json for parameter RedrivePolicy is invalid."),
        ("a", {"RedrivePolicy": '{"maxReceiveCount":3}'}, INVALID, "mandatory attribute: deadLetterTargetArn."),
        (
            "a",
            {"RedrivePolicy": f'{{"deadLetterTargetArn":"{ARN}gone","maxReceiveCount":3}}'},
            INVALID,
            "Reason: Dead letter target does not exist.",
        ),
        (
            "a",
            {"RedrivePolicy": f'{{"deadLetterTargetArn":"{ARN}gone","maxReceiveCount":1001}}'},
            INVALID,
            "Invalid value for maxReceiveCount: 1001, valid values are from 1 to 1000 both inclusive.",
        ),
        ("a", {"RedriveAllowPolicy": '{"redrivePermission":"some"}'}, INVALID, "redrivePermission must be"),
        (
            "a",
            {"RedriveAllowPolicy": '{"redrivePermission":"allowAll","sourceQueueArns":[]}'},
            INVALID,
            "sourceQueueArns goes with",
        ),
    ],
)
def test_a_queue_that_cannot_be_created(
    desk: Desk, name: str, attributes: dict[str, str], code: str, message: str
) -> None:
    got_code, got = refused(desk, "CreateQueue", {"QueueName": name, "Attributes": attributes})
    assert got_code == code
    assert message in got


def test_the_last_values_that_a_queue_takes(desk: Desk) -> None:
    limits = {
        "DelaySeconds": "900",
        "VisibilityTimeout": "43200",
        "MessageRetentionPeriod": "60",
        "MaximumMessageSize": "1024",
        "ReceiveMessageWaitTimeSeconds": "20",
    }
    url = desk.create("a" * 80, **limits)
    assert desk.attributes(url, *limits) == limits


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"MessageBody": ""}, "MissingParameter", "The request must contain the parameter MessageBody."),
        ({"MessageBody": "x\x00"}, "InvalidMessageContents", "Invalid characters found."),
        ({"MessageBody": "x\ufffe"}, "InvalidMessageContents", "Invalid characters found."),
        ({"MessageBody": "x\ud800"}, "InvalidMessageContents", "Invalid characters found."),
        ({"DelaySeconds": 901}, INVALID, "Value 901 for parameter DelaySeconds is invalid."),
        ({"DelaySeconds": -1}, INVALID, "Value -1 for parameter DelaySeconds is invalid."),
        ({"MessageDeduplicationId": "a"}, INVALID, "MessageDeduplicationId is invalid."),
        ({"MessageGroupId": "g" * 129}, INVALID, "1 to 128 in length."),
        ({"MessageAttributes": {f"n{i}": text("v") for i in range(11)}}, INVALID, "Number of message attributes [11]"),
        ({"MessageAttributes": {"a..b": text("v")}}, INVALID, "successive periods"),
        ({"MessageAttributes": {"n" * 257: text("v")}}, INVALID, "names must be shorter than 256 Bytes"),
        ({"MessageAttributes": {"n": {"DataType": "Number", "StringValue": "one"}}}, INVALID, "Can't cast the value"),
        ({"MessageAttributes": {"n": {"DataType": "Number", "StringValue": "1e127"}}}, INVALID, "Can't cast the value"),
        (
            {"MessageAttributes": {"n": {"DataType": "Number", "StringValue": "1" * 39}}},
            INVALID,
            "Can't cast the value",
        ),
        ({"MessageAttributes": {"n": {"DataType": "Binary", "StringValue": "x"}}}, INVALID, "must use field 'Binary'"),
        ({"MessageAttributes": {"n": {"DataType": "Binary", "BinaryValue": b""}}}, INVALID, "non-empty value"),
        ({"MessageAttributes": {"n": {"DataType": "Bool", "StringValue": "x"}}}, INVALID, "but was: Bool"),
        (
            {"MessageAttributes": {"n": {"DataType": "String", "StringListValues": ["a"]}}},
            "AWS.SimpleQueueService.UnsupportedOperation",
            "list values",
        ),
        ({"MessageSystemAttributes": {"Other": text("x")}}, INVALID, "'Other' is invalid"),
        ({"MessageSystemAttributes": {"AWSTraceHeader": text("")}}, INVALID, "non-empty value"),
    ],
)
def test_a_message_that_cannot_be_sent(desk: Desk, given: dict[str, Any], code: str, message: str) -> None:
    url = desk.create()
    got_code, got = refused(desk, "SendMessage", {"QueueUrl": url, "MessageBody": "x", **given})
    assert got_code == code
    assert message in got
    assert desk.counts(url) == (0, 0, 0)


@pytest.mark.parametrize("number", ["1e126", "-1E-128", "1" * 38, "0", "000.500", "+3", ".5", "1" + "0" * 60])
def test_numbers_that_sqs_takes(desk: Desk, number: str) -> None:
    url = desk.create()
    desk.send(url, MessageAttributes={"n": {"DataType": "Number.any", "StringValue": number}})
    (message,) = desk.receive(url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"]["n"] == {"DataType": "Number.any", "StringValue": number}


def test_the_largest_message_and_one_byte_more(desk: Desk) -> None:  # PF-37
    url = desk.create()
    desk.send(url, "a" * 1_048_576)
    (message,) = desk.receive(url)
    assert len(message["Body"]) == 1_048_576
    assert refused(desk, "SendMessage", {"QueueUrl": url, "MessageBody": "a" * 1_048_577}) == (
        INVALID,
        "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.",
    )


def test_size_counts_attributes_and_bytes_not_characters(desk: Desk) -> None:
    url = desk.create(MaximumMessageSize=1024)
    attributes = {"name": text("v" * 10)}  # 4 + 6 + 10
    desk.send(url, "é" * 502, MessageAttributes=attributes)
    code, _ = refused(desk, "SendMessage", {"QueueUrl": url, "MessageBody": "é" * 503, "MessageAttributes": attributes})
    assert code == INVALID


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"MaxNumberOfMessages": 0},
            "Value 0 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.",
        ),
        ({"VisibilityTimeout": 43_201}, "Value 43201 for parameter VisibilityTimeout is invalid."),
        ({"WaitTimeSeconds": 21}, "Value 21 for parameter WaitTimeSeconds is invalid."),
    ],
)
def test_a_receive_out_of_range(desk: Desk, given: dict[str, Any], message: str) -> None:
    code, got = refused(desk, "ReceiveMessage", {"QueueUrl": desk.create(), **given})
    assert code == INVALID
    assert message in got


def test_names_of_attributes_that_do_not_exist(desk: Desk) -> None:
    url = desk.create()
    unknown = ("InvalidAttributeName", "Unknown Attribute Nope.")
    assert refused(desk, "GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["Nope"]}) == unknown
    assert refused(desk, "ReceiveMessage", {"QueueUrl": url, "MessageSystemAttributeNames": ["Nope"]}) == unknown
    assert refused(desk, "SetQueueAttributes", {"QueueUrl": url, "Attributes": {}})[0] == "MissingParameter"


@pytest.mark.parametrize(
    ("operation", "entry"),
    [
        ("SendMessageBatch", {"MessageBody": "x"}),
        ("DeleteMessageBatch", {"ReceiptHandle": "x"}),
        ("ChangeMessageVisibilityBatch", {"ReceiptHandle": "x", "VisibilityTimeout": 1}),
    ],
)
def test_batches(desk: Desk, operation: str, entry: dict[str, Any]) -> None:
    url = desk.create()

    def batch(*ids: str) -> tuple[str | None, str]:
        return refused(desk, operation, {"QueueUrl": url, "Entries": [{"Id": name, **entry} for name in ids]})

    assert batch() == (
        "AWS.SimpleQueueService.EmptyBatchRequest",
        f"There should be at least one {operation}RequestEntry in the request.",
    )
    assert batch(*map(str, range(11)))[0] == "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"
    assert batch("a", "a") == ("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "Id a repeated.")
    assert batch("a" * 81)[0] == "AWS.SimpleQueueService.InvalidBatchEntryId"


def test_entries_of_a_batch_fail_alone(desk: Desk) -> None:
    url = desk.create()
    entries = [
        {"Id": "bad", "MessageBody": "\x01"},
        {"Id": "good", "MessageBody": "x"},
        {"Id": "none", "MessageBody": ""},
    ]
    answer = desk.house.call("sqs", "SendMessageBatch", {"QueueUrl": url, "Entries": entries})
    assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("bad", "InvalidMessageContents", True),
        ("none", "MissingParameter", True),
    ]
    (message,) = desk.receive(url, 10)
    handles = [{"Id": "good", "ReceiptHandle": message["ReceiptHandle"]}, {"Id": "bad", "ReceiptHandle": "junk"}]
    answer = desk.house.call("sqs", "DeleteMessageBatch", {"QueueUrl": url, "Entries": handles})
    assert answer["Successful"] == [{"Id": "good"}]
    assert answer["Failed"][0]["Code"] == "ReceiptHandleIsInvalid"
    assert desk.counts(url) == (0, 0, 0)


def test_handles_of_another_queue_and_altered_ones(desk: Desk) -> None:
    url, other = desk.create("q"), desk.create("other")
    desk.send(url)
    (message,) = desk.receive(url)
    handle = message["ReceiptHandle"]
    altered = handle[:-2] + ("AA" if handle[-2:] != "AA" else "BB")
    assert refused(desk, "DeleteMessage", {"QueueUrl": other, "ReceiptHandle": handle})[0] == "ReceiptHandleIsInvalid"
    assert refused(desk, "DeleteMessage", {"QueueUrl": url, "ReceiptHandle": altered})[0] == "ReceiptHandleIsInvalid"
    assert refused(desk, "DeleteMessage", {"QueueUrl": url})[0] == "MissingParameter"
    assert desk.counts(url) == (0, 1, 0)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:4566/000000000000/q",
        "https://sqs.us-east-1.amazonaws.com/000000000000/q",
        "/000000000000/q",
        "q",
    ],
)
def test_ways_to_name_a_queue(desk: Desk, url: str) -> None:
    desk.create("q")
    assert desk.attributes(url, "QueueArn") == {"QueueArn": ARN + "q"}


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:4566/111111111111/q", "http://127.0.0.1:4566/000000000000/Q", "", "x/y"]
)
def test_queues_that_do_not_exist(desk: Desk, url: str) -> None:
    desk.create("q")
    assert refused(desk, "SendMessage", {"QueueUrl": url, "MessageBody": "x"}) == (
        "AWS.SimpleQueueService.NonExistentQueue",
        "The specified queue does not exist.",
    )


def test_too_many_in_flight(desk: Desk) -> None:  # PF-37
    with House(queues.room, config=Config(data=desk.house.config.data, quotas={"sqs_in_flight": 25})) as house:
        small = Desk(house)
        url = small.create(VisibilityTimeout=60)
        for _ in range(30):
            small.send(url)
        assert sum(len(small.receive(url, 10)) for _ in range(2)) == 20
        assert refused(small, "ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})[0] == "OverLimit"
        assert len(small.receive(url, 5)) == 5
        assert refused(small, "ReceiveMessage", {"QueueUrl": url})[0] == "OverLimit"
        assert small.counts(url) == (5, 25, 0)
        house.advance(seconds=60)
        assert len(small.receive(url, 10)) == 10
        assert small.conserved(url)


def test_names_with_a_zero_byte_are_names_of_nothing(desk: Desk) -> None:
    """PostgreSQL's texts can't hold one; asking for it must not be a fault of ours."""
    desk.create("q")
    bad = "q\0"
    assert (
        refused(desk, "SendMessage", {"QueueUrl": bad, "MessageBody": "x"})[0]
        == "AWS.SimpleQueueService.NonExistentQueue"
    )
    assert refused(desk, "ReceiveMessage", {"QueueUrl": bad})[0] == "AWS.SimpleQueueService.NonExistentQueue"
    assert desk.house.call("sqs", "ListQueues", {"QueueNamePrefix": bad}) == {}
    policy = f'{{"deadLetterTargetArn":"{ARN}q\\u0000","maxReceiveCount":3}}'
    assert refused(desk, "CreateQueue", {"QueueName": "r", "Attributes": {"RedrivePolicy": policy}})[0] == INVALID
