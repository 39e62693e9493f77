"""Versions: numbered snapshots of a machine (states.md section 11; recorded: sfn_api_versioning/*)."""

from typing import Any

from tasuki.services.machines import revisions_queries as sql
from tasuki.services.machines.aliases import names_of_version
from tasuki.services.machines.api import find_machine, open_token, page_size
from tasuki.services.machines.errors import (
    ConflictException,
    InvalidArn,
    StateMachineDeleting,
    StateMachineDoesNotExist,
)
from tasuki.services.machines.revisions import publish, qualified_arn, split_machine_arn, version_number
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.operations import Operation, Operations, Request

INITIAL = "INITIAL"
"""How a caller names the revision of a machine that was never updated."""


def operations() -> Operations:
    """Answer the operations on versions."""
    return {
        "PublishStateMachineVersion": Operation("write", publish_state_machine_version),
        "ListStateMachineVersions": Operation("read", list_state_machine_versions),
        "DeleteStateMachineVersion": Operation("write", delete_state_machine_version),
    }


def publish_state_machine_version(tx: Tx, request: Request) -> dict[str, Any]:
    """PublishStateMachineVersion, idempotent while the revision is the same.

    Raises InvalidArn, StateMachineDoesNotExist, StateMachineDeleting, ConflictException, ServiceQuotaExceededException.
    """
    tx.alone()
    given = request.input
    arn = given["stateMachineArn"]
    there = find_machine(tx, arn)
    if there is None:
        raise StateMachineDoesNotExist(arn)
    if there.status != "ACTIVE":
        raise StateMachineDeleting(arn)
    current = there.revision_id or INITIAL
    wanted = given.get("revisionId")
    if wanted is not None and wanted != current:
        raise ConflictException(
            f"Failed to publish the State Machine version for revision {wanted}. "
            f"The current State Machine revision is {current}."
        )
    number, created_at = publish(tx, there.id, there.revision, given.get("description"))
    return {"creationDate": created_at, "stateMachineVersionArn": f"{arn}:{number}"}


def list_state_machine_versions(tx: Tx, request: Request) -> dict[str, Any]:
    """ListStateMachineVersions, newest first; none of a machine that isn't there. Raises InvalidArn, InvalidToken."""
    given = request.input
    arn = given["stateMachineArn"]
    there = find_machine(tx, arn)
    query = f"versions {arn}"
    before = open_token(tx, query, given.get("nextToken"))
    if there is None:
        return {"stateMachineVersions": []}
    limit = page_size(given)
    rows = tx.all(sql.VERSIONS, (there.id, before if before is not None else 1 << 62, limit + 1))
    answer: dict[str, Any] = {
        "stateMachineVersions": [
            {"stateMachineVersionArn": f"{arn}:{number}", "creationDate": created_at}
            for number, created_at in rows[:limit]
        ]
    }
    if len(rows) > limit:
        answer["nextToken"] = page_tokens(tx).seal(query, rows[limit - 1][0])
    return answer


def delete_state_machine_version(tx: Tx, request: Request) -> dict[str, Any]:
    """DeleteStateMachineVersion: executions of it go on. One that isn't there is deleted just as well.

    Raises InvalidArn, ConflictException (an alias leads to it).
    """
    tx.alone()
    arn = request.input["stateMachineVersionArn"]
    number = version_number(arn)
    if number is None:
        raise InvalidArn(f"Resource type not valid in this context: {arn}")
    parts, name, _ = split_machine_arn(arn)
    there = find_machine(tx, qualified_arn(parts.account, parts.region, name, number).rpartition(":")[0])
    if there is None:
        return {}
    names = names_of_version(tx, there.id, number)
    if names:
        raise ConflictException(
            "Version to be deleted must not be referenced by an alias. "
            f"Current list of aliases referencing this version: [{', '.join(names)}]"
        )
    tx.run(sql.DROP_VERSION, (there.id, number))
    return {}
