"""Plays whose every figure can be worked out by hand."""

from pathlib import Path
from typing import Any

import pytest

from tasuki.testing.loads import STRATEGIES, Figures, Strategy, play, run_sweep, sentences
from tasuki.testing.loads.abreast import each
from tests.loads.files import HOUR_S, at, plan

WINDOW_S = 6 * HOUR_S
"""A quarter of a day, as the small file has it."""


def played(folder: Path, strategy: Strategy, **changes: Any) -> Figures:
    return play(plan(folder, **changes), strategy, lambda _: None)[0]


# -- a fleet that is always on ------------------------------------------------------------------------------------


def test_one_worker_does_three_jobs_one_after_the_other(tmp_path: Path) -> None:
    """Ten minutes each, at 0, 1 and 2 minutes: begun at 0, 10 and 20 minutes."""
    one = played(tmp_path, "always_on", load=at(0, 60, 120))
    assert (one.waits.p50, one.waits.most) == (9 * 60, 18 * 60)
    assert (one.jobs, one.done, one.retries, one.peak_tasks) == (3, 3, 0, 1)
    assert (one.task_s, one.useful_s, one.idle_s, one.wasted_s) == (WINDOW_S, 1800, WINDOW_S - 1800, 0)
    assert one.jobs_per_hour == 0.5


def test_every_call_at_the_queue_is_counted_and_idle_polls_too(tmp_path: Path) -> None:
    """Three receives that give a job; then the worker polls from 30 min to 6 h, every 20 s, and one poll is under way."""
    one = played(tmp_path, "always_on", load=at(0, 60, 120))
    empty = (WINDOW_S - 1800) // 20 + 1
    # A job of 10 min holds its message at 2.5, 5, 7.5 min; at 10 min it has ended.
    assert one.calls == {
        "ChangeMessageVisibility": 9,
        "DeleteMessage": 3,
        "ReceiveMessage": 3 + empty,
        "SendMessage": 3,
    }
    assert one.empty_receives == empty
    assert one.queue_calls == 18 + empty


def test_the_poll_that_began_first_is_answered_first(tmp_path: Path) -> None:
    """Worker 0 ends at 10 min, worker 1 at 10 min 10 s. At 10 min 25 s worker 0's second poll is 5 s old, the other's 15 s."""
    load = {
        "arrivals": "trace",
        "trace": [
            {"at": 0},
            {"at": 10},
            {"at": 625},
            {"at": 626},
        ],
    }
    one = played(tmp_path, "always_on", load=load, strategies__always_on__workers=2)
    # Whoever it is, both wait for nothing; worker 1 takes the third job after no empty poll, worker 0 the fourth after one.
    late = 625 + 600
    assert one.waits.most == 0
    assert one.empty_receives == 1 + ((WINDOW_S - late) // 20 + 1) + ((WINDOW_S - late - 1) // 20 + 1)


def test_a_job_that_fails_comes_back_after_the_visibility_timeout_and_ends_as_a_dead_letter(tmp_path: Path) -> None:
    """Held last at 7.5 min, so visible again at 12.5, 25 and 37.5 min; the third time it is moved and not given."""
    one = played(tmp_path, "always_on", versions__v1__hopeless_rate=1)
    assert (one.done, one.dead_letters, one.unfinished) == (0, 1, 0)
    assert (one.failed_tries, one.retries, one.wasted_s) == (3, 2, 1800)
    assert one.waits.p50 is None
    assert one.first_tries.most == 0


def test_a_worker_that_does_not_hold_its_message_has_the_job_done_twice(tmp_path: Path) -> None:
    """Ten minutes of work, five of visibility: the second worker begins again at five, and its work is waste."""
    one = played(tmp_path, "always_on", workers__extend=False, strategies__always_on__workers=2)
    assert (one.done, one.retries, one.wasted_s, one.useful_s) == (1, 2, 1200, 600)


def test_each_version_has_a_fleet_of_its_own(tmp_path: Path) -> None:
    other = {"share": 0, "duration": {"kind": "fixed", "minutes": 1}, "vcpu": 1, "memory_gb": 2, "start_seconds": 0}
    load = {"arrivals": "trace", "trace": [{"at": 0, "version": "v1"}, {"at": 0, "version": "v2", "minutes": 2}]}
    one = played(
        tmp_path, "always_on", load=load, versions__v2=other, strategies__always_on__workers={"v1": 1, "v2": 2}
    )
    assert one.workers == {"v1": 1, "v2": 2}
    assert one.peak_tasks == 3
    assert one.useful_s == 720


def test_the_smallest_fleet_that_keeps_the_target_is_found_by_play(tmp_path: Path) -> None:
    """Four jobs of 10 min at once: with two workers the last waits for 10 min, with one for 30."""
    given = plan(
        tmp_path,
        load=at(0, 0, 0, 0),
        strategies__always_on={"workers": "auto", "target_p95_wait_seconds": 600},
    )
    one, smaller = play(given, "always_on", lambda _: None)
    assert one.workers == {"v1": 2}
    assert one.first_tries.most == 600
    [fewer] = smaller
    assert (fewer.version, fewer.workers, fewer.p95) == ("v1", 1, 1800)


# -- workers that follow the backlog ------------------------------------------------------------------------------


def test_a_backlog_starts_workers_which_need_their_time_to_start(tmp_path: Path) -> None:
    """Three jobs at 30 s: one is taken, two wait; at 60 s one worker more is wanted than the one there is, ready at 105 s."""
    one = played(tmp_path, "backlog", load=at(30, 30, 30), strategies__backlog__in_cooldown_seconds=WINDOW_S)
    assert one.done == 3
    assert (one.waits.p50, one.peak_tasks) == (75, 2)
    assert one.starting_s == 45


def test_scale_in_kills_running_jobs_and_what_they_did_is_lost(tmp_path: Path) -> None:
    """Four jobs at 0: one is taken. Three are wanted at 1 min, two more workers start; one job waits on, so one worker is
    wanted at 2 min, and two of three are stopped: those of the two new ones that began at 1 min 45 s lost 15 s each, the old one 2 min.
    """
    rule = {"in_cooldown_seconds": 0, "out_cooldown_seconds": WINDOW_S, "every_seconds": 60, "per_worker": 1}
    one = played(
        tmp_path,
        "backlog",
        load=at(0, 0, 0, 0),
        strategies__backlog={**rule, "least": 1, "most": 3},
        workers__receives=10,
    )
    assert one.killed == 2
    assert one.wasted_s in {30, 135}
    assert one.done == 4
    assert one.retries == 2
    assert one.peak_tasks == 3
    # All three tasks: one went on to the end, two were stopped at 2 min.
    assert one.useful_s == 2400
    assert one.task_s == pytest.approx(one.useful_s + one.idle_s + one.wasted_s + one.starting_s)


def test_a_killed_job_comes_back_when_its_message_is_visible_again(tmp_path: Path) -> None:
    """With no worker to begin with, one is ordered at 1 min and begins at once; at 2 min nothing waits, so none is wanted."""
    rule = {
        "per_worker": 1,
        "least": 0,
        "most": 2,
        "every_seconds": 60,
        "out_cooldown_seconds": 0,
        "in_cooldown_seconds": 0,
    }
    one = played(
        tmp_path,
        "backlog",
        load=at(0),
        versions__v1__duration={"kind": "fixed", "minutes": 0.5},
        versions__v1__start_seconds=0,
        strategies__backlog=rule,
    )
    assert (one.done, one.killed, one.waits.most) == (1, 0, 60), "half a minute of work is done by then"
    longer = played(tmp_path, "backlog", load=at(0), versions__v1__start_seconds=0, strategies__backlog=rule)
    # Ten minutes of work are stopped after one, whenever the message is visible again ...
    assert (longer.done, longer.killed, longer.wasted_s) == (0, 3, 180)
    assert longer.dead_letters == 1, "... until it has been received three times, with nothing wrong with it"


# -- workers that follow the backlog, protected from scale-in -----------------------------------------------------

PROTECTED: dict[str, Any] = {
    "protect": True,
    "per_worker": 1,
    "least": 0,
    "most": 2,
    "every_seconds": 60,
    "out_cooldown_seconds": 0,
    "in_cooldown_seconds": 0,
}


def test_a_protected_worker_is_stopped_when_it_has_done_its_job_and_not_before(tmp_path: Path) -> None:
    """Ordered at 1 min, not wanted from 2 min on, at work until 11 min: the very play whose jobs are killed else."""
    one = played(
        tmp_path, "backlog_protected", load=at(0), versions__v1__start_seconds=0, strategies__backlog=PROTECTED
    )
    assert (one.done, one.killed, one.dead_letters, one.wasted_s) == (1, 0, 0, 0)
    assert (one.task_s, one.useful_s, one.idle_s) == (600, 600, 0)
    # The poll that gave the job, and the one that was under way when it was stopped.
    assert (one.calls["ReceiveMessage"], one.empty_receives) == (2, 1)


def test_a_protected_worker_that_is_one_too_many_takes_what_waits_before_it_is_stopped(tmp_path: Path) -> None:
    """Not wanted at 2 min; the job of 2 min 10 s asks for one worker, which is there, so none is started: it waits until 11 min."""
    one = played(
        tmp_path, "backlog_protected", load=at(0, 130), versions__v1__start_seconds=0, strategies__backlog=PROTECTED
    )
    assert (one.done, one.killed, one.peak_tasks) == (2, 0, 1)
    assert one.waits.most == 660 - 130
    assert (one.task_s, one.idle_s) == (1200, 0)


def test_protection_lets_idle_workers_and_those_that_start_be_stopped(tmp_path: Path) -> None:
    """Three jobs at 0 and one worker: two are ordered at 1 min, which need 5 min; at 2 min nothing more than they is wanted."""
    one = played(
        tmp_path,
        "backlog_protected",
        load=at(0, 0, 0),
        versions__v1__duration={"kind": "fixed", "minutes": 0.75},
        versions__v1__start_seconds=300,
        strategies__backlog={**PROTECTED, "least": 1, "most": 4},
    )
    # The old worker has them done at 2 min 15 s; at 1 min one waited, so one was wanted and there. None is ever started.
    assert (one.done, one.killed, one.peak_tasks) == (3, 0, 1)
    more = played(
        tmp_path,
        "backlog_protected",
        load=at(0, 0, 0, 0),
        versions__v1__duration={"kind": "fixed", "minutes": 0.75},
        versions__v1__start_seconds=300,
        strategies__backlog={**PROTECTED, "least": 1, "most": 4},
    )
    # Two wait at 1 min: a second is ordered, and stopped at 2 min, when one waits: it has started for a minute.
    assert (more.done, more.killed, more.peak_tasks) == (4, 0, 2)
    assert more.starting_s == 60


# -- a task per job ------------------------------------------------------------------------------------------------


def test_each_job_waits_for_the_start_of_its_task_and_for_nothing_else(tmp_path: Path) -> None:
    one = played(tmp_path, "task_per_job", load=at(0, 0, 0, 60, 120))
    assert (one.waits.p50, one.waits.most, one.first_tries.most) == (45, 45, 45)
    assert (one.done, one.peak_tasks) == (5, 5)
    assert (one.task_s, one.useful_s, one.starting_s, one.idle_s) == (5 * 645, 3000, 225, 0)


def test_nothing_runs_and_nothing_polls_where_nothing_comes(tmp_path: Path) -> None:
    one = played(tmp_path, "task_per_job", load=at(5 * HOUR_S))
    assert one.calls == {"DeleteMessage": 1, "ReceiveMessage": 1, "SendMessage": 1}
    assert one.empty_receives == 0
    assert one.running[:5] == [0] * 5


def test_transitions_are_those_of_the_executions(tmp_path: Path) -> None:
    """Unwrap, WhichVersion, Run: three for each job that succeeds at once."""
    assert played(tmp_path, "task_per_job", load=at(0, 60)).transitions == 6
    # Unwrap, WhichVersion, Run and two tries more, Bury, Failed.
    assert played(tmp_path, "task_per_job", versions__v1__hopeless_rate=1).transitions == 7


def test_a_hopeless_job_is_tried_again_by_the_machine_and_then_buried(tmp_path: Path) -> None:
    one = played(tmp_path, "task_per_job", load=at(0, 60), versions__v1__hopeless_rate=1, versions__v1__fails_after=0.5)
    assert (one.done, one.dead_letters, one.unfinished) == (0, 2, 0)
    assert (one.failed_tries, one.retries) == (6, 4)
    assert (one.wasted_s, one.starting_s) == (6 * 300, 6 * 45)


def test_beyond_the_quota_the_machine_asks_again(tmp_path: Path) -> None:
    """One task at a time: the second job is refused until the first has ended, at 645 s; asked every 30 s: at 660 s."""
    one = played(
        tmp_path,
        "task_per_job",
        load=at(0, 0),
        limits__running_tasks=1,
        strategies__task_per_job={"full_retry_seconds": 30},
    )
    assert (one.done, one.peak_tasks) == (2, 1)
    assert one.waits.most == 660 + 45
    assert one.refused == 22


# -- money ---------------------------------------------------------------------------------------------------------


def test_cost_is_amount_times_price_to_the_cent(tmp_path: Path) -> None:
    """Dollars an hour for a task: 2 vCPU * 1 + 4 GB * 0.25 = 3."""
    fleet = played(tmp_path, "always_on", load=at(0, 60, 120))
    assert fleet.costs["tasks"] == pytest.approx(6 * 3)
    assert fleet.costs["queue"] == pytest.approx(fleet.queue_calls / 1000)
    assert (fleet.costs["machine"], fleet.costs["pipe"]) == (0, 0)
    tasks = played(tmp_path, "task_per_job", load=at(0, 60))
    assert tasks.costs["tasks"] == pytest.approx(2 * 645 / 3600 * 3)
    assert tasks.costs["machine"] == pytest.approx(6 / 1000)
    assert tasks.costs["pipe"] == pytest.approx(2 / 100)
    # 5 pollers of AWS's, one poll each 20 s; and what the pipe did here.
    assert tasks.aws_polls == 5 * WINDOW_S // 20
    assert tasks.costs["queue"] == pytest.approx((tasks.queue_calls + tasks.aws_polls) / 1000)
    assert tasks.cost == pytest.approx(sum(tasks.costs.values()))


def test_a_short_task_is_charged_for_a_minute_and_a_second_that_is_begun_is_whole(tmp_path: Path) -> None:
    short = {"kind": "fixed", "minutes": 0.1}
    one = played(tmp_path, "task_per_job", versions__v1__duration=short, versions__v1__start_seconds=1)
    assert one.task_s == 7
    assert one.costs["tasks"] == pytest.approx(60 / 3600 * 3)
    longer = played(tmp_path, "task_per_job", versions__v1__start_seconds=0.5)
    assert longer.costs["tasks"] == pytest.approx(601 / 3600 * 3)


# -- all of them ---------------------------------------------------------------------------------------------------

BUSY: dict[str, Any] = {
    "days": 1,
    "load": {"arrivals": "poisson", "per_hour": 3},
    "versions__v1__duration": {"kind": "lognormal", "p50_minutes": 8, "p95_minutes": 30, "most_minutes": 60},
    "versions__v1__failure_rate": 0.1,
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_job_is_lost_and_every_second_is_accounted_for(tmp_path: Path, strategy: Strategy) -> None:
    one = played(tmp_path, strategy, **BUSY, strategies__always_on__workers=3)
    assert one.jobs > 40
    assert one.jobs == one.done + one.dead_letters
    assert one.unfinished == 0
    assert one.task_s == pytest.approx(one.useful_s + one.starting_s + one.idle_s + one.wasted_s)
    assert one.idle_s >= 0
    assert one.waits.p50 is not None
    assert one.waits.p95 is not None
    assert one.waits.p50 <= one.waits.p95


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_file_gives_the_same_figures_and_another_seed_others(tmp_path: Path, strategy: Strategy) -> None:
    first, again = played(tmp_path, strategy, **BUSY), played(tmp_path, strategy, **BUSY)
    assert first == again
    assert played(tmp_path, strategy, **BUSY, seed=8) != first


def test_all_strategies_are_given_the_same_jobs(tmp_path: Path) -> None:
    calm = BUSY | {"versions__v1__failure_rate": 0}
    fleet = played(tmp_path, "always_on", **calm, strategies__always_on__workers=5)
    tasks = played(tmp_path, "task_per_job", **calm)
    assert (fleet.jobs, fleet.useful_s) == (tasks.jobs, tasks.useful_s)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_load_without_jobs_is_played_as_well(tmp_path: Path, strategy: Strategy) -> None:
    one = played(tmp_path, strategy, load={"arrivals": "poisson", "per_hour": 0})
    assert (one.jobs, one.done, one.waits.most, one.useful_s) == (0, 0, None, 0)
    assert one.task_s == one.idle_s == (0 if strategy == "task_per_job" else WINDOW_S)


def test_bursts_come_together(tmp_path: Path) -> None:
    load = {"arrivals": "bursts", "size": 8, "every_minutes": 120, "first_minutes": 60}
    one = played(tmp_path, "task_per_job", load=load)
    assert (one.jobs, one.peak_tasks, one.waits.most) == (24, 8, 45)


# -- the sweep -----------------------------------------------------------------------------------------------------


def test_a_fleet_that_is_kept_busy_is_cheaper_and_the_report_says_so(tmp_path: Path) -> None:
    """Every 10 minutes six jobs of 10 minutes: six workers are never idle, and never start."""
    load = {"arrivals": "bursts", "size": 6, "every_minutes": 10}
    given = plan(
        tmp_path,
        load=load,
        days=0.5,
        strategies__always_on={"workers": "auto", "target_p95_wait_seconds": 60},
        report={"claimed_saving": 0.8, "sweep": {"factors": [1], "days": 0.5}},
        prices__sqs__per_million_requests=0,
    )
    [point] = run_sweep(given, lambda _: None)
    assert (point.workers, round(point.busy, 2)) == (6, 1.0)
    # The start of each task is paid as well, 45 s of 600, and three transitions.
    assert point.saving is not None
    assert point.saving < -0.07
    assert not point.saves
    [why] = [one for one in sentences(given, [point]) if "does not hold:" in one]
    assert "an always-on fleet is cheaper by" in why
    assert "864 jobs a day" in why


def test_the_claim_holds_where_a_fleet_stands_idle(tmp_path: Path) -> None:
    load = {"arrivals": "bursts", "size": 6, "every_minutes": 600}
    given = plan(
        tmp_path,
        load=load,
        days=1,
        strategies__always_on={"workers": "auto", "target_p95_wait_seconds": 60},
        report={"sweep": {"factors": [1], "days": 1}},
        prices__sqs__per_million_requests=0,
    )
    [point] = run_sweep(given, lambda _: None)
    assert point.saves
    assert point.waits_not
    [said] = [one for one in sentences(given, [point]) if "holds from" in one]
    assert "80% lower cost without waiting holds" in said


def test_the_points_are_the_same_in_one_process_and_in_two(tmp_path: Path) -> None:
    given = plan(
        tmp_path,
        load={"arrivals": "poisson", "per_hour": 4},
        versions__v1__failure_rate=0.1,
        strategies__always_on={"workers": "auto", "target_p95_wait_seconds": 60, "most_workers": 1},
        report={"sweep": {"factors": [0.5, 2, 40], "days": 0.25}},
    )
    told: list[str] = []
    points = run_sweep(given, told.append, processes=2)
    assert points == run_sweep(given, lambda _: None, processes=1)
    assert [one.factor for one in points] == [0.5, 2, 40, 1]
    assert points[2].saving is None, "no fleet of ten keeps the target, which a process of its own finds out as well"
    jobs = round(points[1].jobs_per_day * 0.25)
    assert told[1] == f"sweep 2 of 4: 2 times the load, as given, {jobs} jobs"


def test_what_a_process_of_its_own_raises_is_raised_here() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        list(each(int, ["1", "nonsense", "3"], 2))
    assert list(each(int, ["1", "2", "3"], 2)) == [1, 2, 3]


def test_the_quota_brings_waiting_back_and_the_report_says_why(tmp_path: Path) -> None:
    given = plan(
        tmp_path,
        load={"arrivals": "bursts", "size": 6, "every_minutes": 120},
        strategies__always_on={"workers": "auto", "target_p95_wait_seconds": 3600},
        limits__running_tasks=3,
        report={"sweep": {"factors": [1], "days": 0.25}},
    )
    [point] = run_sweep(given, lambda _: None)
    assert point.refused > 0
    assert not point.waits_not
    assert any("limits.running_tasks refused" in one for one in sentences(given, [point]))
