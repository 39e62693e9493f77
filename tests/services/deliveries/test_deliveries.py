"""A delivery is tried until it is taken or given up: how often, when, and what is left of it."""

import logging
from itertools import pairwise

import pytest

from tasuki.protocol.house_model import house_model
from tasuki.runtime.tally import Tally, look
from tasuki.services.deliveries.errors import ValidationException
from tasuki.services.switchboard import Ending
from tasuki.store.store import Conflict
from tasuki.store.timers import set_timer
from tasuki.values.instant import DAY, HOUR, MINUTE
from tests.services.deliveries.bench import QUEUE, SOURCE, TARGET, Bench, Gone, Throttled


def refusing(bench: Bench, times: int) -> None:
    """Have the target refuse so many tries."""
    left = iter(range(times))
    bench.target.refuse = lambda _payload: Throttled("Rate exceeded") if next(left, None) is not None else None


def test_what_is_taken_at_once_is_recorded_and_leaves_nothing(bench: Bench) -> None:
    statements = bench.post(payload="hello", parameters={"A": 1})
    assert bench.taken == ["hello"]
    assert bench.outcomes() == ["DELIVERED"]
    assert bench.left_over() == (0, 0)
    found = bench.house.call("tasuki", "ListHandovers", {})["Handovers"][0]
    assert (found["SourceArn"], found["MessageId"], found["TargetArn"]) == (SOURCE, "tick", TARGET)
    assert (found["ExecutionArn"], found["Trace"]) == ("thing-hello", "Root=1-0-0")
    assert len(statements) == 4, "two for the savepoint, the target's own, one handover"


def test_a_refused_try_is_undone_and_tried_again_until_it_is_taken(bench: Bench) -> None:
    refusing(bench, 3)
    bench.post(payload="n<attempt>-<id>")
    assert bench.taken == []
    assert bench.left_over() == (1, 1)
    bench.house.advance(minutes=1)
    ids = [try_id for _, _, _, try_id in bench.sender.tries]
    assert [attempt for _, _, attempt, _ in bench.sender.tries] == [1, 2, 3, 4]
    assert len(set(ids)) == 4
    assert bench.taken == [f"n4-{ids[3]}"]
    failed = "FAILED: ThrottlingException: Rate exceeded (attempt {})"
    assert bench.outcomes() == [failed.format(1), failed.format(2), failed.format(3), "DELIVERED"]
    assert bench.left_over() == (0, 0)


def test_after_the_last_retry_it_goes_into_the_dead_letter_queue(bench: Bench) -> None:
    """PF-48: MaximumRetryAttempts 3 are four tries, the pauses between them grow."""
    refusing(bench, 100)
    dead = bench.queue("dead")
    bench.post(payload="n<attempt>", dead_letter=dead, max_retries=3)
    bench.house.advance(hours=1)
    at = [instant for instant, *_ in bench.sender.tries]
    pauses = [later - sooner for sooner, later in pairwise(at)]
    assert len(at) == 4
    assert all(750 << n <= pause <= 1250 << n for n, pause in enumerate(pauses))
    [(body, said)] = bench.letters()
    assert body == "n4"
    assert said == {
        "ERROR_CODE": "ThrottlingException",
        "ERROR_MESSAGE": "Rate exceeded",
        "EXECUTION_ID": bench.sender.tries[3][3],
        "EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
        "IS_PAYLOAD_TRUNCATED": "false",
        "RETRY_ATTEMPTS": "3",
        "SCHEDULE_ARN": SOURCE,
        "TARGET_ARN": TARGET,
    }
    assert bench.outcomes()[-1] == "DEAD_LETTERED: MaximumRetryAttempts: ThrottlingException: Rate exceeded"
    assert bench.left_over() == (0, 0)


def test_nothing_is_tried_after_its_age(bench: Bench) -> None:
    refusing(bench, 1000)
    dead = bench.queue("dead")
    since = bench.house.now
    bench.post(dead_letter=dead, max_age_ms=MINUTE)
    bench.house.advance(days=1)
    assert all(instant <= since + MINUTE for instant, *_ in bench.sender.tries)
    assert 5 <= len(bench.sender.tries) <= 7
    [(_, said)] = bench.letters()
    assert said["EXHAUSTED_RETRY_CONDITION"] == "MaximumEventAgeInSeconds"
    assert said["ERROR_CODE"] == "ThrottlingException"


def test_the_defaults_of_aws_take_about_a_day(bench: Bench) -> None:
    refusing(bench, 1000)
    bench.post()
    bench.house.advance(days=2)
    last = bench.sender.tries[-1]
    assert 170 <= last[2] <= 186
    assert last[0] - bench.sender.tries[0][0] > 22 * HOUR


def test_what_is_too_old_at_its_first_try_is_not_tried(bench: Bench) -> None:
    dead = bench.queue("dead")
    bench.house.advance(minutes=2)
    bench.post(dead_letter=dead, since=bench.house.now - MINUTE - 1, max_age_ms=MINUTE, payload="n<attempt>")
    assert bench.taken == []
    [(body, said)] = bench.letters()
    assert body == "n1"
    assert said["EXHAUSTED_RETRY_CONDITION"] == "MaximumEventAgeInSeconds"
    assert said["RETRY_ATTEMPTS"] == "0"
    assert bench.left_over() == (0, 0)
    bench.post(since=bench.house.now - MINUTE, max_age_ms=MINUTE)
    assert bench.taken == ["p"], "exactly as old as it may be"


def test_what_became_too_old_while_the_node_was_away_is_not_tried_again(bench: Bench) -> None:
    refusing(bench, 1)
    dead = bench.queue("dead")
    bench.post(dead_letter=dead, max_age_ms=HOUR)
    bench.house.clock.set(bench.house.now + HOUR + 1)
    bench.house.drain()
    assert len(bench.target.callers) == 1
    [(_, said)] = bench.letters()
    assert (said["ERROR_CODE"], said["RETRY_ATTEMPTS"]) == ("ThrottlingException", "0")
    assert said["EXHAUSTED_RETRY_CONDITION"] == "MaximumEventAgeInSeconds"


def test_a_final_refusal_is_not_tried_again(bench: Bench) -> None:
    bench.target.refuse = lambda _payload: Gone("It was deleted.")
    bench.sender.final = frozenset({"GoneException"})
    dead = bench.queue("dead")
    bench.post(dead_letter=dead)
    [(_, said)] = bench.letters()
    assert "EXHAUSTED_RETRY_CONDITION" not in said, "SQS takes no empty attributes"
    assert bench.outcomes() == [
        "FAILED: GoneException: It was deleted. (attempt 1)",
        "DEAD_LETTERED: GoneException: It was deleted.",
    ]


def test_without_a_dead_letter_queue_it_is_dropped_and_record_and_log_say_so(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    refusing(bench, 1)
    with caplog.at_level(logging.WARNING, "tasuki.deliveries"):
        bench.post(max_retries=0)
    assert bench.outcomes()[-1] == "DROPPED: MaximumRetryAttempts: ThrottlingException: Rate exceeded"
    assert bench.left_over() == (0, 0)
    [logged] = [one.getMessage() for one in caplog.records]
    assert (SOURCE in logged, TARGET in logged, "Rate exceeded" in logged) == (True, True, True)


def test_what_has_a_dead_letter_queue_is_no_warning(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    refusing(bench, 1)
    with caplog.at_level(logging.WARNING, "tasuki.deliveries"):
        bench.post(max_retries=0, dead_letter=bench.queue("dead"))
    assert caplog.records == []


def test_what_is_too_old_says_so_once(bench: Bench) -> None:
    bench.post(since=bench.house.now - 2 * DAY)
    [said] = bench.outcomes()
    assert said.startswith("DROPPED: MaximumEventAgeInSeconds: Due at ")
    assert said.count("MaximumEventAgeInSeconds") == 1


def test_the_tally_counts_a_tick_once_however_often_it_is_tried(bench: Bench) -> None:
    refusing(bench, 3)
    dead = bench.queue("dead", MessageRetentionPeriod="3600")
    counting = Tally(bench.house.look(look))
    bench.post(dead_letter=dead, max_retries=2)
    bench.house.look(counting.add)
    first = counting.counts
    assert (first.schedule_ticks, first.tries_failed, first.dead_letters) == (1, 1, 0)
    bench.house.advance(minutes=1)
    bench.house.look(counting.add)
    counts = counting.counts
    assert (counts.schedule_ticks, counts.tries_failed, counts.dead_letters) == (1, 3, 1)
    assert (counts.messages_sent, counts.deliveries, counts.deliveries_dropped) == (1, 0, 0)
    refusing(bench, 1)
    bench.post(max_retries=0)
    bench.post()
    bench.house.advance(hours=2)
    bench.house.look(counting.add)
    counts = counting.counts
    assert (counts.schedule_ticks, counts.deliveries, counts.deliveries_dropped, counts.messages_expired) == (
        3,
        1,
        1,
        1,
    )


def test_a_dead_letter_queue_that_is_gone_is_warned_of(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    refusing(bench, 1)
    with caplog.at_level(logging.WARNING, "tasuki.deliveries"):
        bench.post(max_retries=0, dead_letter=QUEUE + "gone")
    assert "QueueDoesNotExist" in bench.outcomes()[-1]
    assert bench.outcomes()[-1].startswith("DROPPED: the dead-letter queue")
    assert QUEUE + "gone" in caplog.text
    assert bench.left_over() == (0, 0)


def test_a_dead_letter_that_is_too_long_is_cut_and_says_so(bench: Bench) -> None:
    refusing(bench, 1)
    dead = bench.queue("dead", MaximumMessageSize="1024")
    bench.post(max_retries=0, dead_letter=dead, payload="ä" * 3000)
    [(body, said)] = bench.letters()
    assert said["IS_PAYLOAD_TRUNCATED"] == "true"
    assert set(body) == {"ä"}
    size = len(body.encode()) + sum(len(name) + 6 + len(value) for name, value in said.items())
    assert 1022 <= size <= 1024


@pytest.mark.parametrize("payload", ["", "a\0b"])
def test_any_payload_becomes_a_dead_letter(bench: Bench, payload: str) -> None:
    refusing(bench, 1)
    dead = bench.queue("dead")
    bench.post(max_retries=0, dead_letter=dead, payload=payload)
    [(body, said)] = bench.letters()
    assert body == ("a\N{REPLACEMENT CHARACTER}b" if payload else "{}")
    assert said["IS_PAYLOAD_TRUNCATED"] == ("true" if payload else "false"), "it is not what it was"


def test_the_watcher_is_told_once(bench: Bench) -> None:
    bench.post(watcher="watcher:good")
    refusing(bench, 100)
    bench.post(watcher="watcher:bad", max_retries=2)
    assert bench.told == [("good", 1, "States.TaskFailed")]
    bench.house.advance(hours=1)
    assert bench.told[1:] == [("bad", 0, "ThrottlingException")]


def test_a_target_of_no_service_here_is_a_refusal(bench: Bench) -> None:
    bench.post(target="arn:aws:lambda:us-east-1:000000000000:function:f", max_retries=0)
    assert "There is no such service here" in bench.outcomes()[-1]
    bench.post(target="nonsense", max_retries=0)
    assert "There is no such service here: nonsense" in bench.outcomes()[-1]


def test_a_sender_that_has_no_payload_refuses_the_try(bench: Bench) -> None:
    bench.sender.no_payload = Gone("nothing to say")
    dead = bench.queue("dead")
    bench.post(max_retries=0, payload="as it was", dead_letter=dead)
    assert [body for body, _ in bench.letters()] == ["as it was"]


# -- waited for -----------------------------------------------------------------------------------------------


def test_a_target_that_is_waited_for_is_settled_by_its_end(bench: Bench) -> None:
    bench.target.waited = True
    bench.post(watcher="watcher:w")
    assert bench.taken == ["p"]
    assert bench.outcomes() == []
    [shown] = bench.listed()
    assert (shown["State"], shown["Attempts"]) == ("CALLING", 1)
    assert bench.left_over() == (1, 0), "nobody tries it meanwhile"
    called = bench.target.callers[0].watcher
    assert called is not None
    ending = Ending(succeeded=True, output={})
    for _ in range(2):
        bench.house.unit(lambda tx: bench.house.switchboard.finished(tx, called, ending))
    assert bench.outcomes() == ["DELIVERED"]
    assert bench.told == [("w", 1, "States.TaskFailed")]
    assert bench.left_over() == (0, 0)


def test_a_timer_that_comes_twice_does_not_call_a_second_time(bench: Bench) -> None:
    """Found by the simulation: the second try took the place of the first, whose end nobody heard."""
    bench.target.waited = True
    bench.post(max_retries=1)
    [shown] = bench.listed()
    bench.house.unit(lambda tx: set_timer(tx, "deliveries", shown["Id"], tx.now))
    bench.house.drain()
    assert len(bench.target.callers) == 1
    called = bench.target.callers[0].watcher
    assert called is not None
    bench.house.unit(lambda tx: bench.house.switchboard.finished(tx, called, Ending(succeeded=True, output={})))
    assert bench.outcomes() == ["DELIVERED"]
    assert bench.left_over() == (0, 0)


def test_a_call_that_failed_is_tried_again_and_an_old_end_changes_nothing(bench: Bench) -> None:
    bench.target.waited = True
    dead = bench.queue("dead")
    bench.post(max_retries=1, dead_letter=dead, payload="n<attempt>")
    bad = Ending(succeeded=False, output={}, error="SDK_CLIENT_ERROR", cause="503 Service Unavailable")
    first = bench.target.callers[0].watcher
    assert first is not None
    bench.house.unit(lambda tx: bench.house.switchboard.finished(tx, first, bad))
    assert bench.left_over() == (1, 1)
    bench.house.advance(seconds=2)
    assert len(bench.target.callers) == 2
    bench.house.unit(lambda tx: bench.house.switchboard.finished(tx, first, bad))
    assert bench.left_over() == (1, 0)
    second = bench.target.callers[1].watcher
    assert second is not None
    bench.house.unit(lambda tx: bench.house.switchboard.finished(tx, second, bad))
    [(body, said)] = bench.letters()
    assert body == "n2"
    assert (said["ERROR_CODE"], said["ERROR_MESSAGE"]) == ("SDK_CLIENT_ERROR", "503 Service Unavailable")
    assert bench.left_over() == (0, 0)


def test_a_call_that_is_refused_at_once_is_undone(bench: Bench) -> None:
    bench.target.waited = True
    refusing(bench, 1)
    bench.post()
    assert bench.taken == []
    assert [one["State"] for one in bench.listed()] == ["WAITING"]
    bench.house.advance(seconds=2)
    assert [one["State"] for one in bench.listed()] == ["CALLING"]


def test_an_execution_is_started_and_not_waited_for(bench: Bench) -> None:
    bench.target.waited = True
    bench.house.switchboard.targets["states"] = bench.target
    bench.post(target="arn:aws:states:us-east-1:000000000000:stateMachine:express")
    assert bench.target.callers[0].watcher is None
    assert bench.left_over() == (0, 0)


# -- faults, neighbours, listing --------------------------------------------------------------------------------


def test_a_fault_of_ours_does_not_roll_back_who_posts_and_holds_up_nobody(bench: Bench) -> None:
    dead = bench.queue("dead")
    bench.target.refuse = lambda payload: AssertionError("a bug") if payload == "poison" else None
    bench.post(payload="poison", max_age_ms=MINUTE, dead_letter=dead)
    assert bench.left_over() == (1, 1)
    bench.post(payload="fine")
    bench.house.advance(seconds=30)
    assert bench.taken == ["fine"]
    tried = {instant for instant, *_ in bench.sender.tries}
    assert len(tried) == 4, "put off alone, by ten seconds each time"
    bench.house.advance(minutes=5)
    [(body, said)] = bench.letters()
    assert (body, said["EXHAUSTED_RETRY_CONDITION"]) == ("poison", "MaximumEventAgeInSeconds")
    assert bench.left_over() == (0, 0)


def test_a_unit_that_met_another_runs_again_as_a_whole(bench: Bench) -> None:
    first = iter([Conflict()])
    bench.target.refuse = lambda _payload: next(first, None)
    bench.post()
    assert len(bench.target.callers) == 2
    assert (bench.taken, bench.outcomes()) == (["p"], ["DELIVERED"])


def test_one_that_is_refused_holds_up_no_other_of_its_sender(bench: Bench) -> None:
    bench.target.refuse = lambda payload: Throttled("no") if payload == "bad" else None
    for number in range(10):
        bench.post(payload="bad" if number % 2 else f"good{number}", source_id=str(number))
    assert sorted(bench.taken) == [f"good{number}" for number in range(0, 10, 2)]
    bench.target.refuse = lambda _payload: None
    bench.house.advance(seconds=2)
    assert len(bench.taken) == 10


def test_what_is_on_its_way_can_be_listed(bench: Bench) -> None:
    refusing(bench, 1000)
    for number in range(5):
        bench.post(source=f"{SOURCE}{number % 2}", source_id=str(number), dead_letter=QUEUE + "dead")
    shown = bench.listed()
    assert [one["SourceId"] for one in shown] == list("01234")
    assert shown[0] == {
        "Id": shown[0]["Id"],
        "SourceArn": f"{SOURCE}0",
        "SourceId": "0",
        "TargetArn": TARGET,
        "Trace": "Root=1-0-0",
        "State": "WAITING",
        "Since": "2026-01-01T00:00:00.000Z",
        "NextTryAt": shown[0]["NextTryAt"],
        "GivenUpAt": "2026-01-02T00:00:00.000Z",
        "Attempts": 1,
        "MaxAttempts": 186,
        "Error": "ThrottlingException",
        "Message": "Rate exceeded",
        "DeadLetterArn": QUEUE + "dead",
    }
    assert "2026-01-01T00:00:00.7" <= shown[0]["NextTryAt"] <= "2026-01-01T00:00:01.25"
    assert [one["SourceId"] for one in bench.listed(SourceArn=f"{SOURCE}1")] == ["1", "3"]
    assert bench.listed(TargetArn="arn:aws:other") == []
    first = bench.page(MaxResults=3)
    assert len(first["Deliveries"]) == 3
    rest = bench.page(NextToken=first["NextToken"])
    assert [one["SourceId"] for one in rest["Deliveries"]] == ["3", "4"]
    assert "NextToken" not in rest


def test_what_a_refusal_says_is_kept_as_far_as_anybody_reads(bench: Bench) -> None:
    bench.target.refuse = lambda _payload: Throttled("no\0" + "x" * 5_000)
    bench.post(max_retries=1)
    assert len(bench.listed()[0]["Message"]) == 1_000
    bench.house.advance(seconds=2)
    assert "no\0xx" in bench.outcomes()[-1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"MaxResults": 0}, "MaxResults must be between 1 and 1000"),
        ({"MaxResults": True}, "MaxResults must be between 1 and 1000"),
        ({"Colour": "red"}, "ListDeliveries doesn't know Colour; it takes MaxResults, NextToken, SourceArn, TargetArn"),
        ({"SourceArn": 1}, "SourceArn must be an ARN"),
        ({"TargetArn": "a\0"}, "TargetArn must be an ARN"),
        ({"NextToken": "x"}, "NextToken is not one that this listing answered"),
    ],
)
def test_a_listing_that_makes_no_sense_is_refused(bench: Bench, given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationException, match=said):
        bench.page(**given)


def test_the_house_s_model_has_what_the_listing_answers(bench: Bench) -> None:
    bench.target.refuse = lambda _payload: Throttled("no")
    bench.post(dead_letter=QUEUE + "dead")
    members = house_model()["shapes"]["Delivery"]["members"]
    assert set(bench.listed()[0]) == set(members)
