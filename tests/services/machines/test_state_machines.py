"""State machines over the API: names, definitions, revisions, tags, listings."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tasuki.language.definition import Machine
from tasuki.language.parse import parse
from tasuki.services.machines import definitions
from tasuki.services.machines.errors import (
    InvalidArn,
    InvalidDefinition,
    InvalidLoggingConfiguration,
    InvalidName,
    InvalidToken,
    MissingRequiredParameter,
    ResourceNotFound,
    StateMachineAlreadyExists,
    StateMachineDeleting,
    StateMachineDoesNotExist,
    StateMachineLimitExceeded,
    TooManyTags,
    ValidationException,
)
from tasuki.store.store import Tx
from tests.services.machines.stubs import PASS, ROLE, WAIT, Play


def test_creating_again_is_harmless_and_role_and_tags_do_not_count(play: Play) -> None:
    arn = play.create(PASS)
    play.house.advance(seconds=5)
    again = play.call(
        "CreateStateMachine", name="m", definition=json.dumps(PASS), roleArn="other", tags=[{"key": "a", "value": "b"}]
    )
    assert again["stateMachineArn"] == arn
    assert again["creationDate"] == play.house.now - 5_000


class Noting:
    """A transaction that writes down when it was to be alone."""

    def __init__(self, tx: Tx, said: list[str]) -> None:
        self._tx, self._said = tx, said

    def alone(self) -> None:
        self._said.append("alone")
        self._tx.alone()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


def test_nobody_waits_while_a_definition_is_parsed(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of JSONata takes seconds; on PostgreSQL the whole house waits for a unit that is alone."""
    said: list[str] = []

    def noting(text: str) -> Machine:
        said.append("parse")
        return parse(text)

    monkeypatch.setattr(definitions, "parse", noting)
    for name in ("CreateStateMachine", "UpdateStateMachine"):
        found = play.house.switchboard.operations["stepfunctions", name]
        run = partial(lambda run, tx, request: run(Noting(tx, said), request), found.run)
        monkeypatch.setitem(play.house.switchboard.operations, ("stepfunctions", name), replace(found, run=run))
    arn = play.create(PASS)
    assert said[:2] == ["parse", "alone"]
    assert said.count("parse") == 1  # also where the unit begins again to be alone
    said.clear()
    play.call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(WAIT))
    assert said[:2] == ["parse", "alone"]
    assert said.count("parse") == 1


@pytest.mark.parametrize(
    "more", [{"loggingConfiguration": {"includeExecutionData": True}}, {"tracingConfiguration": {"enabled": True}}]
)
def test_creating_with_other_settings_is_refused(play: Play, more: dict[str, Any]) -> None:
    play.create(PASS)
    with pytest.raises(StateMachineAlreadyExists):
        play.create(PASS, **more)


def test_a_definition_that_differs_in_whitespace_is_another(play: Play) -> None:
    arn = play.create(PASS)
    with pytest.raises(StateMachineAlreadyExists, match=f"State Machine Already Exists: '{arn}'"):
        play.call("CreateStateMachine", name="m", definition=json.dumps(PASS, indent=1), roleArn=ROLE)


@pytest.mark.parametrize("name", ["a b", "a:b", "a/b", "a?", "a\x7f", "a#", "x" * 81, "", "a\ud800"])
def test_names_are_checked(play: Play, name: str) -> None:
    with pytest.raises(InvalidName):
        play.create(PASS, name)


@pytest.mark.parametrize("name", ["a.b_c-d", "日本", "bob's(machine)", "a@b+c=d!"])
def test_other_names_are_fine(play: Play, name: str) -> None:
    assert play.create(PASS, name).endswith(f":stateMachine:{name}")


def test_a_bad_definition_names_its_place(play: Play) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        play.create({"StartAt": "P"})
    assert refused.value.message == (
        "Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: These fields are required: [States] at /'"
    )
    assert play.call("ListStateMachines") == {"stateMachines": []}


def test_what_comes_later_is_refused_in_words(play: Play) -> None:
    with pytest.raises(ValidationException, match="publish"):
        play.create(PASS, versionDescription="of what?")
    with pytest.raises(ValidationException, match="encryptionConfiguration"):
        play.create(PASS, encryptionConfiguration={"type": "CUSTOMER_MANAGED_KMS_KEY", "kmsKeyId": "k"})
    with pytest.raises(InvalidLoggingConfiguration, match="exactly one"):
        play.create(PASS, loggingConfiguration={"level": "ALL"})


def test_an_update_makes_a_revision_only_if_something_changes(play: Play) -> None:
    arn = play.create(PASS)
    assert "revisionId" not in play.call("DescribeStateMachine", stateMachineArn=arn)
    assert "revisionId" not in play.call("UpdateStateMachine", stateMachineArn=arn, roleArn=ROLE)
    first = play.call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(WAIT))
    same = play.call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(WAIT), roleArn=ROLE)
    assert same["revisionId"] == first["revisionId"]
    logged = play.call("UpdateStateMachine", stateMachineArn=arn, tracingConfiguration={"enabled": True})
    assert logged["revisionId"] != first["revisionId"]
    described = play.call("DescribeStateMachine", stateMachineArn=arn)
    assert described["revisionId"] == logged["revisionId"]
    assert json.loads(described["definition"]) == WAIT
    assert described["tracingConfiguration"] == {"enabled": True}


def test_updating_needs_something_to_update(play: Play) -> None:
    arn = play.create(PASS)
    with pytest.raises(MissingRequiredParameter):
        play.call("UpdateStateMachine", stateMachineArn=arn)
    with pytest.raises(InvalidDefinition):
        play.call("UpdateStateMachine", stateMachineArn=arn, definition="{}")
    with pytest.raises(StateMachineDoesNotExist):
        play.call("UpdateStateMachine", stateMachineArn=arn + "x", roleArn=ROLE)


def test_running_executions_stay_on_their_revision(play: Play) -> None:
    arn = play.create(WAIT)
    running = play.start(arn)
    play.call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(PASS))
    assert play.output(play.start(arn)) == {"done": True}
    assert json.loads(play.call("DescribeStateMachineForExecution", executionArn=running)["definition"]) == WAIT
    play.house.advance(minutes=1)
    assert play.output(running) == {}


def test_a_machine_with_executions_is_deleting_until_they_end(play: Play) -> None:
    arn = play.create(WAIT)
    running = play.start(arn)
    play.call("DeleteStateMachine", stateMachineArn=arn)
    assert play.call("DescribeStateMachine", stateMachineArn=arn)["status"] == "DELETING"
    with pytest.raises(StateMachineDeleting):
        play.start(arn)
    with pytest.raises(StateMachineDeleting):
        play.create(WAIT)
    play.house.advance(minutes=1)
    assert play.describe(running)["status"] == "ABORTED"
    with pytest.raises(StateMachineDoesNotExist):
        play.call("DescribeStateMachine", stateMachineArn=arn)
    assert play.left_over() == {}


def test_the_name_of_a_deleted_machine_is_free_and_its_executions_can_be_read(play: Play) -> None:
    arn = play.create(PASS)
    old = play.start(arn, name="one")
    play.call("DeleteStateMachine", stateMachineArn=arn)
    play.call("DeleteStateMachine", stateMachineArn=arn)
    assert play.describe(old)["status"] == "SUCCEEDED"
    play.create({**PASS, "Comment": "new"})
    assert play.call("ListExecutions", stateMachineArn=arn)["executions"] == []
    assert play.start(arn, name="one") == old


def test_machines_are_listed_by_name_over_pages(play: Play) -> None:
    for name in ("c", "a", "d", "b"):
        play.create(PASS, name)
    first = play.call("ListStateMachines", maxResults=3)
    assert [one["name"] for one in first["stateMachines"]] == ["a", "b", "c"]
    rest = play.call("ListStateMachines", nextToken=first["nextToken"])
    assert [one["name"] for one in rest["stateMachines"]] == ["d"]
    assert "nextToken" not in rest
    for token in ("x", first["nextToken"][:-1] + "A"):
        with pytest.raises(InvalidToken):
            play.call("ListStateMachines", nextToken=token)


def test_tags_merge_and_are_bounded(play: Play) -> None:
    arn = play.create(PASS, tags=[{"key": "a", "value": "1"}])
    play.call("TagResource", resourceArn=arn, tags=[{"key": "b", "value": "2"}, {"key": "a", "value": "3"}])
    assert play.call("ListTagsForResource", resourceArn=arn)["tags"] == [
        {"key": "a", "value": "3"},
        {"key": "b", "value": "2"},
    ]
    with pytest.raises(TooManyTags):
        play.call("TagResource", resourceArn=arn, tags=[{"key": str(n), "value": ""} for n in range(49)])
    play.call("UntagResource", resourceArn=arn, tagKeys=["a", "nothing"])
    assert play.call("ListTagsForResource", resourceArn=arn)["tags"] == [{"key": "b", "value": "2"}]
    with pytest.raises(ResourceNotFound):
        play.call("ListTagsForResource", resourceArn=arn + ":1")


@pytest.mark.parametrize(
    "arn", ["nothing", "arn:aws:sqs:us-east-1:000000000000:q", "arn:aws:states:us-east-1:000000000000:execution:m:e"]
)
def test_arns_of_something_else_are_refused(play: Play, arn: str) -> None:
    with pytest.raises(InvalidArn):
        play.call("DescribeStateMachine", stateMachineArn=arn)


def test_metadata_only_leaves_the_definition_out(play: Play) -> None:
    arn = play.create(PASS)
    assert "definition" not in play.call("DescribeStateMachine", stateMachineArn=arn, includedData="METADATA_ONLY")


def test_the_quota_of_machines() -> None:
    play = Play(state_machines=1)
    play.create(PASS, "one")
    play.create(PASS, "one")
    with pytest.raises(StateMachineLimitExceeded):
        play.create(PASS, "two")
    play.house.close()


def test_validating_stores_nothing(play: Play) -> None:
    assert play.call("ValidateStateMachineDefinition", definition=json.dumps(PASS)) == {
        "result": "OK",
        "diagnostics": [],
        "truncated": False,
    }
    two = {"StartAt": "A", "States": {"A": {"Type": "Pass"}, "B": {"Type": "Pass"}}}
    found = play.call("ValidateStateMachineDefinition", definition=json.dumps(two), maxResults=1)
    assert (found["result"], len(found["diagnostics"]), found["truncated"]) == ("FAIL", 1, True)
