"""What an execution's history says, in a few words for one line.

::

    > Each[0]/Both[1]/Send   entered (Task)  {"n":1}          a state, below the iteration and branch it is in
    | Each[0]/Both[1]/Send   sqs:sendMessage scheduled        what it did
    x Run                    ecs:runTask.sync failed  States.TaskFailed: task 3f…: exit 137, OutOfMemoryError: …

`>` a state is entered, `<` left, `+` succeeded, `x` failed, `|` anything between, `=` the execution itself.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasuki.cli.causes import name_of, put_into_words, task_in
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

ENDS = {
    "ExecutionSucceeded": "SUCCEEDED",
    "ExecutionFailed": "FAILED",
    "ExecutionTimedOut": "TIMED_OUT",
    "ExecutionAborted": "ABORTED",
}
"""The events with which an execution ends, and its status then."""
_STATE = re.compile(
    r"^(Task|Choice|Map|Parallel|Pass|Wait|Succeed|Fail)State(Entered|Exited|Aborted|Started|Succeeded|Failed)$"
)
_ENTERED_AT = re.compile(r"\(entered at the event id #(\d+)\)")
"""How the cause of a failed expression says where: the event does not follow that of its state."""
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MARKS = {"Entered": ">", "Exited": "<", "Succeeded": "+", "Started": "|"}
_BAD = ("Failed", "TimedOut", "Aborted")
_LONGEST, _LONGEST_REASON = 160, 600
_REPEATED, _REPEATED_REASON = 30, 80
"""What was shown before is cut to so many characters."""


@dataclass(frozen=True, slots=True)
class Said:
    """One event for a reader: a mark, where it happened, what happened, and the rest."""

    mark: str
    subject: str
    verb: str
    rest: str = ""

    @property
    def text(self) -> str:
        """All of it, on one line."""
        return f"{self.mark} {self.subject:<24} {self.verb}{'  ' + self.rest if self.rest else ''}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the tree an event happened: the iterations and branches around it, and the state."""

    around: tuple[tuple[str, int], ...] = ()
    state: str = ""

    @property
    def text(self) -> str:
        return "/".join([*(f"{name}[{index}]" for name, index in self.around), self.state])


@dataclass(slots=True)
class Teller:
    """Puts a history into words, event by event, from its beginning: each event is placed by the one it followed."""

    _places: dict[int, _Place] = field(default_factory=dict)
    _branches: dict[int, int] = field(default_factory=dict)
    """How many branches each started Parallel state has shown so far."""
    _parallels: set[int] = field(default_factory=set)
    _open: dict[_Place, str] = field(default_factory=dict)
    """The Map and Parallel states that have not ended: what ends them follows anything that happened inside."""
    _shown: set[str] = field(default_factory=set)

    def said(self, event: Mapping[str, Any]) -> Said:
        """Put the next event of GetExecutionHistory into words."""
        kind, details = str(event["type"]), details_of(event)
        place = self._placed(event, kind, details)
        if kind in ENDS:
            return Said("=", "execution", ENDS[kind], self._document(details.get("output")) or self._reason(details))
        if kind.startswith("Execution"):
            return Said("=", "execution", kind[9:].lower(), self._document(details.get("input")))
        if found := _STATE.match(kind):
            verb = f"entered ({found[1]})" if found[2] == "Entered" else found[2].lower()
            document = details.get("input") if found[2] == "Entered" else details.get("output")
            return Said(_MARKS.get(found[2], "x"), place.text, verb, self._document(document) or self._reason(details))
        mark = "x" if kind.endswith(_BAD) else "|"
        if kind.startswith(("Task", "Activity", "Lambda")):
            resource = f"{details.get('resourceType', '')}:{details.get('resource', '')}".strip(":") or _words(kind, 1)
            verb = re.sub(r"^(Task|Activity|LambdaFunction)", "", kind)
            return Said(mark, place.text, f"{resource} {_words(verb)}", self._task(details))
        return Said(mark, place.text, _words(kind.removeprefix("Map")), self._reason(details))

    def _placed(self, event: Mapping[str, Any], kind: str, details: Mapping[str, Any]) -> _Place:
        """Answer where an event belongs, and remember where what follows it does."""
        number, before = int(event["id"]), int(event.get("previousEventId", 0))
        earlier = self._places.get(before, _Place())
        if kind == "EvaluationFailed":
            place = self._places[number] = self._evaluated(details, earlier)
            return place
        around, state = earlier.around, str(details.get("name") or earlier.state)
        if kind.startswith("MapIteration"):
            index = int(details.get("index", 0))
            inner = (*around, (state, index))
            if kind == "MapIterationStarted":
                self._places[number] = _Place(inner, "")
                return _Place(around, f"{state}[{index}]")
            while around and around[-1] != (state, index):
                around = around[:-1]  # it ended inside a branch of its own
            self._places[number] = _Place(around[:-1], state)
            return _Place(around[:-1], f"{state}[{index}]")
        if before in self._parallels and kind.endswith("StateEntered"):
            branch = self._branches[before] = self._branches.get(before, -1) + 1
            around = (*around, (earlier.state, branch))
        if kind == "ParallelStateStarted":
            self._parallels.add(number)
        elif kind.startswith(("Map", "Parallel")) and kind.endswith(("StateSucceeded", "StateFailed")):
            around, state = self._closed(kind.partition("State")[0], earlier)
        for at, (name, _) in enumerate(around):
            if kind.endswith("StateExited") and name == state:  # it may follow what happened last inside of it
                around = around[:at]
                break
        place = self._places[number] = _Place(around, state)
        if kind in {"MapStateEntered", "ParallelStateEntered"}:
            self._open[place] = kind.partition("State")[0]
        return place

    def _evaluated(self, details: Mapping[str, Any], earlier: _Place) -> _Place:
        """Answer the place of the state whose expression failed."""
        state = str(details.get("state") or earlier.state)
        if found := _ENTERED_AT.search(str(details.get("cause"))):
            entered = self._places.get(int(found[1]))
            if entered is not None and entered.state == state:
                return entered
        return _Place(earlier.around, state)

    def _closed(self, kind: str, earlier: _Place) -> tuple[tuple[tuple[str, int], ...], str]:
        """Answer the innermost open state of a kind around an event, which ends with it."""
        around, state = earlier.around, earlier.state
        while self._open.get(_Place(around, state)) != kind:
            if not around:  # it was closed once, and redriven
                around, state = earlier.around, earlier.state
                return (around[:-1], around[-1][0]) if around and kind == "Parallel" else (around, state)
            around, state = around[:-1], around[-1][0]
        del self._open[_Place(around, state)]
        return around, state

    def _task(self, details: Mapping[str, Any]) -> str:
        if details.get("error") or details.get("cause"):
            return self._reason(details)
        task = task_in(details.get("output"))
        if task is not None:
            exits = [str(c["ExitCode"]) for c in task.get("Containers", ()) if "ExitCode" in c]
            return name_of(task) + (f", exit {','.join(exits)}" if exits else "")
        return self._document(details.get("output"))

    def _reason(self, details: Mapping[str, Any]) -> str:
        parts = (details.get("error"), put_into_words(details.get("cause")))
        return self._once(": ".join(part for part in parts if part), _LONGEST_REASON, _REPEATED_REASON)

    def _document(self, text: Any) -> str:
        return self._once(str(text or ""), _LONGEST, _REPEATED)

    def _once(self, text: str, longest: int, repeated: int) -> str:
        """Show a text in full the first time, by its beginning later."""
        if text in self._shown and len(text) > repeated + 10:
            return f"{short(text, repeated)} (as above)"
        self._shown.add(text)
        return short(text, longest)


def details_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the one member that carries an event's details."""
    return next((value for key, value in event.items() if key.endswith("EventDetails")), {})


def task_of(event: Mapping[str, Any]) -> str | None:
    """Answer the ARN of the task that a TaskSubmitted event speaks of, if it is one."""
    if event["type"] != "TaskSubmitted":
        return None
    try:
        output = documents.loads(details_of(event).get("output", "{}"))
        return str(output["Tasks"][0]["TaskArn"])
    except (MalformedDocument, KeyError, IndexError, TypeError):
        return None


def _words(kind: str, most: int | None = None) -> str:
    """Write a name like `MapRunStarted` as words."""
    return " ".join(_WORDS.split(kind)[:most]).lower()


def short(text: Any, longest: int = _LONGEST) -> str:
    """Cut a document to what fits on a line."""
    flat = " ".join(str(text or "").split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"
