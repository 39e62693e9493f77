"""What ended 90 days ago is forgotten whole; what runs is not, however old."""

import random

import pytest

from tasuki.services.machines import retention
from tasuki.services.machines import retention_queries as sql
from tasuki.services.machines.errors import ExecutionDoesNotExist
from tasuki.services.room import Poll
from tasuki.values.instant import DAY, HOUR
from tests.services.machines.stubs import PASS, WAIT, Play, task
from tests.services.machines.test_map_runs import children, distributed, machine, map_runs
from tests.stores import table_names

FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "No"}}}
FOREVER = task("sqs:sendMessage.waitForTaskToken", {"MessageBody.$": "$$.Task.Token"})
LASTING = {"machines", "revisions", "house"}
"""What no execution takes with it. Timers are the room's own: those of executions are looked for one by one."""


def all_rows(play: Play) -> dict[str, int]:
    """Count the rows of every table that has any, but of those that outlast executions."""
    counts = {name: play.rows(name) for name in table_names(play.house) if name not in LASTING}
    return {name: count for name, count in counts.items() if count}


def only_numbers_are_left(play: Play) -> bool:
    """Tell whether all that is left is the row that keeps the newest number from being given again."""
    return all_rows(play) == {"executions": 1} and play.rows("executions WHERE machine = -1") == 1


def test_ended_executions_are_forgotten_after_90_days(play: Play) -> None:
    arn = play.create(PASS)
    old = play.start(arn, name="one")
    running = play.start(play.create(FOREVER, "waits"))
    play.house.advance(days=30)
    younger = play.start(arn)
    play.house.advance(days=59)
    assert play.describe(old)["status"] == "SUCCEEDED"
    play.house.advance(days=2)
    with pytest.raises(ExecutionDoesNotExist):
        play.describe(old)
    assert play.describe(younger)["status"] == "SUCCEEDED"
    assert play.describe(running)["status"] == "RUNNING"
    assert play.rows("history") == 2
    assert play.start(arn, name="one") == old
    play.call("SendTaskSuccess", taskToken=play.sqs.calls[0][0]["MessageBody"], output="1")
    assert play.output(running) == 1


def test_not_a_moment_before_90_days_and_within_the_hour_after(play: Play) -> None:
    arn = play.create(WAIT)
    ended = [play.start(arn) for _ in range(2)]
    play.house.advance(seconds=60)
    over = play.describe(ended[0])["stopDate"] + 90 * DAY
    play.start(arn)  # what is newer ends later
    first_look = over + -over % HOUR
    play.house.advance_to(first_look - 1)
    assert [play.describe(one)["status"] for one in ended] == ["SUCCEEDED"] * 2
    play.house.advance_to(first_look)
    for one in ended:
        with pytest.raises(ExecutionDoesNotExist):
            play.describe(one)
    assert play.rows("executions") == 1


def test_what_ends_on_the_hour_is_forgotten_at_that_very_moment(play: Play) -> None:
    play.house.advance_to(play.house.now + -play.house.now % HOUR)
    arn = play.create(PASS)
    old = play.start(arn)
    play.house.advance(days=90, ms=-1)
    assert play.describe(old)["status"] == "SUCCEEDED"
    play.house.advance(ms=1)
    with pytest.raises(ExecutionDoesNotExist):
        play.describe(old)


def test_the_name_of_the_newest_is_free_again_too_and_its_number_is_not(play: Play) -> None:
    arn = play.create(PASS)
    play.start(arn, {"n": 1}, name="only")
    [(number,)] = play.house.unit(lambda tx: tx.all("SELECT id FROM executions"))
    play.house.advance(days=91)
    assert only_numbers_are_left(play)
    play.start(arn, {"n": 2}, name="only")
    [(newer,)] = play.house.unit(lambda tx: tx.all("SELECT id FROM executions WHERE machine > 0"))
    assert newer > number
    play.house.drain()
    assert play.rows("executions") == 1  # the number is kept by the new one


def test_forgetting_goes_in_slices_of_executions(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "EXECUTIONS", 3)
    arn = play.create(PASS)
    for _ in range(10):
        play.start(arn)
    play.house.clock.set(play.house.now + 91 * DAY)
    poll = retention_poll(play)
    left = []
    while (due := play.house.unit(poll.look)) is not None and due <= play.house.now:
        play.house.unit(poll.run)
        left.append(play.rows("history"))
    assert left == [7, 4, 1, 0]
    assert only_numbers_are_left(play)


def test_a_long_history_goes_in_slices_and_is_hidden_at_once(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {f"S{n}": {"Type": "Wait", "Seconds": 1, "Next": f"S{n + 1}"} for n in range(8)}
    arn = play.create({"StartAt": "S0", "States": {**steps, "S8": {"Type": "Pass", "End": True}}})
    long = play.start(arn, {"filling": "x" * 1000}, name="long")
    play.house.advance(seconds=9)
    assert play.rows("history") > 5
    play.start(arn)  # newer
    play.house.clock.set(play.house.now + 90 * DAY + HOUR)
    monkeypatch.setattr(retention, "BYTES", 3_000)
    poll, sizes = retention_poll(play), []
    while play.house.unit(poll.look) == play.house.now:
        before = play.rows("history")
        play.house.unit(poll.run)
        sizes.append(before - play.rows("history"))
        with pytest.raises(ExecutionDoesNotExist):
            play.describe(long)
    assert len(sizes) > 2
    assert max(sizes) <= 3
    assert play.rows("executions") == 1


def retention_poll(play: Play) -> Poll:
    """Answer the poll that forgets, to be played by hand."""
    [poll] = [poll for poll in play.house.rooms["machines"].polls if poll.name == retention.NAME]
    return poll


@pytest.mark.sqlite_only(reason="reads SQLite's own plans")
@pytest.mark.parametrize("statement", ["OLDEST_ENDED", "DUE", "ANY_ASIDE", "ASIDE", "OLDEST_REMAINS", "DUE_REMAINS"])
def test_nothing_is_looked_at_that_is_not_due(play: Play, statement: str) -> None:
    text = getattr(sql, statement)
    plan = play.house.unit(lambda tx: tx.all(f"EXPLAIN QUERY PLAN {text}", (1,) * text.count("?")))
    steps = [row[-1] for row in plan]
    assert not [step for step in steps if step.startswith("SCAN") and " INDEX " not in step], steps
    assert not [step for step in steps if "TEMP B-TREE" in step and statement != "ASIDE"], steps


@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_a_map_run_goes_with_its_execution_and_its_children_with_it(
    play: Play, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(retention, "ROWS", 10)
    execution = play.run(machine(PASS, kind, ResultPath="$.r", ItemsPath="$.l"), {"l": list(range(25))})
    play.house.drain()
    assert len(children(play, map_runs(play, execution)[0])) == 25
    play.house.advance(days=90, hours=1)
    assert only_numbers_are_left(play)


def test_map_runs_in_map_runs_go_too(play: Play) -> None:
    inner = {"StartAt": "I", "States": {"I": {**distributed(PASS), "Label": "inner"}}}
    play.run(machine(inner), [[1, 2], [3]])
    play.house.advance(days=90, hours=1)
    assert only_numbers_are_left(play)


def test_children_are_kept_while_their_map_run_runs(play: Play) -> None:
    days = {"StartAt": "W", "States": {"W": {"Type": "Wait", "SecondsPath": "$", "End": True}}}
    execution = play.run(machine(days), [1, 100 * 86_400])
    play.house.advance(days=99)
    [run] = map_runs(play, execution)
    assert run["executionCounts"]["succeeded"] == 1
    assert len(children(play, run)) == 2
    play.house.advance(days=2)
    assert play.output(execution) == [1, 100 * 86_400]  # nothing of the result was forgotten
    play.house.advance(days=90)
    assert only_numbers_are_left(play)


def test_a_redriven_one_counts_from_its_last_end(play: Play) -> None:
    arn = play.create(FAIL)
    failed = play.start(arn)
    play.house.advance(days=10)
    play.call("RedriveExecution", executionArn=failed, clientToken="t")
    play.house.advance(days=81)
    assert play.describe(failed)["redriveCount"] == 1
    assert play.rows("redrive_tokens") == 1
    play.house.advance(days=10)
    with pytest.raises(ExecutionDoesNotExist):
        play.describe(failed)
    assert only_numbers_are_left(play)


def test_remains_go_with_an_execution_that_is_kept_for_less_than_a_fortnight() -> None:
    play = Play(execution_days=2)
    try:
        play.run(FAIL)
        assert play.rows("remains") == 1
        play.house.advance(days=2, hours=1)
        assert only_numbers_are_left(play)
    finally:
        play.house.close()


def test_remains_that_a_child_waits_for_are_kept_until_its_turn(play: Play) -> None:
    """Children wait for their redrive behind others: the fortnight counts for the call, not for their turn."""
    execution = play.run(machine(FAIL, ToleratedFailurePercentage=100), [1, 2])
    play.house.drain()
    assert play.rows("remains") == 2
    play.house.unit(lambda tx: tx.run("UPDATE map_children SET pending = 1"))
    play.house.advance(days=15)
    assert play.rows("remains") == 2
    play.house.unit(lambda tx: tx.run("UPDATE map_children SET pending = 0"))
    play.house.advance(days=2)
    assert play.rows("remains") == 0
    assert play.describe(execution)["status"] == "SUCCEEDED"


@pytest.mark.parametrize("seed", range(6))
def test_whatever_was_run_nothing_is_left_of_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines of many kinds, started, stopped and redriven at random; slices of a random size."""
    draw = random.Random(seed)
    for name in ("ROWS", "EXECUTIONS"):
        monkeypatch.setattr(retention, name, draw.choice((1, 2, 7, 50)))
    monkeypatch.setattr(retention, "BYTES", draw.choice((1, 3_000, 1 << 20)))
    play = Play(execution_days=draw.choice((1, 30)), log_days=1)
    wide = machine(draw.choice((PASS, FAIL, WAIT)), draw.choice(("STANDARD", "EXPRESS")), ToleratedFailurePercentage=60)
    logging = {"level": "ALL", "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": LOGS}}]}
    try:
        machines = [
            play.create(PASS, "pass", loggingConfiguration=logging),
            play.create(WAIT, "wait"),
            play.create(FAIL, "fail"),
            play.create(wide, "wide"),
        ]
        started: list[str] = []
        for _ in range(30):
            started.append(play.start(draw.choice(machines), list(range(draw.randrange(5)))))
            chosen = draw.choice(started)
            status = play.describe(chosen)["status"]
            if status == "RUNNING" and draw.random() < 0.3:
                play.call("StopExecution", executionArn=chosen)
            elif status in {"FAILED", "ABORTED"} and draw.random() < 0.5:
                play.call("RedriveExecution", executionArn=chosen)
            play.house.advance(seconds=draw.choice((0, 1, 60)))
        play.house.advance(minutes=10)
        assert all(play.describe(one)["status"] != "RUNNING" for one in started)
        assert play.rows("executions") >= 30
        play.house.advance(days=31, hours=1)
        left = all_rows(play)
        assert left.pop("logged", 1) == 1  # the newest keeps its place
        assert left == {"executions": 1}
    finally:
        play.house.close()


LOGS = "arn:aws:logs:us-east-1:000000000000:log-group:g:*"
