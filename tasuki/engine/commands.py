"""What an execution can want. A closed list; `services/machines` performs it, in the same unit.

Deadlines need no command: each frame carries its nearest one (`Frame.due`), and the shell keeps one timer row a
frame in step with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tasuki.engine.execution import Remain
from tasuki.language.definition import Resource
from tasuki.values.documents import Doc


@dataclass(frozen=True, slots=True)
class ScheduleTask:
    """Have work done. The shell calls the integration and answers with TaskSubmitted, TaskSucceeded or TaskFailed.

    `attempt` grows with each try of each visit in this execution, so `(execution, frame, attempt)` is an idempotency key.
    `token` is set for `.waitForTaskToken` and activities. Timeouts are in seconds (the engine keeps the deadlines itself).
    """

    frame: int
    attempt: int
    resource: Resource
    parameters: Doc
    token: str | None
    timeout_seconds: int | None
    heartbeat_seconds: int | None


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Stop work that nobody waits for any more (timeout, abort, a sibling failed): best effort, as AWS does."""

    frame: int
    attempt: int
    resource: Resource
    handle: str | None
    cause: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The execution is over. `status` is SUCCEEDED, FAILED, TIMED_OUT or ABORTED."""

    status: str
    output: Doc | None = None
    error: str | None = None
    cause: str | None = None
    remains: tuple[Remain, ...] = ()
    """What was open when it ended badly, for `Redriven`."""


@dataclass(frozen=True, slots=True)
class MapRunPlan:
    """What a Map Run does, in plain values that can be kept in a row (engine/states/distributed.py)."""

    state: str
    block: str
    """What its children run."""
    express: bool
    max_concurrency: int
    tolerated_count: int | None
    tolerated_percentage: float | None
    reader: Mapping[str, Any] | None
    batcher: Mapping[str, Any] | None
    writer: Mapping[str, Any] | None
    selects: bool
    """Whether there is an ItemSelector."""


@dataclass(frozen=True, slots=True)
class StartMapRun:
    """Run a distributed Map's items as child executions, and tell `MapRunEnded`.

    `items` are those of the state's input; None when `plan.reader` says where they are.
    """

    frame: int
    attempt: int
    label: str
    name: str
    plan: MapRunPlan
    items: list[Any] | None


@dataclass(frozen=True, slots=True)
class CancelMapRun:
    """Nobody waits for a Map Run any more: stop its children."""

    frame: int
    attempt: int


@dataclass(frozen=True, slots=True)
class RedriveMapRun:
    """Go on with a Map Run that did not end well: what failed of it and what was not begun. Tells `MapRunEnded`."""

    frame: int
    attempt: int


Command: TypeAlias = ScheduleTask | CancelTask | StartMapRun | CancelMapRun | RedriveMapRun | Finish
