"""Fields whose value an expression gives, and which must have one type: numbers, texts, booleans, arrays.

A value of another type fails the state with the words that AWS has for it (recorded:
test_map_state_items_eval_jsonata_fail); a number out of its bounds in words of ours.
"""

from typing import Any

from tasuki.language.definition import Expression, Scope
from tasuki.language.jsonata import Query, QueryFailed
from tasuki.values.documents import dumps


def number(query: Query, least: float, most: float) -> Expression:
    """Answer the expression of a number within bounds."""

    def read(scope: Scope) -> Any:
        value = query(scope)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise query.expect("number", value)
        return _within(query, value, least, most)

    return read


def whole(query: Query, least: float, most: float) -> Expression:
    """Answer the expression of a whole number within bounds."""

    def read(scope: Scope) -> Any:
        value = query(scope)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise query.expect("number", value)
        if isinstance(value, float) and not value.is_integer():
            raise QueryFailed(f"The {query.location} field must be an integer but was: {dumps(value)}", query.location)
        return int(_within(query, value, least, most))

    return read


def _within(query: Query, value: float, least: float, most: float) -> float:
    if least == 0 and value < 0:
        raise QueryFailed(f"{query.location} cannot be negative.", query.location)
    if not least <= value <= most:
        raise QueryFailed(f"{query.location} must be between {least:g} and {most:g}.", query.location)
    return value


def text(query: Query) -> Expression:
    """Answer the expression of a text."""

    def read(scope: Scope) -> Any:
        value = query(scope)
        if not isinstance(value, str):
            raise query.expect("string", value)
        return value

    return read


def boolean(query: Query) -> Expression:
    """Answer the expression of a boolean."""

    def read(scope: Scope) -> Any:
        value = query(scope)
        if not isinstance(value, bool):
            raise query.expect("boolean", value)
        return value

    return read


def array(query: Query) -> Expression:
    """Answer the expression of an array."""

    def read(scope: Scope) -> Any:
        value = query(scope)
        if not isinstance(value, list):
            raise query.expect("array", value)
        return value

    return read


def items_of_input(scope: Scope) -> Any:
    """Answer the items of a Map that names none: its input, which must be an array."""
    value = scope.input.value
    if not isinstance(value, list):
        raise QueryFailed(f"Map state input must be an array but was: {dumps(value)}", "Items")
    return value
