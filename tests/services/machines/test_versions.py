"""Versions and aliases: which revision a start gets, and what may be deleted."""

import json
from collections import Counter
from typing import Any

import pytest

from tasuki.services.machines.errors import (
    ConflictException,
    InvalidArn,
    ResourceNotFound,
    ServiceQuotaExceededException,
    StateMachineDeleting,
    StateMachineDoesNotExist,
    ValidationException,
)
from tests.services.machines.stubs import Play, task

ALIAS_TEXT = "Request references a resource that does not exist."


def saying(word: str) -> dict[str, Any]:
    return {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": word, "End": True}}}


def versions(play: Play, count: int) -> tuple[str, list[str]]:
    """Make a machine with versions that say v1, v2, ...; answer its ARN and theirs."""
    arn = play.create(saying("v1"), publish=True)
    found = [f"{arn}:1"]
    for number in range(2, count + 1):
        made = play.call(
            "UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(saying(f"v{number}")), publish=True
        )
        found.append(made["stateMachineVersionArn"])
    assert found == [f"{arn}:{number}" for number in range(1, count + 1)]
    return arn, found


def alias(play: Play, *routes: tuple[str, int], name: str = "PROD", **more: Any) -> str:
    routing = [{"stateMachineVersionArn": arn, "weight": weight} for arn, weight in routes]
    made = play.call("CreateStateMachineAlias", name=name, routingConfiguration=routing, **more)
    return str(made["stateMachineAliasArn"])


def test_a_start_runs_what_its_arn_says(play: Play) -> None:
    arn, [first, second] = versions(play, 2)
    play.call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(saying("newest")))
    prod = alias(play, (first, 100))
    by_version, by_alias, plain = play.start(second), play.start(prod), play.start(arn)
    assert [play.output(one) for one in (by_version, by_alias, plain)] == ["v2", "v1", "newest"]
    described = play.describe(by_alias)
    assert described["stateMachineArn"] == arn
    assert (described["stateMachineVersionArn"], described["stateMachineAliasArn"]) == (first, prod)
    started = play.events(by_alias)[0]["executionStartedEventDetails"]
    assert (started["stateMachineVersionArn"], started["stateMachineAliasArn"]) == (first, prod)
    assert play.describe(by_version)["stateMachineVersionArn"] == second
    assert "stateMachineAliasArn" not in play.describe(by_version)
    assert "stateMachineVersionArn" not in play.describe(plain)
    assert by_version.startswith(arn.replace(":stateMachine:", ":execution:"))


def test_executions_are_listed_by_version_and_by_alias(play: Play) -> None:
    arn, [first, second] = versions(play, 2)
    prod = alias(play, (first, 100))
    by_first, by_second, by_alias, plain = (play.start(one) for one in (first, second, prod, arn))

    def listed(of: str, **more: Any) -> list[str]:
        found = play.call("ListExecutions", stateMachineArn=of, **more)["executions"]
        return [one["executionArn"] for one in found]

    assert listed(arn) == [plain, by_alias, by_second, by_first]
    assert listed(first) == [by_alias, by_first]
    assert listed(second) == [by_second]
    assert listed(prod) == [by_alias]
    assert listed(prod, statusFilter="FAILED") == []
    page = play.call("ListExecutions", stateMachineArn=first, maxResults=1)
    assert page["executions"][0]["stateMachineAliasArn"] == prod
    rest = play.call("ListExecutions", stateMachineArn=first, maxResults=1, nextToken=page["nextToken"])
    assert [one["executionArn"] for one in rest["executions"]] == [by_first]
    with pytest.raises(StateMachineDoesNotExist):
        listed(f"{arn}:9")


def test_an_alias_draws_by_weight(play: Play) -> None:
    _, [first, second] = versions(play, 2)
    prod = alias(play, (first, 20), (second, 80))
    drawn = Counter(play.output(play.start(prod)) for _ in range(300))
    assert 30 <= drawn["v1"] <= 95
    assert drawn.total() == 300
    never = alias(play, (first, 0), (second, 100), name="never")
    assert {play.output(play.start(never)) for _ in range(30)} == {"v2"}


def test_a_start_that_was_not_stepped_yet_keeps_its_version(play: Play) -> None:
    _, [first] = versions(play, 1)
    prod = alias(play, (first, 100))
    parent = play.start(play.create(task("states:startExecution", {"StateMachineArn": prod}), "parent"))
    play.house.drain()
    child = json.loads(play.describe(parent)["output"])["ExecutionArn"]
    started = play.events(child)[0]["executionStartedEventDetails"]
    assert (started["stateMachineVersionArn"], started["stateMachineAliasArn"]) == (first, prod)


def test_publishing_again_makes_a_version_only_of_another_revision(play: Play) -> None:
    arn = play.create(saying("a"))

    def publish(**more: Any) -> str:
        return str(play.call("PublishStateMachineVersion", stateMachineArn=arn, **more)["stateMachineVersionArn"])

    assert [publish(revisionId="INITIAL", description="the first"), publish()] == [f"{arn}:1"] * 2
    assert play.call("DescribeStateMachine", stateMachineArn=f"{arn}:1")["description"] == "the first"
    revision = play.call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(saying("b")))["revisionId"]
    with pytest.raises(ConflictException) as no:
        publish(revisionId="INITIAL")
    assert no.value.message.endswith(f"revision INITIAL. The current State Machine revision is {revision}.")
    assert publish(revisionId=revision) == f"{arn}:2"
    play.call("DeleteStateMachineVersion", stateMachineVersionArn=f"{arn}:2")
    assert publish() == f"{arn}:3", "a number is not given twice"
    listed = play.call("ListStateMachineVersions", stateMachineArn=arn)["stateMachineVersions"]
    assert [one["stateMachineVersionArn"] for one in listed] == [f"{arn}:3", f"{arn}:1"]
    with pytest.raises(ValidationException, match="publish is true"):
        play.create(saying("c"), "c", versionDescription="of nothing")


def test_creating_again_with_publish_answers_the_version(play: Play) -> None:
    first = play.call("CreateStateMachine", name="m", definition=json.dumps(saying("x")), roleArn="r")
    assert "stateMachineVersionArn" not in first
    again = play.call("CreateStateMachine", name="m", definition=json.dumps(saying("x")), roleArn="r", publish=True)
    assert again["stateMachineVersionArn"] == f"{first['stateMachineArn']}:1"


def test_a_version_is_kept_while_an_alias_leads_to_it(play: Play) -> None:
    arn, [first, second] = versions(play, 2)
    alias(play, (first, 50), (second, 50), name="a")
    alias(play, (second, 100), name="b")
    with pytest.raises(ConflictException, match=r"referencing this version: \[a, b\]$"):
        play.call("DeleteStateMachineVersion", stateMachineVersionArn=second)
    play.call("DeleteStateMachineAlias", stateMachineAliasArn=f"{arn}:a")
    play.call("DeleteStateMachineVersion", stateMachineVersionArn=first)
    play.call("DeleteStateMachineVersion", stateMachineVersionArn=first)
    with pytest.raises(StateMachineDoesNotExist):
        play.start(first)
    with pytest.raises(InvalidArn):
        play.call("DeleteStateMachineVersion", stateMachineVersionArn=arn)


def test_an_execution_outlives_its_version(play: Play) -> None:
    arn = play.create({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 5, "End": True}}}, publish=True)
    execution = play.start(f"{arn}:1", 3)
    play.call("DeleteStateMachineVersion", stateMachineVersionArn=f"{arn}:1")
    play.house.advance(seconds=5)
    assert play.output(execution) == 3
    assert play.describe(execution)["stateMachineVersionArn"] == f"{arn}:1"


@pytest.mark.parametrize(
    ("routes", "text"),
    [
        ([("1", 50), ("1", 50)], "Routing configuration must contain distinct state machine version ARNs."),
        ([("", 70), ("2", 30)], "Routing configuration must contain state machine version ARNs."),
        ([("PROD", 100)], "Routing configuration must contain state machine version ARNs."),
        ([("1", 70), ("2", 29)], "Sum of routing configuration weights must equal 100. Received: [70, 29]"),
    ],
)
def test_a_routing_that_makes_no_sense(play: Play, routes: list[tuple[str, int]], text: str) -> None:
    arn, _ = versions(play, 2)
    with pytest.raises(ValidationException) as no:
        alias(play, *((f"{arn}:{number}" if number else arn, weight) for number, weight in routes))
    assert no.value.message.startswith(text)
    assert no.value.fields == {"reason": "INVALID_ROUTING_CONFIGURATION"}


def test_a_routing_leads_to_versions_of_one_machine(play: Play) -> None:
    arn, [first] = versions(play, 1)
    other = play.create(saying("other"), "other", publish=True)
    with pytest.raises(ValidationException, match="one state machine"):
        alias(play, (first, 50), (f"{other}:1", 50))
    with pytest.raises(ResourceNotFound, match=ALIAS_TEXT):
        alias(play, (f"{arn}:7", 100))
    prod = alias(play, (first, 100))
    routing = [{"stateMachineVersionArn": f"{other}:1", "weight": 100}]
    with pytest.raises(ValidationException, match="alias's state machine"):
        play.call("UpdateStateMachineAlias", stateMachineAliasArn=prod, routingConfiguration=routing)
    with pytest.raises(ValidationException) as no:
        play.call("UpdateStateMachineAlias", stateMachineAliasArn=prod)
    assert no.value.fields == {"reason": "MISSING_REQUIRED_PARAMETER"}


def test_aliases_are_made_once_changed_shown_and_listed(play: Play) -> None:
    arn, [first, second] = versions(play, 2)
    prod = alias(play, (first, 100), description="live")
    assert alias(play, (first, 100), description="live") == prod
    with pytest.raises(ConflictException, match="different routing configuration already exists"):
        alias(play, (second, 100), description="live")
    play.house.advance(seconds=1)
    routing = [{"stateMachineVersionArn": second, "weight": 100}]
    play.call("UpdateStateMachineAlias", stateMachineAliasArn=prod, routingConfiguration=routing)
    shown = play.call("DescribeStateMachineAlias", stateMachineAliasArn=prod)
    assert (shown["description"], shown["routingConfiguration"]) == ("live", routing)
    assert shown["updateDate"] == shown["creationDate"] + 1_000
    others = [alias(play, (first, 100), name=name) for name in ("b", "a")]
    page = play.call("ListStateMachineAliases", stateMachineArn=arn, maxResults=2)
    rest = play.call("ListStateMachineAliases", stateMachineArn=arn, nextToken=page["nextToken"])
    found = [one["stateMachineAliasArn"] for one in page["stateMachineAliases"] + rest["stateMachineAliases"]]
    assert found == [prod, *others]
    of_first = play.call("ListStateMachineAliases", stateMachineArn=first)["stateMachineAliases"]
    assert [one["stateMachineAliasArn"] for one in of_first] == others
    for operation in ("DescribeStateMachineAlias", "DeleteStateMachineAlias"):
        with pytest.raises(ResourceNotFound, match=ALIAS_TEXT):
            play.call(operation, stateMachineAliasArn=f"{arn}:nobody")


def test_versions_and_aliases_go_with_their_machine(play: Play) -> None:
    arn = play.create({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9, "End": True}}}, publish=True)
    prod = alias(play, (f"{arn}:1", 100))
    play.start(prod)
    play.call("DeleteStateMachine", stateMachineArn=arn)
    assert (play.rows("versions"), play.rows("aliases")) == (0, 0)
    with pytest.raises(StateMachineDoesNotExist):
        play.start(prod)
    with pytest.raises(StateMachineDeleting):
        play.call("PublishStateMachineVersion", stateMachineArn=arn)
    play.house.advance(seconds=9)
    assert play.call("ListStateMachineVersions", stateMachineArn=arn) == {"stateMachineVersions": []}


def test_versions_and_aliases_have_quotas(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasuki.services.machines.revisions.VERSIONS_MAX", 2)
    monkeypatch.setattr("tasuki.services.machines.aliases.ALIASES_MAX", 1)
    arn, [first, _] = versions(play, 2)
    alias(play, (first, 100))
    with pytest.raises(ServiceQuotaExceededException):
        alias(play, (first, 100), name="second")
    with pytest.raises(ServiceQuotaExceededException):
        play.call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(saying("v3")), publish=True)
