"""What a node says of a database that it cannot begin on: one clear sentence, with what to do, and without the password."""

import asyncio
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from tasuki.store import postgres_schema
from tasuki.store.migrations import migrations
from tasuki.store.postgres_address import read_address
from tasuki.values.errors import ConfigError, StoreBusy, StoreError, StoreNewer
from tests.older_postgres import posing_as
from tests.own_postgres import LOGIC, NoServer, OwnServer
from tests.postgres import ask, own_server
from tests.store.postgres_pooler import Pooler
from tests.store.postgres_stores import opened

SECRET = "s3cret-word"
KNOWN = migrations()[-1][0]


@pytest.fixture(scope="module")
def guarded() -> Iterator[OwnServer]:
    """A server that asks for a password."""
    try:
        one = own_server(LOGIC, password=SECRET)
    except NoServer as why:
        pytest.skip(str(why))
    with one:
        ask(one.url, f"CREATE ROLE poor LOGIN PASSWORD '{SECRET}'")
        ask(one.url, "CREATE DATABASE narrow CONNECTION LIMIT 0")
        yield one


def refusal(url: str, **options: Any) -> Exception:
    """Open a store that can't be opened; answer why. The password is nowhere in it, nor in what it came of."""

    async def run() -> None:
        async with opened(url, **options):
            pass

    with pytest.raises((StoreError, ConfigError)) as caught:
        asyncio.run(run())
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    return caught.value


# -- the URL --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"mysql://me:{SECRET}@host/db", "--store mysql: only PostgreSQL can be named here; spell it postgresql://"),
        ("tasuki.db", "only PostgreSQL can be named here"),
        ("", "only PostgreSQL can be named here"),
        (f"postgresql://me:{SECRET}@host", "names no database; spell it"),
        ("postgresql://host/", "names no database; spell it"),
        (f"postgresql://me:{SECRET}@host:many/db", "host and port can't be read"),
        (f"postgresql://me:{SECRET}#{SECRET}@host/db", "# as %23"),
        (f"postgresql://me:{SECRET}/{SECRET}@host/db", "/ as %2F"),
        (f"postgresql://me:a@{SECRET}/b@host/db", "@ as %40"),
        (f"postgresql://me:[{SECRET}@host/db", "can't be read"),
        ("postgresql://host/db?schema=Mine", "schema=Mine can't be a schema; use at most 51 small letters"),
        ("postgresql://host/db?schema=pg_mine", "can't be a schema"),
        (f"postgresql://host/db?schema={'x' * 52}", "can't be a schema"),
    ],
)
def test_a_url_that_makes_no_sense(url: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_address(url)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_url_is_shown_without_its_password() -> None:
    address = read_address(f"postgresql://me:{SECRET}%2F@host:77/db?schema=mine&sslmode=require&lock_timeout=1s")
    assert address.shown == "postgresql://me@host:77/db?schema=mine"
    assert address.settings == {"lock_timeout": "1s"}
    assert address.has_password
    assert not read_address("postgresql://me@host/db").has_password
    assert SECRET not in repr(address)


def test_an_option_that_the_driver_does_not_know_is_told() -> None:
    why = refusal("postgresql://127.0.0.1:1/db?sslmode=perhaps")
    assert isinstance(why, ConfigError)
    assert "sslmode" in str(why)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "shema=mine",
            "the server knows no setting shema, which stands behind the ? in --store; did you mean ?schema=",
        ),
        (
            "verbosity=9",
            "knows no setting verbosity, which stands behind the ? in --store; known are schema, sslmode, ",
        ),
    ],
)
def test_a_question_that_the_server_does_not_know(guarded: OwnServer, asked: str, said: str) -> None:
    assert said in str(refusal(f"{guarded.url}{'&' if '?' in guarded.url else '?'}{asked}"))


# -- the server -----------------------------------------------------------------------------------------------------


def test_a_host_that_nobody_knows() -> None:
    assert "the host's name is not known" in str(refusal("postgresql://no-such-host.invalid/db", patience_s=5))


def test_a_port_where_nobody_listens() -> None:
    assert "No database server answers at postgresql://127.0.0.1:1/db" in str(refusal("postgresql://127.0.0.1:1/db"))


def test_a_wrong_password_and_an_unknown_user(guarded: OwnServer) -> None:
    at = f"{guarded.host}:{guarded.port}/postgres"
    for who in (f"postgres:{SECRET}x", f"nobody:{SECRET}"):
        why = str(refusal(f"postgresql://{who}@{at}"))
        assert f"postgresql://{who.partition(':')[0]}@{at} refuses the user or the password" in why
        assert "PGPASSWORD" in why


def test_a_database_that_is_not_there(guarded: OwnServer) -> None:
    why = refusal(guarded.url.replace("/postgres?", "/absent?").removesuffix("/postgres") + "/absent")
    assert "there is no database of that name. Make it: createdb absent" in str(why)


def test_a_server_that_takes_no_more_connections(guarded: OwnServer) -> None:
    poor = f"postgresql://poor:{SECRET}@{guarded.host}:{guarded.port}/narrow"
    assert "takes no more connections" in str(refusal(poor))


def test_a_server_that_is_too_old(guarded: OwnServer) -> None:
    with posing_as(guarded.url, "12.9") as url:
        assert "is PostgreSQL 12.9; Tasuki needs PostgreSQL 13 or newer" in str(refusal(url))


def test_a_standby() -> None:
    try:
        one = own_server(LOGIC)
    except NoServer as why:
        pytest.skip(str(why))
    with one:
        one.stop()
        (one._data / "standby.signal").touch()
        one.start()
        assert "is a standby, which only reads; name the primary server" in str(refusal(one.url))


def test_a_user_without_rights(guarded: OwnServer) -> None:
    poor = f"postgresql://poor:{SECRET}@{guarded.host}:{guarded.port}/postgres"
    why = str(refusal(poor))
    assert "may not do this: permission denied for database postgres" in why
    assert "GRANT CREATE ON DATABASE postgres" in why
    ask(guarded.url, "CREATE SCHEMA theirs")
    assert "or make it the owner of schema theirs" in str(refusal(f"{poor}?schema=theirs"))


@asynccontextmanager
async def pretending(*answers: bytes) -> Any:
    """A server that answers a greeting so, and then nothing more."""

    over: list[asyncio.Task[None]] = []

    async def serve(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        over.extend(one for one in (asyncio.current_task(),) if one is not None)
        with suppress(OSError):
            for answer in answers:
                await source.read(65_536)
                target.write(answer)
            await source.read()
        target.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"postgresql://me:{SECRET}@127.0.0.1:{server.sockets[0].getsockname()[1]}/db"
        await asyncio.gather(*over)


def refused_by(*answers: bytes) -> str:
    """Open a store at a server that answers so; answer what is said of it."""

    async def run() -> str:
        async with pretending(*answers) as url:
            with pytest.raises(StoreError) as caught:
                async with opened(url, patience_s=0.5):
                    pass
            assert SECRET not in "".join(traceback.format_exception(caught.value))
            return str(caught.value)

    return asyncio.run(run())


def test_a_pooler_that_refuses_our_settings() -> None:
    said = b"SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter: search_path\0\0"
    why = refused_by(b"N", b"E" + (len(said) + 4).to_bytes(4, "big") + said)
    assert "unsupported startup parameter: search_path" in why
    assert "Name the database server itself" in why


def through_a_pooler(url: str, **options: Any) -> str:
    """Open a store through a pooler, and run units; answer why that is refused, or nothing."""

    async def run() -> str:
        async with Pooler(url, **options) as pooler:
            try:
                async with opened(pooler.url, patience_s=2.0) as store:
                    await asyncio.gather(*(store.write(lambda tx: tx.one("SELECT 1")) for _ in range(5)))
            except StoreError as bad:
                return str(bad)
            return ""

    return asyncio.run(run())


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pf59_a_pooler_that_gives_each_transaction_another_connection(postgres_url: str, size: int) -> None:
    why = through_a_pooler(postgres_url, size=size)
    assert "a pooler in transaction mode" in why
    assert "name the database server itself" in why
    base, schema = postgres_url.partition("?")[0], read_address(postgres_url).schema
    assert not ask(base, "SELECT 1 FROM pg_namespace WHERE nspname = $1", schema), "nothing was made"


def test_a_pooler_that_drops_the_settings_of_a_connection(postgres_url: str) -> None:
    why = through_a_pooler(postgres_url, mode="session", size=20, keeps_settings=False)
    assert "drops the settings of a connection" in why
    base = postgres_url.partition("?")[0]
    assert not ask(base, "SELECT 1 FROM pg_tables WHERE schemaname = 'public' AND tablename = 'house'")


def test_a_pooler_in_session_mode_is_as_good_as_none(postgres_url: str) -> None:
    assert through_a_pooler(postgres_url, mode="session", size=20) == ""


def test_pf59_the_lock_of_migrations_lies_and_goes_with_its_transaction(postgres_url: str) -> None:
    """Were it the session's, it would stay behind on a connection of the pooler's that nobody knows."""
    address = read_address(postgres_url)

    async def run() -> None:
        async with Pooler(postgres_url.partition("?")[0], size=3) as pooler:
            base = f"{pooler.url}sslmode=disable"
            given = {"search_path": address.schema}
            starting = await asyncpg.connect(base, statement_cache_size=0, server_settings=given)
            await postgres_schema.prepare(starting, address)
            asking = await asyncpg.connect(postgres_url.partition("?")[0])
            held = await asking.fetchval(MIGRATION_LOCKS, address.schema)
            await asking.close()
            starting.terminate()
        assert held == 0

    asyncio.run(run())


MIGRATION_LOCKS = """
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
AND classid::bigint = hashtext('tasuki migrations')::bigint & 4294967295 AND objid::bigint = hashtext($1)::bigint & 4294967295
"""


def test_something_that_never_answers() -> None:
    began = time.monotonic()
    assert "does not answer. Check host and port" in refused_by()
    assert time.monotonic() - began < 5


def test_something_that_is_no_database() -> None:
    assert "No database server answers" in refused_by(b"HTTP/1.1 400 Bad Request\r\n\r\n")


# -- the schema -----------------------------------------------------------------------------------------------------


def test_a_schema_of_another_program(postgres_url: str) -> None:
    base, schema = postgres_url.partition("?")[0], read_address(postgres_url).schema
    ask(base, f"CREATE SCHEMA {schema}")
    ask(base, f"CREATE TABLE {schema}.house (name TEXT)")
    why = refusal(postgres_url)
    assert isinstance(why, StoreNewer)
    assert "holds tables of another program (house ...); name another schema (?schema=NAME)" in str(why)


def made(url: str, version: int) -> tuple[str, str]:
    """Make a store, and let it have another version; answer its server's URL and its schema."""

    async def run() -> None:
        async with opened(url):
            pass

    asyncio.run(run())
    base, schema = url.partition("?")[0], read_address(url).schema
    ask(base, f"UPDATE {schema}.house SET value = $1 WHERE name = 'schema'", str(version))
    return base, schema


def test_a_newer_schema(postgres_url: str) -> None:
    made(postgres_url, KNOWN + 1)
    why = refusal(postgres_url)
    assert isinstance(why, StoreNewer)
    assert f"written by a newer Tasuki (schema {KNOWN + 1}, this one knows {KNOWN}). Upgrade Tasuki" in str(why)


def test_an_older_schema_while_nodes_of_it_work(postgres_url: str) -> None:
    base, schema = made(postgres_url, KNOWN - 1)
    columns = ask(
        base,
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = $1 AND table_name = 'nodes' "
        "AND is_nullable = 'NO' AND column_name <> 'seen_at'",
        schema,
    )
    names = ", ".join(name for name, _ in columns)
    values = ", ".join("'x'" if kind == "text" else "1" for _, kind in columns)
    ask(base, f"INSERT INTO {schema}.nodes (seen_at, {names}) VALUES (extract(epoch FROM now()) * 1000, {values})")
    why = refusal(postgres_url)
    assert isinstance(why, StoreBusy)
    assert f"1 node of schema {KNOWN - 1} still works on" in str(why)
    assert "Stop them first, then start the new version" in str(why)


def test_many_nodes_may_begin_on_an_empty_database_at_once(postgres_url: str) -> None:
    async def begin() -> None:
        async with opened(postgres_url) as store:
            await store.write(lambda tx: tx.one("SELECT 1"))

    async def run() -> None:
        await asyncio.gather(*(begin() for _ in range(6)))

    asyncio.run(run())


# -- the command ----------------------------------------------------------------------------------------------------


def up(data: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a node that is not expected to start."""
    return subprocess.run(
        [sys.executable, "-m", "tasuki.cli.main", "up", "--data", data, "--port", "0", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.clients
@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        (f"mysql://me:{SECRET}@host/db", 2, "only PostgreSQL can be named here"),
        (f"postgresql://me:{SECRET}@host", 2, "names no database"),
        (f"postgresql://me:{SECRET}@127.0.0.1:1/db", 4, "No database server answers at postgresql://me@127.0.0.1:1/db"),
    ],
)
def test_up_ends_with_a_sentence_and_a_code(tmp_path: Path, url: str, code: int, said: str) -> None:
    done = up(tmp_path, TASUKI_STORE=url)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.clients
def test_up_warns_of_a_password_that_everybody_can_read(tmp_path: Path) -> None:
    url = f"postgresql://me:{SECRET}@127.0.0.1:1/db"
    warned = up(tmp_path, "--store", url)
    assert "a password belongs into TASUKI_STORE, PGPASSWORD or ~/.pgpass" in warned.stderr
    assert SECRET not in warned.stdout + warned.stderr
    assert "belongs into" not in up(tmp_path, TASUKI_STORE=url).stderr


@pytest.mark.clients
def test_an_empty_store_is_not_the_file(tmp_path: Path) -> None:
    done = up(tmp_path, "--store", "")
    assert done.returncode == 2
    assert "it is empty; name a database" in done.stderr


@pytest.mark.clients
def test_up_says_where_it_stores_and_a_file_may_say_it_too(tmp_path: Path, guarded: OwnServer) -> None:
    (tmp_path / "tasuki.toml").write_text(f'[node]\nstore = "{guarded.url}"\n')
    node = subprocess.Popen(
        [sys.executable, "-m", "tasuki.cli.main", "up", "--data", tmp_path, "--port", "0", "--dev"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with node:
        assert node.stdout is not None
        assert node.stderr is not None
        said = node.stdout.readline()
        words = " ".join(psutil.Process(node.pid).cmdline())
        node.terminate()
        complained = node.stderr.read()
    assert f"postgresql://postgres@127.0.0.1:{guarded.port}/postgres" in said, complained
    assert SECRET not in said + complained + words
    assert node.returncode == 0
