"""Parameters of targets, in the words of the targets' own APIs, with what paths find in an event."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.services.pipes.errors import UnresolvedParameter, ValidationException
from tasuki.services.pipes.target_parameters import KINDS, compile_parameters, kind_of
from tasuki.values.instant import to_iso

EVENT = {
    "messageId": "m1",
    "body": {"tenant": "t 1", "n": 7, "ok": True, "none": None, "o": {"k": [1]}, "at": "2026-01-31T06:00:00+02:00"},
}


def resolved(kind: str, parameters: dict[str, Any], event: Any = EVENT) -> dict[str, Any]:
    return compile_parameters(KINDS[kind], parameters, "TargetParameters.X").resolve(event)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("fixed", "fixed"),
        ("$.body.tenant", "t 1"),
        ("$.messageId", "m1"),
        ("$.body.n", "7"),
        ("$.body.ok", "true"),
        ("$.body.o", '{"k":[1]}'),
        ("$.body.o.k[0]", "1"),
        ("costs $.body.n", "costs $.body.n"),  # a whole value is a path, or none is
        ("$HOME", "$HOME"),
    ],
)
def test_text_and_paths(value: str, expected: str) -> None:
    assert resolved("sqs", {"MessageGroupId": value}) == {"MessageGroupId": expected}


def test_the_whole_event() -> None:
    assert resolved("sqs", {"MessageGroupId": "$"}, {"a": 1}) == {"MessageGroupId": '{"a":1}'}


@pytest.mark.parametrize("path", ["$.body.absent", "$.body.none", "$.body.tenant.deeper", "$.body.o.k[9]"])
def test_a_path_that_leads_nowhere_fails_the_event_by_name(path: str) -> None:
    with pytest.raises(UnresolvedParameter) as failed:
        resolved("sqs", {"MessageGroupId": path})
    assert failed.value.message == f"TargetParameters.X.MessageGroupId: {path} leads nowhere in this event"


def test_what_is_nested_too_deep_to_be_written_fails_the_event_by_name() -> None:
    deep: Any = []
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    with pytest.raises(
        UnresolvedParameter, match=r"^TargetParameters\.X\.DetailType: \$\.deep can't be written as JSON"
    ):
        resolved("event-bus", {"DetailType": "$.deep"}, {"deep": deep})


def test_what_is_no_path_is_refused_where_it_stands() -> None:
    with pytest.raises(ValidationException) as refused:
        compile_parameters(KINDS["ecs"], {"Overrides": {"ContainerOverrides": [{"Command": ["a", "$.b c"]}]}}, "T")
    assert refused.value.fields["fieldList"][0]["name"] == "T.Overrides.ContainerOverrides[0].Command[1]"


def test_a_task() -> None:
    given = {
        "TaskDefinitionArn": "arn:td",
        "TaskCount": 2,
        "LaunchType": "FARGATE",
        "NetworkConfiguration": {"awsvpcConfiguration": {"Subnets": ["subnet-1"], "AssignPublicIp": "ENABLED"}},
        "CapacityProviderStrategy": [{"capacityProvider": "c", "weight": 1}],
        "PlacementConstraints": [{"type": "memberOf", "expression": "x"}],
        "Overrides": {
            "TaskRoleArn": "$.body.tenant",
            "ContainerOverrides": [
                {
                    "Name": "app",
                    "Command": ["run", "$.body.n"],
                    "Environment": [{"name": "EVENT", "value": "$.body.o"}],
                    "EnvironmentFiles": [{"type": "s3", "value": "v"}],
                    "ResourceRequirements": [{"type": "GPU", "value": "1"}],
                }
            ],
        },
        "Tags": [{"Key": "k", "Value": "$.body.tenant"}],
    }
    assert resolved("ecs", given) == {
        "TaskDefinition": "arn:td",
        "Count": 2,
        "LaunchType": "FARGATE",
        "NetworkConfiguration": {"AwsvpcConfiguration": {"Subnets": ["subnet-1"], "AssignPublicIp": "ENABLED"}},
        "CapacityProviderStrategy": [{"CapacityProvider": "c", "Weight": 1}],
        "PlacementConstraints": [{"Type": "memberOf", "Expression": "x"}],
        "Overrides": {
            "TaskRoleArn": "t 1",
            "ContainerOverrides": [
                {
                    "Name": "app",
                    "Command": ["run", "7"],
                    "Environment": [{"Name": "EVENT", "Value": '{"k":[1]}'}],
                    "EnvironmentFiles": [{"Type": "s3", "Value": "v"}],
                    "ResourceRequirements": [{"Type": "GPU", "Value": "1"}],
                }
            ],
        },
        "Tags": [{"Key": "k", "Value": "t 1"}],
    }


def test_an_event_s_time_is_an_instant() -> None:
    told = resolved("event-bus", {"DetailType": "$.body.tenant", "Resources": ["r", "$.body.n"], "Time": "$.body.at"})
    assert told == {"DetailType": "t 1", "Resources": ["r", "7"], "Time": told["Time"]}
    assert to_iso(told["Time"]) == "2026-01-31T04:00:00.000Z"


@pytest.mark.parametrize(
    "at", ["yesterday", "2026-01-31T06:00:00", "7", "0001-01-01T00:00:00+09:00", "9999-12-31T23:59:59-09:00"]
)
def test_a_time_that_is_none_fails_the_event(at: str) -> None:
    with pytest.raises(UnresolvedParameter, match="RFC 3339"):
        resolved("event-bus", {"Time": "$.body"}, {"body": at})


def test_what_a_check_sees_before_there_is_an_event() -> None:
    bus = compile_parameters(KINDS["event-bus"], {"DetailType": "$.body.t", "Time": "$.body.at"}, "T")
    assert bus.fixed == {"DetailType": "$.body.t"}
    assert compile_parameters(KINDS["ecs"], {"TaskDefinitionArn": "$.body.td"}, "T").fixed is None
    http = compile_parameters(KINDS["api-destination"], {"PathParameterValues": ["a", "$.body.n"]}, "T")
    assert http.fixed == {"PathParameterValues": ["a", "$.body.n"]}
    assert http.resolve(EVENT) == {"PathParameterValues": ["a", "7"]}


def test_kinds() -> None:
    assert kind_of("sqs", "q") is KINDS["sqs"]
    assert kind_of("events", "event-bus/default") is KINDS["event-bus"]
    assert kind_of("events", "api-destination/a/b") is KINDS["api-destination"]
    assert kind_of("events", "connection/a") is None
    assert kind_of("lambda", "function:f") is None


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text().filter(lambda text: not text.startswith("$")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(parameters=st.dictionaries(st.text(max_size=5), _plain, max_size=4), event=_plain)
def test_what_has_no_path_is_told_as_it_is_given_whatever_the_event(parameters: dict[str, Any], event: Any) -> None:
    compiled = compile_parameters(KINDS["sqs"], parameters, "T")
    assert compiled.resolve(event) == compiled.fixed == parameters


@given(value=_plain)
def test_a_path_finds_what_is_there_as_text(value: Any) -> None:
    compiled = compile_parameters(KINDS["api-destination"], {"HeaderParameters": {"x": "$.v"}}, "T")
    if value is None:
        with pytest.raises(UnresolvedParameter):
            compiled.resolve({"v": value})
        return
    found = compiled.resolve({"v": value})["HeaderParameters"]["x"]
    assert isinstance(found, str)
    assert found == value or not isinstance(value, str)
