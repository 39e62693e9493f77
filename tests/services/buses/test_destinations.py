"""Connections and API destinations: what is taken, what is refused, and what nobody gets to see."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasuki.services.buses import calls
from tasuki.services.switchboard import Caller
from tasuki.values.documents import dumps
from tasuki.values.errors import DomainError
from tasuki.values.service_checks import check
from tasuki.values.service_models import service_model
from tests.services.buses.destinations_stage import API_KEY, BASIC, Stage

URL = "https://hooks.example/in"
OAUTH: dict[str, Any] = {
    "OAuthParameters": {
        "ClientParameters": {"ClientID": "us", "ClientSecret": "s3cret-client"},
        "AuthorizationEndpoint": "https://login.example/token",
        "HttpMethod": "POST",
        "OAuthHttpParameters": {
            "BodyParameters": [
                {"Key": "audience", "Value": "everybody"},
                {"Key": "assertion", "Value": "s3cret-assertion", "IsValueSecret": True},
            ]
        },
    }
}
EXTRAS = {
    "InvocationHttpParameters": {
        "HeaderParameters": [{"Key": "X-Team", "Value": "night", "IsValueSecret": False}],
        "QueryStringParameters": [{"Key": "sig", "Value": "s3cret-query", "IsValueSecret": True}],
    }
}
CALLER = Caller("000000000000", "us-east-1", "", "Root=1-0-0")


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


def test_recorded_connection_answers(conformance: Path) -> None:
    service = service_model("events")
    assert service is not None
    seen = 0
    for line in (conformance / "events" / "traces.jsonl").read_text().splitlines():
        for step in json.loads(line).get("steps", ()):
            if "Connection" not in step["op"] and "ApiDestination" not in step["op"]:
                continue
            action = service.action(step["op"])
            assert action is not None
            with pytest.raises(DomainError) as refused:
                check(service, action.input, step["params"])
            wanted = step["expect"][0]["value"]["Error"]
            assert {"Code": refused.value.code, "Message": refused.value.message} == wanted
            seen += 1
    assert seen == 1


@pytest.mark.parametrize(
    ("kind", "parameters"), [("BASIC", BASIC), ("API_KEY", API_KEY), ("OAUTH_CLIENT_CREDENTIALS", OAUTH)]
)
def test_describe_tells_no_secret(stage: Stage, kind: str, parameters: dict[str, Any]) -> None:
    stage.connection("c", {**parameters, **EXTRAS}, kind)
    described = stage.call("DescribeConnection", Name="c")
    shown = dumps(described) + dumps(stage.call("ListConnections"))
    assert "s3cret" not in shown
    assert described["AuthorizationType"] == kind
    assert described["ConnectionState"] == "AUTHORIZED"
    assert described["SecretArn"].startswith(
        "arn:aws:secretsmanager:us-east-1:000000000000:secret:events!connection/c/"
    )
    extras = described["AuthParameters"]["InvocationHttpParameters"]
    assert extras["HeaderParameters"] == [{"Key": "X-Team", "Value": "night", "IsValueSecret": False}]
    assert extras["QueryStringParameters"] == [{"Key": "sig", "IsValueSecret": True}]


def test_an_update_keeps_what_it_does_not_name(stage: Stage) -> None:
    stage.connection("c", {**BASIC, **EXTRAS})
    stage.house.advance(seconds=5)
    stage.call("UpdateConnection", Name="c", AuthParameters={"BasicAuthParameters": {"Username": "bob"}})
    described = stage.call("DescribeConnection", Name="c")
    assert described["AuthParameters"]["BasicAuthParameters"] == {"Username": "bob"}
    assert described["AuthParameters"]["InvocationHttpParameters"]["HeaderParameters"][0]["Value"] == "night"
    assert described["LastModifiedTime"] - described["CreationTime"] == 5_000
    stage.call("UpdateConnection", Name="c", AuthorizationType="API_KEY", AuthParameters=API_KEY)
    assert set(stage.call("DescribeConnection", Name="c")["AuthParameters"]) == {
        "ApiKeyAuthParameters",
        "InvocationHttpParameters",
    }


def test_another_type_needs_its_own_parameters(stage: Stage) -> None:
    stage.connection("c")
    with pytest.raises(DomainError, match=r"AuthParameters\.ApiKeyAuthParameters is not valid.*API_KEY needs it"):
        stage.call("UpdateConnection", Name="c", AuthorizationType="API_KEY")
    assert stage.call("DescribeConnection", Name="c")["AuthorizationType"] == "BASIC"


def test_a_destination_is_active_as_long_as_its_very_connection_is_authorized(stage: Stage) -> None:
    connection = stage.connection("c")
    arn = stage.destination(URL, connection=connection)
    target = stage.house.switchboard.targets["events"]

    def state() -> str:
        return str(stage.call("DescribeApiDestination", Name="hook")["ApiDestinationState"])

    def problem() -> str | None:
        return stage.house.look(lambda tx: target.check(tx, arn, {}))

    assert (state(), problem()) == ("ACTIVE", None)
    assert stage.call("DeauthorizeConnection", Name="c")["ConnectionState"] == "DEAUTHORIZING"
    assert stage.call("DescribeConnection", Name="c")["AuthParameters"] == {}
    assert state() == "INACTIVE"
    assert "is DEAUTHORIZED" in str(problem())
    with pytest.raises(DomainError, match="is DEAUTHORIZED") as refused:
        stage.give(arn)
    assert refused.value.code == "NO_PERMISSIONS"
    stage.call("UpdateConnection", Name="c", AuthParameters=BASIC)
    assert state() == "ACTIVE"
    assert stage.call("DeleteConnection", Name="c")["ConnectionState"] == "DELETING"
    stage.connection("c")  # of the same name, and not the same
    assert state() == "INACTIVE"
    assert "was deleted" in str(problem())
    with pytest.raises(DomainError, match="Connection 'c' does not exist"):
        stage.call("UpdateApiDestination", Name="hook", ConnectionArn=connection)


def test_a_call_to_a_deleted_destination_does_not_go_to_the_next_one(stage: Stage) -> None:
    """On SQLite that may get the number of the other one."""
    old = stage.destination(URL)
    stage.give(old)
    stage.call("DeleteApiDestination", Name="hook")
    stage.destination("https://elsewhere.example/", name="another")
    (call,) = stage.house.unit(lambda tx: calls.claim(tx, calls.Hands(8, {}), 60_000))
    assert call.destination is None
    assert call.connection is None


def test_what_is_not_there_or_there_already(stage: Stage) -> None:
    for operation in ("DescribeConnection", "DeleteConnection", "DeauthorizeConnection", "UpdateConnection"):
        with pytest.raises(DomainError, match="Connection 'x' does not exist") as refused:
            stage.call(operation, Name="x")
        assert refused.value.code == "ResourceNotFoundException"
    for operation in ("DescribeApiDestination", "DeleteApiDestination", "UpdateApiDestination"):
        with pytest.raises(DomainError, match="An api-destination 'x' does not exist") as refused:
            stage.call(operation, Name="x")
        assert refused.value.code == "ResourceNotFoundException"
    arn = stage.destination(URL)
    with pytest.raises(DomainError) as refused:
        stage.connection("for-hook")
    assert refused.value.code == "ResourceAlreadyExistsException"
    with pytest.raises(DomainError) as refused:
        stage.destination(URL, connection=stage.connection("c"))
    assert refused.value.code == "ResourceAlreadyExistsException"
    stage.call("DeleteApiDestination", Name="hook")
    target = stage.house.switchboard.targets["events"]
    assert stage.house.look(lambda tx: target.waits(tx, arn)) is None
    with pytest.raises(DomainError, match="does not exist") as refused:
        stage.give(arn)
    assert refused.value.code == "ResourceNotFoundException"


def test_lists_go_by_name_and_page_by_page(stage: Stage) -> None:
    arns = {name: stage.connection(name) for name in ("b1", "a", "b3", "b2")}
    stage.call("DeauthorizeConnection", Name="b2")
    first = stage.call("ListConnections", NamePrefix="b", Limit=2)
    assert [one["Name"] for one in first["Connections"]] == ["b1", "b2"]
    rest = stage.call("ListConnections", NamePrefix="b", Limit=2, NextToken=first["NextToken"])
    assert ([one["Name"] for one in rest["Connections"]], rest.get("NextToken")) == (["b3"], None)
    there = stage.call("ListConnections", ConnectionState="DEAUTHORIZED")["Connections"]
    assert [one["Name"] for one in there] == ["b2"]
    with pytest.raises(DomainError, match="NextToken is not valid"):
        stage.call("ListConnections", NextToken=first["NextToken"])
    stage.destination(URL, "one", arns["a"])
    stage.destination(URL, "two", arns["b1"], rate=7)
    listed = stage.call("ListApiDestinations", ConnectionArn=arns["b1"])["ApiDestinations"]
    assert [(one["Name"], one["InvocationRateLimitPerSecond"], one["ConnectionArn"]) for one in listed] == [
        ("two", 7, arns["b1"])
    ]
    assert stage.call("DescribeApiDestination", Name="one")["InvocationRateLimitPerSecond"] == 300


@pytest.mark.parametrize(
    "url",
    [
        "ftp://hooks.example/",
        "hooks.example/in",
        "https:///in",
        "https://ann:word@hooks.example/",
        "https://hooks.example:0/",
        "https://hooks.example:99999/",
        "https://*.example/",
        "https://hooks.example/#part",
        "https://[::1/",
    ],
)
def test_an_endpoint_is_an_http_address_of_a_host(stage: Stage, url: str) -> None:
    with pytest.raises(DomainError, match="Parameter InvocationEndpoint is not valid"):
        stage.destination(url)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        (
            {**BASIC, "InvocationHttpParameters": {"HeaderParameters": [{"Key": "Host", "Value": "x"}]}},
            "HeaderParameters.1.Key",
        ),
        (
            {**BASIC, "InvocationHttpParameters": {"HeaderParameters": [{"Key": "content-length", "Value": "1"}]}},
            "HeaderParameters.1.Key",
        ),
        (
            {**BASIC, "InvocationHttpParameters": {"HeaderParameters": [{"Key": "a b", "Value": "1"}]}},
            "HeaderParameters.1.Key",
        ),
        (
            {**BASIC, "InvocationHttpParameters": {"HeaderParameters": [{"Key": "A", "Value": "1\r\nB: 2"}]}},
            "HeaderParameters.1.Value",
        ),
        (
            {**BASIC, "InvocationHttpParameters": {"QueryStringParameters": [{"Value": "1"}]}},
            "QueryStringParameters.1.Key",
        ),
        ({"BasicAuthParameters": {"Username": "a\nb", "Password": "p"}}, "BasicAuthParameters.Username"),
        ({**BASIC, **API_KEY}, "AuthParameters.ApiKeyAuthParameters"),
        ({}, "AuthParameters.BasicAuthParameters"),
    ],
)
def test_what_no_request_could_carry_is_refused_by_its_field(
    stage: Stage, parameters: dict[str, Any], field: str
) -> None:
    with pytest.raises(DomainError, match="is not valid") as refused:
        stage.connection("c", parameters)
    assert field in refused.value.message
    assert "s3cret" not in refused.value.message


def test_an_api_key_is_no_header_of_http_itself(stage: Stage) -> None:
    with pytest.raises(DomainError, match=r"ApiKeyName is not valid.*Transfer-Encoding cannot be set"):
        stage.connection(
            "c", {"ApiKeyAuthParameters": {"ApiKeyName": "Transfer-Encoding", "ApiKeyValue": "x"}}, "API_KEY"
        )


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"PathParameterValues": ["1"]}, "has 2 of . to fill, and 1 values"),
        ({"PathParameterValues": ["1", ".."]}, "must not be"),
        ({"PathParameterValues": ["1", "2"], "HeaderParameters": {"Connection": "x"}}, "cannot be set"),
        ({"PathParameterValues": ["1", "2"], "HeaderParameters": {"X": "a\r\nHost: b"}}, "line breaks"),
    ],
)
def test_parameters_of_a_call_are_looked_at_when_a_target_is_made_and_when_it_is_used(
    stage: Stage, parameters: dict[str, Any], said: str
) -> None:
    arn = stage.destination("https://hooks.example/jobs/*/parts/*")
    target = stage.house.switchboard.targets["events"]
    why = stage.house.look(lambda tx: target.check(tx, arn, parameters))
    with pytest.raises(DomainError, match=said) as refused:
        stage.give(arn, **parameters)
    assert refused.value.message == why
    assert stage.waiting() == 0


def test_a_call_asked_for_again_in_the_same_attempt_is_one_call(stage: Stage) -> None:
    arn = stage.destination(URL)
    first = stage.give(arn, key="one")
    assert stage.give(arn, key="one") == first
    assert stage.give(arn, key="two") != first
    assert stage.waiting() == 2


def test_private_ways_are_not_offered(stage: Stage) -> None:
    way = {"ResourceParameters": {"ResourceConfigurationArn": ""}}
    with pytest.raises(DomainError, match=r"InvocationConnectivityParameters is not valid.*VPC Lattice is not offered"):
        stage.call(
            "CreateConnection",
            Name="c",
            AuthorizationType="BASIC",
            AuthParameters=BASIC,
            InvocationConnectivityParameters=way,
        )
