"""Rules: what reaches their targets, in which form and order, and what becomes of what cannot."""

import json
import logging
from typing import Any

import pytest

from tasuki.services.switchboard import Caller, Delivery, Happening
from tasuki.store.store import Tx
from tasuki.values.errors import DomainError
from tests.services.buses.stage import ACCOUNT, REGION, ROLE, Stage

SHOP = {"source": ["shop"]}
GONE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:gone"
BUS = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/"


def refused(stage: Stage, operation: str, **given: Any) -> DomainError:
    with pytest.raises(DomainError) as no:
        stage.events(operation, **given)
    return no.value


# -- matching -----------------------------------------------------------------------------------------------


def test_events_of_one_call_arrive_in_their_order(stage: Stage) -> None:
    stage.rule(SHOP, {"Arn": stage.queue(), "InputPath": "$.detail.n"})
    for first in (0, 10, 20):
        entries = [
            {"Source": "shop", "DetailType": "d", "Detail": json.dumps({"n": first + number})} for number in range(10)
        ]
        stage.events("PutEvents", Entries=entries)
    stage.house.drain()
    assert stage.received() == list(range(30))


def test_a_storm_of_the_houses_own_events_holds_up_nobody_who_puts_one(stage: Stage) -> None:
    stage.rule({"source": ["aws.states"]}, {"Arn": stage.queue("told"), "InputPath": "$.detail.n"}, name="told")
    stage.rule(SHOP, {"Arn": stage.queue(), "InputPath": "$.detail.n"})
    told = [
        Happening("aws.states", "d", json.dumps({"n": number}), ACCOUNT, REGION, stage.house.now)
        for number in range(400)
    ]
    stage.house.unit(lambda tx: stage.house.switchboard.publish(tx, told))
    entry = {"Source": "shop", "DetailType": "d", "Detail": '{"n": 1}'}
    stage.events("PutEvents", Entries=[entry])
    [poll] = stage.house.rooms["buses"].polls
    stage.house.unit(poll.run)
    assert stage.received() == [1]
    assert 0 < stage.rows("bus_events") < 400
    stage.house.drain()
    assert sorted(stage.received("told")) == list(range(400))


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ({"source": ["shop"]}, True),
        ({"source": ["other"]}, False),
        ({"source": [{"prefix": "sh"}]}, True),
        ({"detail": {"n": [1]}}, True),
        ({"$or": [{"source": ["shop"]}, {"detail-type": ["x"]}]}, True),
        ({"source": ["other"], "$or": [{"source": ["shop"]}, {"source": ["mart"]}]}, True),
        ({"source": ["shop"], "detail": {"n": [2]}}, False),
    ],
)
def test_a_source_that_no_pattern_asks_for_is_not_even_kept(stage: Stage, pattern: Any, *, wanted: bool) -> None:
    stage.rule(pattern, {"Arn": stage.queue()})
    stage.put({"n": 1})
    assert bool(stage.received()) == wanted
    assert stage.rows("bus_events") == 0
    kept: list[int] = []
    stage.events("PutEvents", Entries=[{"Source": "unheard of", "DetailType": "d", "Detail": "{}"}])
    kept.append(stage.rows("bus_events"))
    literal = "source" in pattern and "$or" not in pattern and all(isinstance(one, str) for one in pattern["source"])
    assert kept == [0 if literal else 1]


def test_every_target_of_every_matching_rule_gets_it_once(stage: Stage) -> None:
    names = [f"q{number}" for number in range(4)]
    arns = [stage.queue(name) for name in names]
    stage.rule(SHOP, {"Arn": arns[0]}, {"Arn": arns[1]}, name="a")
    stage.rule({"detail-type": ["order"]}, {"Arn": arns[2]}, name="b")
    stage.rule({"detail-type": ["refund"]}, {"Arn": arns[3]}, name="c")
    event = stage.put({"n": 1})
    assert [[one["id"] for one in stage.received(name)] for name in names] == [[event], [event], [event], []]


def test_rules_without_targets_or_disabled_ask_for_nothing(stage: Stage) -> None:
    stage.rule(SHOP)
    stage.put()
    assert stage.rows("bus_events") == 0
    stage.rule(SHOP, {"Arn": stage.queue()})
    stage.events("DisableRule", Name="r")
    stage.put({"n": 1})
    stage.events("EnableRule", Name="r")
    stage.put({"n": 2})
    stage.events("RemoveTargets", Rule="r", Ids=["t0"])
    stage.put({"n": 3})
    assert [event["detail"]["n"] for event in stage.received()] == [2]


def test_one_unit_makes_a_bounded_number_of_deliveries(stage: Stage) -> None:
    """60 rules with five targets each: the event goes on where the unit stopped, and nobody gets it twice."""
    queue = stage.queue()
    for number in range(60):
        stage.rule(
            SHOP, *[{"Arn": queue, "Input": f"[{number},{target}]"} for target in range(5)], name=f"r{number:03}"
        )
    real, sizes = stage.house.switchboard.post, []

    def post(tx: Tx, delivery: Delivery) -> None:
        tx.notes["posted"] = tx.notes.get("posted", 0) + 1
        sizes.append(tx.notes["posted"])
        real(tx, delivery)

    stage.house.switchboard.post = post
    stage.put()
    assert (len(sizes), max(sizes)) == (300, 100)
    assert sorted(map(tuple, stage.received())) == [(rule, target) for rule in range(60) for target in range(5)]


def test_large_events_make_small_units(stage: Stage) -> None:
    for number in range(30):
        stage.rule(SHOP, {"Arn": stage.queue("q" if number < 29 else "other")}, name=f"r{number:02}")
    real, sizes = stage.house.switchboard.post, []

    def post(tx: Tx, delivery: Delivery) -> None:
        tx.notes["posted"] = tx.notes.get("posted", 0) + 1
        sizes.append(tx.notes["posted"])
        real(tx, delivery)

    stage.house.switchboard.post = post
    for n in range(2):
        stage.put({"n": n, "text": "x" * 250_000})
    assert (len(sizes), max(sizes) <= 7) == (60, True)
    assert [event["detail"]["n"] for event in stage.received("other")] == [0, 1]


def test_a_fault_of_ours_holds_up_one_event_and_no_other(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.rule(SHOP, {"Arn": stage.queue(), "InputPath": "$.detail.n"})
    real = stage.house.switchboard.post

    def post(tx: Tx, delivery: Delivery) -> None:
        if delivery.payload == "1":
            raise RuntimeError("a slip")
        real(tx, delivery)

    stage.house.switchboard.post = post
    with caplog.at_level(logging.CRITICAL):
        stage.put({"n": 1})
        stage.put({"n": 2})
    assert stage.received() == [2]
    stage.house.switchboard.post = real
    stage.house.advance(seconds=30)
    assert stage.received() == [1]


def test_an_event_that_is_never_matched_is_given_up_after_a_day(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.rule(SHOP, {"Arn": stage.queue()})

    def post(_tx: Tx, _delivery: Delivery) -> None:
        raise RuntimeError("a slip")

    stage.house.switchboard.post = post
    with caplog.at_level(logging.CRITICAL):
        stage.put({"n": 1})
        stage.house.advance(hours=23)
    assert stage.rows("bus_events") == 1
    with caplog.at_level(logging.ERROR):
        stage.house.advance(hours=1, seconds=20)
    assert stage.rows("bus_events") == 0
    assert "could not be matched for a day; dropped" in caplog.text


def test_a_rule_whose_pattern_is_not_accepted_any_more_does_not_stop_its_bus(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.rule(SHOP, {"Arn": stage.queue("old")}, name="old")
    stage.rule(SHOP, {"Arn": stage.queue()}, name="new")
    stage.house.unit(lambda tx: tx.run("UPDATE event_rules SET pattern = '{\"source\": []}' WHERE name = 'old'"))
    stage.put({"n": 1})
    assert (len(stage.received()), stage.received("old")) == (1, [])
    assert "is left out: its pattern is not accepted any more" in caplog.text


# -- the event ----------------------------------------------------------------------------------------------


def test_the_event_is_aws_s(stage: Stage) -> None:
    stage.rule(SHOP, {"Arn": stage.queue()})
    event = stage.put({"n": 1.50, "s": "ü"}, Time=1_775_000_000_123, Resources=["arn:x"])
    assert stage.received() == [
        {
            "version": "0",
            "id": event,
            "detail-type": "order",
            "source": "shop",
            "account": ACCOUNT,
            "time": "2026-03-31T23:33:20Z",
            "region": REGION,
            "resources": ["arn:x"],
            "detail": {"n": 1.5, "s": "ü"},
        }
    ]


def test_a_source_of_aws_is_reserved(stage: Stage) -> None:
    answer = stage.events("PutEvents", Entries=[{"Source": "aws.ec2", "DetailType": "d", "Detail": "{}"}])
    error = {"ErrorCode": "NotAuthorizedForSourceException", "ErrorMessage": "Not authorized for the source."}
    assert answer == {"FailedEntryCount": 1, "Entries": [error]}


def test_entries_fail_one_by_one(stage: Stage) -> None:
    stage.rule(SHOP, {"Arn": stage.queue(), "InputPath": "$.detail.n"})
    entries = [{"Source": "shop", "DetailType": "d", "Detail": f'{{"n":{number}}}'} for number in range(3)]
    entries[1]["Detail"] = "[]"
    answer = stage.events("PutEvents", Entries=entries)
    assert [sorted(entry) for entry in answer["Entries"]] == [["EventId"], ["ErrorCode", "ErrorMessage"], ["EventId"]]
    stage.house.drain()
    assert stage.received() == [0, 2]


def test_a_detail_that_is_very_deep_is_refused_before_anybody_stumbles_over_it(stage: Stage) -> None:
    machine = stage.machine()
    stage.rule(SHOP, {"Arn": stage.queue(), "InputPath": "$.detail"}, {"Arn": machine, "RoleArn": ROLE})
    taken = []
    for depth in (*range(5, 1000, 10), 100_000):
        entry = {"Source": "shop", "DetailType": "d", "Detail": '{"a":' + "[" * depth + "]" * depth + "}"}
        taken.append("EventId" in stage.events("PutEvents", Entries=[entry])["Entries"][0])
    assert (taken[0], taken[-1]) == (True, False)
    assert taken == sorted(taken, reverse=True)
    stage.house.drain()
    assert stage.rows("bus_events") == stage.rows("deliveries") == 0
    assert len(stage.executions(machine)) == sum(taken)


def test_a_bus_has_rules_of_its_own(stage: Stage) -> None:
    stage.events("CreateEventBus", Name="b")
    stage.rule(SHOP, {"Arn": stage.queue("own")}, bus="b")
    stage.rule(SHOP, {"Arn": stage.queue("default")})
    stage.put({"n": 1}, EventBusName="b")
    stage.put({"n": 2}, EventBusName=f"{BUS}b")
    stage.put({"n": 3}, EventBusName="nobody")
    stage.put({"n": 4}, EventBusName=f"arn:aws:events:eu-west-1:{ACCOUNT}:event-bus/b")
    assert [event["detail"]["n"] for event in stage.received("own")] == [1, 2]
    assert stage.received("default") == []
    no = refused(stage, "DeleteEventBus", Name="b")
    assert (no.code, "rules" in no.message) == ("ValidationException", True)


def test_a_trace_tells_the_whole_story(stage: Stage) -> None:
    machine = stage.machine({"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
    rule = stage.rule(SHOP, {"Arn": machine, "RoleArn": ROLE})
    header = "Root=1-65c3b0a4-0123456789abcdef01234567"
    event = stage.put({"n": 1}, TraceHeader=header)
    (execution,) = stage.executions(machine)
    assert execution["traceHeader"] == header
    (row,) = stage.house.unit(
        lambda tx: tx.all("SELECT source, source_id, target_id, outcome FROM handovers WHERE trace = ?", (header,))
    )
    assert row == (rule, event, execution["executionArn"], "DELIVERED")
    made = stage.put({"n": 2})
    assert made
    assert stage.executions(machine)[1]["traceHeader"].startswith("Root=1-")


# -- targets ------------------------------------------------------------------------------------------------


def test_a_machine_gets_the_event_as_its_input(stage: Stage) -> None:
    machine = stage.machine()
    stage.rule(SHOP, {"Arn": machine, "RoleArn": ROLE}, {"Arn": machine, "RoleArn": ROLE, "Input": '{"constant":1}'})
    event = stage.put({"n": 1})
    first, second = (json.loads(one["input"]) for one in stage.executions(machine))
    assert first["id"] == event
    assert second == {"constant": 1}


def test_an_express_machine_is_started_and_not_waited_for(stage: Stage) -> None:
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E"}}}
    machine = stage.machine(fails, type="EXPRESS")
    stage.rule(SHOP, {"Arn": machine, "RoleArn": ROLE, "DeadLetterConfig": {"Arn": stage.queue()}})
    stage.put()
    stage.house.advance(seconds=5)
    assert stage.received() == []
    assert stage.rows("deliveries") == 0


def test_tasks_are_run_and_get_overrides_only_if_the_target_says_so(stage: Stage) -> None:
    stage.house.call("ecs", "CreateCluster", clusterName="default")
    container = {"name": "main", "image": "job", "memory": 64}
    made = stage.house.call("ecs", "RegisterTaskDefinition", family="job", containerDefinitions=[container])
    cluster = f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/default"
    parameters = {"TaskDefinitionArn": made["taskDefinition"]["taskDefinitionArn"], "TaskCount": 2, "Group": "g"}
    template = {
        "InputPathsMap": {"n": "$.detail.n"},
        "InputTemplate": '{"containerOverrides":[{"name":"main","environment":[{"name":"N","value":"<n>"}]}]}',
    }
    target = {"Arn": cluster, "RoleArn": ROLE, "EcsParameters": parameters}
    stage.rule(SHOP, target, {**target, "InputTransformer": template})
    stage.put({"n": 7})
    arns = stage.house.call("ecs", "ListTasks")["taskArns"]
    tasks = stage.house.call("ecs", "DescribeTasks", tasks=arns)["tasks"]
    environments = sorted(str(one["overrides"]["containerOverrides"][0].get("environment")) for one in tasks)
    assert environments == ["None", "None", *[str([{"name": "N", "value": "7"}])] * 2]
    assert {one["group"] for one in tasks} == {"g"}


def test_an_event_passes_to_another_bus_as_it_is_and_no_further(stage: Stage) -> None:
    for name in ("one", "two"):
        stage.events("CreateEventBus", Name=name)
    stage.rule(SHOP, {"Arn": f"{BUS}one", "RoleArn": ROLE}, {"Arn": stage.queue("zero")})
    dead = {"Arn": stage.queue("dead")}
    stage.rule(SHOP, {"Arn": f"{BUS}two", "DeadLetterConfig": dead}, {"Arn": stage.queue("one")}, bus="one")
    stage.rule(SHOP, {"Arn": stage.queue("two")}, bus="two")
    event = stage.put({"n": 1})
    assert [[one["id"] for one in stage.received(name)] for name in ("zero", "one", "two")] == [[event], [event], []]
    ((body, said),) = stage.received("dead", attributes=True)
    assert (body["id"], said["ERROR_CODE"]) == (event, "THIRD_ACCOUNT_HOP_DETECTED")


def test_two_buses_that_pass_on_to_each_other_come_to_rest(stage: Stage) -> None:
    stage.events("CreateEventBus", Name="one")
    stage.rule(SHOP, {"Arn": f"{BUS}one"})
    stage.rule(SHOP, {"Arn": f"{BUS}default"}, {"Arn": stage.queue()}, bus="one")
    stage.put()
    assert len(stage.received()) == 1
    assert stage.rows("bus_events") == stage.rows("deliveries") == 0


def test_a_bus_takes_deliveries_of_others(stage: Stage) -> None:
    stage.rule(SHOP, {"Arn": stage.queue()})
    target = stage.house.switchboard.targets["events"]
    caller = Caller(ACCOUNT, REGION, "once", "Root=1-65c3b0a4-0123456789abcdef01234567")
    arn = f"{BUS}default"
    given = {"DetailType": "d", "Source": "shop", "Time": 1_775_000_000_000, "Resources": ["arn:s"]}
    made = stage.house.unit(lambda tx: target.deliver(tx, arn, '{"n":1}', None, caller, parameters=given))
    stage.house.drain()
    (event,) = stage.received()
    assert event["id"] == made
    assert (event["detail"], event["time"], event["resources"]) == ({"n": 1}, "2026-03-31T23:33:20Z", ["arn:s"])
    checks: list[tuple[str, dict[str, Any]]] = [(arn, given), (f"{BUS}none", given), (arn, {"Source": "s"})]
    said = stage.house.look(lambda tx: [target.check(tx, *one) for one in checks])
    assert said == [None, f"Event bus {BUS}none does not exist.", f"DetailType is required for events to {arn}."]
    with pytest.raises(DomainError, match="Detail is malformed"):
        stage.house.unit(lambda tx: target.deliver(tx, arn, "[1]", None, caller, parameters=given))


# -- what cannot be delivered -------------------------------------------------------------------------------


def test_a_missing_target_is_a_dead_letter_at_once(stage: Stage) -> None:
    rule = stage.rule(SHOP, {"Arn": GONE, "DeadLetterConfig": {"Arn": stage.queue()}})
    event = stage.put({"n": 1})
    ((body, said),) = stage.received(attributes=True)
    assert (body["id"], body["detail"]) == (event, {"n": 1})
    assert said.pop("ERROR_MESSAGE")
    assert said == {"RULE_ARN": rule, "TARGET_ARN": GONE, "ERROR_CODE": "NO_RESOURCE", "RETRY_ATTEMPTS": "0"}
    assert stage.rows("deliveries") == 0


def test_a_dead_letter_holds_the_event_and_not_what_was_made_of_it(stage: Stage) -> None:
    """User guide, "Using dead-letter queues": "EventBridge sends the events with failed invocations"."""
    stage.rule(SHOP, {"Arn": GONE, "Input": '"constant"', "DeadLetterConfig": {"Arn": stage.queue()}})
    event = stage.put({"n": 1})
    assert [body["id"] for body in stage.received()] == [event]


def test_a_missing_target_without_a_dead_letter_queue_is_in_the_record(stage: Stage) -> None:
    stage.rule(SHOP, {"Arn": GONE}, {"Arn": stage.queue()})
    stage.put({"n": 1})
    assert len(stage.received()) == 1
    outcomes = stage.house.unit(lambda tx: tx.all("SELECT outcome FROM handovers WHERE target = ?", (GONE,)))
    assert any(outcome.startswith("DROPPED") for (outcome,) in outcomes)


def test_what_is_only_busy_is_tried_again_within_the_policy(stage: Stage) -> None:
    class Busy(DomainError):
        code = "ThrottlingException"

    arn = stage.queue("busy")
    target = stage.house.switchboard.targets["sqs"]
    real, tries = target.deliver, []

    def deliver(*_given: Any, **_more: Any) -> str:
        tries.append(stage.house.now)
        raise Busy("slow down")

    policy = {"RetryPolicy": {"MaximumRetryAttempts": 2}, "DeadLetterConfig": {"Arn": stage.queue("dead")}}
    stage.rule(SHOP, {"Arn": arn, **policy})
    target.deliver = deliver  # type: ignore[method-assign]
    stage.put({"n": 1})
    stage.house.advance(hours=1)
    target.deliver = real  # type: ignore[method-assign]
    assert len(tries) == 3
    ((_, said),) = stage.received("dead", attributes=True)
    assert (said["ERROR_CODE"], said["RETRY_ATTEMPTS"]) == ("THROTTLING", "2")
    assert said["EXHAUSTED_RETRY_CONDITION"] == "MaximumRetryAttempts"


def test_a_template_that_makes_no_json_of_an_event_is_a_dead_letter(stage: Stage) -> None:
    """Recorded: the event reaches nobody (test_input_transformer_nested_keys_replacement_not_valid)."""
    template = {"InputPathsMap": {"p": "$.detail"}, "InputTemplate": '{"payload":"<p>"}'}
    stage.rule(
        SHOP, {"Arn": stage.queue(), "InputTransformer": template, "DeadLetterConfig": {"Arn": stage.queue("dead")}}
    )
    event = stage.put({"n": 1})
    assert stage.received() == []
    ((body, said),) = stage.received("dead", attributes=True)
    assert (body["id"], said["ERROR_CODE"]) == (event, "INVALID_JSON")
    assert "without quotes around it" in said["ERROR_MESSAGE"]


# -- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({}, "ValidationException", "EventPattern or ScheduleExpression must be specified"),
        ({"EventPattern": "{}"}, "InvalidEventPatternException", "Event pattern is not valid. Reason: "),
        ({"ScheduleExpression": "at(2030-01-01T00:00:00)"}, "ValidationException", "ScheduleExpression is not valid."),
        ({"EventPattern": '{"source":["s"]}', "EventBusName": "none"}, "ResourceNotFoundException", "Event bus none does not exist."),
    ],
)  # fmt: skip
def test_a_rule_that_makes_no_sense(stage: Stage, given: dict[str, Any], code: str, words: str) -> None:
    no = refused(stage, "PutRule", Name="r", **given)
    assert (no.code, words in no.message) == (code, True), no.message
    assert stage.events("ListRules") == {"Rules": []}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"Arn": GONE, "Input": "{"}, "JSON syntax error in input for target t"),
        ({"Arn": GONE, "InputPath": "detail"}, "Invalid InputPath for target t"),
        ({"Arn": GONE, "InputTransformer": {"InputTemplate": "{<aws.events.rule-name>}"}}, "Invalid InputTemplate for target t"),
        ({"Arn": GONE, "InputTransformer": {"InputTemplate": "<aws.events.rule>"}}, "invalid placeholder aws.events.rule"),
        ({"Arn": GONE, "InputTransformer": {"InputPathsMap": {"a": "a"}, "InputTemplate": "<a>"}}, "Invalid InputPathsMap for target t"),
        ({"Arn": GONE, "InputTransformer": {"InputPathsMap": {"aws.x": "$.a"}, "InputTemplate": "x"}}, "the name aws.x is reserved"),
        ({"Arn": GONE, "DeadLetterConfig": {"Arn": f"{GONE}.fifo"}}, "must be the ARN of a standard SQS queue"),
        ({"Arn": f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:m"}, "RoleArn is required for target"),
        ({"Arn": f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/c", "RoleArn": ROLE}, "EcsParameters is required for target"),
        ({"Arn": f"{BUS}default", "InputPath": "$.detail"}, "leave out Input, InputPath and InputTransformer"),
    ],
)  # fmt: skip
def test_a_target_that_makes_no_sense(stage: Stage, target: dict[str, Any], words: str) -> None:
    stage.rule(SHOP)
    no = refused(stage, "PutTargets", Rule="r", Targets=[{"Id": "t", **target}])
    assert (no.code, words in no.message) == ("ValidationException", True), no.message
    assert stage.events("ListTargetsByRule", Rule="r") == {"Targets": []}


@pytest.mark.parametrize(
    "arn",
    [
        *(f"arn:aws:{one}:{REGION}:{ACCOUNT}:x" for one in ("lambda", "sns", "logs", "firehose", "events")),
        f"arn:aws:sqs:{REGION}:{ACCOUNT}:x.fifo",
        "x",
    ],
)
def test_what_no_room_takes_is_a_failed_entry_and_the_others_stand(stage: Stage, arn: str) -> None:
    stage.rule(SHOP)
    queue = stage.queue()
    targets = [{"Id": "a", "Arn": arn}, {"Id": "b", "Arn": queue}]
    put = stage.events("PutTargets", Rule="r", Targets=targets)
    (failed,) = put["FailedEntries"]
    assert (put["FailedEntryCount"], failed["TargetId"]) == (1, "a")
    assert (
        "is not offered here. Offered are standard SQS queues, Step Functions state machines, "
        in failed["ErrorMessage"]
    )
    assert [one["Id"] for one in stage.events("ListTargetsByRule", Rule="r")["Targets"]] == ["b"]


def test_an_escaped_placeholder_is_warned_about(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    template = '{"rule":"\\u003caws.events.rule-name\\u003e"}'
    stage.rule(SHOP, {"Arn": stage.queue(), "InputTransformer": {"InputTemplate": template}})
    assert "<aws.events.rule-name> escaped" in caplog.text
    stage.put()
    assert stage.received() == [{"rule": "<aws.events.rule-name>"}]


def test_quotas() -> None:
    with_two = Stage(quotas={"event_rules": 2, "event_buses": 1})
    with_two.rule(SHOP, name="a")
    with_two.rule(SHOP, name="b")
    with_two.rule({"source": ["x"]}, name="b")  # no new one
    assert refused(with_two, "PutRule", Name="c", EventPattern='{"source":["s"]}').code == "LimitExceededException"
    with_two.events("CreateEventBus", Name="b")
    assert refused(with_two, "CreateEventBus", Name="c").code == "LimitExceededException"
    with_two.house.close()


def test_put_rule_forgets_what_is_left_out(stage: Stage) -> None:
    stage.rule(SHOP, {"Arn": stage.queue()}, Description="d", RoleArn=ROLE, Tags=[{"Key": "k", "Value": "v"}])
    arn = stage.events("PutRule", Name="r", EventPattern='{"source":["other"]}', State="DISABLED")["RuleArn"]
    described = stage.events("DescribeRule", Name="r")
    assert set(described) == {"Name", "Arn", "EventPattern", "State", "EventBusName", "CreatedBy"}
    assert described["State"] == "DISABLED"
    assert len(stage.events("ListTargetsByRule", Rule="r")["Targets"]) == 1
    assert stage.events("ListTagsForResource", ResourceARN=arn) == {"Tags": [{"Key": "k", "Value": "v"}]}


def test_a_template_that_makes_too_much_of_an_event_is_given_up_at_once(stage: Stage) -> None:
    """2,000 times 250 KB would be half a gigabyte, made in a unit that holds up everybody."""
    dead = stage.queue("dead")
    target = {"Arn": stage.queue(), "DeadLetterConfig": {"Arn": dead}}
    transformer = {"InputPathsMap": {"a": "$.detail.a"}, "InputTemplate": "<a>" * 2_000}
    stage.rule({"source": ["shop"]}, {**target, "InputTransformer": transformer})
    small, large = "x" * 100, "x" * 250_000
    stage.put({"a": small})
    stage.put({"a": large})
    assert stage.received() == [small * 2_000]
    [(event, said)] = stage.received("dead", attributes=True)
    assert event["detail"] == {"a": large}, "the event itself, so nothing is lost"
    assert said["ERROR_CODE"] == "INVALID_JSON"
    assert "more than 1,048,576 characters" in said["ERROR_MESSAGE"]
