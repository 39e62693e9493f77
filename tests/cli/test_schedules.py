"""`schedule` and `rule` against a real node, and expressions without one."""

import json
from typing import Any

import pytest

from tasuki.cli.complaints import Code
from tasuki.cli.own_node import OwnNode
from tasuki.cli.trace import list_handovers
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


def test_never_is_said() -> None:
    said = run("schedule", "next", "at(2026-01-01T00:00:00)", "--after", "2026-03-29T00:00:00Z").stdout
    assert said == "never after 2026-03-29T00:00:00.000Z\n"


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
    told = decoded(tasuki("rule", "show", "orders/big", "--json"))
    assert (told["Name"], told["EventBusName"], told["past"]) == ("big", "orders", [])
    assert [one["Arn"].rpartition(":")[2] for one in told["targets"]] == ["big-orders"]
    assert "ScheduleExpression                           rate(1 hour)" in tasuki("rule", "show", "hourly").stdout


def put(node: OwnNode, source: str) -> str:
    answer = node.reach.client("events").put_events(Entries=[{"Source": source, "DetailType": "t", "Detail": "{}"}])
    return str(answer["Entries"][0]["EventId"])


def rule(node: OwnNode, name: str, target: str) -> None:
    """Make a rule for the events whose source is called as it is."""
    events = node.reach.client("events")
    events.put_rule(Name=name, EventPattern=json.dumps({"source": [name]}))
    events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": target}])


def traced(tasuki: Command, wanted: str) -> list[str]:
    done = tasuki("trace", wanted)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.clients
def test_an_event_is_traced_to_the_queue_and_the_message_back_to_the_event(tasuki: Command, node: OwnNode) -> None:
    rule(node, "heard", queue(node, "heard-by"))
    event = put(node, "heard")
    [row] = decoded(tasuki("rule", "past", "heard", "--json"))
    assert (row["event"], row["outcome"], row["to"].rpartition(":")[2]) == (event, "DELIVERED", "heard-by")
    message = row["arrived_as"]
    lines = traced(tasuki, event)
    assert lines[0] == f"event      {event} on default"
    assert lines[1].endswith(" by rule heard")
    assert lines[2] == f"message    {message} in heard-by"
    assert traced(tasuki, message) == lines
    story = decoded(tasuki("trace", event, "--json"))
    assert (story["Kind"], story["ExecutionArn"]) == ("message", message)
    assert traced(tasuki, story["Trace"]) == lines
    assert message in tasuki("rule", "past", "default/heard").stdout
    assert message in tasuki("rule", "show", "heard").stdout.partition("outcome")[2]


@pytest.mark.clients
def test_the_id_of_an_execution_tells_of_its_events(tasuki: Command, node: OwnNode) -> None:
    """What became of the event about its failure is found from the execution."""
    events, states = node.reach.client("events"), node.reach.client("stepfunctions")
    events.put_rule(Name="failed", EventPattern='{"source": ["aws.states"], "detail": {"status": ["FAILED"]}}')
    events.put_targets(Rule="failed", Targets=[{"Id": "1", "Arn": queue(node, "failures")}])
    definition = '{"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E"}}}'
    states.create_state_machine(name="told-of", definition=definition, roleArn="arn:aws:iam::000000000000:role/r")
    tasuki("start", "told-of")
    url = f"{node.url}/000000000000/failures"
    assert node.reach.client("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    root = decoded(tasuki("trace", "told-of", "--json"))["Trace"]
    [row] = decoded(tasuki("rule", "past", "failed", "--json"))
    lines = traced(tasuki, "told-of")
    assert lines[-1].split() == ["1", "more", "hand-over", "under", "it:", "tasuki", "trace", f"'{root}'"]
    assert traced(tasuki, root)[0] == f"event      {row['event']} on default"


@pytest.mark.clients
def test_what_was_dropped_is_told_by_its_rule_and_in_the_log(tasuki: Command, node: OwnNode) -> None:
    gone = queue(node, "gone")
    rule(node, "unheard", gone)
    node.reach.client("sqs").delete_queue(QueueUrl=f"{node.url}/000000000000/gone")
    event = put(node, "unheard")
    failed, dropped = decoded(tasuki("rule", "past", "unheard", "--json"))
    assert (failed["event"], dropped["event"]) == (event, event)
    assert failed["outcome"].startswith("FAILED: ")
    assert dropped["outcome"].startswith("DROPPED: ")
    assert dropped["outcome"].removeprefix("DROPPED: ") in tasuki("rule", "past", "unheard").stdout
    logged = [line for line in node.log.read_text().splitlines() if "rule/unheard" in line and "dropped" in line]
    assert len(logged) == 1
    assert gone in logged[0]
    assert dropped["outcome"].removeprefix("DROPPED: ")[:60] in logged[0]
    lines = traced(tasuki, event)
    assert sum(line.startswith("handover   DROPPED ") for line in lines) == 1
    assert "target     gone" in lines
    assert tasuki("rule", "past", "unheard", "-n", "1").stdout.count(event) == 1


@pytest.mark.clients
@pytest.mark.parametrize(
    ("to", "given", "told"),
    [
        (
            "aws-sdk:sqs:sendMessage",
            {"QueueUrl": "https://sqs/000000000000/letters", "MessageBody": "hi"},
            "call       aws-sdk:sqs:sendMessage answered ",
        ),
        (
            "aws-sdk:sqs:purgeQueue",
            {"QueueUrl": "https://sqs/000000000000/letters"},
            "call       aws-sdk:sqs:purgeQueue",
        ),
    ],
)
def test_a_call_is_traced(tasuki: Command, node: OwnNode, to: str, given: dict[str, str], told: str) -> None:
    queue(node, "letters")
    name = to.rpartition(":")[2]
    given["QueueUrl"] = f"{node.url}/000000000000/letters"
    target = {"Arn": f"arn:aws:scheduler:::{to}", "RoleArn": ROLE, "Input": json.dumps(given)}
    node.reach.client("scheduler").create_schedule(
        Name=name, ScheduleExpression="rate(1 hour)", FlexibleTimeWindow={"Mode": "OFF"}, Target=target
    )
    lines = traced(tasuki, trace_of(node, name))
    assert lines[0].startswith("tick       ")
    assert lines[0].endswith(f" of {name}")
    assert lines[1].endswith(f" by schedule {name}")
    assert lines[2].startswith(told)


@pytest.mark.clients
@pytest.mark.parametrize("kind", ["bus", "task", "machine", "express"])
def test_what_a_tick_became_is_traced(tasuki: Command, node: OwnNode, kind: str) -> None:
    name = f"to-{kind}"
    more: dict[str, Any] = {}
    if kind == "bus":
        arn = node.reach.client("events").create_event_bus(Name=name)["EventBusArn"]
        more = {"EventBridgeParameters": {"DetailType": "t", "Source": "s"}, "Input": "{}"}
    elif kind == "task":
        definition = node.reach.client("ecs").register_task_definition(
            family=name, containerDefinitions=[{"name": "main", "image": "talks", "memory": 64}]
        )["taskDefinition"]["taskDefinitionArn"]
        arn = definition.partition(":task-definition")[0] + ":cluster/default"
        more = {"EcsParameters": {"TaskDefinitionArn": definition}}
    else:
        arn = node.reach.client("stepfunctions").create_state_machine(
            name=name,
            roleArn=ROLE,
            type="EXPRESS" if kind == "express" else "STANDARD",
            definition=json.dumps({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}),
        )["stateMachineArn"]
    node.reach.client("scheduler").create_schedule(
        Name=name,
        ScheduleExpression="rate(1 hour)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": arn, "RoleArn": ROLE, **more},
    )
    root = trace_of(node, name)
    story = decoded(tasuki("trace", root, "--json"))
    assert story["Kind"] == {"bus": "event", "machine": "execution", "express": "express execution"}.get(kind, kind)
    lines = traced(tasuki, root)
    assert lines[1].endswith(f" by schedule {name}")
    word = "execution" if kind in {"machine", "express"} else story["Kind"]
    identity = story["ExecutionArn"] if kind != "task" else story["ExecutionArn"].rpartition("/")[2]
    assert lines[2].startswith(f"{word:<10} {identity}")
    if kind != "express":
        assert decoded(tasuki("trace", story["ExecutionArn"], "--json"))["MessageId"] == story["MessageId"]


def trace_of(node: OwnNode, name: str) -> str:
    """Wait for the first hand-over of a schedule; answer its correlation id."""
    arn = node.reach.client("scheduler").get_schedule(Name=name)["Arn"]
    while not (found := list_handovers(node.reach, SourceArn=arn)):
        pass  # the node delivers it meanwhile, and pytest's timeout ends this
    return str(found[0]["Trace"])


@pytest.mark.clients
def test_a_rule_that_is_on_two_buses_is_named_with_its_bus(tasuki: Command, node: OwnNode) -> None:
    events = node.reach.client("events")
    for bus in ("left", "right"):
        events.create_event_bus(Name=bus)
        events.put_rule(Name="both", EventBusName=bus, EventPattern='{"source": ["both"]}')
    unclear = tasuki("rule", "past", "both")
    assert (unclear.returncode, "left/both, right/both" in unclear.stderr) == (Code.USAGE, True)
    assert tasuki("rule", "past", "left/both").stdout == "nothing was handed over yet\n"
    unknown = tasuki("rule", "past", "nobody")
    assert (unknown.returncode, "no rule is called nobody" in unknown.stderr) == (Code.NO, True)


@pytest.mark.clients
@pytest.mark.parametrize("what", ["queue", "schedule", "rule"])
def test_list_and_ls_are_the_same(tasuki: Command, what: str) -> None:
    assert decoded(tasuki(what, "list", "--json")) == decoded(tasuki(what, "ls", "--json"))
