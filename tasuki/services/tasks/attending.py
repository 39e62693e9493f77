"""What the attendant does in units: claims tasks, notes what runners report, settles ends. It decides, runners act.

::

    PROVISIONING ──claim──► PENDING ──running──► RUNNING ──ended──► STOPPED
         ▲   │                 │ never                 (ended while nobody looked: straight to STOPPED)
         │   └─StopTask─┐      │
         └──────────────│──────┘   an attempt that never began may be followed by another; one that began never is
                        ▼
                     STOPPED

Everything here may be told twice: a report about a task that is over, or about an older attempt, changes nothing.

Where several nodes share the store each claims what it can run (`claiming.py`), a few at a time, and looks at its own tasks only.
Whoever changes a task holds the tasks of its batch first, by row number (`LOCK_BATCHES`), and then writes into inboxes only.
"""

from typing import Any

from tasuki.services.switchboard import Ending
from tasuki.services.tasks import queries as sql
from tasuki.services.tasks import queries_nodes
from tasuki.services.tasks.claiming import ANY_MIB, ANY_ROW, share
from tasuki.services.tasks.model import Task, UnmappedImage, digest, find_image, launch_of
from tasuki.services.tasks.setting import NAME, Here, Setting
from tasuki.services.tasks.shapes import in_states
from tasuki.services.tasks.telling import tell
from tasuki.store import timers
from tasuki.store.store import Tx
from tasuki.values.attempts import HOST_LOST, Key, Launch, Report
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import Instant

CLAIMED_AT_ONCE = 32
MOST_ATTEMPTS = 20
"""Attempts that never began before a task is given up: the machine cannot start it, whatever the reason.

Generous, since a node that is killed between claim and start uses one up, and that is not the task's fault: three were
not enough for a node killed three times within a second (found by the crash test).
"""


def stopping(tx: Tx, here: Here) -> bool:
    """Tell whether tasks that this node claimed are to stop (reads only)."""
    return tx.one(sql.ANY_TO_STOP, (here.node,)) is not None


def to_stop(tx: Tx, here: Here) -> list[Key]:
    """Answer the attempts of this node that are to stop and have not."""
    return [Key(*row) for row in tx.all(sql.TO_STOP, (here.node,))]


def claim(tx: Tx, setting: Setting, here: Here) -> tuple[list[Launch], bool]:
    """Pin waiting tasks to this node, each with a key of its own; answer what to start, and whether to look again."""
    launches: list[Launch] = []
    if here.term is None:
        rows = tx.all(sql.TO_START, (ANY_MIB, ANY_ROW, "", CLAIMED_AT_ONCE))
        again = bool(rows)
    else:
        rows, again = share(tx, setting, here)
    definitions: dict[int, Any] = {}
    for row in rows:
        task = Task.of(row)
        if task.definition_id not in definitions:
            found = tx.one(sql.DEFINITION_DOCUMENT, (task.definition_id,))
            assert found is not None, "a task's definition is never deleted"
            definitions[task.definition_id] = loads(found[0])
        task.attempt += 1
        task.pulled_at = tx.now
        key, secret = f"ATSK{tx.chance.hex(16).upper()}", tx.chance.hex(40)
        task.version += 1
        task.last_status = "PENDING"
        launch: Launch | None = None
        trouble = ""
        try:
            launch = launch_of(task, definitions[task.definition_id], setting.config, key, secret)
            images = {one.name: find_image(setting.config, one.image) for one in launch.containers}
            task.containers = {name: {"imageDigest": digest(image)} for name, image in images.items()}
        except UnmappedImage as bad:
            trouble = f"CannotPullContainerError: {bad.said(_where(here))}"
        tx.run(
            sql.CLAIM,
            (task.attempt, here.node, here.host, here.boot, key, secret, tx.now, dumps(task.containers), task.id),
        )
        task.node = here.node
        tell(tx, setting, task)
        if launch is not None:
            launches.append(launch)
        else:
            tx.lock(sql.LOCK_BATCHES, ([task.name],))
            end(tx, setting, task, "TaskFailedToStart", trouble)
    return launches, again


def _where(here: Here) -> str:
    return "" if here.term is None else f" on node {here.node} ({here.host}), nor on any other that is there"


def claimed_before(tx: Tx, here: Here) -> list[Key]:
    """Answer the attempts that this node may have started before."""
    return [Key(*row) for row in tx.all(sql.CLAIMED, (here.node,))]


def any_of_others(tx: Tx, here: Here) -> bool:
    """Tell whether a node that is alone finds tasks of others: its store was restored from one that had several."""
    return here.term is None and tx.one(sql.ANY_OF_OTHERS, (here.node,)) is not None


def take_over(tx: Tx, here: Here) -> None:
    """Make all tasks those of the one node that there is."""
    tx.run(sql.TAKE_OVER, (here.node, here.node))


def give_up(tx: Tx, setting: Setting, node: str, limit: int, why: str = HOST_LOST) -> int:
    """Settle some of the tasks of a node that is lost; answer how many there were. Their containers have ended before."""
    keys = [Key(*row) for row in tx.all(queries_nodes.IN_HAND, (node, limit))]
    tx.lock(sql.LOCK_BATCHES, ([key.task for key in keys],))
    for key in keys:
        task = current(tx, key)
        if task is not None:
            end(tx, setting, task, "InfrastructureHealth", why)
    return len(keys)


def could_not_start(tx: Tx, setting: Setting, key: Key, why: str) -> None:
    """Settle an attempt that the runner could not start (and did not)."""
    tx.lock(sql.LOCK_BATCHES, ([key.task],))
    task = current(tx, key)
    if task is not None:
        end(tx, setting, task, "TaskFailedToStart", f"ResourceInitializationError: {why}")


def settle(tx: Tx, setting: Setting, reports: list[Report]) -> None:
    """Note what a runner reported."""
    tx.lock(sql.LOCK_BATCHES, ([report.key.task for report in reports],))
    for report in reports:
        task = current(tx, report.key)
        if task is None:
            continue
        if report.phase == "never":
            _never_began(tx, setting, task)
        elif report.phase == "running":
            _runs(tx, setting, task, report)
        else:
            _take_containers(task, report, stopped=True)
            if task.started_at is None and any(one.exit_code is not None for one in report.containers):
                task.started_at = _began(tx, task, report)
            ended_at = max(task.started_at or task.created_at, tx.now - (report.ended_ms or 0))
            code, reason = _why(task, report)
            end(tx, setting, task, code, reason, at=ended_at)


def current(tx: Tx, key: Key) -> Task | None:
    """Answer the task of an attempt, unless it is over or has another attempt by now."""
    row = tx.one(sql.TASK_BY_NAME, (key.task,))
    if row is None:
        return None
    task = Task.of(row)
    over = task.stopped_at is not None or task.attempt != key.attempt or task.last_status == "PROVISIONING"
    return None if over else task


def _began(tx: Tx, task: Task, report: Report) -> Instant:
    """When its first container began, which may be long before anybody looked; not known, it was soon after the claim."""
    claimed = task.pulled_at if task.pulled_at is not None else task.created_at
    return claimed if report.began_ms is None else max(claimed, tx.now - report.began_ms)


def _why(task: Task, report: Report) -> tuple[str, str | None]:
    """The shim saw which came first. The words of a StopTask are in the row."""
    code = report.stop_code or "InfrastructureHealth"
    if code == "UserInitiated":
        return code, task.stopped_reason or "Task stopped by user"
    return code, report.reason


def _take_containers(task: Task, report: Report, *, stopped: bool) -> None:
    for one in report.containers:
        status = "STOPPED" if one.ended or stopped else "RUNNING" if one.pid is not None else "PENDING"
        known: dict[str, Any] = {"lastStatus": status, "exitCode": one.exit_code, "reason": one.reason}
        same = {"imageDigest": task.containers.get(one.name, {}).get("imageDigest")}
        task.containers[one.name] = {key: value for key, value in {**same, **known}.items() if value is not None}


def _never_began(tx: Tx, setting: Setting, task: Task) -> None:
    """Let it be claimed again, if it truly never began: one that we saw run is lost, whatever its folder says now."""
    if task.last_status != "PENDING":
        end(tx, setting, task, "InfrastructureHealth", HOST_LOST)
    elif task.desired_status == "STOPPED":
        end(tx, setting, task, task.stop_code or "UserInitiated", task.stopped_reason)
    elif task.attempt >= MOST_ATTEMPTS:
        why = f"ResourceInitializationError: the task could not be started in {MOST_ATTEMPTS} attempts"
        end(tx, setting, task, "TaskFailedToStart", why)
    else:
        tx.run(sql.UNCLAIM, (task.id,))
        tx.ring("tasks")


def _runs(tx: Tx, setting: Setting, task: Task, report: Report) -> None:
    before = (task.last_status, task.stopping_at, dumps(task.containers))
    _take_containers(task, report, stopped=False)
    if task.last_status == "PENDING" and any(one.pid is not None for one in report.containers):
        task.last_status = "RUNNING"
        task.started_at = _began(tx, task, report)
    if report.stop_code is not None and task.stopping_at is None:
        task.stopping_at = tx.now
        task.desired_status = "STOPPED"
        task.stop_code, task.stopped_reason = report.stop_code, report.reason
    containers = dumps(task.containers)
    if before == (task.last_status, task.stopping_at, containers):
        return
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
            containers,
            task.version,
            task.id,
        ),
    )
    tell(tx, setting, task)
    tx.ring("tasks-shown")


def end(tx: Tx, setting: Setting, task: Task, code: str, reason: str | None, *, at: Instant | None = None) -> None:
    """Note a task's end, and tell whoever watches it.

    `at` is when its last container stopped, if not now. As on ECS, that is `executionStoppedAt`; `stoppedAt` is when the
    house learned of it.
    """
    execution_stopped_at = tx.now if at is None else at
    task.version += 2 if task.stopping_at is None else 1
    task.stopping_at = task.stopping_at if task.stopping_at is not None else execution_stopped_at
    task.execution_stopped_at = max(task.stopping_at, execution_stopped_at)
    task.stopped_at = tx.now
    task.stop_code, task.stopped_reason = code, reason
    task.last_status = task.desired_status = "STOPPED"
    tx.run(
        sql.END,
        (
            task.started_at,
            task.stopping_at,
            task.execution_stopped_at,
            task.stopped_at,
            code,
            reason,
            dumps(task.containers),
            task.version,
            task.id,
        ),
    )
    tell(tx, setting, task)
    _see_off(tx, setting)
    tx.ring("tasks-shown")
    if task.watcher is not None and tx.one(sql.BATCH_GOES_ON, (task.batch,)) is None:
        setting.switchboard.finished(
            tx, task.watcher, _ending([Task.of(row) for row in tx.all(sql.BATCH, (task.batch,))])
        )


def _see_off(tx: Tx, setting: Setting) -> None:
    oldest = tx.one(sql.OLDEST_STOPPED)
    if oldest is not None and oldest[0] == tx.now:
        timers.set_timer(tx, NAME, "expired", tx.now + setting.shown_ms)


def _ending(tasks: list[Task]) -> Ending:
    """How `.sync` ends: with the one task, or with all of them when there were several (ecs.md section 5)."""
    shown = [in_states(task) for task in tasks]
    output = shown[0] if len(shown) == 1 else {"Failures": [], "Tasks": shown}
    return Ending(succeeded=all(map(succeeded, tasks)), output=output)


def succeeded(task: Task) -> bool:
    """Tell whether every essential container ended by itself with 0. What the others did does not count."""
    essential = [one["name"] for one in task.document["containers"] if one["essential"]]
    codes = [task.containers.get(name, {}).get("exitCode") for name in essential]
    return task.stop_code == "EssentialContainerExited" and all(code == 0 for code in codes)
