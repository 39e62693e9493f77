"""`ps` and `logs`: tasks and what they wrote."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasuki.cli import screen
from tasuki.cli.causes import ESSENTIAL
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.events import short
from tasuki.cli.nodes import listed
from tasuki.cli.pace import pause
from tasuki.cli.pages import describe_tasks, task_arn, task_arns
from tasuki.cli.reach import Reach
from tasuki.cli.steady import Steady
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

COLUMNS = ("task", "definition", "status", "pid", "memory", "exit", "started", "execution")
ENDED_COLUMNS = ("task", "definition", "status", "pid", "memory", "exit", "reason", "started", "execution")
_REASON = 120


def ps(reach: Reach, *, stopped: bool, as_json: bool) -> None:
    """List the tasks that run, and with `stopped` those that ended lately."""
    tasks = describe_tasks(reach, task_arns(reach, stopped=stopped))
    rows = [row_of(reach, task) for task in sorted(tasks, key=lambda task: str(task.get("createdAt", "")))]
    if as_json:
        screen.show_json(rows)
    else:
        for row in rows:
            row["execution"] = ":".join(str(row["execution"] or "").split(":")[-2:])  # as `watch` takes it
            row["reason"] = short(telling_reason(row), _REASON)
        columns = ENDED_COLUMNS if stopped else COLUMNS
        if any(row["node"] for row in rows):
            columns = (*columns[:3], "node", *columns[3:])
        screen.show_table(rows, columns, empty="no task runs" if not stopped else "no task has run lately")


def telling_reason(row: Mapping[str, Any]) -> str:
    """Answer a row's reason, unless it says only that the program ended."""
    reason = str(row["reason"] or "")
    return "" if reason.startswith(ESSENTIAL) else reason


def row_of(reach: Reach, task: Mapping[str, Any]) -> dict[str, Any]:
    """Answer what people want to know of a task; `pid`, when its node is on this machine and it runs; `node`, among several."""
    container: Mapping[str, Any] = next(iter(task.get("containers", ())), {})
    identity = str(task["taskArn"]).rpartition("/")[2]
    exits = [c["exitCode"] for c in task.get("containers", ()) if "exitCode" in c]
    attributes = {one["name"]: one.get("value") for one in task.get("attributes", ())}
    return {
        "task": identity,
        "definition": str(task["taskDefinitionArn"]).rpartition("/")[2],
        "image": container.get("image", ""),
        "status": task.get("lastStatus"),
        "node": attributes.get("node"),
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
    containers = _latest_facts(reach.folder / "tasks" / identity).get("containers", ())
    return next((int(one["pid"]) for one in containers if one.get("pid") and not one.get("ended")), None)


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
    refuse_another_nodes(reach, arn)
    tails: dict[Path, int] = {}
    steady = Steady(reach)
    while True:
        ended = not following or has_ended(steady, arn, folder)
        for source in sorted(path for path in folder.rglob("*.log") if path.name != "shim.log"):
            tails[source] = _print_from(source, tails.get(source, 0), as_json=as_json)
        if ended:
            break
        pause()
    if not tails:
        raise Complaint(f"task {identity} has written nothing", hint=f"looked in {folder}")


def refuse_another_nodes(reach: Reach, arn: str) -> None:
    """Say where a task's logs are when they are not in our data directory. Raises `Complaint`.

    Whoever cannot be asked just now has nothing to say: then what is here is shown.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        tasks = describe_tasks(reach, [arn])
        attributes = {one["name"]: one.get("value") for task in tasks for one in task.get("attributes", ())}
        node = attributes.get("node")
        if node is None or reach.folder is None or _text(reach.folder / "node_id") == node:
            return
        found: dict[str, Any] = next((one for one in listed(reach) if one["Id"] == node), {})
    except (BotoCoreError, ClientError, OSError):
        return
    host, url = found.get("Host", "another machine"), found.get("Url", "not known")
    raise Complaint(
        f"task {arn.rpartition('/')[2]} runs on node {node} ({url}), and its log files are there",
        hint=f"on {host}: tasuki logs {arn.rpartition('/')[2]} --data DIR, with that node's data directory",
    )


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def has_ended(steady: Steady, arn: str, folder: Path) -> bool:
    """Ask the node whether a task has ended; while no node is there, see what the task's shim has written."""
    found = steady.try_once(lambda reach: describe_tasks(reach, [arn]))
    if found is None:
        return _latest_facts(folder).get("phase") == "ended"
    return not found or found[0]["lastStatus"] == "STOPPED"


def _latest_facts(folder: Path) -> dict[str, Any]:
    """Answer what the shim of a task's latest attempt has written."""
    for source in sorted(folder.glob("*/facts"), reverse=True):
        try:
            facts = documents.loads(source.read_bytes())
        except (OSError, MalformedDocument):
            continue
        return facts if isinstance(facts, dict) else {}
    return {}


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
