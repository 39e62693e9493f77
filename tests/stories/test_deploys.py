"""Long jobs and what happens around them: deploys of every kind, stops, restarts. They go on as they began (mission S1)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tasuki.testing.scripted import Script
from tests.stories.town import FIRE_AND_FORGET, ROLE, Town, chain, environment, job, tell

SCRIPTS = {"old": Script.lasting(minutes=61), "new": Script.lasting(minutes=61)}


def release(results: str, name: str) -> dict[str, Any]:
    """The machine of a release: it says which it was when the job is over."""
    said = {"release": name, "execution.$": "$$.Execution.Name"}
    return chain(Run=job("engine", {"RELEASE": name}), Tell=tell(results, said))


class Line:
    """A queue, a pipe, a machine that runs `engine`, and a results queue; one job has begun."""

    def __init__(self, folder: Path) -> None:
        self.town = Town(folder, dict(SCRIPTS))
        self.town.define("engine", "old", environment=[{"name": "REVISION", "value": "1"}])
        self.jobs, self.results = self.town.queue("jobs"), self.town.queue("results")
        self.machine = self.town.machine(release(self.results, "first"))
        self.town.pipe(self.jobs, self.machine)
        self.town.send(self.jobs, {"job": 1})
        self.town.house.advance(minutes=30)

    def update_machine(self) -> None:
        definition = json.dumps(release(self.results, "second"))
        self.town.states("UpdateStateMachine", stateMachineArn=self.machine, definition=definition)

    def register_revision(self) -> None:
        self.town.define("engine", "new", environment=[{"name": "REVISION", "value": "2"}])

    def deregister_revision(self) -> None:
        self.town.ecs("DeregisterTaskDefinition", taskDefinition="engine:1")

    def update_pipe(self) -> None:
        target = {**FIRE_AND_FORGET, "InputTemplate": '{"release": 2}'}
        self.town.pipes("UpdatePipe", Name="p", RoleArn=ROLE, TargetParameters=target)

    def stop_pipe(self) -> None:
        self.town.pipes("StopPipe", Name="p")

    def delete_pipe(self) -> None:
        self.town.pipes("DeletePipe", Name="p")

    def purge_queue(self) -> None:
        self.town.sqs("PurgeQueue", QueueUrl=self.jobs)

    def delete_queue(self) -> None:
        self.town.sqs("DeleteQueue", QueueUrl=self.jobs)

    def restart(self) -> None:
        self.town.restart(minutes=5)

    def restart_long(self) -> None:
        """The job ends while no node is up."""
        self.town.restart(minutes=120)


DURING = (
    Line.update_machine,
    Line.register_revision,
    Line.deregister_revision,
    Line.update_pipe,
    Line.stop_pipe,
    Line.delete_pipe,
    Line.purge_queue,
    Line.delete_queue,
    Line.restart,
    Line.restart_long,
)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    with made.town:
        yield made


def finished_as_it_began(line: Line) -> None:
    """One task, of the old revision; one result, of the old machine."""
    town = line.town
    assert [environment(launch)["REVISION"] for launch in town.runner.started] == ["1"]
    [task] = town.tasks("STOPPED")
    assert task["taskDefinitionArn"].endswith("/engine:1")
    assert task["executionStoppedAt"] - task["startedAt"] == 61 * 60_000
    [result] = town.take(line.results)
    assert result["release"] == "first"
    arn = line.machine.replace(":stateMachine:", ":execution:") + ":" + result["execution"]
    assert town.execution(arn)["status"] == "SUCCEEDED"


@pytest.mark.parametrize("happens", DURING, ids=lambda one: one.__name__)
def test_a_running_job_is_not_touched(line: Line, happens: Callable[[Line], None]) -> None:  # S1-07, S1-12, S1-13
    happens(line)
    line.town.house.advance(minutes=32)
    finished_as_it_began(line)


def test_everything_at_once_and_the_next_job_is_of_the_new_release(line: Line) -> None:  # S1-28
    town = line.town
    for step in (Line.update_machine, Line.register_revision, Line.update_pipe, Line.restart):
        step(line)
    town.send(line.jobs, {"job": 2})
    assert [(environment(one)["RELEASE"], environment(one)["REVISION"]) for one in town.runner.started] == [
        ("first", "1"),
        ("second", "2"),
    ]
    town.house.advance(minutes=120)
    assert [one["release"] for one in town.take(line.results)] == ["first", "second"]
    assert town.statuses(line.machine) == ["SUCCEEDED", "SUCCEEDED"]
    assert json.loads(town.executions(line.machine)[1]["input"]) == [{"release": 2}]


def test_a_job_of_more_than_an_hour_has_no_timeout_of_ours(tmp_path: Path) -> None:  # S1-08
    with Town(tmp_path, {"day": Script.lasting(hours=30)}) as town:
        machine = town.machine(chain(Run=job("day")))
        execution = town.start(machine)
        town.house.advance(hours=29)
        assert town.execution(execution)["status"] == "RUNNING"
        town.house.advance(hours=1)
        assert town.execution(execution)["status"] == "SUCCEEDED"
        assert town.started == ["day"]


def test_many_restarts_during_a_job(line: Line) -> None:  # S1-13
    for _ in range(20):
        line.town.restart(seconds=20)
        line.town.house.advance(seconds=80)
    finished_as_it_began(line)
