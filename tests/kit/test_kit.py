"""The kit from a user's side: time, tasks, crashes, looks."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from tasuki.testing import Kit, Restless, Run, Script, ScriptMissing
from tests.kit.town import ROLE, job, machine, queue, start, task_definition

ROOT = Path(__file__).resolve().parents[2]
START = "2026-10-09T12:00:00+09:00"


@pytest.mark.tasuki(start=START)
def test_boto3_of_the_code_under_test_talks_to_the_house_unchanged(house: Kit) -> None:
    url = boto3.client("sqs").create_queue(QueueName="jobs")["QueueUrl"]
    assert url == f"{house.environment['AWS_ENDPOINT_URL']}/000000000000/jobs"
    boto3.client("sqs").send_message(QueueUrl=url, MessageBody='{"job": 1}')
    assert house.queue("jobs").bodies == [{"job": 1}]
    assert house.queue(url).messages[0].sent == datetime(2026, 10, 9, 3, tzinfo=UTC)


def test_the_houses_own_clients_heed_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "of-somebody")
    with Kit() as house:
        assert "QueueUrls" not in house.client("sqs").list_queues()


@pytest.mark.usefixtures("house")
def test_a_key_that_is_not_the_houses_own_is_refused() -> None:
    stranger = boto3.client("sqs", aws_access_key_id="test", aws_secret_access_key="test")
    with pytest.raises(stranger.exceptions.ClientError, match="security token"):
        stranger.list_queues()


@pytest.mark.tasuki(start=START)
def test_time_stands_still_until_it_is_told_to_move(house: Kit) -> None:
    arn = machine("wait", W={"Type": "Wait", "Seconds": 7_200})
    one = start(arn)
    assert house.now == datetime(2026, 10, 9, 3, tzinfo=UTC)
    house.advance(hours=1, minutes=59, seconds=59)
    house.execution(one).assert_running()
    house.advance(seconds=1)
    assert house.execution(one).assert_succeeded().stopped == house.now
    house.advance_to("2026-10-10T01:00:00+09:00")
    assert house.now == datetime(2026, 10, 9, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "why"),
    [("2026-10-09T11:59:59+09:00", "never runs backwards"), ("2026-10-10T01:00:00", "say of which zone")],
)
@pytest.mark.tasuki(start=START)
def test_a_moment_that_cannot_be_gone_to_is_refused_and_nothing_moves(house: Kit, moment: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        house.advance_to(moment)
    with pytest.raises(ValueError, match="backwards"):
        house.advance(hours=-1)
    assert house.now == datetime(2026, 10, 9, 3, tzinfo=UTC)


# -- tasks --------------------------------------------------------------------------------------------------------


def test_an_image_takes_as_long_as_it_is_told_and_its_runs_can_be_looked_at(house: Kit) -> None:
    part = house.image("routing-v1", minutes=61, output="solved\n")
    task_definition("routing-v1")
    arn = start(machine("route", Run=job("routing-v1", {"DATE.$": "$.date"})), {"date": "2026-10-10"})
    [run] = part.runs
    assert (run.environment["DATE"], run.memory_mib, run.number, run.exit_code) == ("2026-10-10", 512, 1, None)
    [task] = house.tasks("routing-v1")
    assert (task.status, task.execution, task.image) == ("RUNNING", arn, "routing-v1")
    house.advance(minutes=60)
    house.execution(arn).assert_running()
    house.advance(minutes=1)
    house.execution(arn).assert_succeeded({"date": "2026-10-10"})
    [task] = house.tasks(status="STOPPED")
    assert (task.exit_code, task.output, task.environment["DATE"]) == (0, "solved\n", "2026-10-10")
    assert task.started is not None
    assert task.stopped is not None
    assert (task.stopped - task.started).total_seconds() == 61 * 60


def test_a_task_that_fails_twice_is_retried_with_backoff(house: Kit) -> None:
    flaky = house.image("flaky", exit_code=3, times=2).then(seconds=5)
    task_definition("flaky")
    retry = [{"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 60, "BackoffRate": 3, "MaxAttempts": 3}]
    arn = start(machine("retry", Run=job("flaky", Retry=retry)))
    house.advance(minutes=5)
    house.execution(arn).assert_succeeded()
    assert [(run.started - flaky.runs[0].started) // 1000 for run in flaky.runs] == [0, 60, 240]
    assert [run.attempt for run in flaky.runs] == [1, 2, 3]
    assert [task.exit_code for task in house.tasks()] == [3, 3, 0]


def test_more_memory_than_the_limit_is_an_end_by_the_kernel(house: Kit) -> None:
    house.image("greedy", seconds=9, memory_mib=513)
    task_definition("greedy")
    arn = start(machine("greedy", Run=job("greedy")))
    house.advance(seconds=9)
    [task] = house.tasks()
    assert task.exit_code == 137
    assert task.reason is not None
    assert task.reason.startswith("OutOfMemoryError")
    assert "OutOfMemoryError" in (house.execution(arn).assert_failed("States.TaskFailed").cause or "")


def test_a_rule_sees_the_run_and_decides(house: Kit) -> None:
    def rule(run: Run) -> Script | int:
        return Script.lasting(minutes=int(run.environment["N"])) if run.environment["N"] != "0" else 1

    house.image("job", rule)
    task_definition("job")
    arn = machine("jobs", Run=job("job", {"N.$": "$.n"}))
    one, none = start(arn, {"n": "7"}), start(arn, {"n": "0"})
    house.execution(none).assert_failed("States.TaskFailed")
    house.advance(minutes=7)
    house.execution(one).assert_succeeded()


def test_what_a_task_does_to_the_house_happens_while_it_runs(house: Kit) -> None:
    url = queue("results")
    seen: list[str] = []

    def work(run: Run) -> None:
        sqs = boto3.client("sqs")
        sqs.send_message(QueueUrl=url, MessageBody=run.environment["DATE"])
        sqs.send_message(QueueUrl=url, MessageBody=str(house.now))
        seen.extend(task.status for task in house.tasks())

    house.image("job", minutes=3, effect=work)
    task_definition("job")
    arn = start(machine("job", Run=job("job", {"DATE": "2026-10-10"})))
    assert house.queue("results").bodies == []
    house.advance(hours=1)
    house.execution(arn).assert_succeeded()
    assert house.queue("results").bodies == ["2026-10-10", "2026-01-01 00:03:00+00:00"]
    assert seen == ["RUNNING"]


def test_an_effect_may_start_what_has_effects_of_its_own(house: Kit) -> None:
    inner = machine("inner", Run=job("inner"))
    done: list[str] = []
    house.image("inner", seconds=1, effect=lambda _: done.append("inner"))

    def outer(_: Run) -> None:
        start(inner)
        done.append("outer")

    house.image("outer", outer)
    task_definition("inner")
    task_definition("outer")
    one = start(machine("outer", Run=job("outer")))
    house.execution(one).assert_succeeded()
    house.advance(seconds=1)
    assert done == ["outer", "inner"]


def test_an_image_that_was_not_scripted_says_how_to_script_it(house: Kit) -> None:
    house.image("known", seconds=1)
    task_definition("unknown")
    arn = start(machine("unknown", Run=job("unknown")))
    with pytest.raises(ScriptMissing, match=r'house\.image\("unknown", minutes=5\)') as told:
        house.settle()
    assert "scripted are known" in str(told.value)
    assert "house.image" in (house.execution(arn).assert_failed().cause or "")


def test_a_word_that_no_script_knows(house: Kit) -> None:
    with pytest.raises(TypeError, match=r'image\("job"\): no minuets=; there is days, drain_seconds, effect'):
        house.image("job", minuets=5)
    with pytest.raises(TypeError, match="must say times="):
        house.image("job", minutes=5).then(minutes=6)
    with pytest.raises(TypeError, match="a rule or minutes, not both"):
        house.image("job", lambda _: 0, minutes=5)


def test_an_effect_may_answer_an_exit_code_and_anything_else_is_none(house: Kit) -> None:
    codes = iter([7, {"MessageId": "x"}, True, None])
    house.image("job", seconds=1, output="kept", effect=lambda _: next(codes))
    task_definition("job")
    for _ in range(4):
        start(machine(f"job{house.now:%S}", Run=job("job")))
        house.advance(seconds=1)
    assert [(task.exit_code, task.output) for task in house.tasks()] == [(7, "kept"), *[(0, "kept")] * 3]


def test_an_image_that_ran_more_often_than_was_said(house: Kit) -> None:
    house.image("twice", times=2)
    task_definition("twice")
    arn = machine("twice", Run=job("twice"))
    for _ in range(3):
        start(arn)
    with pytest.raises(ScriptMissing, match="scripted for 2 runs in all, and this is number 3"):
        house.settle()


def test_what_a_tasks_function_raises_is_raised_in_the_test(house: Kit) -> None:
    def work(run: Run) -> None:
        assert run.environment["DATE"] == "2026-10-10", "the wrong day"

    house.image("job", seconds=1, effect=work)
    task_definition("job")
    start(machine("job", Run=job("job", {"DATE": "2026-10-11"})))
    with pytest.raises(AssertionError, match="the wrong day"):
        house.advance(seconds=1)
    [task] = house.tasks()
    assert task.exit_code == 1, "as a program that ends with a traceback"


def test_time_cannot_be_moved_from_inside_a_task(house: Kit) -> None:
    house.image("job", lambda _: house.advance(seconds=1))
    task_definition("job")
    start(machine("job", Run=job("job")))
    with pytest.raises(RuntimeError, match="stands still while a task's code runs"):
        house.settle()


def test_a_task_that_is_stopped_ends_after_its_drain(house: Kit) -> None:
    house.image("endless", forever=True, drain_seconds=5)
    task_definition("endless")
    ran = boto3.client("ecs").run_task(taskDefinition="endless")["tasks"][0]["taskArn"]
    house.advance(days=3)
    boto3.client("ecs").stop_task(task=ran)
    house.advance(seconds=4)
    assert [task.exit_code for task in house.tasks()] == [None]
    house.advance(seconds=1)
    assert [task.exit_code for task in house.tasks()] == [143]


def test_attempts_are_counted_for_each_execution_though_the_image_changes(house: Kit) -> None:
    again = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 60, "MaxAttempts": 1}]
    house.image("job", exit_code=1)
    task_definition("job")
    arn = machine("job", Run=job("job", Retry=again))
    start(arn)
    start(arn)
    house.image("job", exit_code=0)
    house.advance(minutes=1)
    assert [(run.number, run.attempt) for run in house.runs("job")] == [(1, 1), (2, 1), (3, 2), (4, 2)]


def test_a_machine_that_loses_a_task_says_so_and_nothing_runs_twice(house: Kit) -> None:
    part = house.image("job", minutes=61)
    task_definition("job")
    arn = start(machine("job", Run=job("job")))
    house.lose(part.runs[0].task)
    assert house.execution(arn).assert_failed().error == "States.TaskFailed"
    assert len(part.runs) == 1
    with pytest.raises(KeyError, match=r"no scripted task .* runs"):
        house.lose(part.runs[0].task)


def test_a_house_that_cannot_come_to_rest_is_closed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(_rest: Any) -> None:
        raise Restless("a round fails again and again")

    house = Kit(real_tasks=True)
    monkeypatch.setattr(house._outside, "end", restless)
    with pytest.raises(Restless):
        house.close()
    assert house.folder is not None
    assert not house.folder.exists()
    with pytest.raises(RuntimeError, match="closed"):
        house.settle()
    with Kit(port=house.config.port):
        """Its port is free again."""


@pytest.mark.tasuki(real_tasks=True)
def test_real_programs_run_while_the_clock_stands(house: Kit, tmp_path: Any) -> None:
    house.image("etl", command=["sh", "-c", 'echo "it is $DATE"; exit 4'], folder=tmp_path)
    house.image("after", minutes=5)
    task_definition("etl")
    task_definition("after")
    caught = [{"ErrorEquals": ["States.TaskFailed"], "ResultPath": None, "Next": "After"}]
    arn = start(machine("etl", Run=job("etl", {"DATE": "2026-10-10"}, Catch=caught, Next="After"), After=job("after")))
    before = house.now
    house.settle()
    [etl, after] = house.tasks()
    assert house.now == before
    assert (etl.exit_code, etl.output, after.status) == (4, "it is 2026-10-10\n", "RUNNING")
    house.advance(minutes=5)
    house.execution(arn).assert_succeeded()


def test_a_program_needs_real_tasks(house: Kit) -> None:
    with pytest.raises(TypeError, match="real_tasks=True"):
        house.image("etl", command=["true"])


# -- looks --------------------------------------------------------------------------------------------------------


def test_looking_into_a_queue_receives_nothing(house: Kit) -> None:
    queue("dead")
    policy = json.dumps({"deadLetterTargetArn": house.queue("dead").arn, "maxReceiveCount": 2})
    url = queue("jobs", VisibilityTimeout=30, RedrivePolicy=policy)
    sqs = house.client("sqs")
    sqs.send_message(QueueUrl=url, MessageBody="x" * 200_000)
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=60)
    for received in (1, 2):
        assert sqs.receive_message(QueueUrl=url)["Messages"]
        look = house.queue("jobs")
        assert (look.depth, look.in_flight, look.delayed, look.messages[0].received) == (0, 1, 1, received)
        house.advance(seconds=30)
    assert house.queue("dead").messages == []
    [late] = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert late["Body"] == "later"
    assert [one.body for one in house.queue("dead").messages] == ["x" * 200_000], "the third receive moved it"


def test_an_empty_long_poll_is_answered_at_once(house: Kit) -> None:
    url = queue("jobs", ReceiveMessageWaitTimeSeconds=20)
    before = house.now
    began = time.monotonic()
    assert "Messages" not in boto3.client("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=20)
    assert time.monotonic() - began < 10
    assert house.now == before


def test_what_is_not_there_is_told_with_what_is(house: Kit) -> None:
    queue("jobs")
    machine("nightly", P={"Type": "Pass"})
    with pytest.raises(LookupError, match="no queue 'job' in us-east-1; there is jobs"):
        house.queue("job")
    with pytest.raises(LookupError, match="no Standard state machine 'daily' in us-east-1; there is nightly"):
        house.executions("daily")


def test_a_failed_assertion_tells_the_history(house: Kit) -> None:
    arn = machine("sorry", First={"Type": "Pass"}, Sorry={"Type": "Fail", "Error": "Odd", "Cause": "n is odd"})
    one = house.execution(start(arn))
    assert one.states == ["First", "Sorry"]
    with pytest.raises(AssertionError) as told:
        one.assert_succeeded()
    text = str(told.value)
    assert "of sorry is FAILED, not SUCCEEDED" in text
    assert "n is odd" in text
    assert "PassStateEntered" in text
    with pytest.raises(AssertionError, match="failed with Odd, not Even"):
        one.assert_failed("Even")
    with pytest.raises(AssertionError, match=r'answered \{"n":1\}, not \{"n":2\}'):
        house.execution(start(machine("echo", P={"Type": "Pass"}), {"n": 1})).assert_succeeded({"n": 2})


def test_executions_are_listed_in_their_order(house: Kit) -> None:
    echo, other = machine("echo", P={"Type": "Pass"}), machine("other", W={"Type": "Wait", "Seconds": 1})
    for n in range(3):
        start(echo, {"n": n})
        house.advance(seconds=1)
    start(other)
    assert [one.input for one in house.executions("echo")] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [one.machine for one in house.executions()] == ["echo", "echo", "echo", "other"]
    assert [one.machine for one in house.executions(status="RUNNING")] == ["other"]
    assert len(house.executions(echo)) == 3


def test_handovers_are_told(house: Kit) -> None:
    url = queue("jobs")
    arn = machine("route", P={"Type": "Pass"})
    house.client("pipes").create_pipe(
        Name="p", Source=house.queue("jobs").arn, Target=arn, RoleArn="arn:aws:iam::000000000000:role/any",
        TargetParameters={"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}},
    )  # fmt: skip
    house.advance(minutes=2)
    house.client("sqs").send_message(QueueUrl=url, MessageBody='{"job": 1}')
    [one] = house.executions("route")
    assert [told["Outcome"] for told in house.handovers(ExecutionArn=one.arn)] == ["DELIVERED"]
    assert house.queue("jobs").messages == []


def test_the_command_line_speaks_to_a_tests_house(house: Kit, tmp_path: Path) -> None:
    arn = start(machine("wait", W={"Type": "Wait", "Seconds": 7_200}))

    def tasuki(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tasuki.cli.main", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "2026-01-01T00:00:00" in tasuki("clock", "show")
    tasuki("clock", "advance", "36h")
    assert house.now == datetime(2026, 1, 2, 12, tzinfo=UTC)
    house.execution(arn).assert_succeeded()
    assert "7200.000s = execution" in tasuki("history", arn)


# -- crashes ------------------------------------------------------------------------------------------------------


def test_a_crash_loses_nothing_that_was_answered_and_the_tasks_run_on(house: Kit) -> None:
    part = house.image("job", minutes=61)
    task_definition("job")
    arn = start(machine("job", Run=job("job")))
    url = queue("jobs")
    for n in range(5):
        boto3.client("sqs").send_message(QueueUrl=url, MessageBody=str(n))
        house.crash()
        house.advance(minutes=10)
    house.advance(minutes=11)
    house.execution(arn).assert_succeeded()
    assert house.queue("jobs").bodies == [0, 1, 2, 3, 4]
    assert (len(part.runs), house.lives) == (1, 6), "the task was never started again"


def test_a_node_that_dies_at_a_commit_comes_back_while_its_client_asks_again(house: Kit) -> None:
    arn = machine("twice", W={"Type": "Wait", "Seconds": 1})
    house.crash(after=1)
    one = start(arn, name="only-once")
    assert house.lives == 2
    house.advance(seconds=1)
    house.execution(one).assert_succeeded()
    assert len(house.executions("twice")) == 1, "asked twice, started once: by its name"


def test_a_crash_at_every_commit_of_a_walk(house_factory: Callable[..., Kit]) -> None:
    """The same walk, and the node dies at its first, second, third ... commit: it ends the same way."""
    at = 1
    while True:
        house = house_factory()
        part = house.image("job", seconds=5)
        ecs, sfn = house.client("ecs"), house.client("stepfunctions")
        ecs.register_task_definition(family="job", containerDefinitions=[{"name": "main", "image": "job", "memory": 8}])
        states = {"Run": job("job", Next="W"), "W": {"Type": "Wait", "Seconds": 5, "End": True}}
        definition = json.dumps({"StartAt": "Run", "States": states})
        arn = sfn.create_state_machine(name="walk", definition=definition, roleArn="arn:aws:iam::000000000000:role/r")
        house.crash(after=at)
        one = sfn.start_execution(stateMachineArn=arn["stateMachineArn"], name="one")["executionArn"]
        house.advance(seconds=10)
        house.execution(one).assert_succeeded({})
        assert len(part.runs) == 1
        if house.lives == 1:
            house.crash(after=0)
            break
        at += 1
    assert at > 5, "there were that many commits to die at"


def test_a_crash_from_inside_a_task(house: Kit) -> None:
    url = queue("results")

    def work(_: Run) -> None:
        house.crash()
        boto3.client("sqs").send_message(QueueUrl=url, MessageBody="done")

    house.image("job", minutes=1, effect=work)
    task_definition("job")
    arn = start(machine("job", Run=job("job")))
    house.advance(minutes=1)
    house.execution(arn).assert_succeeded()
    assert (house.queue("results").bodies, house.lives) == (["done"], 2)


@pytest.mark.tasuki(real_tasks=True)
def test_a_real_program_outlives_the_node(house: Kit, tmp_path: Any) -> None:
    go = tmp_path / "go"
    house.image("slow", command=["sh", "-c", "while [ ! -e go ]; do sleep 0.02; done; echo went"], folder=tmp_path)
    task_definition("slow")
    boto3.client("ecs").run_task(taskDefinition="slow")
    house.crash()
    go.touch()
    house.settle()
    [task] = house.tasks()
    assert (task.exit_code, task.output, house.lives) == (0, "went\n", 2)


# -- the same again -----------------------------------------------------------------------------------------------


def played(house: Kit) -> str:
    """A walk through all rooms; answer everything that can be seen of it."""
    url = queue("jobs")
    house.image(
        "job", minutes=3, effect=lambda run: boto3.client("sqs").send_message(QueueUrl=url, MessageBody=run.task)
    )
    house.image("bad", lambda run: run.number % 2)
    for family in ("job", "bad"):
        task_definition(family)
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 3, "JitterStrategy": "FULL"}]
    branches = [{"StartAt": one, "States": {one: job(one, Retry=retry, End=True)}} for one in ("job", "bad")]
    arn = machine(
        "all",
        Uuid={"Type": "Pass", "Parameters": {"id.$": "States.UUID()"}},
        All={"Type": "Parallel", "Branches": branches},
    )
    start(arn)
    house.advance(hours=1)
    house.crash()
    start(arn, name="named")
    house.advance(hours=1)
    looks = [house.executions("all"), house.tasks(), house.queue("jobs"), house.handovers()]
    histories = [one.history for one in house.executions("all")]
    received = boto3.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    page = boto3.client("stepfunctions").list_executions(stateMachineArn=arn, maxResults=1)
    return f"{looks}\n{histories}\n{received}\n{page['nextToken']}".replace(house.url, "URL")


def test_the_same_seed_gives_the_same_ids_and_histories_byte_for_byte(  # P10
    house_factory: Callable[..., Kit], monkeypatch: pytest.MonkeyPatch
) -> None:
    def one(seed: int) -> str:
        house = house_factory(seed=seed, start=START)
        for name, value in house.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
        return played(house)

    first = one(7)
    assert "TaskStateExited" in first
    assert first == one(7)
    assert first != one(8)


PLAY = """
import os, sys
from tasuki.testing import Kit
from tests.kit.test_kit import played
with Kit(seed=7) as house:
    os.environ |= house.environment
    sys.stdout.write(played(house))
"""


def test_another_process_plays_the_same() -> None:  # P10: whatever order its sets have
    def said(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", PLAY], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = said("1")
    assert "TaskStateExited" in first
    assert said("2") == first


def test_a_year_of_an_hourly_schedule(house: Kit) -> None:
    queue("ticks", MessageRetentionPeriod=1_209_600)
    target = {"Arn": house.queue("ticks").arn, "RoleArn": ROLE, "Input": "<aws.scheduler.scheduled-time>"}
    boto3.client("scheduler").create_schedule(
        Name="hourly", ScheduleExpression="cron(0 * * * ? *)", FlexibleTimeWindow={"Mode": "OFF"}, Target=target
    )
    house.advance(days=365)
    last = [house.now - timedelta(hours=n) for n in reversed(range(14 * 24))]
    assert house.queue("ticks").bodies == [f"{one:%Y-%m-%dT%H:%M:%SZ}" for one in last]


def test_fifty_waits_of_weeks_take_no_time(house: Kit) -> None:
    arn = machine("year", W={"Type": "Wait", "SecondsPath": "$.s"})
    for n in range(50):
        start(arn, {"s": (n + 1) * 7 * 86_400})
    house.advance(days=366)
    assert {one.status for one in house.executions("year")} == {"SUCCEEDED"}
