"""No text makes `parse` fail otherwise than with diagnoses, however a right definition is damaged."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tasuki.language.definition import Machine
from tasuki.language.errors import Diagnosis, InvalidDefinition
from tasuki.language.parse import parse
from tasuki.values.documents import dumps

RIGHT: Any = {
    "StartAt": "P",
    "TimeoutSeconds": 60,
    "Comment": "c",
    "States": {
        "P": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "I", "States": {"I": {"Type": "Pass", "Result": 1, "Assign": {"v.$": "$.x"}, "End": True}}}
            ],
            "Retry": [{"ErrorEquals": ["A"], "IntervalSeconds": 2, "BackoffRate": 1.5, "JitterStrategy": "FULL"}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "F", "ResultPath": "$.e"}],
            "ResultPath": None,
            "Next": "M",
        },
        "M": {
            "Type": "Map",
            "ItemsPath": "$.items[?(@.a == 1)]",
            "ItemSelector": {"x.$": "States.Format('{}', $$.Map.Item.Value)"},
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "INLINE"},
                "StartAt": "T",
                "States": {
                    "T": {
                        "Type": "Task",
                        "Resource": "arn:aws:states:::sqs:sendMessage",
                        "Parameters": {"a": [{"b.$": "$.c"}]},
                        "TimeoutSecondsPath": "$.t",
                        "Credentials": {"RoleArn": "r"},
                        "End": True,
                    }
                },
            },
            "MaxConcurrency": 2,
            "Next": "C",
        },
        "C": {
            "Type": "Choice",
            "Choices": [
                {
                    "And": [
                        {"Variable": "$.a", "IsPresent": True},
                        {"Not": {"Variable": "$.a", "StringMatches": "a*"}},
                    ],
                    "Next": "W",
                }
            ],
            "Default": "F",
        },
        "W": {"Type": "Wait", "Timestamp": "2024-01-01T00:00:00Z", "Next": "E"},
        "E": {"Type": "Succeed", "OutputPath": "$.a"},
        "F": {"Type": "Fail", "ErrorPath": "States.UUID()", "Cause": "c"},
    },
}
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        10**30,
        "",
        "$",
        "$.a",
        "{% 1 %}",
        "JSONata",
        "Pass",
        "Map",
        [],
        [1],
        [[]],
        {},
        {"Type": "Pass"},
        {"a": {"b": []}},
    ]
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List every place of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at] + [place for key, item in inner for place in places(item, (*at, key))]


PLACES = places(RIGHT)
KEYS = sorted(
    {place[-1] for place in PLACES if place and isinstance(place[-1], str)} | {"Iterator", "Items", "QueryLanguage"}
)


def damaged(value: Any, at: tuple[Any, ...], damage: str, junk: Any, key: str) -> Any:
    """Copy a document with one place replaced, removed, or (an object) given one more field."""
    if not at:
        return {**value, key: junk} if damage == "add" and isinstance(value, dict) else junk
    first, *rest = at
    if isinstance(value, dict) and first in value:
        inner = (
            {} if damage == "remove" and not rest else {first: damaged(value[first], tuple(rest), damage, junk, key)}
        )
        return {**{name: item for name, item in value.items() if name != first}, **inner}
    if isinstance(value, list) and isinstance(first, int) and first < len(value):
        inner_items = [] if damage == "remove" and not rest else [damaged(value[first], tuple(rest), damage, junk, key)]
        return [*value[:first], *inner_items, *value[first + 1 :]]
    return value


DAMAGES = st.tuples(st.sampled_from(PLACES), st.sampled_from(["replace", "remove", "add"]), JUNK, st.sampled_from(KEYS))


def test_the_definition_is_right_before() -> None:
    assert set(parse(dumps(RIGHT)).blocks) == {"", "/States/P/Branches/0", "/States/M/ItemProcessor"}


def outcome(text: str) -> Machine | list[Diagnosis]:
    try:
        return parse(text)
    except InvalidDefinition as refused:
        return refused.diagnoses


@given(damages=st.lists(DAMAGES, min_size=1, max_size=3))
def test_a_damaged_definition_is_a_machine_or_a_refusal(damages: list[tuple[tuple[Any, ...], str, Any, str]]) -> None:
    definition = RIGHT
    for place, damage, junk, key in damages:
        definition = damaged(definition, place, damage, junk, key)
    found = outcome(dumps(definition))
    if isinstance(found, Machine):
        assert found.root.start_at in found.root.states
        return
    assert found
    for one in found:
        assert one.code
        assert one.message
        assert one.location.startswith("/") or not one.location


@given(text=st.text(max_size=30) | st.sampled_from(["{", "[1,", '{"a":1}}', "nul", "{'a':1}", "1e999", "\ufeff{}"]))
def test_any_text_is_a_machine_or_a_refusal(text: str) -> None:
    assert outcome(text)
