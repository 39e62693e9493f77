"""Event patterns: which events a filter lets through. Pure.

The language of EventBridge rules, Pipes filters and Lambda event source mappings, as the engine that AWS publishes
(event-ruler) understands it, recorded answers of TestEventPattern included. Theory of operation::

    pattern text ──► rules: a disjunction ($or multiplied out) of {path: alternatives}
    event        ──► fields: (path, leaf, which element of which array it came from), wanted paths only
    a rule matches when every path has a field that one of its alternatives accepts, all from consistent
    elements: no two of the chosen fields may come from different elements of one array

A path is the keys joined by dots, so `{"a.b": [1]}` and `{"a": {"b": [1]}}` are the same pattern. Values are
compared as what they are: `1` is 1.0 and never "1".
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tasuki.rules.pattern_operators import Alternative, read_alternatives
from tasuki.rules.pattern_text import PatternError, Tokens

Matcher: TypeAlias = Callable[[Any], bool]
_Rule: TypeAlias = dict[str, list[Alternative]]
_Membership: TypeAlias = Mapping[int, int]
"""Array (numbered in order of appearance in the event) to element; plain values of an array belong to all of it."""
_Fields: TypeAlias = dict[str, list[tuple[Any, _Membership]]]

MAX_RULES = 1_000
"""A pattern whose `$or`s multiply out to more combinations is refused (EventBridge user guide, "$or")."""
_NOWHERE: _Membership = {}
_RESERVED = frozenset(
    {"exactly", "prefix", "suffix", "equals-ignore-case", "wildcard", "anything-but", "numeric", "exists", "cidr"}
)

__all__ = ["Matcher", "PatternError", "compile_pattern", "pattern_paths"]


def compile_pattern(text: str) -> Matcher:
    """Compile the JSON text of a pattern. Raises `PatternError` with AWS's reason.

    The matcher takes a decoded event (an object) and tells whether the pattern lets it through.
    """
    rules = [sorted(rule.items()) for rule in _read(text)]
    leaves = {path for rule in rules for path, _ in rule}
    prefixes = {path[:dot] for path in leaves for dot, letter in enumerate(path) if letter == "."}
    wanted = leaves | prefixes

    def matches(event: Any) -> bool:
        found = _Found(wanted, leaves)
        found.collect(event, "", _NOWHERE)
        return any(_fits(rule, 0, found.fields, _NOWHERE) for rule in rules)

    return matches


def pattern_paths(text: str) -> set[str]:
    """Answer the paths (keys joined by dots) that a pattern asks about. Raises `PatternError`."""
    return {path for rule in _read(text) for path in rule}


class _Found:
    """The leaves of one event at wanted paths. Empty arrays and objects have no leaves: they count as absent."""

    __slots__ = ("_arrays", "_leaves", "_wanted", "fields")

    def __init__(self, wanted: set[str], leaves: set[str]) -> None:
        self.fields: _Fields = {}
        self._wanted, self._leaves = wanted, leaves
        self._arrays = 0

    def collect(self, node: Any, path: str, at: _Membership) -> None:
        """Gather what is at and below `path`."""
        if isinstance(node, dict):
            start = path + "." if path else ""
            for key, child in node.items():
                below = start + key
                if below in self._wanted:
                    self.collect(child, below, at)
        elif isinstance(node, list):
            self._arrays += 1
            number = self._arrays
            for index, child in enumerate(node):
                self.collect(child, path, {**at, number: index} if isinstance(child, dict | list) else at)
        elif path in self._leaves:
            self.fields.setdefault(path, []).append((node, at))


def _fits(rule: list[tuple[str, list[Alternative]]], position: int, fields: _Fields, chosen: _Membership) -> bool:
    """Tell whether the rest of a rule can be fulfilled from elements that go with those chosen so far."""
    if position == len(rule):
        return True
    path, alternatives = rule[position]
    present = False
    for value, at in fields.get(path, ()):
        if at and chosen and any(chosen.get(array, index) != index for array, index in at.items()):
            continue
        present = True
        if not any(accepts is not None and accepts(value) for accepts in alternatives):
            continue
        together = {**chosen, **at} if at else chosen
        if _fits(rule, position + 1, fields, together):
            return True
    return not present and None in alternatives and _fits(rule, position + 1, fields, chosen)


# -- reading ------------------------------------------------------------------------------------------------


def _read(text: str) -> list[_Rule]:
    tokens = Tokens(text)
    if tokens.next().kind != "{":
        tokens.fail("Filter is not an object")
    rules = _read_object(tokens, "", [{}])
    if tokens.next().kind != "end":
        tokens.fail("Unexpected text after the pattern")
    return rules


def _read_object(tokens: Tokens, path: str, rules: list[_Rule], *, in_or: bool = False) -> list[_Rule]:
    """Read an object after its brace, laying what it asks over each of `rules`."""
    empty = True
    while (key := tokens.key()) is not None:
        empty = False
        if in_or and key in _RESERVED:
            tokens.next()
            tokens.fail(f"{key} is Ruler reserved fieldName which cannot be used inside $or.")
        below = f"{path}.{key}" if path else key
        token = tokens.next()
        if key == "$or":
            rules = _read_or(tokens, path, rules)
        elif token.kind == "{":
            rules = _read_object(tokens, below, rules)
        elif token.kind == "[":
            alternatives = read_alternatives(tokens)
            for rule in rules:
                rule[below] = alternatives
        else:
            tokens.fail(f'"{key}" must be an object or an array')
    if empty:
        tokens.fail("Empty objects are not allowed")
    return rules


def _read_or(tokens: Tokens, path: str, rules: list[_Rule]) -> list[_Rule]:
    """Read the objects of an `$or`: each is laid over a copy of the rules so far."""
    if tokens.now.kind != "[":
        tokens.fail("It must be an Array followed with $or.")
    together: list[_Rule] = []
    count = 0
    while tokens.next().kind != "]":
        if tokens.now.kind != "{":
            tokens.fail("Only objects are allowed in array of $or relationship.")
        count += 1
        together += _read_object(tokens, path, [dict(rule) for rule in rules], in_or=True)
        if len(together) > MAX_RULES:
            tokens.fail("Rule is too complex - its $or relationships combine to more than 1000 alternatives")
    if count < 2:
        tokens.fail("There must have at least 2 Objects in $or relationship.")
    return together
