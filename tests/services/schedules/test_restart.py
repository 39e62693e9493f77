"""A year of schedules on a node that dies again and again: every planned time comes exactly once (S2-11, S2-14; PITFALLS PF-47, PF-51)."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tasuki.testing import House, ManualClock
from tasuki.testing.simulation.faults import Crash, FaultyStore, Rates, Weather
from tasuki.values.instant import DAY, HOUR, Instant, from_datetime, to_iso
from tests import stores
from tests.services.schedules.bench import ACCOUNT, QUEUE, Bench, instant

BEGIN = "2026-01-01T00:00:00"
STEP = timedelta(minutes=30)
NEW_YORK, BERLIN, SYDNEY, TOKYO = "America/New_York", "Europe/Berlin", "Australia/Sydney", "Asia/Tokyo"
RECURRING: dict[str, tuple[str, str, Callable[[datetime], bool]]] = {
    "hourly": ("cron(0 * * * ? *)", "UTC", lambda wall: wall.minute == 0),
    "new-york": ("cron(30 2 * * ? *)", NEW_YORK, lambda wall: (wall.hour, wall.minute) == (2, 30)),
    "berlin": (
        "cron(30 2 ? * MON-FRI *)",
        BERLIN,
        lambda wall: wall.weekday() < 5 and wall.hour == 2 and wall.minute == 30,
    ),
    "sydney": ("cron(0 0 * * ? *)", SYDNEY, lambda wall: (wall.hour, wall.minute) == (0, 0)),
    "tokyo-monthly": ("cron(0 1 1 * ? *)", TOKYO, lambda wall: (wall.day, wall.hour, wall.minute) == (1, 1, 0)),
    "berlin-monthly": (
        "cron(30 1 L * ? *)",
        BERLIN,
        lambda wall: _is_last(wall) and wall.hour == 1 and wall.minute == 30,
    ),
}
"""Expression, zone, and by brute force whether a wall-clock time is one of its."""


def _is_last(wall: datetime) -> bool:
    return (wall + timedelta(days=1)).month != wall.month


def expected(zone: str, fits: Callable[[datetime], bool], end: Instant) -> list[str]:
    """Walk through the half hours of the world, and take those that fit in a zone: a wall-clock time that comes twice, once."""
    found: list[str] = []
    seen: set[datetime] = set()
    now, there = datetime.fromisoformat(BEGIN).replace(tzinfo=UTC) + STEP, ZoneInfo(zone)
    while from_datetime(now) <= end:
        wall = now.astimezone(there).replace(tzinfo=None)
        if fits(wall) and wall not in seen:
            seen.add(wall)
            found.append(to_iso(from_datetime(now)))
        now += STEP
    return found


class Mortal:
    """A house that dies at random commits and is opened again on the same file, sometimes days later."""

    def __init__(self, path: Path, seed: int, *, real: bool) -> None:
        self.path, self.real = path, real
        self.dice = random.Random(seed)
        self.clock = ManualClock(instant(BEGIN))
        self.weather = Weather(random.Random(seed), Rates(crash=0.004, again=0.004, gone=0, full=0, lost_bell=0))
        self.weather.calm = True
        self.deaths = 0
        self.bench = self._open()

    def _open(self) -> Bench:
        def store(house: House) -> Any:
            return FaultyStore(stores.kept(self.path)(house), self.weather, lambda *_: None)

        return Bench(clock=self.clock, store=store, real=self.real, seed=self.dice.getrandbits(32))

    def live(self, until: Instant, nap: int) -> None:
        """Let time pass; `nap`: how long nobody is there after a death, at most."""
        self.weather.calm = False
        while self.clock.now() < until:
            try:
                self.bench.house.advance_to(until)
            except Crash:
                self.deaths += 1
                self._again(min(until, self.clock.now() + self.dice.choice((0, 0, self.dice.randrange(nap)))))
        self.weather.clear_up()
        self._again(until)

    def _again(self, now: Instant) -> None:
        self.bench.close()
        self.clock.set(now)
        calm, self.weather.calm = self.weather.calm, True  # it dies at its work, not while it gets up
        self.bench = self._open()
        self.weather.calm = calm
        if calm:
            self.bench.house.drain()


@pytest.mark.parametrize("seed", [1])
def test_a_year_of_schedules_and_deaths(tmp_path: Path, seed: int) -> None:
    end = instant(BEGIN) + (365 if stores.shelf is None else 45) * DAY
    mortal = Mortal(tmp_path / "tasuki.db", seed, real=False)
    for name, (expression, zone, _) in RECURRING.items():
        mortal.bench.create(name, expression, ScheduleExpressionTimezone=zone)
    mortal.bench.create("rate", "rate(5 hours)", target={"Input": "x"})
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 60}
    mortal.bench.create("flexible", "cron(0 12 * * ? *)", FlexibleTimeWindow=window)
    mortal.live(end, nap=3 * DAY)
    rows = mortal.bench.house.look(lambda tx: tx.all("SELECT source, tick FROM stub_posts ORDER BY place"))
    got: dict[str, list[str]] = {}
    for source, tick in rows:
        got.setdefault(source.rpartition("/")[2], []).append(tick)
    assert mortal.deaths > (20 if stores.shelf is None else 2)
    for name, (_, zone, fits) in RECURRING.items():
        assert got[name] == expected(zone, fits, end), name
    begin = instant(BEGIN)
    assert got["rate"] == [to_iso(at) for at in range(begin, end + 1, 5 * HOUR)]
    assert got["flexible"] == expected("UTC", lambda wall: (wall.hour, wall.minute) == (12, 0), end)
    mortal.bench.close()


def test_what_is_delivered_is_delivered_once_over_deaths(tmp_path: Path) -> None:
    """The same with real deliveries to a real queue, for three days."""
    end = instant(BEGIN) + 3 * DAY
    mortal = Mortal(tmp_path / "tasuki.db", 7, real=True)
    mortal.weather.rates = Rates(crash=0.03, again=0.03, gone=0, full=0, lost_bell=0)
    mortal.bench.house.call("sqs", "CreateQueue", QueueName="jobs")
    mortal.bench.create("s", "cron(*/30 * * * ? *)", target={"Input": "<aws.scheduler.scheduled-time>", "Arn": QUEUE})
    mortal.live(end, nap=5 * HOUR)
    found: list[str] = []
    while True:
        given = {"QueueUrl": f"http://127.0.0.1:4566/{ACCOUNT}/jobs", "MaxNumberOfMessages": 10}
        got = mortal.bench.house.call("sqs", "ReceiveMessage", given).get("Messages", [])
        if not got:
            break
        found += [one["Body"] for one in got]
    wanted = [to_iso(at)[:19] + "Z" for at in range(instant(BEGIN) + HOUR // 2, end + 1, HOUR // 2)]
    assert mortal.deaths > 3
    assert Counter(found) == Counter(wanted)
    mortal.bench.close()


def test_a_tick_due_while_nobody_is_there_comes_once_with_its_planned_time(tmp_path: Path) -> None:
    """PITFALLS PF-47: `at` that fired doesn't fire again, and cron that was missed comes late, once."""
    clock = ManualClock(instant("2026-10-09T09:00:00"))
    path = tmp_path / "tasuki.db"
    bench = Bench(clock=clock, store=stores.kept(path))
    bench.create("once", "at(2026-10-09T09:30:00)")
    bench.create("daily", "cron(0 10 * * ? *)")
    bench.create("rate", "rate(45 minutes)")
    bench.house.advance_to(instant("2026-10-09T09:40:00"))
    bench.close()
    clock.set(instant("2026-10-09T10:20:00"))
    for _ in range(3):
        bench = Bench(clock=clock, store=stores.kept(path))
        bench.house.drain()
        bench.close()
    bench = Bench(clock=clock, store=stores.kept(path))
    bench.house.advance_to(instant("2026-10-09T10:40:00"))
    assert sorted(bench.posts) == [
        ("2026-10-09T09:00", "rate", "2026-10-09T09:00"),
        ("2026-10-09T09:30", "once", "2026-10-09T09:30"),
        ("2026-10-09T10:20", "daily", "2026-10-09T10:00"),
        ("2026-10-09T10:20", "rate", "2026-10-09T09:45"),
        ("2026-10-09T10:30", "rate", "2026-10-09T10:30"),
    ]
    bench.close()
