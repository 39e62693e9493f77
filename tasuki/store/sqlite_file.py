"""The file of a SQLite store: who holds it, how it is opened, and which version it has."""

import fcntl
import os
from pathlib import Path

import apsw

from tasuki.store.migrations import migrations
from tasuki.values.errors import StoreBusy, StoreError, StoreFull, StoreNewer

APPLICATION_ID = 0x7A5C1
BUSY_MS = 5_000
"""How long another program that writes to the file is waited for."""


def open_writer(name: str, vfs: str | None, image: bytes | None = None) -> apsw.Connection:
    """Open the file and bring it up to date. Raises `StoreNewer`, and `StoreError` for what is no file of ours or can't be.

    `image`: what a database in memory begins with.
    """
    try:
        connection = apsw.Connection(name, vfs=vfs)
        try:
            migrations_due(connection)  # before anything is changed: the file may be another program's
        finally:
            connection.close()
        connection = connect(name, vfs)
        try:
            if image is not None:
                connection.deserialize("main", image)
            _migrate(connection)
        except BaseException:
            connection.close()
            raise
    except apsw.Error as bad:
        if isinstance(bad, apsw.FullError) or _is_full(Path(name).parent):  # without room for its index: an I/O error
            raise StoreFull("the disk with the data directory is full; free some space and try again") from bad
        raise StoreError(f"{name} can't be used as a database ({bad})") from bad
    return connection


def _is_full(folder: Path) -> bool:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < 1 << 16


def connect(name: str, vfs: str | None) -> apsw.Connection:
    """Open a connection as all of ours are."""
    connection = apsw.Connection(name, vfs=vfs, statementcachesize=500)
    connection.set_busy_timeout(BUSY_MS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "normal")
    connection.pragma("foreign_keys", False)  # rooms keep their own promises; no hidden reads on the hot path
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -16_000)
    # Plans never depend on bound values (which STAT4 allows): otherwise SQLite prepares most statements anew at each
    # new value, at three to four times the cost of a short one.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


def migrations_due(connection: apsw.Connection) -> list[tuple[int, str]]:
    """Answer what a file lacks. Raises `StoreNewer` for one from the future or of another program."""
    known = migrations()
    version = connection.pragma("user_version")
    foreign = version or connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    if foreign and connection.pragma("application_id") != APPLICATION_ID:
        raise StoreNewer("This file is a SQLite database of another program; choose another data directory.")
    if version > known[-1][0]:
        raise StoreNewer(
            f"The data directory was written by a newer Tasuki (schema {version}, this one knows {known[-1][0]}). "
            "Upgrade Tasuki, or choose another data directory."
        )
    return known[version:]


def _migrate(connection: apsw.Connection) -> None:
    """Bring the schema up to date, one transaction per step."""
    for number, sql in migrations_due(connection):
        with connection:
            connection.execute(sql)
            connection.pragma("user_version", number)
            connection.pragma("application_id", APPLICATION_ID)


def lock(path: Path) -> int:
    """Hold the file for this process; a second node is refused."""
    fd = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise StoreBusy(
            f"Another node is running on {path.parent}; stop it first, or choose another data directory with --data."
        ) from None
    return fd


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
