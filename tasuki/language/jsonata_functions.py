"""The functions that Step Functions adds to JSONata (developer guide, "Transforming data with JSONata").

Each answers None for nothing (undefined): so do AWS's when an argument is nothing. They raise `Refused`.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Protocol

from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument, TasukiError

LARGEST_ARRAY = 250_000
"""How many members an array of an expression may have. AWS's limit is one of memory, and lies above 200,000 numbers."""

_ALGORITHMS = {
    "MD5": hashlib.md5,
    "SHA-1": hashlib.sha1,
    "SHA-256": hashlib.sha256,
    "SHA-384": hashlib.sha384,
    "SHA-512": hashlib.sha512,
}


class Refused(TasukiError):
    """A function of ours cannot do what it was asked to. Never leaves `jsonata`."""


class TooMuch(TasukiError):
    """A function of ours would make an array that is too large. Never leaves `jsonata`."""


class Draws(Protocol):
    """The chance that an expression draws from (`values.chance.Chance`)."""

    def uuid(self) -> str:
        """Answer a version 4 UUID."""

    def fraction(self) -> float:
        """Answer a float in [0, 1)."""

    def bits(self, count: int) -> int:
        """Answer an integer of `count` random bits."""


def partition(array: Any, size: Any) -> list[Any] | None:
    """Cut an array into pieces of `size` members."""
    if array is None or size is None:
        return None
    length = int(size)
    if length < 1:
        raise Refused("The second argument of the partition function must be a positive integer")
    members = array if isinstance(array, list) else [array]
    return [members[place : place + length] for place in range(0, len(members), length)]


def span(start: Any, end: Any, step: Any) -> Any:
    """Count from `start` to `end`, which is reached if a step lands on it. Fractions are cut off (AWS truncates).

    One number alone is that number, as JSONata has it for sequences (recorded: array_jsonata/test_array_range).
    """
    if start is None or end is None or step is None:
        return None
    first, last, by = int(start), int(end), int(step)
    if by == 0:
        raise Refused("The third argument of the range function must not be zero")
    counted = range(first, last + (1 if by > 0 else -1), by)
    if len(counted) > LARGEST_ARRAY:
        raise TooMuch
    if len(counted) < 2:
        return counted[0] if counted else None
    return list(counted)


def range_end(low: Any, high: Any) -> Any:
    """Answer the end of a range that is not too long; what is no number, or far too long, the library refuses itself."""
    if isinstance(low, int | float) and isinstance(high, int | float) and LARGEST_ARRAY <= high - low < 10_000_000:
        raise TooMuch
    return high


def digest(text: Any, algorithm: Any) -> str | None:
    """Answer the hexadecimal digest of a text."""
    if text is None or algorithm is None:
        return None
    made = _ALGORITHMS.get(algorithm)
    if made is None:
        raise Refused(f"The second argument of the hash function must be one of [{', '.join(_ALGORITHMS)}]")
    return made(text.encode()).hexdigest()


def parse_text(text: Any) -> Any:
    """Answer the value that a JSON text holds."""
    if text is None:
        return None
    try:
        return loads(text)
    except MalformedDocument as bad:
        raise Refused(f"The argument of the parse function must be a JSON text: {bad}") from None


def distinct_many(members: Any) -> list[Any]:
    """Answer the members of a long array, each once. The library compares every member with every other: minutes."""
    kept: dict[Any, Any] = {}
    for member in members:
        plain = isinstance(member, str | int | float) and not isinstance(member, bool)
        kept.setdefault(member if plain else (dumps(_sorted(member)),), member)
    return list(kept.values())


def _sorted(value: Any) -> Any:
    """Objects are the same in any order of their keys."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(member) for member in value] if isinstance(value, list) else value


def drawing(chance: Draws) -> dict[str, Callable[..., Any]]:
    """Answer the functions that draw, over one chance."""

    def random(seed: Any = None) -> float:
        return chance.fraction() if seed is None else seeded_fraction(int(seed))

    return {"uuid": chance.uuid, "random": random}


def seeded_fraction(seed: int) -> float:
    """Answer what Java's Random draws first as a double: the algorithm is in its documentation, AWS's answer is the same."""
    state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)
    drawn = []
    for bits in (26, 27):
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        drawn.append(state >> (48 - bits))
    return float((drawn[0] << 27) + drawn[1]) / float(1 << 53)


ADDED = frozenset({"partition", "range", "hash", "random", "uuid", "parse"})

PURE: dict[str, tuple[Callable[..., Any], str]] = {
    "partition": (partition, "<a-n:a>"),
    "range": (span, "<nnn:x>"),
    "hash": (digest, "<s-s:s>"),
    "parse_text": (parse_text, "<s:x>"),
    "distinct_many": (distinct_many, "<a:a>"),
    "range_end": (range_end, "<xx:x>"),
}
"""What is registered with an expression that mentions it: the function and its signature."""

PRELUDES: dict[str, tuple[str, tuple[str, ...]]] = {
    "parse": (
        # None is nothing to the library: null must be said in JSONata.
        '$parse:=function($s)<s-:x>{$exists($s)?($trim($s)="null"?null:$parse_text($s))};',
        ("parse_text",),
    ),
    "distinct": (
        "$distinct_few:=$distinct;$distinct:=function($x)<x-:x>{$count($x)>1000?$distinct_many($x):$distinct_few($x)};",
        ("distinct_many",),
    ),
    "keys": (
        (
            "$keys_few:=$keys;"
            "$keys:=function($x)<x-:x>{$count($x)>1000?$keys_few($merge($x[$type($)='object'])):$keys_few($x)};"
        ),
        (),
    ),
}
"""What is put before an expression that mentions a name, and the functions that this wants.

`$distinct` and `$keys` take time with the square of an array's length in the library, unseen by its limits.
"""
