"""The seam to whatever runs other people's code: four verbs, none of which blocks.

A runner knows attempts, not tasks: `Key` is (task, attempt), and an attempt is started at most once for ever. What it
learns it tells as *reports*, each the whole present truth about one attempt, so telling twice is harmless:

========  ===========================================================================================
phase     meaning
========  ===========================================================================================
running   its containers have been started (some may have ended)
ended     it is over and nothing of it is left; said until `collect` is told that it is settled
never     it was not started and never will be (a tombstone stands there): a new attempt may be
========  ===========================================================================================
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from tasuki.values.instant import Instant

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

    `stop_code` and `reason` are ECS's, once it is stopping. `age_ms` is how long ago, in real time, its last container
    ended: it may have been while the node was down.
    """

    key: Key
    phase: Literal["running", "ended", "never"]
    containers: tuple[ContainerReport, ...] = ()
    stop_code: str | None = None
    reason: str | None = None
    age_ms: int = 0
    details: Mapping[str, str] = field(default_factory=dict)


class StartFailed(Exception):
    """The attempt could not be started, and was not. The text says why."""


class Runner(Protocol):
    """Where attempts run."""

    def start(self, launch: Launch) -> None:
        """Start an attempt. Its place in the store is committed. Raises `StartFailed`."""

    def watch(self, key: Key) -> None:
        """Take over an attempt that a node before us may have started: adopt it, read its end, or rule that it never was."""

    def stop(self, key: Key) -> None:
        """Ask an attempt to stop: its signal, its time, then SIGKILL. Asking twice, or too late, is harmless."""

    def collect(self, settled: Collection[Key] = ()) -> list[Report]:
        """Let go of what is settled, and answer what changed since the last time (and every end not yet settled)."""

    def remove(self, task: str) -> None:
        """Forget a task that is no longer shown, with its logs."""

    @property
    def due(self) -> Instant | None:
        """The house instant at which something will have changed by itself (scripted time only)."""

    @property
    def patience_s(self) -> float | None:
        """In how many real seconds to collect although nothing rang; None for never."""

    def fileno(self) -> int:
        """Answer a descriptor that is readable when there is something to collect; -1 for none."""

    def close(self) -> None:
        """Let go of everything but the attempts."""
