"""A unit on PostgreSQL: synchronous code in a greenlet, which lets the loop do its statements.

::

    loop ──switch──► unit ──tx.one(...)──► switch back with the statement's coroutine
      ▲                                        │ the loop awaits it; other units go on meanwhile
      └──────────── the answer ◄───────────────┘

So the rooms' units are the same on both stores, and many of them wait for the database at once on one thread.
"""

from collections.abc import Coroutine, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

from tasuki.store.postgres_dialect import statement
from tasuki.store.postgres_errors import Failed, sort_of
from tasuki.store.postgres_text import read, stored
from tasuki.store.store import Params, Row, T, Unit
from tasuki.values.chance import Chance
from tasuki.values.instant import Instant

if TYPE_CHECKING:
    import asyncpg


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
        connection: "asyncpg.Connection[Any]",
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
        """Why the unit is to end: a statement failed that spoiled its transaction, whatever the unit makes of it."""

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        """Run a statement and answer all its rows."""
        self.statements += 1
        rows = self._wait(self._connection.fetch(statement(sql), *stored(params)))
        return [read(row) for row in rows]

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Run a statement and answer its first row, or None."""
        self.statements += 1
        row = self._wait(self._connection.fetchrow(statement(sql), *stored(params)))
        return read(row) if row is not None else None

    def run(self, sql: str, params: Params = ()) -> int:
        """Run a statement and answer how many rows it changed."""
        self.statements += 1
        status: str = self._wait(self._connection.execute(statement(sql), *stored(params)))
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    def many(self, sql: str, rows: Sequence[Params]) -> None:
        """Run one statement for each of `rows`, in one round trip."""
        self.statements += 1
        self._wait(self._connection.executemany(statement(sql), [stored(row) for row in rows]))

    def lock(self, sql: str, params: Params = ()) -> None:
        """Hold the rows of a `SELECT ... FOR UPDATE` until the unit is over."""
        self.statements += 1
        self._wait(self._connection.fetch(statement(sql), *stored(params)))

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
        if self.failure is not None:
            statement_in_hand.close()
            raise _Interrupted
        assert loop_side is not None, "a unit runs in a greenlet of its own"
        return loop_side.switch(statement_in_hand)

    def met(self, bad: BaseException) -> BaseException:
        """Note that a statement failed; answer what the unit is to see of it."""
        if not isinstance(bad, Exception):
            self.failure = bad
            return bad
        sort = sort_of(bad, closed=self._connection.is_closed())
        if sort == "wrong":
            return bad
        self.failure = Failed(bad, sort)
        self.failure.__cause__ = bad
        return _Interrupted()


class _Interrupted(BaseException):
    """A statement failed for no fault of the unit's. No `Exception`: a room that pauses what fails must not see it."""


class _End:
    """How a unit ended; emptied by whoever hears of it."""

    __slots__ = ("error", "result")

    def __init__(self, result: Any, error: BaseException | None) -> None:
        self.result, self.error = result, error


class Side:
    """The greenlet in which the units of one connection run, one after the other.

    One for each unit would cost 12 us: the interpreter maps fresh memory for its stack.
    """

    __slots__ = ("_greenlet", "_thread")

    def __init__(self) -> None:
        self._greenlet, self._thread = greenlet(_serve), get_ident()

    def begin(self, unit: Unit[Any], tx: PostgresTx) -> Any:
        """Begin a unit; answer its first statement, or its end."""
        if self._thread != get_ident():  # the loop is run by another thread now, as a test may do
            self._greenlet, self._thread = greenlet(_serve), get_ident()
        return self._greenlet.switch([(unit, tx)])

    def go_on(self, answer: Any) -> Any:
        """Give a unit the answer to its statement; answer its next one, or its end."""
        return self._greenlet.switch(answer)

    def fail(self, bad: BaseException) -> Any:
        """Raise an error where a unit waits for its statement; answer its next one, or its end."""
        return self._greenlet.throw(bad)


def _serve(job: list[tuple[Unit[Any], PostgresTx]]) -> None:
    loop_side = getcurrent().parent
    assert loop_side is not None, "it was begun by the loop's"
    while True:
        job = loop_side.switch(_run(job))


def _run(job: list[tuple[Unit[Any], PostgresTx]]) -> _End:
    unit, tx = job.pop()  # so that nobody holds on to them until the next one comes
    try:
        return _End(unit(tx), None)
    except BaseException as bad:  # noqa: BLE001 - whatever it is, it is the caller's
        return _End(None, bad)


async def play(unit: Unit[T], tx: PostgresTx, side: Side) -> T:
    """Run a unit to its end, awaiting each of its statements.

    Raises what the unit raises. A statement that fails through the unit's own fault is the unit's to handle; any other ends
    it, whatever it makes of that: `Failed`.
    """
    step: Any = side.begin(unit, tx)
    while step.__class__ is not _End:
        try:
            answer = await step
        except BaseException as bad:  # noqa: BLE001 - the unit is to clean up behind itself
            step = side.fail(tx.met(bad))
        else:
            step = side.go_on(answer)
    result, error = step.result, step.error
    step.result = step.error = None
    if tx.failure is not None:
        raise tx.failure from tx.failure.__cause__
    if error is not None:
        try:
            raise error
        finally:
            del error  # it knows this frame
    answered: T = result
    return answered
