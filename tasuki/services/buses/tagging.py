"""Tags of buses and rules."""

from collections.abc import Sequence
from typing import Any

from tasuki.services.buses import queries as sql
from tasuki.services.buses.errors import LimitExceededException, ValidationException
from tasuki.services.buses.model import DEFAULT, Bus, Rule
from tasuki.services.buses.shelf import kept_bus, the_bus, the_rule
from tasuki.store.store import Tx
from tasuki.values.arns import parse_arn
from tasuki.values.documents import dumps, loads
from tasuki.values.operations import Operation, Operations, Request

MOST_TAGS = 50


def operations() -> Operations:
    """Answer the table of operations."""
    return {
        "TagResource": Operation("write", tag_resource),
        "UntagResource": Operation("write", untag_resource),
        "ListTagsForResource": Operation("read", list_tags_for_resource),
    }


def check_tags(tags: Sequence[dict[str, str]]) -> None:
    """Raises `LimitExceededException` for too many, `ValidationException` for a key that stands twice."""
    if len(tags) > MOST_TAGS:
        raise LimitExceededException
    keys = [tag["Key"] for tag in tags]
    for key in keys:
        if keys.count(key) > 1:
            raise ValidationException(f"Parameter Tags is not valid. Reason: the key {key} stands there twice.")


def tag_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """Add tags, or give them new values. Raises `ResourceNotFoundException`."""
    found = _find(tx, request)
    added = request.input["Tags"]
    check_tags(added)
    fresh = {tag["Key"] for tag in added}
    tags = [*(tag for tag in loads(found.tags) if tag["Key"] not in fresh), *added]
    check_tags(tags)
    _keep(tx, found, tags)
    return {}


def untag_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """Remove tags; keys that aren't there are no error. Raises `ResourceNotFoundException`."""
    found = _find(tx, request)
    gone = set(request.input["TagKeys"])
    _keep(tx, found, [tag for tag in loads(found.tags) if tag["Key"] not in gone])
    return {}


def list_tags_for_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """Answer the tags of a bus or a rule. Raises `ResourceNotFoundException`."""
    return {"Tags": loads(_find(tx, request).tags)}


def _keep(tx: Tx, found: Bus | Rule, tags: list[dict[str, str]]) -> None:
    tx.alone()
    if isinstance(found, Rule):
        tx.run(sql.SET_RULE_TAGS, (dumps(tags), found.id))
    else:
        tx.run(sql.SET_BUS_TAGS, (dumps(tags), kept_bus(tx, found).id))


def _find(tx: Tx, request: Request) -> Bus | Rule:
    text = request.input["ResourceARN"]
    arn = parse_arn(text)
    kind, _, place = arn.resource.partition("/") if arn is not None and arn.service == "events" else ("", "", "")
    if kind == "event-bus" and place:
        return the_bus(tx, request, text)
    if kind == "rule" and place:
        bus, _, name = place.rpartition("/")
        return the_rule(tx, the_bus(tx, request, bus or DEFAULT), name)
    raise ValidationException(
        f"Parameter ResourceARN is not valid. Reason: {text} is no ARN of an event bus or a rule."
    )
