"""Opt-in execution names: a job that arrives twice runs once. Pure.

AWS's Pipes lets Step Functions make up the execution's name, so a message that is sent twice (a producer's retry)
starts two executions. A pipe with the tag `tasuki:execution-name` names them itself:

====================  =========================================================================
tag value             name
====================  =========================================================================
`message-id`          the message's id
`$.path`              the text or number there, in the record with its body parsed:
                      `$.body.jobId`. A message that has none there is named by its id
====================  =========================================================================

A second start under a name counts as success: nothing is started, the message is deleted, its handover's outcome is
`DUPLICATE`. One name needs one message: `SqsQueueParameters.BatchSize` must be 1. On AWS the tag means nothing, so the
same template works there, without the naming.

A name that Step Functions wouldn't take (1 to 80 of `0-9 A-Z a-z - _ .`) is made legal: other characters become `-`, and
the first ten digits of the SHA-256 of the original are appended, so that different originals keep different names.
"""

import hashlib
import re
from collections.abc import Callable
from typing import TypeAlias

from tasuki.rules.paths import compile_path
from tasuki.services.pipes.errors import invalid_field
from tasuki.services.pipes.records import Passenger

TAG = "tasuki:execution-name"
_LONGEST = 80
_DIGITS = 10
_ILLEGAL = re.compile(r"[^0-9A-Za-z._-]")

Namer: TypeAlias = Callable[[Passenger], str]


def compile_naming(tag: str | None, batch_size: int, where: str) -> Namer | None:
    """Check and compile the tag's value; None without a tag. Raises `ValidationException`."""
    if tag is None:
        return None
    if batch_size != 1:
        raise invalid_field(
            where,
            f"The tag {TAG} gives each message an execution of its own name, which needs "
            f"SourceParameters.SqsQueueParameters.BatchSize 1; it is {batch_size}.",
        )
    if tag == "message-id":
        return lambda passenger: legal_name(passenger.message.id)
    find = compile_path(tag)
    if find is None:
        raise invalid_field(where, f"The tag {TAG} takes message-id or a path like $.body.jobId; it is {tag}.")

    def name(passenger: Passenger) -> str:
        value = find(passenger.event)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
            value = passenger.message.id
        return legal_name(str(value))

    return name


def legal_name(text: str) -> str:
    """Make an execution name of any text: itself if it is legal, else what is legal of it and a short hash."""
    legal = _ILLEGAL.sub("-", text)
    if legal == text and 0 < len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{legal[: _LONGEST - _DIGITS - 1]}-{digest}"
