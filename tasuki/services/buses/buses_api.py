"""Operations on event buses: they themselves, and who else may put events on them (kept as a policy, and not enforced)."""

from dataclasses import replace
from typing import Any

from tasuki.services.buses import queries as sql
from tasuki.services.buses.errors import (
    LimitExceededException,
    PolicyLengthExceededException,
    ResourceAlreadyExistsException,
    ResourceNotFoundException,
    ValidationException,
)
from tasuki.services.buses.model import DEFAULT, Bus
from tasuki.services.buses.paging import after_token, with_token
from tasuki.services.buses.shelf import add_bus, find_bus, kept_bus, the_bus
from tasuki.services.buses.tagging import check_tags
from tasuki.store.store import Tx
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument
from tasuki.values.operations import Operation, Operations, Request

DEFAULT_QUOTA = 100
"""Buses besides the default one (quota "Event buses"); `[quotas] event_buses` in the configuration."""
LONGEST_POLICY = 10_240
PAGE_SIZE = 100
_SETTINGS = ("KmsKeyIdentifier", "DeadLetterConfig", "LogConfig")


def operations(quota: int) -> Operations:
    """Answer the table of operations."""
    return {
        "CreateEventBus": Operation("write", lambda tx, request: create_event_bus(tx, request, quota)),
        "UpdateEventBus": Operation("write", update_event_bus),
        "DeleteEventBus": Operation("write", delete_event_bus),
        "DescribeEventBus": Operation("read", describe_event_bus),
        "ListEventBuses": Operation("read", list_event_buses),
        "PutPermission": Operation("write", put_permission),
        "RemovePermission": Operation("write", remove_permission),
    }


def create_event_bus(tx: Tx, request: Request, quota: int) -> dict[str, Any]:
    """Create a bus. KmsKeyIdentifier, DeadLetterConfig and LogConfig are kept and described, and change nothing.

    Raises `ResourceAlreadyExistsException`, `LimitExceededException`, `ValidationException`.
    """
    given = request.input
    name = given["Name"]
    if given.get("EventSourceName") is not None or "/" in name:
        raise ValidationException(
            "Partner event sources are not offered here: leave out EventSourceName, and / in Name."
        )
    if find_bus(tx, request.account, request.region, name) is not None:
        raise ResourceAlreadyExistsException(f"Event bus {name} already exists.")
    check_tags(given.get("Tags") or [])
    tx.alone()
    count = tx.one(sql.COUNT_BUSES, (request.account, request.region))
    if count is not None and count[0] >= quota:
        raise LimitExceededException
    settings = _settings(given)
    bus = Bus(
        id=0,
        account=request.account,
        region=request.region,
        name=name,
        description=given.get("Description"),
        settings=dumps(settings),
        tags=dumps(given.get("Tags") or []),
    )
    made = add_bus(tx, bus)
    return {"EventBusArn": made.arn, **_described(given), **settings}


def update_event_bus(tx: Tx, request: Request) -> dict[str, Any]:
    """Say anew what a bus is; what is not given stays. Raises `ResourceNotFoundException`."""
    given = request.input
    found = the_bus(tx, request, given.get("Name"))
    tx.alone()
    bus = kept_bus(tx, found)
    bus = replace(
        bus,
        description=given.get("Description", bus.description),
        settings=dumps({**loads(bus.settings), **_settings(given)}),
    )
    tx.run(sql.UPDATE_BUS, (bus.description, bus.settings, tx.now, bus.id))
    shown = {"Arn": bus.arn, "Name": bus.name, "Description": bus.description, **loads(bus.settings)}
    return {key: value for key, value in shown.items() if value is not None}


def delete_event_bus(tx: Tx, request: Request) -> dict[str, Any]:
    """Delete a bus; one that isn't there is no error. Raises `ValidationException` for one with rules, and the default one."""
    name = request.input["Name"]
    if name == DEFAULT:
        raise ValidationException("Cannot delete event bus default.")
    bus = find_bus(tx, request.account, request.region, name)
    if bus is None:
        return {}
    tx.alone()
    count = tx.one(sql.COUNT_RULES, (bus.id,))
    if count is not None and count[0]:
        raise ValidationException(
            f"Event bus {name} can't be deleted since it has rules: delete its {count[0]} rules first."
        )
    tx.run(sql.DROP_BUS, (bus.id,))
    tx.run(sql.DROP_EVENTS_OF, (bus.id,))
    return {}


def describe_event_bus(tx: Tx, request: Request) -> dict[str, Any]:
    """Describe a bus. Raises `ResourceNotFoundException`."""
    return the_bus(tx, request, request.input.get("Name")).described()


def list_event_buses(tx: Tx, request: Request) -> dict[str, Any]:
    """List buses: the default one first, then by name."""
    given = request.input
    prefix, limit = given.get("NamePrefix", ""), given.get("Limit", PAGE_SIZE)
    query, after = after_token(tx, request, "ListEventBuses", prefix)
    first = []
    if not after and DEFAULT.startswith(prefix):
        first = [the_bus(tx, request, None)]
    rows = tx.all(sql.BUSES, (request.account, request.region, after, prefix, prefix, limit + 1))
    buses = [*first, *(Bus(*row) for row in rows)]
    # The default bus comes before every name, so a page that ends with it goes on behind no name at all.
    last = buses[limit - 1].name if len(buses) > limit else ""
    return with_token(
        tx, query, {"EventBuses": [bus.listed() for bus in buses[:limit]]}, "!" if last == DEFAULT else last
    )


def put_permission(tx: Tx, request: Request) -> dict[str, Any]:
    """Add a statement to a bus's policy, in place of one with its id; or replace the policy whole.

    Raises `ResourceNotFoundException`, `ValidationException`, `PolicyLengthExceededException`.
    """
    given = request.input
    found = the_bus(tx, request, given.get("EventBusName"))
    text = given.get("Policy")
    if text is not None:
        policy = _read_policy(text)
    else:
        for name in ("Action", "Principal", "StatementId"):
            if not given.get(name):
                raise ValidationException(f"Parameter {name} is not valid. Reason: {name} is a required argument.")
        policy = _with_statement(found, given)
    text = dumps(policy)
    if len(text) > LONGEST_POLICY:
        raise PolicyLengthExceededException(f"The policy is longer than {LONGEST_POLICY} characters.")
    tx.alone()
    tx.run(sql.SET_POLICY, (text, tx.now, kept_bus(tx, found).id))
    return {}


def _read_policy(text: str) -> dict[str, Any]:
    try:
        policy = loads(text)
    except MalformedDocument as bad:
        raise ValidationException(f"Parameter Policy is not valid. Reason: {bad}") from None
    if not isinstance(policy, dict):
        raise ValidationException("Parameter Policy is not valid. Reason: it must be a JSON object.")
    return policy


def _with_statement(bus: Bus, given: Any) -> dict[str, Any]:
    policy = loads(bus.policy) if bus.policy is not None else {"Version": "2012-10-17", "Statement": []}
    principal = given["Principal"]
    statement: dict[str, Any] = {
        "Sid": given["StatementId"],
        "Effect": "Allow",
        "Principal": "*" if principal == "*" else {"AWS": f"arn:aws:iam::{principal}:root"},
        "Action": given["Action"],
        "Resource": bus.arn,
    }
    if condition := given.get("Condition"):
        statement["Condition"] = {condition["Type"]: {condition["Key"]: condition["Value"]}}
    kept = [one for one in _statements(policy) if one.get("Sid") != statement["Sid"]]
    return {**policy, "Statement": [*kept, statement]}


def _statements(policy: dict[str, Any]) -> list[dict[str, Any]]:
    found = policy.get("Statement") or []
    return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)]


def remove_permission(tx: Tx, request: Request) -> dict[str, Any]:
    """Take a statement out of a bus's policy, or all. Raises `ResourceNotFoundException`."""
    given = request.input
    found = the_bus(tx, request, given.get("EventBusName"))
    policy = loads(found.policy) if found.policy is not None else {}
    kept = [one for one in _statements(policy) if one.get("Sid") != given.get("StatementId")]
    if given.get("RemoveAllPermissions"):
        kept = []
    elif len(kept) == len(_statements(policy)):
        raise ResourceNotFoundException("Statement with the provided id does not exist.")
    tx.alone()
    text = dumps({**policy, "Statement": kept}) if kept else None
    tx.run(sql.SET_POLICY, (text, tx.now, kept_bus(tx, found).id))
    return {}


def _settings(given: Any) -> dict[str, Any]:
    return {name: given[name] for name in _SETTINGS if given.get(name) is not None}


def _described(given: Any) -> dict[str, Any]:
    return {"Description": given["Description"]} if given.get("Description") else {}
