"""Turn: one call of `step`, with what it works on and what it has decided so far."""

import random
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tasuki.engine.execution import READY_AT_ONCE, Execution, Frame, Frames, Phase, Remain
from tasuki.engine.history import MAX_EVENTS, HistoryEvent
from tasuki.engine.variables import size_of, weigh_assigned
from tasuki.language.definition import Block, Choice, Fail, Machine, Map, Parallel, Pass, State, Succeed, Task, Wait
from tasuki.language.errors import StatesError
from tasuki.language.jsonata_compile import Fuel
from tasuki.values.chance import Chance
from tasuki.values.documents import Doc
from tasuki.values.errors import TasukiError
from tasuki.values.instant import Instant

if TYPE_CHECKING:
    from tasuki.engine.commands import Command

MAX_TRANSITIONS = READY_AT_ONCE
MAX_STEP_EVENTS = 500
MAX_STEP_BYTES = 1_048_576
MAX_STEP_FUEL = 200_000
"""Where a step yields: a unit stays small, whatever the machine does (HOUSE.md 9, "Units are small")."""

MAX_PAYLOAD_BYTES = 262_144
"""The largest input or output of a state, in UTF-8 (Step Functions quotas)."""

WORDS: Mapping[type[State], str] = {
    Pass: "Pass",
    Task: "Task",
    Choice: "Choice",
    Wait: "Wait",
    Succeed: "Succeed",
    Fail: "Fail",
    Parallel: "Parallel",
    Map: "Map",
}
ENTERED: Mapping[type[State], str] = {kind: f"{word}StateEntered" for kind, word in WORDS.items()}
EXITED: Mapping[type[State], str] = {kind: f"{word}StateExited" for kind, word in WORDS.items()}
ENDINGS = frozenset({"ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut"})


class HistoryFull(TasukiError):
    """The execution has used up its events. Never leaves the engine."""


class DataLimitExceeded(StatesError):
    """A document larger than a payload may be.

    `what` is the state's name, or a task's resource type. AWS puts no "An error occurred ..." before this cause
    (recorded: error_handling/states_errors).
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            "States.DataLimitExceeded",
            f"The state/task '{what}' returned a result with a size exceeding the maximum number of bytes service limit.",
        )


class Failure(NamedTuple):
    """An error's name and cause, as Retry and Catch see them. Either may be missing (a Fail state without them)."""

    error: str | None = None
    cause: str | None = None

    def details(self) -> dict[str, str]:
        """Answer the members of a history event: what is not there is left out."""
        return {name: text for name, text in (("error", self.error), ("cause", self.cause)) if text is not None}


class ChildSucceeded(NamedTuple):
    """A branch or iteration of a frame came to its end; its own frame is closed."""

    child: Frame
    output: Doc


class ChildFailed(NamedTuple):
    """A branch or iteration of a frame failed; its own frame is closed."""

    child: Frame
    failure: Failure
    aborted: str | None
    """The event that says that its last state was left unfinished (`TaskStateAborted`), if there is one."""


Happening: TypeAlias = ChildSucceeded | ChildFailed


class Turn:
    """One call of `step`."""

    __slots__ = (
        "_inherited",
        "bytes",
        "commands",
        "execution",
        "execution_context",
        "failure",
        "frames",
        "fuel",
        "given_context",
        "happenings",
        "history",
        "lost",
        "machine",
        "more",
        "most",
        "now",
        "output",
        "queue",
        "trace",
        "transitions",
        "weighed",
    )

    def __init__(self, machine: Machine, execution: Execution, now: Instant) -> None:
        self.machine = machine
        self.execution = execution
        self.frames: Frames = execution.frames
        self.now = now
        self.history: list[HistoryEvent] = []
        self.commands: list[Command] = []
        self.queue: deque[Frame] = deque()
        """READY frames, in the order they will run."""
        self.happenings: deque[tuple[int, Happening]] = deque()
        """What children did to their parents, by the parent's id; looked at before the queue."""
        self.more = False
        """There may be READY frames that nobody has looked at."""
        self.transitions = 0
        self.most = MAX_TRANSITIONS
        """How many of them this step may make."""
        self.bytes = 0
        self.fuel = Fuel()
        """What JSONata expressions have used up."""
        self.weighed: Doc | None = None
        """The document weighed last: a result is often the output, too."""
        self.lost: dict[int, Remain] = {}
        """What a failure that is still climbing has closed (`redrive.py`)."""
        self.failure = Failure()
        """Error and cause of an execution that ended badly in this step."""
        self.output: Doc | None = None
        """The output of an execution that ended well in this step."""
        self.execution_context: dict[str, Any] | None = None
        """`$$.Execution` and `$$.StateMachine`, made once (context.py)."""
        self.given_context: dict[str, Any] | None = None
        """The whole of `$$`, where the caller says it (TestState)."""
        self.trace: dict[str, Any] | None = None
        """Notes on how a state went, when somebody wants to know (trial.py)."""
        self._inherited: dict[int, Mapping[str, Any]] = {}

    def is_full(self) -> bool:
        """Tell whether this step has done its share."""
        return (
            self.transitions >= self.most
            or len(self.history) >= MAX_STEP_EVENTS
            or self.bytes >= MAX_STEP_BYTES
            or self.fuel.spent >= MAX_STEP_FUEL
        )

    def block(self, frame: Frame) -> Block:
        """Answer the block that a frame runs."""
        return self.machine.blocks[frame.block]

    def state(self, frame: Frame) -> State:
        """Answer the state that a frame is in."""
        return self.machine.blocks[frame.block].states[frame.state]

    def write(self, frame: Frame, kind: str, details: dict[str, Any] | None) -> int:
        """Write the next event of a frame's line; answer its number."""
        number = self.note(frame.last_event, kind, details)
        frame.last_event = number
        return number

    def note(self, previous: int, kind: str, details: dict[str, Any] | None) -> int:
        """Write an event that no line goes on from; answer its number. Raises `HistoryFull`."""
        number = self.execution.last_event + 1
        if number >= MAX_EVENTS and kind not in ENDINGS and not self.execution.express:
            raise HistoryFull
        self.execution.last_event = number
        self.history.append(HistoryEvent(number, previous, self.now, kind, details))
        return number

    def enter(self, frame: Frame, state: State) -> None:
        """Write that a frame entered a state; one that is redriven has entered it before."""
        if frame.retries:
            frame.retries = []
        frame.retry_count = 0
        if frame.entered_event:
            return
        frame.entered_at = self.now
        self.fuel.refill()
        frame.entered_event = self.write(frame, ENTERED[type(state)], {"name": state.name, "input": frame.input})

    def leave(
        self, frame: Frame, state: State, output: Doc, assigned: Mapping[str, Any] | None, following: str | None
    ) -> None:
        """Leave a state with an output; go on to the following one, or end the frame.

        Raises `DataLimitExceeded`, and `StatesError` for variables that are too large.
        """
        if output is not frame.input:
            self.weigh(output, state.name)
        details: dict[str, Any] = {"name": state.name, "output": output}
        if assigned:
            docs = details["assignedVariables"] = {name: Doc(value) for name, value in assigned.items()}
            size = weigh_assigned(docs)
            self.frames.assign(frame, assigned, size)
            self.bytes += size
        self.write(frame, EXITED[type(state)], details)
        frame.input = output
        frame.entered_event = 0
        if following is None:
            self.end(frame, output)
        else:
            frame.state = following
            frame.phase = Phase.READY

    def end(self, frame: Frame, output: Doc) -> None:
        """End a frame well: the execution, or a child of another frame."""
        parent = frame.parent
        self.close(frame)
        if parent is not None:
            self.happenings.append((parent, ChildSucceeded(frame, output)))
            return
        self.write(frame, "ExecutionSucceeded", {"output": output})
        self.output = output
        self.execution.status = "SUCCEEDED"

    def close(self, frame: Frame) -> None:
        """Take a frame out of the execution."""
        frame.phase = Phase.CLOSED
        self.frames.close(frame)

    def weigh(self, doc: Doc, what: str) -> None:
        """Check a new document's size and count it. Raises `DataLimitExceeded` in the name of `what`."""
        if doc is self.weighed:
            return
        size = size_of(doc, what)
        if size > MAX_PAYLOAD_BYTES:
            raise DataLimitExceeded(what)
        self.bytes += size
        self.weighed = doc

    def variables(self, frame: Frame) -> Mapping[str, Any]:
        """Answer the variables that a frame can see: its own, and those of the frames around it."""
        if frame.parent is None:
            return frame.variables
        outer = self._inherited.get(frame.parent)
        if outer is None:
            # While a frame is open, the frames around it stand still: what they hold is read once a step.
            parent = self.frames.get(frame.parent)
            assert parent is not None, "a frame outlived its parent"
            outer = self._inherited[frame.parent] = self.variables(parent)
        return {**outer, **frame.variables} if frame.variables and outer else outer or frame.variables

    def forget_scope(self, frame: Frame) -> None:
        """A frame opens children again: what it lets them see may have changed."""
        self._inherited.pop(frame.id, None)

    def chance(self, purpose: str = "") -> Chance:
        """Answer the randomness of the next event: the same for a step that is decided again."""
        return Chance(_Bits(self.execution.seed, purpose, self.execution.last_event + 1))


class _Bits:
    """Random bits from a seed, made on the first draw: few states draw, and seeding costs more than a state."""

    __slots__ = ("_number", "_purpose", "_random", "_seed")

    def __init__(self, seed: str, purpose: str, number: int) -> None:
        self._seed = seed
        self._purpose = purpose
        self._number = number
        self._random: random.Random | None = None

    def _source(self) -> random.Random:
        if self._random is None:
            seed = f"{self._seed}/{self._purpose}{self._number}"
            self._random = random.Random(seed)  # noqa: S311 - the seed is the secret
        return self._random

    def getrandbits(self, k: int, /) -> int:
        """Answer `k` random bits."""
        return self._source().getrandbits(k)

    def random(self) -> float:
        """Answer a float in [0, 1)."""
        return self._source().random()
