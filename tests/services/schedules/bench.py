"""A house with schedules in it, and a book of what they post: a real table, so that it rolls back with the unit."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasuki.services import deliveries, handovers, machines, queues, schedules
from tasuki.services.switchboard import Delivery, Ending
from tasuki.store.store import Tx
from tasuki.testing import House, ManualClock
from tasuki.values.config import Config
from tasuki.values.instant import Instant, from_datetime, to_iso

ACCOUNT, REGION = "000000000000", "us-east-1"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:jobs"
DEAD = f"arn:aws:sqs:{REGION}:{ACCOUNT}:dead"
MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:nightly"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/scheduler"
OFF = {"Mode": "OFF"}
POSTS = "CREATE TABLE IF NOT EXISTS stub_posts (place BIGINT, at BIGINT, source TEXT, tick TEXT)"
POST = "INSERT INTO stub_posts VALUES ((SELECT count(*) FROM stub_posts), ?, ?, ?)"


def instant(text: str) -> Instant:
    """Read `2026-10-09T16:00:00`, UTC."""
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


def arn_of(name: str, group: str = "default") -> str:
    return f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/{group}/{name}"


class Bench:
    """`posts` is what was posted, in order: (when, name, planned time). With `real`, deliveries are tried."""

    def __init__(self, *, at: str = "2026-10-09T09:00:00", real: bool = False, **options: Any) -> None:
        self.clock = options.pop("clock", None) or ManualClock(instant(at))
        self.config = options.pop("config", Config(data=Path(), dev=True, account=ACCOUNT, region=REGION))
        rooms = (handovers.room, deliveries.room, queues.room, machines.room, schedules.room, *options.pop("rooms", ()))
        self.house = House(*rooms, config=self.config, clock=self.clock, **options)
        self.posted: list[Delivery] = []
        """Of units that were kept or not: for tests without faults."""
        if not real:
            self.house.unit(lambda tx: tx.run(POSTS))
            self.house.switchboard.post = self._write_down

    def _write_down(self, tx: Tx, delivery: Delivery) -> None:
        tx.run(POST, (tx.now, delivery.source, delivery.source_id))
        self.posted.append(delivery)

    @property
    def posts(self) -> list[tuple[str, str, str]]:
        rows = self.house.look(lambda tx: tx.all("SELECT at, source, tick FROM stub_posts ORDER BY place"))
        return [(_short(to_iso(at)), source.rpartition("/")[2], _short(tick)) for at, source, tick in rows]

    @property
    def ticks(self) -> list[str]:
        """The planned times posted, in order."""
        return [tick for _, _, tick in self.posts]

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("scheduler", operation, given)

    def create(self, name: str, expression: str, **more: Any) -> str:
        """Create a schedule; `target=` and its members replace the queue's."""
        return str(self.call("CreateSchedule", **wanted(name, expression, **more))["ScheduleArn"])

    def update(self, name: str, expression: str, **more: Any) -> None:
        self.call("UpdateSchedule", **wanted(name, expression, **more))

    def ticks_coming(self, **given: Any) -> dict[str, Any]:
        """Ask ListScheduleTicks."""
        found = self.house.switchboard.house["ListScheduleTicks"]
        self.house.switchboard.operations["tasuki", "ListScheduleTicks"] = found
        return self.house.call("tasuki", "ListScheduleTicks", given)

    def over(self, delivery: Delivery) -> None:
        """Say that a delivery is over."""
        watcher = delivery.watcher
        assert watcher is not None
        self.house.unit(lambda tx: self.house.switchboard.finished(tx, watcher, Ending(succeeded=True, output={})))

    def names(self, **given: Any) -> list[str]:
        return [one["Name"] for one in self.call("ListSchedules", **given)["Schedules"]]

    def rows(self, table: str) -> int:
        row = self.house.look(lambda tx: tx.one(f"SELECT count(*) FROM {table}"))
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        self.house.close()


def wanted(name: str, expression: str, **more: Any) -> dict[str, Any]:
    """Answer a request for a schedule that sends to the queue."""
    target = {"Arn": QUEUE, "RoleArn": ROLE, **more.pop("target", {})}
    return {"Name": name, "ScheduleExpression": expression, "FlexibleTimeWindow": OFF, "Target": target, **more}


def _short(text: str) -> str:
    return text.removesuffix(":00.000Z").removesuffix(".000Z")
