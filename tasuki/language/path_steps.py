"""The grammar of paths: from text to steps. What steps mean is in `paths`.

The dialect is that of Jayway JsonPath, which AWS uses (its texts show in recorded errors)::

    path   = ("$" | "$$" | "$" name | "@") step*
    step   = "." name | "..": name | "*" | "." name "(" arguments ")"
           | "[" ( names | indices | slice | "*" | "?(" filter ")" ) "]"
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from tasuki.values.errors import TasukiError


class BadPath(TasukiError):
    """A text that is no path. Its own text says why and where."""


@dataclass(frozen=True, slots=True)
class Names:
    """`.a`, `['a']`, `['a','b']`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Indices:
    """`[0]`, `[-1]`, `[0,2]`."""

    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """`[1:3]`, `[:2]`, `[-2:]`; Jayway knows no step."""

    start: int | None
    stop: int | None


@dataclass(frozen=True, slots=True)
class Every:
    """`.*`, `[*]`."""


@dataclass(frozen=True, slots=True)
class Descend:
    """`..`: every node below, the present one first."""


@dataclass(frozen=True, slots=True)
class Where:
    """`[?(...)]`. `test(node, root)` tells whether a node is taken."""

    test: Callable[[Any, Any], bool]
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """`.length()`, `.concat($.a, 'b')`. Arguments are functions of the root."""

    name: str
    arguments: tuple[Callable[[Any], Any], ...]


Step: TypeAlias = Names | Indices | Slice | Every | Descend | Where | Call

_NAME_ENDS = ".[ ("
_NESTED_NAME_ENDS = _NAME_ENDS + ")],=!<>&|~\n\t"


class Cursor:
    """A place in a text that is being read. `nested` while a filter or a call is read: more ends a name there."""

    __slots__ = ("at", "nested", "text")

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at
        self.nested = 0

    def peek(self) -> str:
        """Answer the character here, "" at the end."""
        return self.text[self.at : self.at + 1]

    def starts(self, word: str) -> bool:
        """Tell whether `word` stands here."""
        return self.text.startswith(word, self.at)

    def skip(self, word: str) -> bool:
        """Step over `word` if it stands here."""
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def spaces(self) -> None:
        """Step over blanks."""
        while self.peek().isspace():
            self.at += 1

    def expect(self, word: str) -> None:
        """Step over `word`, which must stand here."""
        if not self.skip(word):
            self.fail(f"expected '{word}'")

    def fail(self, reason: str) -> NoReturn:
        """Refuse the text."""
        raise BadPath(f"{reason} at position {self.at} of '{self.text}'")

    def quoted(self) -> str:
        r"""Read a quoted text. A backslash frees the quote and itself; before anything else it stands for itself.

        (Recorded: test_escape_sequence_parsing[ESCAPE_SEQUENCES_JSONPATH] finds a name with `\"` in it literally.)
        """
        quote = self.peek()
        self.at += 1
        made: list[str] = []
        while True:
            here = self.peek()
            if not here:
                self.fail("a quote is not closed")
            self.at += 1
            if here == quote:
                return "".join(made)
            if here == "\\" and self.peek() in {quote, "\\"}:
                here = self.peek()
                self.at += 1
            made.append(here)

    def integer(self) -> int | None:
        """Read a whole number if one stands here."""
        end = self.at + self.starts("-")
        while self.text[end : end + 1].isdecimal() and self.text[end].isascii():
            end += 1
        digits = self.text[self.at : end]
        if not digits or digits == "-":
            return None
        self.at = end
        return int(digits)


def read_steps(cursor: Cursor) -> tuple[Step, ...]:
    """Read steps as far as they go; the cursor stands behind them. Raises `BadPath`."""
    steps: list[Step] = []
    while True:
        if cursor.skip(".."):
            steps.append(Descend())
            if cursor.peek() != "[":
                steps.append(_named(cursor))
        elif cursor.skip("."):
            steps.append(_bracket(cursor) if cursor.skip("[") else _named(cursor))
        elif cursor.skip("["):
            steps.append(_bracket(cursor))
        else:
            return tuple(steps)


def _named(cursor: Cursor) -> Step:
    if cursor.skip("*"):
        return Every()
    start = cursor.at
    text = cursor.text
    end = start
    ends = _NESTED_NAME_ENDS if cursor.nested else _NAME_ENDS
    while end < len(text) and text[end] not in ends:
        end += 1
    name = text[start:end]
    if not name:
        cursor.fail("a name is missing")
    cursor.at = end
    if cursor.skip("("):
        return Call(name, _arguments(cursor))
    return Names((name,))


def _arguments(cursor: Cursor) -> tuple[Callable[[Any], Any], ...]:
    from tasuki.language.path_filters import read_operand

    made: list[Callable[[Any], Any]] = []
    cursor.nested += 1
    cursor.spaces()
    while not cursor.skip(")"):
        operand = read_operand(cursor)
        made.append(_of_root(operand))
        cursor.spaces()
        if not cursor.skip(",") and cursor.peek() != ")":
            cursor.fail("expected ',' or ')'")
        cursor.spaces()
    cursor.nested -= 1
    return tuple(made)


def _of_root(operand: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda root: operand(root, root)


def _bracket(cursor: Cursor) -> Step:
    cursor.spaces()
    step: Step
    if cursor.peek() in {"'", '"'}:
        step = Names(_names(cursor))
    elif cursor.skip("*"):
        step = Every()
    elif cursor.skip("?"):
        step = _where(cursor)
    else:
        step = _numbers(cursor)
    cursor.spaces()
    cursor.expect("]")
    return step


def _names(cursor: Cursor) -> tuple[str, ...]:
    names = [cursor.quoted()]
    cursor.spaces()
    while cursor.skip(","):
        cursor.spaces()
        if cursor.peek() not in {"'", '"'}:
            cursor.fail("expected a quoted name")
        names.append(cursor.quoted())
        cursor.spaces()
    return tuple(names)


def _numbers(cursor: Cursor) -> Step:
    first = cursor.integer()
    cursor.spaces()
    if cursor.skip(":"):
        cursor.spaces()
        return Slice(first, cursor.integer())
    if first is None:
        cursor.fail("expected a name, an index, a slice, '*' or a filter")
    indices = [first]
    while cursor.skip(","):
        cursor.spaces()
        following = cursor.integer()
        if following is None:
            cursor.fail("expected an index")
        indices.append(following)
        cursor.spaces()
    return Indices(tuple(indices))


def _where(cursor: Cursor) -> Where:
    from tasuki.language.path_filters import read_filter

    cursor.spaces()
    start = cursor.at
    cursor.expect("(")
    cursor.nested += 1
    test = read_filter(cursor)
    cursor.nested -= 1
    cursor.spaces()
    cursor.expect(")")
    return Where(test, cursor.text[start : cursor.at])
