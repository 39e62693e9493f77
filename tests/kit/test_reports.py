"""What the kit tells of what came to nothing: under a failed test, in a printed history, in a look at a queue."""

import json
import re
from collections.abc import Callable
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


def test_the_one_that_failed_is_told_of_before_the_last_ones(house_factory: Callable[..., Kit]) -> None:
    with house_factory(start="2026-10-09T12:00:00+09:00") as house:
        states = house.client("stepfunctions")
        odd = {"Type": "Choice", "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "Bad"}], "Default": "Good"}
        chain = {"StartAt": "Odd", "States": {"Odd": odd, "Bad": {"Type": "Fail"}, "Good": {"Type": "Succeed"}}}
        made = states.create_state_machine(name="m", definition=json.dumps(chain), roleArn=ROLE)["stateMachineArn"]
        for n in range(9):
            given = json.dumps({"n": n, "long": "x" * 200})
            states.start_execution(stateMachineArn=made, name=f"run-{n}", input=given)
            house.advance(hours=1)
        told = [line for line in house.story().splitlines() if line.startswith("execution ")]
    assert [line.split()[1] for line in told] == ["run-1", "run-4", "run-5", "run-6", "run-7", "run-8"]
    assert ": FAILED, started 2026-10-09T13:00:00+09:00, input {" in told[0]
    assert told[0].endswith("xxx ...")
    assert max(map(len, told)) < 200


@pytest.mark.tasuki(real_tasks=True)
def test_the_last_lines_of_a_program_that_failed_are_told(house: Kit) -> None:
    says = "for n in 1 2 3 4 5 6 7; do echo line $n; done; printf 'y%.0s' $(seq 400); exit 3"
    house.image("etl", command=["sh", "-c", says])
    house.image("good", command=["echo", "all is well"])
    for name in ("etl", "good"):
        task_definition(name)
        boto3.client("ecs").run_task(taskDefinition=name)
        house.settle()
    told = house.story().splitlines()
    at = next(n for n, line in enumerate(told) if line.startswith("task of etl: STOPPED, exit code 3"))
    assert told[at + 1 : at + 6] == ["  | line 4", "  | line 5", "  | line 6", "  | line 7", "  | " + "y" * 300]
    assert "all is well" not in "".join(told)


def test_tasks_that_are_forgotten_are_hinted_at(house: Kit) -> None:
    house.image("job", minutes=1)
    task_definition("job")
    boto3.client("ecs").run_task(taskDefinition="job")
    house.advance(days=6)
    assert len(house.tasks()) == 1
    assert "stopped_tasks_days" not in house.story()
    house.advance(days=3)
    assert house.tasks() == []
    assert 'more than 7 days ago are forgotten: quotas={"stopped_tasks_days": ...}' in house.story()


@pytest.mark.tasuki(quotas={"stopped_tasks_days": 40})
def test_tasks_are_remembered_for_as_long_as_the_quota_says(house: Kit) -> None:
    house.image("job", minutes=1)
    task_definition("job")
    boto3.client("ecs").run_task(taskDefinition="job")
    house.advance(days=30)
    assert [task.exit_code for task in house.tasks("job")] == [0]
    assert "stopped_tasks_days" not in house.story()


@pytest.mark.parametrize("real", [False, True])
def test_an_image_nobody_declared_says_how_it_could_be_a_program(house_factory: Callable[..., Kit], real: bool) -> None:
    house = house_factory(real_tasks=real)
    one = {"name": "main", "image": "etl", "memory": 512}
    house.client("ecs").register_task_definition(family="etl", containerDefinitions=[one])
    house.client("ecs").run_task(taskDefinition="etl")
    with pytest.raises(AssertionError, match="the test has not said what that does") as told:
        house.settle()
    assert ("command=[...]" in str(told.value)) is real


# -- a crash that never came --------------------------------------------------------------------------------------


def test_a_crash_that_never_came_fails_the_test_in_a_sentence(tmp_path: Path) -> None:
    code, said = pytest_in(
        project(
            tmp_path,
            """
            def test_never(house):
                house.crash(after=8)
                boto3.client("sqs").create_queue(QueueName="q")

            def test_taken_back(house):
                house.crash(after=8)
                house.crash(after=0)

            def test_came(house):
                house.crash(after=1)
                boto3.client("sqs").create_queue(QueueName="q")
                assert house.lives == 2

            def test_fails_anyhow(house):
                house.crash(after=7)
                assert house.lives == 2

            def test_skipped(house):
                house.crash(after=7)
                pytest.skip("no")
            """,
        )
    )
    assert code == 1, said
    assert "1 failed, 3 passed, 1 skipped, 1 error" in said
    assert "E   AssertionError: a crash after 8 commits was asked for and never came (1 were made)" in said
    assert "\na crash after 7 commits was asked for and never came (0 were made)" in said, "in the section house"
    assert "raise AssertionError(missed)" not in said, "our own lines are not shown"


def test_a_crash_that_never_came_is_told_of_at_the_next_one(house: Kit) -> None:
    house.crash(after=5)
    with pytest.raises(AssertionError, match=r"after 5 commits .* never came \(0 were made\)"):
        house.crash(after=1)
    with pytest.raises(ValueError, match="say after how many commits"):
        house.crash(after=-1)
    house.crash()  # comes instead of it
    assert house.lives == 2


def test_a_house_without_pytest_tells_of_it_unless_something_else_is_wrong() -> None:
    with pytest.raises(AssertionError, match="never came"), Kit() as house:
        house.crash(after=5)
    with pytest.raises(LookupError), Kit() as house:  # noqa: PT012 - what is raised while it is owed
        house.crash(after=5)
        raise LookupError


@pytest.mark.tasuki(real_tasks=True)
def test_runs_are_of_scripted_images(house: Kit) -> None:
    house.image("etl", command=["true"])
    with pytest.raises(TypeError, match=r"this is a program; its tasks tell: house\.tasks\(\)"):
        house.runs("etl")
    assert house.runs("other") == []


def test_what_fails_in_the_kit_is_shown_without_its_insides(tmp_path: Path) -> None:
    code, said = pytest_in(
        project(
            tmp_path,
            """
            def test_queue(house):
                house.queue("nowhere")

            def test_machine(house):
                house.executions("nothing")

            def test_image(house):
                ecs = boto3.client("ecs")
                one = {"name": "main", "image": "etl", "memory": 512}
                ecs.register_task_definition(family="etl", containerDefinitions=[one])
                ecs.run_task(taskDefinition="etl")
                house.settle()

            def test_back(house):
                house.advance(hours=-1)
            """,
        )
    )
    assert code == 1, said
    assert "4 failed" in said
    for sentence in (
        "no queue 'nowhere'",
        "no Standard state machine 'nothing'",
        'a task runs image "etl"',
        "backwards",
    ):
        assert sentence in said
    assert re.findall(r"^\S*(?:tasuki/testing|concurrent|asyncio)\S*:\d+:", said, re.MULTILINE) == []
