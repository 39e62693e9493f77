"""Which store is meant: one rule for every command that needs one, and the mark of a directory whose house is elsewhere.

::

    1  --store URL
    2  TASUKI_STORE
    3  [node] store in tasuki.toml
    4  DIR/tasuki.db, unless DIR/store names a database

`DIR/store` is the mark: a node of this directory has served a database, or a house was restored into one for it. It holds the
address, without a password, and is only compared: nobody is led to a database by a file that he does not know of, and nobody
starts the house of last month beside the one that was moved. Whoever runs a node (`up`) must name the database of the mark;
`backup`, `restore` and `doctor` may name any.
"""

import os
import re
from pathlib import Path

from tasuki.store.postgres_address import read_address
from tasuki.store.sqlite_file import sync_folder
from tasuki.values.config import Config, read_config
from tasuki.values.errors import ConfigError

VARIABLE = "TASUKI_STORE"
DATABASE = "tasuki.db"
MARK = "store"
_USER = re.compile(r"^postgresql://(?:[^/]*@)?")


def store_of(data: Path, option: str | None) -> str | None:
    """Answer the URL that a command means; None for the file of the data directory. Raises `ConfigError`."""
    url = option or os.environ.get(VARIABLE) or read_config(data).store
    if url is None:
        refuse_stale(data)
    return url


def refuse_stale(data: Path) -> None:
    """Refuse the file of a directory whose node uses a database. Raises `ConfigError`."""
    marked = mark_of(data)
    if marked is not None:
        raise ConfigError(
            f"This data directory's node uses {marked} ({data / MARK} says so); name it with --store or {VARIABLE}. "
            f"To go back to a file: tasuki backup FILE --store URL, remove {data / MARK}, "
            f"tasuki restore FILE --data {data} --force"
        )


def check(config: Config) -> None:
    """See that a node may start on the store that its configuration names, before anything is made. Raises `ConfigError`."""
    if config.store is None:
        refuse_stale(config.data)
        _refuse_orphaned(config.data)
        return
    shown, marked = read_address(config.store).shown, mark_of(config.data)
    if marked is not None and _place(marked) != _place(shown):
        raise ConfigError(
            f"This data directory's node uses {marked} ({config.data / MARK} says so), and --store names {shown}. "
            f"To move the house: tasuki backup FILE --store OLD_URL, tasuki restore FILE --store URL --data {config.data}. "
            f"If both are the same database, or the old one is given up: remove {config.data / MARK}"
        )


def _refuse_orphaned(data: Path) -> None:
    """Refuse a new, empty house where the tasks of another one are: its database is elsewhere."""
    if (data / "tasks" / "house").exists() and not (data / DATABASE).exists():
        raise ConfigError(
            f"{data / 'tasks'} holds the tasks of another store, and {data / DATABASE} is not there: put it back, name the "
            f"database with --store, restore a backup (tasuki restore FILE --data {data}), or choose another data directory."
        )


def mark_of(data: Path) -> str | None:
    """Answer the address of the database that the directory's node uses, or None. Raises `ConfigError`."""
    try:
        return read_address((data / MARK).read_text().strip()).shown
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ConfigError, ValueError):
        raise ConfigError(
            f"{data / MARK} is not what a node writes; remove it, and name the database with --store"
        ) from None


def mark(data: Path, url: str) -> None:
    """Note that the directory's node uses a database, or is to. Raises `ConfigError`, OSError naming the file."""
    shown, file = read_address(url).shown, data / MARK
    if file.exists() and file.read_text() == f"{shown}\n":
        return
    draft = file.with_name(f".{MARK}.{os.getpid()}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, f"{shown}\n".encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    draft.rename(file)
    sync_folder(data)


def _place(shown: str) -> str:
    """Answer what makes two addresses the same store: another user, or the port spelled out, is no other place."""
    return _USER.sub("", shown).replace(":5432/", "/", 1)
