"""What a tick says at each try, and in the dead-letter queue; played with real targets."""

import logging
import re
from typing import Any

import pytest

from tasuki.services.schedules.senders import ScheduleSender, deliver_to
from tasuki.services.switchboard import Delivery, Refusal
from tasuki.values.documents import dumps, loads
from tests.services.schedules.bench import ACCOUNT, DEAD, MACHINE, QUEUE, REGION, ROLE, Bench, arn_of, instant

URL = f"http://127.0.0.1:4566/{ACCOUNT}/"
TIME, NUMBER, ID, ARN = (
    f"<aws.scheduler.{name}>" for name in ("scheduled-time", "attempt-number", "execution-id", "schedule-arn")
)
TICK = instant("2026-10-09T16:00:00")
PASS = dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})


def delivery(target: dict[str, Any] | None = None) -> Delivery:
    policy = {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}
    made = {"Arn": QUEUE, "RoleArn": ROLE, "RetryPolicy": policy, **(target or {})}
    return deliver_to(
        made,
        arn=arn_of("s"),
        account=ACCOUNT,
        region=REGION,
        tick=TICK,
        due=TICK + 300_000,
        trace="Root=1-0-0",
        notice="89d1a02d-5ec7",
        watcher=None,
    )


def payload(bench: Bench, one: Delivery, attempt: int = 1, try_id: str = "d32c5") -> str:
    return bench.house.unit(lambda tx: ScheduleSender().payload(tx, one, attempt, try_id))


def queue(bench: Bench, name: str, **attributes: str) -> None:
    bench.house.call("sqs", "CreateQueue", QueueName=name, Attributes=attributes)


def messages(bench: Bench, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        given = {"QueueUrl": URL + name, "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
        got = bench.house.call("sqs", "ReceiveMessage", given).get("Messages", [])
        if not got:
            return found
        found += got


def bodies(bench: Bench, name: str) -> list[str]:
    return [one["Body"] for one in messages(bench, name)]


# -- attributes ---------------------------------------------------------------------------------------------


def test_attributes_are_replaced_as_plain_text_wherever_they_stand(bench: Bench) -> None:
    text = f'at {TIME} "{ARN}" {NUMBER}/{NUMBER} {ID}{ID} not json'
    said = payload(bench, delivery({"Input": text}), 3, "ab12")
    assert said == f'at 2026-10-09T16:00:00Z "{arn_of("s")}" 3/3 ab12ab12 not json'


@pytest.mark.parametrize(
    "text",
    [
        r'{"t":"\u003caws.scheduler.scheduled-time\u003e"}',
        "<aws.scheduler.scheduled_time> <aws.scheduler.> <aws.events.rule-arn>",
        "< aws.scheduler.scheduled-time >",
        "<AWS.scheduler.scheduled-time>",
    ],
)
def test_what_is_no_attribute_as_it_stands_is_left_alone(bench: Bench, text: str) -> None:
    """PITFALLS PF-43: an escaped one is none."""
    assert payload(bench, delivery({"Input": text})) == text


def test_what_an_attribute_becomes_is_not_looked_at_again(bench: Bench) -> None:
    assert payload(bench, delivery({"Input": f"<aws.scheduler.{TIME}>"})) == "<aws.scheduler.2026-10-09T16:00:00Z>"


def test_without_input_the_target_is_told_which_schedule_fired_when(bench: Bench) -> None:
    said = loads(payload(bench, delivery()))
    assert said == {
        "id": "89d1a02d-5ec7",
        "version": "0",
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": ACCOUNT,
        "time": "2026-10-09T16:00:00Z",
        "region": REGION,
        "resources": [arn_of("s")],
        "detail": "{}",
    }
    assert payload(bench, delivery({"Arn": "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"})) == "{}"
    cluster = {"Arn": f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/c", "EcsParameters": {"TaskDefinitionArn": "t"}}
    assert payload(bench, delivery(cluster)) == "{}"


def test_what_a_cluster_is_asked() -> None:
    network = {"awsvpcConfiguration": {"Subnets": ["subnet-1"], "AssignPublicIp": "ENABLED"}}
    ecs = {
        "TaskDefinitionArn": "t:3",
        "TaskCount": 2,
        "LaunchType": "FARGATE",
        "NetworkConfiguration": network,
        "Group": "nightly",
        "EnableECSManagedTags": True,
        "PropagateTags": "TASK_DEFINITION",
        "Tags": [{"key": "a", "value": "1"}, {"b": "2", "c": "3"}],
    }
    one = delivery({"Arn": f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/c", "EcsParameters": ecs, "Input": "{}"})
    assert one.parameters == {
        "TaskDefinition": "t:3",
        "Count": 2,
        "LaunchType": "FARGATE",
        "NetworkConfiguration": network,
        "Group": "nightly",
        "EnableECSManagedTags": True,
        "PropagateTags": "TASK_DEFINITION",
        "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}, {"Key": "c", "Value": "3"}],
        "Overrides": "<payload>",
    }
    event = {"DetailType": "d", "Source": "s"}
    bus = {"Arn": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/b", "EventBridgeParameters": event}
    assert delivery(bus).parameters == event
    assert delivery({"SqsParameters": {"MessageGroupId": "g"}}).parameters == {"MessageGroupId": "g"}


def test_attributes_of_a_dead_letter() -> None:
    refusal = Refusal("AWS.SimpleQueueService.NonExistentQueue", "gone")
    assert ScheduleSender().dead_letter(delivery(), 4, "ab12", refusal, "MaximumRetryAttempts") == {
        "ERROR_CODE": "AWS.SimpleQueueService.NonExistentQueue",
        "ERROR_MESSAGE": "gone",
        "EXECUTION_ID": "ab12",
        "EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
        "IS_PAYLOAD_TRUNCATED": "false",
        "RETRY_ATTEMPTS": "3",
        "SCHEDULED_TIME": "2026-10-09T16:00:00Z",
        "SCHEDULE_ARN": arn_of("s"),
        "TARGET_ARN": QUEUE,
    }
    assert not ScheduleSender().is_final(refusal)


@pytest.mark.parametrize("operation", ["create", "update"])
def test_an_escaped_attribute_is_warned_about_once(
    bench: Bench, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    """PITFALLS PF-43: what Terraform's jsonencode makes of it."""
    escaped = r'{"t":"\u003caws.scheduler.scheduled-time\u003e","n":"\u003caws.scheduler.attempt-number\u003e"}'
    if operation == "update":
        bench.create("s", "rate(1 day)")
    with caplog.at_level(logging.WARNING):
        getattr(bench, operation)("s", "rate(1 day)", target={"Input": escaped})
    [said] = [record.getMessage() for record in caplog.records]
    assert all(part in said for part in (arn_of("s"), TIME, NUMBER, "jsonencode"))
    assert bench.call("GetSchedule", Name="s")["Target"]["Input"] == escaped
    caplog.clear()
    bench.update("s", "rate(1 day)", target={"Input": dumps({"t": TIME})})
    bench.house.advance(days=2)
    assert not caplog.records


# -- plays --------------------------------------------------------------------------------------------------


def test_a_schedule_sends_messages_with_its_planned_time(real: Bench) -> None:
    queue(real, "jobs")
    real.create("s", "cron(0 1 * * ? *)", target={"Input": TIME}, ScheduleExpressionTimezone="Asia/Tokyo")
    real.house.advance(days=2)
    assert sorted(bodies(real, "jobs")) == ["2026-10-09T16:00:00Z", "2026-10-10T16:00:00Z"]


def test_a_schedule_starts_executions_by_both_kinds_of_target(real: Bench) -> None:
    real.house.call("stepfunctions", "CreateStateMachine", name="nightly", definition=PASS, roleArn=ROLE)
    real.create("templated", "at(2026-10-09T10:00:00)", target={"Arn": MACHINE, "Input": dumps({"t": TIME})})
    named = {"StateMachineArn": MACHINE, "Name": f"run-{ID}", "Input": dumps({"n": NUMBER})}
    universal = {"Arn": "arn:aws:scheduler:::aws-sdk:sfn:startExecution", "Input": dumps(named)}
    real.create("universal", "at(2026-10-09T10:00:00)", target=universal)
    real.house.advance(hours=1)
    runs = real.house.call("stepfunctions", "ListExecutions", stateMachineArn=MACHINE)["executions"]
    assert {run["status"] for run in runs} == {"SUCCEEDED"}
    shown = [real.house.call("stepfunctions", "DescribeExecution", executionArn=run["executionArn"]) for run in runs]
    assert sorted(one["input"] for one in shown) == ['{"n":"1"}', '{"t":"2026-10-09T10:00:00Z"}']
    assert any(re.fullmatch(r"run-[0-9a-f]{16}", run["name"]) for run in runs)


def test_a_cluster_gets_the_attributes_in_its_overrides(every: Bench) -> None:
    container = {"name": "main", "image": "job", "memory": 64}
    every.house.call("ecs", "RegisterTaskDefinition", family="job", containerDefinitions=[container])
    environment = [{"name": "DAY", "value": TIME}, {"name": "TRY", "value": NUMBER}]
    overrides = {"containerOverrides": [{"name": "main", "environment": environment}]}
    cluster = f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/default"
    target = {"Arn": cluster, "EcsParameters": {"TaskDefinitionArn": "job"}, "Input": dumps(overrides)}
    every.create("s", "at(2026-10-09T10:00:00)", target=target)
    every.house.advance(hours=1)
    tasks = every.house.call("ecs", "ListTasks", desiredStatus="STOPPED")["taskArns"]
    tasks += every.house.call("ecs", "ListTasks")["taskArns"]
    [task] = every.house.call("ecs", "DescribeTasks", tasks=tasks)["tasks"]
    assert task["overrides"]["containerOverrides"][0]["environment"] == [
        {"name": "DAY", "value": "2026-10-09T10:00:00Z"},
        {"name": "TRY", "value": "1"},
    ]


def test_a_bus_gets_an_event(every: Bench) -> None:
    queue(every, "jobs")
    every.house.call("events", "PutRule", Name="r", EventPattern=dumps({"source": ["my.schedules"]}))
    every.house.call("events", "PutTargets", Rule="r", Targets=[{"Id": "q", "Arn": QUEUE}])
    target = {
        "Arn": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default",
        "EventBridgeParameters": {"DetailType": "Nightly", "Source": "my.schedules"},
        "Input": dumps({"t": TIME}),
    }
    every.create("s", "at(2026-10-09T10:00:00)", target=target)
    every.house.advance(hours=1)
    [event] = [loads(body) for body in bodies(every, "jobs")]
    assert (event["detail-type"], event["detail"]) == ("Nightly", {"t": "2026-10-09T10:00:00Z"})


def test_tries_share_the_planned_time_and_have_ids_and_numbers_of_their_own(real: Bench) -> None:
    """PITFALLS PF-44: the queue comes later than the tick."""
    real.create("s", "at(2026-10-09T10:00:00)", target={"Input": f"{TIME} {NUMBER} {ID}"})
    real.house.advance(hours=1, seconds=4)
    queue(real, "jobs")
    real.house.advance(hours=1)
    [body] = bodies(real, "jobs")
    said, number, try_id = body.split()
    assert (said, int(number) > 2) == ("2026-10-09T10:00:00Z", True)
    assert re.fullmatch(r"[0-9a-f]{16}", try_id)
    outcomes = handovers(real, "s")
    assert [outcome.startswith("FAILED") for outcome in outcomes] == [True] * (int(number) - 1) + [False]


def handovers(bench: Bench, name: str) -> list[str]:
    found = bench.house.call("tasuki", "ListHandovers", SourceArn=arn_of(name))["Handovers"]
    return [one["Outcome"] for one in found]


@pytest.mark.parametrize(
    ("policy", "condition", "retries"),
    [
        ({"MaximumRetryAttempts": 3}, "MaximumRetryAttempts", "3"),
        ({"MaximumRetryAttempts": 0}, "MaximumRetryAttempts", "0"),
        ({"MaximumEventAgeInSeconds": 60}, "MaximumEventAgeInSeconds", None),
    ],
)
def test_a_missing_target_ends_in_the_dead_letter_queue(
    real: Bench, policy: dict[str, int], condition: str, retries: str | None
) -> None:
    """PITFALLS PF-48. The attributes are spelled as in AWS's user guide."""
    queue(real, "dead")
    target = {"Input": f"{TIME} {NUMBER}", "RetryPolicy": policy, "DeadLetterConfig": {"Arn": DEAD}}
    real.create("s", "at(2026-10-09T10:00:00)", target=target, ActionAfterCompletion="DELETE")
    real.house.advance(hours=1)
    if retries != "0":
        assert real.names() == ["s"], "its last tick is not over yet"
    real.house.advance(hours=2)
    [letter] = messages(real, "dead")
    said = {name: value["StringValue"] for name, value in letter["MessageAttributes"].items()}
    assert said["EXHAUSTED_RETRY_CONDITION"] == condition
    assert retries is None or said["RETRY_ATTEMPTS"] == retries
    assert (said["SCHEDULED_TIME"], said["SCHEDULE_ARN"]) == ("2026-10-09T10:00:00Z", arn_of("s"))
    assert (said["TARGET_ARN"], said["IS_PAYLOAD_TRUNCATED"]) == (QUEUE, "false")
    assert said["ERROR_CODE"] == "AWS.SimpleQueueService.NonExistentQueue"
    assert letter["Body"] == f"2026-10-09T10:00:00Z {int(said['RETRY_ATTEMPTS']) + 1}"
    assert real.names() == []


def test_ticks_too_old_by_the_time_a_node_is_back_are_not_lost_in_silence(real: Bench) -> None:
    queue(real, "jobs")
    queue(real, "dead")
    target = {
        "Input": TIME,
        "RetryPolicy": {"MaximumEventAgeInSeconds": 3_600},
        "DeadLetterConfig": {"Arn": DEAD},
    }
    real.create("s", "cron(0 * * * ? *)", target=target)
    real.clock.set(instant("2026-10-09T13:30:00"))
    real.house.drain()
    assert bodies(real, "jobs") == ["2026-10-09T13:00:00Z"]
    letters = messages(real, "dead")
    times = sorted(one["MessageAttributes"]["SCHEDULED_TIME"]["StringValue"] for one in letters)
    assert times == ["2026-10-09T10:00:00Z", "2026-10-09T11:00:00Z", "2026-10-09T12:00:00Z"]
    assert {one["MessageAttributes"]["EXHAUSTED_RETRY_CONDITION"]["StringValue"] for one in letters} == {
        "MaximumEventAgeInSeconds"
    }


def test_the_age_of_a_tick_counts_from_its_moment_in_the_window(real: Bench) -> None:
    queue(real, "jobs")
    target = {"Input": TIME, "RetryPolicy": {"MaximumEventAgeInSeconds": 60}}
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 120}
    for n in range(20):
        real.create(f"s{n}", "at(2026-10-09T10:00:00)", target=target, FlexibleTimeWindow=window)
    real.house.advance(hours=4)
    assert bodies(real, "jobs") == ["2026-10-09T10:00:00Z"] * 20


def test_deliveries_under_way_outlive_their_schedule(real: Bench) -> None:
    real.create("s", "at(2026-10-09T10:00:00)", target={"Input": TIME})
    real.house.advance(hours=1)
    real.call("DeleteSchedule", Name="s")
    queue(real, "jobs")
    real.house.advance(hours=1)
    assert bodies(real, "jobs") == ["2026-10-09T10:00:00Z"]


def test_a_schedule_that_deletes_itself_stays_deleted(real: Bench) -> None:
    """The call is made in the unit that fires the schedule."""
    target = {"Arn": "arn:aws:scheduler:::aws-sdk:scheduler:deleteSchedule", "Input": dumps({"Name": "s"})}
    real.create("s", "cron(0 10 * * ? *)", target=target)
    real.house.advance(hours=2)
    assert (real.names(), real.rows("timers"), real.rows("schedule_ticks")) == ([], 0, 0)
    assert handovers(real, "s") == ["DELIVERED"]


def test_one_advance_settles_a_backoff_and_the_ticks_on_its_way(real: Bench) -> None:
    """PITFALLS PF-60."""
    queue(real, "dead")
    target = {"Input": TIME, "RetryPolicy": {"MaximumRetryAttempts": 3}, "DeadLetterConfig": {"Arn": DEAD}}
    real.create("s", "cron(0 10,11 * * ? *)", target=target)
    real.house.advance(hours=3)
    assert sorted(bodies(real, "dead")) == ["2026-10-09T10:00:00Z", "2026-10-09T11:00:00Z"]
    assert len(handovers(real, "s")) == 2 * 5
