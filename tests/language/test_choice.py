"""Choice rules: every operator, and laws that hold between them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.language.choice import OPERATORS, BadRule, compile_rule
from tasuki.language.errors import StatesError
from tests.language.scopes import scope
from tests.language.test_paths import DOCUMENTS

EARLY, LATE, SAME = "2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z", "2024-01-01T01:00:00+01:00"


def holds(rule: dict[str, Any], document: Any, **variables: Any) -> bool:
    return compile_rule(rule, set())(scope(document, **variables))


def compare(operator: str, value: Any, other: Any) -> bool:
    """Compare by literal and by path: both must say the same."""
    by_path = holds({"Variable": "$.v", f"{operator}Path": "$.o"}, {"v": value, "o": other})
    by_literal = holds({"Variable": "$.v", operator: other}, {"v": value})
    assert by_path is by_literal
    return by_literal


TABLE = [
    ("StringEquals", "a", "a", True),
    ("StringEquals", "a", "A", False),
    ("StringEquals", 1, "1", False),
    ("StringLessThan", "a", "b", True),
    ("StringLessThan", "Z", "a", True),
    ("StringLessThan", "\uffee", "\U0001f600", False),  # UTF-16 code units, as Java compares
    ("StringGreaterThan", "\uffee", "\U0001f600", True),
    ("StringGreaterThanEquals", "é", "é", True),
    ("StringLessThanEquals", "a", "", False),
    ("NumericEquals", 1, 1.0, True),
    ("NumericEquals", True, 1, False),
    ("NumericEquals", "1", 1, False),
    ("NumericLessThan", -1, 0.5, True),
    ("NumericGreaterThan", 2**60, 2**60 - 1, True),
    ("NumericLessThanEquals", 1, 1, True),
    ("NumericGreaterThanEquals", 0, 1, False),
    ("BooleanEquals", True, True, True),
    ("BooleanEquals", False, False, True),
    ("BooleanEquals", True, False, False),
    ("BooleanEquals", 1, True, False),
    ("TimestampEquals", EARLY, SAME, True),
    ("TimestampLessThan", EARLY, LATE, True),
    ("TimestampGreaterThan", LATE, EARLY, True),
    ("TimestampLessThanEquals", SAME, EARLY, True),
    ("TimestampGreaterThanEquals", "2024-01-01", EARLY, False),
    ("TimestampEquals", 5, EARLY, False),
]


@pytest.mark.parametrize(("operator", "value", "other", "expected"), TABLE)
def test_comparisons(operator: str, value: Any, other: Any, expected: bool) -> None:
    assert compare(operator, value, other) is expected


TYPES = [
    ("IsNull", [None]),
    ("IsString", ["", "x", EARLY]),
    ("IsNumeric", [0, 1.5]),
    ("IsBoolean", [True, False]),
    ("IsTimestamp", [EARLY]),
]
VALUES: list[Any] = [None, "", "x", EARLY, 0, 1.5, True, False, [], {}]


@pytest.mark.parametrize(("operator", "members"), TYPES)
def test_types(operator: str, members: list[Any]) -> None:
    for value in VALUES:
        belongs = any(value is member or (value == member and type(value) is type(member)) for member in members)
        assert holds({"Variable": "$.v", operator: True}, {"v": value}) is belongs
        assert holds({"Variable": "$.v", operator: False}, {"v": value}) is not belongs


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("$.a", True),
        ("$.null", True),
        ("$.b", False),
        ("$.a.b", False),
        ("$.list[0]", True),
        ("$.list[1]", False),
        ("$$.State.Name", True),
        ("$$.no", False),
        ("$v", True),
        ("$w", False),
        ("$v.x", False),
    ],
)
def test_presence(path: str, there: bool) -> None:
    document = {"a": 1, "null": None, "list": [1]}
    assert holds({"Variable": path, "IsPresent": True}, document, v=1) is there
    assert holds({"Variable": path, "IsPresent": False}, document, v=1) is not there


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("a*c", "abc", True),
        ("a*c", "ac", True),
        ("a*c", "acb", False),
        ("*", "", True),
        ("", "", True),
        ("", "a", False),
        ("*.log", "x.log", True),
        ("a*b*c", "aXbYc", True),
        ("a*b*c", "acb", False),
        ("aa*aa", "aaa", False),
        (r"a\*b", "a*b", True),
        (r"a\*b", "axb", False),
        (r"a\\b", "a\\b", True),
        (r"a\b", "a\\b", True),
        ("a.c", "abc", False),
        ("a*", "a\nb", True),
        ("a*", 5, False),
    ],
)
def test_string_matches(pattern: str, value: Any, expected: bool) -> None:
    assert holds({"Variable": "$.v", "StringMatches": pattern}, {"v": value}) is expected


def test_connectives() -> None:
    yes, no = {"Variable": "$.v", "IsPresent": True}, {"Variable": "$.v", "IsPresent": False}
    for one in (yes, no):
        for other in (yes, no):
            assert holds({"And": [one, other]}, {"v": 1}) is (one is yes and other is yes)
            assert holds({"Or": [one, other]}, {"v": 1}) is (one is yes or other is yes)
        assert holds({"Not": one}, {"v": 1}) is (one is no)
    assert holds({"And": [yes, {"Or": [no, {"Not": no}]}]}, {"v": 1})


def test_and_stops_at_the_first_false() -> None:
    """So that IsPresent can guard a comparison."""
    rule = {"And": [{"Variable": "$.v", "IsPresent": True}, {"Variable": "$.v", "NumericEquals": 1}]}
    assert holds(rule, {}) is False


@pytest.mark.parametrize("operator", sorted(OPERATORS - {"IsPresent"}))
def test_a_variable_that_is_absent_fails_the_state(operator: str) -> None:
    operand: Any = True if operator.startswith("Is") or operator == "BooleanEquals" else "x"
    if operator.endswith("Path"):
        operand = "$.o"
    elif operator.startswith("Numeric"):
        operand = 1
    elif operator.startswith("Timestamp"):
        operand = EARLY
    with pytest.raises(StatesError) as caught:
        holds({"Variable": "$.v", operator: operand}, {"o": 1})
    assert caught.value.error == "States.Runtime"
    assert caught.value.cause == "Invalid path '$.v': The choice state's condition path references an invalid value."


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({}, ""),
        ({"Variable": "$.v"}, ""),
        ({"Variable": "$.v", "IsNull": True, "IsString": True}, ""),
        ({"IsNull": True}, ""),
        ({"Variable": "v", "IsNull": True}, "Variable"),
        ({"Variable": "$.v", "IsNull": "true"}, "IsNull"),
        ({"Variable": "$.v", "StringEquals": 1}, "StringEquals"),
        ({"Variable": "$.v", "NumericEquals": True}, "NumericEquals"),
        ({"Variable": "$.v", "TimestampEquals": "2024-01-01"}, "TimestampEquals"),
        ({"Variable": "$.v", "StringMatches": None}, "StringMatches"),
        ({"Variable": "$.v", "StringEqualsPath": "x"}, "StringEqualsPath"),
        ({"Variable": "$.v", "StringEqualsPath": 1}, "StringEqualsPath"),
        ({"And": []}, "And"),
        ({"Or": {}}, "Or"),
        ({"Not": []}, "Not"),
        ({"And": [1]}, "And[0]"),
        ({"And": [{"Variable": "$.v", "IsNull": 1}]}, "And[0]/IsNull"),
        ({"Not": {"Or": [{"Variable": "$.v", "IsNull": True, "Next": "X"}]}}, "Not/Or[0]/Next"),
    ],
)
def test_what_is_no_rule_is_refused(rule: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRule) as caught:
        compile_rule(rule, set())
    assert caught.value.field == field


ORDERS = ("LessThan", "Equals", "GreaterThan", "LessThanEquals", "GreaterThanEquals")
MOMENTS = st.integers(0, 59).map("2024-01-01T00:00:{:02d}Z".format)


@given(
    case=st.one_of(
        st.tuples(
            st.just("Numeric"), st.integers() | st.floats(allow_nan=False), st.integers() | st.floats(allow_nan=False)
        ),
        st.tuples(st.just("String"), st.text(max_size=3), st.text(max_size=3)),
        st.tuples(st.just("Timestamp"), MOMENTS, MOMENTS),
    )
)
def test_exactly_one_of_less_equal_greater(case: tuple[str, Any, Any]) -> None:
    kind, value, other = case
    less, equal, greater, at_most, at_least = (compare(f"{kind}{order}", value, other) for order in ORDERS)
    assert [less, equal, greater].count(True) == 1
    assert at_most is (less or equal)
    assert at_least is (greater or equal)


@given(value=DOCUMENTS, literal=st.integers(-3, 3), kind=st.sampled_from(["Numeric", "String", "Timestamp"]))
def test_a_wrong_type_makes_every_comparison_false(value: Any, literal: int, kind: str) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and kind == "Numeric":
        return
    operand: Any = {"Numeric": literal, "String": str(literal), "Timestamp": EARLY}[kind]
    if isinstance(value, str) and kind == "String":
        return
    assert not any(compare(f"{kind}{order}", value, operand) for order in ORDERS)


@given(value=st.text(alphabet="ab", max_size=8), pattern=st.text(alphabet="ab*", max_size=6))
def test_string_matches_agrees_with_the_shell(value: str, pattern: str) -> None:
    from fnmatch import fnmatchcase

    assert holds({"Variable": "$.v", "StringMatches": pattern}, {"v": value}) is fnmatchcase(value, pattern)
