"""What an execution can want. A closed list; `services/machines` performs it, in the same unit.

Deadlines need no command: each frame carries its nearest one (`Frame.due`), and the shell keeps one timer row a
frame in step with it.
"""

from dataclasses import dataclass
from typing import TypeAlias

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


Command: TypeAlias = ScheduleTask | CancelTask | Finish
