"""Machines with the real tasks room and a scripted runner: the whole way of `ecs:runTask.sync`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasuki.runtime.attendant import Attendant
from tasuki.services import tasks
from tasuki.testing import House, ManualClock
from tasuki.testing.scripted import Script, ScriptedRunner
from tasuki.values.config import Image
from tests.services.machines.stubs import Play, task

SCRIPTS = {
    "hour": Script.lasting(minutes=61),
    "three": Script.lasting(exit_code=3, seconds=5),
    "oom": Script(duration_ms=1000, out_of_memory=True),
    "forever": Script(forever=True),
}


class World(Play):
    def __init__(self) -> None:
        clock = ManualClock()
        self.runner = ScriptedRunner(clock, SCRIPTS)

        def attendant(house: House) -> Attendant:
            return Attendant(
                store=house.store,
                runner=self.runner,
                bell=house.bell,
                config=house.config,
                switchboard=house.switchboard,
                clock=house.clock,
            )

        images = {name: Image(name, Path(), ("true",)) for name in SCRIPTS}
        super().__init__(rooms=(tasks.room,), clock=clock, duties=(attendant,), images=images)
        for name in SCRIPTS:
            container = {"name": "c", "image": name, "memory": 600}
            self.house.call("ecs", "RegisterTaskDefinition", family=name, containerDefinitions=[container])

    def run_task(self, image: str, resource: str = "ecs:runTask.sync", **more: Any) -> str:
        definition = task(resource, {"TaskDefinition.$": "$.image"}, **more)
        arn = self.create(definition)
        return self.start(arn, {"image": image})


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.house.close()


def test_a_job_of_an_hour_ends_well(world: World) -> None:
    execution = world.run_task("hour")
    world.house.advance(minutes=60)
    assert world.describe(execution)["status"] == "RUNNING"
    world.house.advance(minutes=1)
    output = world.output(execution)
    assert output["LastStatus"] == "STOPPED"
    assert output["StartedBy"] == "AWS Step Functions"
    assert [container["ExitCode"] for container in output["Containers"]] == [0]
    assert world.types(execution)[2:7] == [
        "TaskScheduled",
        "TaskStarted",
        "TaskSubmitted",
        "TaskSucceeded",
        "TaskStateExited",
    ]
    assert len(world.runner.started) == 1


@pytest.mark.parametrize(("image", "code"), [("three", 3), ("oom", 137)])
def test_a_job_that_fails_is_a_failed_task(world: World, image: str, code: int) -> None:
    execution = world.run_task(image)
    world.house.advance(minutes=1)
    described = world.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", "States.TaskFailed")
    assert json.loads(described["cause"])["Containers"][0]["ExitCode"] == code


def test_retries_run_the_job_again(world: World) -> None:
    execution = world.run_task("three", Retry=[{"ErrorEquals": ["States.TaskFailed"], "MaxAttempts": 2}])
    world.house.advance(minutes=5)
    assert world.describe(execution)["status"] == "FAILED"
    assert len(world.runner.started) == 3


def test_stopping_the_execution_stops_the_job(world: World) -> None:
    execution = world.run_task("forever")
    world.house.drain()
    world.call("StopExecution", executionArn=execution)
    world.house.advance(minutes=1)
    listed = world.house.call("ecs", "ListTasks", desiredStatus="STOPPED")["taskArns"]
    assert len(listed) == 1
    assert world.house.call("ecs", "DescribeTasks", tasks=listed)["tasks"][0]["lastStatus"] == "STOPPED"
    assert world.describe(execution)["status"] == "ABORTED"


def test_a_timeout_stops_the_job(world: World) -> None:
    execution = world.run_task("forever", TimeoutSeconds=30)
    world.house.advance(minutes=1)
    assert world.describe(execution)["error"] == "States.Timeout"
    assert world.house.call("ecs", "ListTasks")["taskArns"] == []


def test_a_job_waits_for_room_by_its_own_retry(world: World) -> None:
    """1024 MiB hold one task of 600."""
    world.run_task("hour")
    retry = [{"ErrorEquals": ["AmazonECS.Unknown"], "IntervalSeconds": 600, "MaxAttempts": 20, "BackoffRate": 1}]
    second = world.create(task("ecs:runTask.sync", {"TaskDefinition": "hour"}, Retry=retry), "second")
    execution = world.start(second)
    failed = [event for event in world.events(execution) if event["type"] == "TaskSubmitFailed"]
    assert "RESOURCE:MEMORY" in failed[0]["taskSubmitFailedEventDetails"]["cause"]
    world.house.advance(minutes=200)
    assert world.describe(execution)["status"] == "SUCCEEDED"
    assert len(world.runner.started) == 2


def test_parameters_of_the_wrong_type_fail_before_anything_is_called(world: World) -> None:
    execution = world.run_task("hour", resource="ecs:runTask.sync")
    world.call("StopExecution", executionArn=execution)
    wrong = world.create(task("ecs:runTask.sync", {"TaskDefinition": 1}), "wrong")
    described = world.describe(world.start(wrong))
    assert described["error"] == "States.Runtime"
    assert "must be a STRING" in described["cause"]
