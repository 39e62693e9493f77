"""`backup` and `restore`: a house's store as one file, and back, from outside of any node."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from tasuki import __version__
from tasuki.runtime.clock import WallClock
from tasuki.runtime.moving import Moving
from tasuki.runtime.which_store import DATABASE, MARK, mark, store_of
from tasuki.store import backup
from tasuki.values.errors import ConfigError, StoreFull

_OWN = frozenset({"credentials", "node.json", "node.log", "node_id", MARK})


def back_up(file: Path, data: Path, store: str | None, *, with_credentials: bool, force: bool) -> backup.Facts:
    """Write a backup. Raises a `StoreError`, `ConfigError`, or OSError naming the file."""
    _refuse_own(file, data)
    url = store_of(data, store)
    credentials = _credentials(data) if with_credentials else None
    made_at = WallClock().now()
    with _room_for(file), backup.written(file, force=force) as part:
        if url is None:
            backup.copy_sqlite(data / DATABASE, part)
        else:
            from tasuki.store.backup_postgres import copy_postgres  # its driver is loaded only where it is used

            asyncio.run(copy_postgres(url, part))
        origin = "sqlite" if url is None else "postgresql"
        backup.note(part, made_at=made_at, origin=origin, version=__version__, credentials=credentials)
    return backup.check(file)


def restore(
    file: Path, data: Path, store: str | None, *, force: bool, tasks_ended: bool = False, named: bool = True
) -> tuple[backup.Facts, str]:
    """Restore a backup; answer what it says of itself, and what became of the owner's key that it may hold.

    `tasks_ended`: what ran when it was made, and not in the data directory, runs no more. `named`: somebody chose the directory.
    Raises a `StoreError`, `ConfigError`, or OSError naming the file.
    """
    moving = Moving(file, data)  # before anything is made
    url = store_of(data, store)
    if not tasks_ended:
        moving.refuse_unknown(shared=url is not None)
    if url is None:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _room_for(data / DATABASE):
            facts = backup.restore_sqlite(file, data / DATABASE, force=force)
    else:
        from tasuki.store.backup_postgres import restore_postgres

        with (
            moving.held(),
            tempfile.TemporaryDirectory(prefix="tasuki-restore-") as folder,
            _room_for(Path(folder)),
        ):
            filled = restore_postgres(
                file,
                url,
                Path(folder) / DATABASE,
                force=force,
                change=moving.give,
                last=moving.begin_to_count,
            )
            facts = asyncio.run(filled)
            if moving.is_home or (named and not moving.is_anothers):
                data.mkdir(mode=0o700, parents=True, exist_ok=True)
                mark(data, url)
    return facts, _keep_credentials(file, data, force=force)


def _refuse_own(file: Path, data: Path) -> None:
    """Keep the files that the node itself writes. Raises `ConfigError`."""
    if (file.name in _OWN or file.name.startswith("tasuki.")) and file.absolute().parent.resolve() == data.resolve():
        raise ConfigError(f"{file} may be one of the node's own files; name a file elsewhere")


@contextmanager
def _room_for(file: Path) -> Iterator[None]:
    """Say whose disk is full."""
    try:
        yield
    except apsw.FullError:
        raise StoreFull(
            f"The disk is full: there is no room for {file}. Nothing was changed; free some space there and try again."
        ) from None


def _credentials(data: Path) -> str:
    path = data / "credentials"
    if not path.is_file():
        raise ConfigError(
            f"--with-credentials: {path} is not there (a node that runs with --dev has none); leave it out"
        )
    return path.read_text()


def _keep_credentials(file: Path, data: Path, *, force: bool) -> str:
    text = backup.credentials_in(file)
    if text is None:
        return ""
    path = data / "credentials"
    if path.exists() and not force:
        return "" if path.read_text() == text else f"{path} stays as it is; the backup holds another key"
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".credentials.{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, text.encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    fresh.rename(path)
    return f"{path} holds the backup's key"
