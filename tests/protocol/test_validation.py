"""What AWS says about input that breaks the model; texts recorded from AWS where a test says so."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasuki.protocol.json import Amiss, Readers
from tasuki.protocol.model import Models
from tasuki.values.documents import dumpb
from tasuki.values.errors import DomainError
from tasuki.values.instant import HOUR, to_iso
from tasuki.values.service_checks import (
    EARLIEST_S,
    LATEST_S,
    Serialization,
    check,
    complaints,
    convert,
    from_epoch,
    from_text,
)
from tasuki.values.service_models import Shape, service_model
from tests.protocol.knocking import Script, error_of, knock, make_app, sign

MODELS = Models({"sqs": {}, "stepfunctions": {}, "ecs": {}, "pipes": {}})
TARGETS = {"sqs": "AmazonSQS", "stepfunctions": "AWSStepFunctions", "ecs": "AmazonEC2ContainerServiceV20141113"}
SIGNED_AS = {"sqs": "sqs", "stepfunctions": "states", "ecs": "ecs"}
LONG = "x" * 1025
ALIAS = "arn:aws:states:us-east-1:000000000000:stateMachine:m:1"


def call(service: str, operation: str, body: Any) -> tuple[int, str, str]:
    request = sign(SIGNED_AS[service], headers={"X-Amz-Target": f"{TARGETS[service]}.{operation}"}, body=dumpb(body))
    return error_of(service, operation, knock(make_app(Script()), request))


def one(text: str) -> str:
    return f"1 validation error detected: {text}"


ROUTING = [
    {"stateMachineVersionArn": ALIAS, "weight": 50},
    {"stateMachineVersionArn": ALIAS, "weight": 30},
    {"stateMachineVersionArn": ALIAS, "weight": 20},
]
ROUTING_SHOWN = ", ".join(
    f"RoutingConfigurationListItem(stateMachineVersionArn={ALIAS}, weight={n})" for n in (50, 30, 20)
)


@pytest.mark.parametrize(
    ("operation", "body", "message"),
    [
        # Recorded from AWS.
        ("ListExecutions", {"maxResults": 1001}, one("Value '1001' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 1000")),
        ("GetExecutionHistory", {"executionArn": "a", "nextToken": LONG}, one(f"Value '{LONG}' at 'nextToken' failed to satisfy constraint: Member must have length less than or equal to 1024")),
        (
            "CreateStateMachineAlias",
            {"name": "a", "routingConfiguration": [{"stateMachineVersionArn": ALIAS, "weight": 101}]},
            one("Value '101' at 'routingConfiguration.1.member.weight' failed to satisfy constraint: Member must have value less than or equal to 100"),
        ),
        (
            "CreateStateMachineAlias",
            {"name": "a", "routingConfiguration": ROUTING},
            one(f"Value '[{ROUTING_SHOWN}]' at 'routingConfiguration' failed to satisfy constraint: Member must have length less than or equal to 2"),
        ),
        # In the same style.
        ("StartExecution", {}, one("Value null at 'stateMachineArn' failed to satisfy constraint: Member must not be null")),
        (
            "CreateStateMachine",
            {"name": "", "definition": "", "roleArn": "r"},
            "2 validation errors detected: Value '' at 'name' failed to satisfy constraint: Member must have length greater than or equal to 1; Value at 'definition' failed to satisfy constraint: Member must have length greater than or equal to 1",
        ),
    ],
)  # fmt: skip
def test_constraints_in_the_words_of_aws(operation: str, body: dict[str, Any], message: str) -> None:
    assert call("stepfunctions", operation, body) == (400, "ValidationException", message)


def test_an_enum_names_its_values() -> None:
    _, code, message = call("stepfunctions", "ListExecutions", {"statusFilter": "succeeded"})
    assert code == "ValidationException"
    assert message.startswith(
        "1 validation error detected: Value 'succeeded' at 'statusFilter' failed to satisfy constraint: "
        "Member must satisfy enum value set: [SUCCEEDED, TIMED_OUT, PENDING_REDRIVE, ABORTED, FAILED, RUNNING"
    )
    assert set(message.rpartition("[")[2].rstrip("]").split(", ")) == {
        "SUCCEEDED",
        "TIMED_OUT",
        "PENDING_REDRIVE",
        "ABORTED",
        "FAILED",
        "RUNNING",
    }


def test_pipes_checks_what_comes_in_the_path_too() -> None:
    heard = knock(make_app(Script()), sign("pipes", "GET", "/v1/pipes/a%20b"))
    message = "Value 'a b' at 'name' failed to satisfy constraint: Member must satisfy regular expression pattern: [\\.\\-_A-Za-z0-9]+"
    assert error_of("pipes", "DescribePipe", heard) == (400, "ValidationException", one(message))
    assert heard.headers["x-amzn-errortype"] == "ValidationException"


def test_sqs_says_what_is_missing_in_its_own_words() -> None:
    # Recorded from AWS.
    request = sign("sqs", headers={"X-Amz-Target": "AmazonSQS.SendMessage"}, body=b'{"QueueUrl": "u"}')
    heard = knock(make_app(Script()), request)
    assert error_of("sqs", "SendMessage", heard) == (
        400,
        "MissingParameter",
        "The request must contain the parameter MessageBody.",
    )
    assert heard.headers["x-amzn-query-error"] == "MissingParameter;Sender"
    assert b"com.amazon.coral.service#MissingRequiredParameterException" in heard.body


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"QueueUrl": 1, "MessageBody": "b"}, "NUMBER_VALUE can not be converted to a String"),
        ({"QueueUrl": True, "MessageBody": "b"}, "TRUE_VALUE can not be converted to a String"),
        ({"QueueUrl": [], "MessageBody": "b"}, "Start of list found where not expected"),
        ({"QueueUrl": {}, "MessageBody": "b"}, "Start of structure or map found where not expected."),
        ({"QueueUrl": "u", "MessageBody": "b", "DelaySeconds": "1"}, "STRING_VALUE can not be converted to an Integer"),
        ({"QueueUrl": "u", "MessageBody": "b", "DelaySeconds": 1.5}, "NUMBER_VALUE can not be converted to an Integer"),
        (
            {"QueueUrl": "u", "MessageBody": "b", "DelaySeconds": 2**31},
            "NUMBER_VALUE can not be converted to an Integer",
        ),
        ({"QueueUrl": "u", "MessageBody": "b", "MessageAttributes": "x"}, "Unexpected token received from parser"),
        (
            {"QueueUrl": "u", "MessageBody": "b", "MessageAttributes": {"a": {"BinaryValue": "?"}}},
            "Invalid Base64 in a blob",
        ),
        ([], "Start of list found where not expected"),
        ("text", "Unexpected token received from parser"),
    ],
)
def test_wrong_types(body: Any, message: str) -> None:
    assert call("sqs", "SendMessage", body) == (400, "MalformedInput", message)


@given(st.floats(-1e11, 1e12) | st.sampled_from([float(EARLIEST_S), float(LATEST_S)]))
def test_every_instant_that_is_taken_can_be_written_in_any_zone(seconds: float) -> None:
    """Found in use: a StartDate in the year 10000 was taken, and whoever listed it failed."""
    try:
        taken = from_epoch(seconds)
    except Serialization:
        assert not EARLIEST_S <= seconds < LATEST_S
        return
    for hours in (-24, 0, 24):
        to_iso(taken + hours * HOUR)


def test_dates_that_no_calendar_has_are_refused() -> None:
    model = service_model("events")
    assert model is not None
    shape = model.shape("PutEventsRequestEntry").members["Time"].shape
    for text in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        with pytest.raises(Serialization, match="Timestamp"):
            from_text(shape, text)
    assert to_iso(from_text(shape, "2026-10-09T16:00:00+09:00")) == "2026-10-09T07:00:00.000Z"


# -- the fast reader and the talkative twin agree -------------------------------------------------------------------


def values(shape: Shape, depth: int = 0) -> st.SearchStrategy[Any]:
    """JSON values that are mostly right, and sometimes not."""
    right: st.SearchStrategy[Any]
    if shape.kind == "structure":
        members = {m.wire: values(m.shape, depth + 1) for m in shape.members.values()} if depth < 4 else {}
        right = st.fixed_dictionaries({}, optional=members)
    elif shape.kind == "list":
        right = st.lists(values(shape.element.shape, depth + 1), max_size=3)
    elif shape.kind == "map":
        right = st.dictionaries(st.text(max_size=4), values(shape.pair[1].shape, depth + 1), max_size=3)
    elif shape.kind == "string":
        right = (
            st.sampled_from(shape.enum) if shape.enum else st.sampled_from(["", "a", "x" * 300, "arn:aws:x:y", "é 😀"])
        )
    elif shape.kind == "boolean":
        right = st.booleans()
    elif shape.kind == "blob":
        right = st.sampled_from(["", "AP8="])
    elif shape.kind == "timestamp":
        right = st.sampled_from([0, 1_700_000_000.5, "2026-11-30T12:00:00Z", 1e300, "no"])
    else:
        right = st.integers(-5, 2**64) | st.sampled_from([0, 1, 10, 2.0, 2.5])
    wrong: st.SearchStrategy[Any] = st.sampled_from([None, "", 1, True, [], {}, 1.5, "x", [None]])
    return st.one_of(right, right, right, right, right, right, wrong)


@pytest.mark.parametrize(
    ("service", "operation"),
    [
        ("sqs", "SendMessageBatch"),
        ("stepfunctions", "CreateStateMachineAlias"),
        ("stepfunctions", "CreateStateMachine"),
        ("pipes", "UpdatePipe"),
        ("ecs", "StopTask"),
        ("ecs", "UpdateCapacityProvider"),
    ],
)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_reader_and_its_twin_agree(service: str, operation: str, data: st.DataObject) -> None:
    model = MODELS.service(service)
    assert model is not None
    action = model.action(operation)
    assert action is not None
    raw = data.draw(values(action.input))
    fast: Any
    try:
        fast = Readers(model).reader(action.input)(raw)
    except (Amiss, Serialization):
        fast = None
    slow: Any
    try:
        slow = convert(action.input, raw)
        check(model, action.input, slow)
    except DomainError:
        slow = None
    if service == "sqs" and fast is None and slow is not None:
        pytest.fail(f"refused without a reason: {raw}")
    assert fast == slow


def test_a_very_long_text_is_not_matched_against_patterns() -> None:
    pipes = MODELS.service("pipes")
    assert pipes is not None
    found = list(complaints(pipes.shape("PipeName"), "!" * 10_000, "name"))
    assert len(found) == 1
    assert found[0].endswith("length less than or equal to 64")
