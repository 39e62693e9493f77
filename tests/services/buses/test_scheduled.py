"""Rules with a schedule: each planned time once, with that time in the event, however late it is looked at."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tasuki.testing import ManualClock
from tasuki.values.instant import Instant, from_datetime
from tests.services.buses.stage import Stage
from tests.stores import kept

START = datetime(2026, 1, 1, tzinfo=UTC)


def times(stage: Stage, name: str = "q") -> list[str]:
    return [event["time"] for event in stage.received(name)]


def at(**after: float) -> str:
    return (START + timedelta(**after)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_rate_fires_after_each_period(stage: Stage) -> None:
    arn = stage.rule(None, {"Arn": stage.queue()}, ScheduleExpression="rate(5 minutes)")
    stage.house.advance(minutes=16)
    events = stage.received()
    assert [event["time"] for event in events] == [at(minutes=5), at(minutes=10), at(minutes=15)]
    assert len({event.pop("id") for event in events}) == 3
    last = events[-1]
    assert last == {
        "version": "0",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "000000000000",
        "time": at(minutes=15),
        "region": "us-east-1",
        "resources": [arn],
        "detail": {},
    }


def test_a_cron_fires_in_utc(stage: Stage) -> None:
    queue = stage.queue(MessageRetentionPeriod="1209600")
    stage.rule(None, {"Arn": queue}, ScheduleExpression="cron(30 6 ? * MON-FRI *)")
    stage.house.advance(days=7)  # 1 January 2026 is a Thursday
    assert times(stage) == [at(days=day, hours=6, minutes=30) for day in (0, 1, 4, 5, 6)]


def test_a_scheduled_event_is_nobody_else_s(stage: Stage) -> None:
    stage.rule(None, {"Arn": stage.queue("own")}, name="own", ScheduleExpression="rate(1 minute)")
    stage.rule({"source": ["aws.events"]}, {"Arn": stage.queue("other")}, name="other")
    stage.rule(None, name="idle", ScheduleExpression="rate(1 minute)")
    stage.house.advance(minutes=1)
    assert (len(stage.received("own")), stage.received("other")) == (1, [])


def test_a_rule_may_have_a_pattern_and_a_schedule(stage: Stage) -> None:
    stage.rule({"source": ["shop"]}, {"Arn": stage.queue(), "InputPath": "$.source"}, ScheduleExpression="rate(1 hour)")
    stage.put()
    stage.house.advance(hours=1)
    assert stage.received() == ["shop", "aws.events"]


def test_the_same_rule_again_keeps_its_times_and_another_schedule_does_not(stage: Stage) -> None:
    put = {"name": "r", "ScheduleExpression": "rate(10 minutes)"}
    stage.rule(None, {"Arn": stage.queue()}, **put)
    stage.house.advance(minutes=7)
    stage.rule(None, **put)
    stage.house.advance(minutes=3)
    assert times(stage) == [at(minutes=10)]
    stage.house.advance(minutes=7)
    stage.rule(None, name="r", ScheduleExpression="rate(1 hour)")
    stage.house.advance(hours=1)
    assert times(stage) == [at(minutes=77)]


def test_disabled_means_disabled(stage: Stage) -> None:
    stage.rule(None, {"Arn": stage.queue()}, ScheduleExpression="rate(10 minutes)")
    stage.events("DisableRule", Name="r")
    stage.house.advance(minutes=35)
    stage.events("EnableRule", Name="r")
    assert times(stage) == []
    stage.house.advance(minutes=10)
    assert times(stage) == [at(minutes=45)]
    stage.events("PutRule", Name="r", ScheduleExpression="rate(10 minutes)", State="DISABLED")
    stage.house.advance(hours=1)
    assert times(stage) == []
    assert stage.rows("timers WHERE room = 'buses'") == 0


def test_a_deleted_rule_leaves_no_timer(stage: Stage) -> None:
    stage.rule(None, {"Arn": stage.queue()}, ScheduleExpression="rate(10 minutes)")
    stage.events("RemoveTargets", Rule="r", Ids=["t0"])
    stage.events("DeleteRule", Name="r")
    stage.house.advance(hours=1)
    assert stage.rows("timers WHERE room = 'buses'") == 0
    assert times(stage) == []


def test_a_schedule_that_is_over_never_fires(stage: Stage) -> None:
    stage.rule(None, {"Arn": stage.queue()}, ScheduleExpression="cron(15 10 ? * 6L 2002-2005)")
    stage.house.advance(days=40)
    assert times(stage) == []


def test_missed_times_come_late_with_their_own_time_and_none_twice(tmp_path: Path) -> None:
    clock, store = ManualClock(), kept(tmp_path / "house.db")
    first = Stage(clock=clock, store=store)
    first.rule(None, {"Arn": first.queue()}, ScheduleExpression="rate(1 hour)")
    first.house.advance(hours=2)
    first.house.close()
    clock.set(clock.now() + 5 * 3_600_000 + 1_000)  # the node is away
    second = Stage(clock=clock, store=store)
    second.house.drain()
    assert times(second) == [at(hours=hour) for hour in range(1, 8)]
    second.house.advance(hours=1)
    assert times(second) == [at(hours=8)]
    second.house.close()


def test_what_was_missed_more_than_a_day_ago_is_skipped_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, store = ManualClock(), kept(tmp_path / "house.db")
    first = Stage(clock=clock, store=store)
    first.rule(None, {"Arn": first.queue()}, ScheduleExpression="rate(1 hour)")
    first.house.close()
    clock.set(clock.now() + 72 * 3_600_000)
    second = Stage(clock=clock, store=store)
    with caplog.at_level(logging.WARNING):
        second.house.drain()
    assert times(second) == [at(hours=hour) for hour in range(48, 73)]
    assert f"from {at(hours=1)} on are more than a day late; skipped" in caplog.text
    second.house.close()


def test_a_time_after_a_long_absence_is_planned_from_its_schedule(tmp_path: Path) -> None:
    clock, store = ManualClock(), kept(tmp_path / "house.db")
    first = Stage(clock=clock, store=store)
    first.rule(None, {"Arn": first.queue()}, ScheduleExpression="cron(0 3 1 * ? *)")
    first.house.close()
    clock.set(_instant(days=50))
    second = Stage(clock=clock, store=store)
    second.house.drain()
    assert times(second) == []
    second.house.advance(days=10)
    assert times(second) == [at(days=59, hours=3)]
    second.house.close()


def _instant(**after: float) -> Instant:
    return from_datetime(START + timedelta(**after))
