"""`schedule` and `rule` against a real node, and expressions without one."""

import json
from typing import Any

import pytest

from tasuki.cli.complaints import Code
from tasuki.cli.own_node import OwnNode
from tests.cli.conftest import ROLE, Command, decoded, run

NIGHTLY = "cron(0 1 * * ? *)"


def queue(node: OwnNode, name: str) -> str:
    sqs = node.reach.client("sqs")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    return str(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"])


def make(node: OwnNode, name: str, expression: str = NIGHTLY, *, to: str | None = None, **more: Any) -> str:
    given: dict[str, Any] = {"FlexibleTimeWindow": {"Mode": "OFF"}, "ScheduleExpressionTimezone": "Asia/Tokyo", **more}
    target = {"Arn": to or queue(node, f"{name}-target"), "RoleArn": ROLE, "Input": "<aws.scheduler.scheduled-time>"}
    made = node.reach.client("scheduler").create_schedule(
        Name=name, ScheduleExpression=expression, Target=target, **given
    )
    return str(made["ScheduleArn"])


# -- expressions, without a node ------------------------------------------------------------------------------


def test_when_an_expression_is_due() -> None:
    words = ("schedule", "next", NIGHTLY, "--zone", "Asia/Tokyo", "--after", "2026-10-09T12:00:00+09:00", "-n", "2")
    assert run(*words).stdout.splitlines() == [
        "planned               local",
        "2026-10-09T16:00:00Z  Sat 2026-10-10 01:00:00 +0900 Asia/Tokyo",
        "2026-10-10T16:00:00Z  Sun 2026-10-11 01:00:00 +0900 Asia/Tokyo",
    ]
    rows = decoded(run(*words, "--json"))
    assert [row["planned"] for row in rows] == ["2026-10-09T16:00:00Z", "2026-10-10T16:00:00Z"]


@pytest.mark.parametrize(
    ("words", "planned"),
    [
        (("rate(5 minutes)", "-n", "2"), ["2026-03-29T00:00:00Z", "2026-03-29T00:05:00Z"]),
        (("cron(30 2 * * ? *)", "--zone", "Europe/Berlin", "-n", "1"), ["2026-03-30T00:30:00Z"]),
        (("at(2026-03-29T09:00:00)", "--zone", "Asia/Tokyo", "-n", "3"), []),
        (("at(2026-03-29T09:00:01)", "--zone", "Asia/Tokyo", "-n", "3"), ["2026-03-29T00:00:01Z"]),
    ],
    ids=["a rate from when it starts", "a night without half past two", "over", "once"],
)
def test_from_an_instant_on(words: tuple[str, ...], planned: list[str]) -> None:
    rows = decoded(run("schedule", "next", *words, "--after", "2026-03-29T00:00:00Z", "--json"))
    assert [row["planned"] for row in rows] == planned


def test_never_again_is_said() -> None:
    said = run("schedule", "next", "at(2026-01-01T00:00:00)", "--after", "2026-03-29T00:00:00Z").stdout
    assert said == "never again after 2026-03-29T00:00:00.000Z\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cron(0 1 * * * *)",), "day-of-month, day-of-week: exactly one of the two must be ?"),
        (("every night",), "must be at(...), rate(...) or cron(...)"),
        ((NIGHTLY, "--zone", "Asia/Tokio"), "did you mean Asia/Tokyo?"),
        ((NIGHTLY, "--after", "tomorrow"), '--after: "tomorrow" is no instant'),
        ((NIGHTLY, "--after", "2026-10-09T12:00:00"), "does not say its zone"),
        (("nightly", "--zone", "UTC"), "a schedule has a zone of its own"),
        ((NIGHTLY, "--count", "0"), "1<=x<=1000"),
    ],
)
def test_what_is_wrong_is_named(words: tuple[str, ...], says: str) -> None:
    done = run("schedule", "next", *words)
    assert done.returncode == Code.USAGE
    assert says in done.stderr
    assert done.stdout == ""


# -- schedules of a node --------------------------------------------------------------------------------------


@pytest.mark.clients
def test_schedules_are_listed_and_shown(tasuki: Command, node: OwnNode) -> None:
    node.reach.client("scheduler").create_schedule_group(Name="batch")
    make(node, "nightly")
    make(node, "scores", GroupName="batch", State="DISABLED")
    rows = {row["schedule"]: row for row in decoded(tasuki("schedule", "list", "--json"))}
    assert rows["nightly"] | {"state": "ENABLED", "expression": NIGHTLY, "zone": "Asia/Tokyo"} == rows["nightly"]
    assert rows["nightly"]["to"] == "sqs:nightly-target"
    assert rows["nightly"]["next"].endswith("T16:00:00Z")
    assert (rows["batch/scores"]["state"], rows["batch/scores"]["next"]) == ("DISABLED", None)
    shown = tasuki("schedule", "show", "nightly").stdout
    assert "ScheduleExpressionTimezone                   Asia/Tokyo" in shown
    assert "Target.RetryPolicy.MaximumRetryAttempts      185" in shown
    assert " 01:00:00 +0900 Asia/Tokyo" in shown
    told = decoded(tasuki("schedule", "show", "nightly", "--json"))
    assert told["next"]["planned"] == rows["nightly"]["next"]
    assert told["past"] == told["deliveries"] == []


@pytest.mark.clients
def test_a_schedule_is_found_by_name_group_and_arn(tasuki: Command, node: OwnNode) -> None:
    scheduler = node.reach.client("scheduler")
    for group in ("one", "two"):
        scheduler.create_schedule_group(Name=group)
    arn = make(node, "twice", GroupName="one")
    assert decoded(tasuki("schedule", "show", "twice", "--json"))["Arn"] == arn
    make(node, "twice", GroupName="two")
    unclear = tasuki("schedule", "show", "twice")
    assert (unclear.returncode, unclear.stdout) == (Code.USAGE, "")
    assert "one/twice, two/twice" in unclear.stderr
    assert decoded(tasuki("schedule", "show", "one/twice", "--json"))["Arn"] == arn
    assert decoded(tasuki("schedule", "show", arn, "--json"))["Arn"] == arn
    assert make(node, "twice") == decoded(tasuki("schedule", "show", "twice", "--json"))["Arn"]
    unknown = tasuki("schedule", "next", "nobody")
    assert (unknown.returncode, "no schedule is called nobody" in unknown.stderr) == (Code.NO, True)
    assert "ResourceNotFoundException" in tasuki("schedule", "past", "one/nobody").stderr


@pytest.mark.clients
def test_what_is_next_of_a_schedule(tasuki: Command, node: OwnNode) -> None:
    make(node, "sleeping", State="DISABLED")
    lines = tasuki("schedule", "next", "sleeping", "-n", "3").stdout.splitlines()
    assert lines[0] == "sleeping is disabled; enabled, it would be due"
    assert len(lines) == 5
    assert all(line.endswith("01:00:00 +0900 Asia/Tokyo") for line in lines[2:])
    make(node, "roughly", FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 60})
    first, second = decoded(tasuki("schedule", "next", "roughly", "-n", "2", "--json"))
    assert first["planned"] <= first["fires"]
    assert (second["fires"], "fires" in tasuki("schedule", "next", "roughly").stdout) == ("", True)
    make(node, "over", "at(2020-01-01T00:00:00)")
    assert tasuki("schedule", "next", "over").stdout == "never again\n"
    assert "never again" in tasuki("schedule", "show", "over").stdout


@pytest.mark.clients
def test_what_fired_is_told_from_the_record(tasuki: Command, node: OwnNode) -> None:
    make(node, "at-once", "rate(1 hour)")
    while not (rows := decoded(tasuki("schedule", "past", "at-once", "--json"))):
        pass  # the node delivers it meanwhile, and pytest's timeout ends this
    (row,) = rows
    body = decoded(tasuki("queue", "receive", "at-once-target", "--json"))[0]["Body"]
    assert (row["outcome"], row["planned"]) == ("DELIVERED", body)
    assert row["late"] < 60
    assert row["to"].endswith(":at-once-target")
    assert body in tasuki("schedule", "past", "at-once").stdout
    shown = tasuki("schedule", "show", "at-once").stdout
    assert body in shown.partition("outcome")[2]


@pytest.mark.clients
def test_rules_are_listed(tasuki: Command, node: OwnNode) -> None:
    events = node.reach.client("events")
    events.create_event_bus(Name="orders")
    events.put_rule(
        Name="big", EventBusName="orders", EventPattern=json.dumps({"detail": {"n": [{"numeric": [">", 9]}]}})
    )
    events.put_targets(Rule="big", EventBusName="orders", Targets=[{"Id": "1", "Arn": queue(node, "big-orders")}])
    events.put_rule(Name="hourly", ScheduleExpression="rate(1 hour)", State="DISABLED")
    rows = {row["rule"]: row for row in decoded(tasuki("rule", "list", "--json"))}
    assert (rows["big"]["bus"], rows["big"]["targets"][0].rpartition(":")[2]) == ("orders", "big-orders")
    assert (rows["hourly"]["state"], rows["hourly"]["schedule"], rows["hourly"]["pattern"]) == (
        "DISABLED",
        "rate(1 hour)",
        None,
    )
    shown = tasuki("rule", "list", "--bus", "orders").stdout
    assert "sqs:big-orders" in shown
    assert "hourly" not in shown
    assert tasuki("rule", "list", "--bus", "nobody").returncode == Code.NO
