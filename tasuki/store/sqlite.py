"""SQLite: one writer with group commit, snapshot readers.

Theory of operation::

    write(unit) ──► pending ──► one open transaction per group, units inline on the loop thread
                       ▲          │ one raises: all again, each in a savepoint, so that it rolls back alone
                       │          ▼
                       │        COMMIT (synchronous=NORMAL: into the WAL, not yet forced); bells ring
                       │          │
                       │          ▼
                       └──── flusher thread: fdatasync(WAL) ──► replies are released

A writer thread would fight the loop thread for the interpreter lock at every statement; inline units don't
(HOUSE.md section 9). A reply therefore waits for one fdatasync that it shares with everybody in its group. While
the disk works the loop thread reads requests and collects the next group, and runs it when the flush is done: groups
that ran meanwhile were smaller, and each paid for its own commit, flush and bells. Reads run inline on their own
connection and, since they may see the commit that is not yet forced, are released with the same flush.

A house whose clock is moved by hand does most of its work for nobody who waits. Such a unit (`commit`) is answered at its COMMIT,
and the next runs while a flush is in hand or before there is one. The log's frames are chained by their checksums: what a power cut
leaves is a prefix of the commits. So whoever has waited for a flush that began after his commit has everything before it on
disk, too; and replies do wait, also for commits of others that they could have seen.

Checkpoints are PASSIVE, on the flusher thread, after a flush: nobody waits for them. Under load there is always a
commit that came in meanwhile, so the loop thread then copies those last pages itself, between two groups, and the log
starts over.

After a failed unit `in_transaction` is checked: a full disk rolls back the *whole* transaction, savepoints
included; then every unit of the group fails with `StoreFull` and none was acknowledged. After a failed COMMIT
the same. After a failed fdatasync nobody knows what is on disk: nothing is acknowledged and `on_fatal` ends the
node.
"""

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from tasuki.store import sqlite_file
from tasuki.store.sqlite_tx import SqliteTx, Waiting
from tasuki.store.store import MOST_TURNS, Conflict, T, Unit
from tasuki.values.chance import Chance
from tasuki.values.errors import StoreError, StoreFull, TasukiError
from tasuki.values.instant import Clock, Instant

log = logging.getLogger("tasuki.store")

CHECKPOINT_PAGES = 4_000
"""WAL pages (16 MiB) after which the flusher copies them into the database file."""
MAX_GROUP = 256
"""Units per commit, so that no reply waits for an unbounded line before it."""
FLUSH_WITHIN_S = 0.1
"""After how long at the latest a flush begins of what nobody waits for."""

_STOPPING = "The node is stopping; nothing was changed."
_BROKEN = (apsw.FullError, apsw.IOError, apsw.CorruptError, apsw.NotADBError)
"""What concerns the file and not the unit."""


class SqliteStore:
    """One SQLite file (or, with `path=None`, memory: for tests, same statements, nothing to flush; `image` is what it begins with)."""

    def __init__(
        self,
        path: Path | None,
        *,
        clock: Clock,
        real_clock: Clock,
        chance: Chance,
        on_ring: Callable[[str, int], None] = lambda _topic, _times: None,
        on_fatal: Callable[[BaseException], None] | None = None,
        fdatasync: Callable[[int], None] = os.fdatasync,
        vfs: str | None = None,
        image: bytes | None = None,
    ) -> None:
        self._clock, self._real_clock, self._chance = clock, real_clock, chance
        self._on_ring = on_ring
        self._on_fatal = on_fatal or _exit
        self._fdatasync = fdatasync
        self._pending: list[Waiting[Any]] = []
        self._scheduled = False
        self._stopping = False
        self._restarting = False
        self._is_flushing = self._is_dirty = False
        """A flush is in hand; something was committed since it (or the last one) began."""
        self._flushing: list[Waiting[Any]] = []  # who waits for the flush in hand
        self._committed: list[Waiting[Any]] = []  # who waits for the one after it
        self._is_hurried = False
        """A unit is pending that waits for its commit only."""
        self._later: asyncio.TimerHandle | None = None
        self._lock_file = sqlite_file.lock(path) if path is not None else None
        name, self._vfs = (":memory:", None) if path is None else (str(path), vfs)
        try:
            self._writer = sqlite_file.open_writer(name, self._vfs, image)
        except BaseException:
            self._unlock()
            raise
        self.wal_pages = 0
        self._copy_at = CHECKPOINT_PAGES
        self._wal_fd = -1
        self._reader = self._writer
        self._flusher: threading.Thread | None = None
        self._jobs: queue.SimpleQueue[asyncio.AbstractEventLoop | None] = queue.SimpleQueue()
        if path is not None:
            self._writer.wal_autocheckpoint(0)
            self._writer.set_wal_hook(self._note_wal)
            self._reader = sqlite_file.connect(name, self._vfs)
            self._reader.pragma("query_only", True)
            self._wal_fd = os.open(f"{path}-wal", os.O_RDWR)
            os.fsync(self._wal_fd)
            sqlite_file.sync_folder(path.parent)
            self._checkpointer = sqlite_file.connect(name, self._vfs)
            self._flusher = threading.Thread(target=self._flush_forever, name="tasuki-flusher", daemon=True)
            self._flusher.start()

    # -- the outer face -------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Do nothing: the file is open since the store was made."""

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit in the next group; answer after its commit is on disk."""
        return await self._write(unit, at_commit=False)

    async def commit(self, unit: Unit[T]) -> T:
        """Run a unit in the next group; answer when it is committed, though perhaps not yet on disk."""
        self._is_hurried = True
        return await self._write(unit, at_commit=True)

    async def _write(self, unit: Unit[T], *, at_commit: bool) -> T:
        if self._stopping:
            raise StoreError(_STOPPING)
        loop = asyncio.get_running_loop()
        waiting = Waiting(unit, loop.create_future(), at_commit=at_commit)
        self._pending.append(waiting)
        self._schedule(loop)
        result: T = await waiting.future  # (typed: a Future of a TypeVar answers Any)
        return result

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit on a snapshot; answer when all that it could have seen is on disk."""
        result = self._look(unit)
        if self._is_flushing or self._is_dirty:
            loop = asyncio.get_running_loop()
            waiting: Waiting[T] = Waiting(unit, loop.create_future())
            waiting.result = result
            self._hold([waiting], loop)
            return await waiting.future
        return result

    async def look(self, unit: Unit[T]) -> T:
        """Run a unit on a snapshot, at once, without waiting for a flush (for decisions, never for replies)."""
        return self._look(unit)

    def _look(self, unit: Unit[T]) -> T:
        tx = SqliteTx(self._reader, self._clock.now(), self._real_clock.now(), self._chance)
        if self._reader is self._writer:
            return unit(tx)
        self._reader.execute("BEGIN")
        try:
            return unit(tx)
        finally:
            self._reader.execute("ROLLBACK")

    def close(self) -> None:
        """Flush what is committed, then let go of the files. Units not yet run are failed."""
        self.fail_pending()
        if self._flusher is not None:
            self._jobs.put(None)
            self._flusher.join()
            self._flusher = None
            if self._is_dirty:
                self._force()
            self._checkpointer.close()
            os.close(self._wal_fd)
            self._reader.close()
        self._writer.close()
        self._unlock()

    def fail_pending(self) -> None:
        """Refuse the units that have not run yet, and all that come later."""
        self._stopping = True
        waiting, self._pending = self._pending, []
        for one in waiting:
            one.error = StoreError(_STOPPING)
            one.release()

    def limit_pages(self, pages: int | None) -> None:
        """Let the file grow to `pages` pages at most, as on a small disk; None: as far as SQLite goes."""
        self._writer.pragma("max_page_count", pages or 4_294_967_294)

    # -- the group ------------------------------------------------------------------------------------------

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the next group soon; while a flush is in hand its end will, and the group grows meanwhile, unless one is in a hurry."""
        if not self._scheduled and self._pending and (self._is_hurried or not self._is_flushing):
            self._scheduled = True
            loop.call_soon(self._run_group, loop)

    def _run_group(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        group = self._pending[:MAX_GROUP]
        if not group:
            return
        self._pending = self._pending[MAX_GROUP:]
        self._is_hurried = any(waiting.at_commit for waiting in self._pending)
        now, real_now = self._clock.now(), self._real_clock.now()
        writer = self._writer
        before = writer.total_changes()
        rings: list[tuple[str, int]] = []
        try:
            if not self._run_unguarded(group, now, real_now, rings):
                self._run_guarded(group, now, real_now, rings)
            writer.execute("COMMIT")
        except Exception as bad:  # noqa: BLE001 - each waiting caller is told
            self._fail_group(group, bad)
            self._schedule(loop)
            return
        for topic, times in rings:
            self._on_ring(topic, times)
        self._is_dirty |= self._flusher is not None and writer.total_changes() != before
        if self._is_dirty or self._is_flushing:
            self._hold([waiting for waiting in group if not waiting.at_commit], loop)
            group = [waiting for waiting in group if waiting.at_commit]
        for waiting in group:
            waiting.release()
        self._schedule(loop)

    def _run_unguarded(
        self, group: list[Waiting[Any]], now: Instant, real_now: Instant, rings: list[tuple[str, int]]
    ) -> bool:
        """Run a group without savepoints, as if all went well, which it mostly does: two statements a unit saved.

        False when a unit raised: then all is rolled back, and the group runs again with savepoints. Units may be run again
        from the top (store/store.py).
        """
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            for waiting in group:
                tx = SqliteTx(self._writer, now, real_now, self._chance)
                waiting.result = waiting.unit(tx)
                rings.extend(tx.rings)
        except BaseException as bad:
            if isinstance(bad, _BROKEN) or not self._writer.in_transaction:
                raise  # the file, not the unit
            self._writer.execute("ROLLBACK")
            if not isinstance(bad, TasukiError | Conflict):
                # A fault of ours; a room may leave that work alone when it runs again.
                log.exception("a unit failed; its group runs again without it")
            rings.clear()
            return False
        return True

    def _run_guarded(
        self, group: list[Waiting[Any]], now: Instant, real_now: Instant, rings: list[tuple[str, int]]
    ) -> None:
        """Run a group, each unit in its savepoint: one that raises rolls back alone, one that says `Conflict` runs again."""
        writer = self._writer
        writer.execute("BEGIN IMMEDIATE")
        for waiting in group:
            writer.execute("SAVEPOINT unit")
            for _ in range(MOST_TURNS):
                tx = SqliteTx(writer, now, real_now, self._chance)
                waiting.error = None
                try:
                    waiting.result = waiting.unit(tx)
                except BaseException as bad:
                    if isinstance(bad, _BROKEN) or not writer.in_transaction:
                        raise  # the whole group is gone
                    writer.execute("ROLLBACK TO unit")
                    waiting.error = bad
                    if isinstance(bad, Conflict):
                        continue
                else:
                    rings.extend(tx.rings)
                break
            writer.execute("RELEASE unit")

    def _fail_group(self, group: list[Waiting[Any]], bad: Exception) -> None:
        """Say to each of a group that it was not kept; where the file itself is broken nobody knows, so the node ends first."""
        if isinstance(bad, _BROKEN) and not isinstance(bad, apsw.FullError):
            self._on_fatal(bad)
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")
        error: StoreError
        if isinstance(bad, apsw.FullError):
            error = StoreFull(
                "The disk with the data directory is full; nothing was changed. Free some space and try again."
            )
        else:
            error = StoreError(f"The store could not commit ({bad}); nothing was changed.")
        for waiting in group:
            waiting.error = error
            waiting.release()

    # -- the flusher ----------------------------------------------------------------------------------------

    def _hold(self, some: list[Waiting[Any]], loop: asyncio.AbstractEventLoop) -> None:
        """Have `some` wait for the first flush that covers all that is committed by now."""
        if not self._is_dirty:
            self._flushing += some  # the one in hand
            return
        self._committed += some
        if self._committed:
            self._flush(loop)
        elif self._later is None:
            self._later = loop.call_later(FLUSH_WITHIN_S, self._flush_late, loop)

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a flush; if one is in hand, its end will."""
        if self._is_flushing:
            return
        self._is_flushing, self._is_dirty = True, False
        self._flushing, self._committed = self._committed, []
        self._jobs.put(loop)

    def _flush_late(self, loop: asyncio.AbstractEventLoop) -> None:
        self._later = None
        if self._is_dirty:
            self._flush(loop)

    def _force(self) -> bool:
        try:
            self._fdatasync(self._wal_fd)
        except OSError as bad:
            self._on_fatal(bad)
            return False
        return True

    def _flush_forever(self) -> None:
        while (loop := self._jobs.get()) is not None:
            if not self._force():
                return
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(self._flushed, loop)
            if self.wal_pages > self._copy_at and not self._restarting:
                self._checkpoint(loop)

    def _flushed(self, loop: asyncio.AbstractEventLoop) -> None:
        """Release everybody whose commit, or what they read, is on disk now; then the group that grew meanwhile."""
        self._is_flushing = False
        released, self._flushing = self._flushing, []
        for waiting in released:
            waiting.release()
        if self._is_dirty and self._flusher is not None:
            self._hold([], loop)
        self._schedule(loop)

    def _checkpoint(self, loop: asyncio.AbstractEventLoop) -> None:
        """Copy the log into the file, off the loop thread; what commits meanwhile is left to `_restart_log`."""
        try:
            self._checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except (apsw.BusyError, apsw.FullError):
            return  # where the disk is full, what is in the log is safe there, and copied when there is room
        except apsw.Error as bad:
            self._on_fatal(bad)
            return
        self._restarting = True  # until then no further copying here: two at once would only find each other busy
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._restart_log)

    def _restart_log(self) -> None:
        """Copy the last few pages between two groups, so that the log starts over: under load it would only grow."""
        self._restarting = False
        if self._flusher is None:
            return
        self._writer.set_busy_timeout(0)  # another program that reads the file must not hold up the loop
        try:
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        except (apsw.BusyError, apsw.FullError):
            self._copy_at = self.wal_pages + CHECKPOINT_PAGES
            return
        except apsw.Error as bad:
            self._on_fatal(bad)
            return
        finally:
            self._writer.set_busy_timeout(sqlite_file.BUSY_MS)
        self.wal_pages, self._copy_at = 0, CHECKPOINT_PAGES

    def _note_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def _unlock(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None


def _exit(bad: BaseException) -> None:  # pragma: no cover - ends the process
    os.write(
        2,
        f"tasuki: the disk refused to keep what was written ({bad}); stopping, nothing unsafe was acknowledged\n".encode(),
    )
    os._exit(74)
