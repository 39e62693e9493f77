"""What other rooms may do with queues, inside their own units: pipes take messages, machines send them."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from tasuki.services.queues import queries, settling, shelf
from tasuki.services.queues.checks import read_outgoing
from tasuki.services.queues.errors import QueueDoesNotExist, SdkClientException
from tasuki.services.queues.model import Claimed, Queue, name_in_url, trace_of
from tasuki.services.queues.receiving import IN_FLIGHT_CAP, system_attributes
from tasuki.services.queues.sending import answer
from tasuki.services.switchboard import Answer, Caller, Received
from tasuki.store.store import Tx
from tasuki.values.arns import parse_arn
from tasuki.values.documents import dumps
from tasuki.values.instant import SECOND, Instant

PEEK_LIMIT = 2_000
"""Receivable messages that are counted at most."""


class QueueSource:
    """A queue as a pipe sees it (switchboard `Source`)."""

    def __init__(self, cap: int = IN_FLIGHT_CAP) -> None:
        self._cap = cap

    def check(self, tx: Tx, arn: str) -> str | None:
        """Answer None if the queue exists, else why not."""
        return None if _find(tx, arn) is not None else f"The queue {arn} does not exist."

    def nearest(self, tx: Tx, arns: Sequence[str]) -> Mapping[str, Instant | None]:
        """Answer those of these queues that exist, and when their next messages become receivable (not after now: one is)."""
        seen: dict[str, Queue] = tx.notes.setdefault(shelf.SEEN, {})
        found: dict[str, Instant | None] = {}
        for (account, region), named in _by_place(arns).items():
            for queue, due in shelf.look_at_all(tx, account, region, list(named)):
                for arn in named[queue.name]:
                    seen[arn], found[arn] = queue, due
        return found

    def count(self, tx: Tx, arn: str) -> int:
        """Answer how many messages are receivable now, up to `PEEK_LIMIT`."""
        queue = _find(tx, arn)
        counted = tx.one(queries.COUNT_RECEIVABLE, (queue.shelf, tx.now, PEEK_LIMIT)) if queue is not None else None
        return counted[0] if counted is not None else 0

    def receive(self, tx: Tx, arn: str, limit: int, max_bytes: int, hold_ms: int = 0) -> list[Received]:
        """Claim up to `limit` messages of together up to `max_bytes` (one at least, if there is one).

        They are hidden for the queue's visibility timeout, and for `hold_ms` at least. Raises `QueueDoesNotExist`, `OverLimit`.
        """
        queue = _existing(tx, arn)
        visibility_s = max(queue.visibility_s, -(-hold_ms // SECOND))
        claimed = shelf.claim(tx, queue, limit, visibility_s, cap=self._cap, max_bytes=max_bytes)
        return [
            Received(
                id=message.content.message_id,
                record=record(queue, message),
                trace=trace_of(message.content, message.sent_at),
                sent=message.sent_at,
            )
            for message in claimed
        ]

    def delete(self, tx: Tx, arn: str, receipts: Sequence[str]) -> None:
        """Delete what these receipts hold."""
        for refused in settling.delete(tx, _existing(tx, arn), receipts):
            if refused is not None:
                raise refused

    def release(self, tx: Tx, arn: str, receipts: Sequence[str], delay_ms: int) -> None:
        """Give messages back: receivable again after `delay_ms`. Harmless when the queue is gone."""
        queue = _find(tx, arn)
        if queue is not None:
            settling.release(tx, queue, receipts, delay_ms)

    def leave(self, tx: Tx, arn: str, receipts: Sequence[str], received: Instant) -> None:
        """Make messages receivable again when the queue's visibility timeout since `received` is over; harmless when it is gone."""
        queue = _find(tx, arn)
        if queue is not None:
            settling.release(tx, queue, receipts, max(0, received + queue.visibility_s * SECOND - tx.now))


def _by_place(arns: Sequence[str]) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Group queues' ARNs by (account, region), and there by name."""
    places: dict[tuple[str, str], dict[str, list[str]]] = {}
    for arn in arns:
        parts = parse_arn(arn)
        if parts is not None and parts.service == "sqs":
            place = places.setdefault((parts.account, parts.region), {})
            place.setdefault(parts.resource, []).append(arn)
    return places


def record(queue: Queue, message: Claimed) -> dict[str, Any]:
    """Answer a message as Lambda and Pipes hand it on (Lambda guide, "Example Amazon SQS message event")."""
    content = message.content
    shown: dict[str, Any] = {
        "messageId": content.message_id,
        "receiptHandle": message.handle,
        "body": content.body,
        "attributes": system_attributes(message),
        "messageAttributes": {
            name: {
                **(
                    {"binaryValue": base64.b64encode(value).decode()}
                    if isinstance(value, bytes)
                    else {"stringValue": value}
                ),
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": kind,
            }
            for name, (kind, value) in (content.attributes or {}).items()
        },
        "md5OfBody": content.md5,
        "eventSource": "aws:sqs",
        "eventSourceARN": queue.arn,
        "awsRegion": queue.region,
    }
    if content.attributes_md5 is not None:
        shown["md5OfMessageAttributes"] = content.attributes_md5
    return shown


def _find(tx: Tx, arn: str) -> Queue | None:
    """Answer the queue, as this unit saw it already, if it did."""
    seen: Queue | None = tx.notes.get(shelf.SEEN, {}).get(arn)
    if seen is not None:
        return seen
    parts = parse_arn(arn)
    return shelf.find_by_arn(tx, arn, parts.account, parts.region) if parts is not None else None


def _existing(tx: Tx, arn: str) -> Queue:
    queue = _find(tx, arn)
    if queue is None:
        raise QueueDoesNotExist
    return queue


class SendMessage:
    """`sqs:sendMessage` of Step Functions (switchboard `Integration`)."""

    error_prefix = "SQS"

    def call(self, tx: Tx, parameters: dict[str, Any], caller: Caller) -> Answer:
        """Send in the caller's unit. MessageBody may be any JSON value: what is not text is sent as JSON text.

        The caller's trace becomes the message's AWSTraceHeader unless it has one. Raises the room's errors, which the
        machine words as `SQS.AmazonSQSException`, and `SdkClientException` (recorded).
        """
        given = dict(parameters)
        body = given.get("MessageBody")
        if body is not None and not isinstance(body, str):
            given["MessageBody"] = dumps(body)
        queue = self._queue(tx, given.get("QueueUrl"), caller)
        given["MessageAttributes"] = _decoded(given.get("MessageAttributes") or {})
        message = read_outgoing(queue, given, sender=caller.account, trace=caller.trace or None, chance=tx.chance)
        shelf.put(tx, queue, (message,))
        return Answer(answer(message))

    def cancel(self, tx: Tx, handle: str, cause: str) -> None:
        """Do nothing: a sent message is sent."""

    @staticmethod
    def _queue(tx: Tx, url: Any, caller: Caller) -> Queue:
        text = url if isinstance(url, str) else dumps(url)
        try:
            return shelf.find_queue(tx, caller.account, caller.region, name_in_url(text, caller.account))
        except QueueDoesNotExist:
            if "/" in text:
                raise
            # A bare name is a host to the SDK inside Step Functions (recorded).
            raise SdkClientException(f"Unable to execute HTTP request: {text}: Name or service not known") from None


def _decoded(attributes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Answer message attributes as the API takes them: binaries come as base64 in JSON, numbers perhaps as numbers."""
    decoded: dict[str, dict[str, Any]] = {}
    for name, attribute in attributes.items():
        copy = dict(attribute) if isinstance(attribute, Mapping) else {}
        binary, text = copy.get("BinaryValue"), copy.get("StringValue")
        if isinstance(binary, str):
            try:
                copy["BinaryValue"] = base64.b64decode(binary, validate=True)
            except (binascii.Error, ValueError):
                copy["BinaryValue"] = binary.encode()
        if text is not None and not isinstance(text, str):
            copy["StringValue"] = dumps(text)
        decoded[name] = copy
    return decoded
