"""The operations of ECS that this room serves: clusters, task definitions, tags; tasks are in `tasks_api.py`."""

from collections.abc import Callable, Mapping
from typing import Any

from tasuki.services.tasks import queries as sql
from tasuki.services.tasks.definitions import NAME, define
from tasuki.services.tasks.errors import (
    ClientException,
    ClusterContainsTasksException,
    InvalidParameterException,
    ResourceNotFoundException,
)
from tasuki.services.tasks.finding import cluster_name, find_cluster, find_definition
from tasuki.services.tasks.model import DEFAULT_CLUSTER, cluster_arn, definition_arn
from tasuki.services.tasks.setting import Setting
from tasuki.services.tasks.tasks_api import Tasks, open_token, page_size
from tasuki.store.pages import page_tokens
from tasuki.store.store import Row, Tx
from tasuki.values.arns import build_arn, parse_arn
from tasuki.values.documents import dumps, loads
from tasuki.values.operations import Operation, Operations, Request

MOST_TAGS = 50
_LAST = "\U0010ffff"


def operations(setting: Setting) -> Operations:
    """Answer the room's table of operations."""
    return {
        "CreateCluster": Operation("write", create_cluster),
        "DeleteCluster": Operation("write", delete_cluster),
        "DescribeClusters": Operation("read", describe_clusters),
        "ListClusters": Operation("read", list_clusters),
        "RegisterTaskDefinition": Operation("write", register),
        "DeregisterTaskDefinition": Operation("write", deregister),
        "DescribeTaskDefinition": Operation("read", describe_definition),
        "ListTaskDefinitions": Operation("read", list_definitions),
        "ListTaskDefinitionFamilies": Operation("read", list_families),
        "TagResource": Operation("write", tag),
        "UntagResource": Operation("write", untag),
        "ListTagsForResource": Operation("read", list_tags),
        **Tasks(setting).operations(),
    }


# -- clusters ---------------------------------------------------------------------------------------------------


def create_cluster(tx: Tx, request: Request) -> dict[str, Any]:
    """CreateCluster. One that is there already is answered as it is."""
    tx.alone()
    given = request.input
    name = given.get("clusterName") or DEFAULT_CLUSTER
    if not NAME.match(name):
        raise InvalidParameterException("Invalid cluster name.")
    row = tx.one(sql.CLUSTER, (request.account, request.region, name))
    if row is None or row[1] != "ACTIVE":
        settings, tags = given.get("settings", []), _checked(given.get("tags", []))
        tx.run(sql.PUT_CLUSTER, (request.account, request.region, name, dumps(settings), dumps(tags), tx.now))
    return {"cluster": _cluster(tx, request, name)}


def delete_cluster(tx: Tx, request: Request) -> dict[str, Any]:
    """DeleteCluster. It is shown as INACTIVE from then on."""
    tx.alone()
    name = find_cluster(tx, request.account, request.region, request.input["cluster"])
    if sum(tx.all(sql.COUNT_TASKS, (request.account, request.region, name))[0]):
        raise ClusterContainsTasksException
    if tx.one(sql.CLUSTER, (request.account, request.region, name)) is None:
        tx.run(sql.PUT_CLUSTER, (request.account, request.region, name, "[]", "[]", tx.now))
    tx.run(sql.END_CLUSTER, (request.account, request.region, name))
    return {"cluster": _cluster(tx, request, name)}


def describe_clusters(tx: Tx, request: Request) -> dict[str, Any]:
    """DescribeClusters; the default one when none is named."""
    found, failures = [], []
    for given in request.input.get("clusters") or [DEFAULT_CLUSTER]:
        name = cluster_name(given)
        if name == DEFAULT_CLUSTER or tx.one(sql.CLUSTER, (request.account, request.region, name)) is not None:
            found.append(_cluster(tx, request, name))
        else:
            failures.append({"arn": cluster_arn(request.account, request.region, name), "reason": "MISSING"})
    return {"clusters": found, "failures": failures}


def list_clusters(tx: Tx, request: Request) -> dict[str, Any]:
    """ListClusters, by name."""
    limit = page_size(request.input.get("maxResults"))
    after = open_token(tx, "ListClusters", request.input.get("nextToken"), "")
    names = [row[0] for row in tx.all(sql.CLUSTER_PAGE, (request.account, request.region, after, limit + 1))]
    if after < DEFAULT_CLUSTER and tx.one(sql.CLUSTER, (request.account, request.region, DEFAULT_CLUSTER)) is None:
        names = sorted([*names, DEFAULT_CLUSTER])
    answer: dict[str, Any] = {
        "clusterArns": [cluster_arn(request.account, request.region, one) for one in names[:limit]]
    }
    if len(names) > limit:
        answer["nextToken"] = page_tokens(tx).seal("ListClusters", names[limit - 1])
    return answer


def _cluster(tx: Tx, request: Request, name: str) -> dict[str, Any]:
    row = tx.one(sql.CLUSTER, (request.account, request.region, name)) or (name, "ACTIVE", "[]", "[]")
    running, pending = tx.all(sql.COUNT_TASKS, (request.account, request.region, name))[0]
    return {
        "clusterArn": cluster_arn(request.account, request.region, name),
        "clusterName": name,
        "status": row[1],
        "registeredContainerInstancesCount": 0,
        "runningTasksCount": running,
        "pendingTasksCount": pending,
        "activeServicesCount": 0,
        "statistics": [],
        "tags": loads(row[3]),
        "settings": loads(row[2]),
        "capacityProviders": [],
        "defaultCapacityProviderStrategy": [],
    }


# -- task definitions -------------------------------------------------------------------------------------------


def register(tx: Tx, request: Request) -> dict[str, Any]:
    """RegisterTaskDefinition: the family's next revision."""
    tx.alone()
    document = define(request.input)
    tags = _checked(request.input.get("tags", []))
    where = (request.account, request.region, document["family"])
    revision = (tx.all(sql.LAST_REVISION, where)[0][0] or 0) + 1
    registrar = build_arn("iam", "", request.account, "root")
    tx.run(sql.ADD_DEFINITION, (*where, revision, dumps(document), dumps(tags), tx.now, registrar))
    row = tx.one(sql.DEFINITION, (*where, revision))
    assert row is not None
    return {"taskDefinition": _definition(request, row), "tags": tags}


def deregister(tx: Tx, request: Request) -> dict[str, Any]:
    """DeregisterTaskDefinition. Running tasks don't notice."""
    tx.alone()
    name = request.input["taskDefinition"]
    if ":" not in name.rpartition("/")[2]:
        raise ClientException("The revision must be given: family:revision, or an ARN.")
    row = find_definition(tx, request.account, request.region, name)
    if row is None:
        raise ClientException("Unable to describe task definition.")
    if row[3] == "ACTIVE":
        tx.run(sql.END_DEFINITION, (tx.now, row[0]))
        row = find_definition(tx, request.account, request.region, name)
        assert row is not None
    return {"taskDefinition": _definition(request, row)}


def describe_definition(tx: Tx, request: Request) -> dict[str, Any]:
    """DescribeTaskDefinition: a revision, or a family's newest active one."""
    row = find_definition(tx, request.account, request.region, request.input["taskDefinition"])
    if row is None:
        raise ClientException("Unable to describe task definition.")
    answer = {"taskDefinition": _definition(request, row)}
    if "TAGS" in request.input.get("include", ()):
        answer["tags"] = loads(row[5])
    return answer


def _definition(request: Request, row: Row) -> dict[str, Any]:
    _, family, revision, status, document, _, registered_at, registered_by, deregistered_at = row
    shown = {
        **loads(document),
        "taskDefinitionArn": definition_arn(request.account, request.region, family, revision),
        "revision": revision,
        "status": status,
        "registeredAt": registered_at,
        "registeredBy": registered_by,
    }
    if deregistered_at is not None:
        shown["deregisteredAt"] = deregistered_at
    return shown


def list_definitions(tx: Tx, request: Request) -> dict[str, Any]:
    """ListTaskDefinitions: ARNs of one family or of all, in order of family and revision, or reversed."""
    given = request.input
    family, status, down = given.get("familyPrefix", ""), given.get("status", "ACTIVE"), given.get("sort") == "DESC"
    limit = page_size(given.get("maxResults"))
    query = f"ListTaskDefinitions|{family}|{status}|{down}"
    after = open_token(tx, query, given.get("nextToken"), f"{_LAST}:0" if down else ":0")
    after_family, _, after_revision = after.rpartition(":")
    rows = tx.all(
        sql.DEFINITIONS_DOWN if down else sql.DEFINITIONS_UP,
        (request.account, request.region, status, family, family, after_family, int(after_revision), limit + 1),
    )
    arns = [definition_arn(request.account, request.region, *row) for row in rows[:limit]]
    answer: dict[str, Any] = {"taskDefinitionArns": arns}
    if len(rows) > limit:
        answer["nextToken"] = page_tokens(tx).seal(query, f"{rows[limit - 1][0]}:{rows[limit - 1][1]}")
    return answer


def list_families(tx: Tx, request: Request) -> dict[str, Any]:
    """ListTaskDefinitionFamilies: those with an active revision, without one, or all."""
    given = request.input
    prefix, status = given.get("familyPrefix", ""), given.get("status", "ALL")
    limit = page_size(given.get("maxResults"))
    query = f"ListTaskDefinitionFamilies|{prefix}|{status}"
    after = open_token(tx, query, given.get("nextToken"), "")
    where = (request.account, request.region, prefix, prefix, after, status, status, limit + 1)
    families = [row[0] for row in tx.all(sql.FAMILIES, where)]
    answer: dict[str, Any] = {"families": families[:limit]}
    if len(families) > limit:
        answer["nextToken"] = page_tokens(tx).seal(query, families[limit - 1])
    return answer


# -- tags -------------------------------------------------------------------------------------------------------


def tag(tx: Tx, request: Request) -> dict[str, Any]:
    """TagResource: a cluster, a task definition or a task."""
    tx.alone()
    tags, keep = _tagged(tx, request)
    merged = {**{one["key"]: one for one in tags}, **{one["key"]: one for one in _checked(request.input["tags"])}}
    if len(merged) > MOST_TAGS:
        raise InvalidParameterException(f"A resource cannot have more than {MOST_TAGS} tags.")
    keep(list(merged.values()))
    return {}


def untag(tx: Tx, request: Request) -> dict[str, Any]:
    """UntagResource."""
    tx.alone()
    tags, keep = _tagged(tx, request)
    gone = set(request.input["tagKeys"])
    keep([one for one in tags if one["key"] not in gone])
    return {}


def list_tags(tx: Tx, request: Request) -> dict[str, Any]:
    """ListTagsForResource."""
    return {"tags": _tagged(tx, request)[0]}


def _checked(tags: list[Mapping[str, str]]) -> list[dict[str, str]]:
    checked = [{"key": one.get("key", ""), "value": one.get("value", "")} for one in tags]
    keys = [one["key"] for one in checked]
    if "" in keys:
        raise InvalidParameterException("Tag keys cannot be empty.")
    if len(set(keys)) < len(keys):
        raise InvalidParameterException("Tag keys must be unique.")
    if len(keys) > MOST_TAGS:
        raise InvalidParameterException(f"A resource cannot have more than {MOST_TAGS} tags.")
    return checked


def _tagged(tx: Tx, request: Request) -> tuple[list[dict[str, str]], Callable[[list[dict[str, str]]], object]]:
    """Find what an ARN names: its tags, and how to keep others."""
    arn = parse_arn(request.input["resourceArn"])
    if arn is None or arn.service != "ecs":
        raise InvalidParameterException("Invalid arn syntax.")
    kind, _, rest = arn.resource.partition("/")
    if kind == "cluster":
        row = tx.one(sql.CLUSTER, (request.account, request.region, rest))
        if row is not None:
            return loads(row[3]), lambda tags: tx.run(
                sql.TAG_CLUSTER, (dumps(tags), request.account, request.region, rest)
            )
    elif kind == "task-definition":
        found = find_definition(tx, request.account, request.region, rest)
        if found is not None:
            return loads(found[5]), lambda tags: tx.run(sql.TAG_DEFINITION, (dumps(tags), found[0]))
    elif kind == "task":
        task = tx.one(sql.TASK, (request.account, request.region, rest.rpartition("/")[2]))
        if task is not None:
            return loads(task[-1]), lambda tags: tx.run(sql.TAG_TASK, (dumps(tags), task[0]))
    raise ResourceNotFoundException(f"The resource {arn} was not found.")
