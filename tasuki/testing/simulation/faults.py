"""Faults: what may go wrong at a commit, and a store around any store that makes it go wrong.

The vocabulary, drawn for each write unit (`Weather`):

====================  ===========================================================================================
crash before commit   the unit is rolled back, and the node is dead
crash after commit    the unit is kept, nobody hears of it, and the node is dead
run again             the unit runs, is rolled back, and runs once more from the top (store/store.py, "the laws")
database gone         for a while every unit is rolled back or never runs, reads too: `StoreError`
disk full             for a while every write unit is rolled back: `StoreFull`
lost bell             a ring is not heard by one of those who wait for it
====================  ===========================================================================================

What happens outside of commits (slow duties, lost replies, timers fired twice) is in `node.py` and `world.py`.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasuki.store import timers
from tasuki.store.store import Conflict, Params, Row, Store, T, Tx, Unit
from tasuki.values.errors import StoreError, StoreFull, TasukiError

GONE = "The database is gone (simulated); nothing was changed."
FULL = "The disk is full (simulated); nothing was changed."


class Crash(BaseException):
    """The node died at a commit. No handler of a room may catch it, so it is no `Exception`.

    `kept` tells whether the unit was committed, `answer` is then what nobody heard.
    """

    def __init__(self, *, kept: bool, answer: Any = None) -> None:
        super().__init__("the node died at a commit")
        self.kept, self.answer = kept, answer


class Undone(TasukiError):
    """Raised at the end of a unit so that the store rolls it back."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How likely each fault is, at each chance it gets."""

    crash: float = 0.006
    again: float = 0.02
    gone: float = 0.001
    full: float = 0.001
    lost_bell: float = 0.03
    lost_reply: float = 0.02
    slow_duty: float = 0.02
    start_fails: float = 0.03
    call_fails: float = 0.15
    call_crash: float = 0.03


@dataclass(slots=True)
class Weather:
    """What goes wrong when, from the seed. `calm` ends all of it; `counts` is what went wrong so far, by kind."""

    chance: random.Random
    rates: Rates = field(default_factory=Rates)
    calm: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    gone_for: int = 0
    """How many more units find no database."""
    full_for: int = 0
    """How many more write units find no room."""

    def strikes(self, kind: str, rate: float) -> bool:
        """Draw whether a fault happens; count it."""
        if self.calm or not rate or self.chance.random() >= rate:
            return False
        self.counts[kind] += 1
        return True

    def at_write(self) -> str:
        """Answer which fault meets the next write unit, or an empty text."""
        if self.calm:
            return ""
        if self.gone_for:
            self.gone_for -= 1
            return "gone"
        if self.full_for:
            self.full_for -= 1
            return "full"
        if self.strikes("crash before commit", self.rates.crash):
            return "before"
        if self.strikes("crash after commit", self.rates.crash):
            return "after"
        if self.strikes("unit run again", self.rates.again):
            return "again"
        if self.strikes("database gone", self.rates.gone):
            self.gone_for = self.chance.randrange(1, 12)
            return "gone"
        if self.strikes("disk full", self.rates.full):
            self.full_for = self.chance.randrange(1, 12)
            return "full"
        return ""

    def at_read(self) -> bool:
        """Tell whether the next read finds no database."""
        if self.calm or not self.gone_for:
            return False
        self.gone_for -= 1
        return True

    def clear_up(self) -> None:
        """No fault from here on."""
        self.calm, self.gone_for, self.full_for = True, 0, 0


class WatchedTx:
    """A unit's `Tx`, with what the simulation wants to know of it: the bells it rang and the timers it took."""

    __slots__ = ("_inner", "chance", "fired", "notes", "now", "real_now", "rings", "stripe")

    def __init__(self, inner: Tx) -> None:
        self._inner = inner
        self.now, self.real_now, self.chance = inner.now, inner.real_now, inner.chance
        self.notes, self.stripe = inner.notes, inner.stripe
        self.rings: list[str] = []
        self.fired: list[tuple[str, str]] = []

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        """As the store's."""
        return self._inner.all(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """As the store's."""
        return self._inner.one(sql, params)

    def run(self, sql: str, params: Params = ()) -> int:
        """As the store's; a timer that is taken is noted."""
        changed = self._inner.run(sql, params)
        if changed and sql == timers.CLAIM:
            self.fired.append((params[0], params[1]))
        return changed

    def many(self, sql: str, rows: Sequence[Params]) -> None:
        """As the store's."""
        self._inner.many(sql, rows)

    def lock(self, sql: str, params: Params = ()) -> None:
        """As the store's."""
        self._inner.lock(sql, params)

    def alone(self) -> None:
        """As the store's."""
        self._inner.alone()

    def ring(self, topic: str, times: int = 1) -> None:
        """As the store's, and noted."""
        self.rings.append(topic)
        self._inner.ring(topic, times)


class FaultyStore:
    """A store for one node's life. After a crash every call raises `Crash`: the node is dead.

    `heard(rings, fired, mute)` is called after each commit; `mute`: the node died before it could ring. `tamper` lies between the rooms and the store: a test of an
    invariant plants its bug there.
    """

    def __init__(
        self,
        inner: Store,
        weather: Weather,
        heard: Callable[[Sequence[str], Sequence[tuple[str, str]], bool], None],
        tamper: Callable[[Tx], Tx] | None = None,
        fill: Callable[[bool], None] | None = None,
    ) -> None:
        self._fill = fill
        self._inner, self._weather, self._heard, self._tamper = inner, weather, heard, tamper
        self.dead = False
        self.units = 0

    async def open(self) -> None:
        """As the store's."""
        await self._inner.open()

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit, unless a fault comes in between."""
        self._look_alive()
        self.units += 1
        fault = self._weather.at_write()
        runs = 0
        tx: WatchedTx | None = None

        def watched(inner: Tx) -> T:
            nonlocal runs, tx
            if self.dead:  # it died in another unit of the same commit
                raise Undone("dead")
            runs += 1
            tx = WatchedTx(inner)
            answer = unit(tx if self._tamper is None else self._tamper(tx))
            if fault == "before":
                self.dead = True
                raise Undone("crash")
            if fault == "again" and runs == 1:
                raise Conflict
            if fault in {"gone", "full"} and not fills:
                raise Undone(fault)
            return answer

        fill = self._fill
        fills = fill is not None and fault == "full"
        try:
            if fill is not None:
                fill(fills)
            answer = await self._inner.write(watched)
        except Undone:
            self._look_alive()
            raise (StoreFull(FULL) if fault == "full" else StoreError(GONE)) from None
        assert tx is not None, "a unit that was kept has run"
        if fault == "after":
            self.dead = True
        self._heard(tx.rings, tx.fired, self.dead)
        if self.dead:
            raise Crash(kept=True, answer=answer)
        return answer

    async def commit(self, unit: Unit[T]) -> T:
        """As `write`."""
        return await self.write(unit)

    async def read(self, unit: Unit[T]) -> T:
        """As the store's, where there is one."""
        self._look_alive()
        if self._weather.at_read():
            raise StoreError(GONE)
        return await self._inner.read(unit)

    async def look(self, unit: Unit[T]) -> T:
        """As the store's, where there is one."""
        self._look_alive()
        if self._weather.at_read():
            raise StoreError(GONE)
        return await self._inner.look(unit)

    def fail_pending(self) -> None:
        """Nothing waits: one unit is played at a time."""

    def close(self) -> None:
        """End this node's part in the store."""
        self.dead = True
        self._inner.close()

    def _look_alive(self) -> None:
        if self.dead:
            raise Crash(kept=False)
