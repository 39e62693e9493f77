"""Why something failed, for people: the few words that matter in the JSON documents that services give as a cause."""

from collections.abc import Mapping
from typing import Any

from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

ESSENTIAL = "Essential container in task exited"
"""What ECS says of every task that simply ended: the exit code says more."""


def put_into_words(cause: Any) -> str:
    """Put a cause into words: a task's or a child execution's description becomes a sentence; other text stays."""
    task = task_in(cause)
    if task is not None:
        why = reason_of(task)
        return name_of(task) + (f": {why}" if why else "")
    told = _document(cause)
    if "ExecutionArn" in told and "Status" in told:
        name = ":".join(str(told["ExecutionArn"]).split(":")[6:])
        parts = (told.get("Error"), put_into_words(told.get("Cause")))
        return ": ".join([f"execution {name} {told['Status']}", *(part for part in parts if part)])
    return str(cause or "")


def task_in(text: Any) -> dict[str, Any] | None:
    """Answer the task that a document describes as Step Functions shows them, or the first of those that it lists."""
    told: Any = _document(text)
    try:
        if "Tasks" in told:
            told = told["Tasks"][0]
        return told if isinstance(told["TaskArn"], str) else None
    except (KeyError, IndexError, TypeError):
        return None


def name_of(task: Mapping[str, Any]) -> str:
    """Name a task, and its node where there are several."""
    attributes = [one for one in task.get("Attributes") or () if isinstance(one, dict)]
    node = next((one.get("Value") for one in attributes if one.get("Name") == "node"), None)
    return f"task {str(task['TaskArn']).rpartition('/')[2]}" + (f" on node {node}" if node else "")


def reason_of(task: Mapping[str, Any]) -> str:
    """Say why a task ended as it did: exit codes, the containers' own reasons, else ECS's."""
    said = []
    containers = [one for one in task.get("Containers") or () if isinstance(one, dict)]
    for one in containers:
        where = f"{one.get('Name')}: " if len(containers) > 1 else ""
        if one.get("ExitCode"):
            said.append(f"{where}exit {one['ExitCode']}")
        if one.get("Reason"):
            said.append(f"{where}{one['Reason']}")
    stopped = str(task.get("StoppedReason") or "")
    if stopped and not stopped.startswith(ESSENTIAL) and not any(stopped in one for one in said):
        said.append(stopped)
    return ", ".join(said)


def _document(text: Any) -> dict[str, Any]:
    try:
        told = documents.loads(text or "")
    except (MalformedDocument, TypeError):
        return {}
    return told if isinstance(told, dict) else {}
