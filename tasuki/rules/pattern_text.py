"""Reading the text of an event pattern, token by token.

The pattern language gives a meaning to what decoded JSON has lost: the last of two equal *paths* wins, not of two
equal keys, so `{"a": [1], "a": {"b": [2]}}` asks for both; and AWS's complaints name the place in the text. Hence
tokens with columns instead of `documents.loads`.
"""

import re
from typing import Any, NamedTuple, NoReturn

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_WORD = re.compile(r"true|false|null")
_NO_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SHOWN = 500
"""How much of the source a complaint repeats."""


class PatternError(Exception):
    """A pattern that is refused: `reason` in AWS's words, `place` as AWS appends it."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason + place)
        self.reason = reason
        self.place = place


class Token(NamedTuple):
    """One token: `kind` is one of `{ } [ ] string number word end`; a number's value is its text."""

    kind: str
    value: Any
    at: int
    """The offset that a complaint about this token names."""


class Tokens:
    """The tokens of a text, commas and colons checked and left out."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.now = Token("end", None, 0)
        self._offset = 0
        self._open: list[str] = []
        self._after_value = False

    def next(self) -> Token:
        """Step to the next token. Inside an object, keys come as `string` tokens before their values."""
        self._skip()
        if self._after_value and self._open and self._peek() not in "]}":
            if self._peek() != ",":
                where = "Array" if self._open[-1] == "[" else "Object"
                self._unexpected(f"was expecting comma to separate {where} entries")
            self._offset += 1
            self._skip()
            if self._peek() in "]}":
                self._unexpected("expected a value")
        self.now = self._read()
        return self.now

    def key(self) -> str | None:
        """Step to the next key of the object we are in, and past its colon; None at the object's end."""
        if not self._after_value:
            self._skip()
            if (here := self._peek()) not in '"}\0':
                self.now = Token("end", None, self._offset)
                self.fail(
                    f"Unexpected character ('{here}' (code {ord(here)})): was expecting double-quote to start field name"
                )
        token = self.next()
        if token.kind == "}":
            return None
        if token.kind != "string":
            self.fail("Unexpected character: was expecting double-quote to start field name")
        self._skip()
        if self._peek() != ":":
            self._unexpected("was expecting a colon to separate field name and value")
        self._offset += 1
        self._after_value = False
        name: str = token.value
        return name

    def fail(self, reason: str) -> NoReturn:
        """Refuse the pattern at the present token."""
        before = self.text[: self.now.at]
        line = before.count("\n") + 1
        column = self.now.at - (before.rfind("\n") + 1) + 1
        source = self.text[:_SHOWN]
        cut = f"[truncated {len(self.text) - _SHOWN} chars]" if len(self.text) > _SHOWN else ""
        raise PatternError(reason, f'\n at [Source: (String)"{source}"{cut}; line: {line}, column: {column}]')

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self._offset)
        assert found is not None, "zero spaces always match"
        self._offset = found.end()

    def _peek(self) -> str:
        return self.text[self._offset : self._offset + 1] or "\0"

    def _unexpected(self, wanted: str) -> NoReturn:
        here = self._peek()
        self.now = Token("end", None, min(self._offset + 1, len(self.text) + 1))
        if here == "\0":
            self.fail("Unexpected end-of-input: " + wanted)
        self.fail(f"Unexpected character ('{here}' (code {ord(here)})): {wanted}")

    def _read(self) -> Token:
        start, here = self._offset, self._peek()
        if start >= len(self.text):
            if self._open:
                self._unexpected(f"expected close marker for {'Array' if self._open[-1] == '[' else 'Object'}")
            return Token("end", None, start)
        if here in "{[":
            self._open.append(here)
            self._after_value = False
            self._offset += 1
            return Token(here, None, self._offset)
        if here in "}]":
            wanted = {"{": "}", "[": "]"}.get(self._open[-1] if self._open else "", "")
            if here != wanted:
                self.now = Token(here, None, start)
                self.fail(f"Unexpected close marker '{here}': expected '{wanted}'")
            self._open.pop()
            self._offset += 1
            self._after_value = True
            return Token(here, None, self._offset)
        return self._scalar(start)

    def _scalar(self, start: int) -> Token:
        self._after_value = True
        if found := _STRING.match(self.text, start):
            self._offset = found.end()
            return Token("string", _unescape(found[1]), start + 1)
        if found := _NUMBER.match(self.text, start):
            self._offset = found.end()
            return Token("number", found[0], self._offset)
        if found := _WORD.match(self.text, start):
            self._offset = found.end()
            return Token("word", _WORDS[found[0]], self._offset)
        if self._peek() == '"' and (bad := re.search(r'\\([^"\\/bfnrtu])', self.text[start:])):
            self.now = Token("end", None, start + bad.end())
            self.fail(f"Unrecognized character escape '{bad[1]}' (code {ord(bad[1])})")
        if found := _NO_WORD.match(self.text, start):
            self.now = Token("end", None, found.end())
            self.fail(
                f"Unrecognized token '{found[0]}': was expecting (JSON String, Number, Array, Object or token 'null', "
                "'true' or 'false')"
            )
        return self._unexpected(
            "expected a valid value (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
        )


def _unescape(raw: str) -> str:
    if "\\" not in raw:
        return raw
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _SHORT.get(m[2], m[2]), raw)
    return _SURROGATES.sub(lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
