"""A table at the end of a run: how many of the recorded answers of AWS are met, per feature area.

Counted are the tests of `SUITES`. A test that goes through many cases by itself says how many with
`record_property("cases", number)`; when it fails, it counts as one. Without the recordings nothing is counted or printed.
"""

import re
from collections import Counter
from typing import NamedTuple

import pytest

_CASE = re.compile(r"\[(?:asl/)?(\w+)")
COLUMNS = {"passed": "passed", "xpassed": "passed", "failed": "failed", "error": "failed", "xfailed": "known", "skipped": "skipped"}  # fmt: skip
"""Where pytest's outcomes are counted. `known`: it differs, and its test says why."""


class Suite(NamedTuple):
    """Tests of recorded answers. `by_area`: the case's id begins with its area, which gets a line of its own."""

    test: str
    name: str
    by_area: bool = False


SUITES = (
    Suite("tests/engine/test_conformance.py::test_recorded_execution", "executions", by_area=True),
    Suite("tests/services/machines/test_map_runs_recorded.py::test_recorded_map_run", "executions, distributed Map"),
    Suite("tests/services/machines/test_recorded_callbacks.py::test_a_history", "executions, with real queues"),
    Suite("tests/services/machines/test_express_recorded.py::test_", "executions, Express"),
    Suite("tests/services/machines/test_logging.py::test_what_is_logged", "execution logs"),
    Suite("tests/services/machines/test_status_events.py::test_the_payload", "status changes"),
    Suite("tests/services/machines/test_recorded.py::test_a_trace", "API", by_area=True),
    Suite("tests/services/machines/test_logging.py::test_a_configuration_is", "API", by_area=True),
    Suite("tests/services/machines/test_trying.py::test_a_state_is_tested", "TestState"),
    Suite("tests/services/machines/test_validating.py::test_recorded_answers", "ValidateStateMachineDefinition"),
    Suite("tests/language/test_recorded.py::test_the_recorded_refusals", "definitions refused"),
    Suite("tests/language/test_recorded.py::test_labels_that_are_refused", "definitions refused"),
    Suite("tests/language/test_recorded.py::test_definitions_in_use", "definitions deployed on AWS"),
    Suite("tests/language/test_jsonata_suite.py::test_case", "JSONata, official suite"),
    Suite("tests/rules/test_patterns.py::test_recorded_case", "event patterns"),
    Suite("tests/rules/test_patterns.py::test_pattern_in_use", "event patterns in use"),
    Suite("tests/services/buses/test_recorded.py::test_trace", "EventBridge traces"),
    Suite("tests/services/buses/test_recorded.py::test_schedule_expression", "schedules of rules"),
    Suite("tests/services/buses/test_integration.py::test_put_events_is_answered", "executions, with a real bus"),
    Suite("tests/services/queues/test_conformance.py::test_trace", "SQS traces"),
    Suite("tests/services/queues/test_conformance.py::test_fact", "SQS facts"),
)


def line_of(test: str) -> str | None:
    """Answer the line on which a test counts; None when it is no test of recorded answers, or had none."""
    if test.endswith("[NOTSET]"):
        return None
    suite = next((suite for suite in SUITES if test.startswith(suite.test)), None)
    if suite is None:
        return None
    area = _CASE.search(test) if suite.by_area else None
    return f"{suite.name}, {area[1]}" if area is not None else suite.name


def table(counts: dict[str, Counter[str]]) -> list[str]:
    """Write the counts as aligned lines, with their sum as the last one."""
    columns = list(dict.fromkeys(COLUMNS.values()))
    total = sum(counts.values(), Counter[str]())
    width = max(map(len, counts)) + 2
    lines = [" " * width + "".join(f"{column:>9}" for column in columns)]
    for name, found in [*sorted(counts.items()), ("together", total)]:
        lines.append(f"{name:{width}}" + "".join(f"{found[column]:>9}" for column in columns))
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table, unless nothing recorded was compared."""
    counts: dict[str, Counter[str]] = {}
    for outcome, column in COLUMNS.items():
        for report in terminalreporter.stats.get(outcome, ()):
            line = line_of(getattr(report, "nodeid", ""))
            if line is not None:
                many = dict(report.user_properties).get("cases", 1) if column == "passed" else 1
                counts.setdefault(line, Counter())[column] += int(str(many))
    if any(found.total() > found["skipped"] for found in counts.values()):
        terminalreporter.write_sep("=", "recorded answers of AWS")
        for text in table(counts):
            terminalreporter.write_line(text)
