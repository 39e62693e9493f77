"""Where the tests get PostgreSQL: a real server, always.

The first of these that there is: the one that TASUKI_TEST_POSTGRESQL names; one on 127.0.0.1:5432 that lets us in (PGPORT,
PGUSER and PGPASSWORD count) and is new enough; else one of our own (`tests/own_postgres.py`), started once and ended with the tests.
Every store of a test lives in a schema of its own, so a database may have other tenants: `?schema=NAME` in its URL.
"""

import asyncio
import atexit
import getpass
import os
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import asyncpg

from tests.own_postgres import LOGIC, NoServer, OwnServer

VARIABLE = "TASUKI_TEST_POSTGRESQL"
OLDEST = 130_000
KNOCK_S = 3.0
PREFIX = "tasuki_test"
PLAIN = "?sslmode=disable"
"""On loopback: asking for encryption would cost a round trip at every connection."""
FORGOTTEN_S = 86_400
"""A schema of a test run that was killed stays behind; a later run drops it when it is a day old."""

_TO_BE_HAD = """
SELECT current_setting('server_version_num')::int AS version,
       has_database_privilege(current_database(), 'CREATE') AS may_create,
       pg_is_in_recovery() AS standby
"""
_OURS = rf"SELECT nspname FROM pg_namespace WHERE nspname LIKE '{PREFIX}\_%'"


@cache
def server() -> str:
    """Answer the URL of a server and a database that the tests may make schemas in. Raises `NoServer` with the reason.

    The answer goes into TASUKI_TEST_POSTGRESQL, so that processes which the tests start share it.
    """
    named = os.environ.get(VARIABLE)
    if named:
        refused = _refusal(named)
        if refused:
            raise NoServer(f"{VARIABLE}: {refused}")
        found = named
    else:
        found = _local() or _embedded()
    os.environ[VARIABLE] = found
    _forget_old_schemas(found)
    return found


def own_server(
    settings: dict[str, str] | None = None, *, password: str | None = None, folder: Path | None = None
) -> OwnServer:
    """Start a server of the test's own, which it may kill, stop, fill and restart; `with own_server() as server:` ends it."""
    one = OwnServer(settings, password=password, folder=folder)
    try:
        return one.start()
    except BaseException:
        one.remove()
        raise


def new_schema() -> str:
    """Answer a name that no other test has. Whoever takes it drops it: `drop_schema`."""
    return f"{PREFIX}_{int(time.time())}_{secrets.token_hex(4)}"


def in_schema(url: str, schema: str) -> str:
    """Answer the URL of a store in that schema of a server's database. Raises `ValueError` for a URL that names one: it may be in use."""
    if "schema" in dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)):
        raise ValueError(
            "the URL names a schema, perhaps of a house that is in use: leave ?schema= out, and one is made"
        )
    return f"{url}{'&' if urlsplit(url).query else '?'}schema={schema}"


def drop_schema(url: str, schema: str) -> None:
    """Drop it with all that is in it; it may be gone already."""
    ask(url, f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def ask(url: str, sql: str, *given: Any) -> list[Any]:
    """Run one statement on a connection of its own, whoever else uses the loop; answer its rows."""

    async def run() -> list[Any]:
        connection = await asyncpg.connect(url, timeout=KNOCK_S)
        try:
            return list(await connection.fetch(sql, *given))
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, run()).result()


def _refusal(url: str) -> str | None:
    """Answer why the tests can't use this server, or None."""
    at = urlsplit(url)
    shown = f"{at.hostname}:{at.port or 5432}{at.path}"
    try:
        ((version, may_create, standby),) = ask(url, _TO_BE_HAD)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as bad:
        return f"{shown} can't be used: {bad or type(bad).__name__}"
    if version < OLDEST:
        return f"{shown} is PostgreSQL {version // 10_000}; the tests need 13 or newer"
    if standby:
        return f"{shown} is a standby, which only reads"
    return None if may_create else f"{shown}: the user may not create schemas there (GRANT CREATE ON DATABASE)"


def _local() -> str | None:
    """Answer the server on the usual port, if it takes us: its database `test`, or else one that is made for the tests."""
    secret = os.environ.get("PGPASSWORD", "")
    word = ":" + quote(secret, safe="") if secret else ""
    for user in dict.fromkeys(filter(None, (os.environ.get("PGUSER"), "postgres", _login()))):
        base = f"postgresql://{quote(user)}{word}@127.0.0.1:{os.environ.get('PGPORT', '5432')}"
        for database in ("test", PREFIX):
            if _refusal(f"{base}/{database}") is None:
                return f"{base}/{database}{PLAIN}"
        if _refusal(f"{base}/postgres") is None:
            with suppress(asyncpg.PostgresError):
                ask(f"{base}/postgres", f"CREATE DATABASE {PREFIX}")
                return f"{base}/{PREFIX}{PLAIN}"
    return None


def _login() -> str | None:
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return None


def _embedded() -> str:
    one = own_server(LOGIC)
    atexit.register(one.remove)
    return f"{one.url}{PLAIN}"


def _forget_old_schemas(url: str) -> None:
    for (name,) in ask(url, _OURS):
        made = name.split("_")[2]
        if made.isdigit() and int(made) < time.time() - FORGOTTEN_S:
            drop_schema(url, name)
