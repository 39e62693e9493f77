"""Who catches what, and how long to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.language.definition import Catcher, Retrier
from tasuki.language.retry import (
    HEARTBEAT_TIMEOUT,
    LONGEST_DELAY_SECONDS,
    delay_ms,
    find_catcher,
    find_retrier,
    matches,
)


@pytest.mark.parametrize(
    ("names", "error", "covered"),
    [
        (["A"], "A", True),
        (["A"], "B", False),
        (["B", "A"], "A", True),
        (["States.ALL"], "A", True),
        (["States.ALL"], "States.Timeout", True),
        (["States.ALL"], "States.DataLimitExceeded", True),  # recorded, against the guide
        (["States.ALL"], "States.Runtime", False),
        (["States.Runtime"], "States.Runtime", False),  # recorded: test_catch_states_runtime
        (["States.TaskFailed"], "States.Runtime", False),
        (["States.TaskFailed"], "A", True),
        (["States.TaskFailed"], "States.TaskFailed", True),
        (["States.TaskFailed"], "States.Timeout", False),
        (["States.TaskFailed"], HEARTBEAT_TIMEOUT, False),
        (["States.Timeout"], HEARTBEAT_TIMEOUT, True),
        (["States.HeartbeatTimeout"], HEARTBEAT_TIMEOUT, True),
        (["States.HeartbeatTimeout"], "States.Timeout", False),
        ([], "A", False),
    ],
)
def test_what_a_list_of_names_covers(names: list[str], error: str, covered: bool) -> None:
    assert matches(names, error) is covered


def test_the_first_that_fits_is_taken() -> None:
    retriers = [Retrier(error_equals=("A",)), Retrier(error_equals=("A", "B")), Retrier(error_equals=("States.ALL",))]
    assert [find_retrier(retriers, error) for error in ("A", "B", "C", "States.Runtime")] == [0, 1, 2, None]
    catchers = [Catcher(error_equals=("A",), next="X"), Catcher(error_equals=("States.ALL",), next="Y")]
    assert [found.next if (found := find_catcher(catchers, error)) else None for error in ("A", "B")] == ["X", "Y"]
    assert find_catcher(catchers, "States.Runtime") is None


@pytest.mark.parametrize(
    ("retrier", "delays"),
    [
        (Retrier(error_equals=("A",)), [1_000, 2_000, 4_000, 8_000]),
        (Retrier(error_equals=("A",), interval_seconds=3, backoff_rate=1.5), [3_000, 4_500, 6_750]),
        (Retrier(error_equals=("A",), interval_seconds=5, backoff_rate=1.0), [5_000, 5_000, 5_000]),
        (Retrier(error_equals=("A",), interval_seconds=3, max_delay_seconds=5), [3_000, 5_000, 5_000]),
    ],
)
def test_delays_grow(retrier: Retrier, delays: list[int]) -> None:
    assert [delay_ms(retrier, used, 0.5) for used in range(len(delays))] == delays


def test_full_jitter_draws_from_zero_to_the_delay() -> None:
    retrier = Retrier(error_equals=("A",), interval_seconds=10, full_jitter=True)
    assert [delay_ms(retrier, 0, fraction) for fraction in (0.0, 0.25, 0.999)] == [0, 2_500, 9_990]


@given(
    interval=st.integers(1, 99_999_999),
    rate=st.floats(1.0, 1e6),
    longest=st.none() | st.integers(1, 31_622_400),
    jitter=st.booleans(),
    used=st.integers(0, 100_000),
    fraction=st.floats(0, 1, exclude_max=True),
)
def test_delays_have_bounds_and_never_shrink(
    *, interval: int, rate: float, longest: int | None, jitter: bool, used: int, fraction: float
) -> None:
    retrier = Retrier(
        error_equals=("A",), interval_seconds=interval, backoff_rate=rate, max_delay_seconds=longest, full_jitter=jitter
    )
    delay = delay_ms(retrier, used, fraction)
    assert 0 <= delay <= 1_000 * (longest if longest is not None else LONGEST_DELAY_SECONDS)
    assert delay <= delay_ms(retrier, used + 1, fraction)
    if not jitter:
        assert delay >= 1_000 * min(interval, longest or interval)
