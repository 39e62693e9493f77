"""SendMessage and the batch forms of everything on messages."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tasuki.services.queues.checks import batch_bytes, read_outgoing
from tasuki.services.queues.errors import (
    BatchEntryIdsNotDistinct,
    BatchRequestTooLong,
    EmptyBatchRequest,
    InvalidBatchEntryId,
    TooManyEntriesInBatchRequest,
)
from tasuki.services.queues.model import MAX_BATCH, MAX_BYTES, Outgoing, Queue, name_in_url
from tasuki.services.queues.shelf import find_queue, put
from tasuki.store.store import Tx
from tasuki.values.errors import DomainError
from tasuki.values.operations import Request

_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


def queue_of(tx: Tx, request: Request) -> Queue:
    """Answer the queue that the request's QueueUrl names. Raises `QueueDoesNotExist`."""
    name = name_in_url(request.input.get("QueueUrl") or "", request.account)
    return find_queue(tx, request.account, request.region, name)


def send_message(tx: Tx, request: Request) -> dict[str, Any]:
    """SendMessage: QueueUrl, MessageBody, ... → MessageId and the MD5s."""
    queue = queue_of(tx, request)
    message = read_outgoing(queue, request.input, sender=request.account, trace=request.trace, chance=tx.chance)
    put(tx, queue, (message,))
    return answer(message)


def answer(message: Outgoing) -> dict[str, Any]:
    """Answer what a sender hears of its message."""
    content = message.content
    said = {"MD5OfMessageBody": content.md5, "MessageId": content.message_id}
    if content.attributes_md5 is not None:
        said["MD5OfMessageAttributes"] = content.attributes_md5
    if message.system_md5 is not None:
        said["MD5OfMessageSystemAttributes"] = message.system_md5
    return said


def send_message_batch(tx: Tx, request: Request) -> dict[str, Any]:
    """SendMessageBatch: up to ten entries, each of which succeeds or fails alone."""
    queue = queue_of(tx, request)
    entries = check_entries(request, "SendMessageBatchRequestEntry")
    total = batch_bytes(entries)
    if total > MAX_BYTES:
        raise BatchRequestTooLong(
            f"Batch requests cannot be longer than {MAX_BYTES} bytes. You have sent {total} bytes."
        )
    messages: list[Outgoing] = []

    def one(entry: Mapping[str, Any]) -> dict[str, Any]:
        message = read_outgoing(
            queue,
            entry,
            sender=request.account,
            trace=request.trace,
            chance=tx.chance,
            in_batch=True,
        )
        messages.append(message)
        return answer(message)

    results = each_entry(entries, one)
    if messages:
        put(tx, queue, messages)
    return results


def check_entries(request: Request, shape: str) -> list[Mapping[str, Any]]:
    """Answer a batch's entries. Raises for an empty one, too many, and ids that are wrong or repeated (recorded)."""
    entries: list[Mapping[str, Any]] = request.input.get("Entries") or []
    if not entries:
        raise EmptyBatchRequest(f"There should be at least one {shape} in the request.")
    if len(entries) > MAX_BATCH:
        raise TooManyEntriesInBatchRequest(
            f"Maximum number of entries per request are {MAX_BATCH}. You have sent {len(entries)}."
        )
    seen: set[str] = set()
    for entry in entries:
        name = entry.get("Id") or ""
        if _ENTRY_ID.fullmatch(name) is None:
            raise InvalidBatchEntryId(
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
                "It can be at most 80 letters long."
            )
        if name in seen:
            raise BatchEntryIdsNotDistinct(f"Id {name} repeated.")
        seen.add(name)
    return entries


def each_entry(
    entries: Sequence[Mapping[str, Any]], act: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Do each entry alone; answer Successful and Failed, neither when it is empty (as AWS leaves them out)."""
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    for entry in entries:
        try:
            good.append({"Id": entry["Id"], **act(entry)})
        except DomainError as refused:
            bad.append(failed(entry["Id"], refused))
    return {name: part for name, part in (("Successful", good), ("Failed", bad)) if part}


def failed(entry_id: str, refused: DomainError) -> dict[str, Any]:
    """Answer a batch entry that was refused, with the older code, as recorded."""
    return {
        "Id": entry_id,
        "SenderFault": refused.sender,
        "Code": refused.query_code or refused.code,
        "Message": refused.message,
    }
