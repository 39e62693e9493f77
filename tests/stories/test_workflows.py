"""What a machine promises about a job: order, completion, errors, back-off, quotas, and what it hands to its tasks."""

import ast
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from dispatch import stage

from tasuki.testing.scripted import Script
from tests.stories.town import Town, chain, environment, job, tell

ENGINES = Path(stage.__file__).parent / "engines"
QUICK = Script.lasting(minutes=10)


def names(town: Town, execution: str, kind: str) -> list[str]:
    """The states that were entered or exited, in order."""
    details = f"state{kind}EventDetails"
    return [event[details]["name"] for event in town.events(execution) if details in event]


def test_steps_run_in_their_order_and_each_begins_when_the_one_before_has_ended(tmp_path: Path) -> None:
    # S0-06, S0-11 (fetch, then process), S0-14 (and the data is on the queue), S0-21
    scripts = {"fetch": QUICK, "process": Script.lasting(minutes=50)}
    with Town(tmp_path, scripts) as town:
        results = town.queue("results")
        machine = town.machine(
            chain(Fetch=job("fetch"), Process=job("process"), Tell=tell(results, {"job.$": "$.job"}))
        )
        execution = town.start(machine, {"job": "j1"})
        began = town.house.now
        town.house.advance(minutes=9)
        assert (town.started, names(town, execution, "Entered")) == (["fetch"], ["Fetch"])
        town.house.advance(minutes=1)
        assert (town.started, names(town, execution, "Entered")) == (["fetch", "process"], ["Fetch", "Process"])
        fetched, processing = town.tasks("STOPPED")[0], town.tasks()[0]
        assert processing["startedAt"] >= fetched["executionStoppedAt"] == began + 10 * 60_000
        town.house.advance(minutes=49)
        assert town.execution(execution)["status"] == "RUNNING"
        assert town.take(results) == []
        town.house.advance(minutes=1)
        assert town.execution(execution)["status"] == "SUCCEEDED"
        assert names(town, execution, "Exited") == ["Fetch", "Process", "Tell"]
        assert town.take(results) == [{"job": "j1"}]


@pytest.mark.parametrize("kind", ["Parallel", "Map"])
def test_an_execution_ends_when_the_slowest_of_its_tasks_has(tmp_path: Path, kind: str) -> None:  # S0-21
    scripts = {"short": QUICK, "long": Script.lasting(minutes=60)}
    blocks = [{"StartAt": name, "States": {name: job(name, End=True)}} for name in scripts]
    dynamic = {"StartAt": "Run", "States": {"Run": job("$", End=True)}}
    wide: dict[str, Any] = {"Type": kind}
    wide |= {"Branches": blocks} if kind == "Parallel" else {"ItemProcessor": dynamic}
    with Town(tmp_path, scripts) as town:
        execution = town.start(town.machine(chain(All=wide)), list(scripts))
        town.house.advance(minutes=59)
        assert [task["containers"][0]["exitCode"] for task in town.tasks("STOPPED")] == [0]
        assert town.execution(execution)["status"] == "RUNNING"
        town.house.advance(minutes=1)
        assert town.execution(execution)["status"] == "SUCCEEDED"


def test_a_failing_job_is_retried_with_growing_pauses_and_then_caught(tmp_path: Path) -> None:  # S0-19, S0-20, S1-25
    retry = {"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 60, "BackoffRate": 2, "MaxAttempts": 4}
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "Tell"}]
    with Town(tmp_path, {"broken": Script.lasting(exit_code=3, minutes=1)}) as town:
        failures = town.queue("failures")
        states = chain(
            Run=job("broken", Retry=[{**retry, "MaxDelaySeconds": 200}], Catch=catch, Next="Done"),
            Tell=tell(failures, {"job.$": "$.job", "error.$": "$.failure.Error", "cause.$": "$.failure.Cause"}),
            Done={"Type": "Succeed"},
        )
        began = town.house.now
        execution = town.start(town.machine(states), {"job": "j1"})
        town.house.advance(hours=1)
        starts = [(task["startedAt"] - began) // 1000 for task in town.tasks("STOPPED")]
        pauses = [after - before - 60 for before, after in pairwise(starts)]
        assert pauses == [60, 120, 200, 200]
        [told] = town.take(failures)
        assert (told["job"], told["error"]) == ("j1", "States.TaskFailed")
        assert json.loads(told["cause"])["Containers"][0]["ExitCode"] == 3
        assert town.execution(execution)["status"] == "SUCCEEDED"


def test_a_job_that_fails_at_first_is_done_by_the_machines_retry(tmp_path: Path) -> None:  # S1-43
    scripts = {"routing-v2": Script()}
    scripts["routing-v1"] = Script(exit_code=1, on_end=lambda _: scripts.update({"routing-v1": Script()}))
    with Town(tmp_path, scripts) as town:
        play = stage.build(town.reach)
        play.send({"jobId": "j", "version": "v1", "instance": "X-n101-k25", "seconds": 5})
        town.house.advance(minutes=1)
        assert town.started == ["routing-v1", "routing-v1"]
        assert [one["jobId"] for one in town.take(play.results_url)] == ["j"]
        assert town.take(play.failures_url) == []


def test_the_engines_hold_no_error_handling_of_their_own() -> None:  # S1-43
    sources = [path for version in ("v1", "v2") for path in sorted((ENGINES / version).glob("*.py"))]
    assert len(sources) >= 4
    for source in sources:
        tree = ast.parse(source.read_text())
        handlers = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Try | ast.TryStar)]
        assert not handlers, f"{source}: lines {handlers}; errors and retries are the machine's"


def test_over_a_quota_jobs_wait_by_the_machines_retry_and_none_is_lost(tmp_path: Path) -> None:  # S1-27
    room = {"ErrorEquals": ["AmazonECS.Unknown"], "IntervalSeconds": 30, "BackoffRate": 1.5, "MaxAttempts": 100}
    with Town(tmp_path, {"job": QUICK}, running_tasks=3) as town:
        jobs, results = town.queue("jobs"), town.queue("results")
        run = job("job", Retry=[{**room, "MaxDelaySeconds": 120}])
        machine = town.machine(chain(Run=run, Tell=tell(results, {"n.$": "$[0].body"})))
        town.pipe(jobs, machine)
        town.send(jobs, *range(10))
        most = 0
        for _ in range(60):
            most = max(most, len(town.tasks()))
            town.house.advance(minutes=1)
        assert most == 3, "as many as the quota allows, and never more"
        assert sorted(int(one["n"]) for one in town.take(results)) == list(range(10))
        assert town.statuses(machine) == ["SUCCEEDED"] * 10
        assert len(town.started) == 10


def test_a_throttled_pipe_holds_back_and_loses_nothing(tmp_path: Path) -> None:  # S1-27
    with Town(tmp_path, {"job": QUICK}, open_executions=2) as town:
        jobs, results = town.queue("jobs"), town.queue("results")
        machine = town.machine(chain(Run=job("job"), Tell=tell(results, {"n.$": "$[0].body"})))
        town.pipe(jobs, machine)
        town.send(jobs, *range(7))
        waiting, held = town.counts(jobs)
        assert (waiting + held, len(town.started)) == (5, 2)
        assert "ExecutionLimitExceeded" in town.pipes("DescribePipe", Name="p")["StateReason"]
        town.house.advance(hours=3)
        assert town.counts(jobs) == (0, 0)
        assert sorted(int(one["n"]) for one in town.take(results)) == list(range(7))
        assert len(town.started) == 7, "each exactly once"


def test_the_pipe_has_done_its_part_when_the_execution_has_started(tmp_path: Path) -> None:  # S1-40
    with Town(tmp_path, {"broken": Script.lasting(exit_code=1, minutes=10)}) as town:
        dead = town.queue("dead")
        redrive = {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead", "maxReceiveCount": 2}
        jobs = town.queue("jobs", RedrivePolicy=json.dumps(redrive))
        machine = town.machine(chain(Run=job("broken")))
        town.pipe(jobs, machine)
        town.send(jobs, {"job": 1})
        assert town.statuses(machine) == ["RUNNING"]
        assert town.counts(jobs) == (0, 0), "deleted with the start, long before the end"
        town.house.advance(hours=1)
        assert town.statuses(machine) == ["FAILED"]
        assert (town.counts(jobs), town.counts(dead), len(town.started)) == ((0, 0), (0, 0), 1)


# -- what tasks are given (the scheduled-import article's needs that concern machines and tasks) ----------------------


def test_two_tasks_are_given_the_same_date_and_the_executions_name(tmp_path: Path) -> None:  # S2-22, S2-62
    given = {"TARGET_DATE.$": "$.scheduledDate", "RUN.$": "$$.Execution.Name"}
    with Town(tmp_path, {"inference": QUICK, "import": QUICK}) as town:
        machine = town.machine(chain(Infer=job("inference", given), Import=job("import", given)))
        started = town.states(
            "StartExecution", stateMachineArn=machine, name="run-7", input='{"scheduledDate":"2026-10-10"}'
        )
        town.house.advance(minutes=20)
        assert town.execution(started["executionArn"])["status"] == "SUCCEEDED"
        assert town.started == ["inference", "import"]
        seen = [(one["TARGET_DATE"], one["RUN"]) for one in map(environment, town.runner.started)]
        assert seen == [("2026-10-10", "run-7")] * 2


def test_an_environment_by_path_needs_what_it_names(tmp_path: Path) -> None:  # S2-25
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Never"}]
    again = [{"ErrorEquals": ["States.ALL"]}]
    run = job("import", {"TARGET_DATE.$": "$.scheduledDate"}, Retry=again, Catch=catch, End=True)
    with Town(tmp_path, {"import": QUICK}) as town:
        machine = town.machine(chain(Run=run, Never={"Type": "Succeed"}))
        execution = town.start(machine, {"scheduledTime": "2026-10-09T16:00:00Z"})
        town.house.advance(hours=1)
        described = town.execution(execution)
        assert (described["status"], described["error"]) == ("FAILED", "States.Runtime")
        assert "Value.$" in described["cause"]
        assert "$.scheduledDate" in described["cause"]
        assert town.started == [], "nothing was started, and States.Runtime is neither retried nor caught"
        town.start(machine, {"scheduledDate": ""})
        assert environment(town.runner.started[0])["TARGET_DATE"] == ""
