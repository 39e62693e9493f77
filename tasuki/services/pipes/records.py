"""A message on its way through a pipe: the record, and the event that filters, templates and parameters see. Pure."""

from typing import Any, Protocol

from tasuki.services.switchboard import Received
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument


def parsed_body(record: dict[str, Any]) -> Any:
    """Answer the body as JSON if it is an object or an array, else as the text it is.

    Implicit body parsing (user guide, "Amazon EventBridge Pipes input transformation"). A body like `42` or `"x"`
    counts as text: a filter on plain bodies then compares what was sent.
    """
    body = record.get("body")
    if isinstance(body, str) and body.lstrip()[:1] in {"{", "["}:
        try:
            return documents.loads(body)
        except MalformedDocument:
            return body
    return body


class Sighted(Protocol):
    """What templates and parameters look at."""

    @property
    def record(self) -> Any:
        """What is handed on where no template reshapes it."""

    @property
    def event(self) -> Any:
        """The same with its body parsed: what paths lead into."""


class Passenger:
    """One received message. The body is parsed when somebody first looks inside, and once."""

    __slots__ = ("_event", "message")

    def __init__(self, message: Received) -> None:
        self.message = message
        self._event: dict[str, Any] | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The record as it was received: the body is text."""
        return self.message.record

    @property
    def event(self) -> dict[str, Any]:
        """The record with its body parsed."""
        if self._event is None:
            self._event = {**self.message.record, "body": parsed_body(self.message.record)}
        return self._event

    @property
    def receipt(self) -> str:
        """The receipt handle by which it is deleted."""
        receipt: str = self.message.record["receiptHandle"]
        return receipt


class Enriched:
    """One event of an enrichment's answer.

    A record that it passed through is still a message, whose body is looked into; whatever else it made is taken as it is.
    """

    __slots__ = ("event", "record")

    def __init__(self, value: Any) -> None:
        self.record: Any = value
        is_message = isinstance(value, dict) and value.get("eventSource") == "aws:sqs"
        self.event: Any = {**value, "body": parsed_body(value)} if is_message else value
