"""Tasks that a backup has in hand: who goes on with them when it is restored, and when that is nobody's to say.

A task that was running when the backup was made may run still. Whoever holds its folder adopts it; a node that the backup knows
comes back for its own, or is given up when its shims have ended them (`runners/contact.py`). Any other one would be retried
beside itself: such a backup is restored only when somebody says that those tasks have ended.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import close
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from tasuki.runners.contact import Contact
from tasuki.runners.facts import boottime
from tasuki.runners.home import house_id
from tasuki.runtime.clock import WallClock
from tasuki.runtime.nodes_home import node_id
from tasuki.runtime.which_store import DATABASE
from tasuki.store import backup, sqlite_file
from tasuki.values.chance import Chance
from tasuki.values.config import read_config
from tasuki.values.errors import StoreError, StoreTaken

ALONE = "here"
"""The node of a store that has only one, as the tasks' rows have it."""
NAMED = 3
"""Tasks that a refusal names."""
_SECRET = "SELECT value FROM house WHERE name = 'page_secret'"  # noqa: S105 - the statement
_IN_HAND = (
    "SELECT name, attempt, {node}, last_status, host, boot FROM tasks "
    "WHERE stopped_at IS NULL AND host IS NOT NULL ORDER BY id"
)
_GIVE = "UPDATE tasks SET node = ? WHERE name = ?"
_AWAIT = (
    "INSERT INTO nodes (id, place, incarnation, host, boot, url, version, owner, memory_mib, lost_ms, losses, clock_ahead_ms, "
    "joined_at, seen_at, stopped_at) VALUES (?, '', '', ?, ?, '', '', '', 0, ?, ?, 0, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
)


class InHand(NamedTuple):
    """A task of a backup that had been claimed and had not stopped."""

    name: str
    attempt: int
    node: str
    status: str
    host: str
    boot: str


class Moving:
    """What becomes of a backup's tasks.

    `is_home`: the data directory is this house's, so what ran there may be adopted. `is_anothers`: it holds another one's tasks.
    """

    def __init__(self, file: Path, data: Path) -> None:
        self._data = data
        try:
            with closing(backup.opened(file)) as reader:
                house, self._known, found = _read(reader)
        except (apsw.Error, ValueError) as bad:
            raise StoreError(f"{file} is damaged ({bad}). Use another backup.") from None
        home = _home_of(data)
        self.is_home, self.is_anothers = home == house, home not in {"", house}
        own = _id_of(data)
        self.ours = [one for one in found if self.is_home and _is_ours(one, data, own)]
        mine = {one.name for one in self.ours}
        self._others = [one for one in found if one.name not in mine]

    def refuse_unknown(self, *, shared: bool) -> None:
        """Raise `StoreTaken` when there are tasks of which nobody would know whether they run. `shared`: it goes into a database."""
        unknown = [one for one in self._others if not (shared and one.node in self._known)]
        if not unknown:
            return
        named = ", ".join(one.name for one in unknown[:NAMED]) + (", ..." if len(unknown) > NAMED else "")
        hosts = ", ".join(sorted({one.host for one in unknown}))
        many = f"{len(unknown)} tasks were" if len(unknown) > 1 else "A task was"
        raise StoreTaken(
            f"{many} running on {hosts} when the backup was made ({named}), and {self._data} is not where: what still runs would "
            "run a second time. Restore on that machine with --data DIR of the node that ran them, and they go on; "
            "or make sure that they have ended, and say so with --tasks-ended: their Retry decides then"
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the directory's node from starting meanwhile. Raises `StoreBusy` when it runs."""
        fd = sqlite_file.lock(self._data / DATABASE) if self.is_home else None
        try:
            yield
        finally:
            if fd is not None:
                close(fd)

    def give(self, copy: apsw.Connection) -> None:
        """Make the tasks of the directory its node's, in a store that several may share."""
        given = [one for one in self.ours if one.node not in self._known]
        if not given:
            return
        node, now, contact = node_id(self._data, Chance.system()), WallClock().now(), self._contact()
        lost_ms = int(read_config(self._data).lost_node_s * 1000)
        with copy:
            copy.executemany(_GIVE, [(node, one.name) for one in given])
            copy.execute(_AWAIT, (node, given[0].host, given[0].boot, lost_ms, contact.last_term(), now, now, now))

    def begin_to_count(self) -> None:
        """Date the line that the shims look at, just before the store says that the node was seen: they end in time if it never comes."""
        if any(one.node not in self._known for one in self.ours):
            contact = self._contact()
            contact.term = contact.last_term()
            contact.renew(boottime())

    def _contact(self) -> Contact:
        return Contact(str(self._data / "tasks"), read_config(self._data).lost_node_s)


def _read(reader: apsw.Connection) -> tuple[str, set[str], list[InHand]]:
    (secret,) = reader.execute(_SECRET).fetchall()
    tables = backup.tables(reader)
    has_nodes = "nodes" in tables  # an older house has not: it was one node's
    known = {str(row[0]) for row in reader.execute("SELECT id FROM nodes")} if has_nodes else set()
    asked = _IN_HAND.format(node="node" if has_nodes else f"'{ALONE}'")
    rows: list[Any] = reader.execute(asked).fetchall() if "tasks" in tables else []
    return house_id(str(secret[0])), known, [InHand(*row) for row in rows]


def _home_of(data: Path) -> str:
    """Answer whose tasks the directory holds; nothing when it holds none."""
    try:
        return (data / "tasks" / "house").read_text()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _id_of(data: Path) -> str:
    file = data / "node_id"
    return file.read_text().strip() if file.is_file() else ""


def _is_ours(one: InHand, data: Path, own: str) -> bool:
    """Tell by its folder. One that was claimed and has none yet was perhaps never begun: the directory's node finds out."""
    there = (data / "tasks" / one.name / str(one.attempt)).is_dir()
    return there or one.node == own or (one.node == ALONE and one.status == "PENDING")
