"""Jobs on demand: nothing while idle, each job its own task at once, the version by the job, no reserve (mission S1)."""

import json
from pathlib import Path
from typing import Any

import pytest
from dispatch import stage

from tasuki.testing.scripted import Script
from tests.stories.town import Town, chain, environment, job

HOUR = {"hour": Script.lasting(minutes=61)}
HOUR_MS = 61 * 60_000


def relay(town: Town, image: str = "hour", batch: int = 1, **more: Any) -> tuple[str, str]:
    """A queue, a pipe and a machine that runs a task per execution; answer queue and machine."""
    jobs, machine = town.queue("jobs"), town.machine(chain(Run=job(image, **more)))
    town.pipe(jobs, machine, batch=batch)
    return jobs, machine


def test_nothing_of_the_users_runs_while_idle(tmp_path: Path) -> None:  # S1-01, S1-10, S1-21
    with Town(tmp_path, HOUR) as town:
        jobs, machine = relay(town)
        for _ in range(60):
            town.house.advance(minutes=1)
            assert (town.tasks(), town.started, town.executions(machine)) == ([], [], [])
        town.send(jobs, {"job": 1})
        assert len(town.tasks()) == 1, "and yet the very next job is served at once"
        town.house.advance(hours=2)
        assert (town.tasks(), town.started) == ([], ["hour"]), "after it there is nothing again"


@pytest.mark.parametrize("jobs", [10, 100])
def test_each_job_of_a_burst_starts_at_once_whatever_its_size(tmp_path: Path, jobs: int) -> None:
    # S1-02, S1-04 (tenfold, nothing changed), S1-11, S1-18, S1-26
    with Town(tmp_path, HOUR) as town:
        queue, machine = relay(town)
        sent = town.house.now
        town.send(queue, *({"job": n} for n in range(jobs)))
        running = [task for task in town.tasks() if task["lastStatus"] == "RUNNING"]
        assert len(running) == jobs
        assert {task["startedAt"] for task in running} == {sent}
        assert town.statuses(machine) == ["RUNNING"] * jobs
        town.house.advance(minutes=61)
        assert town.statuses(machine) == ["SUCCEEDED"] * jobs
        assert len({one["executionArn"] for one in town.executions(machine)}) == jobs, "one execution each (S0-05)"
        assert len(town.started) == jobs, "one task each"


def test_memory_is_held_for_as_long_as_jobs_run_and_no_longer(tmp_path: Path) -> None:  # S1-09
    with Town(tmp_path, HOUR, memory_mib=640) as town:
        for _ in range(3):
            ran = town.ecs("RunTask", taskDefinition="hour", count=10)
            assert (len(ran["tasks"]), ran["failures"]) == (10, []), "all of the machine, each time"
            [refused] = town.ecs("RunTask", taskDefinition="hour")["failures"]
            assert refused["reason"] == "RESOURCE:MEMORY"
            town.house.advance(minutes=61)


def test_task_seconds_are_accounted_for_each_execution(tmp_path: Path) -> None:  # S1-14
    with Town(tmp_path, HOUR) as town:
        queue, machine = relay(town)
        town.send(queue, {"job": 1}, {"job": 2})
        town.house.advance(hours=12)
        spent = {one["executionArn"]: 0 for one in town.executions(machine)}
        for task in town.tasks("STOPPED"):
            origin = next(one["value"] for one in task["attributes"] if one["name"] == "origin")
            spent[origin] += task["executionStoppedAt"] - task["startedAt"]
        assert list(spent.values()) == [HOUR_MS, HOUR_MS], "of twelve hours, what was worked"


@pytest.mark.parametrize("batch", [1, 10])
def test_a_batch_is_an_array_and_a_map_runs_a_task_for_each(tmp_path: Path, batch: int) -> None:  # S1-46
    each = {"StartAt": "Run", "States": {"Run": job("hour", {"BODY.$": "$.body"}, End=True)}}
    fan_out = {"Type": "Map", "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, **each}}
    with Town(tmp_path, HOUR) as town:
        queue, machine = town.queue("jobs"), town.machine(chain(Each=fan_out))
        entries = [{"Id": str(n), "MessageBody": f"job-{n}"} for n in range(10)]
        town.sqs("SendMessageBatch", QueueUrl=queue, Entries=entries)
        town.pipe(queue, machine, batch=batch)
        town.house.drain()
        inputs = [json.loads(one["input"]) for one in town.executions(machine)]
        assert [len(records) for records in inputs] == [batch] * (10 // batch)
        town.house.advance(minutes=61)
        assert set(town.statuses(machine)) == {"SUCCEEDED"}
        bodies = sorted(environment(launch)["BODY"] for launch in town.runner.started)
        assert bodies == sorted(f"job-{n}" for n in range(10))


# -- the dispatch example's own resources, in the house -------------------------------------------------------


def engines(**scripts: Script) -> dict[str, Script]:
    return {f"routing-{version}": script for version, script in scripts.items()}


def asked(version: str | None, number: int = 1) -> dict[str, Any]:
    given = {"jobId": f"job-{version}-{number}", "instance": "X-n101-k25", "seconds": 5}
    return given if version is None else given | {"version": version}


def test_the_job_chooses_its_version_and_an_unknown_one_goes_to_the_failures(tmp_path: Path) -> None:
    # S1-05, S1-19 (Choice, and the task definition's name from the input), S1-23
    with Town(tmp_path, engines(v1=Script.lasting(minutes=5), v2=Script.lasting(minutes=40))) as town:
        play = stage.build(town.reach)
        for version in ("v1", "v2", "v9", None):
            play.send(asked(version))
        town.house.drain()
        assert sorted(town.started) == ["routing-v1", "routing-v2"]
        refused = town.take(play.failures_url)
        # executions go on side by side: who is first is nobody's promise
        assert {(one["job"].get("version"), one["error"]) for one in refused} == {
            ("v9", "UnknownVersion"),
            (None, "UnknownVersion"),
        }
        assert len(refused) == 2
        town.house.advance(minutes=5)
        assert [one["version"] for one in town.take(play.results_url)] == ["v1"]
        town.house.advance(minutes=35)
        assert [one["version"] for one in town.take(play.results_url)] == ["v2"]


def test_adding_a_version_adds_nothing_that_runs(tmp_path: Path) -> None:  # S1-06
    with Town(tmp_path, engines(v1=Script(), v2=Script(), v3=Script.lasting(minutes=1))) as town:
        play = stage.build(town.reach)
        stage.register(town.reach, "v3", "1")
        definition = json.loads(stage.machine_definition(play.results_url, play.failures_url, "1"))
        rule = {"Variable": "$.job.version", "StringEquals": "v3", "Next": "Solve"}
        definition["States"]["WhichEngine"]["Choices"].append(rule)
        town.states("UpdateStateMachine", stateMachineArn=play.machine_arn, definition=json.dumps(definition))
        town.house.advance(hours=1)
        assert town.started == []
        play.send(asked("v3"))
        town.house.advance(minutes=1)
        assert [one["version"] for one in town.take(play.results_url)] == ["v3"]


def test_the_examples_pipe_is_set_as_long_jobs_need_it(tmp_path: Path) -> None:  # S1-46
    with Town(tmp_path, engines(v1=Script(), v2=Script())) as town:
        play = stage.build(town.reach)
        pipe = town.pipes("DescribePipe", Name=play.pipe)
        assert pipe["SourceParameters"]["SqsQueueParameters"]["BatchSize"] == 1
        invocation = pipe["TargetParameters"]["StepFunctionStateMachineParameters"]["InvocationType"]
        assert invocation == "FIRE_AND_FORGET"
        # What can't be handed over (here: more than an execution takes) ends in the dead-letter queue, and is not lost.
        play.send(asked("v1") | {"remark": "x" * 300_000})
        play.send(asked("v2"))
        town.house.advance(minutes=30)
        assert [one["version"] for one in town.take(play.results_url)] == ["v2"]
        assert town.counts(play.jobs_url) == (0, 0)
        assert [one["version"] for one in town.take(f"{play.jobs_url.removesuffix('jobs')}dead")] == ["v1"]


def test_a_job_sent_twice_is_worked_once(tmp_path: Path) -> None:  # S1-47
    with Town(tmp_path, engines(v1=Script.lasting(minutes=5), v2=Script())) as town:
        play = stage.build(town.reach)
        play.send(asked("v1"))
        play.send(asked("v1"))
        town.house.advance(minutes=5)
        play.send(asked("v1"))
        town.house.advance(minutes=10)
        assert town.started == ["routing-v1"]
        assert len(town.take(play.results_url)) == 1
