"""The table of recorded answers: which tests count, on which line, and how it looks."""

from collections import Counter
from pathlib import Path

import pytest

from tests.recorded_summary import SUITES, line_of, table


@pytest.mark.parametrize(
    ("test", "line"),
    [
        ("tests/engine/test_conformance.py::test_recorded_execution[assign:base/test_x[A-1]]", "executions, assign"),
        ("tests/services/machines/test_recorded.py::test_a_trace_is_answered[asl/sfn_api/test_x]", "API, sfn_api"),
        ("tests/rules/test_patterns.py::test_recorded_case[anything-1]", "event patterns"),
        ("tests/rules/test_patterns.py::test_recorded_case[NOTSET]", None),
        ("tests/engine/test_conformance.py::test_how_many_recordings_are_met", None),
    ],
)
def test_lines(test: str, line: str | None) -> None:
    assert line_of(test) == line


def test_the_tests_that_are_counted_exist() -> None:
    root = Path(__file__).resolve().parents[1]
    for suite in SUITES:
        file, name = suite.test.split("::")
        assert f"def {name}" in (root / file).read_text(), suite.test


def test_lines_are_aligned_and_summed_up() -> None:
    assert table({"b, long": Counter(passed=12, known=1), "a": Counter(failed=1, passed=100)}) == [
        "            passed   failed    known  skipped",
        "a              100        1        0        0",
        "b, long         12        0        1        0",
        "together       112        1        1        0",
    ]
