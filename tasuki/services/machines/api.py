"""State machines as clients see them: create, describe, list, update, delete, tags, validate.

Behaviour from the API model and states.md section 11; recorded: sfn_api/*, sfn_api_tagging/*.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tasuki.language.definition import Machine
from tasuki.language.errors import InvalidDefinition as InvalidText
from tasuki.services.machines import queries as sql
from tasuki.services.machines.definitions import digest_of
from tasuki.services.machines.errors import (
    InvalidDefinition,
    InvalidToken,
    MissingRequiredParameter,
    StateMachineAlreadyExists,
    StateMachineDeleting,
    StateMachineDoesNotExist,
    StateMachineLimitExceeded,
    ValidationException,
)
from tasuki.services.machines.express_limits import not_for_express
from tasuki.services.machines.logging_levels import check_logging
from tasuki.services.machines.model import (
    LOGGING_OFF,
    TRACING_OFF,
    check_name,
    encode_settings,
    machine_arn,
    merged_tags,
    parse_machine_arn,
    same_settings,
)
from tasuki.services.machines.revisions import drop_versions, find_version, publish
from tasuki.services.machines.setting import Setting
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import Instant
from tasuki.values.operations import Request
from tasuki.values.pages import BadPageToken

PAGE_DEFAULT = 100
PAGE_MAX = 1_000
_OWNED_KEY = {"type": "AWS_OWNED_KEY"}


class MachineRow(NamedTuple):
    """A machine with its newest revision, as `queries.MACHINE` answers it."""

    id: int
    name: str
    type: str
    status: str
    created_at: Instant
    tags: str
    revision: int
    revision_id: str | None
    definition: str
    role_arn: str
    logging: str
    tracing: str
    revised_at: Instant
    digest: bytes


def find_machine(tx: Tx, arn: str) -> MachineRow | None:
    """Answer a machine by its ARN. Raises `InvalidArn`."""
    parts, name = parse_machine_arn(arn)
    row = tx.one(sql.MACHINE, (parts.account, parts.region, name))
    return MachineRow(*row) if row is not None else None


def _machine(tx: Tx, arn: str) -> MachineRow:
    """Answer a machine by its ARN. Raises InvalidArn, StateMachineDoesNotExist."""
    found = find_machine(tx, arn)
    if found is None:
        raise StateMachineDoesNotExist(arn)
    return found


def create_state_machine(tx: Tx, request: Request, setting: Setting) -> dict[str, Any]:
    """CreateStateMachine. Idempotent on name, definition text, type, logging and tracing; role and tags don't count.

    Raises InvalidName, InvalidDefinition, StateMachineAlreadyExists, StateMachineDeleting, StateMachineLimitExceeded,
    TooManyTags, InvalidLoggingConfiguration, ValidationException.
    """
    given = request.input
    name, definition, kind = check_name(given["name"]), given["definition"], given.get("type", "STANDARD")
    _refuse_what_is_not_served(given)
    arn = machine_arn(request.account, request.region, name)
    logging, tracing = given.get("loggingConfiguration"), given.get("tracingConfiguration")
    check_logging(logging)
    digest = _check_definition(setting, definition, kind)
    tx.alone()  # not before: a large definition takes seconds to parse, once
    there = find_machine(tx, arn)
    if there is not None:
        if there.status != "ACTIVE":
            raise StateMachineDeleting(arn)
        same = (there.definition, there.type) == (definition, kind)
        if (
            not same
            or not same_settings(there.logging, logging, LOGGING_OFF)
            or not same_settings(there.tracing, tracing, TRACING_OFF)
        ):
            raise StateMachineAlreadyExists(arn)
        answer = {"stateMachineArn": arn, "creationDate": there.created_at}
        return answer | _published(tx, arn, there.id, there.revision, given)
    tags = merged_tags([], given.get("tags") or [], arn)
    count = tx.one(sql.MACHINE_COUNT, (request.account, request.region))
    if count is not None and count[0] >= setting.state_machines:
        raise StateMachineLimitExceeded(
            f"The maximum number of state machines ({setting.state_machines}) has been reached."
        )
    row = tx.one(sql.ADD_MACHINE, (request.account, request.region, name, kind, tx.now, dumps(tags)))
    assert row is not None
    settings = encode_settings(logging, LOGGING_OFF), encode_settings(tracing, TRACING_OFF)
    revision = _revise(tx, row[0], None, (definition, digest, given["roleArn"], *settings))
    return {"stateMachineArn": arn, "creationDate": tx.now} | _published(tx, arn, row[0], revision, given)


def update_state_machine(tx: Tx, request: Request, setting: Setting) -> dict[str, Any]:
    """UpdateStateMachine: a new revision for executions to come. What changes nothing makes none.

    Raises MissingRequiredParameter, InvalidDefinition, StateMachineDoesNotExist, StateMachineDeleting, InvalidArn,
    InvalidLoggingConfiguration, ValidationException.
    """
    given = request.input
    arn = given["stateMachineArn"]
    _refuse_what_is_not_served(given)
    there = _machine(tx, arn)
    if there.status != "ACTIVE":
        raise StateMachineDeleting(arn)
    wanted = ("definition", "roleArn", "loggingConfiguration", "tracingConfiguration", "encryptionConfiguration")
    if all(given.get(name) is None for name in wanted):
        raise MissingRequiredParameter(
            "Either the definition, the role ARN, the LoggingConfiguration, or the TracingConfiguration must be specified"
        )
    logging, tracing = given.get("loggingConfiguration"), given.get("tracingConfiguration")
    check_logging(logging)
    definition = given.get("definition") or there.definition
    digest = _check_definition(setting, definition, there.type) if definition != there.definition else there.digest
    tx.alone()  # not before: a large definition takes seconds to parse, once
    role_arn = given.get("roleArn") or there.role_arn
    logging_text = encode_settings(logging, LOGGING_OFF) if logging is not None else there.logging
    tracing_text = encode_settings(tracing, TRACING_OFF) if tracing is not None else there.tracing
    revision, revision_id = there.revision, there.revision_id
    if (definition, role_arn, logging_text, tracing_text) != (
        there.definition,
        there.role_arn,
        there.logging,
        there.tracing,
    ):
        revision_id = tx.chance.uuid()
        revision = _revise(tx, there.id, revision_id, (definition, digest, role_arn, logging_text, tracing_text))
    answer = {"updateDate": tx.now} | ({"revisionId": revision_id} if revision_id is not None else {})
    return answer | _published(tx, arn, there.id, revision, given)


def _published(tx: Tx, arn: str, machine: int, revision: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Publish a version of a revision if that is wanted; answer what to say of it. Raises `ServiceQuotaExceededException`."""
    if not given.get("publish"):
        return {}
    number, _ = publish(tx, machine, revision, given.get("versionDescription"))
    return {"stateMachineVersionArn": f"{arn}:{number}"}


def _revise(tx: Tx, machine: int, revision_id: str | None, content: tuple[str, bytes, str, str, str]) -> int:
    """Give a machine a new revision: definition, its digest, role, logging, tracing; answer its row."""
    row = tx.one(sql.ADD_REVISION, (machine, revision_id, *content, tx.now))
    assert row is not None
    tx.run(sql.SET_REVISION, (row[0], machine))
    return int(row[0])


def describe_state_machine(tx: Tx, request: Request, setting: Setting) -> dict[str, Any]:
    """DescribeStateMachine, also of a version. Raises InvalidArn, StateMachineDoesNotExist."""
    arn = request.input["stateMachineArn"]
    version = find_version(tx, arn)
    there = _machine(tx, arn) if version is None else MachineRow(*version[:-1])
    answer = {
        "stateMachineArn": arn,
        "name": there.name,
        "status": there.status,
        "type": there.type,
        "creationDate": there.created_at,
        "roleArn": there.role_arn,
    }
    if version is not None and version[-1] is not None:
        answer["description"] = version[-1]
    if there.revision_id is not None:
        answer["revisionId"] = there.revision_id
    machine = setting.definitions.machine(tx, there.digest, there.revision)
    return answer | revision_facts(request, machine, there.definition, there.logging, there.tracing)


def revision_facts(request: Request, machine: Machine, definition: str, logging: str, tracing: str) -> dict[str, Any]:
    """Answer what both describing operations say of a revision."""
    facts = {
        "loggingConfiguration": loads(logging),
        "tracingConfiguration": loads(tracing),
        "encryptionConfiguration": _OWNED_KEY,
    }
    if request.input.get("includedData") != "METADATA_ONLY":
        facts["definition"] = definition
        if machine.references:
            facts["variableReferences"] = {state: list(names) for state, names in machine.references.items()}
    return facts


def list_state_machines(tx: Tx, request: Request) -> dict[str, Any]:
    """ListStateMachines, by name. Raises `InvalidToken`."""
    account, region = request.account, request.region
    limit = page_size(request.input)
    query = f"machines {account} {region}"
    after = open_token(tx, query, request.input.get("nextToken")) or ""
    rows = tx.all(sql.MACHINES, (account, region, after, limit + 1))
    answer: dict[str, Any] = {
        "stateMachines": [
            {
                "stateMachineArn": machine_arn(account, region, name),
                "name": name,
                "type": kind,
                "creationDate": created_at,
            }
            for name, kind, created_at in rows[:limit]
        ]
    }
    if len(rows) > limit:
        answer["nextToken"] = page_tokens(tx).seal(query, rows[limit - 1][0])
    return answer


def page_size(given: Mapping[str, Any]) -> int:
    """Answer how long a page may be: 0 means the default."""
    return min(given.get("maxResults") or PAGE_DEFAULT, PAGE_MAX)


def open_token(tx: Tx, query: str, token: str | None) -> str | int | None:
    """Answer where a page begins; None for the first. Raises `InvalidToken`."""
    if token is None:
        return None
    try:
        return page_tokens(tx).open(query, token)
    except BadPageToken:
        raise InvalidToken from None


def delete_state_machine(tx: Tx, request: Request) -> dict[str, Any]:
    """DeleteStateMachine: no more starts; the machine is gone when its running executions have ended.

    They end when they would go on (API reference). A machine that isn't there is deleted just as well. Raises `InvalidArn`.
    """
    tx.alone()
    there = find_machine(tx, request.input["stateMachineArn"])
    if there is not None:
        drop_versions(tx, there.id)
        busy = tx.one(sql.ANY_OPEN, (there.id,)) is not None
        tx.run(sql.SET_MACHINE_STATUS, ("DELETING" if busy else "DELETED", there.id))
    return {}


def _check_definition(setting: Setting, definition: str, kind: str) -> bytes:
    """Parse a definition for a type of machine; answer its digest. Raises `InvalidDefinition`."""
    digest = digest_of(definition)
    try:
        machine = setting.definitions.parse(definition, digest)
    except InvalidText as bad:
        raise InvalidDefinition(", ".join(map(str, bad.diagnoses))) from None
    if kind == "EXPRESS" and (found := not_for_express(machine)):
        raise InvalidDefinition(", ".join(map(str, found)))
    return digest


def _refuse_what_is_not_served(given: Mapping[str, Any]) -> None:
    """Raises ValidationException."""
    if given.get("versionDescription") is not None and not given.get("publish"):
        raise ValidationException("Version description can only be set when publish is true")
    if given.get("encryptionConfiguration", _OWNED_KEY).get("type") != "AWS_OWNED_KEY":
        raise ValidationException("Tasuki encrypts nothing by itself; leave out encryptionConfiguration.")
