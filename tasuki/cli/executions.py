"""`start`, `watch` and `history`: executions."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.events import said, task_of
from tasuki.cli.pace import pause
from tasuki.cli.pages import describe_tasks, every, execution_arn, machine_arn
from tasuki.cli.reach import Reach
from tasuki.cli.tasks import row_of
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

_PAGE = 200


def start(reach: Reach, machine: str, text: str, name: str | None, *, as_json: bool) -> str:
    """Start an execution; print and answer its ARN. `text` is JSON, or `@FILE`."""
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text()
        except OSError as missing:
            raise Complaint(f"{text[1:]}: {missing.strerror}", Code.USAGE) from None
    try:
        documents.loads(text)
    except MalformedDocument as bad:
        raise Complaint(
            f"the input is not JSON: {bad}", Code.USAGE, hint="--input '{\"a\": 1}' or --input @file"
        ) from None
    parameters = {"stateMachineArn": machine_arn(reach, machine), "input": text}
    if name:
        parameters["name"] = name
    started = reach.client("stepfunctions").start_execution(**parameters)
    arn = str(started["executionArn"])
    if as_json:
        screen.show_json({"executionArn": arn, "startDate": started["startDate"]})
    else:
        screen.line(arn)
    return arn


def history(reach: Reach, execution: str | None, *, as_json: bool) -> None:
    """Print every event of an execution."""
    arn = execution_arn(reach, execution)
    events = list(every(reach, "stepfunctions", "get_execution_history", "events", executionArn=arn))
    if as_json:
        screen.show_json(events)
        return
    began = events[0]["timestamp"] if events else None
    for event in events:
        screen.line(f"{event['id']:>6} {_seconds(began, event['timestamp'])} {said(event).text}")


def watch(reach: Reach, execution: str | None, *, as_json: bool) -> Code:
    """Follow an execution until it ends. Answers `Code.NO` when it did not succeed."""
    arn = execution_arn(reach, execution)
    states = reach.client("stepfunctions")
    if not as_json:
        screen.line(arn)
    began = states.describe_execution(executionArn=arn)["startDate"]
    tasks = _Tasks(reach)
    for event in follow(reach, arn, tasks.show if not as_json else None):
        if as_json:
            screen.show_json(event)
        else:
            screen.line(f"{_seconds(began, event['timestamp'])} {said(event).text}")
            tasks.note(event)
    return Code.DONE if states.describe_execution(executionArn=arn)["status"] == "SUCCEEDED" else Code.NO


def follow(reach: Reach, arn: str, between: Any = None) -> Iterator[dict[str, Any]]:
    """Yield an execution's events as they are written, and end with it. Calls `between()` while there is nothing new."""
    states = reach.client("stepfunctions")
    place: dict[str, str] = {}
    last = 0
    while True:
        page = states.get_execution_history(executionArn=arn, maxResults=_PAGE, **place)
        fresh = [event for event in page["events"] if event["id"] > last]
        yield from fresh
        last = fresh[-1]["id"] if fresh else last
        if "nextToken" in page:
            place = {"nextToken": page["nextToken"]}
            continue
        if fresh and fresh[-1]["type"].startswith("Execution") and fresh[-1]["type"] != "ExecutionStarted":
            return
        if between is not None:
            between()
        pause()


class _Tasks:
    """The tasks that a watched execution started: a line whenever one changes."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._open: dict[str, str] = {}

    def note(self, event: dict[str, Any]) -> None:
        """Remember the task that an event submitted."""
        arn = task_of(event)
        if arn:
            self._open[arn] = ""

    def show(self) -> None:
        """Print what changed since the last look."""
        if not self._open:
            return
        for task in describe_tasks(self._reach, list(self._open)):
            row = row_of(self._reach, task)
            pid = f" pid {row['pid']}" if row["pid"] else ""
            end = f" exit {row['exit']}" if row["exit"] is not None else ""
            now = f"{row['status']}{pid}{end}"
            if now != self._open[task["taskArn"]]:
                screen.line(f"{'':>9} |   task {row['task'][:8]} {row['image']} {now}")
                self._open[task["taskArn"]] = now
            if task["lastStatus"] == "STOPPED":
                del self._open[task["taskArn"]]


def _seconds(began: datetime | None, moment: datetime) -> str:
    """Write how long after the start something happened."""
    return f"{(moment - began).total_seconds() if began else 0.0:>8.3f}s"
