r"""Terraform's `.tf` files, as far as `lint` must read them: texts, calls, and the blocks they stand in. Pure.

What a text becomes (Terraform language, "Strings and templates"): in quotes `\u003c` is `<` and `\\u003c` stays `\u003c`; in a
heredoc nothing is unescaped. `jsonencode` writes `<` as `\u003c`, unless `replace` turns it back. Both are also followed through `local.NAME` of the same file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*|//[^\n]*|/\*(?:.|\n)*?(?:\*/|\Z))
      | <<[-~]?(?P<heredoc>[A-Za-z_][\w-]*)[ \t]*\n
      | (?P<quote>")
      | (?P<name>[A-Za-z_][\w.-]*)
      | (?P<mark>[(){}\[\],=])""",
    re.VERBOSE,
)
_QUOTED = re.compile(r'\\.|\$\$\{|%%\{|(?P<place>[$%]\{)|(?P<end>")', re.DOTALL)
_UNESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
_ENCODED = re.compile(r"\\u003([ceCE])")
_LOCAL = "local."
_ATTRIBUTE = re.compile(r"<aws\.(?:scheduler|pipes|events)\.[a-z.\-]+>")


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it will be, and where it begins. `whole` when nothing is interpolated."""

    value: str
    at: int
    field: str
    """The argument it is the value of, when it is all of the value: `schedule_expression`."""
    block: str
    """The resource around: `aws_scheduler_schedule.nightly`, or empty."""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Encoded:
    """An attribute inside of `jsonencode(...)`, or a local that may hold some, and what of their brackets stays escaped."""

    attribute: str
    at: int
    argument: str
    """What the whole is the value of: `input`."""
    left: frozenset[str] = frozenset("ce")


@dataclass(slots=True)
class _Frame:
    """What is open: a bracket with the word before it."""

    mark: str
    name: str
    block: str
    argument: str = ""
    held: list[Encoded] = field(default_factory=list)
    locals: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    """Locals inside of it, and what was turned back of their brackets so far."""
    turned: set[str] = field(default_factory=set)
    """Of a `replace`: which of the brackets it turns back."""


class Terraform:
    """What stands in a file: `texts`, and attributes that `jsonencode` will escape, `encoded`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.texts: list[Text] = []
        self.encoded: list[Encoded] = []
        self._found: list[Encoded] = []
        self._attributes: dict[str, list[str]] = {}
        self._turned: dict[str, frozenset[str]] = {}
        self._frames: list[_Frame] = [_Frame("", "", "")]
        self._words: list[str] = []
        self._scan(0, len(source), until="")
        self._settle()

    def line(self, at: int) -> int:
        """The line of an offset, counted from 1."""
        return self.source.count("\n", 0, at) + 1

    def _scan(self, at: int, end: int, until: str) -> int:
        """Read up to the bracket that closes an interpolation, or to the end; answer the offset behind."""
        depth = len(self._frames)
        while (token := _TOKEN.search(self.source, at, end)) is not None:
            at = token.end()
            if token["quote"]:
                at = self._quoted(at, end)
            elif token["heredoc"]:
                at = self._heredoc(token["heredoc"], at, end)
            elif token["name"]:
                self._word(token["name"], token.start())
            elif (mark := token["mark"]) is not None:
                if mark == until and len(self._frames) == depth:
                    return at
                self._mark(mark)
        return end

    def _word(self, name: str, at: int) -> None:
        self._words.append(name)
        if name.startswith(_LOCAL):
            frame = self._frames[-1]
            frame.locals.append((name, frozenset()))
            if any(one.name == "jsonencode" for one in self._frames):
                frame.held.append(Encoded(name, at, frame.argument))

    def _mark(self, mark: str) -> None:
        if mark in "({[":
            around = self._frames[-1]
            block, argument = around.block, around.argument
            if not argument and len(self._words) >= 2 and self._words[1] == "=":
                argument = self._words[0]
            if mark == "{" and len(self._words) >= 3 and self._words[-3] == "resource":
                block = f"{self._words[-2]}.{self._words[-1]}"
            name = self._words[-1] if self._words and mark == "(" else ""
            self._frames.append(_Frame(mark, name, block, argument))
            self._words = []
        elif mark in ")}]":
            if len(self._frames) > 1:
                self._close(self._frames.pop())
            self._words = []
        elif mark == "=":
            self._words = [*self._words[-1:], "="]
        else:
            self._words = []

    def _close(self, frame: _Frame) -> None:
        turned = frozenset(frame.turned)  # of anything but a `replace` it is empty
        around = self._frames[-1]
        around.locals.extend((name, done | turned) for name, done in frame.locals)
        held = [replace(one, left=one.left - turned) for one in frame.held]
        if any(one.mark == "(" for one in self._frames):
            around.held.extend(held)
            return
        self._found.extend(held)
        for name, done in around.locals:
            self._turned[name] = self._turned.get(name, frozenset()) | done
        around.locals.clear()

    def _settle(self) -> None:
        """Put in what is held by locals, and leave out what is turned back where they are used."""
        for one in self._found:
            left = one.left - self._turned.get(f"{_LOCAL}{one.argument}", frozenset())
            inside = self._attributes.get(one.attribute, []) if one.attribute.startswith(_LOCAL) else [one.attribute]
            self.encoded.extend(replace(one, attribute=attribute, left=left) for attribute in inside if left)

    def _quoted(self, at: int, end: int) -> int:
        pieces, begin, whole = [], at, True
        words, self._words = self._words, []
        piece = at
        while (found := _QUOTED.search(self.source, at, end)) is not None:
            at = found.end()
            if found["end"]:
                pieces.append(self.source[piece : found.start()])
                break
            if found["place"]:
                pieces.append(self.source[piece : found.start()])
                whole = False
                at = piece = self._scan(at, end, until="}")
        else:
            at = end
        self._words = words
        self._text("".join(_UNESCAPED.sub(_unescape, one) for one in pieces), begin, whole)
        return at

    def _heredoc(self, name: str, at: int, end: int) -> int:
        last = re.compile(rf"^[ \t]*{re.escape(name)}[ \t]*$", re.MULTILINE).search(self.source, at, end)
        stop = last.start() if last is not None else end
        pieces, begin, whole = [], at, True
        words, self._words = self._words, []
        piece = at
        while (found := re.compile(r"[$%]\{").search(self.source, at, stop)) is not None:
            at = found.end()
            if self.source[found.start() - 1 : found.start()] in {"$", "%"}:
                continue
            pieces.append(self.source[piece : found.start()])
            whole = False
            at = piece = self._scan(at, stop, until="}")
        pieces.append(self.source[piece:stop])
        self._words = words
        self._text("".join(pieces), begin, whole)
        return last.end() if last is not None else end

    def _text(self, value: str, at: int, whole: bool) -> None:
        frame = self._frames[-1]
        if frame.name == "replace":
            frame.turned |= {letter.lower() for letter in _ENCODED.findall(value)}
        argument = self._words[0] if len(self._words) == 2 and self._words[1] == "=" else ""
        self.texts.append(Text(value, at, argument, frame.block, whole))
        if argument:
            self._words = []
        elif self._words and self._words[-1] != "=":
            self._words.append(value)  # the labels of a block
        if any(one.name == "jsonencode" for one in self._frames):
            frame.held.extend(Encoded(attribute, at, frame.argument) for attribute in _ATTRIBUTE.findall(value))
        else:
            self._attributes.setdefault(f"{_LOCAL}{frame.argument or argument}", []).extend(_ATTRIBUTE.findall(value))


def _unescape(found: re.Match[str]) -> str:
    code, letter = found.groups()
    return chr(int(code, 16)) if code else _LETTERS.get(letter, letter)


def blocks(terraform: Terraform) -> Iterator[tuple[str, dict[str, Text]]]:
    """Yield each resource with the texts that its arguments are, by name."""
    found: dict[str, dict[str, Text]] = {}
    for text in terraform.texts:
        if text.block and text.field and text.whole:
            found.setdefault(text.block, {})[text.field] = text
    yield from found.items()
