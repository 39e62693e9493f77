"""Processing crosses midnight, a day is run again, a start by hand: for which day, is said by the input and by no clock.

The machine is that of the article behind these requirements: a Pass state in JSONata works out the scheduled date, and two tasks
are given it (S2-10 to S2-25; PITFALLS PF-08). Played over HTTP with boto3, as its users would.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasuki.testing import Kit, Run
from tests.engine.test_jsonata import VECTORS

pytestmark = pytest.mark.sqlite_only(reason="the kit's house has a store of its own, in memory")

ROLE = "arn:aws:iam::000000000000:role/any"
TIME = '{"scheduledTime": "<aws.scheduler.scheduled-time>"}'
DATE = (
    "{% $type($states.input.scheduledDate) = 'string' ? $states.input.scheduledDate\n"
    "   : $type($states.input.scheduledTime) = 'string'\n"
    "     ? $fromMillis($toMillis($states.input.scheduledTime), '[Y0001]-[M01]-[D01]', '+0900') : '' %}"
)
TENANTS = {"acme": "2026-10-10", "globex": "2026-10-10", "initech": "2026-10-11", "hooli": "2026-10-12"}
"""Each tenant and the day it is to be scored for."""


class Batch:
    """The inference machine, its two images, and the table of results that the import writes."""

    def __init__(self, house: Kit) -> None:
        self.house = house
        self.rows: list[tuple[str, str | None, datetime]] = []
        """What the import has written: tenant, scheduled date (NULL for none), when."""
        self._inferred: list[str] = []
        house.image("inference", minutes=61, effect=self._infer)
        house.image("import", minutes=5, effect=self._import)
        for family in ("inference", "import"):
            container = {"name": "main", "image": family, "memory": 512}
            house.client("ecs").register_task_definition(family=family, containerDefinitions=[container])
        self.machine = self.deploy("inference", given=True)

    def deploy(self, name: str, *, given: bool) -> str:
        """Make the machine, with or without the state that works out the date; answer its ARN."""
        states = {"Inference": self._run("inference", Next="Import"), "Import": self._run("import", End=True)}
        if given:
            output = {"scheduledDate": DATE}
            date = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": output, "Next": "Inference"}
            states = {"ScheduledDate": date, **states}
        definition = json.dumps({"StartAt": next(iter(states)), "States": states})
        made = self.house.client("stepfunctions").create_state_machine(name=name, definition=definition, roleArn=ROLE)
        return str(made["stateMachineArn"])

    @staticmethod
    def _run(family: str, **more: Any) -> dict[str, Any]:
        environment = [{"Name": "SCHEDULED_DATE", "Value.$": "$.scheduledDate"}]
        return {
            "Type": "Task",
            "Resource": "arn:aws:states:::ecs:runTask.sync",
            "Parameters": {
                "TaskDefinition": family,
                "Overrides": {"ContainerOverrides": [{"Name": "main", "Environment": environment}]},
            },
            "ResultPath": None,
            "Retry": [{"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 600, "MaxAttempts": 3}],
            **more,
        }

    def _infer(self, run: Run) -> None:
        date = run.environment["SCHEDULED_DATE"]
        self._inferred = [name for name, day in TENANTS.items() if date in {"", day}]

    def _import(self, run: Run) -> None:
        date = run.environment["SCHEDULED_DATE"] or None
        self.rows += [(tenant, date, self.house.now) for tenant in self._inferred]

    def schedule(self, cron: str, text: str = TIME, name: str = "nightly") -> None:
        self.house.client("scheduler").create_schedule(
            Name=name,
            ScheduleExpression=cron,
            ScheduleExpressionTimezone="Asia/Tokyo",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": self.machine, "RoleArn": ROLE, "Input": text, "RetryPolicy": {"MaximumRetryAttempts": 3}},
        )

    def start(self, given: Any, machine: str | None = None) -> str:
        """Start it by hand; answer the execution's ARN."""
        begun = self.house.client("stepfunctions").start_execution(
            stateMachineArn=machine or self.machine, input=json.dumps(given)
        )
        return str(begun["executionArn"])

    @property
    def dated(self) -> list[tuple[str, str | None]]:
        return [(tenant, date) for tenant, date, _ in self.rows]


@pytest.fixture
def batch() -> Iterator[Batch]:
    with Kit(start="2026-10-09T12:00:00+09:00") as house:
        yield Batch(house)


OF_THE_10TH = [("acme", "2026-10-10"), ("globex", "2026-10-10")]


def test_a_night_run_knows_its_day(batch: Batch) -> None:  # S2-10 to S2-19, S2-22
    batch.schedule("cron(0 1 * * ? *)")
    batch.house.advance_to("2026-10-10T00:59:59+09:00")
    assert batch.house.executions() == []
    batch.house.advance_to("2026-10-10T12:00:00+09:00")
    [night] = batch.house.executions("inference")
    night.assert_succeeded({"scheduledDate": "2026-10-10"})
    assert night.input == {"scheduledTime": "2026-10-09T16:00:00Z"}
    assert night.states == ["ScheduledDate", "Inference", "Import"]
    given = [task.environment["SCHEDULED_DATE"] for task in batch.house.tasks()]
    assert given == ["2026-10-10", "2026-10-10"], "both tasks were told the same"
    assert batch.dated == OF_THE_10TH


def test_processing_that_crosses_midnight_is_for_the_day_it_was_planned_for(batch: Batch) -> None:  # S2-05, S2-10
    batch.schedule("cron(50 23 10 10 ? 2026)")
    batch.house.advance_to("2026-10-11T02:00:00+09:00")
    batch.house.executions("inference")[0].assert_succeeded({"scheduledDate": "2026-10-10"})
    assert batch.dated == OF_THE_10TH
    assert {written for _, _, written in batch.rows} == {datetime(2026, 10, 10, 15, 56, tzinfo=UTC)}, (
        "on the 11th, in Tokyo"
    )


def test_tries_that_cross_midnight_are_for_the_same_day(batch: Batch) -> None:
    part = batch.house.image("inference", minutes=3, exit_code=1, times=3).then(minutes=61, effect=batch._infer)
    batch.schedule("cron(50 23 10 10 ? 2026)")
    batch.house.advance_to("2026-10-11T12:00:00+09:00")
    assert [run.environment["SCHEDULED_DATE"] for run in part.runs] == ["2026-10-10"] * 4
    assert part.runs[2].started > datetime(2026, 10, 10, 15, tzinfo=UTC).timestamp() * 1000, "after midnight, in Tokyo"
    assert batch.dated == OF_THE_10TH


@pytest.mark.parametrize("hours", [0, 3], ids=["comes back at once", "is away for three hours"])
@pytest.mark.parametrize("at", ["2026-10-10T23:49:59+09:00", "2026-10-10T23:59:59+09:00", "2026-10-11T00:51:00+09:00"])
def test_a_node_that_dies_at_night_moves_no_day(batch: Batch, at: str, hours: int) -> None:  # P5
    """Before the tick, before midnight, and at the end of the first task."""
    batch.schedule("cron(50 23 10 10 ? 2026)")
    batch.house.advance_to(at)
    batch.house.crash(hours=hours)
    batch.house.advance(hours=12)
    [night] = batch.house.executions("inference")
    night.assert_succeeded({"scheduledDate": "2026-10-10"})
    assert night.input == {"scheduledTime": "2026-10-10T14:50:00Z"}
    planned = datetime(2026, 10, 10, 14, 50, tzinfo=UTC)
    back = datetime.fromisoformat(at) + timedelta(hours=hours)
    assert night.started == (max(planned, back) if at.endswith("23:49:59+09:00") else planned), (
        "late, if nobody was there"
    )
    assert batch.dated == OF_THE_10TH
    assert len(batch.house.tasks()) == 2, "nothing ran twice"


def test_a_day_that_failed_is_run_again_two_days_later(batch: Batch) -> None:  # S2-20, S2-23
    batch.house.image("inference", exit_code=1)
    batch.schedule("cron(0 1 10 10 ? 2026)")
    batch.house.advance_to("2026-10-12T12:00:00+09:00")
    batch.house.executions("inference")[0].assert_failed("States.TaskFailed")
    assert batch.rows == []
    batch.house.image("inference", minutes=61, effect=batch._infer)
    again = batch.start({"scheduledDate": "2026-10-10"})
    batch.house.advance(hours=2)
    batch.house.execution(again).assert_succeeded({"scheduledDate": "2026-10-10"})
    assert batch.dated == OF_THE_10TH, "those of the day that was given, not of the day it is"


def test_a_start_by_hand_is_for_no_day(batch: Batch) -> None:  # S2-21
    by_hand = batch.start({})
    batch.house.advance(hours=2)
    batch.house.execution(by_hand).assert_succeeded({"scheduledDate": ""})
    assert batch.dated == [(tenant, None) for tenant in TENANTS], "results without a date, that nobody is mailed of"


def test_three_kinds_of_start_by_one_expression(batch: Batch) -> None:  # S2-15 to S2-18; PF-08
    """Whatever the house's own clock says: it stands two days off."""
    batch.house.advance(days=2)
    begun = [batch.start(given) for given, _ in VECTORS]
    batch.house.advance(hours=2)
    found = [batch.house.execution(one).assert_succeeded().output["scheduledDate"] for one in begun]
    assert found == [date for _, date in VECTORS]


@pytest.mark.parametrize("time", ["<aws.scheduler.scheduled-time>", ""])
def test_a_time_that_is_none_fails_loudly(batch: Batch, time: str) -> None:
    failed = batch.house.execution(batch.start({"scheduledTime": time}))
    failed.assert_failed("States.QueryEvaluationError")
    assert batch.house.tasks() == []


def test_a_schedule_whose_attribute_was_escaped_fails_loudly_instead_of_guessing(batch: Batch) -> None:
    """PF: jsonencode writes `<` as an escape, and the Scheduler replaces only what stands there as such."""
    batch.schedule("cron(0 1 * * ? *)", TIME.replace("<", "\\u003c").replace(">", "\\u003e"))
    batch.house.advance(days=1)
    [night] = batch.house.executions("inference")
    assert night.input == {"scheduledTime": "<aws.scheduler.scheduled-time>"}
    night.assert_failed("States.QueryEvaluationError")


def test_without_the_state_that_fills_it_a_missing_key_fails(batch: Batch) -> None:  # S2-24
    bare = batch.deploy("bare", given=False)
    batch.house.execution(batch.start({}, bare)).assert_failed("States.Runtime")
    assert batch.house.tasks() == []


def test_a_month_of_nights_with_a_crash_in_each(batch: Batch) -> None:
    batch.schedule("cron(0 1 * * ? *)")
    batch.house.advance_to("2026-10-10T00:30:00+09:00")
    for night in range(
        30
    ):  # before the tick, while the first task runs, while the second does; away for up to two hours
        batch.house.advance(minutes=(0, 50, 92)[night % 3])
        batch.house.crash(minutes=40 * (night % 4))
        batch.house.advance_to(datetime(2026, 10, 10, 15, 30, tzinfo=UTC) + timedelta(days=night))
    nights = batch.house.executions("inference")
    times = [one.input["scheduledTime"] for one in nights]
    assert times == sorted(set(times)), "every night once"
    assert len(times) == 30
    assert {one.status for one in nights} == {"SUCCEEDED"}
