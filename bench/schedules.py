"""Schedules: how soon a thousand that are due in one minute have started, what a tick costs, and what stored ones cost.

    python -m bench.schedules [--due 1000] [--stored 100000]

On SQLite on disk with its flushes, served by the loops of a node, without HTTP. The clock is set to just before the minute, then to
it, so the figures are of work and not of waiting.
"""

import argparse
import tempfile
import time
from pathlib import Path

from bench.table import Row, show
from tasuki.services import deliveries, handovers, machines, queues, schedules
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Tx
from tasuki.testing import House
from tasuki.values.config import Config
from tasuki.values.documents import dumps
from tasuki.values.instant import DAY, HOUR, SECOND

ROLE = "arn:aws:iam::000000000000:role/scheduler"
MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:nightly"
DEFINITION = dumps({"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 600, "End": True}}})
STARTED = "SELECT count(*) FROM executions"
STORE = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO schedules (account, region, grp, name, state, target, created, modified, made_by, changed_by, definition)
SELECT account, region, grp, 'stored-' || i, state, target, created, modified, '', '', definition FROM schedules, n WHERE name = 'model'
"""
STORE_TICKS = """
INSERT INTO schedule_ticks (schedule, revision, anchor, tick, moment, last)
SELECT id, 'r' || id, created, created + ? + id, created + ? + id, NULL FROM schedules WHERE name LIKE 'stored-%'
"""
STORE_TIMERS = "INSERT INTO timers (room, key, due) SELECT 'schedules', schedule, moment FROM schedule_ticks WHERE revision LIKE 'r%' AND schedule > ?"


def _on_disk(folder: str, house: House) -> SqliteStore:
    """Open a store as a node does."""
    return SqliteStore(
        Path(folder) / "tasuki.db",
        clock=house.clock,
        real_clock=house.clock,
        chance=house.chance,
        on_ring=house.bell.ring,
    )


class Bench:
    """A house with a machine that schedules start."""

    def __init__(self, folder: str) -> None:
        rooms = (handovers.room, deliveries.room, queues.room, machines.room, schedules.room)
        self.house = House(
            *rooms, config=Config(data=Path(folder), dev=True), store=lambda house: _on_disk(folder, house)
        )
        self.house.call("stepfunctions", "CreateStateMachine", name="nightly", definition=DEFINITION, roleArn=ROLE)

    def create(self, name: str, expression: str) -> None:
        """Create a schedule that starts the machine."""
        target = {"Arn": MACHINE, "RoleArn": ROLE, "Input": '{"t":"<aws.scheduler.scheduled-time>"}'}
        given = {
            "Name": name,
            "ScheduleExpression": expression,
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": target,
        }
        self.house.call("scheduler", "CreateSchedule", given)

    def started(self) -> int:
        """Answer how many executions there are."""
        row = self.house.look(lambda tx: tx.one(STARTED))
        assert row is not None
        return int(row[0])

    def create_some(self, prefix: str, count: int, expression: str) -> float:
        """Create schedules; answer seconds of CPU for each."""
        began = time.process_time()
        for n in range(count):
            self.create(f"{prefix}{n}", expression)
        return (time.process_time() - began) / count

    def store(self, count: int) -> None:
        """Store schedules that are due in a year, as CreateSchedule would."""
        self.create("model", "cron(0 0 1 1 ? *)")

        def unit(tx: Tx) -> None:
            tx.run(STORE, (count,))
            tx.run(STORE_TICKS, (365 * DAY, 365 * DAY))
            tx.run(STORE_TIMERS, (0,))

        self.house.unit(unit)

    def idle(self, rounds: int) -> float:
        """Let seconds pass in which nothing is due; answer seconds of CPU for each look around."""
        began = time.process_time()
        for _ in range(rounds):
            self.house.clock.set(self.house.now + SECOND)
            self.house.drain()
        return (time.process_time() - began) / rounds

    def fire(self, count: int) -> tuple[float, float, float]:
        """Let `count` schedules become due at once; answer seconds until the last has started, and until all is quiet, and CPU."""
        before = self.started()
        self.house.advance_to(self.house.now + HOUR - self.house.now % HOUR - 1)
        self.house.clock.set(self.house.now + 1)
        began, cpu = time.perf_counter(), time.process_time()
        timers = self.house.duties[0]

        async def fire() -> None:
            due = await timers.round()
            while due is not None and due <= self.house.now:
                due = await timers.round()

        self.house._run(fire())  # noqa: SLF001 - measured from inside
        took, spent = time.perf_counter() - began, time.process_time() - cpu
        assert self.started() - before == count, "all have started"
        self.house.drain()
        return took, time.perf_counter() - began, spent


def rows(due: int, stored: int) -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="tasuki-bench-") as folder:
        bench = Bench(folder)
        created = bench.create_some("s", due, "cron(0 * * * ? *)")
        alone = bench.idle(100)
        took, quiet, spent = bench.fire(due)
        bench.store(stored)
        late = bench.create_some("late-", due, "cron(0 0 1 1 ? *)")
        again, _, _ = bench.fire(due)
        idle = bench.idle(100)
        bench.house.close()
    return [
        Row(f"{due} due in one minute: until all have started", took, "s", at_most=1),
        Row("the same, until their first states are entered", quiet, "s"),
        Row("ticks", due / took, "/s", at_least=1_000),
        Row("CPU of a tick", spent / due * 1e6, "us"),
        Row(f"{due} due with {stored} others stored: until all have started", again, "s", at_most=1),
        Row("CPU of CreateSchedule", created * 1e6, "us"),
        Row(f"the same with {stored} others stored", late * 1e6, "us"),
        Row(f"idle: CPU of a look around with {due} stored", alone * 1e3, "ms"),
        Row(f"idle: CPU of a look around with {stored + due} stored", idle * 1e3, "ms"),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--due", type=int, default=1_000)
    parser.add_argument("--stored", type=int, default=100_000)
    given = parser.parse_args()
    show("Schedules", rows(given.due, given.stored))


if __name__ == "__main__":
    main()
