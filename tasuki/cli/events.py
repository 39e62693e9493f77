"""What an execution's history says, in a few words for one line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

_STATE = re.compile(
    r"^(Task|Choice|Map|Parallel|Pass|Wait|Succeed|Fail)State(Entered|Exited|Aborted|Started|Succeeded|Failed)$"
)
_ENDS = {
    "ExecutionSucceeded": "SUCCEEDED",
    "ExecutionFailed": "FAILED",
    "ExecutionTimedOut": "TIMED_OUT",
    "ExecutionAborted": "ABORTED",
}
_LONGEST = 160


@dataclass(frozen=True, slots=True)
class Said:
    """One event for a reader: a mark, the state's or resource's name, what happened, and the rest."""

    mark: str
    subject: str
    verb: str
    rest: str = ""

    @property
    def text(self) -> str:
        """All of it, on one line."""
        return f"{self.mark} {self.subject:<24} {self.verb}{'  ' + self.rest if self.rest else ''}"


def said(event: Mapping[str, Any]) -> Said:
    """Put one event of GetExecutionHistory into words."""
    kind = str(event["type"])
    details = details_of(event)
    found = _STATE.match(kind)
    if found:
        marks = {"Entered": ">", "Exited": "<", "Succeeded": "+", "Started": "|"}
        name = str(details.get("name") or found[1])
        document = details.get("input") if found[2] == "Entered" else details.get("output")
        return Said(marks.get(found[2], "x"), name, f"{found[1]} {found[2].lower()}", short(document))
    if kind in _ENDS:
        return Said("=", "execution", _ENDS[kind], short(details.get("output") or _error(details)))
    if kind == "ExecutionStarted":
        return Said("=", "execution", "started", short(details.get("input")))
    if kind.startswith(("Task", "Activity", "Lambda")):
        resource = f"{details.get('resourceType', '')}:{details.get('resource', '')}".strip(":") or kind
        verb = re.sub(r"^(Task|Activity|LambdaFunction)", "", kind).lower()
        mark = "x" if "Failed" in kind or "TimedOut" in kind else "|"
        return Said(mark, "  " + resource, verb, _task(details) or short(_error(details)))
    return Said("|", "  " + str(details.get("name", "")), kind, short(_error(details)))


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


def _task(details: Mapping[str, Any]) -> str:
    """Name the task that an event's output or cause describes."""
    try:
        told = documents.loads(details.get("output") or details.get("cause") or "")
        task = told["Tasks"][0] if "Tasks" in told else told
        exits = [str(c["ExitCode"]) for c in task.get("Containers", ()) if "ExitCode" in c]
        end = f" exit {','.join(exits)}" if exits else ""
        why = f"  {task['StoppedReason']}" if end and exits != ["0"] and task.get("StoppedReason") else ""
        return f"task {task['TaskArn'].rpartition('/')[2]} {task.get('LastStatus', '')}{end}{why}"
    except (MalformedDocument, KeyError, IndexError, TypeError, AttributeError):
        return ""


def _error(details: Mapping[str, Any]) -> str:
    return ": ".join(part for part in (details.get("error"), details.get("cause")) if part)


def short(text: Any) -> str:
    """Cut a document to what fits on a line."""
    flat = " ".join(str(text or "").split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
