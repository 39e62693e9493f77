"""How large variables may become (Step Functions quotas: 256 KiB for one and for one Assign, 10 MiB for an execution).

Counted are the values as JSON text in UTF-8. A scope's variables count until its frame closes. What AWS says when there are
too many is not recorded: the name is that of its other limits of data, the words are ours.
"""

from collections.abc import Mapping
from typing import Any

from tasuki.language.errors import StatesError
from tasuki.values.documents import Doc
from tasuki.values.errors import MalformedDocument

MAX_ASSIGN_BYTES = 262_144
MAX_VARIABLES_BYTES = 10_485_760


def size_of(doc: Doc, what: str) -> int:
    """Answer a document's size in bytes. Raises `StatesError` in the name of `what` if it cannot be written."""
    try:
        text = doc.text
    except MalformedDocument as bad:
        raise StatesError("States.Runtime", f"The result of '{what}' is not a JSON document: {bad}") from bad
    return len(text) if text.isascii() else len(text.encode())


def weigh_assigned(docs: Mapping[str, Doc]) -> int:
    """Answer the size of what a state assigns. Raises `StatesError` if one value, or all together, are too large."""
    total = 0
    for name, doc in docs.items():
        size = size_of(doc, name)
        if size > MAX_ASSIGN_BYTES:
            raise _too_large(f"The value of the variable '{name}' has {size} bytes", MAX_ASSIGN_BYTES)
        total += size
    if total > MAX_ASSIGN_BYTES:
        raise _too_large(f"The variables of the field 'Assign' have {total} bytes together", MAX_ASSIGN_BYTES)
    return total


def check_total(size: int) -> None:
    """Raise `StatesError` if all variables of an execution are too large together."""
    if size > MAX_VARIABLES_BYTES:
        raise _too_large(f"The variables of the execution have {size} bytes together", MAX_VARIABLES_BYTES)


def bytes_of(variables: Mapping[str, Any]) -> int:
    """Answer the size of a scope's variables."""
    return sum(size_of(Doc(value), name) for name, value in variables.items())


def _too_large(what: str, most: int) -> StatesError:
    return StatesError("States.DataLimitExceeded", f"{what}, which exceeds the service limit of {most} bytes.")
