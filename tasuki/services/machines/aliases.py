"""Aliases: names that lead to one or two versions (states.md section 11; recorded: sfn_api_aliasing/*)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tasuki.services.machines import revisions_queries as sql
from tasuki.services.machines.api import MachineRow, find_machine, open_token, page_size
from tasuki.services.machines.errors import (
    ConflictException,
    ResourceNotFound,
    ServiceQuotaExceededException,
    StateMachineDeleting,
    StateMachineDoesNotExist,
    ValidationException,
)
from tasuki.services.machines.model import machine_arn
from tasuki.services.machines.revisions import qualified_arn, split_machine_arn, version_number
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import Instant
from tasuki.values.operations import Operation, Operations, Request

ALIASES_MAX = 100
"""Aliases of one machine (Step Functions quotas)."""
_BAD_ROUTING = "INVALID_ROUTING_CONFIGURATION"


class AliasRow(NamedTuple):
    """An alias, as `revisions_queries.ALIAS` answers it; `routing` is [[version, weight], ...] as JSON."""

    id: int
    name: str
    description: str | None
    routing: str
    created_at: Instant
    updated_at: Instant


def operations() -> Operations:
    """Answer the operations on aliases."""
    return {
        "CreateStateMachineAlias": Operation("write", create_state_machine_alias),
        "DescribeStateMachineAlias": Operation("read", describe_state_machine_alias),
        "UpdateStateMachineAlias": Operation("write", update_state_machine_alias),
        "DeleteStateMachineAlias": Operation("write", delete_state_machine_alias),
        "ListStateMachineAliases": Operation("read", list_state_machine_aliases),
    }


def create_state_machine_alias(tx: Tx, request: Request) -> dict[str, Any]:
    """CreateStateMachineAlias, idempotent on name, description and routing.

    Raises InvalidArn, ValidationException, ResourceNotFound, StateMachineDeleting, ConflictException,
    ServiceQuotaExceededException.
    """
    tx.alone()
    given = request.input
    name, description = given["name"], given.get("description")
    machine, routing = _checked_routing(tx, given["routingConfiguration"])
    arn = f"{machine_arn(request.account, request.region, machine.name)}:{name}"
    there = _find(tx, machine.id, name)
    if there is not None:
        if (there.description, there.routing) != (description, routing):
            raise ConflictException(
                "Failed to create alias because an alias with the same name and a different routing configuration "
                "already exists."
            )
        return {"stateMachineAliasArn": arn, "creationDate": there.created_at}
    count = tx.one(sql.ALIAS_COUNT, (machine.id,))
    assert count is not None
    if count[0] >= ALIASES_MAX:
        raise ServiceQuotaExceededException(f"The state machine has the maximum number of aliases ({ALIASES_MAX}).")
    tx.run(sql.ADD_ALIAS, (machine.id, name, description, routing, tx.now, tx.now))
    return {"stateMachineAliasArn": arn, "creationDate": tx.now}


def update_state_machine_alias(tx: Tx, request: Request) -> dict[str, Any]:
    """UpdateStateMachineAlias: description, routing, or both.

    Raises InvalidArn, ValidationException, ResourceNotFound, StateMachineDeleting.
    """
    tx.alone()
    given = request.input
    machine, there = _alias(tx, given["stateMachineAliasArn"])
    wanted = given.get("routingConfiguration")
    if wanted is None and given.get("description") is None:
        raise ValidationException(
            "Either the description or the routing configuration must be specified",
            reason="MISSING_REQUIRED_PARAMETER",
        )
    routing = there.routing
    if wanted is not None:
        other, routing = _checked_routing(tx, wanted)
        if other.id != machine.id:
            raise ValidationException(
                "Routing configuration must contain versions of the alias's state machine.", reason=_BAD_ROUTING
            )
    description = given.get("description", there.description)
    tx.run(sql.SET_ALIAS, (description, routing, tx.now, there.id))
    return {"updateDate": tx.now}


def describe_state_machine_alias(tx: Tx, request: Request) -> dict[str, Any]:
    """DescribeStateMachineAlias. Raises InvalidArn, ResourceNotFound."""
    arn = request.input["stateMachineAliasArn"]
    machine, there = _alias(tx, arn)
    answer: dict[str, Any] = {
        "stateMachineAliasArn": arn,
        "name": there.name,
        "routingConfiguration": [
            {
                "stateMachineVersionArn": qualified_arn(request.account, request.region, machine.name, number),
                "weight": weight,
            }
            for number, weight in loads(there.routing)
        ],
        "creationDate": there.created_at,
        "updateDate": there.updated_at,
    }
    if there.description is not None:
        answer["description"] = there.description
    return answer


def delete_state_machine_alias(tx: Tx, request: Request) -> dict[str, Any]:
    """DeleteStateMachineAlias; its versions stay. Raises InvalidArn, ResourceNotFound."""
    tx.alone()
    _, there = _alias(tx, request.input["stateMachineAliasArn"])
    tx.run(sql.DROP_ALIAS, (there.id,))
    return {}


def list_state_machine_aliases(tx: Tx, request: Request) -> dict[str, Any]:
    """ListStateMachineAliases of a machine, or (with a version's ARN) of one version, in the order they were made.

    Raises InvalidArn, InvalidToken, StateMachineDoesNotExist, StateMachineDeleting.
    """
    given = request.input
    arn = given["stateMachineArn"]
    number = version_number(arn)
    of_machine = arn.rpartition(":")[0] if number is not None else arn
    machine = find_machine(tx, of_machine)
    if machine is None:
        raise StateMachineDoesNotExist(arn)
    if machine.status != "ACTIVE":
        raise StateMachineDeleting(arn)
    limit = page_size(given)
    query = f"aliases {arn}"
    after = open_token(tx, query, given.get("nextToken")) or 0
    rows = [AliasRow(*row) for row in tx.all(sql.ALIASES, (machine.id, after))]
    if number is not None:
        rows = [row for row in rows if _leads_to(row, number)]
    answer: dict[str, Any] = {
        "stateMachineAliases": [
            {"stateMachineAliasArn": f"{of_machine}:{row.name}", "creationDate": row.created_at} for row in rows[:limit]
        ]
    }
    if len(rows) > limit:
        answer["nextToken"] = page_tokens(tx).seal(query, rows[limit - 1].id)
    return answer


def names_of_version(tx: Tx, machine: int, number: int) -> list[str]:
    """Answer the names of the aliases that lead to a version."""
    rows = [AliasRow(*row) for row in tx.all(sql.ALIASES, (machine, 0))]
    return [row.name for row in rows if _leads_to(row, number)]


def _leads_to(row: AliasRow, number: int) -> bool:
    return any(version == number for version, _ in loads(row.routing))


def _find(tx: Tx, machine: int, name: str) -> AliasRow | None:
    row = tx.one(sql.ALIAS, (machine, name))
    return AliasRow(*row) if row is not None else None


def _alias(tx: Tx, arn: str) -> tuple[MachineRow, AliasRow]:
    """Answer an alias and its machine. Raises InvalidArn, ResourceNotFound, StateMachineDeleting."""
    parts, name, qualifier = split_machine_arn(arn)
    machine = find_machine(tx, machine_arn(parts.account, parts.region, name))
    there = _find(tx, machine.id, qualifier) if machine is not None and qualifier is not None else None
    if machine is None or there is None:
        raise ResourceNotFound(arn, "Request references a resource that does not exist.")
    return machine, there


def _checked_routing(tx: Tx, given: Sequence[dict[str, Any]]) -> tuple[MachineRow, str]:
    """Answer whose versions a routing names, and the routing as it is stored.

    Raises InvalidArn, ValidationException, ResourceNotFound, StateMachineDeleting.
    """
    arns = [entry["stateMachineVersionArn"] for entry in given]
    weights = [entry["weight"] for entry in given]
    received = f"Received: [{', '.join(arns)}]"
    if len(set(arns)) != len(arns):
        raise ValidationException(
            f"Routing configuration must contain distinct state machine version ARNs. {received}", reason=_BAD_ROUTING
        )
    numbers = [version_number(arn) for arn in arns]
    if None in numbers:
        raise ValidationException(
            f"Routing configuration must contain state machine version ARNs. {received}", reason=_BAD_ROUTING
        )
    if sum(weights) != 100:
        raise ValidationException(
            f"Sum of routing configuration weights must equal 100. Received: [{', '.join(map(str, weights))}]",
            reason=_BAD_ROUTING,
        )
    of_machines = {arn.rpartition(":")[0] for arn in arns}
    if len(of_machines) > 1:
        raise ValidationException(
            f"Routing configuration must contain versions of one state machine. {received}", reason=_BAD_ROUTING
        )
    arn = of_machines.pop()
    machine = find_machine(tx, arn)
    if machine is not None and machine.status != "ACTIVE":
        raise StateMachineDeleting(arn)
    if machine is None or any(tx.one(sql.VERSION_TO_START, (machine.id, number)) is None for number in numbers):
        raise ResourceNotFound(arn, "Request references a resource that does not exist.")
    return machine, dumps(list(zip(numbers, weights, strict=True)))
