"""Between any two tries the node may be gone: one that is opened again goes on where it was."""

from pathlib import Path

from tasuki.services.switchboard import Ending
from tasuki.testing import ManualClock
from tasuki.values.instant import DAY, HOUR
from tests.services.deliveries.bench import Bench, Throttled
from tests.stores import kept


def test_tries_go_on_over_restarts_and_one_of_them_is_taken(tmp_path: Path) -> None:
    path, clock = tmp_path / "tasuki.db", ManualClock()
    bench = Bench(clock=clock, store=kept(path))
    bench.target.refuse = lambda payload: Throttled("no") if int(payload) < 6 else None
    bench.post(payload="<attempt>", watcher="watcher:w")
    for seed in range(1, 7):
        [shown] = bench.listed()
        assert shown["Attempts"] == seed
        bench.house.close()
        clock.set(clock.now() + 2 * 60_000)
        bench.open(seed=seed, clock=clock, store=kept(path))
        bench.house.drain()
        if not bench.listed():
            break
    assert bench.taken == ["6"]
    assert [attempt for _, _, attempt, _ in bench.sender.tries] == [1, 2, 3, 4, 5, 6]
    assert [outcome.split(":")[0] for outcome in bench.outcomes()] == ["FAILED"] * 5 + ["DELIVERED"]
    assert len(bench.told) == 1
    assert bench.left_over() == (0, 0)
    bench.house.close()


def test_a_call_in_hand_outlasts_the_node(tmp_path: Path) -> None:
    path, clock = tmp_path / "tasuki.db", ManualClock()
    bench = Bench(clock=clock, store=kept(path))
    bench.target.waited = True
    bench.post()
    watcher = bench.target.callers[0].watcher
    assert watcher is not None
    bench.house.close()
    clock.set(clock.now() + HOUR)
    bench.open(seed=1, clock=clock, store=kept(path))
    bench.house.drain()
    assert len(bench.target.callers) == 1, "nobody tries what was not answered"
    bench.house.unit(lambda tx: bench.house.switchboard.finished(tx, watcher, Ending(succeeded=True, output={})))
    assert bench.outcomes() == ["DELIVERED"]
    assert bench.left_over() == (0, 0)
    bench.house.close()


def test_a_node_that_was_away_for_days_gives_up_what_is_too_old(tmp_path: Path) -> None:
    path, clock = tmp_path / "tasuki.db", ManualClock()
    bench = Bench(clock=clock, store=kept(path))
    bench.target.refuse = lambda _payload: Throttled("no")
    dead = bench.queue("dead")
    for number in range(3):
        bench.post(source_id=str(number), payload=str(number), dead_letter=dead, max_age_ms=DAY)
    bench.house.close()
    clock.set(clock.now() + 3 * DAY)
    bench.open(seed=1, clock=clock, store=kept(path))
    bench.house.drain()
    letters = bench.letters()
    assert sorted(body for body, _ in letters) == ["0", "1", "2"]
    assert {said["EXHAUSTED_RETRY_CONDITION"] for _, said in letters} == {"MaximumEventAgeInSeconds"}
    assert len(bench.sender.tries) == 6, "three tries, and the words of three letters"
    assert bench.left_over() == (0, 0)
    bench.house.close()
