"""The nodes of a house that several share: who is there, who was, and what becomes of the tasks of one that is lost.

::

    join ──► seen every few seconds ──► left (stopped_at)            comes back: the same id, another incarnation
                    │ unheard of for `lost_ms`
                    ▼
              given up (lost_at, losses + 1): its tasks are STOPPED, and the users' Retry decides

All in real time. Giving a node up and its own renewal, or its claims, exclude each other on its row: after the first it
finds another term than its own, and knows that what it had in hand is over.
"""

from dataclasses import dataclass

from tasuki.services.tasks import attending
from tasuki.services.tasks import queries_nodes as sql
from tasuki.services.tasks.polls import TOKENS_KEPT_MS
from tasuki.services.tasks.queries import FORGET_TOKENS
from tasuki.services.tasks.setting import ALONE, Here, Setting
from tasuki.store.store import Tx
from tasuki.values.documents import dumps
from tasuki.values.errors import ConfigError
from tasuki.values.instant import DAY, SECOND, Instant

HEARD_MS = 15 * SECOND
"""A node that was seen this lately lives, as far as anybody knows: it has missed two renewals at most."""
TAKEN_MS = HEARD_MS
"""An id that was seen this lately may be in use."""
GIVEN_UP_AT_ONCE = 20
"""Tasks of a lost node that are settled in a unit."""
FORGOTTEN_AT_ONCE = 100
NODES_KEPT_MS = 7 * DAY


@dataclass(frozen=True, slots=True)
class Joining:
    """What a node says of itself. `place` is where its data directory is, `owner` a digest of the key that it takes."""

    place: str
    url: str
    version: str
    owner: str
    dev: bool
    memory_mib: int
    lost_ms: int
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has an id, though it is ours."""

    seen_at: Instant
    host: str
    url: str


@dataclass(frozen=True, slots=True)
class Node:
    """A row, in the order of `NODES`."""

    id: str
    host: str
    url: str
    version: str
    memory_mib: int
    joined_at: Instant
    seen_at: Instant
    stopped_at: Instant | None
    lost_at: Instant | None
    lost_ms: int
    clock_ahead_ms: int
    tasks: int

    def state(self, real_now: Instant) -> str:
        """Answer UP, SILENT (not heard of for a while), LOST (given up) or STOPPED."""
        if self.lost_at is not None:
            return "LOST"
        if self.stopped_at is not None:
            return "STOPPED"
        return "UP" if real_now - self.seen_at <= HEARD_MS else "SILENT"


@dataclass(frozen=True, slots=True)
class Round:
    """What a renewal brings to light. `term` is None when the row is not ours any more (or gone, see `known`)."""

    term: int | None
    known: bool
    schema: int
    real_now: Instant
    nodes: list[Node]


def join(tx: Tx, here: Here, joining: Joining) -> int | Holder:
    """Take part; answer the term. Answers the holder of the id instead while it looks as if there were another one.

    Raises `ConfigError` when the owner's key is not the house's.
    """
    _admit(tx, here, joining)
    row = tx.one(sql.HOLDER, (here.node,))
    if row is not None:
        place, seen_at, stopped_at, host, url = row
        if place != joining.place and stopped_at is None and tx.real_now - seen_at < TAKEN_MS:
            return Holder(seen_at, host, url)
    who = (here.node, joining.place, here.incarnation, here.host, here.boot)
    what = (joining.url, joining.version, joining.owner, joining.memory_mib, dumps(joining.images), joining.lost_ms)
    tx.ring("membership")
    return int(tx.all(sql.JOIN, (*who, *what, here.term or 0, tx.real_now, tx.real_now))[0][0])


_COPY = "copy DIR/credentials from the data directory of a node that is in"
_LOST = "(is the key lost for good, see docs/CONFIGURATION.md)"


def refuse_new_key(tx: Tx) -> None:
    """Refuse a node that has no key yet, and would make one, where the house has one (reads only). Raises `ConfigError`."""
    if tx.one(sql.OWNER) is not None:
        raise ConfigError(
            f"This house has an owner's key, and this data directory has none: {_COPY} into this one's, for all nodes of a "
            f"house take the same {_LOST}. None was made."
        )


def _admit(tx: Tx, here: Here, joining: Joining) -> None:
    """Let in who takes the house's key: a client may speak to any of the nodes."""
    fix = f"{_COPY}, over the one of this node {_LOST}"
    if not joining.dev:
        owner = tx.one(sql.OWNER)
        if owner is None:
            tx.run(sql.KEEP_OWNER, (joining.owner,))
        elif owner[0] != joining.owner:
            raise ConfigError(f"All nodes of a house take the same owner's key, and this one has another: {fix}.")
    other = tx.one(sql.OTHER_OWNER, (here.node, joining.owner, tx.real_now - HEARD_MS))
    if other is not None:
        raise ConfigError(
            f"Node {other[0]} on {other[1]} takes another owner's key, and all nodes of a house take the same: start all "
            f"of them with --dev or none; without it, {fix}."
        )


def renew(tx: Tx, here: Here, clock_ahead_ms: int) -> Round:
    """Be seen, and see the others."""
    row = tx.one(sql.RENEW, (tx.real_now, clock_ahead_ms, here.node, here.incarnation))
    known = row is not None or tx.one(sql.HOLDER, (here.node,)) is not None
    schema = tx.one(sql.SCHEMA)
    return Round(
        term=row[0] if row is not None else None,
        known=known,
        schema=int(schema[0]) if schema is not None else 0,
        real_now=tx.real_now,
        nodes=everybody(tx),
    )


def everybody(tx: Tx) -> list[Node]:
    """Answer all nodes, in the order in which they joined."""
    return [Node(*row) for row in tx.all(sql.NODES)]


def leave(tx: Tx, here: Here) -> None:
    """Say good-bye. Its tasks go on, and it may come back to them."""
    tx.run(sql.LEAVE, (tx.real_now, tx.real_now, here.node, here.incarnation))
    tx.ring("membership")


def give_up(tx: Tx, setting: Setting, node: str, seen_at: Instant) -> tuple[bool, int]:
    """Settle a slice of a node's tasks, unless it was seen since; answer (whether we gave it up just now, how many)."""
    first = tx.run(sql.GIVE_UP, (tx.real_now, node, seen_at)) == 1
    lost = tx.one(sql.STILL_LOST, (node, seen_at))
    if lost is None:
        return False, 0
    why = f"Node {node} ({lost[0]}) was not heard of for {lost[1] // SECOND} s"
    return first, attending.give_up(tx, setting, node, GIVEN_UP_AT_ONCE, why)


def left_alone(tx: Tx, names: list[str]) -> list[str]:
    """Answer which of the tasks whose folders we hold are those of a node that had the store for itself (reads only)."""
    alone = {row[0] for row in tx.all(sql.LEFT_ALONE, (ALONE,))}
    return [name for name in names if name in alone]


def adopt(tx: Tx, here: Here, names: list[str]) -> None:
    """Make them our own: the store was restored into one that several share, and the data directory stayed."""
    for name in names:
        tx.run(sql.ADOPT, (here.node, ALONE, name))


def unknown(tx: Tx) -> list[str]:
    """Answer nodes that have tasks in hand and no row (reads only)."""
    return [row[0] for row in tx.all(sql.UNKNOWN)]


def tidy(tx: Tx, setting: Setting) -> None:
    """Forget the rows of tasks that nobody comes back for, and of nodes that have none left."""
    tx.run(sql.FORGET_ORPHANS, (tx.now - setting.shown_ms, tx.real_now - NODES_KEPT_MS, FORGOTTEN_AT_ONCE))
    tx.run(sql.FORGET_NODES, (tx.real_now - NODES_KEPT_MS,))
    tx.run(
        FORGET_TOKENS, (tx.now - TOKENS_KEPT_MS,)
    )  # the room's timer does it, too, where no lost node's tasks are the oldest


def folders_of_others(tx: Tx, here: Here, names: list[str]) -> tuple[list[str], list[str]]:
    """Sort tasks whose folders we hold (reads only): (those we have no part in any more, those that were given up for us)."""
    gone, lost = [], []
    for name in names:
        row = tx.one(sql.OF_NODE, (name, here.node))
        if row is None:
            gone.append(name)
        elif row[0] == "STOPPED" and row[1] == "InfrastructureHealth":
            lost.append(name)
    return gone, lost
