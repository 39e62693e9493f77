"""Pipes in a whole house, from outside in: to tasks, to events and rules, and through crashes at every commit."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.testing import Kit

PLACE = "us-east-1:000000000000:"
ROLE = "arn:aws:iam::000000000000:role/any"
BUS = f"arn:aws:events:{PLACE}event-bus/default"


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


def test_a_time_that_no_calendar_has_fails_its_message_and_holds_up_no_other(town: Kit) -> None:
    town.record_events()
    pipe(town, BUS, 10, TargetParameters={"EventBridgeEventBusParameters": {"Time": "$.body.at"}})
    send(town, {"at": "0001-01-01T00:00:00+09:00"}, {"at": "2026-01-31T06:00:00Z"})
    assert "no RFC 3339 time" in town.client("pipes").describe_pipe(Name="p")["StateReason"]
    town.advance(seconds=1)  # a pipe waits after a failure
    [one] = town.events()
    assert one.time is not None
    assert one.time.isoformat() == "2026-01-31T06:00:00+00:00"
    assert town.queue("source").in_flight == 1


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
    pipe(town, BUS, 10, TargetParameters=parameters)
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
    pipe(town, BUS, 10, TargetParameters={"InputTemplate": "only <$.body.id>"})
    send(town, {"id": 1})
    assert town.queue("source").in_flight == 1
    assert "Detail is malformed" in town.client("pipes").describe_pipe(Name="p")["StateReason"]


def step(**state: Any) -> str:
    """Answer a definition that waits five seconds, and then does one thing."""
    wait = {"Type": "Wait", "Seconds": 5, "Next": "Do"}
    return json.dumps({"StartAt": "Wait", "States": {"Wait": wait, "Do": {"End": True, **state}}})


@pytest.mark.parametrize("waited_for", [False, True])
def test_a_crash_at_every_commit_of_a_batch_s_way(waited_for: bool) -> None:
    """The node dies at its first, second, third ... commit: each message is enriched, arrives once, and leaves its queue."""
    at = 1
    while True:
        with Kit() as house:
            urls = [house.client("sqs").create_queue(QueueName=name)["QueueUrl"] for name in ("source", "target")]
            tell = {"QueueUrl": urls[1], "MessageBody.$": "$[0].body"}
            definitions = {
                "enrich": step(Type="Pass"),
                "target": step(Type="Task", Resource="arn:aws:states:::sqs:sendMessage", Parameters=tell),
            }
            arns = [
                house.client("stepfunctions").create_state_machine(
                    name=name, definition=definition, roleArn=ROLE, type="EXPRESS"
                )["stateMachineArn"]
                for name, definition in definitions.items()
            ]
            target = arns[1] if waited_for else f"arn:aws:sqs:{PLACE}target"
            template: dict[str, Any] = {} if waited_for else {"TargetParameters": {"InputTemplate": "<$.body>"}}
            pipe(house, target, Enrichment=arns[0], DesiredState="STOPPED", **template)
            for body in ("1", "2", "3"):
                house.client("sqs").send_message(QueueUrl=urls[0], MessageBody=body)
            house.crash(after=at)
            house.client("pipes").start_pipe(Name="p")
            house.advance(seconds=60)
            assert sorted(house.queue("target").bodies) == [1, 2, 3]
            assert (house.queue("source").depth, house.queue("source").in_flight) == (0, 0)
            outcomes = [handover["Outcome"] for handover in house.handovers()]
            assert outcomes == ["DELIVERED"] * 3
            lives = house.lives
            house.crash(after=0)
        if lives == 1:
            break
        at += 1
    assert at > 5, "there were that many commits to die at"
