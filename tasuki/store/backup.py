"""A backup: one plain SQLite file with the house's own schema, wherever the house lives. So it restores into either store.

It is made under the name `FILE.part`, checked, forced to disk and renamed: what bears the final name is whole. In `house` it
says of itself when and from what it was made (`backup`), and perhaps holds the owner's key (`credentials`); both rows stay
behind when it is restored.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import apsw

from tasuki.store import sqlite_file
from tasuki.store.migrations import migrations
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import StoreBusy, StoreError, StoreNewer, StoreTaken
from tasuki.values.instant import Instant

PAGES = 256
"""Pages that are copied at a time (1 MiB): the node's own reads of the file come in between."""
COUNTED = 1_000_000
"""Rows of a table that are counted at most, where the number only informs."""
OF_THE_HOUSE = frozenset({"house", "timers", "leases", "nodes", "clock"})
"""Tables that have rows in a store in which nobody has made anything yet."""
_BESIDE = ("-wal", "-shm", "-journal")
_NOTE = "INSERT INTO house (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_NOTED = "SELECT value FROM house WHERE name = ?"
_FORGET_NOTES = "DELETE FROM house WHERE name IN ('backup', 'credentials', 'owner')"
"""And whose key the nodes took: it may be lost with them. The first one to join says whose it is now."""
COUNT = "SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {}) few"
_ONE_NODE = "UPDATE tasks SET node = 'here' WHERE node IS NOT NULL; DELETE FROM nodes"
"""A house in a data directory has one node, which looks for all tasks: those it finds go on, the others have ended."""
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"


class Facts(NamedTuple):
    """What a backup says of itself."""

    made_at: Instant
    origin: str
    """`sqlite` or `postgresql`."""
    version: str
    """The Tasuki that made it."""
    schema: int


# -- making one -------------------------------------------------------------------------------------------------------


@contextmanager
def written(file: Path, *, force: bool) -> Iterator[Path]:
    """Give a file to write to; when all went well it is checked, forced to disk, and gets its final name.

    Raises `StoreTaken`, `StoreBusy` when another backup is being written there, OSError naming the file.
    """
    if not file.name or file.is_dir():
        raise StoreTaken(f"{file} is a directory; name a file, like {file / 'tasuki-backup.db'}")
    if file.exists() and not force:
        raise StoreTaken(f"{file} exists; name another file, or replace it with --force")
    part = file.with_name(f"{file.name}.part")
    fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreBusy(f"Another backup is being written to {part}; wait for it, or name another file.") from None
        os.ftruncate(fd, 0)  # what one that was killed has left
        os.fchmod(fd, 0o600)
        try:
            _drop_beside(part)
            yield part
            check(part)
            os.fsync(fd)
            _name(part, file, force=force)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        finally:
            _drop_beside(part)
        sqlite_file.sync_folder(file.absolute().parent)
    finally:
        os.close(fd)


def _name(part: Path, file: Path, *, force: bool) -> None:
    if force:
        part.rename(file)
        return
    try:
        os.link(part, file)  # unlike a rename, it replaces nothing that came meanwhile
    except FileExistsError:
        raise StoreTaken(f"{file} exists; name another file, or replace it with --force") from None
    except OSError:  # a file system without links
        part.rename(file)
        return
    part.unlink()


def copy_sqlite(source: Path, part: Path, *, between: Callable[[int], None] = lambda _left: None) -> None:
    """Copy the database of a data directory as it is at this moment, beside a node that may be running and writing.

    One snapshot is held meanwhile: without it every commit of the node would begin the copying anew. The node's log grows for as
    long. `between` is told after each portion how many pages are left. Raises `StoreError`, `StoreNewer`.
    """
    if not source.exists():
        raise StoreError(f"{source} is not there: no node has run on this data directory.")
    try:
        with closing(_reader(source)) as reader, closing(apsw.Connection(str(part))) as copy:
            reader.execute("BEGIN")
            reader.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # the snapshot begins with the first read
            sqlite_file.migrations_due(reader)  # raises for what is not ours or newer
            copy.pragma("synchronous", "off")  # forced to disk once, at the end
            with copy.backup("main", reader, "main") as copying:
                while not copying.done:
                    copying.step(PAGES)
                    between(copying.remaining)
        with closing(apsw.Connection(str(part))) as copy:
            copy.pragma("journal_mode", "delete")  # one plain file, no log beside it
    except apsw.FullError:
        raise  # it is not the source's disk
    except apsw.Error as bad:
        raise StoreError(f"{source} can't be copied ({bad})") from bad


def _reader(source: Path) -> apsw.Connection:
    reader = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
    reader.set_busy_timeout(sqlite_file.BUSY_MS)
    return reader


def make_empty(part: Path, schema: int) -> apsw.Connection:
    """Make an empty house of a schema, to be filled from elsewhere; answer the connection. Nothing is forced to disk."""
    connection = apsw.Connection(str(part))
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", "off")
    for _, sql in migrations()[:schema]:
        connection.execute(sql)
    connection.pragma("user_version", schema)
    connection.pragma("application_id", sqlite_file.APPLICATION_ID)
    return connection


def note(part: Path, *, made_at: Instant, origin: str, version: str, credentials: str | None) -> None:
    """Write into a backup when and from what it was made, and the text of the owner's credentials file if it is to be kept."""
    with closing(apsw.Connection(str(part))) as connection:
        facts = {"made_at": made_at, "origin": origin, "version": version}
        connection.execute(_NOTE, ("backup", dumps(facts)))
        if credentials is not None:
            connection.execute(_NOTE, ("credentials", credentials))


# -- reading one --------------------------------------------------------------------------------------------------------


def opened(file: Path) -> apsw.Connection:
    """Open a backup for reading. Raises `StoreError` for what is none, `StoreNewer` for one of a newer Tasuki."""
    if not file.exists():
        raise StoreError(f"{file} is not there. A backup is what tasuki backup FILE wrote.")
    if not file.is_file():
        raise StoreError(
            f"{file} is {'a directory' if file.is_dir() else 'no file on a disk'}, and a backup is one file."
        )
    if file.with_name(f"{file.name}-wal").exists():
        raise StoreError(
            f"{file} is a database in use, with a log beside it. Make a backup of it with: tasuki backup FILE"
        )
    uri = f"file:{quote(str(file.absolute()))}?immutable=1"
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        _refuse_foreign(connection, file)
    except apsw.Error as bad:
        connection.close()
        raise StoreError(f"{file} is no backup of Tasuki, or is damaged ({bad}).") from None
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_foreign(connection: apsw.Connection, file: Path) -> None:
    ours = connection.pragma("application_id") == sqlite_file.APPLICATION_ID
    if not ours or connection.execute(_NOTED, ("backup",)).fetchone() is None:
        raise StoreError(f"{file} is no backup of Tasuki. Make one with: tasuki backup FILE")
    version = connection.pragma("user_version")
    if version > (known := migrations()[-1][0]):
        raise StoreNewer(
            f"{file} was written by a newer Tasuki (schema {version}, this one knows {known}). Upgrade Tasuki."
        )


def check(file: Path) -> Facts:
    """See that a backup is whole: every page of it is read. Answers what it says of itself; raises as `opened` does."""
    with closing(opened(file)) as connection:
        try:
            found = connection.execute("PRAGMA integrity_check(3)").fetchall()
        except apsw.Error as bad:
            found = [(str(bad),)]
        if found != [("ok",)]:
            raise StoreError(f"{file} is damaged ({'; '.join(str(row[0]) for row in found)}). Use another backup.")
        row = connection.execute(_NOTED, ("backup",)).fetchone()
        facts = loads(str(row[0]) if row is not None else "")
        return Facts(facts["made_at"], facts["origin"], facts["version"], connection.pragma("user_version"))


def credentials_in(file: Path) -> str | None:
    """Answer the text of the credentials file that a backup holds, or None."""
    with closing(opened(file)) as connection:
        row = connection.execute(_NOTED, ("credentials",)).fetchone()
        return str(row[0]) if row is not None else None


def tables(connection: apsw.Connection) -> list[str]:
    """Answer the names of the tables."""
    return [row[0] for row in connection.execute(_TABLES)]


def columns(connection: apsw.Connection, table: str) -> list[str]:
    """Answer the names of a table's columns, in their order."""
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def counts(connection: apsw.Connection) -> dict[str, int]:
    """Count the rows of every table that has any, up to `COUNTED`."""
    found: dict[str, int] = {}
    for table in tables(connection):
        rows: list[Any] = connection.execute(COUNT.format(table, COUNTED)).fetchall()
        found[table] = rows[0][0]
    return {table: count for table, count in found.items() if count}


# -- restoring one ----------------------------------------------------------------------------------------------------------


def refuse_full(where: str, found: dict[str, int]) -> None:
    """Raise `StoreTaken` naming what is there, when somebody has made anything."""
    made = {table: count for table, count in found.items() if count and table not in OF_THE_HOUSE}
    if made:
        named = ", ".join(f"{count} in {table}" for table, count in sorted(made.items())[:5])
        more = f" and {len(made) - 5} more tables" if len(made) > 5 else ""
        raise StoreTaken(
            f"{where} is not empty: {named}{more}. Restore into an empty one, or replace all that is there with --force"
        )


def renewed(file: Path, copy: Path) -> None:
    """Copy a backup to a place of its own, and bring its schema up to date there. Raises as `opened` does."""
    with closing(opened(file)) as reader, closing(apsw.Connection(str(copy))) as connection:
        connection.pragma("synchronous", "off")
        with connection.backup("main", reader, "main") as copying:
            while not copying.done:
                copying.step(PAGES)
    connection = sqlite_file.open_writer(str(copy), None)
    with closing(connection):
        connection.pragma("secure_delete", True)  # a key must not linger on a free page
        connection.execute(_FORGET_NOTES)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def restore_sqlite(file: Path, target: Path, *, force: bool) -> Facts:
    """Make a backup the database of a data directory; what stood there is whole until all of it has come.

    Raises `StoreBusy` when a node runs there, `StoreTaken`, and as `check` does.
    """
    facts = check(file)
    lock = sqlite_file.lock(target)
    try:
        _refuse_full_file(target, force=force)
        part = target.with_name(f"{target.name}.part")
        part.unlink(missing_ok=True)
        _drop_beside(part)
        fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            renewed(file, part)
            with closing(apsw.Connection(str(part))) as connection:
                connection.execute(_ONE_NODE)
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            os.fsync(fd)
            _settle(target)
            part.rename(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)
            _drop_beside(part)
        sqlite_file.sync_folder(target.parent)
    finally:
        os.close(lock)
    return facts


def _refuse_full_file(target: Path, *, force: bool) -> None:
    if force or not target.exists():
        return
    try:
        with closing(apsw.Connection(str(target))) as connection:
            sqlite_file.migrations_due(connection)
            refuse_full(str(target.parent), counts(connection))
    except apsw.Error as bad:
        raise StoreTaken(
            f"{target} is there and can't be read ({bad}). Restore into an empty directory, or replace it with --force"
        ) from None


def _settle(target: Path) -> None:
    """Leave no log beside the old database: it would be taken for the new one's."""
    if target.exists():
        try:
            with closing(apsw.Connection(str(target))) as connection:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:  # it is damaged, and is to be replaced
            target.unlink()
    _drop_beside(target)
    sqlite_file.sync_folder(target.parent)


def _drop_beside(path: Path) -> None:
    for ending in _BESIDE:
        path.with_name(path.name + ending).unlink(missing_ok=True)
