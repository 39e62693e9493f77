"""One node of the simulated house: the rooms of a node, served by bells and instants only.

`House.drain` asks every duty each time. Here a duty does a round when its bell rang or the instant that it named has
come, as in `Loop.serve`: so a ring that a room forgot is work that nobody sees. A bell that was lost (a fault) is made up
for after `LONGEST_NAP_S`.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from tasuki.runtime.loop import LONGEST_NAP_S, Duty
from tasuki.services.tasks.setting import Here
from tasuki.testing.clock import ManualClock
from tasuki.testing.house import Builder, DutyBuilder, House
from tasuki.testing.simulation.faults import Crash, FaultyStore, Weather
from tasuki.values.config import Config
from tasuki.values.errors import StoreError
from tasuki.values.instant import SECOND, Instant

NAP_MS = round(LONGEST_NAP_S * SECOND)
PAUSE_MS = SECOND
"""How long a duty is left alone whose round met no database."""
SLOWEST_MS = 120 * SECOND
"""How long a slow duty does nothing at most."""
ROUNDS = 20_000
"""Rounds after which a house that never comes to rest is a bug."""


class NeverAtRest(Exception):
    """The house found work at the same instant for ever."""


class _Served:
    """A duty and when it does its next round."""

    __slots__ = ("asleep_until", "due", "duty", "missed")

    def __init__(self, duty: Duty, now: Instant) -> None:
        self.duty = duty
        self.due: Instant | None = now
        self.asleep_until: Instant = 0
        self.missed = False

    def ready_at(self) -> Instant | None:
        return None if self.due is None else max(self.due, self.asleep_until)

    def sooner(self, at: Instant) -> None:
        if self.due is None or at < self.due:
            self.due = at


class Node(House):
    """A node's life, from its birth to its crash. `here` says who it is, among several."""

    def __init__(
        self,
        builders: Sequence[Builder],
        duties: tuple[DutyBuilder, ...],
        *,
        config: Config,
        seed: int,
        clock: ManualClock,
        weather: Weather,
        store: Any,
        loop: asyncio.AbstractEventLoop,
        here: Here | None,
    ) -> None:
        super().__init__(*builders, duties=duties, config=config, seed=seed, clock=clock, store=store, loop=loop)
        self._weather = weather
        self._served = [_Served(duty, clock.now()) for duty in self.duties]
        self._order = random.Random(seed)  # noqa: S311 - repeatable
        self.rounds = 0
        self.here = here

    @property
    def faulty(self) -> FaultyStore:
        """The node's store."""
        assert isinstance(self.store, FaultyStore)
        return self.store

    def hear(self, topics: Sequence[str], *, mute: bool = False) -> None:
        """The bell rings; each duty may miss it, and does when it is `mute`."""
        now = self.now
        for served in self._served:
            if any(topic in served.duty.topics for topic in topics):
                lost = mute or self._weather.strikes("lost bell", self._weather.rates.lost_bell)
                served.missed = served.missed or lost
                served.sooner(now + NAP_MS if lost else now)

    async def pump(self) -> Instant | None:
        """Let every duty do its rounds until none has anything to do now; answer the next instant anybody named.

        Raises `Crash` when the node dies in one of them, and whatever breaks a round.
        """
        for _ in range(ROUNDS):
            now = self.now
            waiting = [one for one in self._served if (at := one.ready_at()) is not None and at <= now]
            if not waiting:
                return min((at for one in self._served if (at := one.ready_at()) is not None), default=None)
            served = waiting[0] if len(waiting) == 1 or self._weather.calm else self._order.choice(waiting)
            if self._weather.strikes("slow duty", self._weather.rates.slow_duty):
                served.asleep_until = now + self._order.randrange(1, SLOWEST_MS)
                continue
            served.due = None
            self.rounds += 1
            try:
                due = await served.duty.round()
            except StoreError:
                due, served.missed = now + PAUSE_MS, True
            if self.faulty.dead:  # and its round heard of something else first
                raise Crash(kept=False)
            if due is not None:
                served.sooner(due)
        raise NeverAtRest(f"no rest within {ROUNDS} rounds; still busy: {[one.duty.name for one in waiting]}")

    def catch_up(self) -> None:
        """Whoever was slow or paused is awake again, and hears the bells that he missed; no other duty is called for that."""
        for served in self._served:
            served.asleep_until = 0
            if served.missed:
                served.missed = False
                served.sooner(self.now)

    def die(self) -> None:
        """Whatever the node had in hand is gone: other rounds of the same moment meet a store that is dead."""
        self._run(_let_end())
        self.close()


async def _let_end() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
