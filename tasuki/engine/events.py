"""What can happen to an execution. A closed list: with `commands` it is the engine's whole interface.

An event that no longer fits (the frame is gone, the attempt is older) changes nothing: `step` answers an empty
outcome. So the shell may deliver an event twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tasuki.engine.execution import Remain
from tasuki.values.documents import Doc


@dataclass(frozen=True, slots=True)
class Started:
    """The execution begins."""


@dataclass(frozen=True, slots=True)
class Continued:
    """The execution goes on after `step` yielded at its bound (`Outcome.ready`)."""


@dataclass(frozen=True, slots=True)
class Redriven:
    """RedriveExecution: an execution that ended badly goes on where it failed (`redrive.py`).

    `remains` are what its `Finish` handed over. The shell has made the execution RUNNING again, with its new
    `redrive_count` and `redriven_at`. `map_runs` names the frames whose Map Run goes on; other distributed Maps have
    another one started.
    """

    remains: tuple[Remain, ...]
    map_runs: Mapping[int, "OldMapRun"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OldMapRun:
    """A Map Run that did not end well, and which redrive of it this is."""

    arn: str
    redrive_count: int


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The nearest deadline of `frame` has come: a Wait's end, a retry, a timeout, a missed heartbeat.

    Frame 0 is the execution itself (the machine's TimeoutSeconds). Firing early or twice is harmless: the engine looks
    at the deadlines again.
    """

    frame: int


@dataclass(frozen=True, slots=True)
class TaskSubmitted:
    """The call of a `.sync` or `.waitForTaskToken` task was accepted. `handle` names what was started, for CancelTask."""

    frame: int
    attempt: int
    output: Doc
    handle: str | None = None


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """Somebody began to work on it: an activity worker took the task, a function began to run.

    Needless for integrations that answer at once: their ...Started event is written with the first answer.
    """

    frame: int
    attempt: int
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class TaskSucceeded:
    """The work of a Task is done."""

    frame: int
    attempt: int
    output: Doc


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """The work of a Task failed. `at` says in which phase, for the history event's name (TaskSubmitFailed, ...)."""

    frame: int
    attempt: int
    error: str | None
    cause: str | None
    at: str = "running"
    """`schedule`, `start`, `submit` or `running`: TaskFailed is the history event of all but `start` (TaskStartFailed)
    and `submit` (TaskSubmitFailed); Lambda functions and activities have ...ScheduleFailed as well."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life. Writes no history."""

    frame: int
    attempt: int


@dataclass(frozen=True, slots=True)
class MapRunEnded:
    """The Map Run of a distributed Map is over: its output, or why it failed."""

    frame: int
    attempt: int
    output: Doc | None
    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class StopRequested:
    """StopExecution."""

    error: str | None = None
    cause: str | None = None


Event: TypeAlias = (
    Started
    | Continued
    | Redriven
    | TimerFired
    | TaskSubmitted
    | TaskStarted
    | TaskSucceeded
    | TaskFailed
    | Heartbeat
    | MapRunEnded
    | StopRequested
)
