"""Tags of machines and activities; nothing else has any (recorded: sfn_api_tagging/*)."""

from typing import Any

from tasuki.services.machines import queries as sql
from tasuki.services.machines.activities_queries import SET_ACTIVITY_TAGS
from tasuki.services.machines.activities_queue import find_activity
from tasuki.services.machines.api import find_machine
from tasuki.services.machines.errors import ResourceNotFound
from tasuki.services.machines.model import merged_tags
from tasuki.store.store import Tx
from tasuki.values.arns import parse_arn
from tasuki.values.documents import dumps, loads
from tasuki.values.operations import Operation, Operations, Request


def operations() -> Operations:
    """Answer the operations on tags."""
    return {
        "TagResource": Operation("write", tag_resource),
        "UntagResource": Operation("write", untag_resource),
        "ListTagsForResource": Operation("read", list_tags_for_resource),
    }


def tag_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """TagResource. Raises InvalidArn, ResourceNotFound, TooManyTags."""
    tx.alone()
    arn = request.input["resourceArn"]
    place, statement, tags = _tagged(tx, arn)
    tx.run(statement, (dumps(merged_tags(tags, request.input["tags"], arn)), place))
    return {}


def untag_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """UntagResource; keys that are not there don't matter. Raises InvalidArn, ResourceNotFound."""
    tx.alone()
    place, statement, tags = _tagged(tx, request.input["resourceArn"])
    kept = [tag for tag in tags if tag["key"] not in request.input["tagKeys"]]
    tx.run(statement, (dumps(kept), place))
    return {}


def list_tags_for_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """ListTagsForResource. Raises InvalidArn, ResourceNotFound."""
    return {"tags": _tagged(tx, request.input["resourceArn"])[2]}


def _tagged(tx: Tx, arn: str) -> tuple[int, str, list[dict[str, str]]]:
    """Answer (row id, the statement that sets its tags, its tags). Raises InvalidArn, ResourceNotFound."""
    parts = parse_arn(arn)
    of_activity = parts is not None and parts.resource.startswith("activity:")
    found = find_activity(tx, arn) if of_activity else find_machine(tx, arn)
    if found is None:
        raise ResourceNotFound(arn)
    return found.id, SET_ACTIVITY_TAGS if of_activity else sql.SET_TAGS, loads(found.tags)
