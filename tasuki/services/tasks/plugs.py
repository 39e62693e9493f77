"""What the room plugs into the switchboard: `ecs:runTask`, and the keys of running tasks."""

from typing import Any

from tasuki.services.switchboard import Answer, Caller
from tasuki.services.tasks import queries as sql
from tasuki.services.tasks.errors import InvalidParameterException
from tasuki.services.tasks.setting import Setting
from tasuki.services.tasks.shapes import in_states, to_camel, to_pascal
from tasuki.services.tasks.starting import run_task, wish_of
from tasuki.services.tasks.stopping import hold, stop
from tasuki.store.store import Tx
from tasuki.values.arns import parse_arn
from tasuki.values.operations import Principal

ALLOWED = frozenset(
    {
        "sqs:SendMessage",
        "sqs:SendMessageBatch",
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:DeleteMessageBatch",
        "sqs:ChangeMessageVisibility",
        "sqs:ChangeMessageVisibilityBatch",
        "sqs:GetQueueUrl",
        "sqs:GetQueueAttributes",
        "states:SendTaskSuccess",
        "states:SendTaskFailure",
        "states:SendTaskHeartbeat",
        "states:StartExecution",
        "states:DescribeExecution",
        "ecs:DescribeTasks",
        "events:PutEvents",
    }
)
"""What a task may do with its own key."""


class RunTask:
    """`ecs:runTask`, with all its patterns. Names in parameters and answer are PascalCase at every depth."""

    error_prefix = "ECS"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def call(self, tx: Tx, parameters: dict[str, Any], caller: Caller) -> Answer:
        """Start tasks. What could not be placed is in `Failures`; the caller decides what that means for its pattern.

        An unmapped image is a task that stops, as on AWS one whose image cannot be pulled (recorded:
        ecs_task_service/test_run_task_raise_failure), so that Catch sees it.
        """
        given = to_camel(parameters)
        if "taskDefinition" not in given:
            raise InvalidParameterException("TaskDefinition can not be blank.")
        given.pop("clientToken", None)
        run = run_task(tx, self._setting, wish_of(given, caller))
        output = {"Failures": to_pascal(run.failures), "Tasks": [in_states(task) for task in run.tasks]}
        return Answer(output, ",".join(task.arn for task in run.tasks) or None)

    def cancel(self, tx: Tx, handle: str, cause: str) -> None:
        """StopTask for each of the tasks."""
        tasks = handle.split(",")
        hold(tx, [text.rpartition("/")[2] for text in tasks])
        for text in tasks:
            arn = parse_arn(text)
            row = tx.one(sql.TASK, (arn.account, arn.region, text.rpartition("/")[2])) if arn is not None else None
            if row is not None:
                stop(tx, self._setting, row, cause or "Task stopped by Step Functions", watched=False)


def credential(tx: Tx, access_key: str) -> tuple[str, Principal] | None:
    """Find the secret of a running attempt's key. It ends with the attempt."""
    if not access_key.startswith("ATSK"):
        return None
    row = tx.one(sql.KEY_HOLDER, (access_key,))
    return (row[0], Principal(access_key, ALLOWED)) if row is not None else None
