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

from collections.abc import Callable
from typing import Any, TypeAlias

from tasuki.rules.pattern_operators import Alternative, read_alternatives
from tasuki.rules.pattern_search import NOWHERE, Fields, Membership, Rule, Search, accepts
from tasuki.rules.pattern_text import PatternError, Tokens

Matcher: TypeAlias = Callable[[Any], bool]
_Rule: TypeAlias = dict[str, list[Alternative]]

MAX_RULES = 1_000
"""A pattern whose `$or`s multiply out to more combinations is refused (EventBridge user guide, "$or")."""
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
        found.collect(event, "", NOWHERE)
        if not found.has_elements:
            known: dict[int, bool] = {}
            return any(_all_met(rule, found.fields, known) for rule in rules)
        return any(map(Search(found.fields).fits, rules))

    return matches


def pattern_paths(text: str) -> set[str]:
    """Answer the paths (keys joined by dots) that a pattern asks about. Raises `PatternError`."""
    return {path for rule in _read(text) for path in rule}


class _Found:
    """The leaves of one event at wanted paths. Empty arrays and objects have no leaves: they count as absent."""

    __slots__ = ("_arrays", "_leaves", "_wanted", "fields", "has_elements")

    def __init__(self, wanted: set[str], leaves: set[str]) -> None:
        self.fields: Fields = {}
        self.has_elements = False
        """Whether any leaf lies in an object or array that is an element of an array."""
        self._wanted, self._leaves = wanted, leaves
        self._arrays = 0

    def collect(self, node: Any, path: str, at: Membership) -> None:
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
            self.has_elements = self.has_elements or bool(at)


def _all_met(rule: Rule, fields: Fields, known: dict[int, bool]) -> bool:
    """Tell whether a rule is fulfilled by leaves that lie in no elements, so that any goes with any."""
    for path, alternatives in rule:
        met = known.get(id(alternatives))
        if met is None:
            leaves = fields.get(path)
            met = any(accepts(alternatives, value) for value, _ in leaves) if leaves else None in alternatives
            known[id(alternatives)] = met
        if not met:
            return False
    return True


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
