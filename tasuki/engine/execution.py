"""Execution and Frame: where an execution stands.

An execution is a tree of frames. Frame 1 runs the root block; a Parallel branch and a Map iteration are frames below
the frame whose state opened them. A frame is a row for as long as it is open; what finishes inside a unit never
becomes one. Frame 0 is no row: it stands for the execution itself in `TimerFired`.

::

    READY ──► (enter a state) ──► WAITING    until `wake_at`              Wait
                               ├► RETRYING   until `wake_at`              a retrier's delay
                               ├► RUNNING    until an answer or deadline  Task
                               ├► JOINING    until its children are done  Parallel, Map
                               └► READY      next state, or the frame closes
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from tasuki.engine.variables import bytes_of, check_total
from tasuki.values.documents import Doc
from tasuki.values.instant import Instant

READY_AT_ONCE = 200
"""How many READY frames one step can serve: no more than it may make transitions."""


class Phase(StrEnum):
    """What a frame is doing."""

    READY = "ready"
    WAITING = "waiting"
    RETRYING = "retrying"
    RUNNING = "running"
    JOINING = "joining"
    CLOSED = "closed"
    """Over; never saved."""


@dataclass(slots=True)
class Frame:
    """A place in an execution. Mutable: it belongs to `step` while it runs."""

    id: int
    parent: int | None
    index: int
    """Which branch or item of the parent."""
    block: str
    """Path of the Block it runs (`Machine.blocks`)."""
    state: str
    """The state it is in, or about to enter when READY."""
    phase: Phase
    input: Doc
    """The state's raw input."""
    last_event: int
    """The newest history event of this line of events: the next one's previousEventId."""
    variables: dict[str, Any] = field(default_factory=dict)
    """Its own scope: replaced as a whole, never changed in place."""
    item: Doc | None = None
    """A Map iteration's item, for `$$.Map.Item.Value`."""
    entered_at: Instant = 0
    entered_event: int = 0
    """0 while it is only about to enter."""
    attempt: int = 0
    """The attempt that an answer must name (Task)."""
    started: bool = False
    """The attempt's ...Started event is written."""
    token: str | None = None
    handle: str | None = None
    retries: list[int] = field(default_factory=list)
    """Tries used of each retrier of the state."""
    retry_count: int = 0
    wake_at: Instant | None = None
    timeout_at: Instant | None = None
    heartbeat_at: Instant | None = None
    heartbeat_ms: int | None = None
    items: list[Doc] | None = None
    """A Map's items, while it is open."""
    concurrency: int = 0
    total: int = 0
    opened: int = 0
    done: int = 0

    @property
    def due(self) -> Instant | None:
        """The nearest of its deadlines: the frame's one timer row."""
        nearest = [t for t in (self.wake_at, self.timeout_at, self.heartbeat_at) if t is not None]
        return min(nearest) if nearest else None


@dataclass(frozen=True, slots=True)
class Remain:
    """A frame as it stood when its execution ended badly, and what its finished children had brought."""

    frame: Frame
    results: Mapping[int, Doc]


class FrameSource(Protocol):
    """Where frames that were saved earlier come from: read in the same unit, one by one, when the engine asks.

    (HOUSE.md asks with a `Gather` command instead; handing the reads in as an argument keeps `step` a function of its
    arguments all the same, and spares a second round trip and two more words.)
    """

    def frame(self, frame_id: int) -> Frame | None:
        """Answer a saved frame."""

    def children(self, parent: int) -> list[Frame]:
        """Answer the saved open frames below `parent`, by id."""

    def ready(self) -> list[Frame]:
        """Answer the saved frames whose phase is READY (asked for on `Continued`).

        The first `READY_AT_ONCE` by id are enough: a step cannot serve more, and the engine asks again.
        """

    def results(self, parent: int) -> list[tuple[int, Doc]]:
        """Answer the saved results of `parent`'s finished children, as (index, output)."""


class NoFrames:
    """The source of an execution that was never saved."""

    def frame(self, frame_id: int) -> Frame | None:  # noqa: ARG002
        """There is none."""
        return None

    def children(self, parent: int) -> list[Frame]:  # noqa: ARG002
        """There are none."""
        return []

    def ready(self) -> list[Frame]:
        """There are none."""
        return []

    def results(self, parent: int) -> list[tuple[int, Doc]]:  # noqa: ARG002
        """There are none."""
        return []


class Frames:
    """The open frames of one execution, as far as anybody looked, and what changed since they were saved.

    A shell may tell several events before it saves. Then it deletes the saved results of `dropped` and `closed`,
    deletes `closed`, saves `changed` (insert or update: body and counts), saves the counts of `counted` (update of the
    counts alone), and inserts `new_results` of parents that are still open. A frame opened and closed in between is in
    none of them, and no frame is in two.

    A frame is saved in two parts (`saved.py`): its *body*, and its *counts*, which are the few numbers that move while
    children of a Map come and go or a task's heart beats. So a wide Map rewrites some thirty bytes for an item, not all
    its items.
    """

    def __init__(self, source: FrameSource | None = None, variable_bytes: int = 0) -> None:
        self._source: FrameSource = source or NoFrames()
        self.variable_bytes = variable_bytes
        """The size of the variables of all open frames, those that nobody looked at among them."""
        self._here: dict[int, Frame] = {}
        self._below: dict[int, set[int]] = {}
        """The ids of what is here, by parent."""
        self._saved: set[int] = set()
        self._gone: set[int] = set()
        self.changed: set[int] = set()
        self.counted: set[int] = set()
        self.closed: set[int] = set()
        self.dropped: set[int] = set()
        self.new_results: dict[int, dict[int, Doc]] = {}

    def get(self, frame_id: int) -> Frame | None:
        """Answer an open frame, for reading or for changing (then `touch` it)."""
        frame = self._here.get(frame_id)
        if frame is None and frame_id not in self._gone:
            frame = self._source.frame(frame_id)
            if frame is not None:
                self._arrive(frame)
        return frame

    def touch(self, frame: Frame) -> None:
        """Remember that a frame changed."""
        self.changed.add(frame.id)
        self.counted.discard(frame.id)

    def count(self, frame: Frame) -> None:
        """Remember that only a frame's counts changed (see `saved.pack_counts`)."""
        if frame.id not in self.changed:
            self.counted.add(frame.id)

    def open(self, frame: Frame) -> None:
        """Add a new frame."""
        self._put(frame)
        if frame.variables:
            self.variable_bytes += bytes_of(frame.variables)
        self.changed.add(frame.id)

    def assign(self, frame: Frame, assigned: Mapping[str, Any], size: int) -> None:
        """Give variables of a frame's own scope their values, which have `size` bytes. Raises `StatesError`."""
        replaced = {name: frame.variables[name] for name in assigned if name in frame.variables}
        total = self.variable_bytes + size - bytes_of(replaced)
        check_total(total)
        self.variable_bytes = total
        frame.variables = {**frame.variables, **assigned}

    def close(self, frame: Frame) -> None:
        """A frame is over. Its children must have been closed before."""
        if frame.variables:
            self.variable_bytes -= bytes_of(frame.variables)
        self._here.pop(frame.id, None)
        self._below.pop(frame.id, None)
        if frame.parent is not None:
            self._below[frame.parent].discard(frame.id)
        self.changed.discard(frame.id)
        self.counted.discard(frame.id)
        self.new_results.pop(frame.id, None)
        self._gone.add(frame.id)
        if frame.id in self._saved:
            self.closed.add(frame.id)

    def children(self, parent: int) -> list[Frame]:
        """Answer the open frames below `parent`, by index."""
        if parent in self._saved:
            for frame in self._source.children(parent):
                self._arrive(frame)
        return sorted((self._here[number] for number in self._below.get(parent, ())), key=lambda f: f.index)

    def ready(self) -> tuple[list[Frame], bool]:
        """Answer READY frames, the one that has been quiet the longest first, and whether there may be more of them."""
        saved = self._source.ready()
        for frame in saved:
            self._arrive(frame)
        ready = [frame for frame in self._here.values() if frame.phase is Phase.READY]
        return sorted(ready, key=lambda f: (f.last_event, f.id)), len(saved) >= READY_AT_ONCE

    def _arrive(self, frame: Frame) -> None:
        """Take in a saved frame, unless it is here already (and newer) or gone."""
        if frame.id not in self._here and frame.id not in self._gone:
            self._put(frame)
            self._saved.add(frame.id)

    def _put(self, frame: Frame) -> None:
        self._here[frame.id] = frame
        if frame.parent is not None:
            self._below.setdefault(frame.parent, set()).add(frame.id)

    def finish_child(self, parent: int, index: int, output: Doc) -> None:
        """Keep the result of a finished child until the join."""
        self.new_results.setdefault(parent, {})[index] = output

    def results(self, parent: int) -> dict[int, Doc]:
        """Answer the results of all finished children of `parent` by index."""
        unsaved = parent in self.dropped or parent not in self._saved
        found = {} if unsaved else dict(self._source.results(parent))
        found.update(self.new_results.get(parent, {}))
        return found

    def drop_results(self, parent: int) -> None:
        """Forget the results of a parent: after the join, or when it starts over."""
        self.new_results.pop(parent, None)
        if parent in self._saved:
            self.dropped.add(parent)

    def loaded(self) -> Iterator[Frame]:
        """Answer every frame that is here."""
        yield from self._here.values()


@dataclass(slots=True)
class Execution:
    """One run of a machine, as `step` sees it. The shell builds it from its rows and saves what changed."""

    arn: str
    name: str
    machine_arn: str
    machine_name: str
    role_arn: str
    input: Doc
    started_at: Instant
    seed: str
    """A secret of this execution: chance is seeded with it and the event's number, so re-deciding draws the same."""
    trace: str = ""
    express: bool = False
    """Of an Express machine: nothing of it can be redriven, and its events are not numbered towards a limit."""
    frames: Frames = field(default_factory=Frames)
    last_event: int = 0
    last_frame: int = 0
    """The highest frame id given out."""
    last_attempt: int = 0
    deadline: Instant | None = None
    """The machine's TimeoutSeconds, as an instant."""
    status: str = "RUNNING"
    redrive_count: int = 0
    redriven_at: Instant | None = None
    version_arn: str | None = None
    alias_arn: str | None = None
    """By which version and alias it was started, for its first event."""
    has_activity: Callable[[str], bool] = lambda _arn: True
    """Whether an activity exists: asked when one is scheduled, in the same unit (as `FrameSource` is)."""
    block: str = ""
    """What it runs: the machine's own block, or that of a distributed Map (a child execution)."""
    item: tuple[int, Doc] | None = None
    """A child execution's item, for `$$.Map.Item`."""
    history_bytes: int = 0
    """The size of the documents in its history so far, each counted once."""
