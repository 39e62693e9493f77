"""When schedules fire: each planned time once, in order, with its own planned time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasuki.runtime.loop import TIMERS_AT_ONCE
from tasuki.services.schedules import queries
from tasuki.services.schedules.errors import ValidationException
from tasuki.services.schedules.polls import SLICE
from tasuki.store.store import Params, Row, Tx
from tasuki.values.instant import DAY, MINUTE
from tests.services.schedules.bench import MACHINE, Bench, arn_of, instant

WINDOW = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}


# -- at, rate and cron --------------------------------------------------------------------------------------


def test_cron_fires_at_its_minute(bench: Bench) -> None:
    """PITFALLS PF-45."""
    bench.create("s", "cron(0 10 * * ? *)")
    bench.house.advance(hours=24)
    assert bench.posts == [("2026-10-09T10:00", "s", "2026-10-09T10:00")]


def test_cron_fires_in_its_zone_and_says_when_in_utc(bench: Bench) -> None:
    bench.create("tokyo", "cron(0 1 * * ? *)", ScheduleExpressionTimezone="Asia/Tokyo")
    bench.house.advance(hours=24)
    assert bench.posts == [("2026-10-09T16:00", "tokyo", "2026-10-09T16:00")]


def test_rate_fires_at_once_and_then_after_every_period(bench: Bench) -> None:
    """PITFALLS PF-46. The planned time is a full second, as it is written."""
    bench.house.advance(ms=437)
    bench.create("s", "rate(5 minutes)")
    bench.house.advance(minutes=11)
    assert bench.ticks == ["2026-10-09T09:00", "2026-10-09T09:05", "2026-10-09T09:10"]


def test_rate_counts_from_its_start(bench: Bench) -> None:
    bench.create("s", "rate(7 minutes)", StartDate=instant("2026-10-09T09:10:00"))
    bench.create("late", "rate(7 minutes)", StartDate=instant("2026-10-09T08:58:00"))
    bench.house.advance(minutes=20)
    assert [tick for _, name, tick in bench.posts if name == "s"] == ["2026-10-09T09:10", "2026-10-09T09:17"]
    late = [(at, tick) for at, name, tick in bench.posts if name == "late"]
    assert late[:2] == [("2026-10-09T09:00", "2026-10-09T08:58"), ("2026-10-09T09:05", "2026-10-09T09:05")]


def test_start_and_end_bound_cron(bench: Bench) -> None:
    begins, ends = instant("2026-10-09T10:00:00"), instant("2026-10-09T12:00:00")
    bench.create("s", "cron(0 * * * ? *)", StartDate=begins, EndDate=ends)
    bench.house.advance(days=1)
    assert bench.ticks == ["2026-10-09T10:00", "2026-10-09T11:00", "2026-10-09T12:00"]
    assert bench.rows("timers") == 0


def test_at_fires_once_in_its_zone_and_stays_listed(bench: Bench) -> None:
    bench.create("s", "at(2026-10-09T20:30:00)", ScheduleExpressionTimezone="Asia/Tokyo")
    bench.house.advance(days=3)
    assert bench.posts == [("2026-10-09T11:30", "s", "2026-10-09T11:30")]
    assert bench.names() == ["s"]


def test_at_in_the_past_is_taken_and_never_fires(bench: Bench) -> None:
    bench.create("past", "at(2026-10-09T08:59:59)", ActionAfterCompletion="DELETE")
    bench.create("now", "at(2026-10-09T09:00:00)")
    bench.house.advance(days=1)
    assert bench.posts == [("2026-10-09T09:00", "now", "2026-10-09T09:00")]
    assert bench.names() == ["now", "past"], "nothing is deleted that never ran"


def test_many_schedules_of_one_minute_fire_in_it(bench: Bench) -> None:
    for n in range(200):
        bench.create(f"s{n}", "cron(0 10 * * ? *)")
    bench.house.advance(hours=1)
    assert len(bench.posts) == len(set(bench.posts)) == 200
    assert {at for at, _, _ in bench.posts} == {"2026-10-09T10:00"}


# -- what was missed ----------------------------------------------------------------------------------------


def test_missed_ticks_follow_in_order_each_with_its_planned_time(bench: Bench) -> None:
    bench.create("s", "rate(1 minute)")
    bench.house.drain()
    bench.clock.set(bench.house.now + (2 * SLICE + 20) * MINUTE)  # nobody was there
    bench.house.drain()
    assert len(bench.ticks) == 2 * SLICE + 21
    assert bench.ticks == sorted(set(bench.ticks))
    assert {at for at, _, _ in bench.posts[1:]} == {"2026-10-09T11:00"}
    bench.house.drain()
    assert len(bench.ticks) == 2 * SLICE + 21


def test_a_unit_posts_a_slice_at_most(bench: Bench) -> None:
    bench.create("s", "rate(1 minute)")
    bench.clock.set(bench.house.now + 3 * SLICE * MINUTE)
    bench.house.unit(lambda tx: bench.house.rooms["schedules"].on_timer(tx, "1"))  # type: ignore[misc]
    assert len(bench.ticks) == SLICE


def test_many_missed_ticks_do_not_hold_up_what_is_due_now(bench: Bench) -> None:
    """A slice of each schedule, then the others: who comes back after a long time still starts in time what is due by now."""
    bench.house.switchboard.post = lambda _tx, delivery: bench.posted.append(delivery)
    for n in range(TIMERS_AT_ONCE):
        bench.create(f"s{n}", "rate(1 minute)")
    bench.create("now", "at(2026-10-09T16:59:59)")
    bench.clock.set(instant("2026-10-09T17:00:00"))
    bench.house.drain()
    ticks = list(dict.fromkeys((delivery.source, delivery.source_id) for delivery in bench.posted))
    assert len(ticks) == TIMERS_AT_ONCE * (8 * 60 + 1) + 1
    assert [source for source, _ in ticks].index(arn_of("now")) <= 3 * TIMERS_AT_ONCE * SLICE, "of some ten rounds"


def test_lateness_does_not_drift(bench: Bench) -> None:
    bench.create("s", "rate(10 minutes)")
    bench.house.drain()
    bench.clock.set(bench.house.now + 14 * MINUTE + 321)
    bench.house.advance(minutes=7)
    assert bench.posts[1:] == [
        ("2026-10-09T09:14:00.321Z", "s", "2026-10-09T09:10"),
        ("2026-10-09T09:20", "s", "2026-10-09T09:20"),
    ]


def test_a_clock_far_ahead_repeats_nothing(bench: Bench) -> None:
    bench.create("s", "cron(0 0 1 * ? *)")
    bench.clock.set(instant("2029-01-15T00:00:00"))
    bench.house.drain()
    assert len(bench.ticks) == len(set(bench.ticks)) == 27
    bench.update("s", "cron(0 0 1 * ? *)", Description="the same")
    bench.house.advance(days=20)
    assert bench.ticks[27:] == ["2029-02-01T00:00"]


# -- disabled, changed, deleted -----------------------------------------------------------------------------


def test_disabled_means_disabled_and_nothing_is_made_up_for(bench: Bench) -> None:
    bench.create("cron", "cron(0 * * * ? *)", State="DISABLED")
    bench.create("rate", "rate(7 minutes)", State="DISABLED")
    bench.create("once", "at(2026-10-09T10:00:00)", State="DISABLED")
    bench.house.advance(hours=1, minutes=30)
    assert (bench.posts, bench.rows("timers")) == ([], 0)
    bench.update("cron", "cron(0 * * * ? *)")
    bench.update("rate", "rate(7 minutes)")
    bench.update("once", "at(2026-10-09T10:00:00)")
    bench.house.advance(minutes=31)
    fired = {name: [tick for _, other, tick in bench.posts if other == name] for name in ("cron", "rate", "once")}
    assert fired["cron"] == ["2026-10-09T11:00"]
    assert fired["rate"][0] == "2026-10-09T10:31", "in the phase of its creation"
    assert fired["once"] == []


def test_disabling_stops_what_was_planned(bench: Bench) -> None:
    bench.create("s", "rate(10 minutes)")
    bench.house.advance(minutes=15)
    bench.update("s", "rate(10 minutes)", State="DISABLED")
    bench.house.advance(minutes=30)
    bench.update("s", "rate(10 minutes)")
    bench.house.advance(minutes=10)
    assert bench.ticks == ["2026-10-09T09:00", "2026-10-09T09:10", "2026-10-09T09:50"]


def test_an_update_with_the_same_expression_keeps_the_phase_and_does_not_fire(bench: Bench) -> None:
    bench.create("s", "rate(10 minutes)")
    bench.house.advance(minutes=4)
    bench.update("s", "rate(10 minutes)", Description="new", ScheduleExpressionTimezone="Asia/Tokyo")
    bench.house.advance(minutes=10)
    assert bench.ticks == ["2026-10-09T09:00", "2026-10-09T09:10"]


def test_an_update_does_not_lose_a_tick_that_is_overdue(bench: Bench) -> None:
    bench.create("s", "cron(0 10 * * ? *)")
    bench.clock.set(instant("2026-10-09T10:05:00"))
    bench.update("s", "cron(0 10 * * ? *)", target={"Input": "new"})
    bench.house.drain()
    assert bench.ticks == ["2026-10-09T10:00"]
    assert bench.posted[0].payload == "new"


def test_another_expression_counts_anew(bench: Bench) -> None:
    bench.create("s", "rate(10 minutes)")
    bench.house.advance(minutes=4)
    bench.update("s", "rate(3 minutes)")
    bench.house.advance(minutes=4)
    bench.update("s", "cron(0 12 * * ? *)")
    bench.house.advance(hours=4)
    assert bench.ticks == ["2026-10-09T09:00", "2026-10-09T09:04", "2026-10-09T09:07", "2026-10-09T12:00"]


def test_no_planned_time_fires_twice_whatever_the_update(bench: Bench) -> None:
    bench.create("s", "cron(0 10 * * ? *)")
    bench.house.advance_to(instant("2026-10-09T10:00:00"))
    bench.update("s", "at(2026-10-09T10:00:00)")
    bench.house.advance(minutes=1)
    assert bench.ticks == ["2026-10-09T10:00"]


def test_a_rate_with_an_old_start_is_not_made_up_for_when_it_changes(bench: Bench) -> None:
    begins = bench.house.now
    bench.create("s", "rate(1 day)", StartDate=begins)
    bench.create("off", "rate(1 day)", StartDate=begins, State="DISABLED")
    bench.house.advance(days=30, hours=5, minutes=30)
    bench.update("s", "rate(1 hour)", StartDate=begins)
    bench.update("off", "rate(1 hour)", StartDate=begins)
    bench.house.advance(minutes=31)
    assert bench.ticks[31:] == ["2026-11-08T15:00", "2026-11-08T15:00"]


def test_an_end_that_is_drawn_nearer_takes_back_what_was_planned(bench: Bench) -> None:
    bench.create("s", "cron(0 * * * ? *)", EndDate=instant("2026-10-09T18:00:00"))
    bench.house.advance(minutes=90)
    bench.update("s", "cron(0 * * * ? *)", EndDate=instant("2026-10-09T10:45:00"))
    assert bench.rows("timers") == 0
    bench.house.advance(hours=9)
    assert bench.ticks == ["2026-10-09T10:00"]


def test_an_extended_end_goes_on(bench: Bench) -> None:
    bench.create("s", "rate(1 hour)", EndDate=instant("2026-10-09T09:30:00"))
    bench.house.advance(hours=2)
    bench.update("s", "rate(1 hour)", EndDate=instant("2026-10-09T13:30:00"))
    bench.house.advance(hours=4)
    assert bench.ticks == ["2026-10-09T09:00", "2026-10-09T12:00", "2026-10-09T13:00"]


def test_a_deleted_schedule_leaves_nothing(bench: Bench) -> None:
    bench.create("s", "rate(10 minutes)")
    bench.house.drain()
    bench.call("DeleteSchedule", Name="s")
    assert [bench.rows(table) for table in ("schedules", "schedule_ticks", "timers")] == [0, 0, 0]
    bench.house.advance(hours=1)
    assert bench.ticks == ["2026-10-09T09:00"]


# -- flexible windows ---------------------------------------------------------------------------------------


def test_a_flexible_schedule_fires_within_its_window_and_says_the_planned_time(bench: Bench) -> None:
    for n in range(30):
        bench.create(f"s{n}", "cron(0 10 * * ? *)", FlexibleTimeWindow=WINDOW)
    bench.house.advance(days=1, hours=6)
    assert {tick for _, _, tick in bench.posts} == {"2026-10-09T10:00", "2026-10-10T10:00"}
    assert len(bench.posts) == 60
    moments = {at for at, _, _ in bench.posts}
    assert len(moments) > 50, "each draws its own"
    for at, _, tick in bench.posts:
        assert tick <= at < tick.replace("10:00", "10:15")


def test_an_update_keeps_the_moment_drawn_unless_the_window_changes(bench: Bench) -> None:
    bench.create("s", "cron(0 10 * * ? *)", FlexibleTimeWindow=WINDOW)
    drawn = planned(bench, "s")[0]["FiresAt"]
    bench.update("s", "cron(0 10 * * ? *)", FlexibleTimeWindow=WINDOW, Description="d")
    assert planned(bench, "s")[0]["FiresAt"] == drawn
    bench.update("s", "cron(0 10 * * ? *)")
    assert planned(bench, "s")[0]["FiresAt"] == "2026-10-09T10:00:00.000Z"


# -- the end ------------------------------------------------------------------------------------------------


def test_a_schedule_that_is_to_go_stays_until_its_last_delivery_is_over(bench: Bench) -> None:
    bench.create("s", "rate(1 hour)", EndDate=instant("2026-10-09T10:30:00"), ActionAfterCompletion="DELETE")
    bench.house.advance(hours=3)
    assert [one.watcher is None for one in bench.posted] == [True, False]
    assert bench.names() == ["s"]
    bench.over(bench.posted[-1])
    assert bench.names() == []
    bench.over(bench.posted[-1])
    assert [bench.rows(table) for table in ("schedules", "schedule_ticks", "timers")] == [0, 0, 0]


def test_of_ticks_that_were_missed_the_last_one_decides(bench: Bench) -> None:
    bench.create("s", "cron(0 * * * ? *)", EndDate=instant("2026-10-09T12:00:00"), ActionAfterCompletion="DELETE")
    bench.clock.set(instant("2026-10-09T15:00:00"))
    bench.house.drain()
    assert [one.watcher is None for one in bench.posted] == [True, True, False]


def test_a_schedule_that_was_changed_meanwhile_stays(bench: Bench) -> None:
    bench.create("s", "at(2026-10-09T10:00:00)", ActionAfterCompletion="DELETE")
    bench.house.advance(hours=1)
    bench.update("s", "at(2026-10-09T12:00:00)", ActionAfterCompletion="DELETE")
    bench.over(bench.posted[0])
    assert bench.names() == ["s"]
    bench.house.advance(hours=2)
    bench.over(bench.posted[1])
    assert bench.names() == []


@pytest.mark.parametrize(("action", "left"), [("DELETE", []), ("NONE", ["s"])])
def test_a_schedule_that_got_no_other_tick_goes_if_it_still_is_to(bench: Bench, action: str, left: list[str]) -> None:
    bench.create("s", "at(2026-10-09T10:00:00)", ActionAfterCompletion="DELETE")
    bench.house.advance(hours=1)
    bench.update("s", "at(2026-10-09T10:00:00)", ActionAfterCompletion=action, Description="changed while it is tried")
    bench.over(bench.posted[0])
    assert bench.names() == left


def test_a_schedule_of_the_same_name_is_another_one(bench: Bench) -> None:
    bench.create("s", "at(2026-10-09T10:00:00)", ActionAfterCompletion="DELETE")
    bench.house.advance(hours=1)
    bench.call("DeleteSchedule", Name="s")
    bench.create("s", "at(2026-10-09T09:00:00)", ActionAfterCompletion="DELETE")
    bench.over(bench.posted[0])
    assert bench.names() == ["s"]


def test_a_schedule_that_stays_is_not_watched(bench: Bench) -> None:
    bench.create("s", "at(2026-10-09T10:00:00)")
    bench.house.advance(hours=1)
    assert [one.watcher for one in bench.posted] == [None]


# -- what is posted -----------------------------------------------------------------------------------------


def test_a_tick_s_delivery(bench: Bench) -> None:
    dead = {"Arn": "arn:aws:sqs:us-east-1:000000000000:dead"}
    policy = {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 120}
    target = {"Arn": MACHINE, "Input": "{ }", "DeadLetterConfig": dead, "RetryPolicy": policy}
    bench.create("s", "cron(0 10 * * ? *)", target=target)
    bench.house.advance(hours=1)
    one = bench.posted[0]
    assert (one.sender, one.source, one.source_id) == ("schedules", arn_of("s"), "2026-10-09T10:00:00.000Z")
    assert (one.target, one.payload, one.dead_letter) == (MACHINE, "{ }", dead["Arn"])
    assert (one.since, one.max_age_ms, one.max_retries) == (instant("2026-10-09T10:00:00"), 120_000, 3)
    assert dict(one.parameters) == {"InvocationType": "FIRE_AND_FORGET"}
    assert one.trace.startswith("Root=1-")


class Counting:
    """A `Tx` that counts the statements of a unit."""

    def __init__(self, inner: Tx) -> None:
        self._inner = inner
        self.statements: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        self.statements.append(sql)
        return self._inner.one(sql, params)

    def run(self, sql: str, params: Params = ()) -> int:
        self.statements.append(sql)
        return self._inner.run(sql, params)

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        self.statements.append(sql)
        return self._inner.all(sql, params)


def test_a_tick_costs_three_statements_however_many_schedules_there_are(bench: Bench) -> None:
    for n in range(50):
        bench.create(f"s{n}", "rate(1 minute)")
    bench.house.switchboard.post = lambda _tx, _delivery: None
    fire = bench.house.rooms["schedules"].on_timer
    assert fire is not None

    def unit(tx: Tx) -> list[str]:
        counting = Counting(tx)
        fire(counting, "7")
        return counting.statements

    assert len(bench.house.unit(unit)) == 3


def test_schedules_that_are_not_due_are_not_looked_at(bench: Bench) -> None:
    for n in range(50):
        bench.create(f"s{n}", "cron(0 0 1 1 ? *)")
    poll = bench.house.rooms["schedules"].polls[0]

    def look(tx: Tx) -> list[str]:
        counting = Counting(tx)
        assert poll.look(counting) is None
        return counting.statements

    assert len(bench.house.look(look)) == 1
    bench.house.advance(hours=10)
    assert bench.posts == []


HOT = {
    "FIRING": queries.FIRING,
    "MOVE_ON": queries.MOVE_ON,
    "TICK": queries.TICK,
    "BY_NAME": queries.BY_NAME,
    "IS_THERE": queries.IS_THERE,
    "PAGE": queries.PAGE,
    "PAGE_OF_GROUP": queries.PAGE_OF_GROUP,
    "PAGE_OF_GROUP_FROM": queries.PAGE_OF_GROUP_FROM,
    "SOME_OF_GROUP": queries.SOME_OF_GROUP,
    "COMPLETED": queries.COMPLETED,
    "PLANNED": queries.PLANNED,
    "PLANNED_BY_NAME": queries.PLANNED_BY_NAME,
    "DELETING": queries.DELETING,
    "COUNT": queries.COUNT,
}


@pytest.mark.sqlite_only(reason="a plan is the planner's own words")
@pytest.mark.parametrize("name", HOT)
def test_statements_find_their_rows_by_index(bench: Bench, name: str) -> None:
    sql = HOT[name]
    plan = bench.house.look(lambda tx: tx.all("EXPLAIN QUERY PLAN " + sql, ("x",) * sql.count("?")))
    steps = [row[3] for row in plan]
    assert steps
    assert not [step for step in steps if "TEMP B-TREE" in step], steps
    scans = [step for step in steps if step.startswith("SCAN") and "schedule_groups_deleting" not in step]
    assert not scans, steps


# -- what comes next ----------------------------------------------------------------------------------------


def planned(bench: Bench, name: str | None = None, **given: Any) -> list[dict[str, Any]]:
    arn = {"ScheduleArn": arn_of(name)} if name is not None else {}
    return list(bench.ticks_coming(**arn, **given)["Ticks"])


def test_the_next_ticks_of_a_schedule_are_shown(bench: Bench) -> None:
    bench.create("s", "cron(0 10 * * ? *)", FlexibleTimeWindow=WINDOW)
    first, second, third = planned(bench, "s", MaxResults=3)
    assert first["ScheduledTime"] == "2026-10-09T10:00:00Z"
    assert "2026-10-09T10:00:00.000Z" <= first["FiresAt"] < "2026-10-09T10:15"
    assert (second["ScheduledTime"], second["FiresAt"]) == ("2026-10-10T10:00:00Z", "")
    assert third["State"] == "ENABLED"
    bench.create("off", "cron(0 10 * * ? *)", State="DISABLED")
    assert [(one["ScheduledTime"], one["State"]) for one in planned(bench, "off", MaxResults=1)] == [
        ("2026-10-09T10:00:00Z", "DISABLED")
    ]
    bench.create("over", "at(2026-10-09T08:00:00)")
    assert planned(bench, "over") == []
    for wrong in ({"ScheduleArn": arn_of("none")}, {"ScheduleArn": "s"}, {"MaxResults": 0}, {"NextToken": "x"}):
        with pytest.raises(ValidationException, match=next(iter(wrong))):
            bench.ticks_coming(**wrong)


def test_the_next_ticks_of_all_are_shown_in_order_of_time(bench: Bench) -> None:
    for hour in (12, 10, 11):
        bench.create(f"s{hour}", f"cron(0 {hour} * * ? *)")
    bench.create("off", "cron(0 10 * * ? *)", State="DISABLED")
    names: list[str] = []
    token: dict[str, Any] = {}
    while True:
        page = bench.ticks_coming(MaxResults=2, **token)
        names += [one["ScheduleArn"].rpartition("/")[2] for one in page["Ticks"]]
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    assert names == ["s10", "s11", "s12"]


# -- any schedule -------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    kinds=st.lists(
        st.sampled_from(["rate(7 minutes)", "rate(1 hour)", "cron(*/15 * * * ? *)", "cron(30 2 * * ? *)"]),
        min_size=1,
        max_size=3,
    ),
    naps=st.lists(st.integers(1, DAY), min_size=1, max_size=8),
    window=st.sampled_from([0, 5]),
)
def test_however_the_clock_jumps_each_planned_time_is_posted_once(
    kinds: list[str], naps: list[int], window: int
) -> None:
    flexible = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": window} if window else {"Mode": "OFF"}
    jumping, steady = Bench(), Bench()
    for bench in (jumping, steady):
        for n, kind in enumerate(kinds):
            bench.create(f"s{n}", kind, FlexibleTimeWindow=flexible, ScheduleExpressionTimezone="America/New_York")
    for nap in naps:
        jumping.clock.set(jumping.house.now + nap)
        jumping.house.drain()
    steady.house.advance(ms=sum(naps))

    def by_name(bench: Bench) -> dict[str, list[str]]:
        return {f"s{n}": [tick for _, name, tick in bench.posts if name == f"s{n}"] for n in range(len(kinds))}

    got, wanted = by_name(jumping), by_name(steady)
    assert {name: ticks[: min(len(ticks), len(got[name]))] for name, ticks in wanted.items()} == {
        name: ticks[: min(len(ticks), len(wanted[name]))] for name, ticks in got.items()
    }
    assert all(abs(len(got[name]) - len(wanted[name])) <= (1 if window else 0) for name in got)
    for bench in (jumping, steady):
        bench.close()


@pytest.mark.parametrize("key", ["1", "77"])
def test_a_timer_that_comes_late_or_of_nobody_does_nothing(bench: Bench, key: str) -> None:
    bench.create("s", "cron(0 10 * * ? *)")
    bench.house.unit(lambda tx: bench.house.rooms["schedules"].on_timer(tx, key))  # type: ignore[misc]
    assert bench.posts == []
    bench.house.advance(hours=1)
    assert bench.ticks == ["2026-10-09T10:00"]
