"""RunTask: from a request to rows. What it starts begins later, when a node claims it (`attending.py`)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasuki.services.switchboard import Caller
from tasuki.services.tasks import queries as sql
from tasuki.services.tasks.claiming import is_elsewhere
from tasuki.services.tasks.definitions import check_memory, cpu_units, memory_mib
from tasuki.services.tasks.errors import ClientException, ConflictException, InvalidParameterException
from tasuki.services.tasks.finding import find_cluster, find_definition
from tasuki.services.tasks.model import Task, UnmappedImage, find_image, reserved_mib
from tasuki.services.tasks.placing import Need, Refusal, find_room
from tasuki.services.tasks.setting import Setting
from tasuki.services.tasks.telling import tell
from tasuki.store.store import Row, Tx
from tasuki.values.arns import build_arn
from tasuki.values.documents import dumps, loads

MOST_AT_ONCE = 10
LONGEST_OVERRIDES = 8192


@dataclass(frozen=True, slots=True)
class Wish:
    """A RunTask and on whose behalf it is made. `parameters` are ECS's own (camelCase)."""

    parameters: Mapping[str, Any]
    account: str
    region: str
    trace: str
    token: str | None = None
    watcher: str | None = None
    origin: str = ""
    strict: bool = True
    """Refuse an image without mapping here and now; else the task stops as one whose image cannot be pulled."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of it."""

    tasks: list[Task]
    failures: list[dict[str, str]]


def wish_of(given: dict[str, Any], caller: Caller) -> Wish:
    """Answer what another room wants run: once for one `caller.idempotency`."""
    return Wish(
        parameters=given,
        account=caller.account,
        region=caller.region,
        trace=caller.trace,
        token=hashlib.sha256(caller.idempotency.encode()).hexdigest(),
        watcher=caller.watcher,
        origin=caller.origin,
        strict=False,
    )


def run_task(tx: Tx, setting: Setting, wish: Wish) -> Run:
    """Start tasks, or answer what the same token started before.

    Raises `ClientException`, `InvalidParameterException`, `ClusterNotFoundException`, `ConflictException`.
    """
    given = wish.parameters
    count = given.get("count", 1)
    if not 1 <= count <= MOST_AT_ONCE:
        raise InvalidParameterException(f"count must be between 1 and {MOST_AT_ONCE}.")
    request = hashlib.sha256(dumps(dict(given)).encode()).hexdigest()
    if wish.token is not None:
        before = _before(tx, wish, request)
        if before is not None:
            return before
    cluster = find_cluster(tx, wish.account, wish.region, given.get("cluster"))
    row = find_definition(tx, wish.account, wish.region, given["taskDefinition"])
    if row is None:
        raise ClientException("TaskDefinition not found.")
    if row[3] != "ACTIVE":
        raise ClientException("TaskDefinition is inactive")
    definition = loads(row[4])
    overrides = _overrides(given, definition)
    if wish.strict:
        _check_images(tx, setting, definition)
    memory = reserved_mib(definition, overrides)
    room, refusal = find_room(tx, setting, Need(memory, _images(definition)), count)
    failures = [_no_room(wish, refusal, setting)] * (count - room)
    if room == 0:
        return Run([], failures)
    batch = tx.chance.hex(32)
    fixed = _fixed(tx, wish, row, definition, overrides)
    tags = _tags(given, row)
    for _ in range(room):
        tx.run(
            sql.ADD_TASK,
            (
                tx.chance.hex(32),
                wish.account,
                wish.region,
                cluster,
                row[1],
                row[2],
                row[0],
                memory,
                wish.watcher,
                batch,
                wish.trace,
                wish.origin,
                given.get("startedBy"),
                _launch_type(given, definition),
                tx.now,
                dumps({**fixed, "containers": _containers(tx, definition, overrides)}),
                "{}",
                dumps(tags),
            ),
        )
    if wish.token is not None:
        tx.run(sql.ADD_TOKEN, (wish.account, wish.region, wish.token, request, batch, tx.now))
    tx.ring("tasks")
    tasks = [Task.of(one) for one in tx.all(sql.BATCH, (batch,))]
    for task in tasks:
        tell(tx, setting, task)
    return Run(tasks, failures)


def _before(tx: Tx, wish: Wish, request: str) -> Run | None:
    row = tx.one(sql.TOKEN, (wish.account, wish.region, wish.token))
    if row is None:
        return None
    tasks = [Task.of(one) for one in tx.all(sql.BATCH, (row[1],))]
    if row[0] != request:
        raise ConflictException(
            "The clientToken was already used for another RunTask request.", resourceIds=[task.arn for task in tasks]
        )
    return Run(tasks, [])


def _overrides(given: Mapping[str, Any], definition: Mapping[str, Any]) -> dict[str, Any]:
    """Check the overrides, and answer them with an entry for each container, as ECS shows them."""
    asked = given.get("overrides") or {}
    if len(dumps(asked)) > LONGEST_OVERRIDES:
        raise InvalidParameterException(f"Overrides must not be longer than {LONGEST_OVERRIDES} characters.")
    known = {one["name"]: one for one in definition["containerDefinitions"]}
    by_name: dict[str, dict[str, Any]] = {}
    for one in asked.get("containerOverrides", ()):
        name = one.get("name")
        if name not in known:
            raise InvalidParameterException(
                f"Override for container named {name} is not a container in the TaskDefinition."
            )
        hard = one.get("memory", known[name].get("memory"))
        check_memory(name, hard, one.get("memoryReservation", known[name].get("memoryReservation")))
        if one.get("environmentFiles"):
            raise ClientException(f"Container '{name}': 'environmentFiles' is not supported here; use 'environment'.")
        by_name[name] = dict(one)
    kept = {
        key: asked[key] for key in ("executionRoleArn", "taskRoleArn", "ephemeralStorage") if asked.get(key) is not None
    }
    for key, read in (("cpu", cpu_units), ("memory", memory_mib)):
        size = read(asked.get(key))
        if size is not None:
            kept[key] = str(size)
    kept["containerOverrides"] = [by_name.get(name, {"name": name}) for name in known]
    kept["inferenceAcceleratorOverrides"] = []
    return kept


def _images(definition: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(container["image"] for container in definition["containerDefinitions"])


def _check_images(tx: Tx, setting: Setting, definition: Mapping[str, Any]) -> None:
    """Refuse what no node could run: this one has not its images, and none of the others has them."""
    for container in definition["containerDefinitions"]:
        try:
            find_image(setting.config, container["image"])
        except UnmappedImage as bad:
            if setting.shared and is_elsewhere(tx, _images(definition)):
                return
            where = " on this node, nor on any other that is there" if setting.shared else ""
            raise ClientException(f"The {bad.said(where)}") from None


def _no_room(wish: Wish, refusal: Refusal, setting: Setting) -> dict[str, str]:
    name = "any" if setting.shared else "this-machine"
    arn = build_arn("ecs", wish.region, wish.account, f"container-instance/{name}")
    return {"arn": arn, "reason": refusal.reason, "detail": refusal.detail}


def _fixed(tx: Tx, wish: Wish, row: Row, definition: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Answer what RunTask fixes for the whole task."""
    given = wish.parameters
    network = (given.get("networkConfiguration") or {}).get("awsvpcConfiguration")
    platform = definition.get("runtimePlatform") or {}
    fixed: dict[str, Any] = {
        "overrides": overrides,
        "cpu": overrides.get("cpu")
        or definition.get("cpu")
        or str(sum(c["cpu"] for c in definition["containerDefinitions"])),
        "memory": overrides.get("memory") or definition.get("memory") or str(reserved_mib(definition, overrides)),
        "group": given.get("group") or f"family:{row[1]}",
        "platformVersion": _platform_version(given),
        "ephemeralStorage": definition.get("ephemeralStorage") or {"sizeInGiB": 20},
        "architecture": "arm64" if platform.get("cpuArchitecture") == "ARM64" else "x86_64",
    }
    if network is not None:
        subnets: Sequence[str] = network.get("subnets") or ()
        fixed["network"] = {"id": tx.chance.uuid(), "subnet": subnets[0] if subnets else None}
    return fixed


def _platform_version(given: Mapping[str, Any]) -> str:
    version = given.get("platformVersion") or "LATEST"
    return "1.4.0" if version == "LATEST" else str(version)


def _launch_type(given: Mapping[str, Any], definition: Mapping[str, Any]) -> str:
    asked = given.get("launchType")
    if asked:
        return str(asked)
    return "FARGATE" if "FARGATE" in definition.get("requiresCompatibilities", ()) else "EC2"


def _containers(tx: Tx, definition: Mapping[str, Any], overrides: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answer what each container shows of itself, whatever becomes of it."""
    found = []
    for one, over in zip(definition["containerDefinitions"], overrides["containerOverrides"], strict=True):
        shown = {"id": tx.chance.uuid(), "name": one["name"], "image": one["image"], "essential": one["essential"]}
        shown["cpu"] = over.get("cpu", one["cpu"])
        for key in ("memory", "memoryReservation"):
            value = over.get(key, one.get(key))
            if value is not None:
                shown[key] = value
        found.append(shown)
    return found


def _tags(given: Mapping[str, Any], row: Row) -> list[dict[str, str]]:
    tags = list(given.get("tags") or ())
    if given.get("propagateTags") == "TASK_DEFINITION":
        own = {tag["key"] for tag in tags}
        tags += [tag for tag in loads(row[5]) if tag["key"] not in own]
    return tags
