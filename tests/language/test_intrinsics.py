"""Intrinsic functions: what they answer, how they fail, and how calls are written."""

import base64
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.language.errors import StatesError
from tasuki.language.intrinsics import parse_intrinsic
from tasuki.language.path_steps import BadPath
from tests.language.scopes import scope

INPUT = {
    "name": "Ana",
    "n": 5,
    "list": [1, 2, 2, 3, True, 1.0, {"a": 1}, {"a": 1}],
    "o": {"Arg1": 1, "Arg2": []},
    "text": "{}+{}",
    "null": None,
    "weird)": "w",
}


def call(text: str, document: Any = INPUT) -> Any:
    return parse_intrinsic(text, set())(scope(document))


ANSWERS: list[tuple[str, Any]] = [
    ("States.Format('Hi {}', $.name)", "Hi Ana"),
    ("States.Format('none')", "none"),
    ("States.Format('{}{}', 1, 'x')", "1x"),
    ("States.Format('{} {} {}', true, null, 1.5)", "true null 1.5"),
    ("States.Format('{}', $.o)", "{Arg1=1, Arg2=[]}"),  # recorded: test_format_2
    ("States.Format('{}', States.Array('a', null, true))", "[a, null, true]"),
    ("States.Format($.text, 1, 2)", "1+2"),
    (r"States.Format('\{\} \'{}\' \\', 1)", "{} '1' \\"),
    ("States.Format('{}', 10000000.0)", "1.0E7"),
    ("States.Format('{}', 0.0001)", "1.0E-4"),
    ("States.Format('{}', 123456789.125)", "1.23456789125E8"),
    ("States.StringToJson('')", None),
    ("States.StringToJson(' ')", None),
    ("States.StringToJson('-0')", 0),
    ("States.StringToJson('{\"a\": [1, 2.5]}')", {"a": [1, 2.5]}),
    ("States.JsonToString($.o)", '{"Arg1":1,"Arg2":[]}'),
    ("States.JsonToString('x')", '"x"'),
    ("States.Array()", []),
    ("States.Array(1, 'a', $.n, null, true, 1.5)", [1, "a", 5, None, True, 1.5]),
    ("States.ArrayPartition(States.Array(1,2,3,4,5), 2)", [[1, 2], [3, 4], [5]]),
    ("States.ArrayPartition(States.Array(), 2)", []),
    ("States.ArrayContains($.list, 3)", True),
    ("States.ArrayContains($.list, 9)", False),
    ("States.ArrayContains(States.Array(1), true)", False),
    ("States.ArrayContains($.list, $.list[6])", True),
    ("States.ArrayRange(1, 9, 2)", [1, 3, 5, 7, 9]),
    ("States.ArrayRange(3, 1, -1)", [3, 2, 1]),
    ("States.ArrayRange(0, 3, 1)", [0, 1, 2, 3]),
    ("States.ArrayGetItem($.list, 3)", 3),
    ("States.ArrayLength($.list)", 8),
    ("States.ArrayUnique($.list)", [1, 2, 3, True, {"a": 1}]),
    ("States.Base64Encode('Data to encode')", "RGF0YSB0byBlbmNvZGU="),
    ("States.Base64Decode('RGF0YSB0byBlbmNvZGU=')", "Data to encode"),
    ("States.Hash('input data', 'SHA-1')", "aaff4a450a104cd177d28d18d74485e8cae074b7"),
    ("States.Hash($.o, 'MD5')", hashlib.md5(b'{"Arg1":1,"Arg2":[]}').hexdigest()),
    ('States.JsonMerge($.o, States.StringToJson(\'{"Arg2":2,"b":3}\'), false)', {"Arg1": 1, "Arg2": 2, "b": 3}),
    ("States.MathAdd(1.49, 1.5)", 3),  # recorded: every operand is rounded half up first
    ("States.MathAdd(-1.5, -1.51)", -3),
    ("States.MathAdd($.n, -1)", 4),
    ("States.StringSplit('a,b+c,,d', ',+')", ["a", "b", "c", "d"]),
    ("States.StringSplit('Hello\nWorld', '\n')", ["Hello", "World"]),
    ("States.StringSplit('', ',')", []),
    (" States.ArrayLength( $.list ) ", 8),
    ("States.Array($['weird)'], $.list[?(@.a == 1)])", ["w", [{"a": 1}, {"a": 1}]]),
    ("States.ArrayGetItem(States.StringSplit($$.Execution.Id, ':'), 0)", "arn"),
]


@pytest.mark.parametrize(("text", "value"), ANSWERS)
def test_answers(text: str, value: Any) -> None:
    found = call(text)
    assert found == value
    assert type(found) is type(value)


def test_chance_is_an_argument() -> None:
    assert call("States.UUID()") == call("States.UUID()")
    assert call("States.UUID()")[14] == "4"
    assert call("States.MathRandom(1, 2)") == 1
    assert call("States.MathRandom(0, 1000000, 3)") == call("States.MathRandom(0, 1000000, 3)")
    assert call("States.MathRandom(0, 1000000, 3)") != call("States.MathRandom(0, 1000000, 4)")


FAULTS = [
    ("States.Format('{}')", "The number of arguments do not match the occurrences of '{}' in the template"),
    ("States.Format('', 1)", "The number of arguments do not match the occurrences of '{}' in the template"),
    ("States.Format($.text, 1)", "The number of arguments do not match the occurrences of '{}' in the template"),
    ("States.Format($.n)", "The template must be a string"),
    ("States.StringToJson('{')", "The argument is not JSON: Input data was truncated"),
    ("States.StringToJson($.n)", "The argument must be a string"),
    ("States.ArrayPartition($.list, 0)", "The chunk size must be greater than 0"),
    ("States.ArrayLength($.n)", "The first argument must be an array"),
    ("States.ArrayRange(1, 5, 0)", "The step must not be 0"),
    ("States.ArrayRange(0, 1000, 1)", "The range must not have more than 1000 items"),
    ("States.ArrayGetItem($.list, 8)", "The index 8 is out of bounds for an array of length 8"),
    ("States.ArrayGetItem($.list, -1)", "The index -1 is out of bounds for an array of length 8"),
    ("States.Base64Decode('*')", "The argument is not the Base64 of a text"),
    ("States.Hash('x', 'CRC')", "The algorithm must be one of MD5, SHA-1, SHA-256, SHA-384, SHA-512"),
    ("States.JsonMerge($.o, $.o, true)", "The third argument must be false: deep merging is not supported"),
    ("States.JsonMerge($.o, 1, false)", "The first two arguments must be objects"),
    ("States.MathRandom(2, 2)", "The start must be less than the end"),
    ("States.MathAdd('1', 1)", "The first argument must be a number"),
    ("States.MathAdd(true, 1)", "The first argument must be a number"),
    ("States.StringSplit('a', 1)", "The second argument must be a string"),
]


@pytest.mark.parametrize(("text", "reason"), FAULTS)
def test_faults_can_be_caught(text: str, reason: str) -> None:
    with pytest.raises(StatesError) as caught:
        call(text)
    assert caught.value.error == "States.IntrinsicFailure"
    assert caught.value.cause == f"The function '{text}' had the following error: {reason}"


def test_a_range_may_have_a_thousand_items() -> None:
    assert call("States.ArrayRange(1, 1000, 1)") == list(range(1, 1001))


def test_long_texts_are_refused() -> None:
    for text in ("States.Base64Encode($)", "States.Base64Decode($)", "States.Hash($, 'MD5')"):
        with pytest.raises(StatesError, match="at most 10000 characters"):
            call(text, "a" * 10_001)


def test_a_loose_backslash_fails_when_the_call_runs() -> None:
    with pytest.raises(StatesError, match="IntrinsicFailure") as caught:
        call(r"States.Array('a\nb')")
    assert caught.value.error == "States.IntrinsicFailure"


def test_a_path_that_finds_nothing_is_no_fault_of_the_function() -> None:
    with pytest.raises(StatesError) as caught:
        call("States.Array($.no)", {})
    assert caught.value.error == "States.Runtime"
    assert caught.value.cause == "The JsonPath argument for the field '$.no' could not be found in the input '{}'"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "States",
        "States.Nope()",
        "States.Array(",
        "States.Array(1",
        "States.Array(1 2)",
        "States.Array('a)",
        "States.Array(a)",
        'States.Array("a")',
        "States.Array({})",
        "States.Array(1)x",
        "States.ArrayLength()",
        "States.UUID(1)",
        "States.MathAdd(1)",
        "States.Format()",
        "States.Array($.a[)",
        "States.Array(" * 11 + ")" * 11,
        "Format('x')",
    ],
)
def test_what_is_no_call_is_refused(text: str) -> None:
    with pytest.raises(BadPath):
        parse_intrinsic(text, set())


def test_ten_calls_may_nest() -> None:
    assert call("States.Array(" * 10 + ")" * 10) == [[[[[[[[[[]]]]]]]]]]


@given(text=st.text(max_size=50))
def test_base64_there_and_back(text: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        return
    encoded = call("States.Base64Encode($)", text)
    assert base64.b64decode(encoded).decode() == text
    assert call("States.Base64Decode($)", encoded) == text


@given(text=st.text(alphabet="ab,;", max_size=20), marks=st.text(alphabet=",;", max_size=2))
def test_split_keeps_what_is_no_mark(text: str, marks: str) -> None:
    pieces = call("States.StringSplit($.t, $.m)", {"t": text, "m": marks})
    assert "".join(pieces) == "".join(character for character in text if character not in marks)
    assert all(pieces)


@given(
    items=st.lists(st.integers(-3, 3) | st.booleans() | st.lists(st.integers(0, 1), max_size=2)), size=st.integers(1, 4)
)
def test_partition_loses_nothing(items: list[Any], size: int) -> None:
    parts = call("States.ArrayPartition($.i, $.s)", {"i": items, "s": size})
    assert [item for part in parts for item in part] == items
    assert all(len(part) == size for part in parts[:-1])
    unique = call("States.ArrayUnique($)", items)
    assert all(call("States.ArrayContains($.u, $.x)", {"u": unique, "x": item}) for item in items)


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("States.MathRandom(0, $)", False),
        ("States.ArrayRange(0, $, 1)", False),
        ("States.Format('{}', $)", True),
        ("States.Format($.x, 1)", None),
        ("States.JsonToString($)", True),
        ("States.Hash($, 'MD5')", True),
    ],
)
def test_what_is_too_large_can_be_caught(text: str, deep: bool | None) -> None:
    document: Any = {"x": "{"} if deep is None else 10**400
    for _ in range(2_000 if deep else 0):
        document = [document]
    with pytest.raises(StatesError) as failed:
        call(text, document)
    assert failed.value.error == "States.IntrinsicFailure"


def test_whole_numbers_are_exact_at_any_size() -> None:
    assert call("States.MathAdd($, 1.5)", 10**400) == 10**400 + 2
