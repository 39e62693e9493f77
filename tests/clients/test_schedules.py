"""Scheduler as boto3 sees it: dates, names in paths, filters in queries, errors and tags over the wire."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tasuki.cli.own_node import OwnNode
from tasuki.cli.trace import call_house
from tests.clients.conftest import ROLE, Boto

OFF = {"Mode": "OFF"}


@pytest.fixture(scope="module")
def scheduler(boto: Boto) -> Any:
    return boto("scheduler")


@pytest.fixture(scope="module")
def target(boto: Boto) -> dict[str, Any]:
    sqs = boto("sqs")
    url = sqs.create_queue(QueueName="scheduled")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return {"Arn": arn, "RoleArn": ROLE, "Input": json.dumps({"t": "<aws.scheduler.scheduled-time>"})}


def test_a_schedule_is_made_shown_changed_listed_and_deleted(scheduler: Any, target: dict[str, Any]) -> None:
    begins = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    group = scheduler.create_schedule_group(Name="night.ly", Tags=[{"Key": "k", "Value": "v"}])["ScheduleGroupArn"]
    given = {
        "Name": "a-b_c.d",
        "GroupName": "night.ly",
        "ScheduleExpression": "cron(0 1 * * ? *)",
        "ScheduleExpressionTimezone": "Asia/Tokyo",
        "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5},
        "Target": target,
    }
    arn = scheduler.create_schedule(**given, StartDate=begins, EndDate=begins + timedelta(days=9))["ScheduleArn"]
    assert arn.endswith(":schedule/night.ly/a-b_c.d")
    shown = scheduler.get_schedule(Name="a-b_c.d", GroupName="night.ly")
    assert {name: shown[name] for name in given if name != "Target"} == {
        k: v for k, v in given.items() if k != "Target"
    }
    assert (shown["StartDate"], shown["EndDate"]) == (begins, begins + timedelta(days=9))
    assert shown["Target"]["Input"] == target["Input"]
    scheduler.update_schedule(**given, State="DISABLED")
    listed = scheduler.get_paginator("list_schedules").paginate(
        GroupName="night.ly", NamePrefix="a", State="DISABLED", PaginationConfig={"PageSize": 1}
    )
    assert [one["Arn"] for page in listed for one in page["Schedules"]] == [arn]
    scheduler.tag_resource(ResourceArn=group, Tags=[{"Key": "l", "Value": "w"}])
    scheduler.untag_resource(ResourceArn=group, TagKeys=["k"])
    assert scheduler.list_tags_for_resource(ResourceArn=group)["Tags"] == [{"Key": "l", "Value": "w"}]
    scheduler.delete_schedule(Name="a-b_c.d", GroupName="night.ly")
    scheduler.delete_schedule_group(Name="night.ly")
    assert "default" in [one["Name"] for one in scheduler.list_schedule_groups()["ScheduleGroups"]]


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"Name": "no name"}, "ValidationException", "name"),
        ({"ScheduleExpression": "rate(1 year)"}, "ValidationException", "Invalid Schedule Expression rate(1 year)."),
        ({"ScheduleExpressionTimezone": "Mars/Base"}, "ValidationException", "ScheduleExpressionTimezone Mars/Base"),
        ({"GroupName": "none"}, "ResourceNotFoundException", "Schedule group none does not exist."),
    ],
)
def test_refusals_reach_the_client(
    scheduler: Any, target: dict[str, Any], given: dict[str, Any], code: str, says: str
) -> None:
    wanted = {"Name": "s", "ScheduleExpression": "rate(1 day)", "FlexibleTimeWindow": OFF, "Target": target, **given}
    with pytest.raises(ClientError) as no:
        scheduler.create_schedule(**wanted)
    assert no.value.response["Error"]["Code"] == code
    assert says in no.value.response["Error"]["Message"]


def test_a_schedule_fires(scheduler: Any, boto: Boto, node: OwnNode, target: dict[str, Any]) -> None:
    made = scheduler.create_schedule(
        Name="now", ScheduleExpression="rate(1 day)", FlexibleTimeWindow=OFF, Target=target, ClientToken="once"
    )
    sqs = boto("sqs")
    url = sqs.get_queue_url(QueueName="scheduled")["QueueUrl"]
    [message] = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    fired = datetime.fromisoformat(json.loads(message["Body"])["t"])
    assert abs(datetime.now(UTC) - fired) < timedelta(minutes=1)
    [handed_over] = call_house(node.reach, "ListHandovers", {"SourceArn": made["ScheduleArn"]})["Handovers"]
    assert (handed_over["Outcome"], handed_over["TargetArn"]) == ("DELIVERED", target["Arn"])
    [coming] = call_house(node.reach, "ListScheduleTicks", {"ScheduleArn": made["ScheduleArn"], "MaxResults": 1})[
        "Ticks"
    ]
    assert datetime.fromisoformat(coming["ScheduledTime"]) - fired == timedelta(days=1)
    assert call_house(node.reach, "ListScheduleTicks", {})["Ticks"] == [coming]
    scheduler.delete_schedule(Name="now")
