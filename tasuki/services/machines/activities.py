"""Activities: names under which workers ask for tasks (states.md section 9; recorded: activities/*, sfn_api_activities/*).

::

    Task ──ActivityScheduled──► activity_tasks ──GetActivityTask──► worker ──SendTaskSuccess, ...──► Task
                                     (a row)      ActivityStarted

A task is handed out once, to the worker that has waited the longest; its time begins then. What a worker took and never
answers is for TimeoutSeconds and HeartbeatSeconds to notice, as in AWS.
"""

from typing import Any

from tasuki.engine.events import TaskStarted
from tasuki.engine.execution import Frame, Phase
from tasuki.services.machines import activities_queries as sql
from tasuki.services.machines.activities_queue import POLL_MS, ActivityRow, find_activity
from tasuki.services.machines.api import open_token, page_size
from tasuki.services.machines.errors import (
    ActivityDoesNotExist,
    ActivityLimitExceeded,
    ActivityWorkerLimitExceeded,
    ValidationException,
)
from tasuki.services.machines.model import check_name, merged_tags
from tasuki.services.machines.queries import EXECUTION_STATUS, LOAD_FREE
from tasuki.services.machines.rows import SavedFrames
from tasuki.services.machines.running import in_hand, load, proceed, send
from tasuki.services.machines.setting import Setting
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.arns import build_arn
from tasuki.values.documents import dumps
from tasuki.values.instant import Instant
from tasuki.values.operations import Crowd, NotYet, Operation, Operations, Request

PASSED_OVER = 32
"""How many tasks that nobody waits for any more one unit looks at."""
MOMENT_MS = 20
"""When to look again, while all tasks are in other hands."""
WORKERS = 1_000
"""How many GetActivityTask calls may wait for the tasks of one activity (states.md section 9)."""
_CROWD = Crowd(
    WORKERS,
    lambda: ActivityWorkerLimitExceeded(
        f"The maximum number of workers polling an activity ({WORKERS}) has been reached."
    ),
)
_OWNED_KEY = {"type": "AWS_OWNED_KEY"}


def operations(setting: Setting) -> Operations:
    """Answer the operations on activities."""
    return {
        "CreateActivity": Operation("write", lambda tx, request: create_activity(tx, request, setting)),
        "DescribeActivity": Operation("read", describe_activity),
        "ListActivities": Operation("read", list_activities),
        "DeleteActivity": Operation("write", delete_activity),
        "GetActivityTask": Operation(
            "poll", lambda tx, request: get_activity_task(tx, request, setting), look=look_activity_task
        ),
    }


def create_activity(tx: Tx, request: Request, setting: Setting) -> dict[str, Any]:
    """CreateActivity, idempotent by name. Raises InvalidName, ActivityLimitExceeded, TooManyTags, ValidationException."""
    tx.alone()
    given = request.input
    name = check_name(given["name"])
    if given.get("encryptionConfiguration", _OWNED_KEY).get("type") != "AWS_OWNED_KEY":
        raise ValidationException("Tasuki encrypts nothing by itself; leave out encryptionConfiguration.")
    arn = build_arn("states", request.region, request.account, f"activity:{name}")
    there = find_activity(tx, arn)
    if there is not None:
        return {"activityArn": arn, "creationDate": there.created_at}
    tags = merged_tags([], given.get("tags") or [], arn)
    count = tx.one(sql.ACTIVITY_COUNT, (request.account, request.region))
    if count is not None and count[0] >= setting.activities:
        raise ActivityLimitExceeded(f"The maximum number of activities ({setting.activities}) has been reached.")
    tx.run(sql.ADD_ACTIVITY, (request.account, request.region, name, tx.now, dumps(tags)))
    return {"activityArn": arn, "creationDate": tx.now}


def _activity(tx: Tx, arn: str) -> ActivityRow:
    """Answer an activity. Raises InvalidArn, ActivityDoesNotExist."""
    found = find_activity(tx, arn)
    if found is None:
        raise ActivityDoesNotExist(arn)
    return found


def describe_activity(tx: Tx, request: Request) -> dict[str, Any]:
    """DescribeActivity. Raises InvalidArn, ActivityDoesNotExist."""
    arn = request.input["activityArn"]
    found = _activity(tx, arn)
    return {
        "activityArn": arn,
        "name": found.name,
        "creationDate": found.created_at,
        "encryptionConfiguration": _OWNED_KEY,
    }


def list_activities(tx: Tx, request: Request) -> dict[str, Any]:
    """ListActivities, by name. Raises `InvalidToken`."""
    account, region = request.account, request.region
    limit = page_size(request.input)
    query = f"activities {account} {region}"
    after = open_token(tx, query, request.input.get("nextToken")) or ""
    rows = tx.all(sql.ACTIVITIES, (account, region, after, limit + 1))
    answer: dict[str, Any] = {
        "activities": [
            {
                "activityArn": build_arn("states", region, account, f"activity:{name}"),
                "name": name,
                "creationDate": created_at,
            }
            for name, created_at in rows[:limit]
        ]
    }
    if len(rows) > limit:
        answer["nextToken"] = page_tokens(tx).seal(query, rows[limit - 1][0])
    return answer


def delete_activity(tx: Tx, request: Request) -> dict[str, Any]:
    """DeleteActivity: its waiting tasks are handed out to nobody; one that isn't there is deleted too. Raises `InvalidArn`."""
    tx.alone()
    found = find_activity(tx, request.input["activityArn"])
    if found is not None:
        tx.run(sql.DROP_TASKS_OF, (found.id,))
        tx.run(sql.DROP_ACTIVITY, (found.id,))
        tx.ring(found.topic, 1 << 30)  # whoever polls hears that it is gone
    return {}


def look_activity_task(tx: Tx, request: Request) -> NotYet | None:
    """Look whether a task waits; on a snapshot, so that an idle worker costs no write."""
    found = _activity(tx, request.input["activityArn"])
    return None if tx.all(sql.TASKS, (found.id, 1)) else _not_yet(tx, found)


def get_activity_task(tx: Tx, request: Request, setting: Setting) -> dict[str, Any] | NotYet:
    """GetActivityTask: hand out the task that has waited the longest. Raises InvalidArn, ActivityDoesNotExist."""
    arn = request.input["activityArn"]
    taken = take_task(tx, setting, arn, request.input.get("workerName"))
    if taken is None:
        found = _activity(tx, arn)
        # What is there all the same is in other hands, and may come back.
        return _not_yet(tx, found, tx.now + MOMENT_MS if tx.all(sql.TASKS, (found.id, 1)) else None)
    token, text = taken
    return {"taskToken": token, "input": text}


def _not_yet(tx: Tx, found: ActivityRow, wake_at: Instant | None = None) -> NotYet:
    return NotYet(found.topic, tx.now + POLL_MS, wake_at, {}, _CROWD)


def take_task(tx: Tx, setting: Setting, arn: str, worker: str | None) -> tuple[str, str] | None:
    """Take the next task of an activity for a worker: (token, input), or None when there is none.

    Raises InvalidArn, ActivityDoesNotExist.
    """
    found = _activity(tx, arn)
    if in_hand(tx):  # a Task of some execution asks
        return _take_for_task(tx, found, worker)
    rows = tx.all(sql.TASKS, (found.id, PASSED_OVER))
    for place, execution, number, attempt in rows:
        run = load(tx, setting, execution, LOAD_FREE)
        if run is None and tx.one(EXECUTION_STATUS, (execution,)) == ("RUNNING",):
            continue  # in other hands
        text = tx.one(sql.TAKE_TASK, (place,))
        frame = run.state.frames.get(number) if run is not None else None
        if text is None or run is None or not _waits(frame, attempt):
            continue
        assert frame is not None
        assert frame.token is not None, "a task of an activity has a token"
        token = frame.token
        proceed(tx, setting, run, (TaskStarted(number, attempt, worker),))
        return token, text[0]
    if len(rows) == PASSED_OVER:
        tx.ring(found.topic)
    return None


def _take_for_task(tx: Tx, found: ActivityRow, worker: str | None) -> tuple[str, str] | None:
    """Take the next task for a Task of the execution in hand; whose task it is, hears of it by its inbox.

    It is not held meanwhile: should its task be over by the time it hears, the token is good for nothing, as with any worker
    that is too late.
    """
    place = 0
    while (row := tx.one(sql.FREE_TASK, (found.id, place))) is not None:
        place, execution, number, attempt = row
        text = tx.one(sql.TAKE_TASK, (place,))
        held = next((run for run in in_hand(tx) if run.id == execution), None)
        frame = held.state.frames.get(number) if held is not None else SavedFrames(tx, execution).frame(number)
        if text is None or frame is None or not _waits(frame, attempt):
            continue
        assert frame.token is not None, "a task of an activity has a token"
        send(tx, execution, TaskStarted(number, attempt, worker))
        return frame.token, text[0]
    return None


def _waits(frame: Frame | None, attempt: int) -> bool:
    """Tell whether a frame still waits for this attempt of its task."""
    return frame is not None and frame.phase is Phase.RUNNING and frame.attempt == attempt
