"""`ecs:runTask` as a machine calls it: shapes as recorded, watching, stopping, once and no more (ecs.md sections 5, 9)."""

from typing import Any

import pytest

from tasuki.services.tasks.errors import ClientException
from tests.services.tasks.stage import Stage


def one_end(stage: Stage) -> Any:
    (told,) = stage.watcher.told
    assert told[0] == "7"
    return told[1]


def test_the_answer_is_run_tasks_in_pascal_case(stage: Stage) -> None:
    container = {"name": "main", "image": "quick", "essential": True}
    stage.call(
        "RegisterTaskDefinition",
        family="f",
        containerDefinitions=[container],
        requiresCompatibilities=["FARGATE"],
        networkMode="awsvpc",
        cpu="256",
        memory="512",
    )
    network = {"AwsvpcConfiguration": {"Subnets": ["subnet-1"], "SecurityGroups": ["sg-1"]}}
    parameters = {
        "TaskDefinition": "f",
        "LaunchType": "FARGATE",
        "NetworkConfiguration": network,
        "PlatformVersion": "1.4.0",
    }
    answer = stage.sync(parameters, watcher=None).output
    (task,) = answer["Tasks"]
    assert answer["Failures"] == []
    assert list(task) == [  # recorded: ecs_task_service/test_run_task
        "Attachments",
        "Attributes",
        "AvailabilityZone",
        "ClusterArn",
        "Containers",
        "Cpu",
        "CreatedAt",
        "DesiredStatus",
        "EnableExecuteCommand",
        "EphemeralStorage",
        "Group",
        "InferenceAccelerators",
        "LastStatus",
        "LaunchType",
        "Memory",
        "Overrides",
        "PlatformFamily",
        "PlatformVersion",
        "Tags",
        "TaskArn",
        "TaskDefinitionArn",
        "Version",
    ]
    assert set(task["Containers"][0]) == {
        "ContainerArn",
        "Cpu",
        "GpuIds",
        "Image",
        "LastStatus",
        "ManagedAgents",
        "Name",
        "NetworkBindings",
        "NetworkInterfaces",
        "TaskArn",
    }
    assert (task["Cpu"], task["Memory"], task["Containers"][0]["Cpu"]) == ("256", "512", "0")
    assert task["Attachments"][0]["Status"] == "PRECREATED"
    assert task["Overrides"] == {
        "ContainerOverrides": [
            {"Command": [], "Environment": [], "EnvironmentFiles": [], "Name": "main", "ResourceRequirements": []}
        ],
        "InferenceAcceleratorOverrides": [],
    }
    assert {"Name": "trace", "Value": "Root=1-x"} in task["Attributes"]
    stage.house.drain()
    final = stage.task(task["TaskArn"])
    assert (final["attachments"][0]["type"], final["attachments"][0]["status"]) == ("eni", "DELETED")
    assert "platformFamily" not in final


def test_sync_is_told_of_the_end_with_the_one_task(stage: Stage) -> None:
    stage.define("hour")
    stage.sync({"TaskDefinition": "hour", "StartedBy": "AWS Step Functions"})
    stage.house.advance(minutes=60)
    assert stage.watcher.told == []
    stage.house.advance(minutes=1)
    ending = one_end(stage)
    assert ending.succeeded
    assert ending.output["LastStatus"] == "STOPPED"
    assert ending.output["Containers"][0]["ExitCode"] == 0
    assert ending.output["StartedBy"] == "AWS Step Functions"
    assert isinstance(ending.output["StoppedAt"], int)
    assert set(ending.output["Containers"][0]) >= {
        "RuntimeId",
        "ImageDigest",
        "ExitCode",
    }  # recorded: test_run_task_sync
    assert ending.output["Version"] == 5


@pytest.mark.parametrize(("image", "code"), [("broken", 3), ("hungry", 137)])
def test_an_exit_that_is_not_zero_fails_with_the_task_as_cause(stage: Stage, image: str, code: int) -> None:
    stage.define(image)
    stage.sync({"TaskDefinition": image})
    stage.house.advance(minutes=1)
    ending = one_end(stage)
    assert (ending.succeeded, ending.error) == (False, "States.TaskFailed")
    assert ending.output["Containers"][0]["ExitCode"] == code


def test_an_unmapped_image_is_accepted_and_stops_as_one_that_cannot_be_pulled(stage: Stage) -> None:
    stage.define("unknown")
    assert stage.sync({"TaskDefinition": "unknown"}).output["Tasks"][0]["LastStatus"] == "PROVISIONING"
    stage.house.drain()
    output = one_end(stage).output
    assert (output["StopCode"], output["Version"]) == ("TaskFailedToStart", 4)  # recorded: Version 4
    assert output["StoppedReason"].startswith("CannotPullContainerError: ")
    assert '[images."unknown"]' in output["StoppedReason"]
    assert "ExitCode" not in output["Containers"][0]
    assert output["Containers"][0]["LastStatus"] == "STOPPED"
    assert "PullStartedAt" not in output
    assert output["Connectivity"] == "CONNECTED"
    assert "RuntimeId" in output["Containers"][0]
    assert "StartedAt" not in output


def test_the_same_attempt_twice_starts_once_and_another_attempt_again(stage: Stage) -> None:
    stage.define("hour")
    first = stage.sync({"TaskDefinition": "hour"}, "e/1/1")
    assert stage.sync({"TaskDefinition": "hour"}, "e/1/1").handle == first.handle
    assert stage.sync({"TaskDefinition": "hour"}, "e/1/2").handle != first.handle
    stage.house.drain()
    assert len(stage.runner.started) == 2


def test_pf25_names_are_pascal_case_at_every_depth(stage: Stage) -> None:
    stage.define()
    environment = [{"Name": "FOO", "Value": "bar"}]
    stage.sync(
        {"TaskDefinition": "quick", "Overrides": {"ContainerOverrides": [{"Name": "main", "Environment": environment}]}}
    )
    stage.house.drain()
    assert stage.runner.started[0].containers[0].environment["FOO"] == "bar"


def test_what_does_not_fit_is_in_failures(stage: Stage) -> None:
    stage.define("quick", memory=5000)
    answer = stage.sync({"TaskDefinition": "quick"})
    assert answer.handle is None
    assert answer.output["Tasks"] == []
    assert answer.output["Failures"][0]["Reason"] == "RESOURCE:MEMORY"
    with pytest.raises(ClientException):
        stage.sync({"TaskDefinition": "nobody"}, "e/1/2")


def test_cancel_stops_the_task(stage: Stage) -> None:
    stage.define("forever")
    answer = stage.sync({"TaskDefinition": "forever"})
    stage.house.drain()
    integration = stage.house.switchboard.integrations["ecs:runTask"]
    assert answer.handle is not None
    stage.house.unit(lambda tx: integration.cancel(tx, answer.handle or "", "States.Timeout"))
    stage.house.advance(seconds=10)
    stopped = stage.task(answer.handle)
    assert (stopped["lastStatus"], stopped["stopCode"], stopped["stoppedReason"]) == (
        "STOPPED",
        "UserInitiated",
        "States.Timeout",
    )


def test_a_user_who_stops_the_task_fails_the_state(stage: Stage) -> None:
    stage.define("forever")
    answer = stage.sync({"TaskDefinition": "forever"})
    stage.house.drain()
    stage.call("StopTask", task=answer.handle)
    stage.house.advance(seconds=10)
    ending = one_end(stage)
    assert not ending.succeeded
    assert ending.output["StopCode"] == "UserInitiated"


def test_several_tasks_are_waited_for_together(stage: Stage) -> None:
    stage.define("hour")
    answer = stage.sync({"TaskDefinition": "hour", "Count": 3})
    stage.house.drain()
    assert answer.handle is not None
    stage.runner.lose(stage.runner.started[0].key)
    stage.house.drain()
    assert stage.watcher.told == []
    stage.house.advance(minutes=61)
    ending = one_end(stage)
    assert not ending.succeeded
    assert [task["StopCode"] for task in ending.output["Tasks"]] == [
        "InfrastructureHealth",
        "EssentialContainerExited",
        "EssentialContainerExited",
    ]


def test_where_a_task_comes_from_can_be_followed(stage: Stage) -> None:
    stage.define("hour")
    arn = stage.sync({"TaskDefinition": "hour"}).handle
    assert arn is not None
    stage.house.drain()
    assert {one["name"]: one["value"] for one in stage.task(arn)["attributes"]} == {
        "ecs.cpu-architecture": "x86_64",
        "trace": "Root=1-x",
        "origin": "arn:aws:states:::execution:m:e",
    }
    assert stage.runner.started[0].containers[0].environment["_X_AMZN_TRACE_ID"] == "Root=1-x"
