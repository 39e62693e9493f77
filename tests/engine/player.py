"""The smallest shell: keeps frames as rows, tells the engine what happens, moves the clock. In memory, in process."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from tasuki.engine.commands import CancelMapRun, CancelTask, Command, Finish, RedriveMapRun, ScheduleTask, StartMapRun
from tasuki.engine.events import (
    Continued,
    Event,
    Started,
    StopRequested,
    TaskFailed,
    TaskSubmitted,
    TaskSucceeded,
    TimerFired,
)
from tasuki.engine.execution import READY_AT_ONCE, Execution, Frame, Frames, Phase
from tasuki.engine.history import HistoryEvent
from tasuki.engine.saved import pack_counts, pack_frame, unpack_frame
from tasuki.engine.step import step
from tasuki.language.parse import parse
from tasuki.values.documents import Doc
from tasuki.values.instant import to_iso

ACCOUNT = "111111111111"
MACHINE_ARN = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:machine"
EXECUTION_ARN = f"arn:aws:states:us-east-1:{ACCOUNT}:execution:machine:run"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/machine"
BEGIN = 1_700_000_000_000

Handler = Callable[[ScheduleTask], Iterable[Event]]


def succeed(output: Any = None) -> Handler:
    """Answer every task with the same output."""
    return lambda command: [TaskSucceeded(command.frame, command.attempt, Doc(output))]


def fail(error: str | None = "Boom", cause: str | None = "it broke") -> Handler:
    """Fail every task in the same way."""
    return lambda command: [TaskFailed(command.frame, command.attempt, error, cause)]


def nothing(command: ScheduleTask) -> Iterable[Event]:
    """Leave a task running."""
    del command
    return []


class Rows:
    """Saved frames and results, as the tables hold them."""

    def __init__(self) -> None:
        self.bodies: dict[int, bytes] = {}
        self.counts: dict[int, bytes] = {}
        self.outputs: dict[int, dict[int, str]] = {}
        self.body_writes = 0
        self.count_writes = 0

    def frame(self, frame_id: int) -> Frame | None:
        body = self.bodies.get(frame_id)
        return unpack_frame(body, self.counts[frame_id]) if body is not None else None

    def _all(self) -> list[Frame]:
        return [unpack_frame(body, self.counts[number]) for number, body in self.bodies.items()]

    def children(self, parent: int) -> list[Frame]:
        return [frame for frame in self._all() if frame.parent == parent]

    def ready(self) -> list[Frame]:
        found: list[Frame] = []
        for number in sorted(self.bodies):
            frame = self.frame(number)
            if frame is not None and frame.phase is Phase.READY:
                found.append(frame)
                if len(found) == READY_AT_ONCE:
                    break
        return found

    def results(self, parent: int) -> list[tuple[int, Doc]]:
        return [(index, Doc.of_text(text)) for index, text in self.outputs.get(parent, {}).items()]

    def save(self, frames: Frames) -> None:
        """Do what `Frames` asks of a shell after a step."""
        assert not frames.changed & frames.counted
        assert not (frames.changed | frames.counted) & frames.closed
        for parent in frames.dropped | frames.closed:
            self.outputs.pop(parent, None)
        for gone in frames.closed:
            del self.bodies[gone], self.counts[gone]
        here = {frame.id: frame for frame in frames.loaded()}
        for number in sorted(frames.changed):
            self.bodies[number] = pack_frame(here[number])
            self.counts[number] = pack_counts(here[number])
            self.body_writes += 1
        for number in sorted(frames.counted):
            assert number in self.bodies
            self.counts[number] = pack_counts(here[number])
            self.count_writes += 1
        for parent, outputs in frames.new_results.items():
            self.outputs.setdefault(parent, {}).update({index: doc.text for index, doc in outputs.items()})


class Play:
    """One execution and its shell."""

    def __init__(
        self,
        definition: Any,
        given: Any = None,
        handler: Handler = nothing,
        *,
        save_every: int = 1,
        input_text: str | None = None,
        seed: str = "seed",
    ) -> None:
        self.definition = json.dumps(definition)
        self.machine = parse(self.definition)
        self.handler = handler
        self.save_every = save_every
        """After how many steps frames are saved and forgotten; 0 is never."""
        self.rows = Rows()
        self.now = BEGIN
        self.history: list[HistoryEvent] = []
        self.scheduled: list[ScheduleTask] = []
        self.cancelled: list[CancelTask] = []
        self.map_runs: list[StartMapRun] = []
        self.cancelled_map_runs: list[CancelMapRun] = []
        self.redriven_map_runs: list[RedriveMapRun] = []
        self.finish: Finish | None = None
        self.steps = 0
        self.told: list[tuple[int, Event]] = []
        text = input_text if input_text is not None else json.dumps(given if given is not None else {})
        self.execution = Execution(
            arn=EXECUTION_ARN,
            name="run",
            machine_arn=MACHINE_ARN,
            machine_name="machine",
            role_arn=ROLE_ARN,
            input=Doc.of_text(text),
            started_at=self.now,
            seed=seed,
            frames=Frames(self.rows),
        )

    def start(self) -> "Play":
        """Begin, and go on until everything waits."""
        return self.tell(Started())

    def tell(self, *events: Event) -> "Play":
        """Tell the engine, and perform what it wants at once, answers included."""
        todo = list(events)
        while todo:
            commands, ready = self.step(todo.pop(0))
            if ready:
                todo.append(Continued())
            for command in commands:
                todo.extend(self.perform(command))
        return self

    def step(self, event: Event) -> tuple[list[Command], bool]:
        """Tell the engine one event, as one unit."""
        self.told.append((self.now, event))
        outcome = step(self.machine, self.execution, event, self.now)
        self.steps += 1
        self.history.extend(outcome.history)
        if self.save_every and self.steps % self.save_every == 0:
            self.save()
        return outcome.commands, outcome.ready

    def save(self) -> None:
        """Save the frames and forget them: the next step reads them again."""
        self.rows.save(self.execution.frames)
        self.execution.frames = Frames(self.rows, self.execution.frames.variable_bytes)

    def perform(self, command: Command) -> Iterable[Event]:
        """Do what the engine wants; answer what happened thereby."""
        if isinstance(command, Finish):
            assert self.finish is None, "an execution ends once"
            self.finish = command
        elif isinstance(command, CancelTask):
            self.cancelled.append(command)
        elif isinstance(command, StartMapRun):
            self.map_runs.append(command)
        elif isinstance(command, RedriveMapRun):
            self.redriven_map_runs.append(command)
        elif isinstance(command, CancelMapRun):
            self.cancelled_map_runs.append(command)
        else:
            self.scheduled.append(command)
            return self.handler(command)
        return []

    # Answers to the newest or a given task

    def succeed(self, output: Any = None, place: int = -1) -> "Play":
        task = self.scheduled[place]
        return self.tell(TaskSucceeded(task.frame, task.attempt, Doc(output)))

    def fail(self, error: str | None = "Boom", cause: str | None = "it broke", place: int = -1) -> "Play":
        task = self.scheduled[place]
        return self.tell(TaskFailed(task.frame, task.attempt, error, cause))

    def submit(self, output: Any = None, handle: str | None = None, place: int = -1) -> "Play":
        task = self.scheduled[place]
        return self.tell(TaskSubmitted(task.frame, task.attempt, Doc(output), handle))

    def stop(self, error: str | None = None, cause: str | None = None) -> "Play":
        return self.tell(StopRequested(error, cause))

    # The clock

    def frames(self) -> list[Frame]:
        """Answer the open frames, by id."""
        frames = self.execution.frames
        numbers = self.rows.bodies.keys() | {frame.id for frame in frames.loaded()}
        return [frame for number in sorted(numbers) if (frame := frames.get(number)) is not None]

    def next_due(self) -> tuple[int, int] | None:
        """Answer the nearest deadline, as (instant, frame)."""
        dues = [(frame.due, frame.id) for frame in self.frames() if frame.due is not None]
        if self.execution.deadline is not None:
            dues.append((self.execution.deadline, 0))
        return min(dues) if dues and self.execution.status == "RUNNING" else None

    def fire(self) -> bool:
        """Move to the nearest deadline and let it fire; answer whether there was one."""
        due = self.next_due()
        if due is None:
            return False
        self.now = max(self.now, due[0])
        self.tell(TimerFired(due[1]))
        return True

    def run(self, most: int = 1_000) -> "Play":
        """Start, if need be, and let every deadline fire until nothing waits for the clock."""
        if not self.history:
            self.start()
        for _ in range(most):
            if not self.fire():
                return self
        raise AssertionError("it never comes to rest")

    # What it came to

    @property
    def status(self) -> str:
        return self.execution.status

    @property
    def output(self) -> Any:
        assert self.finish is not None, self.execution.status
        assert self.finish.output is not None, self.finish
        return json.loads(self.finish.output.text)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.history]

    def wire(self) -> list[dict[str, Any]]:
        return [wire(event) for event in self.history]


def wire(event: HistoryEvent) -> dict[str, Any]:
    """Answer an event as GetExecutionHistory shows it."""
    made: dict[str, Any] = {
        "id": event.id,
        "previousEventId": event.previous,
        "timestamp": to_iso(event.at),
        "type": event.type,
    }
    if event.details is None:
        return made
    details: dict[str, Any] = {}
    for name, value in event.details.items():
        if isinstance(value, Doc):
            details[name] = value.text
            if name in {"input", "output"}:
                details[f"{name}Details"] = {"truncated": False}
        elif name == "assignedVariables":
            details[name] = {variable: doc.text for variable, doc in value.items()}
            details[f"{name}Details"] = {"truncated": False}
        else:
            details[name] = value
    made[_member(event.type)] = details
    return made


def _member(kind: str) -> str:
    """Answer the name of an event type's details member."""
    for ending, member in (("StateEntered", "stateEntered"), ("StateExited", "stateExited")):
        if kind.endswith(ending):
            return f"{member}EventDetails"
    return f"{kind[0].lower()}{kind[1:]}EventDetails"
