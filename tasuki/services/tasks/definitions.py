"""What a task definition may be. Pure: a request in, the definition that is kept out (ecs.md section 2).

Texts in quotes from AWS where they are known; limits are those of the ECS API reference, RegisterTaskDefinition.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tasuki.services.tasks.errors import ClientException

NAME = re.compile(r"^[A-Za-z0-9_-]{1,255}$")
LEAST_MEMORY_MIB = 6
LONGEST_STOP_TIMEOUT_S = 120
"""Fargate's bound. Other launch types have none."""
DEFAULT_STOP_TIMEOUT_S = 30

_FARGATE_MIB: dict[int, Sequence[int]] = {
    256: (512, 1024, 2048),
    512: range(1024, 4096 + 1, 1024),
    1024: range(2048, 8192 + 1, 1024),
    2048: range(4096, 16384 + 1, 1024),
    4096: range(8192, 30720 + 1, 1024),
    8192: range(16384, 61440 + 1, 4096),
    16384: range(32768, 122880 + 1, 8192),
}
_KEPT = (
    "taskRoleArn",
    "executionRoleArn",
    "networkMode",
    "runtimePlatform",
    "requiresCompatibilities",
    "pidMode",
    "ipcMode",
    "proxyConfiguration",
    "inferenceAccelerators",
    "ephemeralStorage",
    "enableFaultInjection",
)
_CONTAINER_DEFAULTS: dict[str, Any] = {
    "cpu": 0,
    "portMappings": [],
    "essential": True,
    "environment": [],
    "mountPoints": [],
    "volumesFrom": [],
    "systemControls": [],
}


def define(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check a RegisterTaskDefinition request and answer the members that are kept.

    Raises `ClientException`.
    """
    family = given["family"]
    if not NAME.match(family):
        raise ClientException("Family contains invalid characters.")
    containers = given["containerDefinitions"]
    if not containers:
        raise ClientException("Container list cannot be empty.")
    cpu, memory = cpu_units(given.get("cpu")), memory_mib(given.get("memory"))
    defined = [_container(one, memory) for one in containers]
    names = [one["name"] for one in defined]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ClientException(f"Container names must be unique; '{twice}' is there more than once.")
    if not any(one["essential"] for one in defined):
        raise ClientException("TaskDefinition does not have any essential container.")
    _dependencies(defined)
    _fits(defined, cpu, memory)
    if "FARGATE" in given.get("requiresCompatibilities", ()):
        _fargate(given, cpu, memory, defined)
    kept = {name: given[name] for name in _KEPT if given.get(name) is not None}
    if cpu is not None:
        kept["cpu"] = str(cpu)
    if memory is not None:
        kept["memory"] = str(memory)
    return {
        "family": family,
        "containerDefinitions": defined,
        "volumes": given.get("volumes", []),
        "placementConstraints": given.get("placementConstraints", []),
        "compatibilities": ["EC2", "FARGATE"] if given.get("networkMode") == "awsvpc" else ["EXTERNAL", "EC2"],
        **kept,
    }


def _container(given: Mapping[str, Any], task_mib: int | None) -> dict[str, Any]:
    name, image = given.get("name"), given.get("image")
    if not name:
        raise ClientException("Container.name should not be null or empty.")
    if not NAME.match(name):
        raise ClientException("Container.name contains invalid characters.")
    if not image:
        raise ClientException("Container.image should not be null or empty.")
    hard, soft = given.get("memory"), given.get("memoryReservation")
    if hard is None and soft is None and task_mib is None:
        raise ClientException(
            f"Invalid setting for container '{name}'. At least one of 'memory' or 'memoryReservation' must be specified."
        )
    check_memory(name, hard, soft)
    stop = given.get("stopTimeout")
    if stop is not None and stop < 0:
        raise ClientException(f"Invalid setting for container '{name}'. 'stopTimeout' must not be negative.")
    if any(not pair.get("name") for pair in given.get("environment", ())):
        raise ClientException("Environment variable name should not be null or empty.")
    refuse_what_no_runner_can(name, given)
    return {**_CONTAINER_DEFAULTS, **{key: value for key, value in given.items() if value is not None}}


def check_memory(name: str, hard: int | None, soft: int | None) -> None:
    """Check a container's hard and soft limit, in MiB."""
    for key, value in (("memory", hard), ("memoryReservation", soft)):
        if value is not None and value < LEAST_MEMORY_MIB:
            raise ClientException(
                f"Invalid setting for container '{name}'. '{key}' must be at least {LEAST_MEMORY_MIB} MiB."
            )
    if hard is not None and soft is not None and hard < soft:
        raise ClientException(
            f"Invalid setting for container '{name}'. 'memory' must be greater than 'memoryReservation'."
        )


def refuse_what_no_runner_can(name: str, given: Mapping[str, Any]) -> None:
    """Refuse what would otherwise be ignored in silence and change what the task does."""
    for key in ("secrets", "environmentFiles"):
        if given.get(key):
            raise ClientException(
                f"Container '{name}': '{key}' is not supported here; give the values in 'environment'."
            )
    if (given.get("restartPolicy") or {}).get("enabled"):
        raise ClientException(f"Container '{name}': 'restartPolicy' is not supported here; use the machine's Retry.")


def _dependencies(containers: Sequence[Mapping[str, Any]]) -> None:
    waits = {one["name"]: [d.get("containerName") for d in one.get("dependsOn", ())] for one in containers}
    for one in containers:
        for dependency in one.get("dependsOn", ()):
            other, condition = dependency.get("containerName"), dependency.get("condition")
            if other not in waits or other == one["name"]:
                raise ClientException(
                    f"Container '{one['name']}' depends on '{other}', which is not another container here."
                )
            if condition not in {"START", "COMPLETE", "SUCCESS"}:
                raise ClientException(
                    f"Container '{one['name']}': dependsOn condition '{condition}' is not supported here; "
                    "START, COMPLETE and SUCCESS are."
                )
            essential = next(c for c in containers if c["name"] == other)["essential"]
            if condition != "START" and essential:
                raise ClientException(
                    f"Container '{other}' is essential, so no container can wait for its end ({condition})."
                )
    while waits:
        free = [name for name, others in waits.items() if not any(other in waits for other in others)]
        if not free:
            raise ClientException(f"Containers depend on each other in a circle: {', '.join(sorted(waits))}.")
        for name in free:
            del waits[name]


def _fits(containers: Sequence[Mapping[str, Any]], cpu: int | None, memory: int | None) -> None:
    if cpu is not None and (asked := sum(one["cpu"] for one in containers)) > cpu:
        raise ClientException(
            f"Invalid 'cpu' setting for container: the total of containers ({asked}) exceeds the task's {cpu}."
        )
    if memory is not None:
        for one in containers:
            if one.get("memory") is not None and one["memory"] > memory:
                raise ClientException(
                    f"Invalid setting for container '{one['name']}'. 'memory' ({one['memory']}) exceeds the task's ({memory})."
                )
        soft = sum(one.get("memoryReservation") or 0 for one in containers)
        if soft > memory:
            raise ClientException(
                f"The containers' 'memoryReservation' ({soft}) exceeds the task's 'memory' ({memory})."
            )


def _fargate(
    given: Mapping[str, Any], cpu: int | None, memory: int | None, containers: Sequence[Mapping[str, Any]]
) -> None:
    if given.get("networkMode") != "awsvpc":
        raise ClientException("Fargate only supports network mode ‘awsvpc’.")  # noqa: RUF001 - AWS's own quotes
    if cpu is None:
        raise ClientException("Fargate requires that 'cpu' be defined at the task level.")
    if memory is None:
        raise ClientException("Fargate requires that 'memory' be defined at the task level.")
    if memory not in _FARGATE_MIB.get(cpu, ()):
        raise ClientException("No Fargate configuration exists for given values.")
    for one in containers:
        if (one.get("stopTimeout") or 0) > LONGEST_STOP_TIMEOUT_S:
            raise ClientException(
                f"Invalid setting for container '{one['name']}'. 'stopTimeout' must not exceed {LONGEST_STOP_TIMEOUT_S} on Fargate."
            )


def memory_mib(text: str | None) -> int | None:
    """Read a task's memory: MiB as a number, or `2 GB`. Raises `ClientException`."""
    return _size(text, "memory", r"GB", 1024)


def cpu_units(text: str | None) -> int | None:
    """Read a task's CPU: units as a number, or `1 vCPU`. Raises `ClientException`."""
    return _size(text, "cpu", r"VCPU", 1024)


def _size(text: str | None, name: str, unit: str, factor: int) -> int | None:
    if text is None or text == "":
        return None
    found = re.match(rf"^\s*(\d*\.?\d+)\s*({unit})?\s*$", text.upper())
    amount = round(float(found[1]) * (factor if found[2] else 1)) if found else 0
    if amount <= 0 or (found and not found[2] and "." in found[1]):
        raise ClientException(f"Invalid '{name}' setting for task: {text}")
    return amount
