"""The loop against clocks that are set and handlers that fail."""

import asyncio
import logging

import pytest

from tasuki.runtime import loop
from tasuki.runtime.bell import Bell
from tasuki.runtime.clock import MOST_AHEAD_MS, SystemClock
from tasuki.services.room import Room
from tasuki.store import timers
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import T, Tx, Unit
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.errors import StoreError
from tasuki.values.instant import HOUR, SECOND, Instant


class Hands:
    """The wall clock and the steady one, as a test sets them."""

    def __init__(self) -> None:
        self.wall, self.steady = 10 * MOST_AHEAD_MS, 500
        self.clock = SystemClock(lambda: self.wall, lambda: self.steady)

    def passes(self, ms: int) -> Instant:
        self.wall += ms
        self.steady += ms
        return self.clock.now()


def test_a_clock_set_back_an_hour_goes_slowly_until_the_wall_has_caught_up() -> None:
    hands = Hands()
    began = hands.clock.now()
    hands.wall -= HOUR
    assert hands.clock.now() == began
    assert hands.passes(10 * SECOND) == began + 5 * SECOND
    assert hands.passes(1) == began + 5 * SECOND
    assert hands.passes(1) == began + 5 * SECOND + 1
    assert hands.passes(HOUR) == hands.wall, "the wall has caught up"
    assert hands.passes(7) == hands.wall


def test_a_clock_that_was_days_ahead_comes_back_with_the_wall() -> None:
    hands = Hands()
    hands.wall += 2 * MOST_AHEAD_MS
    hands.clock.now()
    hands.wall -= 2 * MOST_AHEAD_MS
    assert hands.clock.now() == hands.wall


class Sleeper:
    """A duty that is due in an hour; the hour passes while the machine sleeps, and no timer of the loop's knows of it."""

    name, topics = "sleeper", ("nothing",)

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.due = clock, clock.now() + HOUR
        self.looks = 0
        self.done = asyncio.Event()

    async def round(self) -> Instant | None:
        self.looks += 1
        if self.clock.now() >= self.due:
            self.done.set()
            return None
        asyncio.get_running_loop().call_soon(self.clock.set, self.due)
        return self.due


def test_a_machine_that_slept_looks_at_its_clock_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LONGEST_NAP_S", 0.01)

    async def play() -> int:
        clock = ManualClock()
        duty = Sleeper(clock)
        serving = asyncio.create_task(loop.Loop([duty], Bell(), clock).serve())
        await asyncio.wait_for(duty.done.wait(), 20)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        return duty.looks

    assert asyncio.run(play()) == 2


class Waiter:
    """A duty whose store is away for two rounds."""

    name, topics = "waiter", ("work",)

    def __init__(self, bell: Bell) -> None:
        self.bell, self.rounds, self.done = bell, 0, asyncio.Event()

    async def round(self) -> Instant | None:
        self.rounds += 1
        if self.rounds <= 2:
            asyncio.get_running_loop().call_later(0.02, self.bell.ring, "clock")
            raise StoreError("the database is away")
        self.done.set()
        return None


def test_a_duty_whose_store_is_away_says_so_once_and_wakes_when_it_rings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(loop, "LONGEST_PAUSE_S", 600.0)

    async def play() -> None:
        bell = Bell()
        duty = Waiter(bell)
        serving = asyncio.create_task(loop.Loop([duty], bell, ManualClock()).serve())
        await asyncio.wait_for(duty.done.wait(), 20)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    with caplog.at_level(logging.WARNING):
        asyncio.run(play())
    assert [record.getMessage() for record in caplog.records] == ["waiter waits for the store: the database is away"]
    assert caplog.records[0].exc_info is None


def test_timers_whose_handler_fails_hold_up_no_others(caplog: pytest.LogCaptureFixture) -> None:
    clock, bell, fired = ManualClock(), Bell(), []

    def on_timer(_tx: Tx, key: str) -> None:
        if key.startswith("bad"):
            raise ZeroDivisionError(key)
        fired.append(key)

    store = SqliteStore(None, clock=clock, real_clock=clock, chance=Chance.seeded(1), on_ring=bell.ring)

    def unit(tx: Tx) -> None:
        for number in range(40):
            timers.set_timer(tx, "r", f"bad{number}", tx.now)
        timers.set_timer(tx, "r", "good", tx.now)

    async def play() -> None:
        await store.write(unit)
        duties = loop.Loop([loop.TimerDuty({"r": Room("r", on_timer=on_timer)}, store, clock)], bell, clock)
        with caplog.at_level(logging.ERROR):
            assert await duties.drain() == clock.now() + loop.TIMER_PAUSE_MS

    asyncio.run(play())
    store.close()
    assert fired[-1] == "good"
    assert caplog.text.count("failed; tried again later") == 40


class AwayOnce(SqliteStore):
    """A store that is away when the first unit comes."""

    is_away = True

    async def write(self, unit: Unit[T]) -> T:
        if self.is_away:
            self.is_away = False
            raise StoreError("the database is away")
        return await super().write(unit)


def test_a_timer_stays_due_when_the_store_is_at_fault(caplog: pytest.LogCaptureFixture) -> None:
    clock, fired = ManualClock(), []

    def on_timer(_tx: Tx, key: str) -> None:
        fired.append(key)

    store = AwayOnce(None, clock=clock, real_clock=clock, chance=Chance.seeded(1))
    duty = loop.TimerDuty({"r": Room("r", on_timer=on_timer)}, store, clock)

    async def play() -> None:
        store.is_away = False
        await store.write(lambda tx: timers.set_timer(tx, "r", "k", tx.now))
        store.is_away = True
        with pytest.raises(StoreError, match="away"):
            await duty.round()
        assert fired == []
        await duty.round()

    asyncio.run(play())
    store.close()
    assert fired == ["k"]
    assert not caplog.records
