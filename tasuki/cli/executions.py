"""`start`, `watch` and `history`: executions."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tasuki.cli import map_runs, screen
from tasuki.cli.causes import put_into_words
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.events import ENDS, Said, Teller, short, task_of
from tasuki.cli.pace import pause
from tasuki.cli.pages import describe_tasks, every, execution_arn, machine_arn
from tasuki.cli.reach import Reach
from tasuki.cli.steady import Steady
from tasuki.cli.tasks import row_of, telling_reason
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

ANSWER_WITHIN_S = 330
"""How long an Express execution is waited for: its five minutes, and a little."""
_PAGE = 200


def start(reach: Reach, machine: str, text: str, name: str | None, *, as_json: bool) -> str:
    """Start an execution; print and answer its ARN. `text` is JSON, or `@FILE`."""
    started = reach.client("stepfunctions").start_execution(**_parameters(reach, machine, text, name))
    arn = str(started["executionArn"])
    if as_json:
        screen.show_json({"executionArn": arn, "startDate": started["startDate"]})
    else:
        screen.line(arn)
    return arn


def _parameters(reach: Reach, machine: str, text: str, name: str | None) -> dict[str, str]:
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
    return {**parameters, "name": name} if name else parameters


def run_express(reach: Reach, machine: str, text: str, name: str | None, *, as_json: bool) -> Code:
    """Run an Express machine and wait for its answer: there is no history to follow."""
    parameters = _parameters(reach, machine, text, name)
    ended = reach.client("stepfunctions", ANSWER_WITHIN_S).start_sync_execution(**parameters)
    ended.pop("ResponseMetadata", None)
    if as_json:
        screen.show_json(ended)
    else:
        screen.line(str(ended["executionArn"]))
        reason = ": ".join(part for part in (ended.get("error"), put_into_words(ended.get("cause"))) if part)
        took = _seconds(ended["startDate"], ended["stopDate"])
        screen.line(f"{took} {Said('=', 'execution', ended['status'], ended.get('output') or reason).text}")
    return Code.DONE if ended["status"] == "SUCCEEDED" else Code.NO


def history(reach: Reach, execution: str | None, *, as_json: bool) -> None:
    """Print every event of an execution."""
    arn = execution_arn(reach, execution)
    events = list(every(reach, "stepfunctions", "get_execution_history", "events", executionArn=arn))
    if as_json:
        screen.show_json(events)
        return
    began = events[0]["timestamp"] if events else None
    teller = Teller()
    for event in events:
        screen.line(f"{event['id']:>6} {_seconds(began, event['timestamp'])} {teller.said(event).text}")


def watch(reach: Reach, execution: str | None, *, as_json: bool, named: bool = False) -> Code:
    """Follow an execution until it ends. Answers `Code.NO` when it did not succeed. `named`: its ARN was printed."""
    if execution is not None and execution.startswith("arn:") and ":mapRun:" in execution:
        return map_runs.watch(reach, execution, as_json=as_json)
    arn = execution_arn(reach, execution)
    steady = Steady(reach)
    if not as_json and not named:
        screen.line(arn)
    began = _described(steady, arn)["startDate"]
    tasks, runs, teller = _Tasks(steady), map_runs.MapRuns(steady), Teller()

    def show() -> None:
        tasks.show()
        runs.show()

    for event in follow(steady, arn, show if not as_json else None):
        if as_json:
            screen.show_json(event)
        else:
            screen.line(f"{_seconds(began, event['timestamp'])} {teller.said(event).text}")
            tasks.note(event)
            runs.note(event)
    return Code.DONE if _described(steady, arn)["status"] == "SUCCEEDED" else Code.NO


def _described(steady: Steady, arn: str) -> dict[str, Any]:
    return steady.ask(lambda reach: dict(reach.client("stepfunctions").describe_execution(executionArn=arn)))


def follow(steady: Steady, arn: str, between: Callable[[], None] | None = None) -> Iterator[dict[str, Any]]:
    """Yield an execution's events as they are written, and end with it. Calls `between()` while there is nothing new."""
    place: dict[str, str] = {}
    last = 0
    while True:
        asked = {"executionArn": arn, "maxResults": _PAGE, **place}
        page = steady.ask(
            lambda reach, asked=asked: reach.client("stepfunctions").get_execution_history(**asked)  # type: ignore[misc]
        )
        fresh = [event for event in page["events"] if event["id"] > last]
        yield from fresh
        last = fresh[-1]["id"] if fresh else last
        if "nextToken" in page:
            place = {"nextToken": page["nextToken"]}
            continue
        if fresh and fresh[-1]["type"] in ENDS:
            return
        if between is not None:
            between()
        pause()


class _Tasks:
    """The tasks that a watched execution started: a line whenever one changes."""

    def __init__(self, steady: Steady) -> None:
        self._steady = steady
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
        for task in self._steady.ask(lambda reach: describe_tasks(reach, list(self._open))):
            row = row_of(self._steady.reach, task)
            pid = f" pid {row['pid']}" if row["pid"] else ""
            end = f" exit {row['exit']}" if row["exit"] is not None else ""
            why = f", {reason}" if (reason := short(telling_reason(row))) else ""
            where = f" on node {row['node']}" if row["node"] else ""
            now = f"{row['status']}{where}{pid}{end}{why}"
            if now != self._open[task["taskArn"]]:
                screen.line(f"{'':>9} |   task {row['task'][:8]} {row['image']} {now}")
                self._open[task["taskArn"]] = now
            if task["lastStatus"] == "STOPPED":
                del self._open[task["taskArn"]]


def _seconds(began: datetime | None, moment: datetime) -> str:
    """Write how long after the start something happened."""
    return f"{(moment - began).total_seconds() if began else 0.0:>8.3f}s"
