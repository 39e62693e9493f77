"""A cluster as whoever delivers sees it."""

from typing import Any

import pytest

from tasuki.services.switchboard import PAYLOAD, Caller
from tasuki.services.tasks.errors import ClientException, ClusterNotFoundException, InvalidParameterException
from tasuki.services.tasks.target import NoMemory, TooManyTasks
from tasuki.values.errors import DomainError
from tests.services.tasks.stage import Stage

CLUSTER = "arn:aws:ecs:us-east-1:000000000000:cluster/default"


def deliver(stage: Stage, arn: str = CLUSTER, once: str = "once", **parameters: Any) -> str:
    target = stage.house.switchboard.targets["ecs"]
    caller = Caller("000000000000", "us-east-1", once, "Root=1-0-0", origin="arn:aws:scheduler:::schedule/default/s")
    return stage.house.unit(lambda tx: target.deliver(tx, arn, '{"ignored": 1}', None, caller, parameters=parameters))


def check(stage: Stage, arn: str = CLUSTER, **parameters: Any) -> str | None:
    return stage.house.look(lambda tx: stage.house.switchboard.targets["ecs"].check(tx, arn, parameters))


def described(stage: Stage, task: str) -> dict[str, Any]:
    found: dict[str, Any] = stage.house.call("ecs", "DescribeTasks", tasks=[task], include=["TAGS"])["tasks"][0]
    return found


def count(stage: Stage) -> int:
    return len(stage.house.call("ecs", "ListTasks")["taskArns"])


def test_a_delivery_runs_the_task(stage: Stage) -> None:
    stage.define("quick")
    task = deliver(
        stage,
        TaskDefinition="quick",
        LaunchType="FARGATE",
        Group="nightly",
        Tags=[{"Key": "a", "Value": "b"}],
        Overrides={"ContainerOverrides": [{"Name": "main", "Environment": [{"Name": "D", "Value": "2026-01-01"}]}]},
    )
    shown = described(stage, task)
    assert (shown["launchType"], shown["group"], shown["tags"]) == ("FARGATE", "nightly", [{"key": "a", "value": "b"}])
    environment = shown["overrides"]["containerOverrides"][0]["environment"]
    assert environment == [{"name": "D", "value": "2026-01-01"}]
    stage.house.drain()
    assert described(stage, task)["lastStatus"] in {"RUNNING", "STOPPED"}


def test_names_may_be_written_as_other_apis_write_them(stage: Stage) -> None:
    stage.define("quick")
    network = {"awsvpcConfiguration": {"Subnets": ["subnet-1"], "AssignPublicIp": "ENABLED"}}
    overrides = {"containerOverrides": [{"name": "main", "command": ["x"]}]}
    task = deliver(stage, TaskDefinition="quick", NetworkConfiguration=network, Overrides=overrides)
    assert described(stage, task)["overrides"]["containerOverrides"][0]["command"] == ["x"]


def test_one_delivery_runs_one_task(stage: Stage) -> None:
    stage.define("hour")
    first = deliver(stage, TaskDefinition="hour")
    assert deliver(stage, TaskDefinition="hour") == first
    assert deliver(stage, once="another", TaskDefinition="hour") != first
    assert count(stage) == 2


def test_what_finds_no_memory_is_refused_as_a_whole(stage: Stage) -> None:
    stage.define("hour", memory=3000)
    with pytest.raises(NoMemory, match="3000 MiB") as refused:
        deliver(stage, TaskDefinition="hour", Count=2)
    assert refused.value.code == "RESOURCE:MEMORY"
    assert count(stage) == 0, "the caller's unit is undone"


def test_above_the_quota_it_is_refused() -> None:
    stage = Stage(running_tasks=1)
    try:
        stage.define("hour")
        deliver(stage, TaskDefinition="hour")
        with pytest.raises(TooManyTasks):
            deliver(stage, once="two", TaskDefinition="hour")
    finally:
        stage.house.close()


@pytest.mark.parametrize(
    ("arn", "parameters", "error"),
    [
        (CLUSTER, {}, InvalidParameterException),
        (CLUSTER, {"TaskDefinition": "nobody"}, ClientException),
        (CLUSTER, {"TaskDefinition": "quick", "Count": 11}, InvalidParameterException),
        (CLUSTER, {"TaskDefinition": "quick", "Colour": "red"}, InvalidParameterException),
        (CLUSTER.replace("default", "none"), {"TaskDefinition": "quick"}, ClusterNotFoundException),
        ("arn:aws:ecs:us-east-1:000000000000:task/x", {"TaskDefinition": "quick"}, InvalidParameterException),
    ],
)
def test_what_makes_no_sense_is_refused_and_check_says_why(
    stage: Stage, arn: str, parameters: dict[str, Any], error: type[DomainError]
) -> None:
    stage.define("quick")
    with pytest.raises(error):
        deliver(stage, arn, **parameters)
    assert count(stage) == 0
    if parameters.get("Count") != 11:  # RunTask's own business
        assert check(stage, arn, **parameters)


def test_check_takes_what_deliver_takes(stage: Stage) -> None:
    stage.define("quick")
    assert check(stage, TaskDefinition="quick") is None
    assert check(stage, TaskDefinition="quick", PropagateTags="TASK_DEFINITION", Count=2) is None


def test_an_image_without_a_mapping_is_a_task_that_stops(stage: Stage) -> None:
    stage.define("unmapped")
    task = deliver(stage, TaskDefinition="unmapped")
    stage.house.drain()
    shown = described(stage, task)
    assert (shown["lastStatus"], shown["stopCode"]) == ("STOPPED", "TaskFailedToStart")


def test_the_payload_may_be_the_overrides(stage: Stage) -> None:
    stage.define("quick")
    target = stage.house.switchboard.targets["ecs"]
    caller = Caller("000000000000", "us-east-1", "once", "Root=1-0-0")
    parameters = {"TaskDefinition": "quick", "Overrides": PAYLOAD}
    assert check(stage, **parameters) is None
    payload = '{"containerOverrides": [{"name": "main", "command": ["--date", "2026-01-01"]}]}'
    task = stage.house.unit(lambda tx: target.deliver(tx, CLUSTER, payload, None, caller, parameters=parameters))
    assert described(stage, task)["overrides"]["containerOverrides"][0]["command"] == ["--date", "2026-01-01"]
    with pytest.raises(InvalidParameterException):
        stage.house.unit(lambda tx: target.deliver(tx, CLUSTER, "no JSON", None, caller, parameters=parameters))
