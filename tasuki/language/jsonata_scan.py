"""A look at the words of a JSONata expression, before the library compiles it.

It finds what the library cannot say: syntax that is newer than JSONata 2.0.6, on which AWS's dialect is based; where a
name stands that means something only with an input document; and which `$names` the expression mentions. It need not
understand the expression: what it misses, the library's parser finds.

It also puts a guard into ranges: the library makes all ten million numbers of `[1..9999999]` before it looks at its
limit, which takes a second and 230 MB.
"""

import re
from dataclasses import dataclass, field

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
    of_states: tuple[str, ...]
    """`name` of every `$states.name`, in the order of their first place."""
    newer: str | None
    """Why JSONata 2.0.6 cannot parse it: it has no `?:` and `??`."""
    guarded: str
    """The expression with `[(a)..$range_end((a),(b))]` for every `[a..b]`."""
    called: frozenset[str]
    """`name` of every `$name(`."""


def scan(source: str) -> Words:
    """Read an expression's words."""
    ranges = _Ranges(source)
    variables: set[str] = set()
    called: set[str] = set()
    variable = ""
    context: dict[str, None] = {}
    names: dict[str, None] = {}
    of_states: dict[str, None] = {}
    newer: str | None = None
    place, previous, path = 0, "", ""
    while place < len(source):
        if source[place] == "/" and not source.startswith("/*", place) and not _ends_operand(previous):
            found = _REGEX.match(source, place)
            if found is not None:
                place, previous, path = found.end(), "regex", ""
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
        if kind == "operator":
            ranges.see(text, found.start())
            called |= {variable} if text == "(" and previous == "variable" else set()
        if kind == "variable":
            variable = text[1:]
            if len(text) > 1 and text != "$$":
                variables.add(text[1:])
            else:
                context.setdefault(text)
        elif kind in {"name", "quoted"} and previous != ".":
            names.setdefault(text.strip("`"))
        elif kind in {"name", "quoted"} and path == "$states.":
            of_states.setdefault(text.strip("`"))
        elif kind == "newer" and newer is None:
            newer = f'The symbol "{text[1]}" cannot be used as a unary operator'
        path = text if text == "$states" else path + text if path + text == "$states." else ""
        previous = text if kind in {"operator", "name"} else str(kind)
    return Words(
        frozenset(variables), tuple(context), tuple(names), tuple(of_states), newer, ranges.guarded(), frozenset(called)
    )


@dataclass(slots=True)
class _Ranges:
    """Finds the ranges of an expression: members of an array's constructor with `..` in them."""

    source: str
    open: list[list[int]] = field(default_factory=list)
    """For each bracket that is open: where its member began, and where `..` stands in it (-1: nowhere)."""
    found: list[tuple[int, int, int]] = field(default_factory=list)

    def see(self, operator: str, place: int) -> None:
        """Take in an operator."""
        if operator in {"[", "(", "{"}:
            self.open.append([place + 1, -1])
        elif self.open and operator == "..":
            self.open[-1][1] = place
        elif self.open and operator in {",", ")", "]", "}"}:
            begin, dots = self.open[-1]
            if dots >= 0:
                self.found.append((begin, dots, place))
            self.open[-1] = [place + 1, -1]
            if operator != ",":
                self.open.pop()

    def guarded(self) -> str:
        """Answer the expression with its ranges guarded."""
        pieces: list[tuple[int, str]] = []
        for begin, dots, end in self.found:
            low = self.source[begin:dots]
            pieces += [(begin, "("), (dots, ")"), (dots + 2, f"$range_end(({low}),("), (end, "))")]
        made, done = [], 0
        for place, text in sorted(pieces, key=lambda piece: piece[0]):
            made += [self.source[done:place], text]
            done = place
        return "".join(made) + self.source[done:]


def _ends_operand(previous: str) -> bool:
    """Tell whether a value may end with this token: a `/` after it divides."""
    if previous in {"text", "quoted", "variable", "number", "regex"} or previous in _CLOSERS:
        return True
    return previous.isidentifier() and previous not in _WORDS
