"""Act 2: a real node, by the machine's own clock. It is killed with SIGKILL before a schedule is due, and started when it is over."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from clock.stage import IMAGE, ZONE, Stage, build
from tasuki.cli.complaints import Complaint
from tasuki.cli.own_node import OwnNode
from tasuki.cli.pace import pause
from tasuki.cli.trace import call_house, list_handovers
from tasuki.runtime.clock import SystemClock
from tasuki.values import documents
from tasuki.values.instant import to_datetime

AHEAD_S = 3
AWAY_S = 2
"""How long the node stays away after the planned time."""
QUIET_S = 1
"""How long a node that was started a second time is given to do what it should not."""
PATIENCE_S = 30
Say: TypeAlias = Callable[[str], None]


@dataclass(slots=True)
class Seen:
    """What came of the tick."""

    planned: str
    results: list[dict[str, Any]]
    late_s: float
    executions: int
    handovers: int
    left: int
    """Ticks still to come, and deliveries still on their way."""


def perform(data: Path, say: Say) -> Seen:
    """Play it, and look. Raises `Complaint` when something takes too long."""
    _write_image(data)
    with OwnNode(data) as node:
        stage = build(node.reach.client)
        due = to_datetime(SystemClock().now()).replace(microsecond=0) + timedelta(seconds=AHEAD_S + 1)
        arn = stage.schedule("once", f"at({due.astimezone(ZoneInfo(ZONE)):%Y-%m-%dT%H:%M:%S})")
        planned = f"{due.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        pid = node.pid
        node.kill()
        if _now() >= due:
            raise Complaint(
                "the node was to be killed before the schedule is due", hint="this machine is slow: try again"
            )
        say(f"A schedule is due at {planned}. The node (pid {pid}) is killed with SIGKILL before it.")
        _until(lambda: _now() >= due + timedelta(seconds=AWAY_S), "the planned time is over")
        say(f"{planned} is over by {AWAY_S} s, and no node was there. It is started again.")
        node.start()
        stage = Stage(node.reach.client, stage.results_url, stage.machine_arn)
        results: list[dict[str, Any]] = []
        _until(lambda: bool(_take(stage, results)), "the result comes")
        node.kill()
        say("The result is there. Once more SIGKILL and a start: nothing may come of it.")
        node.start()
        rested = _now() + timedelta(seconds=QUIET_S)
        _until(lambda: _now() >= rested, "the node has had time for more")
        return _look(node, Stage(node.reach.client, stage.results_url, stage.machine_arn), arn, planned, results)


def reckon(seen: Seen, wanted_date: str) -> str:
    """Say what is not as it should be: nothing if all is well."""
    faults = []
    if [one["scheduledTime"] for one in seen.results] != [seen.planned]:
        faults.append(f"results for {[one['scheduledTime'] for one in seen.results]}, not for {seen.planned} once")
    if any(one["scheduledDate"] != wanted_date for one in seen.results):
        faults.append(f"the task was told {seen.results[0]['scheduledDate']}, not {wanted_date}")
    if (seen.executions, seen.handovers, seen.left) != (1, 1, 0):
        faults.append(f"{seen.executions} executions, {seen.handovers} hand-overs, {seen.left} still to come")
    if seen.late_s < AWAY_S:
        faults.append(f"it started {seen.late_s:.1f} s after its time, while no node was there")
    return "; ".join(faults)


def date_of(planned: str) -> str:
    """The date in Tokyo of a planned time."""
    return datetime.fromisoformat(planned).astimezone(ZoneInfo(ZONE)).date().isoformat()


def _look(node: OwnNode, stage: Stage, arn: str, planned: str, results: list[dict[str, Any]]) -> Seen:
    found = stage.client("stepfunctions").list_executions(stateMachineArn=stage.machine_arn)["executions"]
    late = found[-1]["startDate"] - datetime.fromisoformat(planned)
    ticks = call_house(node.reach, "ListScheduleTicks", {"ScheduleArn": arn})["Ticks"]
    on_their_way = call_house(node.reach, "ListDeliveries", {})["Deliveries"]
    return Seen(
        planned,
        [*results, *_bodies(stage)],
        round(late.total_seconds(), 3),
        len(found),
        len(list_handovers(node.reach, SourceArn=arn)),
        len(ticks) + len(on_their_way),
    )


def _take(stage: Stage, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    results.extend(_bodies(stage))
    return results


def _bodies(stage: Stage) -> list[dict[str, Any]]:
    return [documents.loads(body) for body in stage.take()]


def _write_image(data: Path) -> None:
    """Say what the image is on this machine: a program that reads the date from its environment."""
    program = "import os; print('scored', os.environ['SCHEDULED_DATE'])"
    command = documents.dumps([sys.executable, "-c", program])
    target = data / "tasuki.toml"
    target.write_text(f"[images.{IMAGE}]\nfolder = {documents.dumps(str(data))}\ncommand = {command}\n")
    target.chmod(0o600)


def _now() -> datetime:
    return to_datetime(SystemClock().now())


def _until(reached: Callable[[], bool], what: str) -> None:
    end = _now() + timedelta(seconds=PATIENCE_S)
    while not reached():
        if _now() > end:
            raise Complaint(f"waited {PATIENCE_S} s until {what}")
        pause(0.05)
