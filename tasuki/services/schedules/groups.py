"""The operations on groups and their tags. `default` is always there, and stays (API reference, "DeleteScheduleGroup")."""

from typing import Any

from tasuki.services.schedules import queries
from tasuki.services.schedules.checking import check_tags
from tasuki.services.schedules.errors import (
    ConflictException,
    ServiceQuotaExceededException,
    ValidationException,
    is_being_deleted,
    no_such_group,
)
from tasuki.services.schedules.model import DEFAULT_GROUP, Group, group_arn
from tasuki.services.schedules.requests import is_repeat, made_by
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values import documents
from tasuki.values.arns import parse_arn
from tasuki.values.config import Config
from tasuki.values.operations import Operation, Operations, Request
from tasuki.values.pages import BadPageToken

DEFAULT_QUOTA = 500
"""Groups per account and region (quota "Number of schedule groups"); `[quotas] schedule_groups` in the configuration."""
PAGE_SIZE = 100


class Groups:
    """The operations, with what they need of the configuration."""

    def __init__(self, config: Config) -> None:
        self._quota = config.quotas.get("schedule_groups", DEFAULT_QUOTA)

    def operations(self) -> Operations:
        """Answer the table for the door."""
        return {
            "CreateScheduleGroup": Operation("write", self.create_schedule_group),
            "DeleteScheduleGroup": Operation("write", delete_schedule_group),
            "GetScheduleGroup": Operation("read", get_schedule_group),
            "ListScheduleGroups": Operation("read", list_schedule_groups),
            "TagResource": Operation("write", tag_resource),
            "UntagResource": Operation("write", untag_resource),
            "ListTagsForResource": Operation("read", list_tags_for_resource),
        }

    def create_schedule_group(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Create a group."""
        given = request.input
        name = given["Name"]
        tags = {tag["Key"]: tag["Value"] for tag in given.get("Tags") or ()}
        check_tags(tags)
        tx.alone()
        arn = {"ScheduleGroupArn": group_arn(request.region, request.account, name)}
        wanted = made_by(given)
        row = tx.one(queries.GROUP, (request.account, request.region, name))
        if row is not None or name == DEFAULT_GROUP:
            old = Group.of_row(row) if row is not None else Group.unwritten(request.account, request.region)
            if old.state == "DELETING":
                raise is_being_deleted(name)
            if is_repeat(wanted, old.request):
                return arn
            raise ConflictException(f"Schedule group {name} already exists.")
        count = tx.one(queries.COUNT_GROUPS, (request.account, request.region))
        if count is not None and count[0] >= self._quota:
            raise ServiceQuotaExceededException(
                f"The account has {count[0]} schedule groups, which is its limit; raise [quotas] schedule_groups in tasuki.toml."
            )
        _insert(tx, request, name, tags, wanted)
        return arn


def delete_schedule_group(tx: Tx, request: Request) -> dict[str, Any]:
    """Delete a group: it is DELETING until its schedules are gone, in slices; they may fire meanwhile. Once more is no error."""
    name = request.input["Name"]
    if name == DEFAULT_GROUP:
        raise ValidationException("Name: the schedule group default can't be deleted.")
    tx.alone()
    tx.run(queries.BEGIN_DELETING, (tx.now, find_group(tx, request, name).id))
    tx.ring("schedules")
    return {}


def get_schedule_group(tx: Tx, request: Request) -> dict[str, Any]:
    """Describe a group."""
    return find_group(tx, request, request.input["Name"]).described()


def list_schedule_groups(tx: Tx, request: Request) -> dict[str, Any]:
    """List groups by name, a page at a time."""
    given = request.input
    prefix, limit = given.get("NamePrefix") or "", given.get("MaxResults", PAGE_SIZE)
    query = "ListScheduleGroups:" + documents.dumps([request.account, request.region, prefix])
    tokens = page_tokens(tx)
    after = ""
    if token := given.get("NextToken"):
        try:
            after = str(tokens.open(query, token))
        except BadPageToken:
            raise ValidationException("NextToken is not one that this listing answered.") from None
    rows = tx.all(queries.GROUPS, (request.account, request.region, after, prefix, prefix, limit + 1))
    groups = [Group.of_row(row) for row in rows]
    default = find_group(tx, request, DEFAULT_GROUP)
    if not default.id and after < DEFAULT_GROUP and DEFAULT_GROUP.startswith(prefix):
        groups = sorted((*groups, default), key=lambda group: group.name)
    answer: dict[str, Any] = {"ScheduleGroups": [group.described() for group in groups[:limit]]}
    if len(groups) > limit:
        answer["NextToken"] = tokens.seal(query, groups[limit - 1].name)
    return answer


def tag_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """Add tags to a group, or give them new values."""
    tx.alone()
    group = _find_by_arn(tx, request)
    tags = {**group.tags, **{tag["Key"]: tag["Value"] for tag in request.input["Tags"]}}
    check_tags(tags)
    _set_tags(tx, request, group, tags)
    return {}


def untag_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """Remove tags of a group; keys that aren't there are no error."""
    tx.alone()
    group = _find_by_arn(tx, request)
    gone = set(request.input["TagKeys"])
    _set_tags(tx, request, group, {key: value for key, value in group.tags.items() if key not in gone})
    return {}


def list_tags_for_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """Answer a group's tags."""
    return {"Tags": [{"Key": key, "Value": value} for key, value in _find_by_arn(tx, request).tags.items()]}


# -- rows ---------------------------------------------------------------------------------------------------


def find_group(tx: Tx, request: Request, name: str) -> Group:
    """Answer a group. Raises `ResourceNotFoundException`."""
    row = tx.one(queries.GROUP, (request.account, request.region, name))
    if row is not None:
        return Group.of_row(row)
    if name == DEFAULT_GROUP:
        return Group.unwritten(request.account, request.region)
    raise no_such_group(name)


def active_group(tx: Tx, request: Request, name: str) -> None:
    """Refuse a group that takes no new schedule. Raises `ResourceNotFoundException` and `ConflictException`."""
    group = find_group(tx, request, name)
    if group.state == "DELETING":
        raise is_being_deleted(name)
    if not group.id:
        _insert(tx, request, DEFAULT_GROUP, {}, "")


def _find_by_arn(tx: Tx, request: Request) -> Group:
    text = request.input["ResourceArn"]
    arn = parse_arn(text)
    if arn is None or (arn.account, arn.region) != (request.account, request.region):
        raise no_such_group(text)
    return find_group(tx, request, arn.resource.removeprefix("schedule-group/"))


def _insert(tx: Tx, request: Request, name: str, tags: dict[str, str], wanted: str) -> None:
    place = (request.account, request.region, name)
    tx.run(queries.INSERT_GROUP, (*place, documents.dumps(tags), wanted, tx.now, tx.now))


def _set_tags(tx: Tx, request: Request, group: Group, tags: dict[str, str]) -> None:
    if group.id:
        tx.run(queries.SET_TAGS, (documents.dumps(tags), tx.now, group.id))
    else:
        _insert(tx, request, DEFAULT_GROUP, tags, "")
