"""Whose the tasks of a backup are, told from its rows and a data directory; with real ones: tests/stories/test_moving.py."""

from pathlib import Path

import pytest

from tasuki.runners.home import house_id
from tasuki.runtime import backup as operation
from tasuki.runtime.clock import WallClock
from tasuki.runtime.moving import Moving
from tasuki.runtime.nodes_home import node_id
from tasuki.services import tasks
from tasuki.store.sqlite import SqliteStore
from tasuki.testing import House
from tasuki.values.chance import Chance
from tasuki.values.config import Config, Image
from tasuki.values.errors import StoreError, StoreTaken
from tasuki.values.instant import MINUTE
from tests.postgres import ask

SECRET = "SELECT value FROM house WHERE name = 'page_secret'"
CLAIMED = "UPDATE tasks SET name = 'task' || id, attempt = 1, node = '{}', host = 'far', boot = 'b', last_status = '{}' WHERE id = {}"
NODE = (
    "INSERT INTO nodes (id, place, incarnation, host, boot, url, version, owner, memory_mib, lost_ms, losses, clock_ahead_ms, "
    "joined_at, seen_at) VALUES ('{}', '', '', 'far', 'b', '', '', '', 0, 600000, 7, 0, 1, 1)"
)


def backup_of(path: Path, nodes: dict[int, tuple[str, str]], known: tuple[str, ...] = ()) -> tuple[Path, str]:
    """A backup with tasks, by number: their node and status; answer it, and its house's id."""
    path.mkdir(exist_ok=True)

    def store(house: House) -> SqliteStore:
        given = {"clock": house.clock, "real_clock": house.clock, "chance": house.chance, "on_ring": house.bell.ring}
        return SqliteStore(path / "tasuki.db", **given)  # type: ignore[arg-type]

    config = Config(data=path, dev=True, images={"i": Image("i", path, ("true",))})
    with House(tasks.room, config=config, store=store) as house:
        container = {"name": "c", "image": "i", "memory": 32}
        house.call("ecs", "RegisterTaskDefinition", family="t", containerDefinitions=[container])
        for _ in nodes:
            house.call("ecs", "RunTask", taskDefinition="t")
        statements = [CLAIMED.format(node, status, number) for number, (node, status) in nodes.items()]
        for sql in [*statements, *(NODE.format(one) for one in known)]:
            house.unit(lambda tx, sql=sql: tx.run(sql))  # type: ignore[misc]
        secret = house.unit(lambda tx: tx.one(SECRET))
    assert secret is not None
    file = path / "kept"
    operation.back_up(file, path, None, with_credentials=False, force=False)
    return file, house_id(secret[0])


def home(data: Path, house: str, *names: str) -> Path:
    """A data directory that holds the folders of some tasks of a house."""
    for name in names:
        (data / "tasks" / name / "1").mkdir(parents=True)
    (data / "tasks").mkdir(parents=True, exist_ok=True)
    (data / "tasks" / "house").write_text(house)
    return data


def test_ours_is_what_has_its_folder_here_or_our_id_or_was_perhaps_never_begun(tmp_path: Path) -> None:
    data = home(tmp_path / "data", "", "task1")
    own = node_id(data, Chance.system())
    rows = {
        1: ("here", "RUNNING"),
        2: ("here", "RUNNING"),
        3: ("here", "PENDING"),
        4: (own, "RUNNING"),
        5: ("o", "PENDING"),
    }
    file, house = backup_of(tmp_path / "old", rows)
    moving = Moving(file, home(data, house))
    assert [one.name for one in moving.ours] == ["task1", "task3", "task4"]
    with pytest.raises(StoreTaken, match=r"2 tasks were running on far when the backup was made \(task2, task5\)"):
        moving.refuse_unknown(shared=True)
    other = Moving(file, home(tmp_path / "other", "another house", "task1"))
    assert (other.is_home, other.is_anothers, other.ours) == (False, True, [])


def test_a_node_that_the_backup_knows_comes_back_for_its_own_only_where_it_could(tmp_path: Path) -> None:
    file, _ = backup_of(tmp_path / "old", {1: ("n", "RUNNING")}, known=("n",))
    moving = Moving(file, tmp_path / "none")
    moving.refuse_unknown(shared=True)
    with pytest.raises(StoreTaken, match="A task was running on far"):
        moving.refuse_unknown(shared=False)


def test_a_backup_that_is_damaged_in_any_place_is_said_to_be(tmp_path: Path) -> None:
    file, _ = backup_of(tmp_path / "old", {1: ("here", "RUNNING")})
    whole = file.read_bytes()
    for page in range(1, len(whole) // 4096):
        spoilt = bytearray(whole)
        spoilt[page * 4096 : page * 4096 + 1024] = b"\xff" * 1024
        file.write_bytes(spoilt)
        with pytest.raises(StoreError, match="damaged"):
            operation.restore(file, tmp_path / "new", None, force=True, tasks_ended=True)


def test_the_nodes_of_a_backup_count_as_seen_when_it_is_restored(tmp_path: Path, postgres_url: str) -> None:
    """It is of last night: by the instants of last night, the first node that starts gave up what the others still run."""
    file, _ = backup_of(tmp_path / "old", {1: ("n", "RUNNING")}, known=("n",))
    before = WallClock().now()
    operation.restore(file, tmp_path / "none", postgres_url, force=False, named=False)
    base, _, schema = postgres_url.rpartition("schema=")
    (row,) = ask(base.rstrip("?&"), f"SELECT seen_at, stopped_at, losses FROM {schema}.nodes")
    assert abs(row[0] - before) < MINUTE
    assert (row[1], row[2]) == (row[0], 7)
    assert not (tmp_path / "none").exists()
