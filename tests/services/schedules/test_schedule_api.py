"""The operations of Scheduler: what is kept, shown, listed, refused and repeated."""

from typing import Any

import pytest

from tasuki.services.schedules import api
from tasuki.services.schedules.errors import (
    ConflictException,
    ResourceNotFoundException,
    ServiceQuotaExceededException,
    ValidationException,
)
from tasuki.values.config import Config
from tasuki.values.errors import DomainError
from tests.services.schedules.bench import (
    ACCOUNT,
    DEAD,
    MACHINE,
    OFF,
    QUEUE,
    REGION,
    ROLE,
    Bench,
    arn_of,
    instant,
)

CLUSTER = f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/default"
BUS = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"
DAILY = "cron(0 1 * * ? *)"


def refusal(bench: Bench, error: type[DomainError], **given: Any) -> str:
    """Answer why a schedule is refused; nothing of it is kept."""
    with pytest.raises(error) as no:
        bench.create("s", given.pop("expression", DAILY), **given)
    assert bench.names() == []
    assert (bench.rows("schedule_ticks"), bench.rows("timers")) == (0, 0)
    return no.value.message


# -- what is kept -------------------------------------------------------------------------------------------


def test_defaults_are_filled_in(bench: Bench) -> None:
    assert bench.create("s", DAILY) == arn_of("s")
    assert bench.call("GetSchedule", Name="s") == {
        "Arn": arn_of("s"),
        "GroupName": "default",
        "Name": "s",
        "State": "ENABLED",
        "CreationDate": bench.house.now,
        "LastModificationDate": bench.house.now,
        "ScheduleExpression": DAILY,
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "NONE",
        "Target": {
            "Arn": QUEUE,
            "RoleArn": ROLE,
            "RetryPolicy": {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185},
        },
    }


def test_everything_given_is_shown_and_an_update_puts_back_what_it_leaves_out(bench: Bench) -> None:
    given = {
        "Description": "the night's work \0",
        "ScheduleExpressionTimezone": "Asia/Tokyo",
        "StartDate": instant("2026-11-01T00:00:00"),
        "EndDate": instant("2027-11-01T00:00:00"),
        "State": "DISABLED",
        "KmsKeyArn": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/k",
        "ActionAfterCompletion": "DELETE",
        "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15},
    }
    target = {
        "Input": '{"a": "\u00e9\\u0000"}',
        "DeadLetterConfig": {"Arn": DEAD},
        "RetryPolicy": {"MaximumRetryAttempts": 0},
    }
    bench.create("s", DAILY, target=target, **given)
    made = bench.house.now
    shown = bench.call("GetSchedule", Name="s")
    assert {name: shown[name] for name in given} == given
    assert shown["Target"]["Input"] == target["Input"]
    assert shown["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 0}
    bench.house.advance(hours=1)
    bench.update("s", "rate(2 hours)")
    shown = bench.call("GetSchedule", Name="s")
    assert not {"Description", "StartDate", "EndDate", "KmsKeyArn"} & set(shown)
    assert (shown["State"], shown["ActionAfterCompletion"], shown["FlexibleTimeWindow"]) == ("ENABLED", "NONE", OFF)
    assert set(shown["Target"]) == {"Arn", "RoleArn", "RetryPolicy"}
    assert (shown["CreationDate"], shown["LastModificationDate"]) == (made, bench.house.now)


def test_names_belong_to_their_group(bench: Bench) -> None:
    bench.call("CreateScheduleGroup", Name="night")
    bench.create("s", DAILY)
    assert bench.create("s", DAILY, GroupName="night") == arn_of("s", "night")
    with pytest.raises(ConflictException, match=r"Schedule s already exists\."):
        bench.create("s", "rate(1 day)", GroupName="night")
    bench.call("DeleteSchedule", Name="s", GroupName="night")
    assert bench.names() == ["s"]
    for operation in ("GetSchedule", "DeleteSchedule"):
        with pytest.raises(ResourceNotFoundException, match=r"Schedule s does not exist\."):
            bench.call(operation, Name="s", GroupName="night")
    with pytest.raises(ResourceNotFoundException):
        bench.update("s", DAILY, GroupName="night")


def test_errors_carry_their_text_where_every_client_looks(bench: Bench) -> None:
    with pytest.raises(ResourceNotFoundException) as no:
        bench.call("GetSchedule", Name="s")
    assert (no.value.status, no.value.fields) == (404, {"Message": no.value.message})


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"ScheduleExpressionTimezone": "Asia/Edo"}, ["ScheduleExpressionTimezone", "Asia/Edo"]),
        ({"FlexibleTimeWindow": {"Mode": "OFF", "MaximumWindowInMinutes": 5}}, ["MaximumWindowInMinutes", "OFF"]),
        ({"FlexibleTimeWindow": {"Mode": "FLEXIBLE"}}, ["MaximumWindowInMinutes", "FLEXIBLE"]),
        (
            {
                "expression": "rate(5 minutes)",
                "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 6},
            },
            ["MaximumWindowInMinutes 6", "5 minutes"],
        ),
        (
            {"StartDate": instant("2026-10-09T08:54:59")},
            ["The StartDate you specify cannot be earlier than 5 minutes ago."],
        ),
        ({"EndDate": instant("2026-10-09T08:00:00")}, ["EndDate", "2026-10-09T08:00:00.000Z"]),
        (
            {"StartDate": instant("2026-10-10T00:00:00"), "EndDate": instant("2026-10-10T00:00:00")},
            ["EndDate", "later than the StartDate"],
        ),
        ({"target": {"Arn": "jobs"}}, ["Target.Arn jobs", "not an ARN"]),
        ({"target": {"Arn": QUEUE + ".fifo"}}, ["FIFO", "not offered yet"]),
        ({"target": {"Arn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:f"}}, ["lambda", "offers state machines"]),
        ({"target": {"Arn": f"arn:aws:sns:{REGION}:{ACCOUNT}:t"}}, ["sns", "standard queues"]),
        ({"target": {"Arn": f"arn:aws:states:{REGION}:{ACCOUNT}:activity:a"}}, ["activity:a", "can't be called"]),
        ({"target": {"Arn": "arn:aws:scheduler:::aws-sdk:sqs:sendMesage"}}, ["sendMesage", "sendMessage"]),
        ({"target": {"Arn": "arn:aws:scheduler:::aws-sdk:sqs:receiveMessage"}}, ["receiveMessage", "only reads"]),
        ({"target": {"Arn": "arn:aws:scheduler:::aws-sdk:dynamodb:putItem"}}, ["dynamodb", "sqs"]),
        ({"target": {"Arn": MACHINE, "Input": "{"}}, ["Target.Input", "well-formed JSON"]),
        ({"target": {"Arn": MACHINE, "Input": '{"n": <aws.scheduler.attempt-number>}'}}, ["well-formed JSON"]),
        ({"target": {"Arn": "arn:aws:scheduler:::aws-sdk:sqs:sendMessage", "Input": "[]"}}, ["JSON object"]),
        ({"target": {"Input": "x" * 262_145}}, ["Target.Input", "262145", "262144"]),
        ({"target": {"Input": "\u00e9" * 131_073}}, ["Target.Input", "262146"]),
        (
            {"target": {"SqsParameters": {}, "KinesisParameters": {"PartitionKey": "k"}}},
            ["KinesisParameters and SqsParameters", "at most one"],
        ),
        ({"target": {"KinesisParameters": {"PartitionKey": "k"}}}, ["Target.KinesisParameters", "leave it out"]),
        ({"target": {"Arn": MACHINE, "SqsParameters": {"MessageGroupId": "g"}}}, ["Target.SqsParameters"]),
        ({"target": {"DeadLetterConfig": {"Arn": DEAD + ".fifo"}}}, ["DeadLetterConfig.Arn", "standard SQS queue"]),
        ({"target": {"DeadLetterConfig": {"Arn": MACHINE}}}, ["DeadLetterConfig.Arn", "standard SQS queue"]),
        (
            {"target": {"DeadLetterConfig": {"Arn": "arn:aws:sqs:us-east-1:111111111111:dead"}}},
            ["DeadLetterConfig.Arn", "not of this house"],
        ),
    ],
)
def test_what_cannot_work_is_refused_with_its_field_and_the_fix(
    bench: Bench, given: dict[str, Any], names: list[str]
) -> None:
    message = refusal(bench, ValidationException, **given)
    assert all(name in message for name in names), message


def test_a_block_that_a_target_needs_is_asked_for(every: Bench) -> None:
    for arn, block in ((CLUSTER, "EcsParameters"), (BUS, "EventBridgeParameters")):
        assert f"Target.{block} must be given" in refusal(every, ValidationException, target={"Arn": arn})
    task = {"Arn": CLUSTER, "EcsParameters": {"TaskDefinitionArn": "t"}}
    assert "JSON object" in refusal(every, ValidationException, target={**task, "Input": '"x"'})
    every.create("tasks", DAILY, target={**task, "Input": '{"containerOverrides": []}'})
    event = {"Arn": BUS, "EventBridgeParameters": {"DetailType": "d", "Source": "s"}}
    every.create("events", DAILY, target={**event, "Input": "{}"})


def test_an_update_that_is_refused_changes_nothing(bench: Bench) -> None:
    bench.create("s", "rate(10 minutes)")
    before = bench.call("GetSchedule", Name="s")
    with pytest.raises(ValidationException):
        bench.update("s", "rate(10 minutess)")
    assert bench.call("GetSchedule", Name="s") == before
    bench.house.advance(minutes=10)
    assert bench.ticks == ["2026-10-09T09:00", "2026-10-09T09:10"]


def test_a_target_need_not_be_there(bench: Bench) -> None:
    bench.create("s", DAILY, target={"Arn": MACHINE + "-that-comes-later"})
    assert bench.names() == ["s"]


def test_dates_that_an_update_leaves_may_have_passed_and_at_ignores_them(bench: Bench) -> None:
    begins, ends = instant("2026-10-09T09:30:00"), instant("2026-10-09T10:30:00")
    bench.create("s", "rate(20 minutes)", StartDate=begins, EndDate=ends)
    bench.house.advance(hours=3)
    bench.update("s", "rate(20 minutes)", StartDate=begins, EndDate=ends, Description="over")
    bench.house.advance(hours=1)
    assert bench.ticks == ["2026-10-09T09:30", "2026-10-09T09:50", "2026-10-09T10:10", "2026-10-09T10:30"]
    bench.create("once", "at(2026-10-10T00:00:00)", StartDate=begins, EndDate=ends)
    bench.house.advance(days=1)
    assert bench.ticks[4:] == ["2026-10-10T00:00"]


def test_quotas(tmp_path: Any) -> None:
    config = Config(
        data=tmp_path, dev=True, account=ACCOUNT, region=REGION, quotas={"schedules": 2, "schedule_groups": 1}
    )
    bench = Bench(config=config)
    bench.create("a", DAILY)
    bench.create("b", DAILY)
    with pytest.raises(ServiceQuotaExceededException, match="schedules"):
        bench.create("c", DAILY)
    bench.call("DeleteSchedule", Name="a")
    bench.create("c", DAILY)
    with pytest.raises(ServiceQuotaExceededException, match="schedule_groups"):
        bench.call("CreateScheduleGroup", Name="g")
    bench.close()


def test_schedules_that_went_with_their_group_do_not_count(tmp_path: Any) -> None:
    bench = Bench(config=Config(data=tmp_path, dev=True, account=ACCOUNT, region=REGION, quotas={"schedules": 2}))
    bench.call("CreateScheduleGroup", Name="g")
    for name in ("a", "b"):
        bench.create(name, DAILY, GroupName="g")
    bench.call("DeleteScheduleGroup", Name="g")
    bench.house.drain()
    bench.create("c", DAILY)
    bench.close()


# -- client tokens ------------------------------------------------------------------------------------------


def test_a_request_repeated_under_its_token_does_nothing_more(bench: Bench) -> None:
    begins = bench.house.now
    first = bench.create("s", "rate(1 hour)", ClientToken="t", StartDate=begins)
    bench.house.drain()
    assert bench.create("s", "rate(1 hour)", ClientToken="t", StartDate=begins) == first
    bench.update("s", "rate(2 hours)", ClientToken="u", State="DISABLED")
    assert bench.create("s", "rate(1 hour)", ClientToken="t", StartDate=begins) == first
    changed = bench.call("GetSchedule", Name="s")
    assert changed["State"] == "DISABLED"
    bench.house.advance(minutes=10)
    assert bench.create("s", "rate(1 hour)", ClientToken="t", StartDate=begins) == first
    bench.update("s", "rate(2 hours)", ClientToken="u", State="DISABLED")
    assert bench.call("GetSchedule", Name="s") == changed
    bench.house.drain()
    assert bench.ticks == ["2026-10-09T09:00"]


def test_a_token_with_another_request_is_a_conflict(bench: Bench) -> None:
    bench.create("s", "rate(1 hour)", ClientToken="t")
    with pytest.raises(ConflictException, match="ClientToken t"):
        bench.create("s", "rate(2 hours)", ClientToken="t")
    with pytest.raises(ConflictException, match="already exists"):
        bench.create("s", "rate(1 hour)", ClientToken="other")
    bench.update("s", "rate(2 hours)", ClientToken="t")
    with pytest.raises(ConflictException, match="ClientToken t"):
        bench.update("s", "rate(3 hours)", ClientToken="t")
    with pytest.raises(ConflictException):
        bench.call("CreateScheduleGroup", Name="default", ClientToken="t")
    bench.call("CreateScheduleGroup", Name="g", ClientToken="t", Tags=[{"Key": "a", "Value": "1"}])
    bench.call("CreateScheduleGroup", Name="g", ClientToken="t", Tags=[{"Value": "1", "Key": "a"}])
    with pytest.raises(ConflictException, match="ClientToken t"):
        bench.call("CreateScheduleGroup", Name="g", ClientToken="t")


# -- listings -----------------------------------------------------------------------------------------------


def pages(bench: Bench, **given: Any) -> list[list[str]]:
    found: list[list[str]] = []
    while True:
        answer = bench.call("ListSchedules", **given)
        found.append([f"{one['GroupName']}/{one['Name']}" for one in answer["Schedules"]])
        if "NextToken" not in answer:
            return found
        given["NextToken"] = answer["NextToken"]


def test_schedules_are_listed_by_group_and_name_in_pages(bench: Bench) -> None:
    for group in ("b", "z"):
        bench.call("CreateScheduleGroup", Name=group)
    for name, group, state in (
        ("x-2", "b", "ENABLED"),
        ("x-1", "b", "DISABLED"),
        ("y", "b", "ENABLED"),
        ("x", "default", "DISABLED"),
        ("a", "z", "ENABLED"),
    ):
        bench.create(name, DAILY, GroupName=group, State=state)
    everything = ["b/x-1", "b/x-2", "b/y", "default/x", "z/a"]
    assert pages(bench) == [everything]
    assert pages(bench, MaxResults=2) == [everything[:2], everything[2:4], everything[4:]]
    assert pages(bench, MaxResults=5) == [everything]
    assert pages(bench, GroupName="b", MaxResults=2) == [everything[:2], everything[2:3]]
    assert pages(bench, NamePrefix="x", MaxResults=1)[:3] == [["b/x-1"], ["b/x-2"], ["default/x"]]
    assert pages(bench, GroupName="b", NamePrefix="x") == [everything[:2]]
    assert pages(bench, State="DISABLED") == [["b/x-1", "default/x"]]
    assert pages(bench, GroupName="z", NamePrefix="y") == [[]]
    one = bench.call("ListSchedules", GroupName="z")["Schedules"][0]
    assert one == {
        "Arn": arn_of("a", "z"),
        "Name": "a",
        "GroupName": "z",
        "State": "ENABLED",
        "CreationDate": bench.house.now,
        "LastModificationDate": bench.house.now,
        "Target": {"Arn": QUEUE},
    }
    with pytest.raises(ResourceNotFoundException, match="Schedule group nowhere does not exist"):
        bench.call("ListSchedules", GroupName="nowhere")


def test_a_filtered_page_looks_at_so_many_at_most(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "SCANNED", 2)
    for n in range(5):
        bench.create(f"s{n}", DAILY, State="DISABLED" if n == 4 else "ENABLED")
    assert pages(bench, State="DISABLED") == [[], [], ["default/s4"]]
    assert pages(bench, State="ENABLED", MaxResults=1)[:2] == [["default/s0"], ["default/s1"]]


def test_a_page_token_opens_its_own_listing_only(bench: Bench) -> None:
    for name in "abc":
        bench.create(name, DAILY)
    token = bench.call("ListSchedules", MaxResults=1)["NextToken"]
    for given in ({"State": "ENABLED"}, {"GroupName": "default"}, {"NamePrefix": "a"}):
        with pytest.raises(ValidationException, match="NextToken"):
            bench.call("ListSchedules", NextToken=token, **given)
    with pytest.raises(ValidationException, match="NextToken"):
        bench.call("ListScheduleGroups", NextToken=token)
    with pytest.raises(ValidationException, match="NextToken"):
        bench.call("ListSchedules", NextToken="x")


# -- groups -------------------------------------------------------------------------------------------------


def test_the_group_default_is_always_there_and_stays(bench: Bench) -> None:
    shown = bench.call("GetScheduleGroup", Name="default")
    assert shown == {
        "Arn": f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule-group/default",
        "Name": "default",
        "State": "ACTIVE",
    }
    assert bench.call("ListScheduleGroups")["ScheduleGroups"] == [shown]
    with pytest.raises(ValidationException, match="default can't be deleted"):
        bench.call("DeleteScheduleGroup", Name="default")
    bench.call("TagResource", ResourceArn=shown["Arn"], Tags=[{"Key": "k", "Value": "v"}])
    assert bench.call("ListTagsForResource", ResourceArn=shown["Arn"]) == {"Tags": [{"Key": "k", "Value": "v"}]}
    assert bench.call("GetScheduleGroup", Name="default")["CreationDate"] == bench.house.now


def test_groups_are_listed_by_name_in_pages(bench: Bench) -> None:
    for name in ("a", "e", "eve"):
        bench.call("CreateScheduleGroup", Name=name)

    def names(**given: Any) -> list[str]:
        found: list[str] = []
        while True:
            answer = bench.call("ListScheduleGroups", **given)
            found += [one["Name"] for one in answer["ScheduleGroups"]]
            if "NextToken" not in answer:
                return found
            given["NextToken"] = answer["NextToken"]

    for written in (False, True):
        if written:
            bench.create("s", DAILY)  # now default has a row
        for limit in (1, 2, 3, 4, 100):
            assert names(MaxResults=limit) == ["a", "default", "e", "eve"]
        assert names(NamePrefix="e", MaxResults=1) == ["e", "eve"]
        assert names(NamePrefix="de") == ["default"]


def test_tags_of_groups(bench: Bench) -> None:
    arn = bench.call("CreateScheduleGroup", Name="g", Tags=[{"Key": "a", "Value": "1"}])["ScheduleGroupArn"]
    bench.call("TagResource", ResourceArn=arn, Tags=[{"Key": "a", "Value": "2"}, {"Key": "b", "Value": "3"}])
    bench.call("UntagResource", ResourceArn=arn, TagKeys=["b", "none"])
    assert bench.call("ListTagsForResource", ResourceArn=arn) == {"Tags": [{"Key": "a", "Value": "2"}]}
    with pytest.raises(ValidationException, match="aws:"):
        bench.call("TagResource", ResourceArn=arn, Tags=[{"Key": "aws:x", "Value": ""}])
    with pytest.raises(ValidationException, match="50"):
        bench.call("TagResource", ResourceArn=arn, Tags=[{"Key": f"k{n}", "Value": ""} for n in range(50)])
    with pytest.raises(ResourceNotFoundException):
        bench.call("ListTagsForResource", ResourceArn=arn + "x")


def test_a_deleted_group_goes_with_its_schedules_slice_by_slice(bench: Bench) -> None:
    bench.call("CreateScheduleGroup", Name="g")
    for n in range(230):
        bench.create(f"s{n:03}", DAILY, GroupName="g")
    bench.create("other", DAILY)
    bench.call("DeleteScheduleGroup", Name="g")
    assert bench.call("GetScheduleGroup", Name="g")["State"] == "DELETING"
    with pytest.raises(ConflictException, match="being deleted"):
        bench.create("new", DAILY, GroupName="g")
    with pytest.raises(ConflictException, match="being deleted"):
        bench.call("CreateScheduleGroup", Name="g")
    bench.call("DeleteScheduleGroup", Name="g")
    poll = bench.house.rooms["schedules"].polls[0]
    bench.house.unit(poll.run)
    assert bench.rows("schedules") == 131
    bench.house.drain()
    assert [bench.rows(table) for table in ("schedules", "schedule_ticks", "timers")] == [1, 1, 1]
    with pytest.raises(ResourceNotFoundException, match="Schedule group g does not exist"):
        bench.call("GetScheduleGroup", Name="g")
    bench.call("CreateScheduleGroup", Name="g")
    assert bench.house.look(poll.look) is None
