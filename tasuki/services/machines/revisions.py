"""Which revision an ARN means: a machine's newest, a version's, or that of a version that an alias draws.

::

    machine  ──► its newest revision            arn:...:stateMachine:NAME
    version  ──► the revision it was made of    arn:...:stateMachine:NAME:3
    alias    ──► one of its one or two versions arn:...:stateMachine:NAME:PROD     drawn by weight at each start

A version is a row, its revision is never copied: revisions do not change.
"""

from typing import NamedTuple

from tasuki.services.machines import revisions_queries as sql
from tasuki.services.machines.errors import ServiceQuotaExceededException
from tasuki.services.machines.model import machine_arn, parse_machine_arn
from tasuki.services.machines.queries import MACHINE_TO_START
from tasuki.store.store import Row, Tx
from tasuki.values.arns import Arn
from tasuki.values.documents import loads
from tasuki.values.instant import Instant

VERSIONS_MAX = 1_000
"""Versions of one machine (Step Functions quotas)."""


class Chosen(NamedTuple):
    """What an execution that is started by an ARN runs on."""

    machine: int
    name: str
    status: str
    revision: int
    digest: bytes
    role_arn: str
    logging: str
    type: str
    parts: Arn
    version: int | None = None
    alias: str | None = None


def split_machine_arn(text: str) -> tuple[Arn, str, str | None]:
    """Take the ARN of a machine, version or alias apart: (parts, machine name, qualifier). Raises `InvalidArn`."""
    parts, name = parse_machine_arn(text)
    name, colon, qualifier = name.partition(":")
    return parts, name, qualifier if colon else None


def qualified_arn(account: str, region: str, machine: str, qualifier: int | str) -> str:
    """Build the ARN of a version or alias."""
    return f"{machine_arn(account, region, machine)}:{qualifier}"


def choose_revision(tx: Tx, arn: str) -> Chosen | None:
    """Answer what a start by this ARN runs on; None when there is no such machine, version or alias. Raises `InvalidArn`."""
    parts, name, qualifier = split_machine_arn(arn)
    row = tx.one(MACHINE_TO_START, (parts.account, parts.region, name))
    if row is None:
        return None
    machine, status, revision, digest, role_arn, logging, kind = row
    chosen = Chosen(machine, name, status, revision, digest, role_arn, logging, kind, parts)
    if qualifier is None:
        return chosen
    alias = None
    version = _number(qualifier)
    if version is None:
        found = tx.one(sql.ALIAS, (machine, qualifier))
        if found is None:
            return None
        alias, version = qualifier, _draw(tx, loads(found[3]))
    of_version = tx.one(sql.VERSION_TO_START, (machine, version))
    if of_version is None:
        return None
    revision, digest, role_arn, logging = of_version
    return chosen._replace(
        revision=revision, digest=digest, role_arn=role_arn, logging=logging, version=version, alias=alias
    )


def _number(qualifier: str) -> int | None:
    """Answer a version's number; None for an alias, which has a letter or a mark in its name."""
    return int(qualifier) if qualifier.isascii() and qualifier.isdecimal() and len(qualifier) < 10 else None


def _draw(tx: Tx, routing: list[list[int]]) -> int:
    """Draw a version by the weights, which add up to 100."""
    place = tx.chance.fraction() * 100
    for number, weight in routing:
        if place < weight:
            return number
        place -= weight
    return routing[-1][0]


def find_version(tx: Tx, arn: str) -> Row | None:
    """Answer a version, as `revisions_queries.VERSION` does, by its ARN. Raises `InvalidArn`."""
    parts, name, qualifier = split_machine_arn(arn)
    number = _number(qualifier) if qualifier is not None else None
    return tx.one(sql.VERSION, (parts.account, parts.region, name, number)) if number is not None else None


def version_number(arn: str) -> int | None:
    """Answer the number in a version's ARN; None when it is another ARN. Raises `InvalidArn`."""
    qualifier = split_machine_arn(arn)[2]
    return _number(qualifier) if qualifier is not None else None


def publish(tx: Tx, machine: int, revision: int, description: str | None) -> tuple[int, Instant]:
    """Make a version of a revision, unless it has one; answer its number and date.

    Raises `ServiceQuotaExceededException`.
    """
    there = tx.one(sql.VERSION_OF_REVISION, (machine, revision))
    if there is not None:
        return there[0], there[1]
    count = tx.one(sql.VERSION_COUNT, (machine,))
    assert count is not None
    if count[0] >= VERSIONS_MAX:
        raise ServiceQuotaExceededException(
            f"The state machine has the maximum number of versions ({VERSIONS_MAX}); delete some."
        )
    row = tx.one(sql.NEXT_VERSION, (machine,))
    assert row is not None
    tx.run(sql.ADD_VERSION, (machine, row[0], revision, description, tx.now))
    return row[0], tx.now


def drop_versions(tx: Tx, machine: int) -> None:
    """The machine is being deleted, and with it its versions and aliases (DeleteStateMachine)."""
    tx.run(sql.DROP_ALIASES, (machine,))
    tx.run(sql.DROP_VERSIONS, (machine,))
