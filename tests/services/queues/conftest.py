"""A house with one queue in it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services import queues
from tasuki.testing import House

ARN = "arn:aws:sqs:us-east-1:000000000000:"


class Desk:
    """Short words for what tests do all the time."""

    def __init__(self, house: House) -> None:
        self.house = house

    def create(self, name: str = "q", **attributes: Any) -> str:
        """Create a queue; answer its URL."""
        given = {key: str(value) for key, value in attributes.items()}
        url: str = self.house.call("sqs", "CreateQueue", {"QueueName": name, "Attributes": given})["QueueUrl"]
        return url

    def send(self, url: str, body: str = "hello", **more: Any) -> str:
        """Send a message; answer its id."""
        given = {"QueueUrl": url, "MessageBody": body, **more}
        message_id: str = self.house.call("sqs", "SendMessage", given)["MessageId"]
        return message_id

    def receive(self, url: str, count: int = 1, **more: Any) -> list[dict[str, Any]]:
        """Receive; answer the messages."""
        given = {"QueueUrl": url, "MaxNumberOfMessages": count, "MessageSystemAttributeNames": ["All"], **more}
        messages: list[dict[str, Any]] = self.house.call("sqs", "ReceiveMessage", given).get("Messages", [])
        return messages

    def delete(self, url: str, message: dict[str, Any]) -> None:
        """Delete a received message."""
        self.house.call("sqs", "DeleteMessage", {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]})

    def hold(self, url: str, message: dict[str, Any], seconds: int) -> None:
        """Change a message's visibility."""
        given = {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": seconds}
        self.house.call("sqs", "ChangeMessageVisibility", given)

    def attributes(self, url: str, *names: str) -> dict[str, str]:
        """Answer queue attributes."""
        given = {"QueueUrl": url, "AttributeNames": list(names) or ["All"]}
        found: dict[str, str] = self.house.call("sqs", "GetQueueAttributes", given).get("Attributes", {})
        return found

    def counts(self, url: str) -> tuple[int, int, int]:
        """Answer (visible, in flight, delayed)."""
        names = ("", "NotVisible", "Delayed")
        found = self.attributes(url)
        visible, hidden, delayed = (int(found[f"ApproximateNumberOfMessages{name}"]) for name in names)
        return visible, hidden, delayed

    def conserved(self, url: str) -> bool:
        """Check promise P8 for a queue."""
        name = url.rpartition("/")[2]
        config = self.house.config
        return self.house.unit(
            lambda tx: queues.conservation(tx, queues.find_queue(tx, config.account, config.region, name))
        )


@pytest.fixture
def desk() -> Iterator[Desk]:
    with House(queues.room) as house:
        yield Desk(house)
