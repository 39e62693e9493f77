"""A queue as whoever delivers sees it: pipes, schedules and rules send messages, and dead letters."""

from collections.abc import Mapping
from typing import Any

from tasuki.services.queues import shelf
from tasuki.services.queues.checks import encode_checked, read_outgoing
from tasuki.services.queues.errors import InvalidParameterValue, QueueDoesNotExist
from tasuki.services.queues.model import Queue, check_group
from tasuki.services.switchboard import NOTHING, Caller
from tasuki.store.store import Tx
from tasuki.values.arns import parse_arn
from tasuki.values.errors import DomainError

FIFO = "FIFO queues are not offered here yet: give a standard queue."
TRUNCATED = "IS_PAYLOAD_TRUNCATED"
SHORT = 64
"""To so many characters the attributes of a dead letter are cut whose queue takes very short messages only."""
_PARAMETERS = ("MessageGroupId", "MessageDeduplicationId")


class QueueTarget:
    """A standard queue (switchboard `Target`). Parameters: `MessageGroupId` makes it a fair queue (SQS guide, "Fair queues")."""

    takes_arrays = False
    takes_text = True

    def check(self, tx: Tx, arn: str, parameters: dict[str, Any]) -> str | None:
        """Answer None if the queue exists and takes messages with these parameters, else why not."""
        try:
            _find(tx, arn)
            group = parameters.get("MessageGroupId")
            if group is not None:
                check_group(group)
        except QueueDoesNotExist:
            return FIFO if arn.endswith(".fifo") else f"The queue {arn} does not exist."
        except DomainError as no:
            return no.message
        return None

    def waits(self, tx: Tx, arn: str) -> bool | None:  # noqa: ARG002 - who sends to a queue waits for nobody
        """Answer that nobody waits: a sent message is sent. Whether the queue is there, `deliver` says."""
        return False

    def deliver(
        self,
        tx: Tx,
        arn: str,
        payload: str,
        name: str | None,  # noqa: ARG002 - messages have no names
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,
    ) -> str:
        """Send `payload` as a message's body, the trace as its AWSTraceHeader; answer the message's id.

        Raises `QueueDoesNotExist` and what SendMessage refuses: an empty body, one that is too long, characters that SQS
        does not take.
        """
        given: dict[str, Any] = {key: parameters[key] for key in _PARAMETERS if parameters.get(key) is not None}
        given["MessageBody"] = payload
        return _send(tx, _find(tx, arn), given, caller.account, caller.trace)


def bury(tx: Tx, arn: str, body: str, attributes: Mapping[str, str], trace: str) -> str:
    """Put a dead letter into a queue, cut to what it takes (`switchboard.bury`).

    Characters that no message may have are replaced; an empty body is `{}`, an empty attribute is left out.
    Raises `QueueDoesNotExist`, and `InvalidParameterValue` for more than ten attributes.
    """
    queue = _find(tx, arn)
    said = {name: _clean(value) for name, value in attributes.items() if value}
    if _size(said) + SHORT > queue.max_bytes:
        said = {name: value[:SHORT] for name, value in said.items()}
    text = _clean(body) or "{}"
    if _size(said) + len(text.encode()) > queue.max_bytes:
        said[TRUNCATED] = "true"
        text = text.encode()[: queue.max_bytes - _size(said)].decode("utf-8", "ignore")
    elif text != (body or text):
        said[TRUNCATED] = "true"
    given = {
        "MessageBody": text,
        "MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in said.items()},
    }
    return _send(tx, queue, given, queue.account, trace)


def _send(tx: Tx, queue: Queue, given: Mapping[str, Any], sender: str, trace: str) -> str:
    message = read_outgoing(queue, given, sender=sender, trace=trace or None, chance=tx.chance)
    shelf.put(tx, queue, (message,))
    return message.content.message_id


def _find(tx: Tx, arn: str) -> Queue:
    """Answer the queue. Raises `QueueDoesNotExist`, and `InvalidParameterValue` for what is no queue's ARN."""
    parts = parse_arn(arn)
    if parts is None or parts.service != "sqs":
        raise InvalidParameterValue(f"{arn} is not the ARN of a queue (arn:aws:sqs:REGION:ACCOUNT:NAME).")
    seen: Queue | None = tx.notes.get(shelf.SEEN, {}).get(arn)
    queue = seen if seen is not None else shelf.find_by_arn(tx, arn, parts.account, parts.region)
    if queue is None:
        raise QueueDoesNotExist
    return queue


def _size(attributes: Mapping[str, str]) -> int:
    return sum(len(name) + len("String") + len(value.encode()) for name, value in attributes.items())


def _clean(text: str) -> str:
    if encode_checked(text) is not None:
        return text
    return "".join(one if encode_checked(one) is not None else "\N{REPLACEMENT CHARACTER}" for one in text)
