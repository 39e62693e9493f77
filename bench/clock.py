"""Moving the clock: how many instants a second it visits, on a node over HTTP and in a test's own house.

    python -m bench.clock [--days 1] [--year] [--kit-only]

On SQLite on disk with its flushes, and in memory (the kit). What is visited is real work: a rule that sends to a queue, a schedule that
starts an execution. Sent messages are forgotten by retention on the way, executions too.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.table import Row, show
from tasuki.cli.own_node import OwnNode
from tasuki.cli.trace import call_house
from tasuki.testing import Kit
from tasuki.values.documents import dumps

ROLE = "arn:aws:iam::000000000000:role/bench"
ARN = "arn:aws:{0}:us-east-1:000000000000:{1}"
DAY = 86_400


def prepare(client: Any, *, schedule: str | None, rule: str | None = None) -> None:
    """Make a machine that a schedule starts, and a rule that sends to a queue."""
    if schedule is not None:
        definition = dumps({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}})
        client("stepfunctions").create_state_machine(name="nightly", definition=definition, roleArn=ROLE)
        client("scheduler").create_schedule(
            Name="s",
            ScheduleExpression=schedule,
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": ARN.format("states", "stateMachine:nightly"), "RoleArn": ROLE, "Input": "{}"},
        )
    if rule is not None:
        client("sqs").create_queue(QueueName="jobs")
        client("events").put_rule(Name="r", ScheduleExpression=rule)
        target = {"Id": "jobs", "Arn": ARN.format("sqs", "jobs")}
        client("events").put_targets(Rule="r", Targets=[target])


def over_http(seconds: int, **what: str | None) -> tuple[float, int, float]:
    """Move a node's clock over HTTP; answer seconds of real time, instants, and seconds of the node's CPU."""
    with (
        tempfile.TemporaryDirectory(prefix="tasuki-bench-") as folder,
        OwnNode(Path(folder) / "data", options=("--clock", "manual")) as node,
    ):
        prepare(node.reach.client, schedule=what.get("schedule"), rule=what.get("rule"))
        began, cpu, visited = time.perf_counter(), _cpu_s(node.pid), 0
        given: dict[str, Any] = {"By": str(seconds)}
        while True:
            answer = call_house(node.reach, "AdvanceClock", {**given, "WaitSeconds": 50}, answer_within_s=70)
            visited += answer["Visited"]
            if answer["Arrived"]:
                break
            given = {"To": answer["To"]}
        return time.perf_counter() - began, visited, _cpu_s(node.pid) - cpu


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def in_kit(seconds: int, **what: str | None) -> tuple[float, float]:
    """Move a house in this process; answer seconds of real time, and of CPU."""
    with Kit() as house:
        prepare(house.client, schedule=what.get("schedule"), rule=what.get("rule"))
        began, cpu = time.perf_counter(), time.process_time()
        house.advance(seconds=seconds)
        return time.perf_counter() - began, time.process_time() - cpu


def rows(days: int, *, year: bool, kit_only: bool) -> list[Row]:
    """Measure."""
    minutely = {"schedule": "rate(1 minute)", "rule": "rate(1 minute)"}
    hourly, nightly = "rate(1 hour)", "cron(0 1 * * ? *)"
    found: list[Row] = []

    def tell(what: str, took: float, cpu: float, visited: int | None = None) -> None:
        found.append(Row(what, took, "s"))
        found.append(Row("  CPU of the node", cpu, "s"))
        if visited:
            found.append(Row("  instants", visited / took, "/s"))
            found.append(Row("  CPU of an instant", cpu / visited * 1e3, "ms"))

    if not kit_only:
        took, visited, cpu = over_http(days * DAY, **minutely)
        tell(f"node: {days} day of a schedule and a rule, both minutely", took, cpu, visited)
        took, visited, cpu = over_http(30 * DAY, schedule=nightly)
        tell("node: a month of nights", took, cpu, visited)
        if year:
            took, visited, cpu = over_http(365 * DAY, schedule=hourly)
            tell("node: a year, hourly", took, cpu, visited)
    took, cpu = in_kit(days * DAY, **minutely)
    tell(f"kit: {days} day of a schedule and a rule, both minutely", took, cpu)
    took, cpu = in_kit(30 * DAY, schedule=nightly)
    tell("kit: a month of nights", took, cpu)
    if year:
        took, cpu = in_kit(365 * DAY, schedule=hourly)
        tell("kit: a year, hourly", took, cpu)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--year", action="store_true", help="a year of an hourly schedule, too")
    parser.add_argument("--kit-only", action="store_true")
    given = parser.parse_args()
    show("Moving the clock", rows(given.days, year=given.year, kit_only=given.kit_only))


if __name__ == "__main__":
    main()
