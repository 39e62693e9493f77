"""How many more tasks there is room for: on this machine, or on the nodes that live.

Memory is a promise of the moment: tasks wait for a node to claim them, and each node claims what fits (`attending.py`). Two
calls at once may be promised the same room; then one's tasks wait for it.

The number of tasks is exact. Where units run beside each other they can't see what another one is about to add, so those
that are near the quota take turns, until their commit. Far from it nobody waits for anybody: units in hand would have to add
`NEAR` tasks in one moment to go beyond it.
"""

from dataclasses import dataclass

from tasuki.services.tasks import queries as sql
from tasuki.services.tasks import queries_nodes
from tasuki.services.tasks.nodes import HEARD_MS
from tasuki.services.tasks.setting import Setting
from tasuki.store.store import Tx
from tasuki.values.documents import loads

NEAR = 250
"""With room for fewer than so many tasks under the quota, units take turns. Above what any number of nodes starts in a moment."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a task was not placed, in ECS's word for it and in ours."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Need:
    """What a task needs of its node."""

    memory_mib: int
    images: frozenset[str]


def find_room(tx: Tx, setting: Setting, need: Need, count: int) -> tuple[int, Refusal]:
    """Answer how many of `count` tasks that need the same can be placed, and why the others can't."""
    fit, active, said = _look(tx, setting, need)
    if setting.most_tasks - active < NEAR + count:
        tx.lock(sql.TURN)
        fit, active, said = _look(tx, setting, need)
    most = setting.most_tasks - active
    room = max(0, min(count, most, count if fit is None else fit))
    if most >= count:
        return room, Refusal("RESOURCE:MEMORY", said)
    said = f"No more than {setting.most_tasks} tasks run at once (quotas.running_tasks in tasuki.toml)."
    return room, Refusal("RESOURCE:CPU", said)


def _look(tx: Tx, setting: Setting, need: Need) -> tuple[int | None, int, str]:
    return _of_many(tx, need) if setting.shared else _of_one(tx, setting, need.memory_mib)


def _of_one(tx: Tx, setting: Setting, memory_mib: int) -> tuple[int | None, int, str]:
    """Answer (how many fit, or None for any number; how many tasks there are; what is free, in words)."""
    reserved, active = tx.all(sql.RESERVED_MIB)[0]
    free = setting.memory_mib - reserved
    said = (
        f"The task reserves {memory_mib} MiB; {max(0, free)} of {setting.memory_mib} MiB are free "
        "(node.memory in tasuki.toml)."
    )
    return free // memory_mib if memory_mib else None, active, said


def _of_many(tx: Tx, need: Need) -> tuple[int | None, int, str]:
    """The same over all nodes that live, or those of them that have the images, if any has.

    A task runs on one of them: room that is scattered does not count.
    """
    memory_mib = need.memory_mib
    live = tx.all(queries_nodes.LIVE_MEMORY, (tx.real_now - HEARD_MS,))
    able = [row for row in live if need.images <= set(loads(row[2]))] or live
    nodes = [(whole, whole - taken) for whole, taken, _ in able]
    which = "together" if len(able) == len(live) else "that have its image together"
    waiting, active = tx.all(queries_nodes.WAITING_MIB)[0]
    free = sum(free for _, free in nodes) - waiting
    said = (
        f"The task reserves {memory_mib} MiB; {max(0, free)} MiB are free on {len(nodes)} nodes {which}, of "
        f"{max((whole for whole, _ in nodes), default=0)} MiB on the largest (node.memory in each one's tasuki.toml)."
    )
    if not memory_mib:
        return None, active, said
    return min(free // memory_mib, sum(max(0, one) // memory_mib for _, one in nodes)), active, said
