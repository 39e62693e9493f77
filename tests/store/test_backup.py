"""Backups: consistent while a node writes, whole or not there, and restored into either store."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from tasuki.runtime import backup as operation
from tasuki.services import machines, queues
from tasuki.store import backup, backup_postgres
from tasuki.store.migrations import migrations
from tasuki.store.postgres import PostgresStore
from tasuki.store.postgres_address import read_address
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Store
from tasuki.testing import House, ManualClock
from tasuki.values.errors import ConfigError, StoreBusy, StoreError, StoreFull, StoreNewer, StoreTaken
from tests.postgres import ask, drop_schema, in_schema, new_schema, server

ROLE = "arn:aws:iam::000000000000:role/any"
SEND = {
    "StartAt": "W",
    "States": {
        "W": {"Type": "Wait", "Seconds": 60, "Next": "S"},
        "S": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage",
            "Parameters": {"QueueUrl": "http://127.0.0.1:4566/000000000000/q", "MessageBody.$": "$.n"},
            "ResultPath": None,
            "End": True,
        },
    },
}
CONTIGUOUS = "SELECT execution, first, count FROM history ORDER BY execution, first"


class Place:
    """A store that a house may live in: a data directory, or a schema."""

    def __init__(self, data: Path, url: str | None = None) -> None:
        self.data, self.url = data, url

    def house(self, clock: ManualClock | None = None) -> House:
        return House(queues.room, machines.room, clock=clock, store=self._open)

    def _open(self, house: House) -> Store:
        given: dict[str, Any] = {"chance": house.chance, "on_ring": house.bell.ring}
        if self.url is None:
            self.data.mkdir(exist_ok=True)
            path = self.data / "tasuki.db"
            return SqliteStore(path, clock=house.clock, real_clock=house.clock, **given)
        return PostgresStore(
            self.url, wall=house.clock, clock=house.clock, real_clock=house.clock, connections=2, **given
        )

    def back_up(self, file: Path, **options: bool) -> backup.Facts:
        return operation.back_up(file, self.data, self.url, **{"with_credentials": False, "force": False, **options})

    def restore(self, file: Path, *, force: bool = False) -> None:
        operation.restore(file, self.data, self.url, force=force)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Callable[[str, str], Place]]:
    """Answer places by kind and name."""
    schemas: list[str] = []

    def place(kind: str, name: str) -> Place:
        if kind == "sqlite":
            return Place(tmp_path / name)
        schemas.append(new_schema())
        return Place(tmp_path / name, in_schema(server(), schemas[-1]))

    yield place
    for schema in schemas:
        drop_schema(server(), schema)


def furnish(house: House, count: int = 5) -> list[str]:
    """A queue with messages, and executions that wait for a minute and then send one more."""
    house.call("sqs", "CreateQueue", QueueName="q")
    made = house.call("stepfunctions", "CreateStateMachine", name="m", definition=json.dumps(SEND), roleArn=ROLE)
    for number in range(count):
        send(house, f"first {number}")
    return [start(house, made["stateMachineArn"], number) for number in range(count)]


def start(house: House, machine: str, number: int) -> str:
    text = json.dumps({"n": f"from execution {number}"})
    return str(house.call("stepfunctions", "StartExecution", stateMachineArn=machine, input=text)["executionArn"])


def send(house: House, body: str) -> None:
    house.call("sqs", "SendMessage", QueueUrl="http://127.0.0.1:4566/000000000000/q", MessageBody=body)


def rows_of(file: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as reader:
        return list(reader.execute(sql))


def everything(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a backup, but what it says of itself."""
    with closing(backup.opened(file)) as reader:
        return {
            table: sorted(
                (row for row in reader.execute(f"SELECT * FROM {table}") if row[0] not in {"backup", "credentials"}),
                key=repr,
            )
            for table in backup.tables(reader)
        }


def assert_consistent(file: Path) -> None:
    place = Place(file.with_name(f"{file.name} restored"))
    place.restore(file, force=True)
    with place.house(ManualClock(1)) as house:
        account, region = house.config.account, house.config.region
        found = house.unit(lambda tx: queues.find_queue(tx, account, region, "q"))
        assert house.unit(lambda tx: queues.conservation(tx, found))
    check_histories(file)


def check_histories(file: Path) -> None:
    """See that every history is contiguous, and goes as far as its execution says."""
    expected: dict[int, int] = {}
    for execution, first, count in rows_of(file, CONTIGUOUS):
        assert first == expected.get(execution, 1)
        expected[execution] = first + count
    ended = dict(rows_of(file, "SELECT id, last_event FROM executions"))
    assert {execution: after - 1 for execution, after in expected.items()} == ended


def test_a_backup_is_one_moment_of_a_store_that_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "PAGES", 3)
    place = Place(tmp_path / "data")
    portions = 0
    with place.house() as house:
        furnish(house)
        machine = house.call("stepfunctions", "ListStateMachines")["stateMachines"][0]["stateMachineArn"]

        def between(_left: int) -> None:
            nonlocal portions
            portions += 1
            send(house, "x" * 5_000)
            start(house, machine, 100 + portions)
            house.advance(seconds=30)

        with backup.written(tmp_path / "b", force=False) as part:
            backup.copy_sqlite(place.data / "tasuki.db", part, between=between)
            backup.note(part, made_at=1, origin="sqlite", version="0", credentials=None)
        assert house.unit(lambda tx: tx.one("SELECT count(*) FROM executions")) == (5 + portions,)
    assert portions > 20
    assert rows_of(tmp_path / "b", "SELECT count(*) FROM executions") == [(5,)]
    assert_consistent(tmp_path / "b")


def test_so_it_is_on_postgresql(
    tmp_path: Path, places: Callable[[str, str], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = places("postgresql", "busy")
    written = 0
    with place.house() as house:
        furnish(house)
        machine = house.call("stepfunctions", "ListStateMachines")["stateMachines"][0]["stateMachineArn"]
        read_table = backup_postgres._read_table

        def write_more() -> None:
            send(house, "x")
            start(house, machine, 100 + written)
            house.advance(seconds=30)

        async def read_one_and_write(*given: Any) -> None:
            nonlocal written
            await read_table(*given)
            await asyncio.to_thread(write_more)  # the house's own loop can't run in this thread now
            written += 1

        monkeypatch.setattr(backup_postgres, "_read_table", read_one_and_write)
        place.back_up(tmp_path / "b")
        assert house.unit(lambda tx: tx.one("SELECT count(*) FROM executions")) == (5 + written,)
    assert written > 30
    assert rows_of(tmp_path / "b", "SELECT count(*) FROM executions") == [(5,)]
    assert_consistent(tmp_path / "b")


def test_a_database_that_goes_away_meanwhile_is_said_in_a_sentence(places: Callable[[str, str], Place]) -> None:
    url = places("postgresql", "a").url
    assert url is not None

    async def play() -> None:
        async with backup_postgres.connected(url) as (connection, _):
            connection.terminate()
            await connection.fetch("SELECT 1")

    with pytest.raises(StoreError, match="can't be used"):
        asyncio.run(play())


def test_a_restore_that_fails_half_way_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = Place(tmp_path / "old"), Place(tmp_path / "new")
    for place, count in ((old, 2), (new, 7)):
        with place.house() as house:
            furnish(house, count)
    old.back_up(tmp_path / "b")

    def fails(_path: Path) -> None:
        raise OSError(28, "No space left on device", str(new.data))

    monkeypatch.setattr(backup, "_settle", fails)
    with pytest.raises(OSError, match="No space left"):
        new.restore(tmp_path / "b", force=True)
    with new.house() as house:
        assert house.unit(lambda tx: tx.one("SELECT count(*) FROM executions")) == (7,)
    assert not list(new.data.glob("*.part*"))


@pytest.mark.parametrize("source", ["sqlite", "postgresql"])
@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_what_waited_goes_on_after_a_restore_into_either_store(
    tmp_path: Path, places: Callable[[str, str], Place], source: str, target: str
) -> None:
    old, new = places(source, "old"), places(target, "new")
    with old.house() as house:
        started = furnish(house)
        house.advance(seconds=30)
        old.back_up(tmp_path / "b")
        clock = ManualClock(house.now)
        house.advance(minutes=5)  # what happens after it is not in it
    assert_consistent(tmp_path / "b")
    new.restore(tmp_path / "b")
    with new.house(clock) as house:
        assert {describe(house, one)["status"] for one in started} == {"RUNNING"}
        house.advance(seconds=31)
        assert {describe(house, one)["status"] for one in started} == {"SUCCEEDED"}
        more = start(house, describe(house, started[0])["stateMachineArn"], 99)  # numbers go on where they were
        house.advance(seconds=61)
        assert describe(house, more)["status"] == "SUCCEEDED"
        new.back_up(tmp_path / "later")
    assert_consistent(tmp_path / "later")
    assert len(rows_of(tmp_path / "later", "SELECT seq FROM messages")) == 11


def describe(house: House, execution: str) -> dict[str, Any]:
    return house.call("stepfunctions", "DescribeExecution", executionArn=execution)


def test_a_timer_that_came_due_meanwhile_fires_once(tmp_path: Path, places: Callable[[str, str], Place]) -> None:
    old, new = places("sqlite", "old"), places("sqlite", "new")
    with old.house() as house:
        [execution] = furnish(house, 1)
        old.back_up(tmp_path / "b")
        clock = ManualClock(house.now)
    new.restore(tmp_path / "b")
    clock.set(clock.now() + 3_600_000)
    with new.house(clock) as house:
        house.drain()
        assert describe(house, execution)["status"] == "SUCCEEDED"
        assert house.unit(lambda tx: tx.one("SELECT count(*) FROM messages")) == (2,)


def test_there_and_back_again_every_row_is_the_same(tmp_path: Path, places: Callable[[str, str], Place]) -> None:
    first, there, back = places("sqlite", "a"), places("postgresql", "b"), places("sqlite", "c")
    with first.house() as house:
        furnish(house)
        house.advance(minutes=2)
        furnish_rest(house)
    first.back_up(tmp_path / "1")
    there.restore(tmp_path / "1")
    there.back_up(tmp_path / "2")
    back.restore(tmp_path / "2")
    back.back_up(tmp_path / "3")
    assert everything(tmp_path / "1") == everything(tmp_path / "2") == everything(tmp_path / "3")
    assert sum(len(rows) for rows in everything(tmp_path / "1").values()) > 30
    assert backup.check(tmp_path / "2").origin == "postgresql"


def furnish_rest(house: House) -> None:
    """What is awkward to carry over: blobs, fractions, numbers of 64 bits, absent values, letters from everywhere."""
    columns = "machine, name, revision, execution, frame, attempt, status, phase, started_at, max_concurrency, settings, cursor"
    house.unit(
        lambda tx: tx.run(
            f"INSERT INTO map_runs ({columns}, tolerated_percentage, error) VALUES (1, 'é𝄞\t\n\\', 1, -5, 1, 1, 'X', 'over', ?, 1, ?, ?, 12.5, NULL)",
            ((1 << 62) + 1, bytes(range(256)), b""),
        )
    )


def test_no_number_is_given_twice_after_a_move_to_postgresql(
    tmp_path: Path, places: Callable[[str, str], Place]
) -> None:
    old, new = places("sqlite", "old"), places("postgresql", "new")
    with old.house() as house:
        furnish(house)
        house.drain()
        [(turns,)] = house.unit(lambda tx: tx.all("SELECT seq FROM sqlite_sequence WHERE name = 'ready'")) or [(0,)]
    old.back_up(tmp_path / "b")
    new.restore(tmp_path / "b")
    assert new.url is not None
    schema = read_address(new.url).schema
    for table, column, least in (("executions", "id", 5), ("machines", "id", 1), ("ready", "turn", turns)):
        [row] = ask(server(), f"SELECT nextval(pg_get_serial_sequence('{schema}.{table}', '{column}'))")
        assert row[0] > least, table


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_store_that_is_not_empty_is_left_alone(
    tmp_path: Path, places: Callable[[str, str], Place], kind: str
) -> None:
    place, other = places(kind, "a"), places("sqlite", "b")
    with place.house() as house:
        furnish(house)
    with other.house() as house:
        house.call("sqs", "CreateQueue", QueueName="another")
    other.back_up(tmp_path / "b.db")
    place.back_up(tmp_path / "before")
    with pytest.raises(StoreTaken, match=r"is not empty: 5 in executions, .*--force"):
        place.restore(tmp_path / "b.db")
    place.back_up(tmp_path / "after")
    assert everything(tmp_path / "before") == everything(tmp_path / "after")
    place.restore(tmp_path / "b.db", force=True)
    with place.house() as house:
        assert [url.rpartition("/")[2] for url in house.call("sqs", "ListQueues")["QueueUrls"]] == ["another"]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_damaged_file_changes_nothing(tmp_path: Path, places: Callable[[str, str], Place], kind: str) -> None:
    old, new = places("sqlite", "old"), places(kind, "new")
    with old.house() as house:
        furnish(house, 40)
    old.back_up(tmp_path / "b")
    whole = (tmp_path / "b").read_bytes()
    middle = len(whole) // 2
    for damaged in (
        whole[:-8192],
        whole[:middle] + os.urandom(8192) + whole[middle + 8192 :],
        whole[:50],
        b"",
        b"hello",
    ):
        (tmp_path / "b").write_bytes(damaged)
        with pytest.raises(StoreError, match=r"is damaged|is no backup"):
            new.restore(tmp_path / "b")
    assert not (new.data / "tasuki.db").exists()


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "new")
    with closing(apsw.Connection(str(tmp_path / "other"))) as other:
        other.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    with pytest.raises(StoreError, match="is no backup of Tasuki"):
        place.restore(tmp_path / "other")
    with pytest.raises(StoreError, match="is not there"):
        place.restore(tmp_path / "nowhere")
    with place.house() as house:
        furnish(house)
        with pytest.raises(StoreError, match="is a database in use"):
            Place(tmp_path / "x").restore(place.data / "tasuki.db")
    with pytest.raises(StoreError, match="no node has run on this data directory"):
        Place(tmp_path / "empty").back_up(tmp_path / "b")
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "b.part").exists()


def older(file: Path, schema: int) -> None:
    with closing(backup.make_empty(file, schema)) as made:
        made.execute("INSERT INTO leases VALUES ('r', 'k', 'h', 5)")
    backup.note(file, made_at=1, origin="sqlite", version="0.0.1", credentials=None)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("schema", [1, 9, 11])
def test_an_older_backup_is_brought_up_to_date(
    tmp_path: Path, places: Callable[[str, str], Place], kind: str, schema: int
) -> None:
    older(tmp_path / "b", schema)
    place = places(kind, "new")
    place.restore(tmp_path / "b")
    with place.house() as house:
        furnish(house)
        assert house.unit(lambda tx: tx.one("SELECT until FROM leases")) == (5,)
    place.back_up(tmp_path / "again")
    assert backup.check(tmp_path / "again").schema == migrations()[-1][0]
    assert backup.check(tmp_path / "b").schema == schema  # the file itself is only read


def test_the_one_node_of_a_data_directory_looks_for_all_tasks(tmp_path: Path) -> None:
    """Of a house of several nodes: else nobody would settle what the others had in hand."""
    with closing(backup.make_empty(tmp_path / "b", migrations()[-1][0])) as made:
        for table, given in (("tasks", {"node": "far"}), ("tasks", {"node": None}), ("nodes", {"id": "far"})):
            row = {name: given.get(name, len(given) + made.total_changes()) for name in backup.columns(made, table)}
            row |= given
            places = ", ".join("?" for _ in row)
            made.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))
    backup.note(tmp_path / "b", made_at=1, origin="postgresql", version="0", credentials=None)
    Place(tmp_path / "new").restore(tmp_path / "b")
    assert rows_of(tmp_path / "new" / "tasuki.db", "SELECT node FROM tasks ORDER BY id") == [("here",), (None,)]
    assert rows_of(tmp_path / "new" / "tasuki.db", "SELECT count(*) FROM nodes") == [(0,)]


def test_a_newer_backup_is_refused(tmp_path: Path) -> None:
    older(tmp_path / "b", 11)
    with closing(apsw.Connection(str(tmp_path / "b"))) as made:
        made.pragma("user_version", 9_999)
    with pytest.raises(StoreNewer, match=r"newer Tasuki \(schema 9999"):
        Place(tmp_path / "new").restore(tmp_path / "b")


def test_a_node_that_runs_there_is_left_alone(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    with place.house() as house:
        furnish(house)
        place.back_up(tmp_path / "b")
        with pytest.raises(StoreBusy, match="Another node is running"):
            place.restore(tmp_path / "b", force=True)


def test_a_log_that_an_old_node_left_is_not_taken_for_the_new_ones(tmp_path: Path) -> None:
    """A node that was killed leaves its log; beside another database it would be read into that one."""
    killed, good = Place(tmp_path / "killed"), Place(tmp_path / "good")
    with good.house() as house:
        furnish(house, 2)
    good.back_up(tmp_path / "b")
    with killed.house() as house:
        furnish(house, 9)
        copies = {name: (killed.data / name).read_bytes() for name in ("tasuki.db", "tasuki.db-wal")}
    for name, content in copies.items():
        (killed.data / name).write_bytes(content)
    assert len(copies["tasuki.db-wal"]) > 100_000
    killed.back_up(tmp_path / "rescued")
    assert rows_of(tmp_path / "rescued", "SELECT count(*) FROM executions") == [(9,)]
    killed.restore(tmp_path / "b", force=True)
    with killed.house() as house:
        assert house.unit(lambda tx: tx.one("SELECT count(*) FROM executions")) == (2,)


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    with place.house() as house:
        furnish(house)
    (tmp_path / "b").write_text("precious")
    with pytest.raises(StoreTaken, match="--force"):
        place.back_up(tmp_path / "b")
    assert (tmp_path / "b").read_text() == "precious"
    place.back_up(tmp_path / "b", force=True)
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    assert backup.check(tmp_path / "b").origin == "sqlite"
    with pytest.raises(StoreTaken):
        written_too_late(place, tmp_path / "c")
    assert (tmp_path / "c").read_text() == "came meanwhile"


def written_too_late(place: Place, file: Path) -> None:
    with backup.written(file, force=False) as part:
        backup.copy_sqlite(place.data / "tasuki.db", part)
        backup.note(part, made_at=1, origin="sqlite", version="0", credentials=None)
        file.write_text("came meanwhile")


SLOW = """
import sys
from pathlib import Path
from tasuki.store import backup
backup.PAGES = 1
with backup.written(Path(sys.argv[2]), force=False) as part:
    backup.copy_sqlite(Path(sys.argv[1]), part, between=lambda left: print(left, flush=True) or sys.stdin.readline())
"""


def full(*_: object, **__: object) -> None:
    raise apsw.FullError("not an error")


def test_a_disk_that_is_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path / "data")
    with place.house() as house:
        furnish(house)
    place.back_up(tmp_path / "kept")
    with pytest.raises(apsw.FullError):
        backup.copy_sqlite(place.data / "tasuki.db", tmp_path / "part", between=full)
    monkeypatch.setattr(backup, "copy_sqlite", full)
    with pytest.raises(StoreFull, match=r"full: there is no room for .*/b\. Nothing was changed"):
        place.back_up(tmp_path / "b")
    assert not list(tmp_path.glob("b*"))
    monkeypatch.setattr(backup, "renewed", full)
    new = Place(tmp_path / "new")
    with pytest.raises(StoreFull, match=r"no room for .*/new/tasuki\.db"):
        new.restore(tmp_path / "kept")
    assert [one.name for one in new.data.iterdir()] == ["tasuki.lock"]


@pytest.mark.parametrize("name", ["tasuki.db", "tasuki.db-wal", "tasuki.db-shm", "tasuki.lock", "tasuki.toml"])
def test_a_backup_never_replaces_what_the_node_writes(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path / "data")
    with place.house() as house:
        furnish(house)
        with pytest.raises(ConfigError, match="one of the node's own files"):
            place.back_up(place.data / name, force=True)
        house.drain()
    with place.house() as house:
        assert (
            len(
                house.call("sqs", "ReceiveMessage", QueueUrl="http://h/000000000000/q", MaxNumberOfMessages=9)[
                    "Messages"
                ]
            )
            == 5
        )


@pytest.mark.parametrize("name", ["", "folder"])
def test_a_directory_is_no_name_for_a_backup(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    place = Place(tmp_path / "data")
    with place.house() as house:
        furnish(house)
    with pytest.raises(StoreTaken, match="is a directory; name a file"):
        place.back_up(Path(name), force=True)


def test_a_backup_that_is_killed_leaves_nothing_under_its_name(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    with place.house() as house:
        furnish(house)
    words = [sys.executable, "-c", SLOW, str(place.data / "tasuki.db"), str(tmp_path / "b")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) > 10
        with pytest.raises(StoreBusy, match="Another backup is being written"):
            place.back_up(tmp_path / "b")
        process.kill()
    assert not (tmp_path / "b").exists()
    assert (tmp_path / "b.part").exists()
    place.back_up(tmp_path / "b")
    assert_consistent(tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "b restored", "data"]


def test_credentials_are_in_it_only_when_asked_for(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    with place.house() as house:
        furnish(house)
    key = "[default]\naws_access_key_id = TSUKSECRETSECRET\naws_secret_access_key = s\n"
    (place.data / "credentials").write_text(key)
    place.back_up(tmp_path / "without")
    place.back_up(tmp_path / "with", with_credentials=True)
    assert b"TSUKSECRETSECRET" not in (tmp_path / "without").read_bytes()
    for name, expected in (("without", False), ("with", True)):
        new = Place(tmp_path / f"restored {name}")
        new.restore(tmp_path / name)
        assert (new.data / "credentials").exists() == expected
        assert b"TSUKSECRETSECRET" not in (new.data / "tasuki.db").read_bytes()
    new = Place(tmp_path / "restored with")
    assert (new.data / "credentials").read_text() == key
    assert (new.data / "credentials").stat().st_mode & 0o777 == 0o600


def test_the_house_is_the_same_after_a_restore(tmp_path: Path) -> None:
    """Its secret goes along: page tokens stay good, and the folder of tasks is known as its own."""
    place, new = Place(tmp_path / "data"), Place(tmp_path / "new")
    with place.house() as house:
        secret = house.unit(lambda tx: tx.all("SELECT value FROM house WHERE name = 'page_secret'"))
        house.unit(lambda tx: tx.run("INSERT INTO house (name, value) VALUES ('owner', 'of a key that may be lost')"))
    place.back_up(tmp_path / "b")
    new.restore(tmp_path / "b")
    with new.house() as house:
        assert house.unit(lambda tx: tx.all("SELECT value FROM house WHERE name = 'page_secret'")) == secret
        assert house.unit(lambda tx: tx.all("SELECT name FROM house")) == [("page_secret",)]
