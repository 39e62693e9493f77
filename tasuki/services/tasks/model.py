"""Tasks as values: what a row holds, what a RunTask asks for, what an attempt runs. Pure."""

import hashlib
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasuki.services.tasks.definitions import DEFAULT_STOP_TIMEOUT_S
from tasuki.store.store import Row
from tasuki.values.arns import build_arn
from tasuki.values.attempts import Container, Key, Launch
from tasuki.values.config import Config, Image
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import Instant, to_iso

DEFAULT_CLUSTER = "default"
BASE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True)
class Task:
    """A row of `tasks`, in the order of `TASK_COLUMNS`."""

    id: int
    name: str
    account: str
    region: str
    cluster: str
    family: str
    revision: int
    definition_id: int
    attempt: int
    last_status: str
    desired_status: str
    memory_mib: int
    watcher: str | None
    batch: str
    trace: str
    origin: str
    started_by: str | None
    launch_type: str
    version: int
    created_at: Instant
    pulled_at: Instant | None
    started_at: Instant | None
    stopping_at: Instant | None
    execution_stopped_at: Instant | None
    stopped_at: Instant | None
    stop_code: str | None
    stopped_reason: str | None
    node: str | None
    document: dict[str, Any]
    containers: dict[str, dict[str, Any]]
    tags: list[dict[str, str]]

    @classmethod
    def of(cls, row: Row) -> "Task":
        """Read a row."""
        return cls(*(*row[:-3], *map(loads, row[-3:])))

    @property
    def arn(self) -> str:
        """The task's ARN."""
        return build_arn("ecs", self.region, self.account, f"task/{self.cluster}/{self.name}")

    @property
    def cluster_arn(self) -> str:
        """Its cluster's ARN."""
        return cluster_arn(self.account, self.region, self.cluster)

    @property
    def definition_arn(self) -> str:
        """The ARN of the revision it runs."""
        return definition_arn(self.account, self.region, self.family, self.revision)


def cluster_arn(account: str, region: str, name: str) -> str:
    """Build a cluster's ARN."""
    return build_arn("ecs", region, account, f"cluster/{name}")


def definition_arn(account: str, region: str, family: str, revision: int) -> str:
    """Build a task definition's ARN."""
    return build_arn("ecs", region, account, f"task-definition/{family}:{revision}")


def reserved_mib(definition: Mapping[str, Any], overrides: Mapping[str, Any]) -> int:
    """Answer the memory a task reserves: its own, or the sum of its containers' (soft where given, else hard)."""
    whole = overrides.get("memory") or definition.get("memory")
    if whole:
        return int(whole)
    by_name = {one["name"]: one for one in overrides.get("containerOverrides", ())}
    total = 0
    for container in definition["containerDefinitions"]:
        over = by_name.get(container["name"], {})
        soft = over.get("memoryReservation", container.get("memoryReservation"))
        hard = over.get("memory", container.get("memory"))
        total += soft if soft is not None else hard if hard is not None else 0
    return total


class UnmappedImage(Exception):
    """A task names an image that `tasuki.toml` does not map. The text has the lines to add."""

    def __init__(self, image: str, config: Config) -> None:
        self._image, self._file = image, (config.source or config.data / "tasuki.toml").absolute()
        super().__init__(self.said())

    def said(self, where: str = "") -> str:
        """Say it, and perhaps of which nodes."""
        return (
            f'image "{self._image}" is not mapped to a folder and a command{where}. Add to {self._file}, and start the '
            f'node again:\n\n[images."{self._image}"]\nfolder = "path/to/its/folder"\ncommand = ["python", "main.py"]\n'
        )


def find_image(config: Config, name: str) -> Image:
    """Find what an image name stands for. Raises `UnmappedImage`."""
    image = config.images.get(name)
    if image is None:
        raise UnmappedImage(name, config)
    return image


def digest(image: Image) -> str:
    """Answer a fingerprint of what an image name stands for: it changes when the mapping does (not with the code inside)."""
    text = dumps([image.name, str(image.folder), image.command, str(image.venv), image.stop_signal])
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def launch_of(task: Task, definition: Mapping[str, Any], config: Config, key: str, secret: str) -> Launch:
    """Work out what a claimed attempt runs. Raises `UnmappedImage`."""
    overrides = task.document["overrides"]
    by_name = {one["name"]: one for one in overrides.get("containerOverrides", ())}
    whole = overrides.get("memory") or definition.get("memory")
    given = _given_by_the_house(task, config, key, secret)
    containers = tuple(
        _container(one, by_name.get(one["name"], {}), find_image(config, one["image"]), given)
        for one in definition["containerDefinitions"]
    )
    return Launch(Key(task.name, task.attempt), containers, int(whole) if whole else None)


def _given_by_the_house(task: Task, config: Config, key: str, secret: str) -> dict[str, str]:
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(config.host, config.host)  # noqa: S104 - read, not bound
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    given = {
        "AWS_ENDPOINT_URL": f"http://{host}:{config.port}",
        "AWS_REGION": task.region,
        "AWS_DEFAULT_REGION": task.region,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "_X_AMZN_TRACE_ID": task.trace,
        "TASUKI_TASK_ARN": task.arn,
        "TASUKI_TASK_DEFINITION": task.definition_arn,
    }
    if task.pulled_at is not None:
        given["TASUKI_NOW"] = to_iso(task.pulled_at)  # house time, which need not be what the machine's clock says
    if task.origin:
        given["TASUKI_ORIGIN_ARN"] = task.origin
    return given


def path_of(image: Image) -> str:
    """Answer the PATH that an image's tasks get, unless a task definition says another."""
    base = BASE_PATH if image.venv is None else f"{image.venv / 'bin'}:{BASE_PATH}"
    return image.environment.get("PATH", base)


def _container(
    definition: Mapping[str, Any], over: Mapping[str, Any], image: Image, given: Mapping[str, str]
) -> Container:
    """One container of an attempt.

    The command line is the definition's `entryPoint` or else the image's command, then the `command` of the override or
    of the definition. So the mapping stands for an image's ENTRYPOINT; a CMD of its own it does not have.

    The environment is clean: a base, the image's, the definition's, the override's, then what the house gives (nobody
    may point a task elsewhere with the house's own variables).
    """
    base: dict[str, str] = {"PATH": path_of(image), "HOME": str(image.folder), "LANG": "C.UTF-8", "TZ": "UTC"}
    requires = [str(image.folder)]
    if image.venv is not None:
        base["VIRTUAL_ENV"] = str(image.venv)
        requires.append(str(image.venv / "bin"))
    environment = {
        **base,
        **image.environment,
        **{pair["name"]: pair.get("value", "") for pair in definition.get("environment", ())},
        **{pair["name"]: pair.get("value", "") for pair in over.get("environment", ())},
        **given,
    }
    folder = image.folder
    if definition.get("workingDirectory"):
        folder = folder / definition["workingDirectory"].lstrip("/")
    command = over.get("command") or definition.get("command") or []
    return Container(
        name=definition["name"],
        argv=(*(definition.get("entryPoint") or image.command), *command),
        environment=environment,
        folder=str(folder),
        image=definition["image"],
        requires=tuple(requires),
        essential=definition["essential"],
        memory_mib=over.get("memory", definition.get("memory")),
        reservation_mib=over.get("memoryReservation", definition.get("memoryReservation")),
        stop_signal=int(signal.Signals[image.stop_signal]),
        stop_timeout_s=definition.get("stopTimeout", DEFAULT_STOP_TIMEOUT_S),
        depends_on=tuple((one["containerName"], one["condition"]) for one in definition.get("dependsOn", ())),
    )
