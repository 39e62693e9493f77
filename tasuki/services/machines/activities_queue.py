"""Tasks that wait for a worker: put in when they are scheduled, taken out when they are handed out or nobody waits."""

from typing import NamedTuple

from tasuki.engine.commands import ScheduleTask
from tasuki.services.machines import activities_queries as sql
from tasuki.services.machines.errors import InvalidArn
from tasuki.store.store import Tx
from tasuki.values.arns import Arn, parse_arn
from tasuki.values.instant import Instant


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


def offer(tx: Tx, execution: int, wish: ScheduleTask) -> None:
    """Have a task wait for a worker. The engine has asked in this unit whether the activity exists."""
    activity = find_activity(tx, wish.resource.arn)
    assert activity is not None, "a task of an activity that does not exist was scheduled"
    tx.run(sql.ADD_TASK, (activity.id, execution, wish.frame, wish.attempt, wish.parameters.text))
    tx.ring(activity.topic)


def withdraw(tx: Tx, execution: int, frame: int, attempt: int) -> None:
    """Nobody waits for this attempt any more: no worker gets it."""
    tx.run(sql.WITHDRAW_TASK, (execution, frame, attempt))
