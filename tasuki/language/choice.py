"""Choice rules of JSONPath mode, compiled to tests.

A value of the wrong type makes a comparison false, never an error (recorded, 491 cases); a path that finds nothing makes
the state fail, except under IsPresent.
"""

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from tasuki.language.definition import Expression, Scope
from tasuki.language.errors import StatesError
from tasuki.language.path_steps import BadPath
from tasuki.language.paths import Path, parse_path
from tasuki.language.timestamps import parse_timestamp
from tasuki.values.errors import TasukiError

Compare: TypeAlias = Callable[[Any, Any], bool]
RuleTest: TypeAlias = Callable[[Scope], bool]


class BadRule(TasukiError):
    """A choice rule that is none. `field` is where, below the rule ("" is the rule itself), the text why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def _text(value: Any) -> Any:
    """Answer what texts are compared by: UTF-16 code units, as Java does."""
    if not isinstance(value, str):
        return None
    return value if value.isascii() else _Units(value)


class _Units(str):
    """A text that is ordered by its UTF-16 code units: differs from Python's order above U+FFFF only."""

    __slots__ = ()

    def _units(self, other: str) -> tuple[bytes, bytes]:
        return str(self).encode("utf-16-be", "surrogatepass"), str(other).encode("utf-16-be", "surrogatepass")

    def __lt__(self, other: str) -> bool:
        mine, others = self._units(other)
        return mine < others

    def __le__(self, other: str) -> bool:
        return not self > other

    def __gt__(self, other: str) -> bool:
        mine, others = self._units(other)
        return mine > others

    def __ge__(self, other: str) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def _number(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Any) -> Any:
    return value if isinstance(value, bool) else None


def _timestamp(value: Any) -> Any:
    return parse_timestamp(value) if isinstance(value, str) else None


_NUMBERS = {int, float}
_KINDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "String": (_text, "String"),
    "Numeric": (_number, "Number"),
    "Boolean": (_boolean, "Boolean"),
    "Timestamp": (_timestamp, "Timestamp"),
}
_ORDERS: dict[str, Compare] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "GreaterThan": operator.gt,
    "LessThanEquals": operator.le,
    "GreaterThanEquals": operator.ge,
}
_TYPES: dict[str, Callable[[Any], bool]] = {
    "IsNull": lambda value: value is None,
    "IsString": lambda value: isinstance(value, str),
    "IsNumeric": lambda value: _number(value) is not None,
    "IsBoolean": lambda value: isinstance(value, bool),
    "IsTimestamp": lambda value: _timestamp(value) is not None,
}
_COMPARISONS: dict[str, tuple[Callable[[Any], Any], str, Compare]] = {
    f"{kind}{order}": (*of, compare)
    for kind, of in _KINDS.items()
    for order, compare in _ORDERS.items()
    if kind != "Boolean" or order == "Equals"
}

OPERATORS = frozenset([*_COMPARISONS, *(f"{name}Path" for name in _COMPARISONS), *_TYPES, "IsPresent", "StringMatches"])
"""Every operator that stands beside Variable."""

CONNECTIVES = frozenset(["And", "Or", "Not"])


def compile_rule(rule: dict[str, Any], variables: set[str]) -> RuleTest:
    """Compile a rule, nested or not; Next, Assign, Output and Comment are the caller's. Raises `BadRule`."""
    present = [name for name in rule if name in OPERATORS or name in CONNECTIVES]
    if len(present) != 1:
        raise BadRule("", f"A Choice rule must have exactly one comparison operator, not {len(present)}")
    (comparator,) = present
    operand = rule[comparator]
    if comparator in CONNECTIVES:
        return _connect(comparator, operand, variables)
    variable = rule.get("Variable")
    if not isinstance(variable, str):
        raise BadRule("", "The field 'Variable' is required but was missing")
    path = _path("Variable", variable, variables)
    if comparator == "IsPresent":
        finds = path.present()
        return finds if _flag(comparator, operand) else lambda scope: not finds(scope)
    read = path.bind(_variable_missing, strict=True)
    if comparator in _TYPES:
        return _is_type(read, _TYPES[comparator], _flag(comparator, operand))
    if comparator == "StringMatches":
        return _string_matches(read, operand)
    if comparator.endswith("Path"):
        if not isinstance(operand, str):
            raise BadRule(comparator, "Expected value of type String")
        return _compare_paths(
            read, _path(comparator, operand, variables).bind(_variable_missing, strict=True), comparator[:-4]
        )
    return _compare_literal(read, comparator, operand)


def _connect(comparator: str, operand: Any, variables: set[str]) -> RuleTest:
    if comparator == "Not":
        if not isinstance(operand, dict):
            raise BadRule(comparator, "Expected value of type Object")
        inner = _nested(comparator, operand, variables)
        return lambda scope: not inner(scope)
    if not isinstance(operand, list) or not operand:
        raise BadRule(comparator, "Value cannot be empty" if operand == [] else "Expected value of type Array")
    tests = []
    for place, rule in enumerate(operand):
        if not isinstance(rule, dict):
            raise BadRule(f"{comparator}[{place}]", "Expected value of type Object")
        tests.append(_nested(f"{comparator}[{place}]", rule, variables))
    if comparator == "And":
        return lambda scope: all(test(scope) for test in tests)
    return lambda scope: any(test(scope) for test in tests)


def _nested(field: str, rule: dict[str, Any], variables: set[str]) -> RuleTest:
    if "Next" in rule:
        raise BadRule(f"{field}/Next", "Field is not supported")
    try:
        return compile_rule(rule, variables)
    except BadRule as bad:
        raise BadRule(f"{field}/{bad.field}" if bad.field else field, bad.message) from None


def _path(field: str, text: str, variables: set[str]) -> Path:
    try:
        path = parse_path(text)
    except BadPath as bad:
        raise BadRule(field, f"Value is not a valid JSONPath: {bad}") from None
    if path.variable not in {"", "$"}:
        variables.add(path.variable)
    return path


def _flag(comparator: str, operand: Any) -> bool:
    if not isinstance(operand, bool):
        raise BadRule(comparator, "Expected value of type Boolean")
    return operand


def _variable_missing(path: Path, _scope: Scope, _reason: str) -> StatesError:
    return StatesError(
        "States.Runtime", f"Invalid path '{path.text}': The choice state's condition path references an invalid value."
    )


def _is_type(read: Expression, belongs: Callable[[Any], bool], wanted: bool) -> RuleTest:
    return lambda scope: belongs(read(scope)) is wanted


def _compare_literal(read: Expression, comparator: str, operand: Any) -> RuleTest:
    take, kind, compare = _COMPARISONS[comparator]
    literal = take(operand)
    if literal is None:
        raise BadRule(comparator, _TIMESTAMP if kind == "Timestamp" else f"Expected value of type {kind}")

    if comparator in {"StringEquals", "BooleanEquals"}:
        return (
            (lambda scope: read(scope) is literal) if literal in {True, False} else lambda scope: read(scope) == literal
        )

    if kind == "Number":

        def is_number(scope: Scope) -> bool:
            value = read(scope)
            return type(value) in _NUMBERS and compare(value, literal)

        return is_number

    def test(scope: Scope) -> bool:
        value = take(read(scope))
        return value is not None and compare(value, literal)

    return test


_TIMESTAMP = "String does not match RFC3339 timestamp"


def _compare_paths(left: Expression, right: Expression, comparator: str) -> RuleTest:
    take, _, compare = _COMPARISONS[comparator]

    def test(scope: Scope) -> bool:
        mine, others = take(left(scope)), take(right(scope))
        return mine is not None and others is not None and compare(mine, others)

    return test


def _string_matches(read: Expression, operand: Any) -> RuleTest:
    r"""`*` stands for any characters, `\*` for itself, `\\` for a backslash."""
    if not isinstance(operand, str):
        raise BadRule("StringMatches", "Expected value of type String")
    pieces = _glob_pieces(operand)

    def test(scope: Scope) -> bool:
        value = read(scope)
        return isinstance(value, str) and _fits(pieces, value)

    return test


def _glob_pieces(pattern: str) -> list[str]:
    pieces: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\" and pattern[at + 1 : at + 2] in {"*", "\\"}:
            at += 1
            pieces[-1].append(pattern[at])
        elif character == "*":
            pieces.append([])
        else:
            pieces[-1].append(character)
        at += 1
    return ["".join(piece) for piece in pieces]


def _fits(pieces: list[str], value: str) -> bool:
    """Tell whether the pieces stand in `value` in order, the first and the last at its ends: no backtracking needed."""
    if len(pieces) == 1:
        return value == pieces[0]
    first, *middle, last = pieces
    end = len(value) - len(last)
    at = len(first)
    if at > end or not value.startswith(first) or not value.endswith(last):
        return False
    for piece in middle:
        at = value.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True
