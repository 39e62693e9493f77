"""What a document can look like, as far as a definition tells: which keys it has, may have, or cannot have.

::

    ANYTHING            nothing is known
    {a: always}, rest   `a` is there; other keys may be
    {a: maybe}          `a` on some ways to here; no other key is there
    NOTHING_INSIDE      a text, a number, null: no path leads into it

Used by `tasuki lint` to tell paths that nothing can have filled. Never by the engine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Presence = Literal["always", "maybe", "never", "unknown"]

_DEEPEST = 5
"""Deeper than this a document is ANYTHING: loops in a machine then come to rest."""


class Key(NamedTuple):
    """A key of an object: whether it is there, and what stands under it."""

    presence: Presence
    shape: "Shape"


@dataclass(frozen=True, slots=True)
class Shape:
    """The keys that something is known of. `rest`: others may be there, too."""

    keys: Mapping[str, Key] = field(default_factory=dict)
    rest: bool = True

    def key(self, name: str) -> Key:
        """Answer what is known of a key."""
        found = self.keys.get(name)
        if found is not None:
            return found
        return Key("unknown" if self.rest else "never", ANYTHING)


ANYTHING = Shape()
NOTHING_INSIDE = Shape(rest=False)


def shape_of(value: Any, depth: int = 0) -> Shape:
    """Answer the shape of a literal."""
    if isinstance(value, dict):
        if depth >= _DEEPEST:
            return ANYTHING
        return Shape({name: Key("always", shape_of(inner, depth + 1)) for name, inner in value.items()}, rest=False)
    return ANYTHING if isinstance(value, list) else NOTHING_INSIDE


def look(shape: Shape, steps: Sequence[str | int]) -> tuple[Presence, Shape]:
    """Follow a reference path: whether it finds something, and what is known of it. An index leads to ANYTHING."""
    presence: Presence = "always"
    for step in steps:
        if isinstance(step, int):
            return "unknown", ANYTHING
        found, shape = shape.key(step)
        if found == "never":
            return "never", ANYTHING
        if presence == "always" or found == "maybe":
            presence = found
        elif found == "unknown" and presence != "maybe":
            presence = "unknown"
    return presence, shape


def put(shape: Shape, steps: Sequence[str | int], value: Shape) -> Shape:
    """Answer the shape with something put at a reference path; objects that are missing on the way are made."""
    if not steps:
        return value
    first, *others = steps
    if isinstance(first, int):
        return ANYTHING
    found = shape.key(first)
    inner = put(NOTHING_INSIDE if found.presence == "never" else found.shape, others, value)
    return Shape({**shape.keys, first: Key("always", inner)}, shape.rest)


def without(shape: Shape, steps: Sequence[str | int]) -> Shape:
    """Answer the shape when a path is known to find nothing. What lies on the way to it may be missing as well."""
    if len(steps) == 1 and isinstance(steps[0], str):
        return Shape({**shape.keys, steps[0]: Key("never", ANYTHING)}, shape.rest)
    if steps and isinstance(steps[0], str):
        presence, inner = shape.key(steps[0])
        return Shape({**shape.keys, steps[0]: Key(presence, without(inner, steps[1:]))}, shape.rest)
    return shape


def join(one: Shape, other: Shape, depth: int = 0) -> Shape:
    """Answer what is known when a document is of one shape or of the other."""
    if one == other:
        return one
    if depth >= _DEEPEST:
        return ANYTHING
    keys: dict[str, Key] = {}
    for name in {**one.keys, **other.keys}:
        mine, others = one.key(name), other.key(name)
        presence = _either(mine.presence, others.presence)
        if mine.presence == "never":
            inner = others.shape
        elif others.presence == "never":
            inner = mine.shape
        else:
            inner = join(mine.shape, others.shape, depth + 1)
        if presence != "unknown" or inner != ANYTHING:
            keys[name] = Key(presence, inner)
    return Shape(keys, one.rest or other.rest)


def join_all(shapes: Iterable[Shape]) -> Shape:
    """Join any number of shapes; ANYTHING when there is none."""
    made: Shape | None = None
    for shape in shapes:
        made = shape if made is None else join(made, shape)
    return ANYTHING if made is None else made


def _either(one: Presence, other: Presence) -> Presence:
    """A key that is missing on one way may be missing; one that nobody knows of on one way is unknown."""
    if one == other:
        return one
    if "maybe" in {one, other} or "never" in {one, other}:
        return "maybe"
    return "unknown"
