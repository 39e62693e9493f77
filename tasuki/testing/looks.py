"""What a test sees of a house: executions, messages, tasks. Each prints itself so that a failed assertion tells the story.

Looking changes nothing: no message is received, no time passes. A look is of the moment it was made.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument
from tasuki.values.instant import Instant, to_datetime

# The messages of a queue in their order, with what they hold: in the row or beside it.
STANDING = (
    "SELECT m.sent_at, m.visible_at, m.received, coalesce(m.content, b.content) FROM messages m "
    "JOIN queues q ON q.shelf = m.shelf LEFT JOIN message_bodies b ON b.id = m.body_id "
    "WHERE q.account = ? AND q.region = ? AND q.name = ? ORDER BY m.sent_at, m.seq"
)
# What a queue has thrown away because nobody took it in time.
EXPIRED = (
    "SELECT COALESCE(SUM(c.expired), 0) FROM queues q JOIN shelf_counts c ON c.shelf = q.shelf "
    "WHERE q.account = ? AND q.region = ? AND q.name = ?"
)
# The queues that have thrown something away, and how much.
ALL_EXPIRED = (
    "SELECT q.name, SUM(c.expired) FROM queues q JOIN shelf_counts c ON c.shelf = q.shelf "
    "GROUP BY q.name HAVING SUM(c.expired) > 0 ORDER BY q.name"
)
# The last that came to nothing of what was passed on, latest first.
LOST = (
    "SELECT at, source, source_id, target, outcome FROM handovers "
    "WHERE outcome LIKE 'DROPPED%' OR outcome LIKE 'DEAD_LETTERED%' ORDER BY id DESC LIMIT ?"
)
# All tasks that are still shown, in the order in which they were asked for.
TASKS = "SELECT cluster, name FROM tasks ORDER BY id"
TOLD = 40
"""Lines of a history that a failed assertion prints at most."""
WIDTH, END = 160, 50
"""Characters of a text, and of those how many from its end."""
EXIT_CODE, STOPPED_REASON = re.compile(r'"ExitCode":\s*(\d+)'), re.compile(r'"StoppedReason":\s*"([^"]*)"')
"""In the description of a task that failed."""
_MISSING = object()


def when(instant: Any) -> datetime | None:
    """Answer an instant as people say it."""
    return None if instant is None else to_datetime(int(instant))


def decoded(text: str | None) -> Any:
    """Answer a JSON text's value; a text that is no JSON as it is."""
    if text is None:
        return None
    try:
        return loads(text)
    except MalformedDocument:
        return text


@dataclass(frozen=True)
class Execution:
    """An execution of a Standard machine. `input` and `output` are decoded; `history` is as GetExecutionHistory answers it."""

    arn: str
    name: str
    machine: str
    status: str
    input: Any
    output: Any
    error: str | None
    cause: str | None
    started: datetime
    stopped: datetime | None
    history: Sequence[dict[str, Any]] = field(repr=False)

    @property
    def states(self) -> list[str]:
        """The names of the states that were entered, in order."""
        found = (one.get("stateEnteredEventDetails") for one in self.history)
        return [str(one["name"]) for one in found if one is not None]

    def assert_succeeded(self, output: Any = _MISSING) -> "Execution":
        """Fail with the history unless it succeeded (and, if `output` is given, with that); answer itself."""
        __tracebackhide__ = True
        if self.status != "SUCCEEDED":
            raise AssertionError(self._story(f"is {self.status}, not SUCCEEDED"))
        if output is not _MISSING and self.output != output:
            raise AssertionError(self._story(f"answered {dumps(self.output)}, not {dumps(output)}"))
        return self

    def assert_failed(self, error: str | None = None) -> "Execution":
        """Fail with the history unless it failed (with that error name, if one is given); answer itself."""
        __tracebackhide__ = True
        if self.status not in {"FAILED", "TIMED_OUT"}:
            raise AssertionError(self._story(f"is {self.status}, not FAILED"))
        if error is not None and self.error != error:
            raise AssertionError(self._story(f"failed with {self.error}, not {error}"))
        return self

    def assert_running(self) -> "Execution":
        """Fail with the history unless it runs; answer itself."""
        __tracebackhide__ = True
        if self.status != "RUNNING":
            raise AssertionError(self._story(f"is {self.status}, not RUNNING"))
        return self

    def story(self) -> str:
        """Tell its history in a few lines."""
        began = self.history[0]["timestamp"] if self.history else 0
        lines = [_line(event, began) for event in self.history]
        if len(lines) > TOLD:
            lines = [*lines[:5], f"  ... {len(lines) - TOLD} events ...", *lines[5 - TOLD :]]
        return "\n".join(lines)

    def _story(self, what: str) -> str:
        why = [f"  error: {self.error}"] if self.error else []
        why += [f"  cause: {_cause(self.cause)}"] if self.cause else []
        head = f"execution {self.name} of {self.machine} {what}"
        return "\n".join([head, *why, f"  started {self.started:%Y-%m-%d %H:%M:%S} UTC, history:", self.story()])


def _line(event: dict[str, Any], began: Instant) -> str:
    details = next((value for name, value in event.items() if name.endswith("EventDetails")), None) or {}
    told = [str(details[key]) for key in ("name", "resource", "error") if details.get(key)]
    told += [_cause(details["cause"])] if details.get("cause") else []
    if not told and details.get("input"):
        told = [str(details["input"])]
    return f"  {event['id']:>4} {_after(event['timestamp'] - began):>12}  {event['type']:<24} {_cut(' | '.join(told))}"


def _after(ms: int) -> str:
    minutes, seconds = divmod(ms // 1000, 60)
    return f"+{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def _cause(text: str) -> str:
    """A cause in a line. That of a task is all of its description, so what matters comes first: how it ended."""
    ends = [f"exit code {code}" for code in EXIT_CODE.findall(text)]
    why = STOPPED_REASON.findall(text)[:1] if ends else []
    return _cut(": ".join([*ends[:1], *why, text]))


def _cut(text: str | None) -> str:
    """A text in a line, with its beginning and its end."""
    flat = " ".join((text or "").split())
    return flat if len(flat) <= WIDTH else f"{flat[: WIDTH - END]} ... {flat[-END:]}"


@dataclass(frozen=True)
class Message:
    """A message where it stands. `received` counts its receives; one that is in flight or delayed is not `visible`."""

    id: str
    body: str
    sent: datetime
    received: int
    visible: bool
    attributes: dict[str, Any]
    group: str | None = None

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return loads(self.body)


@dataclass(frozen=True)
class Queue:
    """A queue and what stands in it, oldest first. `expired`: how many messages were older than it keeps them, and are gone."""

    name: str
    url: str
    arn: str
    messages: Sequence[Message]
    expired: int = 0

    @property
    def bodies(self) -> list[Any]:
        """The bodies of all messages, decoded where they are JSON."""
        return [decoded(one.body) for one in self.messages]

    @property
    def depth(self) -> int:
        """How many messages can be received now."""
        return sum(one.visible for one in self.messages)

    @property
    def in_flight(self) -> int:
        """How many messages were received and neither deleted nor given back."""
        return sum(not one.visible and one.received > 0 for one in self.messages)

    @property
    def delayed(self) -> int:
        """How many messages are not to be received yet, and never were."""
        return len(self.messages) - self.depth - self.in_flight


@dataclass(frozen=True)
class Task:
    """An ECS task. `environment` is all that its leading container was given; `output` what a scripted run printed, or the log."""

    arn: str
    family: str
    image: str
    status: str
    exit_code: int | None
    stop_code: str | None
    reason: str | None
    created: datetime | None
    started: datetime | None
    stopped: datetime | None
    environment: dict[str, str]
    output: str
    execution: str = ""
    """The ARN of the execution (or pipe, or schedule) that started it, if one did."""


@dataclass(frozen=True)
class Event:
    """An event on a bus, as it was put there."""

    id: str
    bus: str
    source: str
    detail_type: str
    detail: Any
    resources: Sequence[str]
    time: datetime | None
