"""The values of the room: a queue, a message's content, a receipt. Pure."""

import base64
import binascii
import re
import struct
import zlib
from typing import Any, NamedTuple, TypeAlias

from tasuki.services.queues.errors import InvalidParameterValue, QueueDoesNotExist, ReceiptHandleIsInvalid
from tasuki.values.arns import build_arn, parse_arn
from tasuki.values.instant import HOUR, SECOND, Instant
from tasuki.values.operations import Request

VISIBILITY_CAP_MS = 12 * HOUR
"""How long one receipt can hold a message, extensions included (SQS guide, "Visibility timeout")."""
MAX_BATCH = 10
MAX_BYTES = 1_048_576
"""Of one message, and of all in one call."""
INLINE_BYTES = 900
"""A packed content up to this stays in the message's row (and on its page); longer ones would be rewritten at every
receive."""

Attributes: TypeAlias = dict[str, tuple[str, str | bytes]]
"""Message attributes: name to (full type, value); the value of a Binary is bytes."""


class Queue(NamedTuple):
    """What the calls on messages need to know of a queue."""

    id: int
    shelf: int
    account: str
    region: str
    name: str
    delay_s: int
    visibility_s: int
    retention_s: int
    wait_s: int
    max_bytes: int
    dlq_arn: str | None
    max_receives: int | None
    sweep_at: Instant | None
    """When its shelf is swept next, as of the unit's first look."""

    @property
    def arn(self) -> str:
        """The queue's ARN."""
        return build_arn("sqs", self.region, self.account, self.name)

    @property
    def topic(self) -> str:
        """The bell that long polls of this queue wait for."""
        return f"queue:{self.id}"


class Content(NamedTuple):
    """What never changes about a message. Packed in this order.

    `trace_header` is the AWSTraceHeader attribute, present only when the sender gave one. `trace` is a correlation id to
    be kept (see `trace_of`) when it cannot be told from the rest any more.
    """

    message_id: str
    body: str
    md5: str
    attributes: Attributes | None
    attributes_md5: str | None
    trace_header: str | None
    group: str | None
    sender: str
    trace: str | None


class Outgoing(NamedTuple):
    """A checked message on its way in. `bytes` is its size as SQS counts it."""

    content: Content
    bytes: int
    delay_s: int
    system_md5: str | None


class Claimed(NamedTuple):
    """A message as one receive got it."""

    content: Content
    handle: str
    sent_at: Instant
    received: int
    first_received_at: Instant
    source: str | None
    bytes: int


class Receipt(NamedTuple):
    """What a receipt handle says: the message's place, the nonce of one receive, and what lies beside (0: nothing)."""

    queue_id: int
    shelf: int
    sent_at: Instant
    seq: int
    nonce: int
    body_id: int


class Counters(NamedTuple):
    """What became of a queue's messages since it was created (promise P8).

    `sent + moved_in` is what stands in the queue and what was deleted, expired, purged, moved to its dead-letter queue,
    or redriven out of it by a move task. `received` counts receives, a message's second one too.
    """

    sent: int
    moved_in: int
    received: int
    deleted: int
    expired: int
    purged: int
    moved_to_dlq: int
    redriven: int


_RECEIPT = struct.Struct(">BQQQQQQ")
_CHECKSUM = struct.Struct(">I")
_RECEIPT_VERSION = 1
_HANDLE_BYTES = _RECEIPT.size + _CHECKSUM.size

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_GROUP = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")


def write_handle(receipt: Receipt) -> str:
    """Write a receipt as an opaque handle: version, fields, checksum, in base64."""
    raw = _RECEIPT.pack(_RECEIPT_VERSION, *receipt)
    return base64.b64encode(raw + _CHECKSUM.pack(zlib.crc32(raw))).decode()


def read_handle(handle: str, queue: Queue) -> Receipt:
    """Read a handle that was given out for `queue`. Raises `ReceiptHandleIsInvalid`."""
    try:
        raw = base64.b64decode(handle, validate=True)
    except (binascii.Error, ValueError):
        raise ReceiptHandleIsInvalid(handle) from None
    if len(raw) != _HANDLE_BYTES or raw[0] != _RECEIPT_VERSION:
        raise ReceiptHandleIsInvalid(handle)
    body = raw[: _RECEIPT.size]
    if _CHECKSUM.unpack(raw[_RECEIPT.size :])[0] != zlib.crc32(body):
        raise ReceiptHandleIsInvalid(handle)
    receipt = Receipt(*_RECEIPT.unpack(body)[1:])
    if receipt.queue_id != queue.id:
        raise ReceiptHandleIsInvalid(handle)
    return receipt


def name_in_url(url: str, account: str) -> str:
    """Answer the queue name in a queue URL: anything that ends in account/name, or just a name (as recorded calls do).

    Raises `QueueDoesNotExist` for another account's queue.
    """
    head, _, name = url.rstrip("/").rpartition("/")
    if head and head.rpartition("/")[2] != account:
        raise QueueDoesNotExist
    return name


def name_in_arn(arn: str, account: str, region: str) -> str | None:
    """Answer the queue name in a queue's ARN of this account and region, else None."""
    parts = parse_arn(arn)
    if parts is None or parts.service != "sqs" or parts.account != account or parts.region != region:
        return None
    return parts.resource


def queue_url(request: Request, name: str) -> str:
    """Answer a queue's URL, as the caller reached us."""
    return f"{request.base_url}/{request.account}/{name}"


def is_queue_name(name: str) -> bool:
    """Tell whether `name` is one for a standard queue."""
    return _NAME.fullmatch(name) is not None


def check_group(group: str) -> None:
    """Refuse a MessageGroupId outside 1 to 128 letters, digits and punctuation (recorded)."""
    if _GROUP.fullmatch(group) is None:
        raise InvalidParameterValue.of(
            group,
            "MessageGroupId",
            "MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.",
        )


def in_range(parameter: str, value: Any, low: int, high: int, reason: str) -> int:
    """Answer a number within its range. Raises `InvalidParameterValue` with AWS's `reason`."""
    if not isinstance(value, int) or not low <= value <= high:
        raise InvalidParameterValue.of(value, parameter, reason)
    return value


def trace_of(content: Content, sent_at: Instant) -> str:
    """Answer a message's correlation id, `Root=1-8 hex of time-24 hex`.

    It is the root in its trace header; without one, made of the sent time and the (random) message id.
    """
    if content.trace is not None:
        return content.trace
    header = content.trace_header
    if header is None:
        return f"Root=1-{sent_at // SECOND:08x}-{content.message_id.replace('-', '')[8:]}"
    for part in header.split(";"):
        if part.strip().startswith("Root="):
            return part.strip()
    return header
