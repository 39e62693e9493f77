"""Enrichment: a batch goes through an Express machine or an API destination before its target. Real queues and machines."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services.pipes.errors import ValidationException
from tasuki.services.pipes.naming import TAG
from tasuki.values.errors import DomainError
from tests.services.pipes.workshop import BUS, DESTINATION, SINK, Workshop

BODIES = {"InputTemplate": "<$.body>"}
IDS: dict[str, Any] = {"Parameters": {"ids.$": "$[*].id"}}
FAIL = {"Type": "Fail", "Error": "E", "Cause": "C"}
FIRE = {"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}}


class Refused(DomainError):
    code = "Refused"


@pytest.fixture
def shop() -> Iterator[Workshop]:
    made = Workshop()
    with made.house:
        yield made


def waiting(seconds: int, then: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"W": {"Type": "Wait", "Seconds": seconds, "Next": "T"}, "T": then or {"Type": "Succeed"}}


# -- what goes in and comes out ------------------------------------------------------------------------------


def test_records_go_in_as_an_array_and_what_comes_out_replaces_them(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.answering())
    sent = shop.send({"n": 1}, {"n": 2})
    assert sorted(record["messageId"] for record in shop.bodies()) == sorted(sent)
    assert shop.counts() == (0, 0)
    assert shop.outcomes() == ["DELIVERED", "DELIVERED"]
    assert shop.rows("pipe_calls") == shop.rows("timers") == shop.rows("express") == 0


def test_templates_before_and_after(shop: Workshop) -> None:
    enrichment = shop.answering(Parameters={"total.$": "States.ArrayLength($)", "first.$": "$[0]"})
    shop.pipe(
        SINK,
        Enrichment=enrichment,
        EnrichmentParameters={"InputTemplate": '{"id": <$.body.id>, "e": "<aws.pipes.enrichment-arn>"}'},
        TargetParameters={
            "InputTemplate": "<$.total> of them, the first is <$.first.id> <$.first.e> <aws.pipes.pipe-name>"
        },
    )
    shop.send({"id": "a"})
    (message,) = shop.sink()
    assert message["Body"] == f"1 of them, the first is a {enrichment} p"


def test_each_template_has_its_own_ingestion_time(shop: Workshop) -> None:
    shop.pipe(
        SINK,
        Enrichment=shop.machine(waiting(10)),
        EnrichmentParameters={"InputTemplate": '{"in": <aws.pipes.event.ingestion-time>}'},
        TargetParameters={"InputTemplate": '{"before": <$.in>, "after": <aws.pipes.event.ingestion-time>}'},
    )
    shop.send("a")
    shop.house.advance(seconds=10)
    (times,) = shop.bodies()
    assert times["before"][:19] < times["after"][:19]


def test_a_record_that_is_passed_through_is_still_looked_into(shop: Workshop) -> None:
    shop.pipe(
        SINK,
        Enrichment=shop.answering(),
        TargetParameters={"InputTemplate": "<$.body.id>", "SqsQueueParameters": {"MessageGroupId": "$.body.tenant"}},
    )
    shop.send({"id": "a", "tenant": "t"})
    (message,) = shop.sink()
    assert (message["Body"], message["Attributes"]["MessageGroupId"]) == ("a", "t")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([{"a": 1}], [{"a": 1}]),
        ([1, "two", {"three": 3}], [1, "two", {"three": 3}]),
        ({"a": 1}, [{"a": 1}]),
        ([{}], [{}]),
        ([[]], [[]]),
        (0, [0]),
        (False, [False]),
        # nothing: the target isn't invoked, and the batch counts as done
        ("", []),
        ({}, []),
        ([], []),
        (None, []),
    ],
)
def test_what_an_answer_is_made_of(shop: Workshop, answer: Any, expected: list[Any]) -> None:
    shop.pipe(SINK, Enrichment=shop.answering(Result=answer))
    shop.send("a", "b")
    told = [message["Body"] for message in shop.sink()]
    assert [text if text == "two" else json.loads(text) for text in told] == expected
    assert shop.counts() == (0, 0)
    assert shop.outcomes() == (["DELIVERED"] * 2 if expected else ["FILTERED"] * 2)
    done = shop.counters()
    assert (done["delivered"], done["filtered"], done["failed"]) == ((2, 0, 0) if expected else (0, 2, 0))


def test_a_machine_gets_what_the_enrichment_made_as_one_array(shop: Workshop) -> None:
    target = shop.machine({"P": {"Type": "Succeed"}}, "STANDARD", "target")
    shop.pipe(target, Enrichment=shop.answering(Result=[{"a": 1}, {"b": 2}, {"c": 3}]), TargetParameters=FIRE)
    shop.send("x", "y")
    (run,) = shop.house.call("stepfunctions", "ListExecutions", stateMachineArn=target)["executions"]
    described = shop.house.call("stepfunctions", "DescribeExecution", executionArn=run["executionArn"])
    assert json.loads(described["input"]) == [{"a": 1}, {"b": 2}, {"c": 3}]
    handed = shop.house.call("tasuki", "ListHandovers", MaxResults=10)["Handovers"]
    assert {entry["ExecutionArn"] for entry in handed} == {run["executionArn"]}


def test_more_events_than_the_target_takes_fail_the_batch(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.answering(Result=list(range(11))))
    shop.send("a")
    assert shop.sink() == []
    assert shop.counts() == (0, 1)
    assert shop.outcomes() == ["FAILED: BadAnswer: the enrichment answered 11 events, and a queue takes 10 at a time"]


def test_a_filter_comes_before_the_enrichment(shop: Workshop) -> None:
    source = {"FilterCriteria": {"Filters": [{"Pattern": '{"body":{"v":[1]}}'}]}}
    shop.pipe(SINK, source=source, Enrichment=shop.answering(), EnrichmentParameters=BODIES)
    shop.send({"v": 1}, {"v": 2})
    assert shop.bodies() == [{"v": 1}]
    assert shop.outcomes() == ["DELIVERED", "FILTERED"]


# -- failures -----------------------------------------------------------------------------------------------


def test_an_enrichment_that_fails_leaves_the_whole_batch(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.machine({"F": FAIL}))
    shop.send("a", "b")
    assert shop.counts() == (0, 2)
    assert shop.outcomes() == ["FAILED: the execution ended with FAILED: E: C"] * 2
    shop.house.advance(seconds=30)
    assert len(shop.outcomes()) == 4  # the enrichment is run again, for all
    assert shop.sink() == []


def test_a_target_that_refuses_one_event_leaves_the_whole_batch_and_keeps_nothing(shop: Workshop) -> None:
    shop.events.refuse = lambda payload: Refused("no") if "bad" in payload else None
    shop.pipe(BUS, Enrichment=shop.answering(), EnrichmentParameters={"InputTemplate": '{"b": <$.body>}'})
    shop.send("good", "bad", "fine")
    assert shop.given() == []
    assert shop.counts() == (0, 3)
    assert shop.outcomes() == ["FAILED: Refused: no"] * 3
    shop.events.refuse = lambda _payload: None
    shop.house.advance(seconds=31)
    assert len(shop.given()) == 3
    assert shop.counts() == (0, 0)


def test_a_path_that_finds_nothing_in_the_answer_leaves_the_batch(shop: Workshop) -> None:
    shop.pipe(
        SINK, Enrichment=shop.answering(), TargetParameters={"SqsQueueParameters": {"MessageGroupId": "$.tenant"}}
    )
    shop.send("a")
    assert "$.tenant leads nowhere in this event" in shop.outcomes()[0]
    assert shop.counts() == (0, 1)


def test_messages_stay_hidden_while_the_enrichment_takes_longer_than_the_visibility(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.machine(waiting(250)))
    shop.send("a")
    shop.house.advance(seconds=249)
    assert shop.rows("pipe_calls") == 1
    assert shop.counts() == (0, 1)
    shop.house.advance(seconds=1)
    assert len(shop.sink()) == 1
    assert shop.counts() == (0, 0)


def test_one_pass_takes_five_minutes_enrichment_and_target_together(shop: Workshop) -> None:
    target = shop.machine(waiting(200), name="slow")
    shop.pipe(target, Enrichment=shop.machine(waiting(200)))
    shop.send("a")
    shop.house.advance(seconds=299)
    assert shop.outcomes() == []
    shop.house.advance(seconds=1)
    (outcome,) = shop.outcomes()
    assert outcome == f"FAILED: Target {target} was not done within the 5 minutes that a batch may take"
    shop.house.advance(seconds=1)
    assert shop.rows("pipe_calls") == 1  # again, from the beginning
    shop.house.advance(seconds=100)  # the first target's end is nobody's any more
    assert shop.outcomes() == [outcome]


def test_after_a_failure_messages_go_to_the_dead_letter_queue_of_the_source(shop: Workshop) -> None:  # PF-40
    redrive = json.dumps({"deadLetterTargetArn": SINK, "maxReceiveCount": 2})
    shop.house.call("sqs", "SetQueueAttributes", QueueUrl=shop.url, Attributes={"RedrivePolicy": redrive})
    shop.pipe(BUS, Enrichment=shop.machine({"F": FAIL}))
    (sent,) = shop.send("a")
    shop.house.advance(minutes=5)
    assert [message["MessageId"] for message in shop.sink()] == [sent]
    assert len(shop.outcomes()) == 2


# -- targets that are waited for, too -----------------------------------------------------------------------


def test_a_target_that_is_waited_for_after_the_enrichment(shop: Workshop) -> None:
    named = {"batchItemFailures": [{"itemIdentifier.$": "$[0].messageId"}]}
    target = shop.machine({"P": {"Type": "Pass", "Parameters": named, "End": True}}, name="target")
    shop.pipe(target, Enrichment=shop.answering())
    shop.send("a", "b", "c")
    assert shop.counts() == (0, 1)
    assert [outcome.partition(":")[0] for outcome in shop.outcomes()] == ["DELIVERED", "DELIVERED", "FAILED"]
    assert shop.rows("pipe_calls") == shop.rows("timers") == 0


def test_a_destination_before_and_a_destination_behind(shop: Workshop) -> None:
    path = {"HttpParameters": {"PathParameterValues": ["$.body.zip"]}}
    after = {"HttpParameters": {"PathParameterValues": ["$.city"]}, "InputTemplate": '{"c": <$.city>}'}
    shop.pipe(DESTINATION, 1, Enrichment=DESTINATION, EnrichmentParameters=path, TargetParameters=after)
    shop.send({"zip": "98101"})
    (asked,) = shop.given()
    assert asked.parameters == {"PathParameterValues": ["98101"]}
    assert json.loads(asked.payload)["body"] == '{"zip": "98101"}'
    shop.finish(asked.watcher, {"Status": 200, "Body": '{"city": "Seattle"}'})
    (_, told) = shop.given()
    assert told.parameters == {"PathParameterValues": ["Seattle"]}
    assert told.payload == '{"c": "Seattle"}'
    assert shop.counts() == (0, 1)
    shop.finish(told.watcher, {"Status": 200, "Body": ""})
    assert shop.counts() == (0, 0)
    assert shop.outcomes() == ["DELIVERED"]


@pytest.mark.parametrize(("body", "expected"), [("words", "words"), ("", None), ('[{"a": 1}]', '{"a":1}')])
def test_what_a_destination_answers_is_the_event(shop: Workshop, body: str, expected: str | None) -> None:
    shop.pipe(SINK, 1, Enrichment=DESTINATION)
    shop.send("a")
    (asked,) = shop.given()
    shop.finish(asked.watcher, {"Status": 200, "Body": body})
    assert [message["Body"] for message in shop.sink()] == ([expected] if expected is not None else [])
    assert shop.counts() == (0, 0)


def test_an_execution_s_name_is_of_the_message_and_a_second_one_is_a_duplicate(shop: Workshop) -> None:
    target = shop.machine({"P": {"Type": "Succeed"}}, "STANDARD", "target")
    shop.pipe(target, 1, Enrichment=shop.answering(Result=[{"x": 1}]), TargetParameters=FIRE, Tags={TAG: "$.body.id"})
    shop.send({"id": "j1"})
    shop.send({"id": "j1"})
    (run,) = shop.house.call("stepfunctions", "ListExecutions", stateMachineArn=target)["executions"]
    assert run["name"] == "j1"
    assert shop.outcomes() == ["DELIVERED", "DUPLICATE"]
    assert shop.counts() == (0, 0)


def test_a_cause_with_a_zero_byte_is_told_as_it_is(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.machine({"F": {**FAIL, "Cause": "a\0b"}}))
    shop.send("a")
    assert shop.describe()["StateReason"].endswith("a\0b")
    assert [outcome.endswith("a\0b") for outcome in shop.outcomes()] == [True]


# -- stopped, changed, deleted meanwhile ---------------------------------------------------------------------


def test_a_stopped_pipe_is_stopping_until_what_is_on_its_way_has_arrived(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.machine(waiting(10)))
    shop.send("a")
    assert shop.house.call("pipes", "StopPipe", Name="p")["CurrentState"] == "STOPPING"
    shop.send("b")
    for _ in range(2):
        assert shop.describe()["CurrentState"] == "STOPPING"
        assert shop.house.call("pipes", "ListPipes", CurrentState="STOPPING")["Pipes"][0]["Name"] == "p"
        assert shop.house.call("pipes", "StopPipe", Name="p")["CurrentState"] == "STOPPING"
    shop.house.advance(seconds=10)
    assert shop.describe()["CurrentState"] == "STOPPED"
    assert shop.house.call("pipes", "ListPipes", CurrentState="STOPPING")["Pipes"] == []
    assert [record["body"] for record in shop.bodies()] == ["a"]
    assert shop.counts() == (1, 0)  # nothing new was taken
    shop.house.call("pipes", "StartPipe", Name="p")
    shop.house.advance(seconds=10)
    assert [record["body"] for record in shop.bodies()] == ["b"]
    assert shop.counts() == (0, 0)


def test_a_pipe_started_while_it_stops_goes_on(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.machine(waiting(10)))
    shop.send("a")
    for operation in ("StopPipe", "StartPipe"):
        shop.house.call("pipes", operation, Name="p")
    assert shop.describe()["CurrentState"] == "RUNNING"
    shop.send("b")
    shop.house.advance(seconds=10)
    assert sorted(record["body"] for record in shop.bodies()) == ["a", "b"]


def test_a_batch_ends_as_it_began_though_its_pipe_was_changed(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.machine(waiting(10)), TargetParameters={"InputTemplate": "old <$.body>"})
    shop.send("a")
    shop.update(Enrichment="", Target=BUS, TargetParameters={"InputTemplate": '{"new": <$.body>}'})
    assert "EnrichmentParameters" not in shop.describe()
    shop.house.advance(seconds=10)
    assert [message["Body"] for message in shop.sink()] == ["old a"]
    shop.send("b")
    assert [given.payload for given in shop.given()] == ['{"new": "b"}']
    assert shop.counts() == (0, 0)


def test_a_deleted_pipe_s_batch_ends_as_it_began(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.machine(waiting(10)))
    shop.send("a")
    shop.house.call("pipes", "DeletePipe", Name="p")
    shop.house.advance(seconds=10)
    assert [record["body"] for record in shop.bodies()] == ["a"]
    assert shop.counts() == (0, 0)
    assert shop.rows("pipe_calls") == shop.rows("timers") == 0


@pytest.mark.parametrize("target", [SINK, "slow"])
def test_a_new_pipe_has_nothing_to_do_with_what_an_old_one_left_on_its_way(shop: Workshop, target: str) -> None:
    if target == "slow":
        target = shop.machine(waiting(5), name="slow")
    enrichment = shop.machine(waiting(10))
    shop.pipe(target, Enrichment=enrichment)
    shop.send("a")
    shop.house.call("pipes", "DeletePipe", Name="p")
    shop.pipe(target, Enrichment=enrichment, DesiredState="STOPPED")
    assert shop.describe()["CurrentState"] == "STOPPED"
    shop.house.advance(seconds=10)
    assert shop.describe()["CurrentState"] == "STOPPED"
    shop.house.advance(seconds=5)
    assert shop.outcomes() == ["DELIVERED"]
    assert shop.counters() == {"delivered": 0, "duplicates": 0, "filtered": 0, "failed": 0}


def test_a_source_that_is_deleted_meanwhile_loses_the_batch_and_harms_nobody(shop: Workshop) -> None:
    shop.pipe(SINK, Enrichment=shop.machine(waiting(10)))
    shop.send("a")
    shop.house.call("sqs", "DeleteQueue", QueueUrl=shop.url)
    shop.house.advance(seconds=10)
    assert len(shop.sink()) == 1
    assert shop.rows("pipe_calls") == 0


def test_update_of_an_enrichment_s_parameters(shop: Workshop) -> None:
    shop.pipe(
        SINK,
        1,
        Enrichment=DESTINATION,
        EnrichmentParameters={"HttpParameters": {"HeaderParameters": {"a": "b"}}, **BODIES},
    )
    shop.update(EnrichmentParameters={"HttpParameters": {"QueryStringParameters": {"q": "1"}}})
    http = {"QueryStringParameters": {"q": "1"}}
    assert shop.describe()["EnrichmentParameters"] == {"HttpParameters": http, **BODIES}
    shop.update(EnrichmentParameters={"InputTemplate": ""})
    assert shop.describe()["EnrichmentParameters"] == {"HttpParameters": http}
    machine = shop.answering()
    shop.update(Enrichment=machine, EnrichmentParameters=BODIES)
    assert shop.describe()["EnrichmentParameters"] == BODIES
    assert shop.describe()["Enrichment"] == machine
    shop.update(Enrichment="")
    assert shop.describe()["Enrichment"] == ""
    assert "EnrichmentParameters" not in shop.describe()


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("enrichment", "batch", "parameters", "why"),
    [
        ("arn:aws:lambda:us-east-1:000000000000:function:f", 1, {}, ("Enrichment", "EXPRESS state machines and API")),
        (BUS, 1, {}, ("Enrichment", "no enrichment that this Tasuki offers")),
        (SINK, 1, {}, ("Enrichment", "no enrichment that this Tasuki offers")),
        (
            DESTINATION,
            2,
            {},
            ("SourceParameters.SqsQueueParameters.BatchSize", "an API destination as Enrichment takes one"),
        ),
        ("STANDARD", 1, {}, ("Enrichment", "must be of type EXPRESS")),
        ("arn:aws:states:us-east-1:000000000000:stateMachine:none", 1, {}, ("Enrichment", "Does Not Exist")),
        (
            "EXPRESS",
            1,
            {"HttpParameters": {"PathParameterValues": ["x"]}},
            ("EnrichmentParameters.HttpParameters", "don't fit"),
        ),
        (
            "EXPRESS",
            1,
            {"InputTemplate": "<aws.pipes.x>"},
            ("EnrichmentParameters.InputTemplate", "<aws.pipes.x> is not"),
        ),
        (
            "EXPRESS",
            1,
            {"InputTemplate": "x" * 8193},
            ("EnrichmentParameters.InputTemplate", "less than or equal to 8192"),
        ),
        ("", 1, BODIES, ("EnrichmentParameters", "no Enrichment")),
    ],
)
def test_refused(shop: Workshop, enrichment: str, batch: int, parameters: dict[str, Any], why: tuple[str, str]) -> None:
    if enrichment in {"STANDARD", "EXPRESS"}:
        enrichment = shop.machine({"P": {"Type": "Succeed"}}, enrichment)
    with pytest.raises(ValidationException) as refused:
        shop.pipe(SINK, batch, Enrichment=enrichment, EnrichmentParameters=parameters)
    (entry,) = refused.value.fields["fieldList"]
    assert entry["name"] == why[0]
    assert why[1] in entry["message"]
    assert shop.house.call("pipes", "ListPipes")["Pipes"] == []
