"""Documents in JSON and YAML with the line at which each value stands. Pure.

A place is a JSON pointer as definitions have them, with array places in brackets: `/Resources/Nightly/Properties/Targets[0]/Input`.
CloudFormation's short tags are read as the functions they stand for: `!Sub text` is `{"Fn::Sub": "text"}`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tasuki.language.payload import escape
from tasuki.values import documents

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLAIN = frozenset(
    {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null"}
)
_WITHOUT_PREFIX = frozenset({"Ref", "Condition"})
MOST_VALUES = 1_000_000
"""Of one document in YAML, whose aliases can make much of little."""


class Unreadable(Exception):
    """A text is not the YAML that it should be: why, and in which line."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True, slots=True)
class Place:
    """A value and where it stands."""

    value: Any
    pointer: str
    lines: Mapping[str, int]

    @property
    def line(self) -> int:
        """The line of it, or of what it stands in. Counted from 1."""
        pointer = self.pointer
        while pointer and pointer not in self.lines:
            pointer = pointer[: max(pointer.rfind("/"), pointer.rfind("["), 0)]
        return self.lines.get(pointer, 1)

    @property
    def text(self) -> str | None:
        """The text it is, or the text that `Fn::Sub` is given; None for anything else."""
        value = self.value
        if isinstance(value, dict) and len(value) == 1 and "Fn::Sub" in value:
            value = value["Fn::Sub"]
            value = value[0] if isinstance(value, list) and value else value
        return value if isinstance(value, str) else None

    def at(self, *names: str) -> "Place | None":
        """Answer what stands under these names; also as Terraform writes them, `flexible_time_window: [{...}]`."""
        here: Place | None = self
        for name in names:
            if here is None:
                return None
            here = _member(_single(here), name)
        return here

    def members(self) -> Iterator[tuple[str, "Place"]]:
        """Yield the members of an object, or the entries of an array under their numbers; of anything else nothing."""
        if isinstance(self.value, dict):
            for name, value in self.value.items():
                yield str(name), Place(value, f"{self.pointer}/{escape(str(name))}", self.lines)
        elif isinstance(self.value, list):
            for at, value in enumerate(self.value):
                yield str(at), Place(value, f"{self.pointer}[{at}]", self.lines)

    def texts(self) -> Iterator["Place"]:
        """Yield every text in it. What aliases share comes once."""
        todo, seen = [self], set()
        while todo:
            here = todo.pop()
            if isinstance(here.value, str):
                yield here
            elif isinstance(here.value, dict | list) and id(here.value) not in seen:
                seen.add(id(here.value))
                todo.extend(place for _, place in here.members())


def _single(place: Place) -> Place:
    if isinstance(place.value, list) and len(place.value) == 1:
        return Place(place.value[0], f"{place.pointer}[0]", place.lines)
    return place


def _member(place: Place, name: str) -> Place | None:
    if isinstance(place.value, dict):
        for one in (name, _SNAKE.sub("_", name).lower()):
            if one in place.value:
                return Place(place.value[one], f"{place.pointer}/{escape(one)}", place.lines)
    return None


def read_json(text: str) -> Place:
    """Read JSON. Raises `MalformedDocument`."""
    return Place(documents.loads(text), "", _lines_of(text))


def _lines_of(text: str) -> dict[str, int]:
    """Answer the line of each value of a JSON text that is known to be right."""
    lines: dict[str, int] = {}
    line, read = 1, 0
    around: list[list[Any]] = []  # of each array or object around: its pointer, and the place or name of what comes
    for token in _TOKEN.finditer(text):
        line += text.count("\n", read, token.start())
        read = token.start()
        word = token[0]
        if word == ":":
            continue
        if word in {"}", "]"}:
            around.pop()
        elif word == ",":
            around[-1][1] = around[-1][1] + 1 if isinstance(around[-1][1], int) else None
        elif around and around[-1][1] is None:
            around[-1][1] = escape(str(documents.loads(word)))
        else:
            pointer = ""
            if around:
                base, key = around[-1]
                pointer = f"{base}[{key}]" if isinstance(key, int) else f"{base}/{key}"
            lines[pointer] = line
            if word in {"{", "["}:
                around.append([pointer, 0 if word == "[" else None])
    return lines


def read_yaml(text: str) -> list[Place]:
    """Read the documents of a YAML text. Raises `Unreadable`."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return [_Composed(node).place for node in yaml.compose_all(text, Loader=loader) if node is not None]
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        raise Unreadable(bad.problem or "it can't be read", mark.line + 1 if mark else 1) from None
    except yaml.YAMLError as bad:
        raise Unreadable(str(bad).splitlines()[0], 1) from None
    except RecursionError:
        raise Unreadable("it is nested too deep", 1) from None


class _Composed:
    """One document, made of YAML's nodes."""

    def __init__(self, root: Any) -> None:
        self._lines: dict[str, int] = {}
        self._made: dict[int, Any] = {}
        self._open: set[int] = set()
        self.place = Place(self._value(root, ""), "", self._lines)

    def _value(self, node: Any, pointer: str) -> Any:
        self._lines[pointer] = node.start_mark.line + 1
        if id(node) in self._open:
            raise Unreadable("an alias stands inside of what it is an alias of", node.start_mark.line + 1)
        if id(node) not in self._made:
            if len(self._made) > MOST_VALUES:
                raise Unreadable(f"it has more than {MOST_VALUES} values", node.start_mark.line + 1)
            self._open.add(id(node))
            self._made[id(node)] = self._make(node, pointer)
            self._open.discard(id(node))
        return self._made[id(node)]

    def _make(self, node: Any, pointer: str) -> Any:
        value: Any
        if isinstance(node.value, str):
            value = _scalar(node)
        elif node.id == "sequence":
            value = [self._value(one, f"{pointer}[{at}]") for at, one in enumerate(node.value)]
        else:
            value = {
                key.value: self._value(one, f"{pointer}/{escape(str(key.value))}")
                for key, one in node.value
                if isinstance(key.value, str)
            }
        if node.tag.startswith("!") and len(node.tag) > 1:
            name = node.tag[1:]
            return {name if name in _WITHOUT_PREFIX else f"Fn::{name}": value}
        return value


def _scalar(node: Any) -> Any:
    if node.tag not in _PLAIN:
        return node.value
    try:
        return _maker().construct_object(node)
    except ValueError:
        return node.value


@cache
def _maker() -> Any:
    import yaml

    return yaml.SafeLoader("")
