"""State changes of tasks on the default bus: each step of a task's life, in the unit that makes it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services import buses, deliveries, queues
from tests.services.tasks.stage import Stage


@pytest.fixture
def tasks() -> Iterator[Stage]:
    stage = Stage(rooms=(queues.room, deliveries.room, buses.room))
    yield stage
    stage.house.close()


def listen(tasks: Stage, pattern: dict[str, Any]) -> None:
    tasks.house.call("sqs", "CreateQueue", QueueName="q")
    tasks.house.call("events", "PutRule", Name="r", EventPattern=json.dumps(pattern))
    target = {"Id": "q", "Arn": "arn:aws:sqs:us-east-1:000000000000:q"}
    tasks.house.call("events", "PutTargets", Rule="r", Targets=[target])


def heard(tasks: Stage) -> list[dict[str, Any]]:
    url = "http://127.0.0.1:4566/000000000000/q"
    found: list[dict[str, Any]] = []
    while messages := tasks.house.call("sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        found += [json.loads(message["Body"]) for message in messages]
    return found


def test_every_step_of_a_task_is_told(tasks: Stage) -> None:
    listen(tasks, {"source": ["aws.ecs"]})
    arn = tasks.run("hour")
    tasks.house.advance(minutes=62)
    events = heard(tasks)
    assert [event["detail"]["lastStatus"] for event in events] == ["PROVISIONING", "PENDING", "RUNNING", "STOPPED"]
    assert {(event["detail-type"], *event["resources"]) for event in events} == {("ECS Task State Change", arn)}
    versions = [event["detail"]["version"] for event in events]
    assert versions == sorted(set(versions))
    last = events[-1]["detail"]
    shown = tasks.task(arn)
    assert (last["stopCode"], last["containers"][0]["exitCode"]) == ("EssentialContainerExited", 0)
    assert last["createdAt"] == "2026-01-01T00:00:00.000Z"
    assert last["stoppedAt"] == last["updatedAt"] == "2026-01-01T01:01:00.000Z"
    assert set(last) == set(shown) - {"tags"} | {"updatedAt"}


def test_a_stop_is_told_when_it_is_wanted_and_when_it_is_done(tasks: Stage) -> None:
    listen(tasks, {"source": ["aws.ecs"], "detail": {"desiredStatus": ["STOPPED"]}})
    arn = tasks.run("forever")
    tasks.call("StopTask", task=arn, reason="enough")
    tasks.house.advance(seconds=10)
    told = [(event["detail"]["lastStatus"], event["detail"].get("stoppedReason")) for event in heard(tasks)]
    assert told == [("RUNNING", "enough"), ("STOPPED", "enough")]


def test_a_rule_may_ask_for_failures_alone(tasks: Stage) -> None:
    """The usual alarm: an essential container that did not end with 0."""
    pattern = {"lastStatus": ["STOPPED"], "containers": {"exitCode": [{"anything-but": 0}]}}
    listen(tasks, {"source": ["aws.ecs"], "detail-type": ["ECS Task State Change"], "detail": pattern})
    tasks.run("quick")
    broken = tasks.run("broken")
    tasks.house.advance(seconds=5)
    assert [event["resources"] for event in heard(tasks)] == [[broken]]


def test_nobody_asks_nothing_is_kept(tasks: Stage) -> None:
    listen(tasks, {"source": ["shop"]})
    tasks.run("quick", drain=False)
    assert tasks.house.unit(lambda tx: tx.all("SELECT count(*) FROM bus_events")) == [(0,)]


def test_the_trace_of_a_task_goes_on_with_its_events(tasks: Stage) -> None:
    listen(tasks, {"source": ["aws.ecs"], "detail": {"lastStatus": ["STOPPED"]}})
    arn = tasks.run("quick")
    tasks.house.advance(seconds=1)
    trace = next(one["value"] for one in tasks.task(arn)["attributes"] if one["name"] == "trace")
    url = "http://127.0.0.1:4566/000000000000/q"
    given = {"QueueUrl": url, "MessageSystemAttributeNames": ["AWSTraceHeader"]}
    (message,) = tasks.house.call("sqs", "ReceiveMessage", given)["Messages"]
    assert message["Attributes"] == {"AWSTraceHeader": trace}
