"""Filters in paths: `[?(@.a == 'x' && @.b[0] > 3)]`, compiled to closures of (node, root).

Jayway's rules: `||` binds weaker than `&&`, `!` negates; a number equals a text that spells it; an absent field equals
nothing (so `!=` holds); ordering holds only among numbers or among texts.
"""

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from tasuki.language.path_steps import BadPath, Cursor, read_steps

Operand: TypeAlias = Callable[[Any, Any], Any]
Test: TypeAlias = Callable[[Any, Any], bool]

ABSENT: Any = object()
"""What a path in a filter answers when it finds nothing."""

_OPERATORS = ("===", "!==", "==", "!=", "<=", ">=", "=~", "<", ">")
_WORDS = ("subsetof", "noneof", "anyof", "contains", "empty", "size", "nin", "all", "in")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_WORD = re.compile(r"[\w.:-]+")
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "u": 0, "d": 0}


def read_filter(cursor: Cursor) -> Test:
    """Read what stands between the parentheses of a filter. Raises `BadPath`."""
    tests = [_conjunction(cursor)]
    while _skip(cursor, "||"):
        tests.append(_conjunction(cursor))
    if len(tests) == 1:
        return tests[0]
    return lambda node, root: any(test(node, root) for test in tests)


def _skip(cursor: Cursor, word: str) -> bool:
    cursor.spaces()
    return cursor.skip(word)


def _conjunction(cursor: Cursor) -> Test:
    tests = [_term(cursor)]
    while _skip(cursor, "&&"):
        tests.append(_term(cursor))
    if len(tests) == 1:
        return tests[0]
    return lambda node, root: all(test(node, root) for test in tests)


def _term(cursor: Cursor) -> Test:
    cursor.spaces()
    if cursor.skip("!"):
        inner = _term(cursor)
        return lambda node, root: not inner(node, root)
    if cursor.skip("("):
        inner = read_filter(cursor)
        cursor.spaces()
        cursor.expect(")")
        return inner
    left = read_operand(cursor)
    cursor.spaces()
    for operator in _OPERATORS:
        if cursor.skip(operator):
            return _compare(cursor, operator, left)
    for word in _WORDS:
        if cursor.text[cursor.at : cursor.at + len(word)].lower() == word:
            cursor.at += len(word)
            return _compare(cursor, word, left)
    return lambda node, root: left(node, root) is not ABSENT


def _compare(cursor: Cursor, operator: str, left: Operand) -> Test:
    cursor.spaces()
    if operator == "=~":
        pattern = _pattern(cursor)
        return lambda node, root: isinstance(text := left(node, root), str) and pattern.fullmatch(text) is not None
    right = read_operand(cursor)
    compare = _COMPARISONS[operator]
    return lambda node, root: compare(left(node, root), right(node, root))


def _pattern(cursor: Cursor) -> re.Pattern[str]:
    cursor.expect("/")
    made: list[str] = []
    while not cursor.skip("/"):
        here = cursor.peek()
        if not here:
            cursor.fail("a pattern is not closed")
        if here == "\\" and cursor.text[cursor.at + 1 : cursor.at + 2] == "/":
            cursor.at += 1
            here = "/"
        elif here == "\\":
            here = cursor.text[cursor.at : cursor.at + 2]
            cursor.at += 1
        made.append(here)
        cursor.at += 1
    flags = 0
    while cursor.peek() in _FLAGS:
        flags |= _FLAGS[cursor.peek()]
        cursor.at += 1
    try:
        return re.compile("".join(made), flags)
    except re.error as bad:
        raise BadPath(f"the pattern in '{cursor.text}' is not one: {bad}") from None


def read_operand(cursor: Cursor) -> Operand:
    """Read a path, a literal or a list of literals. Raises `BadPath`."""
    here = cursor.peek()
    if here in {"@", "$"}:
        return _path(cursor)
    value = _literal(cursor)
    return lambda node, root: value  # noqa: ARG005 - an operand's shape


def _path(cursor: Cursor) -> Operand:
    from tasuki.language.paths import finder

    of_node = cursor.peek() == "@"
    cursor.at += 1
    find = finder(read_steps(cursor), ABSENT)
    if of_node:
        return find
    return lambda node, root: find(root, root)  # noqa: ARG005 - an operand's shape


def _literal(cursor: Cursor) -> Any:
    here = cursor.peek()
    if here in {"'", '"'}:
        return cursor.quoted()
    if cursor.skip("["):
        made: list[Any] = []
        cursor.spaces()
        while not cursor.skip("]"):
            made.append(_literal(cursor))
            cursor.spaces()
            if not cursor.skip(",") and cursor.peek() != "]":
                cursor.fail("expected ',' or ']'")
            cursor.spaces()
        return made
    for word, value in (("true", True), ("false", False), ("null", None)):
        if cursor.skip(word):
            return value
    found = _NUMBER.match(cursor.text, cursor.at)
    if found is None:
        return _bare_word(cursor)
    cursor.at = found.end()
    return float(found[0]) if set(found[0]) & set(".eE") else int(found[0])


def _bare_word(cursor: Cursor) -> str:
    """Read a text without quotes, as definitions that were deployed on AWS have it: `[?(@.status==Failure)]`."""
    found = _WORD.match(cursor.text, cursor.at)
    if found is None:
        cursor.fail("expected a path or a literal")
    cursor.at = found.end()
    return found[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(left: Any, right: Any) -> bool:
    if left is ABSENT or right is ABSENT:
        return False
    if isinstance(left, str) and _is_number(right):
        return left == str(right)
    if _is_number(left) and isinstance(right, str):
        try:
            return bool(left == float(right))
        except ValueError:
            return False
    return same_json(left, right)


_NO_NUMBER = {bool, list, dict}
"""Types for which Python's `==` is not JSON's, or not shallow."""


def same_json(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal: as Python's `==`, but true is not 1 and 1 is 1.0, at any depth."""
    todo = [(left, right)]
    while todo:
        one, other = todo.pop()
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            todo.extend(zip(one, other, strict=True))
        elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
            todo.extend((item, other[key]) for key, item in one.items())
        elif one is not other and (type(one) in _NO_NUMBER or type(other) in _NO_NUMBER or one != other):
            return False
    return True


def _ordered(left: Any, right: Any) -> bool:
    return (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str))


def _within(left: Any, right: Any) -> bool:
    return isinstance(right, list) and any(_same(left, item) for item in right)


def _contains(left: Any, right: Any) -> bool:
    if isinstance(left, str):
        return isinstance(right, str) and right in left
    return _within(right, left)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list | str | dict) else -1


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _same,
    "===": lambda left, right: type(left) is type(right) and _same(left, right),
    "!=": lambda left, right: not _same(left, right),
    "!==": lambda left, right: type(left) is not type(right) or not _same(left, right),
    "<": lambda left, right: _ordered(left, right) and left < right,
    "<=": lambda left, right: _ordered(left, right) and left <= right,
    ">": lambda left, right: _ordered(left, right) and left > right,
    ">=": lambda left, right: _ordered(left, right) and left >= right,
    "in": _within,
    "nin": lambda left, right: isinstance(right, list) and not _within(left, right),
    "subsetof": lambda left, right: isinstance(left, list) and all(_within(item, right) for item in left),
    "anyof": lambda left, right: isinstance(left, list) and any(_within(item, right) for item in left),
    "noneof": lambda left, right: isinstance(left, list) and not any(_within(item, right) for item in left),
    "all": lambda left, right: (
        isinstance(left, list) and isinstance(right, list) and all(_within(i, left) for i in right)
    ),
    "contains": _contains,
    "size": lambda left, right: _size(left) == right,
    "empty": lambda left, right: _size(left) >= 0 and (_size(left) == 0) is right,
}
