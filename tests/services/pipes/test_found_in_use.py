"""Pipes that people deploy, through the door and with every room of the house.

The definitions are in `../shared/conformance/definitions/pipes.jsonl` (see tests/engine/recorded.py for where it is looked for).
They were deployed on AWS by their authors: those whose parts this house offers are taken as they are, the others are refused at
the part that is missing.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tasuki.testing import Kit
from tests.engine.recorded import FOLDER

FOUND = FOLDER.parent / "definitions" / "pipes.jsonl"
PLACE = "us-east-1:000000000000:"
ROLE = "arn:aws:iam::000000000000:role/any"
BUS = {"Target": f"arn:aws:events:{PLACE}event-bus/default"}
STANDARD = {"Target": f"arn:aws:states:{PLACE}stateMachine:STANDARD"}
EXPRESS = f"arn:aws:states:{PLACE}stateMachine:EXPRESS"
LOGS = {"Target": f"arn:aws:logs:{PLACE}log-group:g"}
DESTINATION = f"arn:aws:events:{PLACE}api-destination/d/1"
LAMBDA = f"arn:aws:lambda:{PLACE}function:f"
OFFERED: dict[str, dict[str, str]] = {
    "pipe-000": STANDARD,
    "pipe-001": STANDARD,
    "pipe-020": BUS,
    "pipe-021": {"Enrichment": EXPRESS, **BUS},
    "pipe-022": STANDARD,
    "pipe-027": {"Target": EXPRESS},
    "pipe-028": {"Target": f"arn:aws:sqs:{PLACE}target"},
    "pipe-029": STANDARD,
}
MISSING: dict[str, tuple[str, dict[str, str]]] = {
    "pipe-010": ("Source", {"Source": f"arn:aws:sqs:{PLACE}q.fifo", "Target": f"arn:aws:sqs:{PLACE}t.fifo"}),
    "pipe-015": ("Target", {"Enrichment": DESTINATION, **LOGS}),
    "pipe-016": ("Target", {"Enrichment": DESTINATION, **LOGS}),
    "pipe-017": ("Enrichment", {"Enrichment": LAMBDA, "Target": DESTINATION}),
    "pipe-018": ("Target", {"Target": f"arn:aws:batch:{PLACE}job-queue/q"}),
    "pipe-019": ("Target", LOGS),
    "pipe-023": ("Target", {"Target": f"arn:aws:timestream:{PLACE}database/d/table/t"}),
}
STREAM = {"Source": f"arn:aws:kinesis:{PLACE}stream/s", "Target": BUS["Target"]}


def found() -> dict[str, dict[str, Any]]:
    if not FOUND.exists():
        return {}
    rows = [json.loads(filled(line)) for line in FOUND.read_text("utf-8").splitlines()]
    return {row["id"]: row["properties"] for row in rows}


def filled(text: str) -> str:
    """Put something for what a template would fill in; the parts of a pipe are put in later."""
    text = text.replace("${MQSecretARN}", f"arn:aws:secretsmanager:{PLACE}secret:s")
    text = text.replace("${PipeDLQueue.Arn}", f"arn:aws:sqs:{PLACE}dead")
    return re.sub(r"\$\{\w+\}", "word", text)


PIPES = found()
needs_them = pytest.mark.skipif(not PIPES, reason="the definitions found in use are not here")


@pytest.fixture(scope="module")
def house() -> Iterator[Kit]:
    with Kit() as kit:
        for name in ("source", "target"):
            kit.client("sqs").create_queue(QueueName=name)
        definition = json.dumps({"StartAt": "S", "States": {"S": {"Type": "Succeed"}}})
        for kind in ("STANDARD", "EXPRESS"):
            kit.client("stepfunctions").create_state_machine(name=kind, definition=definition, roleArn=ROLE, type=kind)
        yield kit


def create(house: Kit, name: str, parts: dict[str, str]) -> None:
    said = {key: value for key, value in PIPES[name].items() if key not in {"Name", "Tags"}}
    given: dict[str, Any] = {**said, "Name": name, "RoleArn": ROLE, "Source": f"arn:aws:sqs:{PLACE}source", **parts}
    if "LogConfiguration" in given:
        group = {"LogGroupArn": f"arn:aws:logs:{PLACE}log-group:g"}
        given["LogConfiguration"] = {**given["LogConfiguration"], "CloudwatchLogsLogDestination": group}
    house.client("pipes").create_pipe(**given)


@needs_them
@pytest.mark.parametrize("name", OFFERED)
def test_what_this_house_offers_is_taken(house: Kit, name: str) -> None:
    create(house, name, OFFERED[name])
    described = house.client("pipes").describe_pipe(Name=name)
    assert described["CurrentState"] == "RUNNING"
    given = PIPES[name]
    assert described["TargetParameters"] == given.get("TargetParameters", {})
    assert described["SourceParameters"].get("FilterCriteria") == given.get("SourceParameters", {}).get(
        "FilterCriteria"
    )


@needs_them
@pytest.mark.parametrize("name", sorted(PIPES.keys() - OFFERED.keys()))
def test_what_it_does_not_is_refused_where_it_stands(house: Kit, name: str) -> None:  # PF-39
    field, parts = MISSING.get(name, ("Source", STREAM))
    said = PIPES[name].get("SourceParameters") or {}
    assert name in MISSING or "SqsQueueParameters" not in said
    if "Enrichment" in PIPES[name]:
        parts = {"Enrichment": LAMBDA, **parts}
    with pytest.raises(ClientError) as refused:
        create(house, name, parts)
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    answer: Any = refused.value.response
    (entry,) = answer["fieldList"]
    assert entry["name"].split(".")[0].removesuffix("Parameters") == field
    with pytest.raises(ClientError, match="does not exist"):
        house.client("pipes").describe_pipe(Name=name)


# -- all rooms together ------------------------------------------------------------------------------------------


@pytest.fixture
def town() -> Iterator[Kit]:
    with Kit() as kit:
        for name in ("source", "target"):
            kit.client("sqs").create_queue(QueueName=name)
        yield kit


def pipe(town: Kit, target: str, batch: int = 1, **members: Any) -> None:
    source = {"SqsQueueParameters": {"BatchSize": batch}}
    given = {"Name": "p", "RoleArn": ROLE, "Source": f"arn:aws:sqs:{PLACE}source", "Target": target}
    town.client("pipes").create_pipe(**given, SourceParameters=source, **members)


def send(town: Kit, *bodies: Any) -> None:
    sqs = town.client("sqs")
    url = sqs.get_queue_url(QueueName="source")["QueueUrl"]
    for body in bodies:
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps(body))
    town.settle()


def test_a_message_is_a_task_without_a_machine_between(town: Kit) -> None:
    town.image("job", seconds=5)
    container = {"name": "main", "image": "job", "memory": 64}
    definition = town.client("ecs").register_task_definition(family="job", containerDefinitions=[container])
    town.client("ecs").create_cluster(clusterName="jobs")
    override = {"Name": "main", "Command": ["run", "$.body.id"], "Environment": [{"name": "EVENT", "value": "$.body"}]}
    parameters = {
        "TaskDefinitionArn": definition["taskDefinition"]["taskDefinitionArn"],
        "LaunchType": "FARGATE",
        "Overrides": {"ContainerOverrides": [override]},
        "PropagateTags": "TASK_DEFINITION",
        "Tags": [{"Key": "job", "Value": "$.body.id"}],
    }
    pipe(town, f"arn:aws:ecs:{PLACE}cluster/jobs", TargetParameters={"EcsTaskParameters": parameters})
    send(town, {"id": "j1"}, {"id": "j2"}, {"nothing": 1})
    town.advance(seconds=10)
    runs = town.runs("job")
    assert sorted(run.environment["EVENT"] for run in runs) == ['{"id":"j1"}', '{"id":"j2"}']
    assert sorted(run.command for run in runs) == [("run", "j1"), ("run", "j2")]
    tasks = [task.arn for task in town.tasks("job")]
    described = town.client("ecs").describe_tasks(cluster="jobs", tasks=tasks, include=["TAGS"])["tasks"]
    assert sorted(task["tags"][0]["value"] for task in described) == ["j1", "j2"]
    assert town.queue("source").in_flight == 1
    reason = town.client("pipes").describe_pipe(Name="p")["StateReason"]
    assert "Overrides.ContainerOverrides[0].Command[1]: $.body.id leads nowhere in this event" in reason


def test_a_message_is_an_event_that_a_rule_matches(town: Kit) -> None:
    events = town.client("events")
    pattern = {"source": ["shop"], "detail-type": ["Paid"], "detail": {"id": [{"numeric": [">", 1]}]}}
    events.put_rule(Name="paid", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="paid", Targets=[{"Id": "q", "Arn": f"arn:aws:sqs:{PLACE}target"}])
    own = {"Source": "shop", "DetailType": "$.body.type", "Time": "$.body.at", "Resources": ["arn:aws:sqs:::x"]}
    parameters = {"EventBridgeEventBusParameters": own, "InputTemplate": '{"id": <$.body.id>}'}
    pipe(town, BUS["Target"], 10, TargetParameters=parameters)
    at = "2026-10-09T16:00:00Z"
    send(
        town,
        {"type": "Paid", "id": 1, "at": at},
        {"type": "Paid", "id": 2, "at": at},
        {"type": "Sent", "id": 3, "at": at},
    )
    town.advance(seconds=1)
    (event,) = town.queue("target").bodies
    assert (event["detail"], event["time"], event["detail-type"]) == ({"id": 2}, at, "Paid")
    assert town.queue("source").in_flight == town.queue("source").depth == 0


def test_what_is_not_an_object_is_no_event_and_stays(town: Kit) -> None:
    pipe(town, BUS["Target"], 10, TargetParameters={"InputTemplate": "only <$.body.id>"})
    send(town, {"id": 1})
    assert town.queue("source").in_flight == 1
    assert "Detail is malformed" in town.client("pipes").describe_pipe(Name="p")["StateReason"]
