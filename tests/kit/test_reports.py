"""What the kit tells of what came to nothing: under a failed test, in a printed history, in a look at a queue."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from tasuki.testing import Kit
from tests.kit.test_plugin import project, pytest_in
from tests.kit.town import ROLE, job, machine, queue, start, task_definition

QUEUE = "arn:aws:sqs:us-east-1:000000000000:"


def nightly(**policy: Any) -> None:
    """A schedule at one in the morning, into a queue."""
    queue("jobs")
    boto3.client("scheduler").create_schedule(
        Name="nightly",
        ScheduleExpression="cron(0 1 * * ? *)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": f"{QUEUE}jobs", "RoleArn": ROLE, "Input": '"<aws.scheduler.scheduled-time>"', **policy},
    )


def test_a_night_that_is_a_day_late_is_told_of_as_dropped(house: Kit) -> None:
    nightly()
    house.crash(hours=48)
    assert house.queue("jobs").bodies == ["2026-01-02T01:00:00Z"], "the one before is older than a day"
    [line] = [line for line in house.story().splitlines() if "DROPPED" in line]
    assert "schedule/default/nightly (2026-01-01T01:00:00" in line
    assert "to jobs: DROPPED: MaximumEventAgeInSeconds" in line


def test_a_night_in_the_dead_letter_queue_is_told_of(house: Kit) -> None:
    queue("dead")
    nightly(DeadLetterConfig={"Arn": f"{QUEUE}dead"})
    house.crash(hours=48)
    assert house.queue("dead").bodies == ["2026-01-01T01:00:00Z"]
    assert "DEAD_LETTERED: MaximumEventAgeInSeconds" in house.story()


def test_a_shorter_age_drops_it_sooner(house: Kit) -> None:
    nightly(RetryPolicy={"MaximumEventAgeInSeconds": 3_600})
    house.crash(hours=3)
    assert house.queue("jobs").bodies == []
    assert "maximum age of 3600 s" in house.story()


def test_the_report_of_a_failed_test_shows_what_was_dropped(tmp_path: Path) -> None:
    code, said = pytest_in(
        project(
            tmp_path,
            f"""
            def test_it(house):
                boto3.client("sqs").create_queue(QueueName="jobs")
                boto3.client("scheduler").create_schedule(
                    Name="nightly", ScheduleExpression="rate(1 day)", FlexibleTimeWindow={{"Mode": "OFF"}},
                    Target={{"Arn": "{QUEUE}jobs", "RoleArn": "{ROLE}", "Input": "x"}},
                )
                house.crash(hours=50)
                house.advance(days=5)
                assert house.queue("jobs").expired == 0
            """,
        )
    )
    assert code == 1, said
    assert "(MessageRetentionPeriod)" in said
    assert "to jobs: DROPPED: MaximumEventAgeInSeconds" in said


def test_messages_that_nobody_took_in_time_are_counted(house: Kit) -> None:
    url = queue("results", MessageRetentionPeriod=3_600)
    sqs = boto3.client("sqs")
    for n in range(3):
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps(n))
        house.advance(minutes=30)
    looked = house.queue("results")
    assert (looked.bodies, looked.expired) == ([2], 2)
    assert "queue results: 2 messages expired" in house.story()


def test_a_failed_tasks_exit_code_is_in_the_printed_history(house: Kit) -> None:
    house.image("job", exit_code=43)
    task_definition("job")
    arn = start(machine("m", Run=job("job")))
    with pytest.raises(AssertionError) as told:
        house.execution(arn).assert_succeeded()
    lines = str(told.value).splitlines()
    assert any("cause: exit code 43: " in line for line in lines)
    assert any("TaskFailed" in line and "exit code 43: " in line for line in lines)
    assert max(map(len, lines)) < 300


def test_a_long_cause_is_shown_with_its_end(house: Kit) -> None:
    arn = start(machine("m", Run={"Type": "Fail", "Error": "Long", "Cause": "begin " + "x" * 500 + " the end"}))
    with pytest.raises(AssertionError, match=r"cause: begin x+ \.\.\. x+ the end"):
        house.execution(arn).assert_succeeded()
