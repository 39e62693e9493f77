"""RegisterTaskDefinition and its family: revisions, rules, listing (ecs.md section 2)."""

from typing import Any

import pytest

from tasuki.services.tasks.errors import ClientException
from tests.services.tasks.stage import Stage

GOOD: dict[str, Any] = {"name": "main", "image": "quick", "memory": 64}


def test_revisions_count_up_and_are_described_with_their_defaults(stage: Stage) -> None:
    assert stage.define().endswith(":task-definition/quick:1")
    assert stage.define().endswith(":task-definition/quick:2")
    shown = stage.call("DescribeTaskDefinition", taskDefinition="quick")["taskDefinition"]
    assert (shown["revision"], shown["status"]) == (2, "ACTIVE")
    assert shown["containerDefinitions"] == [
        {
            "name": "main",
            "image": "quick",
            "memory": 64,
            "cpu": 0,
            "portMappings": [],
            "essential": True,
            "environment": [],
            "mountPoints": [],
            "volumesFrom": [],
            "systemControls": [],
        }
    ]


def test_a_deregistered_revision_is_inactive_and_not_the_newest(stage: Stage) -> None:
    stage.define()
    second = stage.define()
    gone = stage.call("DeregisterTaskDefinition", taskDefinition=second)["taskDefinition"]
    assert gone["status"] == "INACTIVE"
    assert gone["deregisteredAt"] == stage.house.now
    assert stage.call("DescribeTaskDefinition", taskDefinition="quick")["taskDefinition"]["revision"] == 1
    with pytest.raises(ClientException, match="TaskDefinition is inactive"):
        stage.call("RunTask", taskDefinition=second)
    assert stage.define().endswith(":3"), "a number is never used twice"


@pytest.mark.parametrize(
    ("family", "containers", "more", "text"),
    [
        ("a b", [GOOD], {}, "Family contains invalid characters."),
        ("f", [], {}, "Container list cannot be empty."),
        ("f", [{**GOOD, "name": ""}], {}, "Container.name should not be null or empty."),
        ("f", [{**GOOD, "name": "../x"}], {}, "Container.name contains invalid characters."),
        ("f", [{"name": "main", "memory": 64}], {}, "Container.image should not be null or empty."),
        (
            "f",
            [{"name": "main", "image": "i"}],
            {},
            "At least one of 'memory' or 'memoryReservation' must be specified.",
        ),
        ("f", [{**GOOD, "memory": 5}], {}, "at least 6 MiB"),
        ("f", [{**GOOD, "memoryReservation": 65}], {}, "'memory' must be greater than 'memoryReservation'"),
        ("f", [{**GOOD, "essential": False}], {}, "does not have any essential container"),
        ("f", [GOOD, GOOD], {}, "'main' is there more than once"),
        ("f", [GOOD], {"memory": "32"}, "exceeds the task's"),
        ("f", [GOOD], {"memory": "much"}, "Invalid 'memory' setting for task: much"),
        ("f", [GOOD], {"requiresCompatibilities": ["FARGATE"]}, "Fargate only supports network mode"),
        (
            "f",
            [GOOD],
            {"requiresCompatibilities": ["FARGATE"], "networkMode": "awsvpc", "cpu": "256", "memory": "8192"},
            "No Fargate configuration exists for given values.",
        ),
        ("f", [{**GOOD, "dependsOn": [{"containerName": "x", "condition": "START"}]}], {}, "not another container"),
        ("f", [{**GOOD, "secrets": [{"name": "a", "valueFrom": "b"}]}], {}, "'secrets' is not supported here"),
    ],
)
def test_what_is_refused(
    stage: Stage, family: str, containers: list[dict[str, Any]], more: dict[str, Any], text: str
) -> None:
    with pytest.raises(ClientException) as refused:
        stage.call("RegisterTaskDefinition", family=family, containerDefinitions=containers, **more)
    assert text in refused.value.message


def test_a_circle_of_dependencies_is_refused(stage: Stage) -> None:
    def one(name: str, other: str) -> dict[str, Any]:
        return {**GOOD, "name": name, "dependsOn": [{"containerName": other, "condition": "START"}]}

    with pytest.raises(ClientException, match="in a circle: a, b"):
        stage.call("RegisterTaskDefinition", family="f", containerDefinitions=[one("a", "b"), one("b", "a")])


@pytest.mark.parametrize(("text", "kept"), [("512", "512"), ("1GB", "1024"), ("0.5 gb", "512")])
def test_a_tasks_memory_is_mib_or_gb(stage: Stage, text: str, kept: str) -> None:
    made = stage.call("RegisterTaskDefinition", family="f", containerDefinitions=[GOOD], memory=text, cpu="1 vCPU")
    assert (made["taskDefinition"]["memory"], made["taskDefinition"]["cpu"]) == (kept, "1024")


def test_listing_pages_both_ways(stage: Stage) -> None:
    for image in ("broken", "hour", "quick", "quick"):
        stage.define(image)
    up = stage.call("ListTaskDefinitions", maxResults=3)
    rest = stage.call("ListTaskDefinitions", maxResults=3, nextToken=up["nextToken"])
    names = [arn.rpartition("/")[2] for arn in up["taskDefinitionArns"] + rest["taskDefinitionArns"]]
    assert names == ["broken:1", "hour:1", "quick:1", "quick:2"]
    assert "nextToken" not in rest
    down = stage.call("ListTaskDefinitions", sort="DESC", familyPrefix="quick")["taskDefinitionArns"]
    assert [arn.rpartition("/")[2] for arn in down] == ["quick:2", "quick:1"]
    stage.call("DeregisterTaskDefinition", taskDefinition="hour:1")
    assert stage.call("ListTaskDefinitionFamilies", status="ACTIVE")["families"] == ["broken", "quick"]
    assert stage.call("ListTaskDefinitionFamilies", status="INACTIVE")["families"] == ["hour"]
    assert stage.call("ListTaskDefinitionFamilies", familyPrefix="br")["families"] == ["broken"]


def test_unknown_ones(stage: Stage) -> None:
    with pytest.raises(ClientException, match=r"^Unable to describe task definition\.$"):
        stage.call("DescribeTaskDefinition", taskDefinition="nobody")
    with pytest.raises(ClientException, match=r"^TaskDefinition not found\.$"):
        stage.call("RunTask", taskDefinition="nobody:3")
