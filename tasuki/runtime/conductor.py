"""Moves the clock of a house: to every instant at which something is due, in their order, and never past one.

::

    at rest?  every duty of the loop has answered "nothing before X", no bell has rung since, no courier is out
       │      and no task runs that is still waited for
       ▼
    keep      a unit writes the next instant: a node that is killed finds it there
    move      the clock is set; whoever is due looks, and long polls; at the target everybody, should a ring have been lost
       └────► at rest? ... until the target is reached, or there is no more time to wait for it

What is due at an instant has all its effects at that instant: one that fails is seen to fail there, and what it starts starts there.

Tasks are processes, and take real time. While one runs the clock stands still, for so long as somebody has patience with it
(per task, added up over the calls); then house time goes on, and its timeouts may fire.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from tasuki.runtime.bell import EVERYTHING, Bell
from tasuki.runtime.loop import Loop
from tasuki.values.errors import StoreError
from tasuki.values.instant import Clock, Instant

log = logging.getLogger("tasuki.clock")

PATIENCE_S = 60.0
"""How long, in real time, a task that runs is waited for."""
MOST_ROUNDS = 500_000
"""Rounds of duties at one instant after which a house is said never to come to rest."""
MOST_FAILURES = 5
"""So often in a row a duty fails before a move is given up."""
LOOK_S = 0.5
"""After how long it is looked again whether the node ends, though nothing has come to rest."""
COURIER_LOOK_S = 0.02
TICK_S = 0.1
"""How often a clock that runs is moved on."""


class Restless(Exception):
    """The house does not come to rest at an instant. The text says why, as far as that can be seen."""


class ClockBusy(Exception):
    """Somebody else moves the clock just now."""


class Movable(Clock, Protocol):
    """A clock that can be set."""

    def set(self, instant: Instant) -> None:
        """Move on to `instant`."""


class Courier(Protocol):
    """Something that works outside units and duties."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def busy(self) -> int:
        """How much it has in hand."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a move came: the clock stands at `now` after `visited` instants; `busy` is what was still waited for."""

    now: Instant
    arrived: bool
    visited: int
    busy: tuple[str, ...] = ()


class Conductor:
    """Moves `clock` over a loop that is served. One move at a time.

    `keep` writes where the clock is about to stand. It may answer at the commit: every later unit is of that instant, and none of them is on
    disk before it. So a power cut takes the house back to an earlier instant as it was then, and whoever got a reply since, got one
    that waited for the disk. `tasks` answers the attempts that really run. `steady` counts real seconds.
    After `most_rounds` at one instant a house is said never to come to rest.
    """

    def __init__(
        self,
        *,
        loop: Loop,
        clock: Movable,
        bell: Bell,
        keep: Callable[[Instant], Awaitable[None]],
        steady: Callable[[], float],
        tasks: Callable[[], Collection[Hashable]] = tuple,
        couriers: Sequence[Courier] = (),
        most_rounds: int | None = None,
    ) -> None:
        self._loop, self._clock, self._bell, self._keep, self._steady = loop, clock, bell, keep, steady
        self._tasks, self._couriers, self._most_rounds = tasks, couriers, most_rounds or MOST_ROUNDS
        self._waited: dict[Hashable, float] = {}
        """How long each task that runs has been waited for, in seconds."""
        self._held = asyncio.Lock()
        self._switching = asyncio.Lock()
        self._flow: asyncio.Task[None] | None = None
        self.speed = 0.0
        """How many seconds of house time pass in a real one."""

    # -- what people say ------------------------------------------------------------------------------------

    async def advance(
        self,
        to: Instant,
        *,
        patience_s: float = PATIENCE_S,
        within_s: float | None = None,
        on_rest: Callable[[Instant], Awaitable[None]] | None = None,
    ) -> Progress:
        """Move to `to` and come to rest there; answer how far it came within so many real seconds.

        `on_rest` is awaited wherever the house has come to rest, before the clock is moved on. Nothing is undone when time is short: whoever asks again goes on. Raises `ClockBusy`, `Restless`.
        """
        if self._held.locked() or self.speed:
            raise ClockBusy
        async with self._held:
            until = None if within_s is None else self._steady() + within_s
            return await self._travel(to, patience_s, until, on_rest)

    async def rest(self, *, patience_s: float = PATIENCE_S, within_s: float | None = None) -> Progress:
        """Stay, and let the house come to rest. As `advance` to where the clock stands."""
        return await self.advance(self._clock.now(), patience_s=patience_s, within_s=within_s)

    async def run(self, speed: float) -> None:
        """Let house time flow at `speed` times real time, no faster than that while a task really runs; 0 stops it."""
        async with self._switching:
            flow, self._flow = self._flow, None
            if flow is not None:
                flow.cancel()
                with suppress(asyncio.CancelledError):
                    await flow
                self.speed = 0.0  # one that had not begun yet does not say so itself
            if self._held.locked():
                raise ClockBusy
            if speed > 0:
                self.speed = speed
                self._flow = asyncio.create_task(self._run(speed, self._steady()), name="clock")

    def close(self) -> None:
        """Let a clock that runs stand still: the node ends."""
        if self._flow is not None:
            self._flow.cancel()

    @property
    def busy(self) -> tuple[str, ...]:
        """What has something to do at this instant."""
        duties = [post.duty.name for post in self._loop.busy]
        couriers = [one.name for one in self._couriers if one.busy]
        count = len(self._tasks())
        tasks = [f"{count} task{'' if count == 1 else 's'} that run{'s' if count == 1 else ''}"] if count else []
        return (*duties, *couriers, *tasks)

    # -- the way --------------------------------------------------------------------------------------------

    async def _travel(
        self,
        to: Instant,
        patience_s: float,
        until: float | None,
        on_rest: Callable[[Instant], Awaitable[None]] | None = None,
    ) -> Progress:
        visited = 0
        while await self._is_at_rest(patience_s, until):
            now = self._clock.now()
            if on_rest is not None:
                await on_rest(now)
            if now >= to:
                return Progress(now, True, visited)
            visited += await asyncio.shield(self._move(max(now, min(self._nearest(to), to)), to))
        return Progress(self._clock.now(), False, visited, self.busy)

    async def _move(self, instant: Instant, to: Instant) -> bool:
        """Move to an instant that is written first; stay when a client brought work meanwhile, which is of this instant."""
        await self._keep(instant)
        if self._loop.busy or self._is_out or self._nearest(instant) < instant:
            return False
        self._clock.set(instant)
        if instant >= to:
            self._bell.ring(EVERYTHING)
        else:
            self._loop.wake(instant)
            self._bell.wake()
        return True

    def _nearest(self, otherwise: Instant) -> Instant:
        after = self._loop.next
        return otherwise if after is None or after.due is None else after.due

    @property
    def _is_out(self) -> bool:
        return any(one.busy for one in self._couriers)

    async def _is_at_rest(self, patience_s: float, until: float | None) -> bool:
        """Wait until nothing is left to do at this instant; False when time is up first. Raises `Restless`."""
        rounds = self._loop.rounds
        while not self._bell.closed:
            self._loop.rested.clear()
            busy = self._loop.busy
            couriers = self._is_out
            held = [] if busy or couriers else self._awaited(patience_s)
            if self._loop.posts and not busy and not couriers and not held:
                return True
            for post in busy:
                if post.failures >= MOST_FAILURES:
                    raise Restless(f"{post.duty.name} fails again and again; the node's log says why")
            if self._loop.rounds - rounds > self._most_rounds:
                names = ", ".join(sorted(post.duty.name for post in busy))
                raise Restless(f"after {self._most_rounds} rounds there is still more to do at this instant ({names})")
            began = self._steady()
            left_s = LOOK_S if until is None else until - began
            if left_s <= 0:
                return False
            left_s = min(
                left_s, COURIER_LOOK_S if couriers else LOOK_S, *(patience_s - self._waited[one] for one in held)
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(max(left_s, 0.001)):
                    await self._loop.rested.wait()
            for one in held:
                self._waited[one] += self._steady() - began
        return False

    def _awaited(self, patience_s: float) -> list[Hashable]:
        """Answer the tasks that run and have not used up our patience."""
        self._waited = {one: self._waited.get(one, 0.0) for one in self._tasks()}
        return [one for one, waited in self._waited.items() if waited < patience_s]

    async def _run(self, speed: float, at: float) -> None:
        exact = float(self._clock.now())
        try:
            while not self._bell.closed:
                await asyncio.sleep(TICK_S)
                now = self._steady()
                exact += (now - at) * 1000 * (min(speed, 1.0) if self._tasks() else speed)
                at = now
                async with self._held:
                    await self._travel(int(exact), 0, None)
        except (Restless, StoreError) as bad:
            log.critical("the clock stands still again: %s", bad)
        finally:
            self.speed = 0.0
