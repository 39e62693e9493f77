"""Queues, clusters, buses and API destinations as targets: what they are given, and whose failure is whose."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services.pipes.errors import ValidationException
from tasuki.services.pipes.naming import TAG
from tasuki.values.errors import DomainError
from tests.services.pipes.workshop import BUS, CLUSTER, DESTINATION, SINK, Workshop

TASK = {"EcsTaskParameters": {"TaskDefinitionArn": "arn:aws:ecs:us-east-1:000000000000:task-definition/t"}}


class Refused(DomainError):
    code = "Refused"


@pytest.fixture
def shop() -> Iterator[Workshop]:
    made = Workshop()
    with made.house:
        yield made


def refuse(shop: Workshop, word: str) -> None:
    shop.events.refuse = lambda payload: Refused("no") if word in payload else None


# -- queues -------------------------------------------------------------------------------------------------


def test_a_queue_gets_each_record_as_a_message_under_its_trace(shop: Workshop) -> None:
    shop.pipe(SINK)
    sent = shop.send('{"v":1}', "plain")
    messages = shop.sink()
    records = [json.loads(message["Body"]) for message in messages]
    assert sorted(record["messageId"] for record in records) == sorted(sent)
    assert {record["body"] for record in records} == {'{"v":1}', "plain"}
    traces = {message["Attributes"]["AWSTraceHeader"] for message in messages}
    handed = shop.house.call("tasuki", "ListHandovers", MaxResults=10)["Handovers"]
    assert traces == {handover["Trace"] for handover in handed}
    assert {handover["ExecutionArn"] for handover in handed} == {message["MessageId"] for message in messages}
    assert shop.counts() == (0, 0)


@pytest.mark.parametrize(
    ("template", "body", "expected"),
    [
        ("order <$.body.id> of <$.messageId>", {"id": 7}, "order 7 of {id}"),
        ("<$.body.name>", {"name": 'a "b"'}, 'a "b"'),
        ("<$.body>", "plain words", "plain words"),
        ("<$.body>", {"a": [1]}, '{"a":[1]}'),
        ('{"id": <$.body.id>}', {"id": "x"}, '{"id": "x"}'),
    ],
)
def test_a_template_that_yields_text_is_sent_as_the_text(
    shop: Workshop, template: str, body: Any, expected: str
) -> None:
    shop.pipe(SINK, TargetParameters={"InputTemplate": template})
    (sent,) = shop.send(body)
    (message,) = shop.sink()
    assert message["Body"] == expected.replace("{id}", sent)


def test_a_group_by_a_path_and_a_message_that_has_none_there(shop: Workshop) -> None:
    shop.pipe(SINK, TargetParameters={"SqsQueueParameters": {"MessageGroupId": "$.body.tenant"}})
    shop.send({"tenant": "t1"}, {"tenant": 2}, {"other": 3})
    assert sorted(message["Attributes"]["MessageGroupId"] for message in shop.sink()) == ["2", "t1"]
    assert shop.counts() == (0, 1)
    assert shop.counters() == {"delivered": 2, "duplicates": 0, "filtered": 0, "failed": 1}
    where = "TargetParameters.SqsQueueParameters.MessageGroupId"
    assert shop.describe()["StateReason"].endswith(f"{where}: $.body.tenant leads nowhere in this event")


def test_what_the_queue_does_not_take_stays_and_the_others_go(shop: Workshop) -> None:
    """PF-40: the message that failed is left as received, and comes back after the queue's visibility timeout."""
    shop.house.call("sqs", "SetQueueAttributes", QueueUrl=shop.sink_url, Attributes={"MaximumMessageSize": "1024"})
    shop.pipe(SINK, TargetParameters={"InputTemplate": "<$.body>"})
    shop.send("x" * 10, "y" * 2_000, "z" * 10)
    assert sorted(message["Body"] for message in shop.sink()) == ["x" * 10, "z" * 10]
    assert shop.counts() == (0, 1)
    assert [outcome.partition(":")[0] for outcome in shop.outcomes()] == ["DELIVERED", "DELIVERED", "FAILED"]
    shop.house.advance(seconds=29)
    assert shop.counts() == (0, 1)
    shop.house.call("sqs", "SetQueueAttributes", QueueUrl=shop.sink_url, Attributes={"MaximumMessageSize": "4096"})
    shop.house.advance(seconds=1)
    assert "y" * 2_000 in {message["Body"] for message in shop.sink()}
    assert shop.counts() == (0, 0)


# -- buses --------------------------------------------------------------------------------------------------


def test_a_bus_gets_each_record_with_what_aws_says_by_default(shop: Workshop) -> None:
    shop.pipe(BUS)
    (sent,) = shop.send({"v": 1})
    (given,) = shop.given()
    assert given.arn == BUS
    assert json.loads(given.payload)["messageId"] == sent
    assert given.parameters == {"DetailType": "Event from aws:sqs", "Source": "Pipe p"}
    assert given.watcher is None


def test_a_bus_gets_what_the_parameters_say_of_each_event(shop: Workshop) -> None:
    own = {"DetailType": "$.body.type", "Source": "shop", "Resources": ["$.body.arn"], "Time": "$.body.at"}
    shop.pipe(BUS, TargetParameters={"EventBridgeEventBusParameters": own, "InputTemplate": '{"id": <$.body.id>}'})
    shop.send({"type": "Paid", "arn": "arn:x", "at": "1970-01-01T00:00:01Z", "id": 5})
    (given,) = shop.given()
    assert given.payload == '{"id": 5}'
    assert given.parameters == {"DetailType": "Paid", "Source": "shop", "Resources": ["arn:x"], "Time": 1000}


def test_only_failed_events_stay_and_what_they_wrote_is_undone(shop: Workshop) -> None:
    refuse(shop, "bad")
    shop.pipe(BUS, TargetParameters={"InputTemplate": '{"b": <$.body>}'})
    shop.send("good", "bad", "fine")
    assert [given.payload for given in shop.given()] == ['{"b": "good"}', '{"b": "fine"}']
    assert shop.counts() == (0, 1)
    refuse(shop, "nothing")
    shop.house.advance(seconds=30)
    assert [given.payload for given in shop.given()][2:] == ['{"b": "bad"}']
    assert shop.counts() == (0, 0)


# -- clusters -----------------------------------------------------------------------------------------------


def test_a_task_is_run_for_each_message_with_its_words(shop: Workshop) -> None:
    overrides = {"ContainerOverrides": [{"Name": "app", "Environment": [{"name": "JOB", "value": "$.body.id"}]}]}
    shop.pipe(CLUSTER, 1, TargetParameters={"EcsTaskParameters": {**TASK["EcsTaskParameters"], "Overrides": overrides}})
    shop.send({"id": "j1"}, {"id": "j2"})
    given = shop.tasks.given(shop.house)
    told = [one.parameters["Overrides"]["ContainerOverrides"][0] for one in given]
    assert told == [{"Name": "app", "Environment": [{"Name": "JOB", "Value": job}]} for job in ("j1", "j2")]
    assert {one.parameters["TaskDefinition"] for one in given} == {TASK["EcsTaskParameters"]["TaskDefinitionArn"]}
    assert shop.counts() == (0, 0)


def test_a_task_definition_by_a_path_is_checked_when_the_message_comes(shop: Workshop) -> None:
    shop.tasks.gone = "the task definition $.body.td does not exist"
    shop.pipe(CLUSTER, 1, TargetParameters={"EcsTaskParameters": {"TaskDefinitionArn": "$.body.td"}})
    shop.send({"td": "t:3"})
    assert [one.parameters["TaskDefinition"] for one in shop.tasks.given(shop.house)] == ["t:3"]


# -- API destinations ---------------------------------------------------------------------------------------


HTTP = {
    "HttpParameters": {
        "PathParameterValues": ["$.body.zip"],
        "HeaderParameters": {"X-Tenant": "$.body.tenant"},
        "QueryStringParameters": {"q": "fixed"},
    }
}


def test_a_destination_is_called_and_waited_for(shop: Workshop) -> None:
    shop.pipe(DESTINATION, 1, TargetParameters={**HTTP, "InputTemplate": '{"z": <$.body.zip>}'})
    shop.send({"zip": 98101, "tenant": "t"})
    (given,) = shop.given()
    assert given.payload == '{"z": 98101}'
    assert given.parameters == {
        "PathParameterValues": ["98101"],
        "HeaderParameters": {"X-Tenant": "t"},
        "QueryStringParameters": {"q": "fixed"},
    }
    assert shop.counts() == (0, 1)
    assert shop.outcomes() == []
    shop.finish(given.watcher, {"Status": 200, "Body": "ok"})
    assert shop.counts() == (0, 0)
    assert shop.outcomes() == ["DELIVERED"]


@pytest.mark.parametrize(
    ("body", "is_done"),
    [
        ("", True),
        ("null", True),
        ("{}", True),
        ("ok", True),
        ('{"batchItemFailures": []}', True),
        ('{"batchItemFailures": null}', True),
        ('{"batchItemFailures": [{"itemIdentifier": "ID"}]}', False),
        ('{"batchItemFailures": [{"itemIdentifier": ""}]}', False),
        ('{"batchItemFailures": [{"itemIdentifier": null}]}', False),
        ('{"batchItemFailures": [{"id": "ID"}]}', False),
        ('{"batchItemFailures": [{"itemIdentifier": "other"}]}', False),
        ('{"batchItemFailures": ', False),
    ],
)
def test_what_a_destination_says_of_the_message(shop: Workshop, body: str, is_done: bool) -> None:
    shop.pipe(DESTINATION, 1)
    (sent,) = shop.send("a")
    (given,) = shop.given()
    shop.finish(given.watcher, {"Status": 200, "Body": body.replace("ID", sent)})
    assert shop.counts() == (0, 0 if is_done else 1)
    assert shop.rows("pipe_calls") == 0
    assert shop.outcomes()[0].startswith("DELIVERED" if is_done else "FAILED: ")


def test_a_call_that_failed_leaves_the_message(shop: Workshop) -> None:
    shop.pipe(DESTINATION, 1)
    shop.send("a")
    (given,) = shop.given()
    shop.finish(given.watcher, {"Status": 503, "Body": "busy"}, succeeded=False)
    assert shop.outcomes() == ["FAILED: the call ended with 503: busy"]
    shop.house.advance(seconds=29)
    assert len(shop.given()) == 1
    shop.house.advance(seconds=1)
    assert len(shop.given()) == 2


@pytest.mark.parametrize("members", [{}, {"Enrichment": DESTINATION}])
def test_half_an_answer_says_nothing(shop: Workshop, members: dict[str, Any]) -> None:
    shop.pipe(DESTINATION, 1, **members)
    shop.send("a")
    (given,) = shop.given()
    shop.finish(given.watcher, {"Status": 200, "Body": "[1, 2", "Truncated": True})
    assert shop.outcomes() == ["FAILED: the response is larger than an API destination may answer"]
    assert shop.counts() == (0, 1)


def test_an_end_that_is_told_twice_or_too_late_changes_nothing(shop: Workshop) -> None:
    shop.pipe(DESTINATION, 1)
    shop.send("a")
    shop.house.advance(minutes=5)
    (first, *_) = shop.given()
    assert len(shop.outcomes()) == 1
    assert "was not done within the 5 minutes" in shop.outcomes()[0]
    for _ in range(2):
        shop.finish(first.watcher, {"Status": 200, "Body": ""})
    assert len(shop.outcomes()) == 1
    shop.house.advance(seconds=1)
    assert shop.rows("timers") == shop.rows("pipe_calls") == 1  # the second try


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "batch", "members", "why"),
    [
        (
            SINK,
            11,
            {},
            ("SourceParameters.SqsQueueParameters.BatchSize", "at most 10 events at a time"),
        ),
        (
            BUS,
            11,
            {},
            ("SourceParameters.SqsQueueParameters.BatchSize", "at most 10 events at a time"),
        ),
        (
            CLUSTER,
            2,
            {"TargetParameters": TASK},
            ("SourceParameters.SqsQueueParameters.BatchSize", "set BatchSize to 1."),
        ),
        (
            DESTINATION,
            10,
            {},
            ("SourceParameters.SqsQueueParameters.BatchSize", "set BatchSize to 1."),
        ),
        (
            SINK + ".fifo",
            1,
            {},
            ("Target", "FIFO queue, which this Tasuki doesn't offer yet"),
        ),
        (
            SINK + "x",
            1,
            {},
            ("Target", "does not exist"),
        ),
        (
            CLUSTER,
            1,
            {},
            ("TargetParameters.EcsTaskParameters.TaskDefinitionArn", "which task"),
        ),
        (
            BUS,
            1,
            {"TargetParameters": {"EventBridgeEventBusParameters": {"EndpointId": "a.b"}}},
            ("TargetParameters.EventBridgeEventBusParameters.EndpointId", "no global endpoints"),
        ),
        (
            SINK,
            1,
            {"TargetParameters": {"HttpParameters": {"PathParameterValues": ["x"]}}},
            ("TargetParameters.HttpParameters", "don't fit a queue"),
        ),
        (
            SINK,
            1,
            {"TargetParameters": {"SqsQueueParameters": {"MessageGroupId": "$.a b"}}},
            ("TargetParameters.SqsQueueParameters.MessageGroupId", "is not a path"),
        ),
        (
            SINK,
            1,
            {"TargetParameters": {"InputTemplate": "<aws.pipes.event.nonsense>"}},
            ("TargetParameters.InputTemplate", "<aws.pipes.event.nonsense> is not a reserved variable"),
        ),
        (SINK, 1, {"Tags": {TAG: "message-id"}}, ("Tags", "names executions, and the target is a queue")),
        (
            "arn:aws:events:us-east-1:000000000000:connection/c/1",
            1,
            {},
            ("Target", "no target"),
        ),
        (
            "arn:aws:sns:us-east-1:000000000000:topic",
            1,
            {},
            ("Target", "no target"),
        ),
        (
            "arn:aws:logs:us-east-1:000000000000:log-group:g",
            1,
            {},
            ("Target", "no target"),
        ),
    ],
)
def test_refused(
    shop: Workshop, target: str, batch: int, members: dict[str, Any], why: tuple[str, str]
) -> None:  # PF-39
    window = {"SqsQueueParameters": {"BatchSize": batch, "MaximumBatchingWindowInSeconds": int(batch > 10)}}
    with pytest.raises(ValidationException) as refused:
        shop.pipe(target, source=window, **members)
    (entry,) = refused.value.fields["fieldList"]
    assert entry["name"] == why[0]
    assert why[1] in entry["message"]
    assert shop.house.call("pipes", "ListPipes")["Pipes"] == []


def test_a_batch_that_no_longer_fits_is_refused_when_the_target_changes(shop: Workshop) -> None:
    shop.pipe(SINK, 10)
    with pytest.raises(ValidationException, match="set BatchSize to 1"):
        shop.update(Target=DESTINATION)
    assert shop.describe()["Target"] == SINK
    shop.update(Target=DESTINATION, SourceParameters={"SqsQueueParameters": {"BatchSize": 1}})
    assert shop.describe()["Target"] == DESTINATION


def test_update_replaces_the_target_s_object_whole_and_drops_what_only_the_old_target_took(shop: Workshop) -> None:
    own = {"DetailType": "d", "Source": "s"}
    shop.pipe(BUS, TargetParameters={"EventBridgeEventBusParameters": own, "InputTemplate": '{"b": <$.body>}'})
    shop.update(TargetParameters={"EventBridgeEventBusParameters": {"Source": "t"}})
    assert shop.describe()["TargetParameters"] == {
        "EventBridgeEventBusParameters": {"Source": "t"},
        "InputTemplate": '{"b": <$.body>}',
    }
    shop.send("a")
    assert shop.given()[0].parameters == {"DetailType": "Event from aws:sqs", "Source": "t"}
    shop.update(Target=SINK, TargetParameters={"SqsQueueParameters": {"MessageGroupId": "g"}})
    assert shop.describe()["TargetParameters"] == {
        "SqsQueueParameters": {"MessageGroupId": "g"},
        "InputTemplate": '{"b": <$.body>}',
    }
    shop.send("b")
    assert shop.bodies() == [{"b": "b"}]


def test_a_target_that_goes_stops_the_pipe(shop: Workshop) -> None:
    shop.pipe(BUS)
    shop.events.gone = "event bus orders does not exist"
    shop.send("a")
    assert shop.describe()["CurrentState"] == "STOPPED"
    assert shop.describe()["StateReason"] == "Target: event bus orders does not exist"
    assert shop.counts() == (1, 0)
    shop.house.call("pipes", "StartPipe", Name="p")
    assert shop.describe()["CurrentState"] == "START_FAILED"
    shop.events.gone = None
    shop.house.call("pipes", "StartPipe", Name="p")
    shop.house.drain()
    assert shop.counts() == (0, 0)


@pytest.mark.parametrize(("target", "parameters"), [(SINK, {}), (BUS, {})])
def test_a_window_gathers_for_every_target(shop: Workshop, target: str, parameters: dict[str, Any]) -> None:
    source = {"SqsQueueParameters": {"BatchSize": 5, "MaximumBatchingWindowInSeconds": 30}}
    shop.pipe(target, source=source, TargetParameters=parameters)
    shop.send("a", "b")
    shop.house.advance(seconds=29)
    assert shop.counters()["delivered"] == 0
    shop.house.advance(seconds=1)
    assert shop.counters()["delivered"] == 2
    shop.send("a", "b", "c", "d", "e")
    assert shop.counters()["delivered"] == 7


def test_escaped_brackets_are_warned_about(shop: Workshop, caplog: pytest.LogCaptureFixture) -> None:
    template = '{"p": "\\u003caws.pipes.pipe-name\\u003e"}'
    shop.pipe(SINK, TargetParameters={"InputTemplate": template})
    assert "TargetParameters.InputTemplate holds <aws.pipes.pipe-name> with its brackets escaped" in caplog.text
    shop.send("a")
    assert shop.sink()[0]["Body"] == template


def test_log_configuration_and_key_are_kept(shop: Workshop) -> None:
    log = {"Level": "TRACE", "IncludeExecutionData": ["ALL"], "CloudwatchLogsLogDestination": {"LogGroupArn": "arn:g"}}
    shop.pipe(SINK, LogConfiguration=log, KmsKeyIdentifier="alias/k")
    assert shop.describe()["LogConfiguration"] == log
    assert shop.describe()["KmsKeyIdentifier"] == "alias/k"
