"""step(): the funnel. Everything that can change an execution passes through here."""

from dataclasses import dataclass, field

from tasuki.engine.commands import Command
from tasuki.engine.events import Event
from tasuki.engine.execution import Execution
from tasuki.engine.history import HistoryEvent
from tasuki.language.definition import Machine
from tasuki.values.instant import Instant


@dataclass(slots=True)
class Outcome:
    """What a step decided. The execution handed in has been brought up to date."""

    history: list[HistoryEvent] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    ready: bool = False
    """There is more to do at once: `step` stopped at its bound. Call again with `Continued`, in a later unit."""


def step(machine: Machine, execution: Execution, event: Event, now: Instant) -> Outcome:
    """Tell an execution what happened; answer what it did about it, up to the next point where it must wait.

    Chance is drawn from `execution.seed` and the number of the event being written.
    """
    raise NotImplementedError
