"""Scheduler's answers recorded on AWS, played against the room."""

import json
from typing import Any

import pytest

from tasuki.services.schedules.errors import ValidationException
from tasuki.values.errors import DomainError
from tests.conftest import CONFORMANCE
from tests.services.queues.recorded import Matcher, reach
from tests.services.schedules.bench import ACCOUNT, QUEUE, REGION, Bench


def _read(*path: str) -> list[dict[str, Any]]:
    found = CONFORMANCE.joinpath(*path) if CONFORMANCE is not None else None
    return [json.loads(line) for line in found.read_text("utf-8").splitlines()] if found is not None else []


EXPRESSIONS = [row for row in _read("schedules", "aws_validated.jsonl") if row["api"] == "scheduler.CreateSchedule"]
TRACES = [
    trace for trace in _read("events", "traces.jsonl") if {step["service"] for step in trace["steps"]} == {"scheduler"}
]


def test_all_are_here(conformance: Any) -> None:
    assert (len(EXPRESSIONS), len(TRACES)) == (24, 27), conformance


@pytest.mark.parametrize("row", EXPRESSIONS, ids=lambda row: row["expression"])
def test_an_expression_is_taken_or_refused_in_aws_s_words(bench: Bench, row: dict[str, Any]) -> None:
    if row["valid"]:
        assert bench.create("s", row["expression"])
        assert bench.call("GetSchedule", Name="s")["ScheduleExpression"] == row["expression"]
        return
    with pytest.raises(ValidationException) as refused:
        bench.create("s", row["expression"])
    assert (refused.value.code, refused.value.message) == (row["error_code"], row["error_message"])
    assert bench.names() == []


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace["id"].removeprefix("events/scheduler/"))
def test_a_trace_is_answered_as_aws_did(bench: Bench, trace: dict[str, Any]) -> None:
    """The recordings call a Lambda function; where AWS took the schedule, ours calls a queue, which changes no answer."""
    answers: dict[int, dict[str, Any]] = {}
    matcher = Matcher({"<region>": REGION, "<partition>": "aws", "111111111111": ACCOUNT})
    for step in trace["steps"]:
        given = step["params"]
        for ref in step.get("refs", ()):
            reach(given, ref["param"][:-1])[ref["param"][-1]] = reach(answers[ref["from"]], ref["path"])
        refusal = next((e["value"]["Error"] for e in step.get("expect", ()) if "Error" in e["value"]), None)
        if "Target" in given and refusal is None:
            given["Target"]["Arn"] = QUEUE
        if refusal is not None:
            with pytest.raises(DomainError) as no:
                bench.call(step["op"], **given)
            assert {"Code": no.value.code, "Message": no.value.message} == refusal
            continue
        answers[step["n"]] = bench.call(step["op"], **given)
        for expected in step.get("expect", ()):
            assert matcher.differs(expected["value"], answers[step["n"]]) is None
        observed = step["localstack_observed"]["ok"]
        assert set(answers[step["n"]]) == set(observed)
