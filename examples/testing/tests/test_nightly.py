"""The nightly scoring, played: every night of a month, a failure, a crash, a rerun, without waiting for any of it."""

import json
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from nightly import score
from nightly.deploy import deploy

from tasuki.testing import Kit, Run

pytestmark = pytest.mark.tasuki(start="2026-10-09T12:00:00+09:00")


def job(run: Run) -> int:
    return score.main(run.environment)


@pytest.fixture
def nightly(house: Kit) -> Kit:
    house.image("score", minutes=61, effect=job)  # each run takes 61 minutes, then does what the real job does
    deploy()
    return house


def start(given: dict[str, str]) -> str:
    states = boto3.client("stepfunctions")
    [machine] = states.list_state_machines()["stateMachines"]
    begun = states.start_execution(stateMachineArn=machine["stateMachineArn"], input=json.dumps(given))
    return str(begun["executionArn"])


def test_it_starts_at_one_in_tokyo_and_knows_for_which_day(nightly: Kit) -> None:
    nightly.advance_to("2026-10-10T00:59:59+09:00")
    assert nightly.executions("nightly") == []
    nightly.advance_to("2026-10-10T03:00:00+09:00")
    [night] = nightly.executions("nightly")
    night.assert_succeeded({"scheduledDate": "2026-10-10"})
    assert night.input == {"scheduledTime": "2026-10-09T16:00:00Z"}
    assert night.started == datetime(2026, 10, 9, 16, tzinfo=UTC)
    assert night.states == ["ScheduledDate", "Score"]
    assert [one["tenant"] for one in nightly.queue("results").bodies] == ["acme", "globex"]


def test_a_task_that_fails_is_tried_again_later_and_later(nightly: Kit) -> None:
    nightly.image("score", minutes=1, exit_code=1, times=2).then(minutes=61, effect=job)
    nightly.advance_to("2026-10-10T04:00:00+09:00")
    [night] = nightly.executions("nightly")
    night.assert_succeeded()
    began = [task.started - night.started for task in nightly.tasks("score") if task.started]
    assert began == [timedelta(0), timedelta(minutes=6), timedelta(minutes=17)]
    assert [task.exit_code for task in nightly.tasks("score")] == [1, 1, 0]


def test_the_day_stays_the_same_when_all_tries_fail(nightly: Kit) -> None:
    nightly.image("score", exit_code=1)
    nightly.advance_to("2026-10-10T04:00:00+09:00")
    [night] = nightly.executions("nightly")
    night.assert_failed("States.TaskFailed")
    assert {run.environment["SCHEDULED_DATE"] for run in nightly.runs("score")} == {"2026-10-10"}
    assert nightly.queue("results").messages == []


def test_a_node_that_is_killed_at_night_changes_nothing(nightly: Kit) -> None:
    nightly.advance_to("2026-10-10T01:30:00+09:00")
    nightly.crash()
    nightly.advance_to("2026-10-10T03:00:00+09:00")
    [night] = nightly.executions("nightly")
    night.assert_succeeded({"scheduledDate": "2026-10-10"})
    assert len(nightly.runs("score")) == 1
    assert nightly.queue("results").depth == 2


@pytest.mark.parametrize("after", range(1, 9))
def test_a_node_that_dies_at_any_commit_loses_no_result(nightly: Kit, after: int) -> None:
    nightly.crash(after=after)
    nightly.advance_to("2026-10-10T03:00:00+09:00")
    [night] = nightly.executions("nightly")
    night.assert_succeeded()
    assert (nightly.lives, len(nightly.runs("score"))) == (2, 1)
    # The job sends for itself, so a result comes at least once: its key counts, not how many there are.
    results = nightly.queue("results").bodies
    assert {(one["tenant"], one["date"]) for one in results} == {("acme", "2026-10-10"), ("globex", "2026-10-10")}


def test_a_day_can_be_run_again_two_days_later(nightly: Kit) -> None:
    nightly.image("score", exit_code=1)
    nightly.advance_to("2026-10-12T12:00:00+09:00")
    nightly.image("score", minutes=61, effect=job)
    again = start({"scheduledDate": "2026-10-10"})
    nightly.advance(hours=2)
    nightly.execution(again).assert_succeeded({"scheduledDate": "2026-10-10"})
    results = nightly.queue("results").bodies
    assert [(one["tenant"], one["date"]) for one in results] == [("acme", "2026-10-10"), ("globex", "2026-10-10")]


def test_a_run_by_hand_is_for_no_day(nightly: Kit) -> None:
    by_hand = start({})
    nightly.advance(hours=2)
    nightly.execution(by_hand).assert_succeeded({"scheduledDate": ""})
    assert {one["date"] for one in nightly.queue("results").bodies} == {None}


def test_a_result_that_nobody_can_use_ends_in_the_dead_letter_queue(nightly: Kit) -> None:
    nightly.advance_to("2026-10-10T03:00:00+09:00")
    sqs = boto3.client("sqs")
    url = nightly.queue("results").url
    for _ in range(3):
        assert len(sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]) == 2
        nightly.advance(minutes=1)  # nobody deletes them, and they are seen again
    assert "Messages" not in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    assert [one["tenant"] for one in nightly.queue("results-dead").bodies] == ["acme", "globex"]


def test_a_month_of_nights(nightly: Kit) -> None:
    nightly.advance(days=30)
    nights = nightly.executions("nightly")
    assert [night.output["scheduledDate"] for night in nights] == [
        f"2026-{month:02d}-{day:02d}" for month, days in ((10, range(10, 32)), (11, range(1, 9))) for day in days
    ]
    assert {night.status for night in nights} == {"SUCCEEDED"}
    results = nightly.queue("results")  # nobody took any, and a queue keeps a message for four days
    assert (results.depth, results.expired) == (0, 3)
