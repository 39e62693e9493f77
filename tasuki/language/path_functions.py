"""Functions at the end of a path: `$.items.length()`, `$.prices.sum()` (Jayway JsonPath, "Functions")."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from tasuki.values.errors import TasukiError


class Unanswerable(TasukiError):
    """A function that has no answer for what it was given."""


def _numbers(value: Any, extra: Sequence[Any]) -> list[int | float]:
    found = [*(value if isinstance(value, list) else ()), *extra]
    numbers = [n for n in found if isinstance(n, int | float) and not isinstance(n, bool)]
    if not numbers:
        raise Unanswerable("Aggregation function attempted to calculate value using empty array")
    return numbers


def _length(value: Any, extra: Sequence[Any]) -> int | None:
    if extra:
        value = extra[0]
    return len(value) if isinstance(value, list | dict) else None


def _deviation(value: Any, extra: Sequence[Any]) -> float:
    numbers = _numbers(value, extra)
    mean = sum(numbers) / len(numbers)
    return math.sqrt(sum(n * n for n in numbers) / len(numbers) - mean * mean)


def _item(value: Any, index: int) -> Any:
    if not isinstance(value, list) or not -len(value) <= index < len(value):
        raise Unanswerable("Aggregation function attempted to calculate value using empty array")
    return value[index]


def _concat(value: Any, extra: Sequence[Any]) -> str:
    parts = [*(value if isinstance(value, list) else ()), *extra]
    return "".join(part if isinstance(part, str) else str(part) for part in parts if part is not None)


FUNCTIONS: dict[str, Callable[[Any, Sequence[Any]], Any]] = {
    "length": _length,
    "size": _length,
    "min": lambda value, extra: float(min(_numbers(value, extra))),
    "max": lambda value, extra: float(max(_numbers(value, extra))),
    "sum": lambda value, extra: float(sum(_numbers(value, extra))),
    "avg": lambda value, extra: sum(numbers := _numbers(value, extra)) / len(numbers),
    "stddev": _deviation,
    "keys": lambda value, _extra: list(value) if isinstance(value, dict) else None,
    "first": lambda value, _extra: _item(value, 0),
    "last": lambda value, _extra: _item(value, -1),
    "index": lambda value, extra: _item(value, extra[0] if extra and isinstance(extra[0], int) else 0),
    "concat": _concat,
    "append": lambda value, extra: [*value, *extra] if isinstance(value, list) else value,
}
"""Name to function of (value, arguments). Aggregates answer doubles, as Jayway's do."""
