"""Clusters, definitions and tasks by any of their names: a short one, or an ARN."""

import re

from tasuki.services.tasks import queries as sql
from tasuki.services.tasks.errors import ClusterNotFoundException, InvalidParameterException
from tasuki.services.tasks.model import DEFAULT_CLUSTER, Task
from tasuki.store.store import Row, Tx
from tasuki.values.arns import parse_arn

_TASK_ID = re.compile(r"^[0-9a-f-]+$")


def cluster_name(given: str | None) -> str:
    """Answer a cluster's name from its name or ARN; the default one when none is given."""
    if not given:
        return DEFAULT_CLUSTER
    return given.rpartition("cluster/")[2] if ":" in given else given


def find_cluster(tx: Tx, account: str, region: str, given: str | None) -> str:
    """Answer the name of an active cluster. `default` is always there. Raises `ClusterNotFoundException`."""
    name = cluster_name(given)
    row = tx.one(sql.CLUSTER, (account, region, name))
    if (row is None and name == DEFAULT_CLUSTER) or (row is not None and row[1] == "ACTIVE"):
        return name
    raise ClusterNotFoundException


def find_definition(tx: Tx, account: str, region: str, given: str) -> Row | None:
    """Find a revision by `family` (the newest active one), `family:revision` or ARN."""
    name = given.rpartition("task-definition/")[2] if given.startswith("arn:") else given
    family, _, revision = name.partition(":")
    if not revision:
        return tx.one(sql.ACTIVE_DEFINITION, (account, region, family))
    if not revision.isdigit():
        raise InvalidParameterException(f"Invalid revision number. Number: {revision}")
    return tx.one(sql.DEFINITION, (account, region, family, int(revision)))


def task_name(given: str) -> str:
    """Answer a task's id from its id or ARN. Raises `InvalidParameterException`."""
    name = given
    if given.startswith("arn:"):
        arn = parse_arn(given)
        if arn is None or arn.service != "ecs" or not arn.resource.startswith("task/"):
            raise InvalidParameterException("Invalid identifier: not the ARN of a task.")
        name = given.rpartition("/")[2]
    if len(name) not in {32, 36} or not _TASK_ID.match(name):
        raise InvalidParameterException("taskId length should be one of [32,36]")
    return name


def find_task(tx: Tx, account: str, region: str, cluster: str, given: str) -> Task | None:
    """Find a task of a cluster by id or ARN."""
    row = tx.one(sql.TASK, (account, region, task_name(given)))
    if row is None:
        return None
    task = Task.of(row)
    return task if task.cluster == cluster else None
