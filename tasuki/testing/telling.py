"""What a house tells of itself under a test that failed: what went wrong first, then what came last."""

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from tasuki.testing.looks import Execution, Task
from tasuki.values.documents import dumps

STORIES = 5
"""Executions and tasks of either kind that are told of: those that went wrong, and the last of the others."""
INPUT = 80
"""Characters of an execution's input."""
LINES, WIDTH = 5, 300
"""The last lines of a failed task's output, and their characters."""


def executions_told(executions: Sequence[Execution], zone: tzinfo | None) -> Iterator[str]:
    """Tell of executions: first of those that failed or still run, with their histories, then of the last of the others."""
    ended = [one for one in executions if one.status not in {"SUCCEEDED", "RUNNING"}]
    running = [one for one in executions if one.status == "RUNNING"]
    room = STORIES - len(ended[-STORIES:])
    first = ended[-STORIES:] + (running[-room:] if room else [])
    chosen = {one.arn for one in first}
    for one in first:
        yield _line(one, zone)
        yield one.story()
    if more := len(ended) + len(running) - len(first):
        yield f"... and {more} more that did not succeed"
    for one in [one for one in executions if one.arn not in chosen][-STORIES:]:
        yield _line(one, zone)


def _line(one: Execution, zone: tzinfo | None) -> str:
    why = f" ({one.error})" if one.error else ""
    given = dumps(one.input)
    given = given if len(given) <= INPUT else f"{given[:INPUT]} ..."
    return (
        f"execution {one.name} of {one.machine}: {one.status}{why}, started {spoken(one.started, zone)}, input {given}"
    )


def tasks_told(tasks: Sequence[Task]) -> Iterator[str]:
    """Tell of tasks: first of those that failed, with the end of what they printed, then of the last of the others."""
    failed = [one for one in tasks if one.exit_code != 0 and one.status == "STOPPED"]
    chosen = {one.arn for one in failed[-STORIES:]}
    others = [one for one in tasks if one.arn not in chosen]
    for task in failed[-STORIES:] + others[-STORIES:]:
        yield f"task of {task.image}: {task.status}, exit code {task.exit_code}, {task.reason or 'no reason'}"
        if task.arn in chosen:
            yield from (f"  | {line[:WIDTH]}" for line in task.output.splitlines()[-LINES:])


def crash_missed(after: int, made: int) -> str:
    """Say of a crash that was asked for that it has not come."""
    return (
        f"a crash after {after} commits was asked for and never came ({made} were made): "
        "ask for an earlier one, or take it back with house.crash(after=0)"
    )


def spoken(at: datetime, zone: tzinfo | None) -> str:
    """Say a moment in the zone in which the test said when its house starts."""
    return at.astimezone(zone).isoformat()
