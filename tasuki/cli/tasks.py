"""`ps` and `logs`: tasks and what they wrote."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.pace import pause
from tasuki.cli.pages import describe_tasks, task_arn, task_arns
from tasuki.cli.reach import Reach
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

COLUMNS = ("task", "definition", "status", "pid", "memory", "exit", "started", "execution")


def ps(reach: Reach, *, stopped: bool, as_json: bool) -> None:
    """List the tasks that run, and with `stopped` those that ended lately."""
    tasks = describe_tasks(reach, task_arns(reach, stopped=stopped))
    rows = [row_of(reach, task) for task in sorted(tasks, key=lambda task: str(task.get("createdAt", "")))]
    if as_json:
        screen.show_json(rows)
    else:
        for row in rows:
            row["execution"] = ":".join(str(row["execution"] or "").split(":")[-2:])  # as `watch` takes it
        screen.show_table(rows, COLUMNS, empty="no task runs" if not stopped else "no task has run lately")


def row_of(reach: Reach, task: Mapping[str, Any]) -> dict[str, Any]:
    """Answer what people want to know of a task; `pid`, when its node is on this machine and it runs."""
    container: Mapping[str, Any] = next(iter(task.get("containers", ())), {})
    identity = str(task["taskArn"]).rpartition("/")[2]
    exits = [c["exitCode"] for c in task.get("containers", ()) if "exitCode" in c]
    attributes = {one["name"]: one.get("value") for one in task.get("attributes", ())}
    return {
        "task": identity,
        "definition": str(task["taskDefinitionArn"]).rpartition("/")[2],
        "image": container.get("image", ""),
        "status": task.get("lastStatus"),
        "pid": pid_of(reach, identity) if task.get("lastStatus") != "STOPPED" else None,
        "memory": f"{task['memory']} MiB" if task.get("memory") else None,
        "exit": next((code for code in exits if code != 0), exits[0] if exits else None),
        "reason": container.get("reason") or task.get("stoppedReason"),
        "created": task.get("createdAt"),
        "started": task.get("startedAt"),
        "stopped": task.get("executionStoppedAt"),
        "execution": attributes.get("origin") or task.get("startedBy"),
    }


def pid_of(reach: Reach, identity: str) -> int | None:
    """Answer the process id of a running task from what its shim wrote, if its node is on this machine."""
    if reach.folder is None:
        return None
    for source in sorted((reach.folder / "tasks" / identity).glob("*/facts"), reverse=True):
        try:
            containers = documents.loads(source.read_bytes())["containers"]
        except (OSError, MalformedDocument, KeyError, TypeError):
            continue
        return next((int(c["pid"]) for c in containers if c.get("pid") and not c.get("ended")), None)
    return None


def logs(reach: Reach, wanted: str, *, following: bool, as_json: bool) -> None:
    """Print what a task wrote; with `following`, go on until it has ended."""
    arn = task_arn(reach, wanted)
    identity = arn.rpartition("/")[2]
    if reach.folder is None:
        raise Complaint(
            "the log files are in the node's data directory, and it is not known",
            Code.USAGE,
            hint="name it: --data DIR",
        )
    folder = reach.folder / "tasks" / identity
    tails: dict[Path, int] = {}
    while True:
        ended = not following or _ended(reach, arn)
        for source in sorted(path for path in folder.rglob("*.log") if path.name != "shim.log"):
            tails[source] = _print_from(source, tails.get(source, 0), as_json=as_json)
        if ended:
            break
        pause()
    if not tails:
        raise Complaint(f"task {identity} has written nothing", hint=f"looked in {folder}")


def _ended(reach: Reach, arn: str) -> bool:
    found = describe_tasks(reach, [arn])
    return not found or found[0]["lastStatus"] == "STOPPED"


def _print_from(source: Path, at: int, *, as_json: bool) -> int:
    """Print a file from byte `at`; answer where it ends now."""
    with source.open("rb") as log:
        if log.seek(0, os.SEEK_END) < at:
            at = 0  # it passed its cap and was started anew
        log.seek(at)
        text = log.read()
    if not text:
        return at
    if as_json:
        for entry in text.decode(errors="replace").splitlines():
            screen.show_json({"log": source.name, "line": entry})
    else:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    return at + len(text)
