"""Event patterns: all recorded cases, and what the records don't show."""

import json  # the files say Infinity, which is not JSON
import time
from pathlib import Path
from typing import Any

import pytest

from tasuki.rules.patterns import PatternError, compile_pattern, pattern_paths
from tasuki.values import documents
from tests.conftest import CONFORMANCE

FOLDER: Path | None = CONFORMANCE and CONFORMANCE / "event_patterns"


def lines(name: str) -> list[Any]:
    if FOLDER is None:
        reason = "the recorded AWS answers are not beside this checkout"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="absent")]
    cases = [json.loads(line) for line in (FOLDER / name).read_text("utf-8").split("\n") if line]
    return [pytest.param(case, id=case["id"]) for case in cases]


def text(case: dict[str, Any], name: str) -> str:
    found: str = case[f"{name}_text"] if f"{name}_text" in case else documents.dumps(case[name])
    return found


@pytest.mark.parametrize("case", lines("cases.jsonl"))
def test_recorded_case(case: dict[str, Any]) -> None:
    pattern = text(case, "pattern")
    if case["expected"] == "exception":
        with pytest.raises(PatternError) as refused:
            compile_pattern(pattern)
        said = case["error_message"].removeprefix("Event pattern is not valid. Reason: ").split("\n at [")[0]
        # Of a wrong bracket the engine also says where the right one was opened, in its own source's notation.
        assert refused.value.reason == said.split(" (for Object starting")[0]
        return
    matches = compile_pattern(pattern)
    if case["expected"] != "valid_pattern":
        assert matches(documents.loads(text(case, "event"))) == (case["expected"] == "match")


@pytest.mark.parametrize("case", lines("corpus_in_use.jsonl"))
def test_pattern_in_use_compiles(case: dict[str, Any]) -> None:
    pattern = text(case, "pattern")
    if '{"Fn::' in pattern:  # a template's function that was never resolved is no pattern
        with pytest.raises(PatternError, match="Unrecognized match type Fn::FindInMap"):
            compile_pattern(pattern)
        return
    assert pattern_paths(pattern)


@pytest.mark.parametrize(
    ("pattern", "column"),
    [
        ('{"resources": []}', 17),
        ('{"x": [{"exists": "badString"}]}', 20),
        ('{"x": [{"numeric": ["=", true]}]}', 30),
        ('{"a": [ { "foo": "child" } ] }', 19),
    ],
)
def test_complaint_names_the_place_as_aws_does(pattern: str, column: int) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)
    assert refused.value.place == f'\n at [Source: (String)"{pattern}"; line: 1, column: {column}]'


def test_place_counts_lines_and_cuts_long_sources() -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern('{"a": [1],\n "b": [' + " " * 600 + "]}")
    assert "[truncated 120 chars]; line: 2, column: 609]" in refused.value.place


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "Filter is not an object"),
        ("[]", "Filter is not an object"),
        ("{}", "Empty objects are not allowed"),
        ('{"a": {}}', "Empty objects are not allowed"),
        ('{"a": [[1]]}', "Match value must be String, number, true, false, or null"),
        ('{"a": [{}]}', "Empty match expression"),
        ('{"a": [{"cidr": "10.0.0.0/33"}]}', "IPv4 mask bits must be < 33"),
        ('{"a": [{"cidr": "10.0.0.0/x"}]}', "Malformed CIDR, mask bits must be an integer"),
        ('{"a": [{"cidr": "10.0.0.0/\u0668"}]}', "Malformed CIDR, mask bits must be an integer"),
        ('{"a": [1\u0668]}', "Unexpected character"),
        ('{"a": [{"wildcard": "a**"}]}', "Consecutive wildcard characters at pos 1"),
        ('{"a": [{"anything-but": []}]}', "Empty arrays are not allowed"),
        ('{"a": [{"anything-but": [null]}]}', "Inside anything but list, start|null|boolean is not supported."),
        (
            '{"$or": [{"prefix": ["a"]}, {"b": [1]}]}',
            "prefix is Ruler reserved fieldName which cannot be used inside $or.",
        ),
        ('{"$or": [1, 2]}', "Only objects are allowed in array of $or relationship."),
        ('{"a": [1]} x', "Unrecognized token"),
        ('{"a": [1]}\0', "Unexpected"),
        ('{"a": [1]', "Unexpected end-of-input"),
        ('{"a": [1,]}', "Unexpected character"),
        ('{"a" [1]}', "Unexpected character"),
        ("{a: [1]}", "Unexpected character"),
        ('{"a": ["\x01"]}', "Unexpected character"),
    ],
)
def test_refused(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)
    assert refused.value.reason.startswith(reason)


def test_ors_that_multiply_without_bound_are_refused() -> None:
    ors = ",".join(f'"k{n}": {{"$or": [{{"a": [1]}}, {{"b": [2]}}]}}' for n in range(10))
    with pytest.raises(PatternError, match="too complex"):
        compile_pattern("{" + ors + "}")


@pytest.mark.parametrize(
    ("pattern", "event", "expected"),
    [
        ('{"a": [1]}', {"a": True}, False),
        ('{"a": [true]}', {"a": 1}, False),
        ('{"a": [null]}', {"a": None}, True),
        ('{"a": ["null"]}', {"a": None}, False),
        ('{"a": ["\\u00e9\\ud83d\\ude00"]}', {"a": "é😀"}, True),
        ('{"a": [{"exists": false}]}', {"a": {"b": 1}}, True),
        ('{"a": [{"wildcard": "a\\\\*b"}]}', {"a": "a*b"}, True),
        ('{"a": [{"wildcard": "a\\\\*b"}]}', {"a": "axb"}, False),
        ('{"a": [{"wildcard": "*b*"}]}', {"a": "a\nb\nc"}, True),
        ('{"a": {"x": [1], "y": [2]}}', {"a": [{"x": 1, "y": 3}, {"x": 2, "y": 2}]}, False),
        ('{"a": {"x": [1], "y": [2]}}', {"a": [{"x": 1, "y": 3}, {"x": 1, "y": 2}]}, True),
        ('{"a": {"x": [1], "y": [{"exists": false}]}}', {"a": [{"x": 1}, {"x": 2, "y": 2}]}, True),
    ],
)
def test_matching(pattern: str, event: Any, expected: bool) -> None:
    assert compile_pattern(pattern)(event) == expected


def test_a_hostile_text_costs_no_more_than_its_length_times_the_stars() -> None:
    matches = compile_pattern('{"a": [{"wildcard": "*a*a*a*b"}]}')
    started = time.process_time()
    assert not matches({"a": "a" * 100_000 + "c"})
    assert time.process_time() - started < 1
