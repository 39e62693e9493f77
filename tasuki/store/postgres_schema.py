"""The schema of a PostgreSQL store: whose it is, and which version it has. Brought up to date once, under a lock."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from tasuki.store.migrations import migrations
from tasuki.store.postgres_address import Address
from tasuki.store.postgres_dialect import migration
from tasuki.store.postgres_errors import NO_POOLER, POOLED, pooler_error
from tasuki.values.errors import StoreBusy, StoreError, StoreNewer

OLDEST_SERVER = 130_000
"""PostgreSQL 13: the first with `pg_xact_status` of 64-bit transaction ids (`xid8`)."""
MIGRATION_S = 3600.0
ALIVE_S = 30
"""A node that was heard of this lately still works on the schema as it is."""

POOLER_S = 2.0
"""How long a pooler may take to give us another connection before we take it that it has none."""
_FACTS = "SELECT pg_is_in_recovery(), current_setting('search_path')"
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('tasuki migrations'), hashtext($1))"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = $1"
_VERSION = "SELECT value FROM house WHERE name = 'schema'"
_KEEP_VERSION = (
    "INSERT INTO house (name, value) VALUES ('schema', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_SEND_AWAY = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = $1 AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
)
_OTHERS = "SELECT count(*) FROM nodes WHERE seen_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1 AND stopped_at IS NULL"


async def prepare(connection: "asyncpg.Connection[Any]", address: Address) -> None:
    """Bring the schema up to date, or make it. Raises a `StoreError` with a sentence that says what to do.

    All in one transaction, and the lock is the transaction's: through a pooler, a lock of the session could stay behind on a
    connection that is nobody's.
    """
    number = connection.get_server_version()
    if number.major < OLDEST_SERVER // 10_000:
        raise StoreError(
            f"{address.shown} is PostgreSQL {connection.get_settings().server_version}; Tasuki needs PostgreSQL 13 or newer."
        )
    try:
        async with connection.transaction():
            is_standby, path = await connection.fetchrow(_FACTS) or (False, "")
            if is_standby:
                raise StoreError(f"{address.shown} is a standby, which only reads; name the primary server.")
            if path != address.schema:  # the tables would come to lie elsewhere
                raise StoreError(
                    f"Something between this node and {address.shown} drops the settings of a connection (search_path is {path}): "
                    f"{NO_POOLER}"
                )
            # Several nodes may start at once: one does the work, the others find it done.
            await connection.execute(_LOCK, address.schema, timeout=MIGRATION_S)
            await _prepare(connection, address)
    except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidSchemaNameError) as bad:
        raise StoreError(
            f"The user of {address.shown} may not do this: {bad}. Give it the rights: "
            f"GRANT CREATE ON DATABASE {address.database} TO the user (or make it the owner of schema {address.schema})."
        ) from None


async def refuse_pooler(
    connection: "asyncpg.Connection[Any]",
    connect: Callable[[], Awaitable["asyncpg.Connection[Any]"]],
    address: Address,
) -> None:
    """Refuse what gives each transaction another server connection: no bell could be heard there. Raises `StoreError`.

    A pooler gives its clients numbers of its own, so the process that we were told of is not the one that answers. Whether it
    is in transaction mode shows when another client is in the middle of a transaction: then we are answered by yet another.
    """
    first, second = 0, None
    try:
        first = await _answering(connection)
        if first == connection.get_server_pid():
            return
        other = await connect()
        try:
            async with other.transaction():
                await _answering(other)
                async with asyncio.timeout(POOLER_S):
                    second = await _answering(connection)
        finally:
            other.terminate()
    except (TimeoutError, *POOLED):
        pass
    if second != first:
        raise pooler_error(address)


async def _answering(connection: "asyncpg.Connection[Any]") -> int:
    """Answer which process of the server answers."""
    async with connection.transaction():  # so that what is prepared is there when it is run
        return int(await connection.fetchval("SELECT pg_backend_pid()"))


def session_name(address: Address) -> str:
    """Answer what a node's connections are called in the server's lists."""
    return f"tasuki {address.schema}"


async def refuse_other_version(connection: "asyncpg.Connection[Any]", address: Address) -> None:
    """Keep a node from working on tables that another version has changed meanwhile. Raises `StoreNewer`."""
    version, known = int(await connection.fetchval(_VERSION)), migrations()[-1][0]
    if version != known:
        raise StoreNewer(
            f"{address.shown} has schema {version} now, and this node knows {known}: it was upgraded meanwhile. "
            "Start it with the new version."
        )


async def version_of(connection: "asyncpg.Connection[Any]", address: Address) -> int:
    """Answer the schema's version, 0 where there is none yet. Raises `StoreNewer` where it is another program's."""
    tables = {row[0] for row in await connection.fetch(_TABLES, address.schema)}
    if not tables:
        return 0
    found = await connection.fetchval(_VERSION) if {"house", "timers", "leases"} <= tables else None
    if found is None:
        raise StoreNewer(
            f"Schema {address.schema} of {address.shown} holds tables of another program ({', '.join(sorted(tables)[:3])}"
            " ...); name another schema (?schema=NAME) or another database."
        )
    return int(found)


async def _prepare(connection: "asyncpg.Connection[Any]", address: Address) -> None:
    known = migrations()
    if await connection.fetchval("SELECT to_regnamespace($1) IS NULL", address.schema):
        await connection.execute(f"CREATE SCHEMA {address.schema}")
    version = await version_of(connection, address)
    if version > known[-1][0]:
        raise StoreNewer(
            f"{address.shown} was written by a newer Tasuki (schema {version}, this one knows {known[-1][0]}). "
            "Upgrade Tasuki, or name another database."
        )
    if version == known[-1][0]:
        return
    if version and (others := await nodes_alive(connection)):
        raise StoreBusy(
            f"{others} {'node' if others == 1 else 'nodes'} of schema {version} still {'works' if others == 1 else 'work'} on "
            f"{address.shown}, and this one needs schema {known[-1][0]}. Stop them first, then start the new version."
        )
    if version:  # a node that was taken for dead may wake up: its connections are of the old schema
        await connection.fetch(_SEND_AWAY, session_name(address))
    for _, sql in known[version:]:
        if text := migration(sql).strip():
            await connection.execute(text, timeout=MIGRATION_S)
    await connection.execute(_KEEP_VERSION, str(known[-1][0]))


async def nodes_alive(connection: "asyncpg.Connection[Any]") -> int:
    """Answer how many nodes work on the store that the connection sees."""
    if await connection.fetchval("SELECT to_regclass('nodes') IS NULL"):
        return 0
    return int(await connection.fetchval(_OTHERS, ALIVE_S * 1000))
