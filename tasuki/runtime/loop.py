"""Boring loops move things along: call a round, wait for the bell or the instant it named, call it again.

A *duty* is whatever does rounds: a room's poll, the timers, the attendant of the tasks. The same duties are served
forever by a node (`serve`) and played to quiet by a test house under its manual clock (`drain`, `advance`).
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from tasuki.runtime.bell import Bell
from tasuki.runtime.share import LATE_MS, Share
from tasuki.services.room import Poll, Rooms
from tasuki.store import timers
from tasuki.store.store import Store, Tx
from tasuki.values.errors import StoreError
from tasuki.values.instant import SECOND, Clock, Instant

log = logging.getLogger("tasuki.loop")

TIMERS_AT_ONCE = 32
"""Due timers that share a commit."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0
"""How long a duty that failed is left alone, doubling."""
TIMER_PAUSE_MS = 10 * SECOND
"""How far a timer is put off whose handler failed: its own, and no other."""

LONGEST_NAP_S = 15.0
"""After how long a duty looks again, although neither its instant has come nor its bell rung: the clock may have been set, the
machine may have slept, and the node that was to ring for all may have died between its commit and the bell."""


class Duty(Protocol):
    """Something that does bounded rounds of work."""

    @property
    def name(self) -> str:
        """What log lines call it."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The bells that may mean work."""

    async def round(self) -> Instant | None:
        """Do one round; answer when to call again: not after the present means at once, None not before the bell."""


class PollDuty:
    """A room's poll. Looks on a snapshot, and writes only when there is work.

    `unhurried`: its units need not be on disk before the next one runs, for all that they do stays in the house.
    """

    def __init__(self, poll: Poll, store: Store, clock: Clock, *, unhurried: bool = False) -> None:
        self.name, self.topics = poll.name, poll.topics
        self._poll, self._store, self._clock = poll, store, clock
        self._write = store.commit if unhurried else store.write
        self._width = 1

    async def round(self) -> Instant | None:
        """Look, then run as many rounds in one commit as there lately was work for."""
        due = await self._store.look(self._poll.look)
        if due is None or due > self._clock.now():
            self._width = 1
            return due
        if self._width == 1:
            answers = [await self._run()]
        else:
            answers = await asyncio.gather(*(self._run() for _ in range(self._width)))
        now = self._clock.now()
        busy = all(answer is not None and answer <= now for answer in answers)
        self._width = min(self._poll.width, self._width * 2) if busy else 1
        later = [answer for answer in answers if answer is not None and answer > now]
        return min(later) if len(later) == len(answers) else now  # all that is to be done is in other nodes' hands

    async def _run(self) -> Instant | None:
        """Run one round; what it was at when it failed for good, the poll hears of."""
        noted: Mapping[str, Any] = {}

        def unit(tx: Tx) -> Instant | None:
            nonlocal noted
            noted = tx.notes
            return self._poll.run(tx)

        try:
            return await self._write(unit)
        except Exception as why:
            failed, now = self._poll.failed, self._clock.now()
            if failed is None or not failed(noted, now, why):
                raise
            return now


class TimerDuty:
    """Fires due timers: each in a unit of its own, which claims the row and calls the owner's `on_timer`. `unhurried`: as a poll's."""

    name = "timers"
    topics = ("timers",)

    def __init__(
        self, rooms: Rooms, store: Store, clock: Clock, share: Share | None = None, *, unhurried: bool = False
    ) -> None:
        self._rooms, self._store, self._clock = rooms, store, clock
        self._share = share or Share()
        self._write = store.commit if unhurried else store.write

    async def round(self) -> Instant | None:
        """Fire what is due, up to a bound: what is ours, and what another node has left lying. Answer the next instant."""
        due = await self._store.look(timers.next_due)
        if due is None or due > self._clock.now():
            return due
        waiting = await self._store.look(lambda tx: timers.due(tx, TIMERS_AT_ONCE * self._share.count))
        now = self._clock.now()
        ours = [one for one in waiting if self._share.takes(one[1]) or one[2] + LATE_MS <= now][:TIMERS_AT_ONCE]
        if waiting and not ours:
            after = await self._store.look(timers.next_after_now)
            return min(waiting[0][2] + LATE_MS, after if after is not None else now + LATE_MS)
        results = await asyncio.gather(*(self._fire(room, key) for room, key, _ in ours), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return self._clock.now()

    async def _fire(self, room: str, key: str) -> None:
        def unit(tx: Tx) -> None:
            on_timer, lock_owner = self._rooms[room].on_timer, self._rooms[room].lock_owner
            assert on_timer is not None, f"room {room} set a timer and takes none"
            if lock_owner is not None:
                lock_owner(tx, key)
            if timers.claim(tx, room, key):
                on_timer(tx, key)

        try:
            await self._write(unit)
        except StoreError:
            raise  # the store is at fault and not the timer, which stays due
        except Exception:
            await self._write(lambda tx: timers.postpone(tx, room, key, tx.now + TIMER_PAUSE_MS))
            log.exception("timer %s:%s failed; tried again later", room, key)  # and the others are not held up


@dataclass(slots=True, eq=False)
class Post:
    """Where a duty stands that is served: `due` is what its last round answered, `failures` how often it failed in a row."""

    duty: Duty
    rung: asyncio.Event
    due: Instant | None = None
    is_idle: bool = False
    failures: int = 0


class Loop:
    """Serves duties: forever, or until the house is quiet.

    With a `movable` clock, which somebody else moves (`conductor.py`), no instant comes by itself.
    """

    def __init__(self, duties: Sequence[Duty], bell: Bell, clock: Clock, *, movable: bool = False) -> None:
        self._duties = duties
        self._bell, self._clock, self._movable = bell, clock, movable
        self.posts: list[Post] = []
        """The duties that are served, from the moment `serve` is called."""
        self.rounds = 0
        self.rested = asyncio.Event()
        """Set whenever a duty has no more to do just now, or has failed; who waits for that clears it."""

    async def serve(self) -> None:
        """Serve all duties until cancelled."""
        self.posts = [Post(duty, self._bell.subscribe((*duty.topics, "clock"))) for duty in self._duties]
        async with asyncio.TaskGroup() as group:
            for post in self.posts:
                group.create_task(self._serve(post), name=post.duty.name)

    @property
    def busy(self) -> list[Post]:
        """The duties that have something to do at this instant, or may have: their bell rang and they have not looked yet."""
        return [post for post in self.posts if not post.is_idle or post.rung.is_set()]

    @property
    def next(self) -> Post | None:
        """The duty that is due next, once all are idle."""
        waiting = [post for post in self.posts if post.due is not None]
        return min(waiting, key=lambda post: post.due or 0, default=None)

    def wake(self, instant: Instant) -> None:
        """Have the duties look that are due by `instant`. The others have said that they have nothing to do before their bell rings."""
        for post in self.posts:
            if post.due is not None and post.due <= instant:
                post.rung.set()

    def _rests(self, post: Post) -> None:
        post.is_idle = not post.failures
        self.rested.set()

    async def _serve(self, post: Post) -> None:
        duty, rung = post.duty, post.rung
        pause = FIRST_PAUSE_S
        while True:
            post.is_idle = False
            rung.clear()
            self.rounds += 1
            try:
                due = await duty.round()
                pause, post.failures = FIRST_PAUSE_S, 0
            except StoreError as bad:  # the disk is full, the database away: nothing of ours is wrong
                if pause == FIRST_PAUSE_S:
                    log.warning("%s waits for the store: %s", duty.name, bad)
                post.failures += 1
                self._rests(post)
                await asyncio.sleep(FIRST_PAUSE_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await rung.wait()  # a store that is back rings
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            except Exception:
                log.exception("a round of %s failed; next one in %.1f s", duty.name, pause)
                post.failures += 1
                self._rests(post)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            post.due = due
            wait_ms = None if due is None else due - self._clock.now()
            if wait_ms is not None and wait_ms <= 0:
                await asyncio.sleep(0)  # others' turn
                continue
            self._rests(post)
            try:
                nap_s = LONGEST_NAP_S if wait_ms is None or self._movable else min(wait_ms / 1000, LONGEST_NAP_S)
                async with asyncio.timeout(nap_s):
                    await rung.wait()
            except TimeoutError:
                continue

    async def drain(self, limit: int = 100_000) -> Instant | None:
        """Do rounds until nobody has work at the present instant; answer the next instant anybody named.

        `limit` bounds the rounds: a house that never comes to rest is a bug, and says so.
        """
        for _ in range(limit):
            now = self._clock.now()
            nearest: Instant | None = None
            for duty in self._duties:
                due = await duty.round()
                if due is not None and (nearest is None or due < nearest):
                    nearest = due
            if nearest is None or nearest > now:
                return nearest
        raise AssertionError(f"the house did not come to rest within {limit} rounds")
