"""Schedule expressions: what AWS takes and refuses, and when a rate and an at are due."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tasuki.rules.expressions import BadExpression, Dialect, parse_expression
from tasuki.values import documents
from tasuki.values.instant import Instant, from_datetime
from tests.conftest import CONFORMANCE

FOLDER: Path | None = CONFORMANCE and CONFORMANCE / "schedules"
DIALECTS: dict[str, Dialect] = {"events.PutRule": "rule", "scheduler.CreateSchedule": "scheduler"}


def lines(name: str) -> list[Any]:
    if FOLDER is None:
        reason = "the recorded AWS answers are not beside this checkout"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="absent")]
    cases = [documents.loads(line) for line in (FOLDER / name).read_text("utf-8").split("\n") if line]
    return [pytest.param(case, id=case["id"]) for case in cases]


def instant(text: str) -> Instant:
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


def valid(text: str, dialect: Dialect) -> bool:
    try:
        parse_expression(text, dialect)
    except BadExpression:
        return False
    return True


@pytest.mark.parametrize("case", lines("aws_validated.jsonl"))
def test_recorded_answer(case: dict[str, Any]) -> None:
    # One row was refused for its bus, not for its expression.
    expected = case["valid"] or case["error_message"].endswith("only on the default event bus.")
    assert valid(case["expression"], DIALECTS[case["api"]]) == expected


@pytest.mark.parametrize("case", lines("cron_next_runs.jsonl"))
def test_next_runs_that_other_tools_agree_on(case: dict[str, Any]) -> None:
    expression = parse_expression(case["expression"], "rule")
    now, found = instant(case["after"]), []
    for _ in case["next"]:
        due = expression.next(now)
        assert due is not None
        found.append(due)
        now = due
    assert found == [instant(text) for text in case["next"]]
