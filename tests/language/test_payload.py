"""Templates, and what ResultPath does to a document."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.language.errors import StatesError
from tasuki.language.payload import compile_template, merge
from tests.language.scopes import fill, template
from tests.language.test_paths import DOCUMENTS

TEMPLATES = [
    ({"a.$": "$.n"}, {"a": 1}),
    ({"a.$": "$.n", "b": "$.n"}, {"a": 1, "b": "$.n"}),
    ({"a": {"b.$": "$.o.p", "c": [1]}}, {"a": {"b": 2, "c": [1]}}),
    ([{"a.$": "$.n"}, 2, "x"], [{"a": 1}, 2, "x"]),
    ({"a": [[{"b.$": "$$.State.Name"}]]}, {"a": [[{"b": "S"}]]}),
    ({"a.$": "$v"}, {"a": 9}),
    ({"a.$": "States.Format('{}-{}', $.n, $v)"}, {"a": "1-9"}),
    ({"a.$": "$.list[*].x"}, {"a": [1, 2]}),
    ({"a.$": "$.list[7]"}, {"a": None}),
    ({"a": "{% $x %}", "b": None}, {"a": "{% $x %}", "b": None}),
    ("$.n", "$.n"),
    ({}, {}),
]
INPUT = {"n": 1, "o": {"p": 2}, "list": [{"x": 1}, {"x": 2}]}


@pytest.mark.parametrize(("value", "made"), TEMPLATES)
def test_templates(value: Any, made: Any) -> None:
    assert fill(value, INPUT, v=9) == made


def test_the_order_of_keys_is_the_definitions() -> None:
    assert list(fill({"z.$": "$.n", "a": 1, "m.$": "$.n"}, INPUT)) == ["z", "a", "m"]


def test_a_template_can_be_used_again() -> None:
    expression = template({"a.$": "$.n", "b": {"c.$": "$.n", "d": []}})
    from tests.language.scopes import scope

    first = expression(scope({"n": 1}))
    second = expression(scope({"n": 2}))
    assert (first, second) == ({"a": 1, "b": {"c": 1, "d": []}}, {"a": 2, "b": {"c": 2, "d": []}})


def test_complaints_name_the_place_and_the_key() -> None:
    complaints: list[tuple[str, str]] = []
    value = {"a.$": "nonsense", "b": [{"c/d": {"e.$": 5}}], "f.$": "$.x", "f": 1}
    compile_template(value, set(), lambda pointer, key, _reason: complaints.append((pointer, key)), "/P")
    assert complaints == [("/P", "a.$"), ("/P/b/0/c~1d", "e.$"), ("/P", "f.$")]


def test_variables_are_collected() -> None:
    names: set[str] = set()
    compile_template({"a.$": "$x.y", "b.$": "States.Array($z, States.UUID(), $$.State.Name)"}, names, print)
    assert names == {"x", "z"}


MERGES = [
    ({"a": 1}, (), 9, 9),
    ({"a": 1}, ("b",), 9, {"a": 1, "b": 9}),
    ({"a": 1}, ("a",), 9, {"a": 9}),
    ({}, ("a", "b", "c"), 9, {"a": {"b": {"c": 9}}}),
    ({"a": {"x": 1}}, ("a", "b"), 9, {"a": {"x": 1, "b": 9}}),
    ({"a": [1, 2]}, ("a", 1), 9, {"a": [1, 9]}),
    ({"a": [{}, 2]}, ("a", 0, "b"), 9, {"a": [{"b": 9}, 2]}),
]


@pytest.mark.parametrize(("document", "steps", "value", "made"), MERGES)
def test_merge(document: Any, steps: tuple[str | int, ...], value: Any, made: Any) -> None:
    assert merge(document, steps, value) == made


@pytest.mark.parametrize(
    ("document", "steps"), [("text", ("a",)), (None, ("a",)), ({"a": 1}, ("a", "b")), ({"a": []}, ("a", 0)), ({}, (0,))]
)
def test_what_stands_in_the_way_of_a_result(document: Any, steps: tuple[str | int, ...]) -> None:
    with pytest.raises(StatesError) as caught:
        merge(document, steps, 1)
    assert caught.value.error == "States.ResultPathMatchFailure"


STEPS = st.lists(st.sampled_from(["a", "b", 0, 1]), max_size=4).map(tuple)


@given(document=DOCUMENTS, steps=STEPS, value=st.integers())
def test_merge_puts_the_value_there_and_changes_nothing(
    document: Any, steps: tuple[str | int, ...], value: int
) -> None:
    before = copy.deepcopy(document)
    try:
        made = merge(document, steps, value)
    except StatesError:
        assert document == before
        return
    assert document == before
    for step in steps:
        made = made[step]
    assert made == value


@given(document=st.dictionaries(st.sampled_from("abcd"), DOCUMENTS, min_size=1), value=st.integers())
def test_merge_shares_what_is_not_on_the_way(document: dict[str, Any], value: int) -> None:
    made = merge(document, ("zz",), value)
    assert all(made[key] is document[key] for key in document)
