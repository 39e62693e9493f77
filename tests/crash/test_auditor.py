"""The auditor finds what it is there to find: each broken promise, planted into evidence that is otherwise sound."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.crash.auditor import ENTERED, audit

if TYPE_CHECKING:
    from tests.crash.relay import Relay

START = datetime(2026, 1, 1, tzinfo=UTC)


class Evidence:
    """What a relay of two jobs shows when nothing went wrong: `job-0`, and `job-1-fail`, which fails at its first try."""

    def __init__(self) -> None:
        self.jobs = "jobs"
        self.acknowledged = {"job-0": "m0", "job-1-fail": "m1"}
        self.uncertain: set[str] = set()
        self.left = 0
        self.histories = {f"e-{job}": history(job) for job in self.acknowledged}
        self.statuses = dict.fromkeys(self.histories, "SUCCEEDED")
        self.said = [{"job": job, "by": f"e-{job}"} for job in self.acknowledged]
        self.words = {
            "job-0": [["began", "7", "0"], ["ended", "7", "0"]],
            "job-1-fail": [["began", "8", "0"], ["ended", "8", "0"], ["began", "9", "1"], ["ended", "9", "1"]],
        }

    def executions(self) -> list[dict[str, Any]]:
        return [{"executionArn": arn, "status": status} for arn, status in self.statuses.items()]

    def history(self, arn: str) -> list[dict[str, Any]]:
        return self.histories[arn]

    def depth(self, _url: str) -> int:
        return self.left

    def announced(self) -> list[dict[str, Any]]:
        return self.said

    def marks(self, job: str) -> list[list[str]]:
        return self.words[job]


def history(job: str) -> list[dict[str, Any]]:
    types = ["ExecutionStarted", *ENTERED, "ExecutionSucceeded"]
    events: list[dict[str, Any]] = [
        {"id": n + 1, "previousEventId": n, "type": kind, "timestamp": START + timedelta(seconds=n)}
        for n, kind in enumerate(types)
    ]
    events[0]["executionStartedEventDetails"] = {"input": json.dumps([{"body": {"job": job}}])}
    return events


def found_in(evidence: Evidence, shims_killed: int = 0) -> list[str]:
    return audit(cast("Relay", evidence), shims_killed=shims_killed).violations


def test_sound_evidence_passes() -> None:
    assert found_in(Evidence()) == []


def lost(one: Evidence) -> None:
    one.acknowledged["job-2"] = "m2"


def handed_over_twice(one: Evidence) -> None:
    one.histories["again"] = history("job-0")
    one.statuses["again"] = "SUCCEEDED"


def never_sent(one: Evidence) -> None:
    del one.acknowledged["job-0"]


def left_behind(one: Evidence) -> None:
    one.left = 1


def not_announced(one: Evidence) -> None:
    one.said.pop()


def announced_twice(one: Evidence) -> None:
    one.said[1] = {"job": "job-1-fail", "by": "e-job-0"}


def failed(one: Evidence) -> None:
    one.statuses["e-job-0"] = "FAILED"


def gap(one: Evidence) -> None:
    del one.histories["e-job-0"][2]


def dangling(one: Evidence) -> None:
    one.histories["e-job-0"][2]["previousEventId"] = 9


def back_in_time(one: Evidence) -> None:
    one.histories["e-job-0"][3]["timestamp"] = START


def two_ends(one: Evidence) -> None:
    one.histories["e-job-0"].append({**one.histories["e-job-0"][-1], "id": 7, "previousEventId": 6})


def ran_twice(one: Evidence) -> None:
    one.words["job-0"] += [["began", "70", "0"], ["ended", "70", "0"]]


def ended_elsewhere(one: Evidence) -> None:
    one.words["job-0"][1][1] = "70"


def not_tried_again(one: Evidence) -> None:
    del one.words["job-1-fail"][2:]


def try_left_out(one: Evidence) -> None:
    one.words["job-1-fail"][2][2] = one.words["job-1-fail"][3][2] = "2"


def cut_off(one: Evidence) -> None:
    del one.words["job-0"][1]


@pytest.mark.parametrize(
    ("plant", "promise"),
    [
        (lost, "P1: job-2"),
        (handed_over_twice, "P3: job-0 was handed over 2"),
        (never_sent, "P3: job-0 was never sent"),
        (left_behind, "P8"),
        (not_announced, "P3: 1 announcements"),
        (announced_twice, "P3: an execution announced twice"),
        (failed, "P2: execution of job-0"),
        (gap, "P2: the history of job-0 has a gap"),
        (dangling, "P2: the history of job-0 names"),
        (back_in_time, "P2: time goes back"),
        (two_ends, "P2: the history of job-0 has 2 ends"),
        (ran_twice, "P4: try 0 of job-0"),
        (ended_elsewhere, "P4: try 0 of job-0"),
        (not_tried_again, "P4: job-1-fail ended 1"),
        (try_left_out, "P4: job-1-fail ran the tries"),
        (cut_off, "P4: 1 tries began"),
    ],
)
def test_a_broken_promise_is_named(plant: Callable[[Evidence], None], promise: str) -> None:
    evidence = Evidence()
    plant(evidence)
    assert [one for one in found_in(evidence) if one.startswith(promise)], found_in(evidence)


def test_a_try_that_found_no_memory_is_no_violation_where_the_history_tells_of_it() -> None:
    evidence = Evidence()
    evidence.words["job-0"] = [["began", "7", "1"], ["ended", "7", "1"]]
    assert found_in(evidence) == ["P4: job-0 ran the tries [1]"]
    events = evidence.histories["e-job-0"]
    refused = {**events[4], "type": "TaskSubmitFailed"}
    evidence.histories["e-job-0"] = [
        {**event, "id": n + 1, "previousEventId": n} for n, event in enumerate([*events[:4], refused, *events[4:]])
    ]
    assert found_in(evidence) == []


def test_a_try_that_was_lost_with_its_shim_and_tried_again_is_no_violation() -> None:
    evidence = Evidence()
    evidence.words["job-0"] = [["began", "7", "0"], ["began", "8", "1"], ["ended", "8", "1"]]
    assert found_in(evidence, shims_killed=1) == []
    assert found_in(evidence, shims_killed=0) != []


def test_a_job_whose_failing_try_was_lost_with_its_shim_has_only_to_end_once() -> None:
    evidence = Evidence()
    evidence.words["job-1-fail"] = [["began", "8", "0"], ["began", "9", "1"], ["ended", "9", "1"]]
    assert found_in(evidence, shims_killed=1) == []
    evidence.words["job-1-fail"] = [["began", "8", "0"], ["began", "9", "1"]]
    assert [one for one in found_in(evidence, shims_killed=2) if one.startswith("P4: job-1-fail ended 0")]
