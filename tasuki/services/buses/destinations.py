"""API destinations: an HTTP endpoint, how fast it may be called, and the connection by which to sign in.

A delivery becomes a row, which the courier (`runtime/courier.py`) turns into one HTTP call; whoever gave it hears of the call's
end by its watcher. One call is one try: who wants another gives it again.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasuki.services.buses import calls_queries as sql
from tasuki.services.buses import destinations_queries as queries
from tasuki.services.buses.connections import AUTHORIZED
from tasuki.services.buses.destinations_errors import Inactive, no_such_destination
from tasuki.services.buses.destinations_rules import call_problems
from tasuki.services.switchboard import NOTHING, Caller
from tasuki.store.store import Row, Tx
from tasuki.values.arns import build_arn, parse_arn
from tasuki.values.documents import dumps
from tasuki.values.instant import Instant

PREFIX = "api-destination/"
DEFAULT_RATE = 300
"""Calls in a second where none is given (quota "Invocations per second for an API destination")."""


@dataclass(frozen=True, slots=True)
class Destination:
    """One API destination. `connection_state` is None when the connection is gone."""

    id: int
    account: str
    region: str
    name: str
    suffix: str
    description: str | None
    connection: str
    connection_suffix: str
    endpoint: str
    method: str
    rate: int | None
    created: Instant
    modified: Instant
    connection_state: str | None

    @classmethod
    def of_row(cls, row: Row) -> "Destination":
        """Read a row of `api_destinations` with its connection's state."""
        return cls(*row)

    @property
    def arn(self) -> str:
        """The ARN, which another destination of the same name does not have."""
        return build_arn("events", self.region, self.account, f"{PREFIX}{self.name}/{self.suffix}")

    @property
    def is_active(self) -> bool:
        """Whether its connection is there and authorized."""
        return self.connection_state == AUTHORIZED

    def summary(self) -> dict[str, Any]:
        """What every change answers."""
        return {
            "ApiDestinationArn": self.arn,
            "ApiDestinationState": "ACTIVE" if self.is_active else "INACTIVE",
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
        }

    def listed(self) -> dict[str, Any]:
        """As ListApiDestinations shows it."""
        connection = f"connection/{self.connection}/{self.connection_suffix}"
        return {
            **self.summary(),
            "Name": self.name,
            "ConnectionArn": build_arn("events", self.region, self.account, connection),
            "InvocationEndpoint": self.endpoint,
            "HttpMethod": self.method,
            "InvocationRateLimitPerSecond": self.rate or DEFAULT_RATE,
        }

    def described(self) -> dict[str, Any]:
        """As DescribeApiDestination shows it."""
        return self.listed() | ({} if self.description is None else {"Description": self.description})


def is_destination(arn: str) -> bool:
    """Tell whether an ARN is one of an API destination."""
    parts = parse_arn(arn)
    return parts is not None and parts.service == "events" and parts.resource.startswith(PREFIX)


def find(tx: Tx, arn: str) -> Destination | None:
    """Find a destination by its ARN; one that was deleted and made again is another."""
    parts = parse_arn(arn)
    if parts is None or "\0" in arn or not is_destination(arn):
        return None
    name, _, suffix = parts.resource.removeprefix(PREFIX).partition("/")
    row = tx.one(queries.DESTINATION, (parts.account, parts.region, name))
    found = Destination.of_row(row) if row is not None else None
    return found if found is not None and found.suffix == suffix else None


class DestinationTarget:
    """API destinations as pipes, schedules and rules see them (switchboard `Target`)."""

    takes_arrays = False
    takes_text = False

    def check(self, tx: Tx, arn: str, parameters: dict[str, Any]) -> str | None:
        """Answer None if the destination is there, active, and takes calls with these parameters, else why not."""
        found = find(tx, arn)
        if found is None:
            return f"The API destination {arn} does not exist."
        if not found.is_active:
            return _why_inactive(found)
        return next((bad.message for bad in call_problems(found.endpoint, parameters)), None)

    def waits(self, tx: Tx, arn: str) -> bool | None:
        """Tell that the end of a call can be waited for; None when there is no such destination."""
        return True if find(tx, arn) is not None else None

    def deliver(
        self,
        tx: Tx,
        arn: str,
        payload: str,
        name: str | None,  # noqa: ARG002 - the switchboard's own words
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,
    ) -> str:
        """Have the call made, once, soon after this unit; answer the key of the call (it bears it as `Idempotency-Key`).

        Raises `NoSuch`, `Inactive`, `Invalid`.
        """
        found = find(tx, arn)
        if found is None:
            parts = parse_arn(arn)
            raise no_such_destination(parts.resource.removeprefix(PREFIX).partition("/")[0] if parts else arn, "invoke")
        if not found.is_active:
            raise Inactive(_why_inactive(found))
        for bad in call_problems(found.endpoint, parameters):
            raise bad
        key = _key(found.arn, caller) if caller.idempotency else tx.chance.hex(32)
        tx.run(sql.ADD, (key, found.id, payload, dumps(dict(parameters)), caller.watcher, caller.trace, tx.now))
        tx.ring("courier")
        return key


def withdraw(tx: Tx, key: str) -> None:
    """Forget a call that nobody waits for any more and nobody makes. Its turn is not given to another."""
    tx.run(sql.WITHDRAW, (key, tx.real_now))


def turn(tx: Tx, arn: str, caller: Caller) -> Instant | None:
    """Answer when the turn of a call comes that waits for it under its destination's rate; None if it doesn't (reads only)."""
    row = tx.one(sql.TURN, (_key(arn, caller), tx.now))
    return row[0] if row is not None else None


def _key(arn: str, caller: Caller) -> str:
    """Name a call by what asks for it: the same attempt, asked again, is the same call."""
    words = dumps([arn, caller.idempotency, caller.watcher])
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _why_inactive(destination: Destination) -> str:
    if destination.connection_state is None:
        return (
            f"The API destination {destination.name} is inactive: its connection {destination.connection} was deleted."
        )
    return (
        f"The API destination {destination.name} is inactive: its connection {destination.connection} is "
        f"{destination.connection_state}."
    )
