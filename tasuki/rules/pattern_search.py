"""How the leaves of one event are held against the rules of a pattern, when some lie in elements of arrays. Pure.

Every path of a rule needs a leaf that one of its alternatives accepts, all from consistent elements: no two of the chosen
leaves may come from different elements of one array. Tried naively that is a product over arrays, and an event of a few
kilobytes with three lists would keep the house busy for hours. So

* what an alternative accepts is looked for once an event, however many rules share it;
* leaves are found by the element that was chosen before, not by going through all of them;
* a choice counts for what is left of a rule only as far as a later path lies in its arrays, and what failed once is not
  tried again: lists that have nothing to do with each other are gone through one after the other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tasuki.rules.pattern_operators import Alternative

Membership: TypeAlias = Mapping[int, int]
"""Array (numbered in order of appearance in the event) to element; plain values of an array belong to all of it."""
Fields: TypeAlias = dict[str, list[tuple[Any, Membership]]]
Rule: TypeAlias = list[tuple[str, list[Alternative]]]
NOWHERE: Membership = {}


class _Places:
    """Where some leaves lie; each place once."""

    __slots__ = ("_all", "_inside", "arrays")

    def __init__(self, memberships: Sequence[Membership]) -> None:
        self._all = list({tuple(at.items()): at for at in memberships}.values())
        self.arrays = Counter(array for at in self._all for array in at)
        """How many of them lie in an array."""
        self._inside: dict[tuple[int, int], list[Membership]] = {}
        for at in self._all:
            for element in at.items():
                self._inside.setdefault(element, []).append(at)

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self._all

    def beside(self, chosen: Membership) -> Iterator[Membership]:
        """Answer those that go with the elements chosen so far."""
        nearest: Sequence[Membership] = self._all
        for element in chosen.items():
            if self.arrays[element[0]] == len(self._all):  # all lie in that array, so only those of its element can fit
                inside = self._inside.get(element, ())
                nearest = inside if len(inside) < len(nearest) else nearest
        return (at for at in nearest if all(chosen.get(array, index) == index for array, index in at.items()))


class Search:
    """The leaves of one event, and what has been found out about them."""

    __slots__ = ("_accepted", "_fields", "_present")

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._present: dict[str, _Places] = {}
        self._accepted: dict[int, _Places] = {}

    def fits(self, rule: Rule) -> bool:
        """Tell whether a rule is fulfilled."""
        if any(None not in alternatives and self._taken(path, alternatives).is_empty for path, alternatives in rule):
            return False
        return self._rest_fits(rule, 0, NOWHERE, set())

    def _rest_fits(self, rule: Rule, position: int, chosen: Membership, failed: set[Any]) -> bool:
        """Tell whether a rule from `position` on can be fulfilled from elements that go with those chosen so far."""
        if position == len(rule):
            return True
        later = [self._places(path).arrays for path, _ in rule[position:]] if chosen else ()
        chosen = {array: index for array, index in chosen.items() if any(array in arrays for arrays in later)}
        state = (position, *sorted(chosen.items()))
        if state in failed:
            return False
        path, alternatives = rule[position]
        for at in self._taken(path, alternatives).beside(chosen):
            if self._rest_fits(rule, position + 1, {**chosen, **at}, failed):
                return True
        if None in alternatives and next(self._places(path).beside(chosen), None) is None:
            return self._rest_fits(rule, position + 1, chosen, failed)
        failed.add(state)
        return False

    def _places(self, path: str) -> _Places:
        found = self._present.get(path)
        if found is None:
            found = self._present[path] = _Places([at for _, at in self._fields.get(path, ())])
        return found

    def _taken(self, path: str, alternatives: list[Alternative]) -> _Places:
        """Answer where the leaves lie that one of these alternatives accepts."""
        found = self._accepted.get(id(alternatives))
        if found is None:
            taken = [at for value, at in self._fields.get(path, ()) if accepts(alternatives, value)]
            found = self._accepted[id(alternatives)] = _Places(taken)
        return found


def accepts(alternatives: list[Alternative], value: Any) -> bool:
    """Tell whether one of a path's alternatives accepts a leaf."""
    return any(accepts is not None and accepts(value) for accepts in alternatives)
