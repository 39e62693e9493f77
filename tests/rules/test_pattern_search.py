"""Leaves in elements of arrays: the search against all combinations, and what a hostile event costs."""

import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasuki.rules.patterns import compile_pattern
from tasuki.values.documents import dumps

KEYS = ("a", "b")
ABSENT = {"exists": False}

_leaf = st.sampled_from(["1", "2"])
_event = st.dictionaries(
    st.sampled_from(KEYS),
    st.recursive(
        _leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner), max_leaves=9
    ),
)
_asked = st.lists(st.sampled_from(["1", "2", ABSENT]), min_size=1, max_size=2)
_pattern = st.dictionaries(
    st.sampled_from(KEYS),
    st.recursive(
        _asked, lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, min_size=1, max_size=2), max_leaves=4
    ),
    min_size=1,
)


def leaves(node: Any, path: str, at: Mapping[str, int], place: str) -> Iterator[tuple[str, Any, Mapping[str, int]]]:
    """Answer path, value and the elements of all leaves. An array is named by where it stands."""
    if isinstance(node, dict):
        for key, child in node.items():
            yield from leaves(child, f"{path}.{key}" if path else key, at, f"{place}.{key}")
    elif isinstance(node, list):
        for index, child in enumerate(node):
            inside = {**at, place: index} if isinstance(child, dict | list) else at
            yield from leaves(child, path, inside, f"{place}[{index}]")
    else:
        yield path, node, at


def asked(pattern: Any, path: str) -> Iterator[tuple[str, list[Any]]]:
    for key, below in pattern.items():
        full = f"{path}.{key}" if path else key
        if isinstance(below, list):
            yield full, below
        else:
            yield from asked(below, full)


def together(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    return all(other.get(array, index) == index for array, index in one.items())


def fits(pattern: Any, event: Any) -> bool:
    """Try every combination, by path: a leaf that is accepted, or none where that is allowed and none would go with the others."""
    found = list(leaves(event, "", {}, ""))
    wanted = sorted(asked(pattern, ""))
    choices = [
        [at for at_path, value, at in found if at_path == path and value in alternatives] + [None]
        for path, alternatives in wanted
    ]
    for combination in itertools.product(*choices):
        chosen: dict[str, int] = {}
        for (path, alternatives), at in zip(wanted, combination, strict=True):
            if at is None:
                beside = (one for at_path, _, one in found if at_path == path)
                if ABSENT not in alternatives or any(together(one, chosen) for one in beside):
                    break
            elif together(at, chosen):
                chosen.update(at)
            else:
                break
        else:
            return True
    return False


@settings(max_examples=400)
@given(_pattern, _event)
def test_the_search_finds_what_trying_everything_finds(pattern: Any, event: Any) -> None:
    assert compile_pattern(dumps(pattern))(event) == fits(pattern, event)


@pytest.mark.parametrize(
    ("pattern", "event"),
    [
        (
            {"a": {"x": ["1"]}, "b": {"x": ["1"]}, "c": {"x": ["1"]}, "d": ["no"]},
            {"a": [{"x": "1"}] * 5_000, "b": [{"x": "1"}] * 5_000, "c": [{"x": "1"}] * 5_000, "d": "yes"},
        ),
        ({"a": {"x": ["1"], "y": ["2"]}}, {"a": [{"x": "1", "y": "1"}, {"x": "2", "y": "2"}] * 5_000}),
        ({"a": {"x": ["1"], "y": ["1"]}}, {"a": [[{"x": "1"}, {"y": "1"}] * 5_000]}),
        (
            {"a": {"x": ["1"]}, "b": {"x": ["1"]}, "c": {"x": ["1"], "y": ["1"]}},
            {"a": [{"x": "1"}] * 1_000, "b": [{"x": "1"}] * 1_000, "c": [{"x": "1"}, {"y": "1"}] * 1_000},
        ),
        (
            {key: {"$or": [{f"k{n}": [f"v{n}"]} for n in range(10)]} for key in ("p", "q", "r")},
            {"p": {f"k{n}": ["v"] * 4_000 for n in range(10)}, "q": "1", "r": "2"},
        ),
    ],
    ids=[
        "lists beside each other",
        "two members of one list",
        "lists in a list",
        "lists before one that never fits",
        "a thousand rules",
    ],
)
def test_a_hostile_event_costs_no_more_than_a_large_one(pattern: Any, event: Any) -> None:
    """Found by attack: 250 KB in three lists kept a house busy for hours."""
    matches = compile_pattern(dumps(pattern))
    began = time.process_time()
    assert not matches(event)
    assert time.process_time() - began < 2
