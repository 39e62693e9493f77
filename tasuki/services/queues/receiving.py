"""ReceiveMessage, and what a consumer does with what it received: delete it, hold it longer, give it back."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasuki.services.queues import settling, shelf
from tasuki.services.queues.checks import attributes_md5
from tasuki.services.queues.errors import InvalidAttributeName, MissingRequiredParameter, QueueDoesNotExist
from tasuki.services.queues.model import Attributes, Claimed, Queue, in_range, name_in_url
from tasuki.services.queues.sending import check_entries, failed, queue_of
from tasuki.store.store import Tx
from tasuki.values.errors import DomainError
from tasuki.values.instant import SECOND, Instant
from tasuki.values.operations import NotYet, Request

IN_FLIGHT_CAP = 120_000
"""Messages in flight in a standard queue (SQS guide, "Standard queue quotas")."""

_SYSTEM_NAMES = frozenset(
    {
        "All",
        "SenderId",
        "SentTimestamp",
        "ApproximateReceiveCount",
        "ApproximateFirstReceiveTimestamp",
        "SequenceNumber",
        "MessageDeduplicationId",
        "MessageGroupId",
        "AWSTraceHeader",
        "DeadLetterQueueSourceArn",
    }
)
_QUEUE_NAMES_OF_OLD = frozenset({"Policy", "VisibilityTimeout", "QueueArn", "CreatedTimestamp"})


def look_receive(tx: Tx, request: Request) -> NotYet | None:
    """Look whether ReceiveMessage would find something; on a snapshot, so an empty receive costs no write."""
    found = shelf.look_at(tx, request.account, request.region, _name(request))
    if found is None:
        raise QueueDoesNotExist
    queue, due = found
    _check(request.input)
    return None if due is not None and due <= tx.now else _not_yet(tx, request, queue, due)


def receive_message(tx: Tx, request: Request, cap: int = IN_FLIGHT_CAP) -> dict[str, Any] | NotYet:
    """ReceiveMessage: claim up to ten messages. Answers `NotYet` when there is none (any more)."""
    queue = queue_of(tx, request)
    given = request.input
    limit, names = _check(given)
    visibility_s = given.get("VisibilityTimeout")
    if visibility_s is None:
        visibility_s = queue.visibility_s
    claimed = shelf.claim(tx, queue, limit, visibility_s, cap=cap)
    if not claimed:
        due = shelf.nearest(tx, queue)
        if due is not None and due <= tx.now:  # another unit has it in hand, or there are more dead ones to clear away
            due = tx.now + shelf.HELD_MS
        return _not_yet(tx, request, queue, due)
    wanted = given.get("MessageAttributeNames")
    return {"Messages": [_show(message, names, wanted) for message in claimed]}


def _name(request: Request) -> str:
    return name_in_url(request.input.get("QueueUrl") or "", request.account)


def _not_yet(tx: Tx, request: Request, queue: Queue, due: Instant | None) -> NotYet:
    wait_s = request.input.get("WaitTimeSeconds")
    return NotYet(queue.topic, tx.now + (queue.wait_s if wait_s is None else wait_s) * SECOND, due, {})


def _check(given: Mapping[str, Any]) -> tuple[int, Sequence[str]]:
    """Check ReceiveMessage's input; answer how many messages and which system attributes."""
    limit = given.get("MaxNumberOfMessages")
    if limit is None:
        limit = 1
    else:
        in_range("MaxNumberOfMessages", limit, 1, 10, "Must be between 1 and 10, if provided.")
    wait_s = given.get("WaitTimeSeconds")
    if wait_s is not None:
        in_range("WaitTimeSeconds", wait_s, 0, 20, "Must be >= 0 and <= 20, if provided.")
    visibility_s = given.get("VisibilityTimeout")
    if visibility_s is not None:
        in_range("VisibilityTimeout", visibility_s, 0, 43_200, "Must be between 0 and 43200, if provided.")
    names = [*(given.get("MessageSystemAttributeNames") or ()), *(given.get("AttributeNames") or ())]
    for name in names:
        if name not in _SYSTEM_NAMES and name not in _QUEUE_NAMES_OF_OLD:
            raise InvalidAttributeName(f"Unknown Attribute {name}.")
    return limit, names


def system_attributes(message: Claimed) -> dict[str, str]:
    """Answer all system attributes that a message has."""
    content = message.content
    attributes = {
        "SenderId": content.sender,
        "ApproximateFirstReceiveTimestamp": str(message.first_received_at),
        "ApproximateReceiveCount": str(message.received),
        "SentTimestamp": str(message.sent_at),
    }
    if content.trace_header is not None:
        attributes["AWSTraceHeader"] = content.trace_header
    if content.group is not None:
        attributes["MessageGroupId"] = content.group
    if message.source is not None:
        attributes["DeadLetterQueueSourceArn"] = message.source
    return attributes


def _show(message: Claimed, names: Sequence[str], wanted: Sequence[str] | None) -> dict[str, Any]:
    content = message.content
    shown: dict[str, Any] = {
        "MessageId": content.message_id,
        "ReceiptHandle": message.handle,
        "MD5OfBody": content.md5,
        "Body": content.body,
    }
    if names:
        all_of_them = system_attributes(message)
        chosen = all_of_them if "All" in names else {name: all_of_them[name] for name in names if name in all_of_them}
        if chosen:
            shown["Attributes"] = chosen
    if wanted and content.attributes:
        matching = _matching(content.attributes, wanted)
        if matching:
            shown["MessageAttributes"] = {
                name: {"DataType": kind, "BinaryValue" if isinstance(value, bytes) else "StringValue": value}
                for name, (kind, value) in matching.items()
            }
            whole = len(matching) == len(content.attributes)
            shown["MD5OfMessageAttributes"] = content.attributes_md5 if whole else attributes_md5(matching)
    return shown


def _matching(attributes: Attributes, wanted: Sequence[str]) -> Attributes:
    """Choose by exact name, by `prefix.*`, or all by `All`, `.*` and `*` (recorded)."""
    if not {"All", ".*", "*"}.isdisjoint(wanted):
        return attributes
    exact = set(wanted)
    prefixes = tuple(name[:-2] for name in wanted if name.endswith(".*"))
    return {
        name: value for name, value in attributes.items() if name in exact or (prefixes and name.startswith(prefixes))
    }


# -- settling -----------------------------------------------------------------------------------------------


def delete_message(tx: Tx, request: Request) -> dict[str, Any]:
    """DeleteMessage. An older receipt succeeds and deletes nothing."""
    queue = queue_of(tx, request)
    (refused,) = settling.delete(tx, queue, (_handle(request.input),))
    if refused is not None:
        raise refused
    return {}


def delete_message_batch(tx: Tx, request: Request) -> dict[str, Any]:
    """DeleteMessageBatch."""
    queue = queue_of(tx, request)
    entries = check_entries(request, "DeleteMessageBatchRequestEntry")
    answers = settling.delete(tx, queue, [entry.get("ReceiptHandle") or "" for entry in entries])
    return _entry_by_entry(entries, answers)


def _entry_by_entry(entries: Sequence[Mapping[str, Any]], answers: Sequence[DomainError | None]) -> dict[str, Any]:
    good = [{"Id": entry["Id"]} for entry, refused in zip(entries, answers, strict=True) if refused is None]
    bad = [failed(entry["Id"], refused) for entry, refused in zip(entries, answers, strict=True) if refused is not None]
    return {name: part for name, part in (("Successful", good), ("Failed", bad)) if part}


def change_message_visibility(tx: Tx, request: Request) -> dict[str, Any]:
    """ChangeMessageVisibility: counted from now, not remembered for later receives."""
    queue = queue_of(tx, request)
    (refused,) = settling.change_visibility(tx, queue, (_wish(request.input),))
    if refused is not None:
        raise refused
    return {}


def change_message_visibility_batch(tx: Tx, request: Request) -> dict[str, Any]:
    """ChangeMessageVisibilityBatch."""
    queue = queue_of(tx, request)
    entries = check_entries(request, "ChangeMessageVisibilityBatchRequestEntry")
    refusals: list[DomainError | None] = []
    wishes: list[tuple[str, int]] = []
    for entry in entries:
        try:
            wishes.append(_wish(entry))
            refusals.append(None)
        except DomainError as refused:
            refusals.append(refused)
    answers = iter(settling.change_visibility(tx, queue, wishes))
    return _entry_by_entry(entries, [refused or next(answers) for refused in refusals])


def _wish(given: Mapping[str, Any]) -> tuple[str, int]:
    """Answer (handle, seconds) of a change. Raises what is wrong with it by itself."""
    timeout_s = given.get("VisibilityTimeout")
    if timeout_s is None:
        raise MissingRequiredParameter("VisibilityTimeout")
    in_range("VisibilityTimeout", timeout_s, 0, 43_200, "Must be between 0 and 43200, if provided.")
    return _handle(given), timeout_s


def _handle(given: Mapping[str, Any]) -> str:
    handle: str = given.get("ReceiptHandle") or ""
    if not handle:
        raise MissingRequiredParameter("ReceiptHandle")
    return handle
