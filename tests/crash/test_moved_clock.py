"""`tasuki up --clock manual` killed in the middle of AdvanceClock, again and again over a month of nightly processing.

Planned times are all there, once each, and what they cause happens at its own instant of house time, as if nobody had died (S2-11,
S2-14). `CRASH_NIGHTS` and `CRASH_SEED` set for how many days and from which seed; a failure prints both.
"""

import json
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pytest

from tasuki.cli.own_node import OwnNode
from tasuki.cli.trace import call_house
from tests.crash.relay import QUEUES, ROLE

NIGHTS = int(os.environ.get("CRASH_NIGHTS", "30"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
EACH = 5
"""Nights between two kills, about."""
BERLIN = ZoneInfo("Europe/Berlin")
HOUR, DAY, TASK = timedelta(hours=1), timedelta(days=1), timedelta(minutes=61)
TICK = "<aws.scheduler.scheduled-time>"
IMAGE = '[images.route]\nscripted = { duration = "61m", output = "solved" }\n'

Came: TypeAlias = list[tuple[dict[str, Any], datetime]]
"""What was said, and when it was sent."""


class Month:
    """The house: a job each night, a message each three hours through a pipe, an event each six hours; and all that came out."""

    def __init__(self, data: Path, chance: random.Random) -> None:
        data.mkdir(mode=0o700)
        (data / "tasuki.toml").write_text(IMAGE)
        (data / "tasuki.toml").chmod(0o600)
        self.node, self.chance = OwnNode(data, options=("--clock", "manual")), chance
        self.came: dict[str, Came] = {"done": [], "by-day": [], "events": []}
        """By queue."""

    def ask(self, operation: str, **given: Any) -> dict[str, Any]:
        answer: dict[str, Any] = call_house(self.node.reach, operation, given, answer_within_s=70)
        return answer

    @property
    def now(self) -> datetime:
        return datetime.fromisoformat(self.ask("GetClock")["Now"])

    def build(self) -> None:
        client = self.node.reach.client
        urls = {
            name: client("sqs").create_queue(QueueName=name, Attributes={"MessageRetentionPeriod": "1209600"})[
                "QueueUrl"
            ]
            for name in ("raw", *self.came)
        }
        client("ecs").register_task_definition(
            family="route", containerDefinitions=[{"name": "main", "image": "route", "memory": 32}]
        )
        run = {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "ResultPath": None, "Next": "Say"}
        said = {"tick.$": "$.tick", "at.$": "$$.State.EnteredTime"}
        say = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": True}
        states = {
            "Run": {**run, "Parameters": {"TaskDefinition": "route"}, "TimeoutSeconds": 7200},
            "Say": {**say, "Parameters": {"QueueUrl": urls["done"], "MessageBody": said}},
        }
        self.machine = client("stepfunctions").create_state_machine(
            name="nightly", definition=json.dumps({"StartAt": "Run", "States": states}), roleArn=ROLE
        )["stateMachineArn"]
        client("pipes").create_pipe(
            Name="by-day",
            Source=f"{QUEUES}:raw",
            Target=f"{QUEUES}:by-day",
            TargetParameters={"InputTemplate": "<$.body>"},
            RoleArn=ROLE,
        )
        for name, expression, zone, arn in (
            ("nightly", "cron(15 3 * * ? *)", "Europe/Berlin", self.machine),
            ("by-day", "cron(0 */3 * * ? *)", "UTC", f"{QUEUES}:raw"),
        ):
            client("scheduler").create_schedule(
                Name=name,
                ScheduleExpression=expression,
                ScheduleExpressionTimezone=zone,
                FlexibleTimeWindow={"Mode": "OFF"},
                Target={"Arn": arn, "RoleArn": ROLE, "Input": json.dumps({"tick": TICK})},
            )
        client("events").put_rule(Name="events", ScheduleExpression="rate(6 hours)")
        shaped = {"InputPathsMap": {"tick": "$.time"}, "InputTemplate": '{"tick": <tick>}'}
        target = {"Id": "1", "Arn": f"{QUEUES}:events", "InputTransformer": shaped}
        client("events").put_targets(Rule="events", Targets=[target])

    def advance_and_die(self, to: datetime, at: datetime) -> datetime:
        """Move the clock towards `to`, and kill the node when it has passed `at`. Answer where it was seen last."""
        told: list[object] = []
        moving = threading.Thread(target=self._advance, args=(to, told))
        moving.start()
        seen = self.now
        while seen < at and moving.is_alive():
            seen = self.now
        assert seen >= at, f"the clock stands still at {seen}: {told}; see {self.node.log}"
        self.node.kill()
        moving.join()
        return seen

    def _advance(self, to: datetime, told: list[object]) -> None:
        try:
            told.append(self.ask("AdvanceClock", To=to.isoformat(), WaitSeconds=50))
        except Exception as no:  # noqa: BLE001 - it dies meanwhile, or says why it does not move
            told.append(no)

    def collect(self) -> None:
        """Take what came, before it is too old to be kept."""
        sqs = self.node.reach.client("sqs")
        for queue, into in self.came.items():
            url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
            given = {
                "QueueUrl": url,
                "MaxNumberOfMessages": 10,
                "MessageSystemAttributeNames": ["SentTimestamp"],
            }
            while messages := sqs.receive_message(**given).get("Messages"):
                for one in messages:
                    sent = datetime.fromtimestamp(int(one["Attributes"]["SentTimestamp"]) / 1000, BERLIN)
                    into.append((json.loads(one["Body"]), sent))
                entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(messages)]
                sqs.delete_message_batch(QueueUrl=url, Entries=entries)

    def executions(self) -> list[dict[str, Any]]:
        pages = self.node.reach.client("stepfunctions").get_paginator("list_executions")
        return [one for page in pages.paginate(stateMachineArn=self.machine) for one in page["executions"]]


@pytest.mark.crash
def test_a_month_of_nights_on_a_node_that_is_killed_while_its_clock_is_moved(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    month = Month(tmp_path / "data", chance)
    kills = 0
    try:
        month.node.start()
        month.build()
        began = month.now
        end = began + NIGHTS * DAY
        while (at := month.now + EACH * DAY * chance.uniform(0.5, 1.2)) < end - 4 * DAY:
            seen = month.advance_and_die(end, at)
            kills += 1
            month.node.start()
            assert month.now >= seen, "time runs back"
            assert month.now < end, "it arrived before it was killed"
            month.collect()
        assert month.ask("AdvanceClock", To=end.isoformat(), WaitSeconds=50)["Arrived"]
        month.collect()
        audit(month, began, end)
    except BaseException:
        sys.stdout.write(f"replay with: CRASH_SEED={SEED} CRASH_NIGHTS={NIGHTS}\n")
        raise
    finally:
        month.node.stop()
    sys.stdout.write(
        f"{kills} kills in {NIGHTS} nights; came: { {name: len(of) for name, of in month.came.items()} }\n"
    )
    assert kills >= NIGHTS // EACH // 2


def audit(month: Month, began: datetime, end: datetime) -> None:
    """Hold what came against what the calendar says."""
    marks = [began.replace(minute=0, second=0, microsecond=0) + n * HOUR for n in range(1, 24 * NIGHTS + 1)]
    nights = [at for mark in marks if mark.astimezone(BERLIN).hour == 3 and began < (at := mark + HOUR / 4) <= end]
    _once("by day", month.came["by-day"], [at for at in marks if at.hour % 3 == 0 and began < at <= end])
    _once("nightly", month.came["done"], [at for at in nights if at + TASK <= end], after=TASK)
    for said, sent in month.came["done"]:
        assert datetime.fromisoformat(said["at"]) == sent
    ran = Counter(one["startDate"] for one in month.executions() if one["status"] in {"SUCCEEDED", "RUNNING"})
    assert ran == Counter(nights)
    first = datetime.fromisoformat(month.came["events"][0][0]["tick"])
    assert began <= first <= began + 6 * HOUR
    _once(
        "rule", month.came["events"], [first + n * 6 * HOUR for n in range(4 * NIGHTS) if first + n * 6 * HOUR <= end]
    )


def _once(what: str, came: Came, wanted: list[datetime], after: timedelta = timedelta()) -> None:
    """Each planned time is there once, and was dealt with at that instant, or so long `after` it."""
    assert Counter(datetime.fromisoformat(said["tick"]) for said, _ in came) == Counter(wanted), what
    late = {said["tick"]: sent for said, sent in came if sent != datetime.fromisoformat(said["tick"]) + after}
    assert not late, what


def dropped(came: Came) -> None:
    del came[1]


def repeated(came: Came) -> None:
    came.append(came[0])


def late(came: Came) -> None:
    came[1] = (came[1][0], came[1][1] + timedelta(milliseconds=1))


def changed(came: Came) -> None:
    came[1] = ({"tick": came[0][0]["tick"]}, came[1][1])


@pytest.mark.parametrize("plant", [dropped, repeated, late, changed])
def test_the_audit_finds_a_tick_that(plant: Callable[[Came], None]) -> None:
    wanted = [datetime(2026, 1, n, 3, 15, tzinfo=BERLIN) for n in (1, 2, 3)]
    came = [({"tick": at.isoformat()}, at + TASK) for at in wanted]
    _once("nightly", came, wanted, after=TASK)
    plant(came)
    with pytest.raises(AssertionError, match="nightly"):
        _once("nightly", came, wanted, after=TASK)
