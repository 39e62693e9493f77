"""StopTask: what is wanted changes at once, what is follows when the runner has done it."""

from tasuki.services.tasks import queries as sql
from tasuki.services.tasks.attending import end
from tasuki.services.tasks.model import Task
from tasuki.services.tasks.setting import Setting
from tasuki.services.tasks.telling import tell
from tasuki.store.store import Row, Tx
from tasuki.values.documents import dumps


def hold(tx: Tx, names: list[str]) -> None:
    """Hold tasks, and what belongs to the same batches, before one looks at them."""
    tx.lock(sql.LOCK_BATCHES, (names,))


def stop(tx: Tx, setting: Setting, row: Row, reason: str, *, watched: bool = True) -> Task:
    """Have a task stopped; answer it as it stands now. Asking again changes nothing.

    Whoever calls has looked at the task under its batch's lock (`hold`).
    A task that no node has claimed yet is stopped here and now. `watched=False` when whoever watches has lost interest.
    """
    task = Task.of(row)
    if task.stopped_at is not None or task.desired_status == "STOPPED":
        return task
    if not watched:
        task.watcher = None
    if task.last_status == "PROVISIONING":
        end(tx, setting, task, "UserInitiated", reason)
        return task
    task.desired_status, task.stop_code, task.stopped_reason = "STOPPED", "UserInitiated", reason
    task.stopping_at = tx.now
    task.version += 1
    tx.run(
        sql.PROGRESS,
        (
            task.last_status,
            task.desired_status,
            task.started_at,
            task.stopping_at,
            task.stop_code,
            task.stopped_reason,
            dumps(task.containers),
            task.version,
            task.id,
        ),
    )
    tell(tx, setting, task)
    tx.ring("tasks")
    return task
