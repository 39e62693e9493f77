"""RunTask, StopTask, DescribeTasks, ListTasks."""

from typing import Any

from tasuki.services.tasks import queries as sql
from tasuki.services.tasks.errors import InvalidParameterException
from tasuki.services.tasks.finding import find_cluster, find_task, task_name
from tasuki.services.tasks.model import Task, cluster_arn
from tasuki.services.tasks.setting import Setting
from tasuki.services.tasks.shapes import describe
from tasuki.services.tasks.starting import Wish, run_task
from tasuki.services.tasks.stopping import hold, stop
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.arns import build_arn
from tasuki.values.operations import Operation, Operations, Request
from tasuki.values.pages import BadPageToken

MOST_DESCRIBED = MOST_LISTED = 100
LONGEST_TOKEN = 64
"""Characters of a clientToken (API reference, "RunTask")."""


class Tasks:
    """The operations on tasks."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def run(self, tx: Tx, request: Request) -> dict[str, Any]:
        """RunTask. Answers `tasks` and `failures`; a 200 can carry both."""
        given = request.input
        trace = request.trace or f"Root=1-{tx.now // 1000:08x}-{tx.chance.hex(24)}"
        token = given.get("clientToken")
        if token is not None and len(token) > LONGEST_TOKEN:
            raise InvalidParameterException(f"clientToken may have {LONGEST_TOKEN} characters; it has {len(token)}.")
        parameters = {key: value for key, value in given.items() if key != "clientToken"}
        wish = Wish(parameters, request.account, request.region, trace, token=token)
        ran = run_task(tx, self._setting, wish)
        return {"tasks": [describe(task, tags=True) for task in ran.tasks], "failures": ran.failures}

    def stop(self, tx: Tx, request: Request) -> dict[str, Any]:
        """StopTask. desiredStatus is STOPPED at once; lastStatus when nothing of the task is left."""
        given = request.input
        cluster = find_cluster(tx, request.account, request.region, given.get("cluster"))
        name = task_name(given["task"])
        hold(tx, [name])
        row = tx.one(sql.TASK, (request.account, request.region, name))
        if row is None or Task.of(row).cluster != cluster:
            raise InvalidParameterException("The referenced task was not found.")
        return {"task": describe(stop(tx, self._setting, row, given.get("reason") or "Task stopped by user"))}

    @staticmethod
    def describe(tx: Tx, request: Request) -> dict[str, Any]:
        """DescribeTasks. What is not there is a failure with reason MISSING."""
        given = request.input
        wanted = given["tasks"]
        if not wanted:
            raise InvalidParameterException("Tasks cannot be empty.")
        if len(wanted) > MOST_DESCRIBED:
            raise InvalidParameterException(f"No more than {MOST_DESCRIBED} tasks can be described at once.")
        cluster = find_cluster(tx, request.account, request.region, given.get("cluster"))
        tags = "TAGS" in given.get("include", ())
        found, failures = [], []
        for one in wanted:
            task = find_task(tx, request.account, request.region, cluster, one)
            if task is not None:
                found.append(describe(task, tags=tags))
            else:
                arn = build_arn("ecs", request.region, request.account, f"task/{cluster}/{task_name(one)}")
                failures.append({"arn": arn, "reason": "MISSING"})
        return {"tasks": found, "failures": failures}

    @staticmethod
    def list(tx: Tx, request: Request) -> dict[str, Any]:
        """ListTasks, oldest first. `desiredStatus` is RUNNING unless told otherwise."""
        given = request.input
        cluster = find_cluster(tx, request.account, request.region, given.get("cluster"))
        limit = page_size(given.get("maxResults"))
        if given.get("serviceName"):
            return {"taskArns": []}
        status = given.get("desiredStatus", "RUNNING")
        instance = (given.get("containerInstance") or "").rpartition("/")[2]
        filters = (given.get("family", ""), given.get("startedBy", ""), given.get("launchType", ""), instance)
        query = "|".join(("ListTasks", cluster_arn(request.account, request.region, cluster), status, *filters))
        after = open_token(tx, query, given.get("nextToken"), 0)
        doubled = [one for value in filters for one in (value, value)]
        rows = tx.all(sql.TASK_PAGE, (request.account, request.region, cluster, status, after, *doubled, limit + 1))
        arns = [build_arn("ecs", request.region, request.account, f"task/{cluster}/{name}") for _, name in rows[:limit]]
        answer: dict[str, Any] = {"taskArns": arns}
        if len(rows) > limit:
            answer["nextToken"] = page_tokens(tx).seal(query, rows[limit - 1][0])
        return answer

    def operations(self) -> Operations:
        """Answer the table."""
        return {
            "RunTask": Operation("write", self.run),
            "StopTask": Operation("write", self.stop),
            "DescribeTasks": Operation("read", self.describe),
            "ListTasks": Operation("read", self.list),
        }


def page_size(asked: int | None) -> int:
    """Answer a page's size. Raises `InvalidParameterException`."""
    size = asked or MOST_LISTED
    if not 1 <= size <= MOST_LISTED:
        raise InvalidParameterException(f"maxResults must be between 1 and {MOST_LISTED}.")
    return size


def open_token(tx: Tx, query: str, token: str | None, start: Any) -> Any:
    """Answer where a listing goes on. Raises `InvalidParameterException`."""
    if not token:
        return start
    try:
        return page_tokens(tx).open(query, token)
    except BadPageToken:
        raise InvalidParameterException("Invalid token.") from None
