"""A look at the words of a JSONata expression, before the library compiles it.

It finds what the library cannot say: syntax that is newer than JSONata 2.0.6, on which AWS's dialect is based; where a
name stands that means something only with an input document; and which `$names` the expression mentions. It need not
understand the expression: what it misses, the library's parser finds.
"""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<space>\s+ | /\*(?:.|\n)*?\*/)
  | (?P<text>"(?:\\(?:.|\n)|[^"\\])*" | '(?:\\(?:.|\n)|[^'\\])*')
  | (?P<quoted>`[^`]*`)
  | (?P<variable>\$\w+ | \$\$ | \$)
  | (?P<name>[^\W\d]\w*)
  | (?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
  | (?P<newer>\?:|\?\?)
  | (?P<operator>\.\.|:=|!=|>=|<=|\*\*|~>|(?:.|\n))
    """,
    re.VERBOSE,
)
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+/[a-z]*")
_SIGNATURE = re.compile(r"<[-a-zA-Z<>()?+:]*>(?=\s*\{)")
_WORDS = frozenset({"and", "or", "in"})
_CLOSERS = frozenset({")", "]", "}"})


@dataclass(frozen=True, slots=True)
class Words:
    """What an expression mentions."""

    variables: frozenset[str]
    """`name` of every `$name`, those that it binds itself among them."""
    context: tuple[str, ...]
    """`$` and `$$`, in the order of their first place."""
    names: tuple[str, ...]
    """Bare and back-quoted names that begin a path or might, in the order of their first place."""
    newer: str | None
    """Why JSONata 2.0.6 cannot parse it: it has no `?:` and `??`."""


def scan(source: str) -> Words:
    """Read an expression's words."""
    variables: set[str] = set()
    context: dict[str, None] = {}
    names: dict[str, None] = {}
    newer: str | None = None
    place, previous = 0, ""
    while place < len(source):
        if source[place] == "/" and not source.startswith("/*", place) and not _ends_operand(previous):
            found = _REGEX.match(source, place)
            if found is not None:
                place, previous = found.end(), "regex"
                continue
        if previous == ")" and (found := _SIGNATURE.match(source, place)) is not None:
            place = found.end()
            continue
        found = _TOKEN.match(source, place)
        assert found is not None, "the last alternative takes any character"
        place, text = found.end(), found.group()
        kind = found.lastgroup
        if kind == "space":
            continue
        if kind == "variable":
            if len(text) > 1 and text != "$$":
                variables.add(text[1:])
            else:
                context.setdefault(text)
        elif kind in {"name", "quoted"} and previous != ".":
            names.setdefault(text.strip("`"))
        elif kind == "newer" and newer is None:
            newer = f'The symbol "{text[1]}" cannot be used as a unary operator'
        previous = text if kind in {"operator", "name"} else str(kind)
    return Words(frozenset(variables), tuple(context), tuple(names), newer)


def _ends_operand(previous: str) -> bool:
    """Tell whether a value may end with this token: a `/` after it divides."""
    if previous in {"text", "quoted", "variable", "number", "regex"} or previous in _CLOSERS:
        return True
    return previous.isidentifier() and previous not in _WORDS
