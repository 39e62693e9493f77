"""Buses: making, describing, listing and deleting them, their permissions and tags; and events that outlast a node."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasuki.services.switchboard import Happening
from tasuki.testing import ManualClock
from tasuki.values.errors import DomainError
from tasuki.values.instant import SECOND
from tests.services.buses.stage import ACCOUNT, REGION, Stage
from tests.stores import kept

ARN = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/"
SHOP = {"source": ["shop"]}


def refused(stage: Stage, operation: str, **given: Any) -> DomainError:
    with pytest.raises(DomainError) as no:
        stage.events(operation, **given)
    return no.value


def names(answer: dict[str, Any]) -> list[str]:
    return [bus["Name"] for bus in answer["EventBuses"]]


def test_the_default_bus_is_always_there(stage: Stage) -> None:
    assert stage.events("DescribeEventBus") == {"Name": "default", "Arn": f"{ARN}default"}
    assert names(stage.events("ListEventBuses")) == ["default"]
    stage.rule(SHOP)
    assert names(stage.events("ListEventBuses")) == ["default"]
    assert refused(stage, "CreateEventBus", Name="default").code == "ResourceAlreadyExistsException"
    assert refused(stage, "DeleteEventBus", Name="default").message == "Cannot delete event bus default."


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_pages_of_buses_hold_each_once(stage: Stage, limit: int) -> None:
    for name in ("a", "A", "z", "e_1"):
        stage.events("CreateEventBus", Name=name)
    found: list[str] = []
    more: dict[str, Any] = {}
    while True:
        page = stage.events("ListEventBuses", Limit=limit, **more)
        assert len(page["EventBuses"]) <= limit
        found += names(page)
        if "NextToken" not in page:
            break
        more = {"NextToken": page["NextToken"]}
    assert found[0] == "default"
    assert sorted(found) == sorted(["default", "a", "A", "z", "e_1"])
    assert names(stage.events("ListEventBuses", NamePrefix="de")) == ["default"]


def test_a_token_of_another_listing_is_refused(stage: Stage) -> None:
    for name in ("a", "b"):
        stage.events("CreateEventBus", Name=name)
    token = stage.events("ListEventBuses", Limit=1)["NextToken"]
    assert "NextToken is not valid" in refused(stage, "ListEventBuses", NamePrefix="a", NextToken=token).message
    assert "NextToken is not valid" in refused(stage, "ListRules", NextToken="x").message


def test_a_bus_is_described_as_it_was_made_and_changed(stage: Stage) -> None:
    settings = {"KmsKeyIdentifier": "k", "DeadLetterConfig": {"Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:d"}}
    made = stage.events("CreateEventBus", Name="b", Description="one", **settings)
    assert made == {"EventBusArn": f"{ARN}b", "Description": "one", **settings}
    stage.house.advance(seconds=5)
    assert stage.events("UpdateEventBus", Name="b", Description="two")["Description"] == "two"
    described = stage.events("DescribeEventBus", Name=f"{ARN}b")
    created, modified = described.pop("CreationTime"), described.pop("LastModifiedTime")
    assert modified - created == 5_000
    assert described == {"Name": "b", "Arn": f"{ARN}b", "Description": "two", **settings}


def test_a_deleted_bus_takes_what_was_on_its_way_with_it(stage: Stage) -> None:
    stage.events("CreateEventBus", Name="b")
    stage.rule(SHOP, {"Arn": stage.queue()}, bus="b")
    stage.events("PutEvents", Entries=[{"Source": "shop", "DetailType": "d", "Detail": "{}", "EventBusName": "b"}])
    stage.events("RemoveTargets", Rule="r", EventBusName="b", Ids=["t0"])
    stage.events("DeleteRule", Name="r", EventBusName="b")
    stage.events("DeleteEventBus", Name="b")
    stage.house.drain()
    assert stage.received() == []
    assert stage.rows("bus_events") == stage.rows("event_rules") == stage.rows("event_targets") == 0


def test_a_bus_that_is_made_after_another_was_deleted_has_none_of_its_events(stage: Stage) -> None:
    """On SQLite it may get the number of the other one."""
    stage.events("CreateEventBus", Name="b")
    stage.rule(SHOP, {"Arn": stage.queue()}, bus="b")
    stage.events("PutEvents", Entries=[{"Source": "shop", "DetailType": "d", "Detail": "{}", "EventBusName": "b"}])
    stage.events("RemoveTargets", Rule="r", EventBusName="b", Ids=["t0"])
    stage.events("DeleteRule", Name="r", EventBusName="b")
    stage.events("DeleteEventBus", Name="b")
    stage.events("CreateEventBus", Name="c")
    stage.rule(SHOP, {"Arn": stage.queue()}, bus="c")
    stage.house.drain()
    assert stage.received() == []
    assert stage.rows("bus_events") == 0


def test_what_is_not_offered_of_buses(stage: Stage) -> None:
    partner = "aws.partner/x/y"
    assert "Partner event sources" in refused(stage, "CreateEventBus", Name=partner, EventSourceName=partner).message
    entry = {"Source": "s", "DetailType": "d", "Detail": "{}"}
    assert "global endpoint" in refused(stage, "PutEvents", Entries=[entry], EndpointId="a.b").message


def test_a_condition_of_a_permission_is_kept(stage: Stage) -> None:
    condition = {"Type": "StringEquals", "Key": "aws:PrincipalOrgID", "Value": "o-1"}
    given = {"Action": "events:PutEvents", "Principal": "*", "StatementId": "s"}
    stage.events("PutPermission", Condition=condition, **given)
    policy = json.loads(stage.events("DescribeEventBus")["Policy"])
    assert policy["Statement"][0]["Condition"] == {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}
    assert "StatementId is a required argument" in refused(stage, "PutPermission", Action="a", Principal="*").message
    assert "Parameter Policy is not valid" in refused(stage, "PutPermission", Policy="[").message
    long = json.dumps({"Statement": [{"Sid": "x" * 11_000}]})
    assert refused(stage, "PutPermission", Policy=long).code == "PolicyLengthExceededException"


def test_tags(stage: Stage) -> None:
    rule = stage.rule(SHOP)
    stage.events("TagResource", ResourceARN=rule, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    stage.events("TagResource", ResourceARN=rule, Tags=[{"Key": "a", "Value": "3"}])
    tags = [{"Key": "b", "Value": "2"}, {"Key": "a", "Value": "3"}]
    assert stage.events("ListTagsForResource", ResourceARN=rule) == {"Tags": tags}
    many = [{"Key": str(number), "Value": ""} for number in range(49)]
    assert refused(stage, "TagResource", ResourceARN=rule, Tags=many).code == "LimitExceededException"
    assert "stands there twice" in refused(stage, "TagResource", ResourceARN=rule, Tags=[tags[0]] * 2).message
    assert (
        "no ARN of an event bus or a rule"
        in refused(stage, "ListTagsForResource", ResourceARN="arn:aws:sqs:::q").message
    )


def test_events_that_wait_outlast_the_node(tmp_path: Path) -> None:
    clock, store = ManualClock(), kept(tmp_path / "house.db")
    first = Stage(clock=clock, store=store)
    first.rule(SHOP, {"Arn": first.queue()})
    entry = {"Source": "shop", "DetailType": "d", "Detail": "{}"}
    ids = [one["EventId"] for one in first.events("PutEvents", Entries=[entry] * 3)["Entries"]]
    assert first.rows("bus_events") == 3
    first.house.close()
    second = Stage(clock=clock, store=store)
    second.house.drain()
    assert [event["id"] for event in second.received()] == ids
    second.house.close()


def test_the_house_tells_events_of_its_own(stage: Stage) -> None:
    stage.events("CreateEventBus", Name="b")
    stage.rule({"source": ["aws.house"]}, {"Arn": stage.queue()}, bus="b")
    board = stage.house.switchboard

    def unit(tx: Any) -> tuple[bool, bool]:
        told = Happening("aws.house", "D", '{"n":1}', ACCOUNT, REGION, tx.now, ("arn:x",), bus="b", trace="Root=1-0-0")
        board.publish(tx, [told, Happening("aws.house", "D", "{}", ACCOUNT, REGION, tx.now)])
        return board.wants(tx, ACCOUNT, REGION, "aws.house"), board.wants(tx, ACCOUNT, "eu-west-1", "aws.house")

    assert stage.house.unit(unit) == (False, False)
    stage.house.drain()
    (event,) = stage.received()
    assert (event["detail"], event["resources"], event["source"]) == ({"n": 1}, ["arn:x"], "aws.house")


def test_a_round_that_finds_all_events_in_other_hands_waits_a_little(stage: Stage) -> None:
    """None would have the node look again at once, and again, as long as the other node's unit takes."""
    [poll] = stage.house.rooms["buses"].polls
    now = stage.house.now
    due = stage.house.unit(poll.run)
    assert due is not None
    assert now < due < now + SECOND
