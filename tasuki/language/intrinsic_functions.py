"""What each `States.` function does with its evaluated arguments (AWS developer guide, "Intrinsic functions").

A function takes the list of arguments and the chance, and answers the value or raises `BadArgument`.
"""

import base64
import binascii
import hashlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from tasuki.language.path_filters import same_json
from tasuki.values.chance import Chance
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument, TasukiError


class BadArgument(TasukiError):
    """An argument that a function cannot work with; the text says which and why."""


class Function(NamedTuple):
    """A function with how many arguments it takes; `most` None is any number."""

    run: Callable[[list[Any], Chance], Any]
    fewest: int
    most: int | None


_ALGORITHMS = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}
_LONGEST_TEXT = 10_000
_LONGEST_RANGE = 1_000


def _array(value: Any, what: str = "The first argument") -> list[Any]:
    if not isinstance(value, list):
        raise BadArgument(f"{what} must be an array")
    return value


def _text(value: Any, what: str = "The argument", longest: int | None = None) -> str:
    if not isinstance(value, str):
        raise BadArgument(f"{what} must be a string")
    if longest is not None and len(value) > longest:
        raise BadArgument(f"{what} must have at most {longest} characters")
    return value


def _whole(value: Any, what: str) -> int:
    """Round half up, as recorded: 1.49 + 1.5 is 3, -1.5 + -1.51 is -3."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadArgument(f"{what} must be a number")
    return value if isinstance(value, int) else math.floor(value + 0.5)


def shown(value: Any) -> str:
    """Write a value as States.Format does: texts bare, objects in the style of a Java map (recorded: test_format_2)."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    if isinstance(value, float):
        return _java_double(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return dumps(value)


def _java_double(value: float) -> str:
    """Write a double as Java does: exponents from ten million on and below a thousandth."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, exponent = f"{value:e}".split("e")
    digits = repr(value / 10.0 ** int(exponent)) if float(f"{digits}e{exponent}") != value else digits.rstrip("0")
    return f"{digits + '0' if digits.endswith('.') else digits}E{int(exponent)}"


def _partition(arguments: list[Any], _chance: Chance) -> list[list[Any]]:
    items, size = _array(arguments[0]), _whole(arguments[1], "The second argument")
    if size <= 0:
        raise BadArgument("The chunk size must be greater than 0")
    return [items[start : start + size] for start in range(0, len(items), size)]


def _contains(arguments: list[Any], _chance: Chance) -> bool:
    return any(same_json(item, arguments[1]) for item in _array(arguments[0]))


def _range(arguments: list[Any], _chance: Chance) -> list[int]:
    first, last, step = (_whole(value, "Every argument") for value in arguments)
    if step == 0:
        raise BadArgument("The step must not be 0")
    made = range(first, last + (1 if step > 0 else -1), step)
    if len(made) > _LONGEST_RANGE:
        raise BadArgument(f"The range must not have more than {_LONGEST_RANGE} items")
    return list(made)


def _item(arguments: list[Any], _chance: Chance) -> Any:
    items, index = _array(arguments[0]), _whole(arguments[1], "The index")
    if not 0 <= index < len(items):
        raise BadArgument(f"The index {index} is out of bounds for an array of length {len(items)}")
    return items[index]


def _unique(arguments: list[Any], _chance: Chance) -> list[Any]:
    kept: list[Any] = []
    seen: set[Any] = set()
    for item in _array(arguments[0]):
        key = dumps(item) if isinstance(item, dict | list) else (isinstance(item, bool), item)
        if key not in seen and not (isinstance(item, dict) and any(same_json(item, other) for other in kept)):
            seen.add(key)
            kept.append(item)
    return kept


def _decode(arguments: list[Any], _chance: Chance) -> str:
    text = _text(arguments[0], longest=_LONGEST_TEXT)
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadArgument("The argument is not the Base64 of a text") from None


def _encode(arguments: list[Any], _chance: Chance) -> str:
    return base64.b64encode(_text(arguments[0], longest=_LONGEST_TEXT).encode("utf-8", "replace")).decode()


def _hash(arguments: list[Any], _chance: Chance) -> str:
    value, algorithm = arguments
    if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
        raise BadArgument(f"The algorithm must be one of {', '.join(_ALGORITHMS)}")
    text = value if isinstance(value, str) else dumps(value)
    _text(text, "The first argument", _LONGEST_TEXT)
    return hashlib.new(_ALGORITHMS[algorithm], text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def _merge(arguments: list[Any], _chance: Chance) -> dict[str, Any]:
    first, second, deep = arguments
    if not isinstance(first, dict) or not isinstance(second, dict):
        raise BadArgument("The first two arguments must be objects")
    if deep is not False:
        raise BadArgument("The third argument must be false: deep merging is not supported")
    return {**first, **second}


def _random(arguments: list[Any], chance: Chance) -> int:
    start, end = _whole(arguments[0], "The start"), _whole(arguments[1], "The end")
    if start >= end:
        raise BadArgument("The start must be less than the end")
    if len(arguments) == 3:
        return start + _seeded(_whole(arguments[2], "The seed"), end - start)
    return start + int(chance.fraction() * (end - start))


def _seeded(seed: int, bound: int) -> int:
    """Draw as java.util.Random does: AWS's documented seeds repeat (which draw AWS makes is not recorded)."""
    state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)
    words = []
    for keep in (26, 27):
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        words.append(state >> (48 - keep))
    return int(((words[0] << 27) + words[1]) / (1 << 53) * bound)


def _add(arguments: list[Any], _chance: Chance) -> int:
    return _whole(arguments[0], "The first argument") + _whole(arguments[1], "The second argument")


def _split(arguments: list[Any], _chance: Chance) -> list[str]:
    """Every character of the second text parts; empty pieces are dropped (recorded: test_string_split_context_object)."""
    text, marks = _text(arguments[0], "The first argument"), _text(arguments[1], "The second argument")
    pieces: list[str] = []
    start = 0
    for place, character in enumerate(text):
        if character in marks:
            if place > start:
                pieces.append(text[start:place])
            start = place + 1
    if start < len(text):
        pieces.append(text[start:])
    return pieces


def _parse(arguments: list[Any], _chance: Chance) -> Any:
    text = _text(arguments[0])
    if not text.strip():
        return None
    try:
        return loads(text)
    except MalformedDocument as bad:
        raise BadArgument(f"The argument is not JSON: {bad}") from None


FUNCTIONS: dict[str, Function] = {
    "States.StringToJson": Function(_parse, 1, 1),
    "States.JsonToString": Function(lambda arguments, _: dumps(arguments[0]), 1, 1),
    "States.Array": Function(lambda arguments, _: arguments, 0, None),
    "States.ArrayPartition": Function(_partition, 2, 2),
    "States.ArrayContains": Function(_contains, 2, 2),
    "States.ArrayRange": Function(_range, 3, 3),
    "States.ArrayGetItem": Function(_item, 2, 2),
    "States.ArrayLength": Function(lambda arguments, _: len(_array(arguments[0])), 1, 1),
    "States.ArrayUnique": Function(_unique, 1, 1),
    "States.Base64Encode": Function(_encode, 1, 1),
    "States.Base64Decode": Function(_decode, 1, 1),
    "States.Hash": Function(_hash, 2, 2),
    "States.JsonMerge": Function(_merge, 3, 3),
    "States.MathRandom": Function(_random, 2, 3),
    "States.MathAdd": Function(_add, 2, 2),
    "States.StringSplit": Function(_split, 2, 2),
    "States.UUID": Function(lambda _, chance: chance.uuid(), 0, 0),
}
"""Every function but States.Format, whose template is read by `intrinsics`."""
