"""What is SQLite's own: the file, its lock and version, flushes, a full disk."""

import asyncio
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

from tasuki.store import sqlite, sqlite_file
from tasuki.store.migrations import migrations
from tasuki.store.sqlite import CHECKPOINT_PAGES, SqliteStore
from tasuki.store.store import Tx
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.errors import StoreBusy, StoreError, StoreFull, StoreNewer
from tests.store.conftest import open_sqlite
from tests.store.test_contract import COUNT, GET, put


def sqlite_at(path: Path) -> SqliteStore:
    store = open_sqlite(path).store
    assert isinstance(store, SqliteStore)
    return store


def test_what_was_written_is_there_after_opening_again(tmp_path: Path) -> None:
    one = sqlite_at(tmp_path / "t.db")
    asyncio.run(one.write(put("k1", "kept")))
    one.close()
    two = sqlite_at(tmp_path / "t.db")
    assert asyncio.run(two.look(lambda tx: tx.one(GET, ("k1",)))) == ("kept",)
    two.close()


def test_a_second_node_on_the_same_file_is_refused(tmp_path: Path) -> None:
    one = sqlite_at(tmp_path / "t.db")
    with pytest.raises(StoreBusy, match="Another node is running"):
        open_sqlite(tmp_path / "t.db")
    one.close()
    sqlite_at(tmp_path / "t.db").close()


def test_a_file_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    sqlite_at(tmp_path / "t.db").close()
    raw = apsw.Connection(str(tmp_path / "t.db"))
    raw.pragma("user_version", migrations()[-1][0] + 1)
    raw.close()
    with pytest.raises(StoreNewer, match="newer Tasuki"):
        open_sqlite(tmp_path / "t.db")
    raw = apsw.Connection(str(tmp_path / "t.db"))
    assert raw.pragma("user_version") == migrations()[-1][0] + 1
    raw.close()


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    raw = apsw.Connection(str(tmp_path / "t.db"))
    raw.execute("CREATE TABLE theirs (x)")
    raw.pragma("user_version", 3)
    raw.close()
    with pytest.raises(StoreNewer, match="another program"):
        open_sqlite(tmp_path / "t.db")


def test_a_database_of_another_program_is_refused_also_if_that_never_numbered_it(tmp_path: Path) -> None:
    raw = apsw.Connection(str(tmp_path / "t.db"))
    raw.execute("CREATE TABLE theirs (x)")
    raw.close()
    with pytest.raises(StoreNewer, match="another program"):
        open_sqlite(tmp_path / "t.db")
    raw = apsw.Connection(str(tmp_path / "t.db"))
    assert [name for (name,) in raw.execute("SELECT name FROM sqlite_schema")] == ["theirs"]
    assert raw.pragma("journal_mode") == "delete"
    raw.close()


def test_a_file_that_is_no_database_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "t.db").write_bytes(b"not ours" * 1000)
    for _ in range(2):  # and the lock is given back
        with pytest.raises(StoreError, match=r"t\.db can't be used as a database"):
            open_sqlite(tmp_path / "t.db")


def test_a_reply_waits_for_the_flush_and_so_does_a_read_of_what_is_not_flushed_yet(tmp_path: Path) -> None:
    gate, flushes = threading.Event(), []

    def slow(fd: int) -> None:
        gate.wait(10)
        os.fdatasync(fd)
        flushes.append(fd)

    store = SqliteStore(
        tmp_path / "t.db", clock=ManualClock(), real_clock=ManualClock(), chance=Chance.seeded(1), fdatasync=slow
    )

    async def play() -> None:
        writing = asyncio.ensure_future(store.write(put("k1", "one")))
        for _ in range(10):
            await asyncio.sleep(0)
        assert await store.look(lambda tx: tx.one(COUNT)) == (1,)  # committed
        reading = asyncio.ensure_future(store.read(lambda tx: tx.one(COUNT)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not writing.done()
        assert not reading.done()
        gate.set()
        assert await writing == "k1"
        assert await reading == (1,)
        assert flushes

    asyncio.run(play())
    store.close()


class Gate:
    """A disk that finishes a flush when it is told to."""

    def __init__(self) -> None:
        self.began, self.open = 0, threading.Semaphore(0)

    def __call__(self, _fd: int) -> None:
        self.began += 1
        assert self.open.acquire(timeout=10)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_commits_do_not_wait_for_the_disk_and_whoever_replies_after_them_does(tmp_path: Path) -> None:
    gate = Gate()
    store = SqliteStore(
        tmp_path / "t.db", clock=ManualClock(), real_clock=ManualClock(), chance=Chance.seeded(1), fdatasync=gate
    )

    async def play() -> None:
        assert await store.commit(put("k1", "one")) == "k1"
        assert gate.began == 0, "nobody waits"
        first = asyncio.ensure_future(store.read(lambda tx: tx.one(COUNT)))
        await turns()
        assert not first.done(), "what it saw is not on disk"
        assert await store.commit(put("k2", "two")) == "k2", "a flush is in hand"
        second = asyncio.ensure_future(store.read(lambda tx: tx.one(COUNT)))
        third = asyncio.ensure_future(store.write(put("k3", "three")))
        await turns()
        gate.open.release()
        assert await first == (1,)
        await turns()
        assert not second.done(), "the flush that has ended began before what it saw"
        assert not third.done()
        gate.open.release(2)
        assert await second == (2,)
        assert await third == "k3"
        gate.open.release(10)
        assert await store.commit(put("k4", "four")) == "k4"
        assert await store.write(lambda tx: tx.one(COUNT)) == (
            4,
        )  # it changes nothing, and has seen what is not on disk
        before = gate.began
        assert await store.write(lambda tx: tx.one(COUNT)) == (4,)
        assert await store.read(lambda tx: tx.one(COUNT)) == (4,)
        assert gate.began == before, "all is on disk"

    asyncio.run(play())
    store.close()


def test_a_write_that_changes_nothing_waits_for_what_it_saw(tmp_path: Path) -> None:
    gate = Gate()
    store = SqliteStore(
        tmp_path / "t.db", clock=ManualClock(), real_clock=ManualClock(), chance=Chance.seeded(1), fdatasync=gate
    )

    async def play() -> None:
        await store.commit(put("k1", "one"))
        asked = asyncio.ensure_future(store.write(lambda tx: tx.one(COUNT)))
        await turns()
        assert not asked.done()
        gate.open.release(2)
        assert await asked == (1,)

    asyncio.run(play())
    store.close()


def test_commits_for_which_nobody_waits_are_flushed_before_long_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "FLUSH_WITHIN_S", 0.001)
    flushed = threading.Event()
    store = SqliteStore(
        tmp_path / "t.db",
        clock=ManualClock(),
        real_clock=ManualClock(),
        chance=Chance.seeded(1),
        fdatasync=lambda _fd: flushed.set(),
    )

    async def play() -> None:
        await store.commit(put("k1", "one"))
        assert await asyncio.to_thread(flushed.wait, 10)
        monkeypatch.setattr(sqlite, "FLUSH_WITHIN_S", 600)
        await turns()
        flushed.clear()
        await store.commit(put("k2", "two"))

    asyncio.run(play())
    flushed.clear()
    store.close()
    assert flushed.is_set()


def test_a_unit_that_fails_among_commits_fails_alone(tmp_path: Path) -> None:
    store = sqlite_at(tmp_path / "t.db")

    def broken(_tx: Tx) -> str:
        raise ValueError("ours")

    async def play() -> None:
        told = await asyncio.gather(
            store.commit(put("k1", "one")),
            store.commit(broken),
            store.write(put("k2", "two")),
            return_exceptions=True,
        )
        assert (told[0], type(told[1]), told[2]) == ("k1", ValueError, "k2")
        assert await store.read(lambda tx: tx.one(COUNT)) == (2,)

    asyncio.run(play())
    store.close()


def test_a_unit_that_changed_nothing_waits_for_no_flush(tmp_path: Path) -> None:
    flushes: list[int] = []
    store = SqliteStore(
        tmp_path / "t.db",
        clock=ManualClock(),
        real_clock=ManualClock(),
        chance=Chance.seeded(1),
        fdatasync=flushes.append,
    )
    asyncio.run(store.write(lambda tx: tx.one(COUNT)))
    assert flushes == []
    store.close()


def test_a_failed_flush_acknowledges_nothing_and_is_fatal(tmp_path: Path) -> None:
    fatal, told = threading.Event(), []

    def fail(_fd: int) -> None:
        raise OSError(5, "Input/output error")

    def on_fatal(bad: BaseException) -> None:
        told.append(bad)
        fatal.set()

    store = SqliteStore(
        tmp_path / "t.db",
        clock=ManualClock(),
        real_clock=ManualClock(),
        chance=Chance.seeded(1),
        fdatasync=fail,
        on_fatal=on_fatal,
    )

    async def play() -> None:
        writing = asyncio.ensure_future(store.write(put("k1")))
        assert await asyncio.to_thread(fatal.wait, 10)
        await asyncio.sleep(0)
        assert not writing.done()
        writing.cancel()

    asyncio.run(play())
    assert isinstance(told[0], OSError)
    store.close()


def test_a_full_disk_fails_the_group_clearly_loses_nothing_and_heals(tmp_path: Path) -> None:
    store = sqlite_at(tmp_path / "t.db")
    asyncio.run(store.write(put("k0")))
    store.limit_pages(1)  # as full as a disk can be

    async def play() -> Sequence[object]:
        big = "x" * 100_000
        return await asyncio.gather(
            store.write(put("k1")), store.write(put("k2", big)), store.write(put("k3")), return_exceptions=True
        )

    answers = asyncio.run(play())
    assert all(isinstance(answer, StoreFull) for answer in answers), answers
    assert asyncio.run(store.look(lambda tx: tx.one(COUNT))) == (1,)
    store.limit_pages(None)
    assert asyncio.run(play()) == ["k1", "k2", "k3"]
    store.close()


def test_the_log_is_copied_into_the_file_and_does_not_grow_without_bound(tmp_path: Path) -> None:
    store = sqlite_at(tmp_path / "t.db")
    blob = "x" * 40_000

    async def play() -> None:
        for round_ in range(60):

            def unit(tx: Tx, round_: int = round_) -> None:
                for n in range(30):
                    tx.run(
                        "INSERT INTO house (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                        (f"k{n}", blob + str(round_)),
                    )

            await store.write(unit)

    asyncio.run(play())
    size = (tmp_path / "t.db-wal").stat().st_size
    assert size < 4 * CHECKPOINT_PAGES * 4096, size
    store.close()
    assert not (tmp_path / "t.db-wal").exists()


class Copier:
    """A checkpointer whose disk is full: the log has its place already, the file would have to grow."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.tried = threading.Semaphore(0)

    def wal_checkpoint(self, **_: object) -> None:
        self.tried.release()
        if self.errors:
            raise self.errors.pop(0)

    def close(self) -> None:
        """Nothing is held."""


def big_units(store: SqliteStore, count: int, name: str = "k") -> None:
    async def play() -> None:
        for number in range(count):
            await asyncio.wait_for(store.write(put(f"{name}{number}", "x" * (CHECKPOINT_PAGES * 4096 // 3))), 10)

    asyncio.run(play())


def test_a_disk_too_full_to_copy_the_log_into_the_file_stops_no_reply(tmp_path: Path) -> None:
    store = sqlite_at(tmp_path / "t.db")
    ours, full = store._checkpointer, Copier(apsw.FullError(), apsw.FullError())
    store._checkpointer = full  # type: ignore[assignment]
    big_units(store, 8)
    assert full.tried.acquire(timeout=10)
    ours.close()
    store.close()


def test_a_disk_that_fails_while_the_log_is_copied_ends_the_node(tmp_path: Path) -> None:
    told: list[BaseException] = []
    store = SqliteStore(
        tmp_path / "t.db",
        clock=ManualClock(),
        real_clock=ManualClock(),
        chance=Chance.seeded(1),
        on_fatal=told.append,
    )
    store._checkpointer.close()
    store._checkpointer = copier = Copier(apsw.IOError())  # type: ignore[assignment]
    big_units(store, 5)
    assert copier.tried.acquire(timeout=10)
    store.close()
    assert isinstance(told[0], apsw.IOError)


def test_another_program_that_reads_the_file_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_MS", 20_000)  # whoever waits for it once is past the bound of `big_units`
    store = sqlite_at(tmp_path / "t.db")
    other = apsw.Connection(str(tmp_path / "t.db"))
    other.execute("BEGIN")
    other.execute(COUNT)
    big_units(store, 12)  # in the way of the other's snapshot, so that the log cannot start over
    assert store.wal_pages > 3 * CHECKPOINT_PAGES
    other.close()
    big_units(store, 9, "more")
    assert store.wal_pages < 3 * CHECKPOINT_PAGES, "and now it has"
    store.close()
