"""JSON text in, JSON text out: the only place where JSON is coded.

One policy for what JSON leaves open (RFC 8259 section 4 and 6): integers are exact at any size, other numbers
are IEEE doubles, the last of duplicate keys wins, NaN and infinities are refused, nesting is bounded by the
decoder. Text is compact, as AWS writes it.

`pack` and `unpack` are for our own rows (frames, history chunks): MessagePack, never shown to anybody.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from tasuki.values.errors import MalformedDocument

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder().decode

Raw = msgspec.Raw
"""What is encoded already, and passed through as it is when it is encoded again."""


def pack_docs(value: Any, place: Callable[["Doc"], Any]) -> bytes:
    """Pack a value in which documents stand anywhere; `place(doc)` answers what to write for one."""
    return msgspec.msgpack.Encoder(enc_hook=place).encode(value)


def loads(text: str | bytes) -> Any:
    """Decode JSON text. Raises `MalformedDocument` with the parser's reason."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as bad:
        raise MalformedDocument(str(bad)) from None


def dumps(value: Any) -> str:
    """Encode a value as compact JSON text. Raises `MalformedDocument` for what JSON cannot say."""
    return dumpb(value).decode()


def dumpb(value: Any) -> bytes:
    """Encode a value as compact JSON in UTF-8. Raises `MalformedDocument` for what JSON cannot say."""
    try:
        encoded = _encode(value)
    except (TypeError, ValueError, RecursionError, UnicodeError) as bad:
        raise MalformedDocument(str(bad)) from None
    if b"null" in encoded and _has_nan(value):
        raise MalformedDocument("NaN and infinities are not JSON numbers")
    return encoded


def _has_nan(value: Any) -> bool:
    """Tell whether a number that JSON has no word for hides anywhere (the encoder writes it as null)."""
    todo: list[Any] = [value]
    while todo:
        here = todo.pop()
        if isinstance(here, float):
            if not math.isfinite(here):
                return True
        elif isinstance(here, dict):
            todo.extend(here.values())
        elif isinstance(here, Iterable) and not isinstance(here, str | bytes | Raw):
            todo.extend(here)
    return False


class Doc:
    """A document that knows its value, its text, or both, and never codes it twice.

    Treat the value as immutable: it is shared, never copied.
    """

    __slots__ = ("_text", "_value")
    _text: str | None
    _value: Any

    def __init__(self, value: Any) -> None:
        self._value = value
        self._text = None

    @classmethod
    def of_text(cls, text: str) -> "Doc":
        """Hold JSON text; it is decoded when somebody looks inside (`MalformedDocument` then)."""
        doc = cls.__new__(cls)
        doc._text = text  # noqa: SLF001 - our own alternative constructor
        doc._value = _UNREAD  # noqa: SLF001
        return doc

    @classmethod
    def array(cls, members: Sequence["Doc"]) -> "Doc":
        """Hold an array of documents: their texts are joined, nothing is coded again (as AWS does, spaces kept)."""
        doc = cls.of_text(f"[{','.join([member.text for member in members])}]")
        values = [member._value for member in members]  # noqa: SLF001 - our own alternative constructor
        if not any(value is _UNREAD for value in values):
            doc._value = values  # noqa: SLF001
        return doc

    @property
    def value(self) -> Any:
        """The decoded value."""
        if self._value is _UNREAD:
            self._value = loads(self._text or "")
        return self._value

    @property
    def text(self) -> str:
        """The compact JSON text."""
        if self._text is None:
            self._text = dumps(self._value)
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Doc) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Doc({self.text[:200]})"


_UNREAD: Any = object()
