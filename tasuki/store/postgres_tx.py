"""A unit on PostgreSQL: synchronous code in a greenlet, which lets the loop do its statements.

::

    loop ──switch──► unit ──tx.one(...)──► switch back with the statement's coroutine
      ▲                                        │ the loop awaits it; other units go on meanwhile
      └──────────── the answer ◄───────────────┘

So the rooms' units are the same on both stores, and many of them wait for the database at once on one thread.
"""

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import asyncpg
from greenlet import getcurrent, greenlet

from tasuki.store.postgres_dialect import statement
from tasuki.store.postgres_errors import GONE, MET
from tasuki.store.store import Params, Row, T, Unit
from tasuki.values.chance import Chance
from tasuki.values.instant import Instant

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy


class WantsAlone(BaseException):
    """A unit said `alone` and shares the house: it begins again, alone. No `Exception`, lest a room takes it for its own."""


class PostgresTx:
    """A unit's view of its transaction."""

    __slots__ = (
        "_connection",
        "_is_alone",
        "chance",
        "failure",
        "notes",
        "now",
        "real_now",
        "rings",
        "statements",
        "stripe",
    )

    def __init__(
        self,
        connection: "PoolConnectionProxy[Any]",
        now: Instant,
        real_now: Instant,
        chance: Chance,
        stripe: int = 0,
        *,
        is_alone: bool = False,
    ) -> None:
        self._connection = connection
        self._is_alone = is_alone
        self.now, self.real_now = now, real_now
        self.chance = chance
        self.stripe = stripe
        self.notes: dict[str, Any] = {}
        self.rings: list[tuple[str, int]] = []
        self.statements = 0
        self.failure: BaseException | None = None
        """The first statement that failed: it spoiled the transaction, whatever the unit makes of it."""

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        """Run a statement and answer all its rows."""
        self.statements += 1
        rows = self._wait(self._connection.fetch(statement(sql), *params))
        return [tuple(row) for row in rows]

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Run a statement and answer its first row, or None."""
        self.statements += 1
        row = self._wait(self._connection.fetchrow(statement(sql), *params))
        return tuple(row) if row is not None else None

    def run(self, sql: str, params: Params = ()) -> int:
        """Run a statement and answer how many rows it changed."""
        self.statements += 1
        status: str = self._wait(self._connection.execute(statement(sql), *params))
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    def many(self, sql: str, rows: Sequence[Params]) -> None:
        """Run one statement for each of `rows`, in one round trip."""
        self.statements += 1
        self._wait(self._connection.executemany(statement(sql), rows))

    def lock(self, sql: str, params: Params = ()) -> None:
        """Hold the rows of a `SELECT ... FOR UPDATE` until the unit is over."""
        self.statements += 1
        self._wait(self._connection.fetch(statement(sql), *params))

    def alone(self) -> None:
        """See to it that no other unit runs: begin again under the house lock, if this one shares it."""
        if not self._is_alone:
            raise WantsAlone

    def ring(self, topic: str, times: int = 1) -> None:
        """Ring the bell for `topic` after the commit."""
        self.rings.append((topic, times))

    def _wait(self, statement_in_hand: Coroutine[Any, Any, Any]) -> Any:
        """Let the loop do it."""
        loop_side = getcurrent().parent
        if self.failure is not None or loop_side is None:
            statement_in_hand.close()
            assert loop_side is not None, "a unit runs in a greenlet of its own"
            assert self.failure is not None
            raise self.failure
        return loop_side.switch(statement_in_hand)


class _Interrupted(BaseException):
    """The unit met another one, or its connection is gone. No `Exception`: a room that pauses what fails must not see it."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


async def play(unit: Unit[T], tx: PostgresTx) -> T:
    """Run a unit to its end, awaiting each of its statements. Raises what it raises; a statement's error is in `tx.failure`, too."""
    side = greenlet(unit)
    try:
        step: Any = side.switch(tx)
        while not side.dead:
            try:
                answer = await step
            except asyncpg.DataError as bad:  # a kind of InterfaceError, and yet a fault of ours
                step = side.throw(bad)
            except (*MET, *GONE, asyncpg.UniqueViolationError) as bad:
                step = side.throw(_Interrupted(bad))
            except BaseException as bad:  # noqa: BLE001 - the unit's own to handle
                step = side.throw(bad)
            else:
                step = side.switch(answer)
    except _Interrupted as end:
        raise end.error from None
    result: T = step
    return result
