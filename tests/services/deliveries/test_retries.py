"""Any policy: how many tries are made and when; and every tick's own words at each (PF-44, PF-48)."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tasuki.services.deliveries.model import LONGEST_PAUSE_MS, pause_ms
from tasuki.values.instant import DAY, HOUR, SECOND
from tests.services.deliveries.bench import Bench, Throttled


@given(st.integers(1, 400), st.floats(0, 1, exclude_max=True))
def test_pauses_double_up_to_eight_minutes_a_quarter_more_or_less(attempt: int, fraction: float) -> None:
    base = SECOND * 2 ** (attempt - 1) if attempt < 10 else LONGEST_PAUSE_MS
    assert base * 0.75 <= pause_ms(attempt, fraction) <= base * 1.25
    assert pause_ms(attempt, 0) < pause_ms(attempt, 0.99)


@settings(max_examples=25)
@given(
    retries=st.integers(0, 185),
    age_s=st.integers(60, 86_400),
    late_ms=st.integers(0, 2 * HOUR),
    refusals=st.integers(0, 200),
    seed=st.integers(0, 1000),
)
def test_any_policy_is_kept_to(retries: int, age_s: int, late_ms: int, refusals: int, seed: int) -> None:
    bench = Bench(seed=seed)
    try:
        dead, start = bench.queue("dead"), bench.house.now
        since, over = start - late_ms, start - late_ms + age_s * SECOND
        left = iter(range(refusals))
        bench.target.refuse = lambda _payload: Throttled("no") if next(left, None) is not None else None
        bench.post(since=since, max_age_ms=age_s * SECOND, max_retries=retries, dead_letter=dead, watcher="watcher:w")
        bench.house.advance(days=2)
        at = [instant for instant, _, _, _ in bench.sender.tries][: len(bench.target.callers)]
        made = len(bench.target.callers)
        assert at == sorted(at)
        assert all(instant <= over for instant in at)
        assert made <= retries + 1
        if made:
            assert at[0] == start
        for number, (sooner, later) in enumerate(pairwise(at), 1):
            base = min(LONGEST_PAUSE_MS, SECOND << min(number - 1, 20))
            assert base * 0.75 <= later - sooner <= base * 1.25
        letters, taken = bench.letters(), bench.taken
        assert len(letters) + len(taken) == 1
        assert len(bench.told) == 1
        assert bench.left_over() == (0, 0)
        if taken:
            assert made == refusals + 1
            return
        assert made <= refusals
        condition = letters[0][1]["EXHAUSTED_RETRY_CONDITION"]
        assert letters[0][1]["RETRY_ATTEMPTS"] == str(max(0, made - 1))
        if made == retries + 1:
            assert condition == "MaximumRetryAttempts"
        else:
            assert condition == "MaximumEventAgeInSeconds"
            longest = min(LONGEST_PAUSE_MS, SECOND << min(made - 1, 20)) * 1.25 if made else 0
            assert (at[-1] if made else start) + longest > over
    finally:
        bench.house.close()


def test_each_attempt_has_its_own_words_and_the_planned_time_stays(bench: Bench) -> None:
    """PF-44: attempt-number 1, 2, 3 and an execution id of each try's own; what the sender keeps in its context stays."""
    bench.target.refuse = lambda _payload: Throttled("no")
    dead = bench.queue("dead")
    planned = "2026-01-01T00:00:00Z"
    bench.post(
        payload=f"{planned} <attempt> <id>", context={"SCHEDULED_TIME": planned}, max_retries=2, dead_letter=dead
    )
    bench.house.advance(minutes=1)
    assert [attempt for _, _, attempt, _ in bench.sender.tries] == [1, 2, 3]
    ids = [try_id for _, _, _, try_id in bench.sender.tries]
    assert len(set(ids)) == 3
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in ids)
    [(body, said)] = bench.letters()
    assert body == f"{planned} 3 {ids[2]}"
    assert (said["SCHEDULED_TIME"], said["EXECUTION_ID"], said["RETRY_ATTEMPTS"]) == (planned, ids[2], "2")


def test_a_missing_queue_three_retries_and_a_dead_letter(bench: Bench) -> None:
    """PF-48 as it stands: the target queue is missing, MaximumRetryAttempts 3, a dead-letter queue."""
    dead = bench.queue("dead")
    bench.post(target=dead.replace("dead", "missing"), max_retries=3, dead_letter=dead)
    bench.house.advance(days=1)
    assert len(bench.sender.tries) == 4
    [(body, said)] = bench.letters()
    assert body == "p"
    assert said["ERROR_CODE"] == "AWS.SimpleQueueService.NonExistentQueue", "the older name, as in AWS's example"
    assert said["EXHAUSTED_RETRY_CONDITION"] == "MaximumRetryAttempts"
    assert said["TARGET_ARN"].endswith(":missing")


def test_a_queue_that_is_made_in_time_gets_the_message(bench: Bench) -> None:
    target = "arn:aws:sqs:us-east-1:000000000000:late"
    bench.post(target=target, max_age_ms=DAY)
    bench.house.advance(minutes=10)
    bench.queue("late")
    bench.house.advance(minutes=10)
    assert [body for body, _ in bench.letters("late")] == ["p"]
    assert bench.outcomes()[-1] == "DELIVERED"
