"""What may be in a message: sizes, characters, attribute names and types, and the MD5s over them. Pure.

Limits and texts: SQS guide, "Message quotas" and "Message attributes"; recorded calls for the wording.
"""

import hashlib
import re
import struct
from collections.abc import Mapping
from typing import Any

from tasuki.services.queues.errors import (
    InvalidMessageContents,
    InvalidParameterValue,
    MissingRequiredParameter,
    UnsupportedOperation,
)
from tasuki.services.queues.model import (
    Attributes,
    Content,
    Outgoing,
    Queue,
    check_group,
    in_range,
)
from tasuki.values.chance import Chance

BAD_CHARACTERS = (
    "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | "
    "#x10000 to #x10FFFF"
)
_CONTROLS = bytes(c for c in range(32) if c not in {9, 10, 13})
_NAME = re.compile(r"[\w.\-]+")  # letters of any script (recorded)
_LEN = struct.Struct(">I").pack
_RESERVED = (
    "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for "
    "internal use. Additionally, they cannot start or end with '.'."
)


def md5_hex(content: bytes) -> str:
    """Answer the MD5 that SDKs check what they sent and received against."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def encode_checked(text: str) -> bytes | None:
    """Answer `text` in UTF-8, or None if it has characters that SQS refuses (those XML 1.0 lacks)."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    if len(encoded.translate(None, _CONTROLS)) != len(encoded):
        return None
    if b"\xef\xbf" in encoded and (b"\xef\xbf\xbe" in encoded or b"\xef\xbf\xbf" in encoded):
        return None
    return encoded


def attributes_md5(attributes: Attributes) -> str:
    """Answer MD5OfMessageAttributes: by name, the lengths and bytes of name, type and value (SQS guide)."""
    parts: list[bytes] = []
    for name in sorted(attributes):
        kind, value = attributes[name]
        named, typed = name.encode(), kind.encode()
        binary = isinstance(value, bytes)
        encoded = value if isinstance(value, bytes) else value.encode()
        parts += (
            _LEN(len(named)),
            named,
            _LEN(len(typed)),
            typed,
            b"\x02" if binary else b"\x01",
            _LEN(len(encoded)),
            encoded,
        )
    return md5_hex(b"".join(parts))


def read_attributes(given: Mapping[str, Mapping[str, Any]]) -> tuple[Attributes, int]:
    """Check message attributes; answer them and the bytes they count for."""
    if len(given) > 10:
        raise InvalidParameterValue(f"Number of message attributes [{len(given)}] exceeds the allowed maximum [10].")
    attributes: Attributes = {}
    size = 0
    for name, attribute in given.items():
        _check_name(name)
        kind = attribute.get("DataType") or ""
        base = _check_type(name, kind)
        value = _value(name, kind, base, attribute)
        attributes[name] = (kind, value)
        size += len(name.encode()) + len(kind.encode())
        size += len(value) if isinstance(value, bytes) else len(value.encode())
    return attributes, size


def _check_name(name: str) -> None:
    lowered = name.lower()
    if lowered.startswith(("aws.", "amazon.")) or name.startswith(".") or name.endswith("."):
        raise InvalidParameterValue(_RESERVED)
    if not name:
        raise InvalidParameterValue("Message (user) attribute name can not be empty.")
    if _NAME.fullmatch(name) is None:
        raise InvalidParameterValue(
            "Message (user) attributes name can only contain upper and lower score characters, digits, periods, "
            "hyphens and underscores. "
        )
    if ".." in name:
        raise InvalidParameterValue(f"Message (user) attribute name '{name}' cannot contain successive periods.")
    if len(name) > 256:
        raise InvalidParameterValue("Message (user) attribute names must be shorter than 256 Bytes")


def _check_type(name: str, kind: str) -> str:
    if len(kind.encode("utf-8", "replace")) > 256:
        raise InvalidParameterValue("Message (user) attribute types must be shorter than 256 Bytes")
    base = kind.split(".", 1)[0]
    if base not in {"String", "Number", "Binary"}:
        raise InvalidParameterValue(
            f"Type for parameter MessageAttributes.{name}.DataType must be prefixed"  # recorded: no space follows
            f'with "String", "Binary", or "Number", but was: {kind}'
        )
    if encode_checked(kind) is None:
        raise InvalidParameterValue(BAD_CHARACTERS)
    return base


def _value(name: str, kind: str, base: str, attribute: Mapping[str, Any]) -> str | bytes:
    if attribute.get("StringListValues") or attribute.get("BinaryListValues"):
        raise UnsupportedOperation("Message attribute list values in SendMessage operation are not supported.")
    field = "BinaryValue" if base == "Binary" else "StringValue"
    other = "StringValue" if base == "Binary" else "BinaryValue"
    value: str | bytes | None = attribute.get(field)
    if value is None and attribute.get(other) is not None:
        wanted = "Binary" if base == "Binary" else "String"
        raise InvalidParameterValue(
            f"The message (user) attribute '{name}' with type '{kind}' must use field '{wanted}'."
        )
    if not value:
        raise InvalidParameterValue(
            f"Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'."
        )
    if isinstance(value, bytes):
        return value
    if encode_checked(value) is None:
        raise InvalidParameterValue(BAD_CHARACTERS)
    if base == "Number" and not _is_number(value):
        raise InvalidParameterValue(f"Can't cast the value of message (user) attribute '{name}' to a number.")
    return value


def _is_number(text: str) -> bool:
    """Tell whether a Number is within 38 digits and 10^-128 to 10^126 (SQS guide)."""
    found = re.fullmatch(r"[+-]?(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,4}))?", text.strip())
    if found is None or not (found[1] or found[2]):
        return False
    digits = (found[1] + found[2]).strip("0")
    if not digits:
        return True
    exponent = int(found[3] or 0)
    significant = (found[1] + found[2]).lstrip("0")
    magnitude = len(significant) - len(found[2]) + exponent  # the number is below 10 ** magnitude
    return len(digits) <= 38 and -128 <= magnitude - 1 <= 126


def read_outgoing(
    queue: Queue,
    given: Mapping[str, Any],
    *,
    sender: str,
    trace: str | None,
    chance: Chance,
    in_batch: bool = False,
) -> Outgoing:
    """Check one message (SendMessage's input, or a batch entry) and make its content.

    `trace` is the caller's trace header: it becomes the AWSTraceHeader unless the message has its own, as AWS does
    (recorded). Raises the room's errors.
    """
    body: str = given.get("MessageBody") or ""
    if not body:
        raise MissingRequiredParameter("MessageBody")
    encoded = encode_checked(body)
    if encoded is None:
        raise InvalidMessageContents(BAD_CHARACTERS)
    size = len(encoded)
    attributes: Attributes | None = None
    attributes_digest = None
    if user := given.get("MessageAttributes"):
        attributes, extra = read_attributes(user)
        attributes_digest = attributes_md5(attributes)
        size += extra
    if size > queue.max_bytes:
        what = "cannot be validated" if in_batch else "are invalid"
        raise InvalidParameterValue(
            f"One or more parameters {what}. Reason: Message must be shorter than {queue.max_bytes} bytes."
        )
    delay_s = given.get("DelaySeconds")
    if delay_s is None:
        delay_s = queue.delay_s
    else:
        in_range("DelaySeconds", delay_s, 0, 900, "DelaySeconds must be >= 0 and <= 900.")
    group = given.get("MessageGroupId")
    if group is not None:
        check_group(group)
    if (dedup := given.get("MessageDeduplicationId")) is not None:
        raise InvalidParameterValue.of(
            dedup,
            "MessageDeduplicationId",
            "The request includes a parameter that is not valid for this queue type.",
        )
    header, system_digest = trace, None
    if system := given.get("MessageSystemAttributes"):
        header, system_digest = _system_header(system, trace)
    content = Content(chance.uuid(), body, md5_hex(encoded), attributes, attributes_digest, header, group, sender, None)
    return Outgoing(content, size, delay_s, system_digest)


def _system_header(given: Mapping[str, Mapping[str, Any]], trace: str | None) -> tuple[str | None, str | None]:
    """Answer (AWSTraceHeader, MD5OfMessageSystemAttributes). Only that one name may be sent (API reference)."""
    header = trace
    attributes: Attributes = {}
    for name, attribute in given.items():
        if name != "AWSTraceHeader":
            raise InvalidParameterValue(f"Message system attribute name '{name}' is invalid.")
        value = attribute.get("StringValue")
        if attribute.get("DataType") != "String" or not value:
            raise InvalidParameterValue(
                f"Message (system) attribute '{name}' must contain a non-empty value of type 'String'."
            )
        if encode_checked(value) is None:
            raise InvalidParameterValue(BAD_CHARACTERS)
        header = value
        attributes[name] = ("String", value)
    return header, attributes_md5(attributes) if attributes else None


def batch_bytes(entries: list[Mapping[str, Any]]) -> int:
    """Answer how many bytes a batch counts for: bodies and attributes. More than 1 MiB is refused."""
    total = 0
    for entry in entries:
        total += len((entry.get("MessageBody") or "").encode("utf-8", "replace"))
        for name, attribute in (entry.get("MessageAttributes") or {}).items():
            total += len(name.encode("utf-8", "replace")) + len((attribute.get("DataType") or "").encode())
            total += len((attribute.get("StringValue") or "").encode("utf-8", "replace"))
            total += len(attribute.get("BinaryValue") or b"")
    return total
