"""Tasks that wait for a worker, and Tasks of executions that wait for such a task.

A task is put in when it is scheduled, and taken out when it is handed out or nobody waits for it. A Task that calls
`aws-sdk:sfn:getActivityTask` and finds nothing waits in a row of its own; a client's GetActivityTask waits at the door.
"""

from typing import NamedTuple

from tasuki.engine.commands import ScheduleTask
from tasuki.engine.events import Event, TaskSucceeded
from tasuki.language.definition import Resource
from tasuki.services.machines import activities_queries as sql
from tasuki.services.machines.errors import InvalidArn
from tasuki.services.machines.setting import ROOM
from tasuki.store.store import Tx
from tasuki.store.timers import clear_timer, set_timer
from tasuki.values.arns import Arn, parse_arn
from tasuki.values.documents import Doc
from tasuki.values.instant import SECOND, Instant

OWNER = "activity"
POLL_MS = 60 * SECOND
"""How long GetActivityTask waits for a task."""


class ActivityRow(NamedTuple):
    """An activity, as `activities_queries.ACTIVITY` answers it."""

    id: int
    name: str
    created_at: Instant
    tags: str

    @property
    def topic(self) -> str:
        """What the bell rings when a task waits: once a task, and waiting workers take turns."""
        return f"activity:{self.id}"


def parse_activity_arn(text: str) -> tuple[Arn, str]:
    """Take an activity's ARN apart: (parts, name). Raises `InvalidArn`."""
    parts = parse_arn(text)
    if parts is None or parts.service != "states":
        raise InvalidArn(f"Invalid ARN prefix: {text}")
    kind, _, name = parts.resource.partition(":")
    if kind != "activity" or not name:
        raise InvalidArn(f"Resource type not valid in this context: {kind}")
    return parts, name


def find_activity(tx: Tx, arn: str) -> ActivityRow | None:
    """Answer an activity by its ARN. Raises `InvalidArn`."""
    parts, name = parse_activity_arn(arn)
    row = tx.one(sql.ACTIVITY, (parts.account, parts.region, name))
    return ActivityRow(*row) if row is not None else None


def activity_exists(tx: Tx, arn: str) -> bool:
    """Tell whether there is an activity: what the engine asks before it schedules a task (`Execution.has_activity`)."""
    return find_activity(tx, arn) is not None


class Taken(NamedTuple):
    """A Task that waited for an activity's task: what to tell it, and as which worker it waited."""

    execution: int
    answer: TaskSucceeded
    worker: str | None = None


def offer(tx: Tx, execution: int, wish: ScheduleTask) -> Taken | None:
    """Have a task wait for a worker, or answer the Task that has waited for it.

    The engine has asked in this unit whether the activity exists.
    """
    activity = find_activity(tx, wish.resource.arn)
    assert activity is not None, "a task of an activity that does not exist was scheduled"
    tx.lock(sql.HOLD_TO_OFFER, (activity.id,))
    waiter = tx.one(sql.TAKE_WAITER, (activity.id,))
    if waiter is None:
        tx.run(sql.ADD_TASK, (activity.id, execution, wish.frame, wish.attempt, wish.parameters.text))
        tx.ring(activity.topic)
        return None
    there, frame, attempt, worker = waiter
    tx.run(sql.CLEAR_WAIT, (ROOM, ROOM, _timer_key(there, frame, attempt)))
    answer = Doc({"Input": wish.parameters.text, "TaskToken": wish.token})
    return Taken(there, TaskSucceeded(frame, attempt, answer), worker)


def withdraw(tx: Tx, execution: int, frame: int, attempt: int) -> None:
    """Nobody waits for this attempt any more: no worker gets it, and if it waited for a task, it gets none."""
    tx.run(sql.WITHDRAW_TASK, (execution, frame, attempt))
    if tx.run(sql.DROP_WAITER, (execution, frame, attempt)):
        clear_timer(tx, ROOM, _timer_key(execution, frame, attempt))


def is_poll(resource: Resource) -> bool:
    """Tell whether a Task asks for an activity's task."""
    return resource.sdk and (resource.service, resource.action, resource.pattern) == ("sfn", "getActivityTask", "")


def found_no_task(answer: Event) -> bool:
    """Tell whether the answer to a Task that asked for an activity's task says that there was none."""
    return isinstance(answer, TaskSucceeded) and not (answer.output.value or {}).get("TaskToken")


def hold_to_wait(tx: Tx, wish: ScheduleTask) -> None:
    """See to it that no task is put in between a look for one and the beginning of the wait."""
    given = wish.parameters.value
    arn = given.get("ActivityArn") if isinstance(given, dict) else None
    try:
        parts, name = parse_activity_arn(arn if isinstance(arn, str) else "")
    except InvalidArn:
        return  # the call will say so
    tx.lock(sql.HOLD_TO_WAIT, (parts.account, parts.region, name))


def wait_for_task(tx: Tx, execution: int, wish: ScheduleTask) -> None:
    """Have a Task wait for a task of an activity that exists and has none, as GetActivityTask does."""
    given = wish.parameters.value
    activity = find_activity(tx, given["ActivityArn"])
    assert activity is not None, "an activity was asked for a task and is not there"
    tx.run(sql.ADD_WAITER, (activity.id, execution, wish.frame, wish.attempt, given.get("WorkerName")))
    set_timer(tx, ROOM, _timer_key(execution, wish.frame, wish.attempt), tx.now + POLL_MS)


def end_wait(tx: Tx, key: str) -> Taken | None:
    """A Task has waited for its minute: answer what to tell it, if it still waits. `key` is its timer's."""
    _, execution, frame, attempt = key.split(":")
    if not tx.run(sql.DROP_WAITER, (int(execution), int(frame), int(attempt))):
        return None
    return Taken(int(execution), TaskSucceeded(int(frame), int(attempt), Doc({})))


def _timer_key(execution: int, frame: int, attempt: int) -> str:
    return f"{OWNER}:{execution}:{frame}:{attempt}"
