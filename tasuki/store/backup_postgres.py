"""Backups of a PostgreSQL store: its tables, as they are in one snapshot, in a SQLite file of the same schema; and back.

No program of PostgreSQL's is needed. Reading takes no lock that a node would wait for; restoring is one transaction.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import apsw
import asyncpg

from tasuki.store import backup, postgres_schema
from tasuki.store.migrations import migrations
from tasuki.store.postgres_address import Address, read_address
from tasuki.store.postgres_errors import BROKEN, connect_error
from tasuki.values.errors import StoreBusy, StoreError, StoreNewer

ROWS = 200
"""Rows in hand at a time; a row has 1 MiB at most."""
_COLUMNS = "SELECT table_name, column_name, is_identity FROM information_schema.columns WHERE table_schema = $1"
_HOUSE_LOCK = "SELECT pg_advisory_xact_lock($1, hashtext($2))"
_LOCK_CLASS = 0x7A5C1
_AWAIT = """
UPDATE nodes SET seen_at = t.at, stopped_at = coalesce(stopped_at, t.at)
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at) t
"""
"""The nodes of a backup count as seen now: what they ran may run on, and ends in time if they don't come back."""
_KEPT_THERE = "name <> 'schema'"
"""PostgreSQL notes the schema's version in `house`, SQLite in the file's head."""


@asynccontextmanager
async def connected(url: str, *, read_only: bool = False) -> AsyncIterator[tuple["asyncpg.Connection[Any]", Address]]:
    """Open a connection to a store, as operation does: for minutes. Raises a `StoreError` that says what to do, `ConfigError`."""
    address = read_address(url)
    settings = {"search_path": address.schema, "application_name": "tasuki operation", "lock_timeout": "15s"}
    if read_only:
        settings["default_transaction_read_only"] = "on"
    try:
        connection = await asyncpg.connect(address.dsn, timeout=10, server_settings=settings)
    except (*BROKEN, asyncpg.PostgresError, ValueError) as bad:
        raise connect_error(bad, address) from bad
    try:
        yield connection, address
    except asyncpg.LockNotAvailableError:
        raise StoreBusy(f"{address.shown} is in use by a node; stop the nodes first.") from None
    except (*BROKEN, asyncpg.PostgresError) as bad:
        raise connect_error(bad, address) from bad
    finally:
        await connection.close(timeout=5)


async def copy_postgres(url: str, part: Path) -> None:
    """Copy a store as it is at this moment, beside nodes that may be writing. Raises `StoreError`, `StoreNewer`."""
    async with (
        connected(url) as (connection, address),
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        version = await postgres_schema.version_of(connection, address)
        if not version:
            raise StoreError(f"{address.shown} holds no house yet: no node has run there.")
        if version > (known := migrations()[-1][0]):
            raise StoreNewer(f"{address.shown} has schema {version}, and this Tasuki knows {known}. Upgrade Tasuki.")
        with closing(backup.make_empty(part, version)) as copy:
            there, _ = await _columns(connection, address)
            for table in backup.tables(copy):
                await _read_table(connection, copy, table, _same_columns(copy, table, there, address))


async def _read_table(
    connection: "asyncpg.Connection[Any]", copy: apsw.Connection, table: str, names: list[str]
) -> None:
    wanted, places = ", ".join(f'"{name}"' for name in names), ", ".join("?" for _ in names)
    kept = f" WHERE {_KEPT_THERE}" if table == "house" else ""
    cursor = await connection.cursor(f"SELECT {wanted} FROM {table}{kept}")  # noqa: S608 - names of ours
    with copy:
        copy.execute(f"DELETE FROM {table}")  # noqa: S608 - what the migrations put in
        while rows := await cursor.fetch(ROWS):
            copy.executemany(f"INSERT INTO {table} ({wanted}) VALUES ({places})", map(tuple, rows))  # noqa: S608 - names of ours


async def restore_postgres(
    file: Path,
    url: str,
    copy: Path,
    *,
    force: bool,
    change: Callable[[apsw.Connection], None] = lambda _copy: None,
    last: Callable[[], None] = lambda: None,
) -> backup.Facts:
    """Fill a store from a backup, all or nothing. `copy` is a place for the backup as the present schema has it.

    `change` is given that copy before, and `last` is called when all is there, before the nodes are noted as seen and it is committed.

    Raises `StoreBusy` when nodes work there, `StoreTaken`, and as `backup.check` does.
    """
    facts = backup.check(file)
    backup.renewed(file, copy)
    with closing(apsw.Connection(str(copy))) as writer:
        change(writer)
    async with connected(url) as (connection, address):
        await postgres_schema.prepare(connection, address)
        if alive := await postgres_schema.nodes_alive(connection):
            nodes = "A node works" if alive == 1 else f"{alive} nodes work"
            raise StoreBusy(
                f"{nodes} on {address.shown}; stop them first. (One that was killed counts for half a minute.)"
            )
        with closing(apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)) as reader:
            async with connection.transaction():
                await connection.fetchval(_HOUSE_LOCK, _LOCK_CLASS, address.schema)
                await _fill(connection, address, reader, force=force)
                last()
                await connection.execute(_AWAIT)
    return facts


async def _fill(
    connection: "asyncpg.Connection[Any]", address: Address, reader: apsw.Connection, *, force: bool
) -> None:
    there, numbered = await _columns(connection, address)
    names = backup.tables(reader)
    if not force:
        backup.refuse_full(
            address.shown,
            {
                name: await connection.fetchval(backup.COUNT.format(name, backup.COUNTED))
                for name in names
                if name in there
            },
        )
    await connection.execute(f"TRUNCATE {', '.join(name for name in names if name != 'house')}")
    await connection.execute(f"DELETE FROM house WHERE {_KEPT_THERE}")  # noqa: S608 - words of ours
    given_out = _given_out(reader)
    for table in names:
        columns = _same_columns(reader, table, there, address)
        rows = iter(reader.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchone, None)  # noqa: S608 - names of ours
        await connection.copy_records_to_table(table, schema_name=address.schema, columns=columns, records=rows)
        if column := numbered.get(table):
            # Beyond the highest number that was ever given out, so that none is given twice.
            await connection.fetchval(
                f"SELECT setval(pg_get_serial_sequence($1, $2), greatest($3, (SELECT coalesce(max({column}), 0) FROM {table})) + 1, false)",  # noqa: S608 - names of ours
                f"{address.schema}.{table}",
                column,
                given_out.get(table, 0),
            )


def _given_out(reader: apsw.Connection) -> dict[str, int]:
    """Answer the highest numbers that SQLite remembers having given out, by table."""
    return {name: int(number or 0) for name, number in reader.execute("SELECT name, seq FROM sqlite_sequence")}


async def _columns(
    connection: "asyncpg.Connection[Any]", address: Address
) -> tuple[dict[str, set[str]], dict[str, str]]:
    """Answer the columns of every table, and which one the server numbers."""
    there: dict[str, set[str]] = {}
    numbered: dict[str, str] = {}
    for table, column, is_identity in await connection.fetch(_COLUMNS, address.schema):
        there.setdefault(table, set()).add(column)
        if is_identity == "YES":
            numbered[table] = column
    return there, numbered


def _same_columns(file: apsw.Connection, table: str, there: dict[str, set[str]], address: Address) -> list[str]:
    """Answer a table's columns, which both must have. Raises `StoreError`."""
    here = backup.columns(file, table)
    if set(here) != there.get(table):
        raise StoreError(f"Table {table} of {address.shown} is not as this Tasuki made it; nothing was copied.")
    return here
