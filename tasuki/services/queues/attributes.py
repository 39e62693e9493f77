"""Queue attributes: ranges, defaults, what excludes what. Pure.

A queue keeps all that can be set as texts, as they travel. Ranges: SQS API reference, SetQueueAttributes.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tasuki.services.queues.errors import InvalidAttributeName, InvalidAttributeValue, InvalidParameterValue
from tasuki.services.queues.model import Queue
from tasuki.values.arns import parse_arn
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument

RANGES: Mapping[str, tuple[int, int]] = {
    "DelaySeconds": (0, 900),
    "MaximumMessageSize": (1_024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
}
DEFAULTS: Mapping[str, str] = {
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "VisibilityTimeout": "30",
    "SqsManagedSseEnabled": "true",
}
READ_ONLY = frozenset(
    {
        "QueueArn",
        "CreatedTimestamp",
        "LastModifiedTimestamp",
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    }
)
COUNTED = frozenset(name for name in READ_ONLY if name.startswith("Approximate"))
_FIFO = frozenset({"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"})
_FIFO_WITH_REASON = frozenset({"DeduplicationScope", "FifoThroughputLimit"})
_TEXTS = frozenset({"Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId"})
KNOWN = frozenset({"All", *RANGES, *DEFAULTS, *READ_ONLY, *_FIFO, *_TEXTS})
"""Every name that GetQueueAttributes may be asked for."""


def check_attributes(given: Mapping[str, str]) -> dict[str, str]:
    """Check what a standard queue is to be set to; answer it in the form it is kept in.

    An empty text clears a policy or a key. Raises the room's errors, with AWS's texts.
    """
    checked: dict[str, str] = {}
    for name, value in given.items():
        if name in _FIFO_WITH_REASON:
            raise InvalidAttributeName(f"You can specify the {name} only when FifoQueue is set to true.")
        if name in _FIFO or name in READ_ONLY or name not in KNOWN or name == "All":
            raise InvalidAttributeName(f"Unknown Attribute {name}.")
        checked[name] = _CHECKS[name](name, value)
    return checked


def merge(current: Mapping[str, str], checked: Mapping[str, str]) -> dict[str, str]:
    """Answer a queue's attributes after a change. One kind of encryption excludes the other (recorded)."""
    merged = {**current, **checked}
    if checked.get("KmsMasterKeyId"):
        merged["SqsManagedSseEnabled"] = "false"
    elif checked.get("SqsManagedSseEnabled") == "true":
        merged["KmsMasterKeyId"] = ""
    for name in _TEXTS:
        if not merged.get(name, " "):
            del merged[name]
    if "KmsMasterKeyId" not in merged:
        merged.pop("KmsDataKeyReusePeriodSeconds", None)
    return merged


def columns(attributes: Mapping[str, str]) -> tuple[int, int, int, int, int, str | None, int | None]:
    """Answer what calls on messages need, as numbers: delay, visibility, retention, wait, size, DLQ, receives."""
    dlq_arn: str | None = None
    max_receives: int | None = None
    if redrive := attributes.get("RedrivePolicy"):
        policy = loads(redrive)
        dlq_arn, max_receives = policy["deadLetterTargetArn"], policy["maxReceiveCount"]
    return (
        int(attributes["DelaySeconds"]),
        int(attributes["VisibilityTimeout"]),
        int(attributes["MessageRetentionPeriod"]),
        int(attributes["ReceiveMessageWaitTimeSeconds"]),
        int(attributes["MaximumMessageSize"]),
        dlq_arn,
        max_receives,
    )


def first_difference(current: Mapping[str, str], checked: Mapping[str, str]) -> str | None:
    """Answer the first given attribute that an existing queue has otherwise, or None."""
    for name, value in checked.items():
        if current.get(name, "") != value:
            return name
    return None


def allows_source(allow_policy: str | None, source_arn: str) -> bool:
    """Tell whether a dead-letter queue's RedriveAllowPolicy lets `source_arn` use it (absent: everybody)."""
    if not allow_policy:
        return True
    policy = loads(allow_policy)
    permission = policy.get("redrivePermission", "allowAll")
    return permission == "allowAll" or (permission == "byQueue" and source_arn in policy.get("sourceQueueArns", ()))


def shown(queue: Queue, attributes: Mapping[str, str], created_s: int, modified_s: int) -> dict[str, str]:
    """Answer all attributes of GetQueueAttributes but the counts."""
    return {
        "QueueArn": queue.arn,
        "CreatedTimestamp": str(created_s),
        "LastModifiedTimestamp": str(modified_s),
        **attributes,
    }


def _number(name: str, value: str) -> str:
    low, high = RANGES[name]
    if not re.fullmatch(r"\d{1,9}", value) or not low <= int(value) <= high:
        raise InvalidAttributeValue(f"Invalid value for the parameter {name}.")
    return str(int(value))


def _boolean(name: str, value: str) -> str:
    lowered = value.lower()
    if lowered not in {"true", "false"}:
        raise InvalidAttributeValue(f"Invalid value for the parameter {name}.")
    return lowered


def _key(_name: str, value: str) -> str:
    return value


def _object(name: str, value: str) -> dict[str, Any]:
    try:
        policy = loads(value)
    except MalformedDocument:
        policy = None
    if not isinstance(policy, dict):
        if name == "Policy":
            raise InvalidAttributeValue("Invalid value for the parameter Policy.")
        raise InvalidParameterValue.of(
            value, name, "Amazon SQS can't create the redrive policy, as it's in an unsupported format."
        )
    return policy


def _policy(name: str, value: str) -> str:
    if value:
        _object(name, value)
    return value


def _redrive_policy(name: str, value: str) -> str:
    """Check a RedrivePolicy as far as its text goes; whether the queue exists is the caller's to see."""
    if not value:
        return value
    policy = _object(name, value)
    for part in ("deadLetterTargetArn", "maxReceiveCount"):
        if part not in policy:
            raise InvalidParameterValue.of(value, name, f"Redrive policy does not contain mandatory attribute: {part}.")
    extra = sorted(set(policy) - {"deadLetterTargetArn", "maxReceiveCount"})
    if extra:
        raise InvalidParameterValue.of(value, name, f"Unknown attribute in the redrive policy: {extra[0]}.")
    count = policy["maxReceiveCount"]
    receives = int(count) if re.fullmatch(r"\d{1,4}", str(count)) else 0
    if not 1 <= receives <= 1_000:
        raise InvalidParameterValue.of(
            value, name, f"Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both inclusive."
        )
    arn = policy["deadLetterTargetArn"]
    parts = parse_arn(arn) if isinstance(arn, str) else None
    if parts is None or parts.service != "sqs":
        raise InvalidParameterValue.of(value, name, "Invalid value for deadLetterTargetArn.")
    if parts.resource.endswith(".fifo"):
        raise InvalidParameterValue.of(value, name, "Dead-letter queue must be same type of queue as the source.")
    return dumps({"deadLetterTargetArn": arn, "maxReceiveCount": receives})


def _redrive_allow_policy(name: str, value: str) -> str:
    if not value:
        return value
    policy = _object(name, value)
    permission = policy.get("redrivePermission")
    sources = policy.get("sourceQueueArns")
    if permission not in {"allowAll", "denyAll", "byQueue"}:
        raise InvalidParameterValue.of(value, name, "redrivePermission must be allowAll, denyAll or byQueue.")
    if permission == "byQueue":
        if not isinstance(sources, list) or not 1 <= len(sources) <= 10:
            raise InvalidParameterValue.of(
                value, name, "sourceQueueArns must hold 1 to 10 ARNs when redrivePermission is byQueue."
            )
    elif sources is not None:
        raise InvalidParameterValue.of(value, name, "sourceQueueArns goes with redrivePermission byQueue only.")
    return dumps(policy)


_CHECKS: Mapping[str, Callable[[str, str], str]] = {
    **dict.fromkeys(RANGES, _number),
    "SqsManagedSseEnabled": _boolean,
    "KmsMasterKeyId": _key,
    "Policy": _policy,
    "RedrivePolicy": _redrive_policy,
    "RedriveAllowPolicy": _redrive_allow_policy,
}
