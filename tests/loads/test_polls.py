"""Polls that find nothing are counted and not played: held against a world in which every second of every poll is played."""

from collections import deque
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as some

from tasuki.testing.loads.fleet import Fleet
from tasuki.testing.loads.jobs import Job
from tasuki.testing.loads.plan import STRATEGIES, Claim, Duration, Load, Plan, Price, Prices, Version, Workers
from tasuki.values.instant import DAY, SECOND

POLL_S = 20
WINDOW_S = 1800
VERSION = Version("v1", 1.0, Duration("fixed", (1,)), 0.0, 0.0, 1.0, 1.0, 2.0, 45_000)
FREE = Price(0.0, "none")
PLAN = Plan(
    title="polls",
    seed=1,
    days=WINDOW_S * SECOND / DAY,
    weekday=0,
    start=1_767_571_200_000,
    load=Load("trace"),
    versions=(VERSION,),
    workers=Workers(POLL_S * SECOND, 43_200 * SECOND, extend=False, receives=3),
    always_on=None,
    backlog=None,
    task_per_job=None,
    prices=Prices("nowhere", "never", FREE, FREE, 0, FREE, FREE, FREE),
    running_tasks=100,
    claim=Claim(0.8, 0.05, 0),
    strategies=STRATEGIES,
)


@dataclass
class Slow:
    """A worker of the oracle."""

    polls_since: int | None = 0
    works_until: int | None = None


def every_second(arrivals: list[tuple[int, int]], count: int) -> tuple[dict[int, int], int, int]:
    """Answer (when each job began, receives that gave one, receives that gave none), second by second."""
    workers = [Slow() for _ in range(count)]
    queue: deque[int] = deque()
    began: dict[int, int] = {}
    full = empty = now = 0

    def serve() -> None:
        nonlocal full
        while queue:
            idle = [one for one in workers if one.polls_since is not None]
            if not idle:
                return
            one = min(idle, key=lambda worker: (worker.polls_since, workers.index(worker)))
            number = queue.popleft()
            began[number], full = now, full + 1
            one.polls_since, one.works_until = None, now + arrivals[number][1]

    while now < WINDOW_S or queue or any(one.works_until is not None for one in workers):
        for one in workers:
            if one.polls_since is not None and now - one.polls_since == POLL_S:
                empty += now <= WINDOW_S
                one.polls_since = now
        for number, (at, _) in enumerate(arrivals):
            if at == now:
                queue.append(number)
                serve()
        for one in workers:
            if one.works_until == now:
                one.works_until, one.polls_since = None, now
                serve()
        now += 1
    ended = sum(1 for one in workers if one.polls_since is not None)
    # At the window's end a poll that has just run out is over, and the next one under way, as is everybody's last one.
    empty += sum(1 for one in workers if one.polls_since is not None and WINDOW_S - one.polls_since == POLL_S)
    return began, full, empty + ended


@settings(max_examples=40, deadline=None)
@given(
    some.lists(some.tuples(some.integers(1, WINDOW_S - 700), some.integers(1, 90)), min_size=1, max_size=12),
    some.integers(1, 4),
)
def test_waits_and_calls_are_those_of_polls_played_second_by_second(
    arrivals: list[tuple[int, int]], count: int
) -> None:
    arrivals = sorted(arrivals)
    jobs = [
        Job(number, at * SECOND, VERSION, works * SECOND, hopeless=False, seed="1")
        for number, (at, works) in enumerate(arrivals)
    ]
    ledger = Fleet(replace(PLAN), jobs, {"v1": count}).play()
    began, full, empty = every_second(arrivals, count)
    assert [job.began for job in jobs] == [began[job.number] * SECOND for job in jobs]
    assert ledger.calls["ReceiveMessage"] - ledger.calls["empty"] == full == len(jobs)
    assert ledger.calls["empty"] == empty
