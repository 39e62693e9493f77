"""Why a text is not JSON, in the words of the parser that AWS uses, as far as they are recorded."""

import re
from typing import NamedTuple

from tasuki.values.documents import loads
from tasuki.values.errors import MalformedDocument

_WORD = re.compile(r"\s*([A-Za-z_$][\w$]*)")
_NAMELESS = re.compile(r'\s*\{\s*([^\s"}])')


class Complaint(NamedTuple):
    """What is wrong, and how much of the text the parser had read by then."""

    message: str
    read: int


def unrecognized(text: str) -> Complaint | None:
    """Complain about the bare word that a text begins with (recorded: sfn_api/test_invalid_start_execution_input)."""
    found = _WORD.match(text)
    if found is None or found[1] in {"true", "false", "null"}:
        return None
    expected = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
    return Complaint(f"Unrecognized token '{found[1]}': was expecting {expected}", found.end())


def json_complaint(text: str) -> str | None:
    """Answer what is wrong with the JSON text of an input or output; None if nothing is."""
    try:
        loads(text)
    except MalformedDocument as bad:
        return _in_aws_words(text) or str(bad)
    return None


def _in_aws_words(text: str) -> str | None:
    if not text.strip(" \t\r\n"):
        return "Invalid execution input."
    word = unrecognized(text)
    if word is not None:
        return word.message
    nameless = _NAMELESS.match(text)
    if nameless is not None:
        sign = nameless[1]
        return f"Unexpected character ('{sign}' (code {ord(sign)})): was expecting double-quote to start field name"
    return None
