"""Arrivals and durations come as the file says."""

from pathlib import Path
from statistics import quantiles

from hypothesis import given
from hypothesis import strategies as some

from tasuki.testing.loads.figures import percentile
from tasuki.testing.loads.jobs import draw, draw_jobs
from tasuki.testing.loads.plan import Duration
from tasuki.values.instant import DAY, HOUR, MINUTE
from tests.loads.files import plan


def test_jobs_arrive_at_the_rate_of_their_hour_and_day(tmp_path: Path) -> None:
    rates = [0.0] * 24
    rates[8], rates[9] = 30.0, 60.0
    load = {"arrivals": "poisson", "per_hour": rates, "weekdays": [1, 1, 1, 1, 1, 0, 0]}
    jobs = draw_jobs(plan(tmp_path, load=load, days=28))
    hours = [job.arrives // HOUR % 24 for job in jobs]
    assert set(hours) == {8, 9}
    # Twenty working days: 600 and 1,200 are expected, with spreads of 24 and 35.
    assert 500 < hours.count(8) < 700
    assert 1050 < hours.count(9) < 1350
    assert all(job.arrives // DAY % 7 < 5 for job in jobs)
    assert [job.arrives for job in jobs] == sorted(job.arrives for job in jobs)


def test_a_multiple_of_the_load_has_so_many_times_the_jobs(tmp_path: Path) -> None:
    one = plan(tmp_path, load={"arrivals": "poisson", "per_hour": 10}, days=7)
    assert 9 < len(draw_jobs(one.times(10))) / len(draw_jobs(one)) < 11


def test_shares_and_lognormal_durations_are_as_said(tmp_path: Path) -> None:
    spread = {"kind": "lognormal", "p50_minutes": 10, "p95_minutes": 40}
    version = {"share": 0.3, "duration": spread, "vcpu": 1, "memory_gb": 1, "start_seconds": 0}
    other = {**version, "share": 0.7}
    jobs = draw_jobs(
        plan(tmp_path, load={"arrivals": "poisson", "per_hour": 100}, days=2, versions={"v1": version, "v2": other})
    )
    assert 0.27 < sum(job.version.name == "v1" for job in jobs) / len(jobs) < 0.33
    twentieths = quantiles([job.duration_ms / MINUTE for job in jobs], n=20)
    assert 9.3 < twentieths[9] < 10.7
    assert 36 < twentieths[18] < 44


@given(some.floats(0, 1, exclude_max=True))
def test_durations_stay_within_their_bounds(fraction: float) -> None:
    assert draw(Duration("fixed", (7,)), fraction) == 7
    assert 10 <= draw(Duration("uniform", (10, 20)), fraction) <= 20
    assert draw(Duration("list", (1, 5, 9)), fraction) in {1, 5, 9}
    assert 1 <= draw(Duration("lognormal", (600_000, 2_400_000), 3_600_000), fraction) <= 3_600_000


@given(some.lists(some.integers(0, 1000), min_size=1), some.sampled_from([0.5, 0.95, 0.99, 1]))
def test_a_percentile_is_the_smallest_that_so_many_do_not_exceed(numbers: list[int], part: float) -> None:
    ordered = sorted(numbers)
    found = percentile(ordered, part)
    assert found in ordered
    assert sum(one <= found for one in ordered) >= part * len(ordered) - 1e-9
    assert sum(one < found for one in ordered) < part * len(ordered)
