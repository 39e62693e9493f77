"""Which waiting tasks a node of several takes: what fits its memory, and what it has the images for.

A task whose image this node's tasuki.toml does not map is left to the others, if one of them that may be there (it was
neither stopped nor given up) has it. If none has, whoever comes first claims it, and it ends as ECS ends what cannot be
pulled. Which definitions those are is learnt from the first task of each, so that later looks leave them out in SQL: a node
is not woken for what it leaves, and nothing that it could start waits behind.
"""

from tasuki.services.tasks import queries as sql
from tasuki.services.tasks import queries_nodes
from tasuki.services.tasks.model import Task
from tasuki.services.tasks.setting import Here, Setting
from tasuki.store.store import Row, Tx
from tasuki.values.documents import loads
from tasuki.values.instant import MINUTE

CLAIMED_AT_ONCE_OF_MANY = 4
"""What one node of several claims in a unit, so that the others get some too."""
PATIENT_MS = MINUTE
"""How long smaller tasks overtake one for which no node has room just now."""
LOOKS = 8
"""How often a unit looks again because it learnt of a definition that it leaves; then the next unit goes on."""
ANY_MIB = ANY_ROW = 1 << 62


def waiting(tx: Tx, setting: Setting, here: Here) -> bool:
    """Tell whether tasks wait that this node could start (reads only)."""
    if here.term is None:
        return tx.one(sql.ANY_TO_START, (ANY_MIB, "")) is not None
    return tx.one(sql.ANY_TO_START, (_free_mib(tx, setting, here), _left(tx, here))) is not None


def share(tx: Tx, setting: Setting, here: Here) -> tuple[list[Row], bool]:
    """Take what this node can run, if it has not been given up, and leave the others some; answer it, and whether to look again.

    A task that waits for room is overtaken for a while only; then nobody claims what came after it.
    """
    if tx.one(queries_nodes.STANDS, (here.node, here.incarnation, here.term)) is None:
        return [], False
    free = _free_mib(tx, setting, here)
    held = 0
    for _ in range(LOOKS):
        left = _left(tx, here)
        overtaken = tx.all(sql.OVERTAKEN, (free, setting.memory_mib, tx.now - PATIENT_MS, left))
        upto = overtaken[0][0] if overtaken else ANY_ROW
        rows = tx.all(sql.TO_START, (free, upto, left, CLAIMED_AT_ONCE_OF_MANY))
        held += len(rows)
        if not _learn(setting, here, [*overtaken, *rows]):
            break
    else:
        tx.ring("tasks")
        return [], True
    taken: list[Row] = []
    for row in rows:
        task = Task.of(row)
        if task.memory_mib <= free:
            free -= task.memory_mib
            taken.append(row)
    if len(taken) < held:
        tx.ring("tasks")  # the others may have passed over what we held and did not take
    return taken, bool(taken)


def images_of(task: Task) -> frozenset[str]:
    """Answer the images that a task names."""
    return frozenset(one["image"] for one in task.document["containers"])


def is_elsewhere(tx: Tx, images: frozenset[str], node: str = "") -> bool:
    """Tell whether a node that may be there, besides one, has all of some images (reads only)."""
    return any(images <= one for one in _of_others(tx, node))


def _free_mib(tx: Tx, setting: Setting, here: Here) -> int:
    return int(setting.memory_mib - tx.all(queries_nodes.OWN_MIB, (here.node,))[0][0])


def _learn(setting: Setting, here: Here, rows: list[Row]) -> bool:
    """Note the definitions whose images this node has not all; tell whether there was a new one."""
    before = len(here.lacks)
    for task in map(Task.of, rows):
        if task.definition_id not in here.lacks and not images_of(task) <= setting.config.images.keys():
            here.lacks[task.definition_id] = images_of(task)
    return len(here.lacks) > before


def _left(tx: Tx, here: Here) -> str:
    """Answer the definitions whose tasks are left to others, as `NOT_LEFT` reads them."""
    others = _of_others(tx, here.node) if here.lacks else []
    left = [str(row) for row, images in here.lacks.items() if any(images <= one for one in others)]
    return f",{','.join(left)}," if left else ""


def _of_others(tx: Tx, node: str) -> list[frozenset[str]]:
    return [frozenset(loads(row[0])) for row in tx.all(queries_nodes.IMAGES_OF_OTHERS, (node,))]
