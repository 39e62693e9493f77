"""EventBridge as boto3 sees it: over the wire, with what botocore checks and fills in."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.clients.conftest import ROLE, Boto


@pytest.fixture(scope="module")
def events(boto: Boto) -> Any:
    return boto("events")


@pytest.fixture(scope="module")
def queue(boto: Boto) -> tuple[str, str]:
    sqs = boto("sqs")
    url = sqs.create_queue(QueueName="told")["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def received(boto: Boto, url: str) -> Any:
    sqs = boto("sqs")
    (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=10)["Messages"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return json.loads(message["Body"])


def test_an_event_goes_from_a_bus_to_a_queue(boto: Boto, events: Any, queue: tuple[str, str]) -> None:
    url, arn = queue
    bus = events.create_event_bus(Name="shop", Tags=[{"Key": "k", "Value": "v"}])["EventBusArn"]
    pattern = json.dumps({"source": ["shop"], "detail": {"total": [{"numeric": [">", 100]}]}})
    rule = events.put_rule(Name="large", EventBusName="shop", EventPattern=pattern)["RuleArn"]
    assert rule.endswith(":rule/shop/large")
    template = {
        "InputPathsMap": {"t": "$.detail.total"},
        "InputTemplate": '{"total":<t>,"rule":"<aws.events.rule-name>"}',
    }
    targets = [{"Id": "q", "Arn": arn, "InputTransformer": template, "RetryPolicy": {"MaximumRetryAttempts": 3}}]
    assert events.put_targets(Rule="large", EventBusName=bus, Targets=targets)["FailedEntryCount"] == 0
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    entries = [
        {
            "Source": "shop",
            "DetailType": "order",
            "Detail": json.dumps({"total": n}),
            "Time": at,
            "EventBusName": "shop",
        }
        for n in (50, 150)
    ]
    answer = events.put_events(Entries=entries)
    assert (answer["FailedEntryCount"], len(answer["Entries"])) == (0, 2)
    assert received(boto, url) == {"total": 150, "rule": "large"}
    assert events.list_targets_by_rule(Rule="large", EventBusName="shop")["Targets"] == targets
    assert events.list_rule_names_by_target(TargetArn=arn, EventBusName="shop")["RuleNames"] == ["large"]
    events.remove_targets(Rule="large", EventBusName="shop", Ids=["q"])
    events.delete_rule(Name="large", EventBusName="shop")
    events.delete_event_bus(Name="shop")
    assert [one["Name"] for one in events.list_event_buses()["EventBuses"]] == ["default"]


def test_an_execution_s_end_is_told_with_its_trace(boto: Boto, events: Any, queue: tuple[str, str]) -> None:
    url, arn = queue
    events.put_rule(
        Name="ends", EventPattern=json.dumps({"source": ["aws.states"], "detail": {"status": ["SUCCEEDED"]}})
    )
    events.put_targets(Rule="ends", Targets=[{"Id": "q", "Arn": arn}])
    machines = boto("stepfunctions")
    definition = json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
    machine = machines.create_state_machine(name="told", definition=definition, roleArn=ROLE)["stateMachineArn"]
    execution = machines.start_execution(stateMachineArn=machine)["executionArn"]
    assert received(boto, url)["resources"] == [execution]
    events.remove_targets(Rule="ends", Ids=["q"])
    events.delete_rule(Name="ends")


def test_patterns_are_tried(events: Any) -> None:
    event = {
        "id": "1",
        "source": "s",
        "detail-type": "d",
        "account": "0",
        "region": "r",
        "time": "2026-01-01T00:00:00Z",
    }
    tried = events.test_event_pattern(EventPattern='{"source":[{"prefix":"s"}]}', Event=json.dumps(event))
    assert tried["Result"] is True
    with pytest.raises(ClientError) as no:
        events.test_event_pattern(EventPattern='{"source":"s"}', Event=json.dumps(event))
    assert no.value.response["Error"]["Code"] == "InvalidEventPatternException"


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("create_archive", {"ArchiveName": "a", "EventSourceArn": "arn:aws:events:us-east-1:000000000000:event-bus/default"}),
        ("list_replays", {}),
        ("list_endpoints", {}),
        ("list_event_sources", {}),
    ],
)  # fmt: skip
def test_what_is_not_offered_says_so(events: Any, operation: str, given: dict[str, Any]) -> None:
    with pytest.raises(ClientError) as no:
        getattr(events, operation)(**given)
    name = operation.title().replace("_", "")
    assert f"doesn't offer events:{name}" in no.value.response["Error"]["Message"]


def test_errors_over_the_wire(events: Any) -> None:
    with pytest.raises(
        events.exceptions.ResourceNotFoundException, match="Rule none does not exist on EventBus default"
    ):
        events.describe_rule(Name="none")
    with pytest.raises(ClientError, match="Member must have length less than or equal to 10"):
        events.put_events(Entries=[{"Source": "s", "DetailType": "d", "Detail": "{}"}] * 11)
