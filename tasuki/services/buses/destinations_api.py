"""The operations of connections and API destinations (botocore `events`, 2015-10-07).

AWS brings a connection into its state in the background; here that is over with the answer: AUTHORIZED.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from tasuki.services.buses import calls_queries as calls
from tasuki.services.buses import destinations_queries as queries
from tasuki.services.buses.connections import (
    AUTHORIZED,
    DEAUTHORIZED,
    Connection,
    check_parameters,
    merged,
    no_private_way,
)
from tasuki.services.buses.destinations import Destination
from tasuki.services.buses.destinations_errors import (
    Exists,
    TooMany,
    invalid,
    no_such_connection,
    no_such_destination,
)
from tasuki.services.buses.destinations_rules import check_endpoint
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.arns import parse_arn
from tasuki.values.documents import dumps
from tasuki.values.operations import Operation, Operations, Request
from tasuki.values.pages import BadPageToken

MOST = 3_000
"""Connections, and API destinations, of an account (quotas "Connections" and "API destinations")."""
PAGE_SIZE = 100
_Run: TypeAlias = Callable[[Tx, Request], dict[str, Any]]


def operations() -> Operations:
    """Answer the table for the door."""
    writes: dict[str, _Run] = {
        "CreateConnection": create_connection,
        "UpdateConnection": update_connection,
        "DeauthorizeConnection": deauthorize_connection,
        "DeleteConnection": delete_connection,
        "CreateApiDestination": create_api_destination,
        "UpdateApiDestination": update_api_destination,
        "DeleteApiDestination": delete_api_destination,
    }
    reads: dict[str, _Run] = {
        "DescribeConnection": describe_connection,
        "ListConnections": list_connections,
        "DescribeApiDestination": describe_api_destination,
        "ListApiDestinations": list_api_destinations,
    }
    return {
        **{name: Operation("write", run) for name, run in writes.items()},
        **{name: Operation("read", run) for name, run in reads.items()},
    }


# -- connections --------------------------------------------------------------------------------------------


def create_connection(tx: Tx, request: Request) -> dict[str, Any]:
    """Create a connection. KmsKeyIdentifier is kept and described, and changes nothing."""
    given = request.input
    name, kind = given["Name"], given["AuthorizationType"]
    if "InvocationConnectivityParameters" in given:
        raise no_private_way("InvocationConnectivityParameters")
    check_parameters(kind, given["AuthParameters"])
    tx.alone()
    if tx.one(queries.CONNECTION, (request.account, request.region, name)) is not None:
        raise Exists(f"Connection {name} already exists.")
    _refuse_more(tx, request, queries.COUNT_CONNECTIONS, "connections")
    made = Connection(
        id=0,
        account=request.account,
        region=request.region,
        name=name,
        suffix=tx.chance.uuid(),
        revision=tx.chance.hex(16),
        description=given.get("Description"),
        kind=kind,
        state=AUTHORIZED,
        parameters=given["AuthParameters"],
        secret=f"{tx.chance.uuid()}-{tx.chance.hex(6)}",
        kms_key=given.get("KmsKeyIdentifier") or None,
        created=tx.now,
        modified=tx.now,
        authorized=tx.now,
    )
    tx.run(
        queries.ADD_CONNECTION,
        (
            made.account,
            made.region,
            made.name,
            made.suffix,
            made.revision,
            made.description,
            made.kind,
            made.state,
            dumps(made.parameters),
            made.secret,
            made.kms_key,
            made.created,
            made.modified,
            made.authorized,
        ),
    )
    return _without_authorized(made.summary())


def update_connection(tx: Tx, request: Request) -> dict[str, Any]:
    """Change a connection; what is not given stays. With parameters (old or new) that are whole it is AUTHORIZED again."""
    given = request.input
    if "InvocationConnectivityParameters" in given:
        raise no_private_way("InvocationConnectivityParameters")
    tx.alone()
    old = _connection(tx, request)
    kind = given.get("AuthorizationType", old.kind)
    parameters = merged(old.parameters, given.get("AuthParameters") or {}, kind)
    check_parameters(kind, parameters)
    now = replace(
        old,
        revision=tx.chance.hex(16),
        description=given.get("Description", old.description),
        kind=kind,
        state=AUTHORIZED,
        parameters=parameters,
        kms_key=given.get("KmsKeyIdentifier", old.kms_key) or None,
        modified=tx.now,
        authorized=tx.now,
    )
    _save(tx, now)
    return now.summary()


def deauthorize_connection(tx: Tx, request: Request) -> dict[str, Any]:
    """Forget all parameters of a connection; its destinations are inactive until it is updated with new ones."""
    tx.alone()
    old = _connection(tx, request)
    now = replace(old, revision=tx.chance.hex(16), state=DEAUTHORIZED, parameters={}, modified=tx.now)
    _save(tx, now)
    return now.summary("DEAUTHORIZING")


def delete_connection(tx: Tx, request: Request) -> dict[str, Any]:
    """Delete a connection; its destinations stay, and are inactive."""
    tx.alone()
    old = _connection(tx, request)
    tx.run(queries.DROP_CONNECTION, (old.id,))
    return old.summary("DELETING")


def describe_connection(tx: Tx, request: Request) -> dict[str, Any]:
    """Describe a connection, without its secrets."""
    return _connection(tx, request).described()


def list_connections(tx: Tx, request: Request) -> dict[str, Any]:
    """List connections by name, a page at a time."""
    given = request.input
    prefix, state = given.get("NamePrefix", ""), given.get("ConnectionState", "")
    where = (prefix, prefix, state, state)
    rows, token = _page(tx, request, queries.CONNECTIONS_PAGE, where)
    return {"Connections": [Connection.of_row(row).listed() for row in rows], **token}


def _connection(tx: Tx, request: Request) -> Connection:
    name = request.input["Name"]
    row = tx.one(queries.CONNECTION, (request.account, request.region, name))
    if row is None:
        raise no_such_connection(name)
    return Connection.of_row(row)


def _save(tx: Tx, now: Connection) -> None:
    tx.run(
        queries.SET_CONNECTION,
        (
            now.revision,
            now.description,
            now.kind,
            now.state,
            dumps(now.parameters),
            now.kms_key,
            now.modified,
            now.authorized,
            now.id,
        ),
    )


def _without_authorized(summary: dict[str, Any]) -> dict[str, Any]:
    """CreateConnection alone does not tell LastAuthorizedTime (the model has no such member)."""
    return {name: value for name, value in summary.items() if name != "LastAuthorizedTime"}


# -- API destinations ---------------------------------------------------------------------------------------


def create_api_destination(tx: Tx, request: Request) -> dict[str, Any]:
    """Create an API destination for a connection that is there."""
    given = request.input
    name = given["Name"]
    check_endpoint("InvocationEndpoint", given["InvocationEndpoint"])
    tx.alone()
    if tx.one(queries.DESTINATION, (request.account, request.region, name)) is not None:
        raise Exists(f"An api-destination '{name}' already exists.")
    connection = _connection_of_arn(tx, request)
    _refuse_more(tx, request, queries.COUNT_DESTINATIONS, "API destinations")
    made = Destination(
        id=0,
        account=request.account,
        region=request.region,
        name=name,
        suffix=tx.chance.uuid(),
        description=given.get("Description"),
        connection=connection.name,
        connection_suffix=connection.suffix,
        endpoint=given["InvocationEndpoint"],
        method=given["HttpMethod"],
        rate=given.get("InvocationRateLimitPerSecond"),
        created=tx.now,
        modified=tx.now,
        connection_state=connection.state,
    )
    row = tx.one(
        queries.ADD_DESTINATION,
        (
            made.account,
            made.region,
            made.name,
            made.suffix,
            made.description,
            made.connection,
            made.connection_suffix,
            made.endpoint,
            made.method,
            made.rate,
            made.created,
            made.modified,
        ),
    )
    assert row is not None, "INSERT answers the id"
    tx.run(queries.ADD_PACE, (row[0],))
    return made.summary()


def update_api_destination(tx: Tx, request: Request) -> dict[str, Any]:
    """Change a destination; what is not given stays. Calls that wait already are made as it is now, at its new rate."""
    given = request.input
    if "InvocationEndpoint" in given:
        check_endpoint("InvocationEndpoint", given["InvocationEndpoint"])
    tx.alone()
    old = _destination(tx, request, "update")
    now = replace(
        old,
        description=given.get("Description", old.description),
        endpoint=given.get("InvocationEndpoint", old.endpoint),
        method=given.get("HttpMethod", old.method),
        rate=given.get("InvocationRateLimitPerSecond", old.rate),
        modified=tx.now,
    )
    if "ConnectionArn" in given:
        connection = _connection_of_arn(tx, request)
        now = replace(
            now,
            connection=connection.name,
            connection_suffix=connection.suffix,
            connection_state=connection.state,
        )
    tx.run(
        queries.SET_DESTINATION,
        (
            now.description,
            now.connection,
            now.connection_suffix,
            now.endpoint,
            now.method,
            now.rate,
            now.modified,
            now.id,
        ),
    )
    if now.rate != old.rate:
        tx.run(calls.PACE_ANEW, (tx.now, now.id))
        tx.run(calls.SET_PACE, (0, now.id))
        tx.ring("courier")
    return now.summary()


def delete_api_destination(tx: Tx, request: Request) -> dict[str, Any]:
    """Delete a destination. Calls that wait for it fail, and those who asked for them are told."""
    tx.alone()
    old = _destination(tx, request, "delete")
    tx.run(queries.DROP_DESTINATION, (old.id,))
    tx.run(queries.DROP_PACE, (old.id,))
    tx.run(calls.ORPHAN, (tx.now, old.id))
    tx.ring("courier")
    return {}


def describe_api_destination(tx: Tx, request: Request) -> dict[str, Any]:
    """Describe a destination."""
    return _destination(tx, request, "describe").described()


def list_api_destinations(tx: Tx, request: Request) -> dict[str, Any]:
    """List destinations by name, a page at a time."""
    given = request.input
    prefix = given.get("NamePrefix", "")
    name, _, suffix = _resource(given.get("ConnectionArn", ""))
    where = (prefix, prefix, given.get("ConnectionArn", ""), name, suffix)
    rows, token = _page(tx, request, queries.DESTINATIONS_PAGE, where)
    return {"ApiDestinations": [Destination.of_row(row).listed() for row in rows], **token}


def _destination(tx: Tx, request: Request, verb: str) -> Destination:
    name = request.input["Name"]
    row = tx.one(queries.DESTINATION, (request.account, request.region, name))
    if row is None:
        raise no_such_destination(name, verb)
    return Destination.of_row(row)


def _connection_of_arn(tx: Tx, request: Request) -> Connection:
    """Find the connection that ConnectionArn names; it is of the same account and region, and no earlier one of its name."""
    name, _, _ = _resource(request.input["ConnectionArn"])
    row = tx.one(queries.CONNECTION, (request.account, request.region, name))
    if row is None or Connection.of_row(row).arn != request.input["ConnectionArn"]:
        raise no_such_connection(name or request.input["ConnectionArn"])
    return Connection.of_row(row)


def _resource(arn: str) -> tuple[str, str, str]:
    parts = parse_arn(arn)
    return parts.resource.removeprefix("connection/").partition("/") if parts is not None else ("", "", "")


# -- both ---------------------------------------------------------------------------------------------------


def _refuse_more(tx: Tx, request: Request, count: str, what: str) -> None:
    if tx.all(count, (request.account, request.region))[0][0] >= MOST:
        raise TooMany(f"The account has {MOST:,} {what}, which is its limit; delete some first.")


def _page(tx: Tx, request: Request, sql: str, where: tuple[str, ...]) -> tuple[list[Any], dict[str, str]]:
    """Answer a page of rows (the name is the fourth column), and the token that goes on after it."""
    query = dumps([request.operation, request.account, request.region, *where])
    tokens = page_tokens(tx)
    after: str | int = ""
    if token := request.input.get("NextToken"):
        try:
            after = tokens.open(query, token)
        except BadPageToken:
            raise invalid("NextToken", "It is not one that this listing answered.") from None
    limit = request.input.get("Limit", PAGE_SIZE)
    rows = tx.all(sql, (request.account, request.region, after, *where, limit + 1))
    token_after = {"NextToken": tokens.seal(query, rows[limit - 1][3])} if len(rows) > limit else {}
    return rows[:limit], token_after
