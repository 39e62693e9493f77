"""Tasks as ECS shows them, and as Step Functions shows what ECS showed it (ecs.md sections 3, 9, 10). Pure."""

import hashlib
from collections.abc import Mapping
from typing import Any

from tasuki.services.tasks.model import Task
from tasuki.services.tasks.setting import ALONE
from tasuki.values.arns import build_arn

TIMES = (
    ("createdAt", "created_at"),
    ("pullStartedAt", "pulled_at"),
    ("pullStoppedAt", "pulled_at"),
    ("startedAt", "started_at"),
    ("connectivityAt", "pulled_at"),
    ("stoppingAt", "stopping_at"),
    ("executionStoppedAt", "execution_stopped_at"),
    ("stoppedAt", "stopped_at"),
)


def describe(task: Task, *, tags: bool = False) -> dict[str, Any]:
    """Answer a task in ECS's own shape. Instants stay instants."""
    document = task.document
    shown: dict[str, Any] = {
        "attachments": _attachments(task),
        "attributes": _attributes(task),
        "availabilityZone": f"{task.region}a",
        "clusterArn": task.cluster_arn,
        "containers": [_container(task, one) for one in document["containers"]],
        "cpu": document["cpu"],
        "desiredStatus": task.desired_status,
        "enableExecuteCommand": False,
        "group": document["group"],
        "inferenceAccelerators": [],
        "lastStatus": task.last_status,
        "launchType": task.launch_type,
        "memory": document["memory"],
        "overrides": document["overrides"],
        "tags": task.tags if tags else [],
        "taskArn": task.arn,
        "taskDefinitionArn": task.definition_arn,
        "version": task.version,
    }
    if task.pulled_at is not None:
        shown["connectivity"] = "CONNECTED"
    if task.launch_type == "EC2" and task.node not in {None, ALONE}:
        shown["containerInstanceArn"] = instance_arn(task)
    if task.launch_type == "FARGATE":
        shown["platformVersion"] = document["platformVersion"]
        shown["ephemeralStorage"] = document["ephemeralStorage"]
        if task.stopped_at is None:
            shown["platformFamily"] = "Linux"
    later = {
        "startedBy": task.started_by,
        "stopCode": task.stop_code,
        "stoppedReason": task.stopped_reason,
        **{member: getattr(task, column) for member, column in TIMES},
    }
    if (task.stopped_reason or "").startswith("CannotPullContainerError"):
        later["pullStartedAt"] = later["pullStoppedAt"] = None  # recorded: what was never pulled shows no times
    shown.update((member, value) for member, value in later.items() if value is not None)
    return shown


def _container(task: Task, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """One container: what RunTask fixed, and what it has come to."""
    come_to = task.containers.get(fixed["name"], {})
    shown = {
        "containerArn": build_arn(
            "ecs", task.region, task.account, f"container/{task.cluster}/{task.name}/{fixed['id']}"
        ),
        "taskArn": task.arn,
        "name": fixed["name"],
        "image": fixed["image"],
        "lastStatus": come_to.get("lastStatus", "STOPPED" if task.stopped_at is not None else "PENDING"),
        "networkBindings": [],
        "networkInterfaces": _interfaces(task),
        "cpu": str(fixed["cpu"]),
        **{key: str(fixed[key]) for key in ("memory", "memoryReservation") if fixed.get(key) is not None},
    }
    if task.pulled_at is not None:
        shown["runtimeId"] = (
            f"{task.name}-{int(hashlib.sha256(fixed['name'].encode()).hexdigest()[:8], 16) % 10**10:010d}"
        )
    for member in ("imageDigest", "exitCode", "reason"):
        if come_to.get(member) is not None:
            shown[member] = come_to[member]
    return shown


def instance_arn(task: Task) -> str:
    """Name a task's node as ECS names the instance that a task runs on."""
    return build_arn("ecs", task.region, task.account, f"container-instance/{task.cluster}/{task.node}")


def _attributes(task: Task) -> list[dict[str, str]]:
    """Fargate's attribute, and ours: where the task comes from, and, where there are several, which node has it."""
    found = [{"name": "ecs.cpu-architecture", "value": task.document["architecture"]}]
    found.append({"name": "trace", "value": task.trace})
    if task.node not in {None, ALONE}:
        found.append({"name": "node", "value": task.node or ""})
    if task.origin:
        found.append({"name": "origin", "value": task.origin})
    return found


def _attachments(task: Task) -> list[dict[str, Any]]:
    """The network interface of an `awsvpc` task. Tasks share this machine's network, so its address is loopback's."""
    network = task.document.get("network")
    if network is None:
        return []
    subnet = [{"name": "subnetId", "value": network["subnet"]}] if network["subnet"] else []
    if task.pulled_at is None:
        return [{"id": network["id"], "type": "ElasticNetworkInterface", "status": "PRECREATED", "details": subnet}]
    details = [
        *subnet,
        {"name": "networkInterfaceId", "value": f"eni-{task.name[:17]}"},
        {"name": "macAddress", "value": "00:00:00:00:00:00"},
        {"name": "privateDnsName", "value": "localhost"},
        {"name": "privateIPv4Address", "value": "127.0.0.1"},
    ]
    stopped = task.stopped_at is not None
    kind, status = ("eni", "DELETED") if stopped else ("ElasticNetworkInterface", "ATTACHED")
    return [{"id": network["id"], "type": kind, "status": status, "details": details}]


def _interfaces(task: Task) -> list[dict[str, str]]:
    network = task.document.get("network")
    if network is None or task.pulled_at is None:
        return []
    return [{"attachmentId": network["id"], "privateIpv4Address": "127.0.0.1"}]


def in_states(task: Task) -> dict[str, Any]:
    """Answer a task as Step Functions shows it: PascalCase, with the empty lists of its own client filled in."""
    shown = describe(task, tags=True)
    shown["containers"] = [{**one, "gpuIds": [], "managedAgents": []} for one in shown["containers"]]
    overrides = shown["overrides"]
    shown["overrides"] = {
        **overrides,
        "containerOverrides": [
            {"command": [], "environment": [], "environmentFiles": [], "resourceRequirements": [], **one}
            for one in overrides.get("containerOverrides", ())
        ],
        "inferenceAcceleratorOverrides": [],
    }
    pascal = to_pascal(shown)
    assert isinstance(pascal, dict)
    return pascal


def to_pascal(value: Any) -> Any:
    """Raise the first letter of every member name, at every depth, in Step Functions' order (alphabetical)."""
    if isinstance(value, dict):
        return {key[:1].upper() + key[1:]: to_pascal(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [to_pascal(one) for one in value]
    return value


def to_camel(value: Any) -> Any:
    """Lower the first letter of every member name, at every depth."""
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: to_camel(one) for key, one in value.items()}
    if isinstance(value, list):
        return [to_camel(one) for one in value]
    return value
