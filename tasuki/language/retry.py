"""Which retrier, which catcher, and how long to wait (states language, "Errors")."""

from collections.abc import Sequence

from tasuki.language.definition import Catcher, Retrier

LONGEST_DELAY_SECONDS = 99_999_999
"""AWS's largest number of seconds anywhere; a backoff without MaxDelaySeconds stops growing here."""

HEARTBEAT_TIMEOUT = "States.HeartbeatTimeout"


def matches(error_equals: Sequence[str], error: str) -> bool:
    """Tell whether a list of error names covers `error`.

    States.Runtime is covered by nothing, not even by its name (recorded: test_catch_states_runtime). States.ALL covers
    everything else, States.DataLimitExceeded of a Task's result too (recorded, against the guide's sentence).
    States.TaskFailed covers everything but timeouts. Pass `States.HeartbeatTimeout` for a missed heartbeat: it is also
    covered by States.Timeout, the name that history shows for it.
    """
    if error == "States.Runtime":
        return False
    for name in error_equals:
        if name in {error, "States.ALL"}:
            return True
        if name == "States.TaskFailed" and error not in {"States.Timeout", HEARTBEAT_TIMEOUT}:
            return True
        if name == "States.Timeout" and error == HEARTBEAT_TIMEOUT:
            return True
    return False


def find_retrier(retriers: Sequence[Retrier], error: str) -> int | None:
    """Answer the place of the first retrier that covers `error`. An exhausted one is not skipped: go on to Catch then."""
    for place, retrier in enumerate(retriers):
        if matches(retrier.error_equals, error):
            return place
    return None


def find_catcher(catchers: Sequence[Catcher], error: str) -> Catcher | None:
    """Answer the first catcher that covers `error`."""
    for catcher in catchers:
        if matches(catcher.error_equals, error):
            return catcher
    return None


def delay_ms(retrier: Retrier, used: int, fraction: float) -> int:
    """Answer how long to wait before the next try, when `used` tries of this retrier are spent.

    IntervalSeconds times BackoffRate to the power of `used`, at most MaxDelaySeconds; with full jitter the `fraction`
    (in [0, 1), drawn by the caller) of that.
    """
    longest = float(LONGEST_DELAY_SECONDS if retrier.max_delay_seconds is None else retrier.max_delay_seconds)
    try:
        seconds = min(retrier.interval_seconds * retrier.backoff_rate**used, longest)
    except OverflowError:
        seconds = longest
    return round(seconds * 1_000 * fraction) if retrier.full_jitter else round(seconds * 1_000)
