"""An attempt of a task: what is to run, and what became of it. The words that the tasks room and a runner share.

An attempt is started at most once for ever. What a runner learns it tells as *reports*, each the whole present truth
about one attempt, so telling twice is harmless:

========  ===========================================================================================
phase     meaning
========  ===========================================================================================
running   its containers have been started (some may have ended)
ended     it is over and nothing of it is left; said until the runner is told that it is settled
never     it was not started and never will be (a tombstone stands there): a new attempt may be
========  ===========================================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

ESSENTIAL_EXITED = "Essential container in task exited"
OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"
HOST_LOST = "The host or the shim of the task was lost while it ran"


class Key(NamedTuple):
    """One attempt of one task."""

    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Container:
    """What one container of an attempt runs.

    `environment` is complete: nothing of the node's own is added. `requires` are folders that must be there.
    `depends_on` pairs a container's name with `START`, `COMPLETE` or `SUCCESS`.
    """

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    image: str = ""
    requires: tuple[str, ...] = ()
    essential: bool = True
    memory_mib: int | None = None
    reservation_mib: int | None = None
    stop_signal: int = 15
    stop_timeout_s: int = 30
    depends_on: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """An attempt to start. `memory_mib` is the limit of the task as a whole, if it has one."""

    key: Key
    containers: tuple[Container, ...]
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerReport:
    """Where a container stands. `exit_code` is None while it runs, and for ever when it never ran."""

    name: str
    pid: int | None = None
    exit_code: int | None = None
    reason: str | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Where an attempt stands.

    `stop_code` and `reason` are ECS's, once it is stopping. `began_ms` and `ended_ms` are how long ago, in real time,
    its first container began and its last one ended, where that is known: it may have been while the node was down.
    """

    key: Key
    phase: Literal["running", "ended", "never"]
    containers: tuple[ContainerReport, ...] = ()
    stop_code: str | None = None
    reason: str | None = None
    began_ms: int | None = None
    ended_ms: int | None = None
