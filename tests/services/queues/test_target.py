"""A queue as whoever delivers sees it, and dead letters."""

from typing import Any

import pytest

from tasuki.services.queues.errors import InvalidParameterValue, MissingRequiredParameter, QueueDoesNotExist
from tasuki.services.switchboard import Caller
from tasuki.values.errors import DomainError
from tests.services.queues.conftest import ARN, Desk

TRACE = "Root=1-00000001-0123456789abcdef01234567"
CALLER = Caller("000000000000", "us-east-1", "once", TRACE)


def deliver(desk: Desk, body: str, arn: str = ARN + "q", **parameters: Any) -> str:
    target = desk.house.switchboard.targets["sqs"]
    return desk.house.unit(lambda tx: target.deliver(tx, arn, body, None, CALLER, parameters=parameters))


def check(desk: Desk, arn: str, **parameters: Any) -> str | None:
    return desk.house.look(lambda tx: desk.house.switchboard.targets["sqs"].check(tx, arn, parameters))


def bury(desk: Desk, body: str, attributes: dict[str, str], arn: str = ARN + "q") -> str:
    return desk.house.unit(lambda tx: desk.house.switchboard.bury(tx, arn, body, attributes, TRACE))


def letter(desk: Desk, url: str) -> tuple[str, dict[str, str]]:
    [message] = desk.receive(url, MessageAttributeNames=["All"])
    return message["Body"], {key: one["StringValue"] for key, one in message.get("MessageAttributes", {}).items()}


def test_a_delivery_is_a_message_with_its_trace_and_group(desk: Desk) -> None:
    """PF-37: a message group is no order on a standard queue, and is taken there."""
    url = desk.create()
    sent = deliver(desk, "any text, no JSON", MessageGroupId="tenant-1")
    [message] = desk.receive(url)
    assert (message["MessageId"], message["Body"]) == (sent, "any text, no JSON")
    assert message["Attributes"]["AWSTraceHeader"] == TRACE
    assert message["Attributes"]["MessageGroupId"] == "tenant-1"
    assert desk.conserved(url)


@pytest.mark.parametrize(
    ("body", "parameters", "error"),
    [
        ("", {}, MissingRequiredParameter),
        ("x" * 1025, {}, InvalidParameterValue),
        ("a\0b", {}, DomainError),
        ("x", {"MessageGroupId": "with space"}, InvalidParameterValue),
        ("x", {"MessageDeduplicationId": "d"}, InvalidParameterValue),
    ],
)
def test_what_sqs_refuses_a_delivery_is_refused(
    desk: Desk, body: str, parameters: dict[str, str], error: type[DomainError]
) -> None:
    url = desk.create(MaximumMessageSize=1024)
    with pytest.raises(error):
        deliver(desk, body, **parameters)
    assert desk.counts(url) == (0, 0, 0)


def test_a_queue_that_is_not_there_is_refused(desk: Desk) -> None:
    with pytest.raises(QueueDoesNotExist):
        deliver(desk, "x")
    with pytest.raises(InvalidParameterValue, match="not the ARN of a queue"):
        deliver(desk, "x", arn="arn:aws:sns:us-east-1:000000000000:q")


def test_check_says_what_is_wrong(desk: Desk) -> None:
    desk.create()
    assert check(desk, ARN + "q") is None
    assert check(desk, ARN + "q", MessageGroupId="g") is None
    assert check(desk, ARN + "other") == f"The queue {ARN}other does not exist."
    assert "FIFO queues are not offered here yet" in str(check(desk, ARN + "q.fifo"))
    assert "MessageGroupId" in str(check(desk, ARN + "q", MessageGroupId="with space"))
    assert "not the ARN of a queue" in str(check(desk, "nonsense"))
    assert desk.house.look(lambda tx: desk.house.switchboard.targets["sqs"].waits(tx, ARN + "q")) is False


def test_a_dead_letter_keeps_body_and_attributes(desk: Desk) -> None:
    url = desk.create()
    bury(desk, "the payload", {"ERROR_CODE": "X", "EMPTY": "", "IS_PAYLOAD_TRUNCATED": "false"})
    assert letter(desk, url) == ("the payload", {"ERROR_CODE": "X", "IS_PAYLOAD_TRUNCATED": "false"})


def test_a_dead_letter_is_cut_to_what_the_queue_takes(desk: Desk) -> None:
    url = desk.create(MaximumMessageSize=1024)
    bury(desk, "€" * 1000, {"ERROR_MESSAGE": "why"})
    body, said = letter(desk, url)
    assert said == {"ERROR_MESSAGE": "why", "IS_PAYLOAD_TRUNCATED": "true"}
    assert set(body) == {"€"}
    assert len(body.encode()) >= 1024 - 70


def test_a_dead_letter_with_long_attributes_gets_in_all_the_same(desk: Desk) -> None:
    url = desk.create(MaximumMessageSize=1024)
    bury(desk, "body" * 1000, {f"NAME_{n}": "long" * 200 for n in range(9)})
    body, said = letter(desk, url)
    assert body.startswith("body")
    assert said["NAME_0"] == "long" * 16


def test_a_dead_letter_for_no_queue_is_refused(desk: Desk) -> None:
    with pytest.raises(QueueDoesNotExist):
        bury(desk, "x", {})
