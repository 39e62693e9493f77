"""RunTask, its overrides and failures, and the listings (ecs.md section 3)."""

from typing import Any

import pytest

from tasuki.services.tasks.errors import (
    ClientException,
    ClusterContainsTasksException,
    ClusterNotFoundException,
    ConflictException,
    InvalidParameterException,
)
from tests.services.tasks.stage import Stage


def override(**more: Any) -> dict[str, Any]:
    return {"containerOverrides": [{"name": "main", **more}]}


def test_overrides_reach_the_command_line_the_environment_and_the_limits(stage: Stage) -> None:
    stage.define("quick", environment=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}], command=["x"])
    overrides = override(
        command=["go", "far"], environment=[{"name": "B", "value": ""}], memory=128, memoryReservation=100
    )
    ran = stage.call("RunTask", taskDefinition="quick", overrides={**overrides, "memory": "256"})
    stage.house.drain()
    (launch,) = stage.runner.started
    container = launch.containers[0]
    assert container.argv == ("run", "quick", "go", "far")
    assert (container.environment["A"], container.environment["B"]) == ("1", "")
    assert (launch.memory_mib, container.memory_mib, container.reservation_mib) == (256, 128, 100)
    assert ran["tasks"][0]["overrides"]["containerOverrides"] == overrides["containerOverrides"]


def test_the_entry_point_replaces_the_images_command(stage: Stage) -> None:
    stage.define("quick", entryPoint=["sh", "-c"], command=["echo"])
    stage.call("RunTask", taskDefinition="quick")
    stage.house.drain()
    assert stage.runner.started[0].containers[0].argv == ("sh", "-c", "echo")


def test_each_attempt_is_told_where_the_house_is_and_has_its_own_key(stage: Stage) -> None:
    for _ in range(2):
        stage.run("hour")
    first, second = (launch.containers[0].environment for launch in stage.runner.started)
    assert first["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert first["AWS_REGION"] == first["AWS_DEFAULT_REGION"] == "us-east-1"
    assert first["_X_AMZN_TRACE_ID"].startswith("Root=1-")
    assert first["AWS_ACCESS_KEY_ID"] != second["AWS_ACCESS_KEY_ID"]
    assert first["AWS_SECRET_ACCESS_KEY"] != second["AWS_SECRET_ACCESS_KEY"]
    assert first["TASUKI_TASK_ARN"].endswith(stage.runner.started[0].key.task)


def test_a_definition_cannot_point_a_task_away_from_its_house(stage: Stage) -> None:
    stage.define("quick", environment=[{"name": "AWS_ENDPOINT_URL", "value": "http://elsewhere"}])
    stage.call("RunTask", taskDefinition="quick")
    stage.house.drain()
    assert stage.runner.started[0].containers[0].environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"


def test_a_key_lives_as_long_as_its_task_and_may_do_little(stage: Stage) -> None:
    stage.run("hour")
    key = stage.runner.started[0].containers[0].environment["AWS_ACCESS_KEY_ID"]
    found = stage.house.unit(lambda tx: stage.house.switchboard.credential(tx, key))
    assert found is not None
    secret, principal = found
    assert secret == stage.runner.started[0].containers[0].environment["AWS_SECRET_ACCESS_KEY"]
    assert principal.actions is not None
    assert "sqs:SendMessage" in principal.actions
    assert "ecs:RunTask" not in principal.actions
    stage.house.advance(minutes=62)
    assert stage.house.unit(lambda tx: stage.house.switchboard.credential(tx, key)) is None


def test_pending_and_running_tasks_reserve_memory_and_others_wait_their_turn() -> None:
    stage = Stage(memory_mib=200)
    stage.define("hour", memory=90)
    answer = stage.call("RunTask", taskDefinition="hour", count=3)
    assert len(answer["tasks"]) == 2
    assert [one["reason"] for one in answer["failures"]] == ["RESOURCE:MEMORY"]
    assert "reserves 90 MiB; 0 of 200" not in answer["failures"][0]["detail"]
    stage.define("quick", memory=20)
    assert stage.call("RunTask", taskDefinition="quick")["failures"] == [], "others run"
    stage.house.advance(minutes=62)
    assert stage.call("RunTask", taskDefinition="hour", count=2)["failures"] == []
    stage.house.close()


def test_a_task_larger_than_the_machine_never_fits(stage: Stage) -> None:
    stage.define("quick", memory=5000)
    answer = stage.call("RunTask", taskDefinition="quick")
    assert (answer["tasks"], answer["failures"][0]["reason"]) == ([], "RESOURCE:MEMORY")


def test_the_reservation_is_what_counts_where_there_is_one() -> None:
    stage = Stage(memory_mib=100)
    stage.define("hour", memory=90, memoryReservation=50)
    assert stage.call("RunTask", taskDefinition="hour", count=2)["failures"] == []
    stage.house.close()


def test_the_number_of_tasks_is_bounded_by_quota() -> None:
    stage = Stage(running_tasks=1)
    stage.define("hour")
    answer = stage.call("RunTask", taskDefinition="hour", count=2)
    assert (len(answer["tasks"]), answer["failures"][0]["reason"]) == (1, "RESOURCE:CPU")
    stage.house.close()


def test_an_unmapped_image_names_the_lines_to_add(stage: Stage) -> None:
    stage.define("unknown-image")
    with pytest.raises(ClientException) as refused:
        stage.call("RunTask", taskDefinition="unknown-image")
    assert refused.value.message == (
        'The image "unknown-image" is not mapped to a folder and a command. Add to /data/tasuki.toml, and start the node again:'
        '\n\n[images."unknown-image"]\nfolder = "path/to/its/folder"\ncommand = ["python", "main.py"]\n'
    )


def test_what_else_is_refused(stage: Stage) -> None:
    stage.define()
    with pytest.raises(InvalidParameterException, match="Override for container named side is not a container"):
        stage.call("RunTask", taskDefinition="quick", overrides={"containerOverrides": [{"name": "side"}]})
    with pytest.raises(InvalidParameterException, match="count must be between 1 and 10"):
        stage.call("RunTask", taskDefinition="quick", count=11)
    with pytest.raises(ClusterNotFoundException, match=r"Cluster not found\."):
        stage.call("RunTask", taskDefinition="quick", cluster="nowhere")
    with pytest.raises(InvalidParameterException, match=r"The referenced task was not found\."):
        stage.call("StopTask", task="0" * 32)
    with pytest.raises(InvalidParameterException, match=r"taskId length should be one of \[32,36\]"):
        stage.call("StopTask", task="abc")
    with pytest.raises(InvalidParameterException, match=r"Tasks cannot be empty\."):
        stage.call("DescribeTasks", tasks=[])


def test_a_client_token_starts_once(stage: Stage) -> None:
    stage.define()
    first = stage.call("RunTask", taskDefinition="quick", clientToken="t", count=2)
    again = stage.call("RunTask", taskDefinition="quick", clientToken="t", count=2)
    assert again == first
    with pytest.raises(ConflictException) as refused:
        stage.call("RunTask", taskDefinition="quick", clientToken="t", count=1)
    assert refused.value.fields["resourceIds"] == [task["taskArn"] for task in first["tasks"]]
    with pytest.raises(InvalidParameterException, match=r"clientToken may have 64 characters; it has 65\."):
        stage.call("RunTask", taskDefinition="quick", clientToken="t" * 65)
    stage.house.drain()
    assert len(stage.runner.started) == 2


def test_listing_filters_and_pages(stage: Stage) -> None:
    arns = [stage.run("hour", startedBy=f"me-{i % 2}") for i in range(5)]
    quick = stage.run("quick")
    assert stage.call("ListTasks")["taskArns"] == arns
    assert stage.call("ListTasks", startedBy="me-1")["taskArns"] == arns[1::2]
    assert stage.call("ListTasks", family="quick", desiredStatus="STOPPED")["taskArns"] == [quick]
    page = stage.call("ListTasks", maxResults=3)
    assert page["taskArns"] == arns[:3]
    assert stage.call("ListTasks", nextToken=page["nextToken"])["taskArns"] == arns[3:]
    with pytest.raises(InvalidParameterException, match="Invalid token"):
        stage.call("ListTasks", nextToken=page["nextToken"], startedBy="me-1")


def test_clusters(stage: Stage) -> None:
    assert stage.call("DescribeClusters")["clusters"][0]["clusterName"] == "default"
    stage.call("CreateCluster", clusterName="other")
    assert [arn.rpartition("/")[2] for arn in stage.call("ListClusters")["clusterArns"]] == ["default", "other"]
    stage.define("hour")
    arn = stage.call("RunTask", taskDefinition="hour", cluster="other")["tasks"][0]["taskArn"]
    assert ":task/other/" in arn
    assert stage.call("ListTasks")["taskArns"] == []
    stage.house.drain()
    (other,) = stage.call("DescribeClusters", clusters=["other"])["clusters"]
    assert (other["runningTasksCount"], other["pendingTasksCount"]) == (1, 0)
    with pytest.raises(ClusterContainsTasksException):
        stage.call("DeleteCluster", cluster="other")
    stage.house.advance(minutes=62)
    assert stage.call("DeleteCluster", cluster="other")["cluster"]["status"] == "INACTIVE"
    with pytest.raises(ClusterNotFoundException):
        stage.call("ListTasks", cluster="other")
    assert stage.call("DescribeClusters", clusters=["none"])["failures"][0]["reason"] == "MISSING"


def test_tags(stage: Stage) -> None:
    arn = stage.run("hour", tags=[{"key": "a", "value": "1"}])
    assert stage.task(arn)["tags"] == []
    assert stage.call("DescribeTasks", tasks=[arn], include=["TAGS"])["tasks"][0]["tags"] == [
        {"key": "a", "value": "1"}
    ]
    stage.call("TagResource", resourceArn=arn, tags=[{"key": "b", "value": "2"}])
    stage.call("UntagResource", resourceArn=arn, tagKeys=["a"])
    assert stage.call("ListTagsForResource", resourceArn=arn)["tags"] == [{"key": "b", "value": "2"}]
    definition = stage.define("quick")
    stage.call("TagResource", resourceArn=definition, tags=[{"key": "c", "value": "3"}])
    assert stage.call("DescribeTaskDefinition", taskDefinition=definition, include=["TAGS"])["tags"][0]["key"] == "c"
    ran = stage.call("RunTask", taskDefinition="quick", propagateTags="TASK_DEFINITION")
    assert ran["tasks"][0]["tags"] == [{"key": "c", "value": "3"}]
