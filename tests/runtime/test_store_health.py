"""`doctor --store`: what is well is said to be, and each thing that can be wrong is found when it is planted."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from tasuki.runtime import store_health
from tasuki.runtime.clock import WallClock
from tasuki.runtime.store_health import Finding
from tasuki.testing import ManualClock
from tasuki.values.errors import ConfigError, StoreError, StoreNewer
from tasuki.values.instant import DAY
from tests.postgres import ask, drop_schema, in_schema, new_schema, server
from tests.store.test_backup import Place, furnish

MESSAGES = "messages accounted for"
WAITING = "executions that wait for a turn"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield Place(tmp_path / "data")
        return
    schema = new_schema()
    yield Place(tmp_path, in_schema(server(), schema))
    drop_schema(server(), schema)


def findings(place: Place) -> dict[str, Finding]:
    return {found.what: found for found in store_health.examine(place.data, place.url)}


@pytest.fixture
def plant(place: Place) -> Callable[..., dict[str, Finding]]:
    """Furnish the place, do something to it, and examine it."""

    def planted(*statements: str, ago_ms: int = 0) -> dict[str, Finding]:
        with place.house(ManualClock(WallClock().now() - ago_ms)) as house:
            furnish(house)
            house.call("sqs", "ReceiveMessage", QueueUrl="http://127.0.0.1:4566/000000000000/q")
            for statement in statements:
                house.unit(lambda tx, sql=statement: tx.run(sql))  # type: ignore[misc]
            return findings(place)  # while it is open, as a node's is

    return planted


def test_a_store_that_is_well_has_nothing_wrong(place: Place, plant: Callable[..., dict[str, Finding]]) -> None:
    found = plant()
    # Others' matter, where others use the server; and one of the tests' own does without fsync.
    servers = {"clocks", "replication", "connections", "long transactions", "dead rows", "durability"}
    assert {one.what: one.state for one in found.values() if one.state != "ok" and one.what not in servers} == {}
    assert found[MESSAGES].found == "1 queue"
    assert found["messages in flight"].found == "1"
    assert "executions 5" in found["rows"].found
    assert "messages 5" in found["rows"].found
    assert found["oldest timer"].found.startswith("due in ")
    assert found["schema"].found.startswith("version ")
    assert ("SQLite" in found["store"].found) == (place.url is None)


@pytest.mark.parametrize("lost", [1, -2])
def test_messages_that_are_not_accounted_for_are_found(plant: Callable[..., dict[str, Finding]], lost: int) -> None:
    found = plant(f"UPDATE shelf_counts SET sent = sent + {lost}")[MESSAGES]
    assert (found.state, found.found) == ("no", f"sent, less what became of it: q {lost:+}")
    assert found.advice


def test_timers_that_nobody_fires_are_found(plant: Callable[..., dict[str, Finding]]) -> None:
    found = plant(ago_ms=3 * 3_600_000)["oldest timer"]
    assert (found.state, found.found) == ("limited", "overdue by 2 h (machines)")
    assert "start a node" in found.advice


def test_executions_that_nobody_serves_are_found(plant: Callable[..., dict[str, Finding]]) -> None:
    found = plant(
        "INSERT INTO ready (execution, goes_on) SELECT id, 0 FROM executions ORDER BY id LIMIT 3", ago_ms=600_000
    )[WAITING]
    assert (found.state, found.found) == ("limited", "3, the first of them for 10 min")


def test_a_damaged_file_is_found(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    with place.house() as house:
        furnish(house, 60)
    file = place.data / "tasuki.db"
    content = bytearray(file.read_bytes())
    for page in range(20, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    file.write_bytes(content)
    assert "restore a backup" in told_of_damage(place).lower()


def told_of_damage(place: Place) -> str:
    """What the check says, or why there could be none."""
    try:
        found = findings(place)["integrity"]
    except StoreError as bad:
        return str(bad)
    return found.advice if found.state == "no" else ""


def test_nothing_is_changed(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    with place.house() as house:
        furnish(house)
    before = (place.data / "tasuki.db").read_bytes()
    findings(place)
    assert (place.data / "tasuki.db").read_bytes() == before


def test_a_transaction_that_holds_on_is_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[tuple[Any, ...]] = [(7, "psql", 3_600_000), (8, "", 600_000)]
    found = store_health.long_transactions(rows)
    assert (found.state, found.found) == ("limited", "pid 7 (psql) for 60 min, pid 8 (unnamed) for 10 min")
    monkeypatch.setattr(store_health, "LONG_MS", 0)
    with place.house() as house:
        furnish(house)
        assert findings(place)  # the statement itself is sound


@pytest.mark.parametrize(
    ("facts", "what", "state", "says"),
    [
        (("16", "on", "on", 1 << 20, 81, 100, 0), "connections", "limited", "81 of 100"),
        (("16", "on", "on", 1 << 20, 80, 100, 0), "connections", "ok", "80 of 100"),
        (("16", "on", "off", 1 << 20, 1, 100, 0), "durability", "no", "fsync off"),
        (("16", "on", "on", 1 << 20, 1, 100, 5_000), "clocks", "limited", "the database is 5 s ahead of this machine"),
        (("16", "on", "on", 1 << 20, 1, 100, -90_000), "clocks", "limited", "90 s behind"),
        (("16", "on", "on", 1 << 20, 1, 100, 900), "clocks", "ok", "alike"),
    ],
)
def test_what_a_server_says_of_itself_is_judged(facts: tuple[Any, ...], what: str, state: str, says: str) -> None:
    [found] = [one for one in store_health.server_findings(facts, 0) if one.what == what]
    assert (found.state, says in found.found, bool(found.advice)) == (state, True, state != "ok"), found


@pytest.mark.parametrize(
    ("facts", "state", "says"),
    [
        (("on", 10, 500), "ok", ""),
        (("off", 10, 0), "limited", "turn autovacuum on"),
        (("on", 1_000, 300_000), "limited", "does not keep up"),
        (("on", 1_000_000, 300_000), "ok", ""),
    ],
)
def test_dead_rows_that_nobody_sweeps_up(facts: tuple[Any, ...], state: str, says: str) -> None:
    found = store_health.dead_rows(facts)
    assert (found.state, bool(found.advice)) == (state, state != "ok")
    assert says in found.advice


@pytest.mark.parametrize(
    ("rows", "unknown", "state", "says"),
    [
        ([], 0, "ok", "none has joined"),
        ([("a", "h", 90_000, None, None, 3), ("b", "h", 0, 50_000, None, 0)], 0, "ok", "1 up, 1 stopped"),
        ([("a", "h", 0, None, None, 0), ("b", "h", 0, None, 5_000, 0)], 0, "ok", "1 silent, 1 lost"),
        ([("a", "h", 40_000, None, None, 2)], 0, "no", "1 silent; a on h is silent since 60 s, with 2 tasks"),
        ([("a", "h", 0, None, 90_000, 1)], 0, "no", "1 lost; a on h is lost since 100 s, with 1 task"),
        ([("a", "", 90_000, 95_000, None, 1)], 0, "limited", "1 stopped; a on a host unknown is stopped since 10 s"),
        ([("a", "h", 0, None, None, 1), ("b", "h", 0, 0, None, 1)], 0, "no", "1 silent, 1 stopped; a on h is silent"),
        ([], 2, "no", "none has joined; 2 tasks are of a node that nobody knows"),
    ],
)
def test_nodes_that_are_away_with_tasks_are_found(rows: list[Any], unknown: int, state: str, says: str) -> None:
    found = store_health.nodes_finding(rows, unknown, 100_000)
    assert (found.state, bool(found.advice)) == (state, state != "ok")
    assert found.found.startswith(says), found


def test_standbys_are_named() -> None:
    assert store_health.replicas([]).state == "ok"
    assert "may be missing" in store_health.replicas([("two", "async")]).advice
    assert store_health.replicas([("one", "sync"), ("", "async")]).found == "one sync, a standby async"


def test_a_store_that_cannot_be_opened_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no node has run on this data directory"):
        store_health.examine(tmp_path, None)
    with pytest.raises(ConfigError, match="only PostgreSQL"):
        store_health.examine(tmp_path, "mysql://h/d")
    schema = new_schema()
    try:
        with pytest.raises(StoreError, match="holds no house yet"):
            store_health.examine(tmp_path, in_schema(server(), schema))
        ask(server(), f"CREATE SCHEMA IF NOT EXISTS {schema}")
        ask(server(), f"CREATE TABLE {schema}.t (a int)")
        with pytest.raises(StoreNewer, match="tables of another program"):
            store_health.examine(tmp_path, in_schema(server(), schema))
    finally:
        drop_schema(server(), schema)
    with closing(apsw.Connection(str(tmp_path / "tasuki.db"))) as other:
        other.execute("CREATE TABLE t (a)")
    with pytest.raises(StoreNewer, match="another program"):
        store_health.examine(tmp_path, None)


def test_timers_are_held_against_a_clock_that_is_moved_by_hand(plant: Callable[..., dict[str, Finding]]) -> None:
    ago = 10 * DAY
    assert plant(ago_ms=ago)["oldest timer"].state == "limited"
    found = plant(f"INSERT INTO clock (name, stands_at) VALUES ('house', {WallClock().now() - ago})", ago_ms=ago)
    assert "it stands at" in found["clock"].found
    assert found["oldest timer"].state == "ok"
