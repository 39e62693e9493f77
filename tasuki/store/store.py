"""The seam: `Store` and `Tx`.

The laws of a unit: it runs to completion; it touches nothing but its `tx`; it may be run again from the top, so
only its commit counts; what it wants from the world it writes as a row; it is bounded; inside it nothing awaits.

SQL is written in the common dialect of SQLite and PostgreSQL with `?` placeholders, as named constants in the
`queries.py` of the room that owns the table. Instants are integers (milliseconds), documents TEXT, our own packed
values BLOB, booleans integers. Upserts are `ON CONFLICT`, results come back by `RETURNING`. What stands in a comment
`/*pg ... */` only PostgreSQL reads: `... WHERE id = ? /*pg FOR UPDATE SKIP LOCKED */`.

On SQLite units run one after the other. On PostgreSQL they run beside each other, on this node and on others, each in a
transaction of its own (READ COMMITTED), and three things keep them apart:

* *Row locks.* A unit locks at most one execution, and that first; what concerns another one goes into the inbox. What
  waits for anybody (a message, a ready execution, a task) is taken with SKIP LOCKED. A timer is peeked at, its owner is
  locked, and then the timer is deleted conditionally.
* *The house lock.* All units hold it shared; one that says `tx.alone()` holds it alone. So whoever changes what others
  rely on (a queue, a machine, a pipe) meets nobody.
* *Running again.* A unit that met another (a serialisation failure, a deadlock, a unique key that appeared meanwhile,
  or `Conflict`, which it raises itself when it finds that it saw something stale) is rolled back and runs again.

So nothing that a unit has in hand may live in an object that units share: `tx.notes` is there for that.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from tasuki.values.chance import Chance
from tasuki.values.instant import Instant

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Params: TypeAlias = Sequence[Any]


class Tx(Protocol):
    """One transaction. `now` (house time) and `real_now` (never moved) stand still within it."""

    now: Instant
    real_now: Instant
    chance: Chance
    notes: dict[str, Any]
    """What rooms keep in hand while the unit runs, by a name of their own; gone with it."""
    stripe: int
    """Which row of a hot counter this unit adds to (0 <= stripe < STRIPES; on SQLite always 0); readers add them up."""

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        """Run a statement and answer all its rows."""

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Run a statement and answer its first row, or None."""

    def run(self, sql: str, params: Params = ()) -> int:
        """Run a statement and answer how many rows it changed."""

    def many(self, sql: str, rows: Sequence[Params]) -> None:
        """Run one statement for each of `rows`."""

    def lock(self, sql: str, params: Params = ()) -> None:
        """Hold the rows of a `SELECT ... FOR UPDATE` until the unit is over. On SQLite there is nobody to keep away."""

    def alone(self) -> None:
        """From here on no other unit runs until this one is over: for changes of what others rely on."""

    def ring(self, topic: str, times: int = 1) -> None:
        """Ring the bell for `topic` after the commit, waking at most `times` waiters of the kind that takes turns."""


Unit: TypeAlias = Callable[[Tx], T]

STRIPES = 16
"""How many rows a hot counter has at most."""

MOST_TURNS = 50
"""How often a unit runs that meets others, or says `Conflict`; then its caller hears of it."""
MET_TOO_OFTEN = "Too many units met at the same rows; nothing was changed. Try again."


class Conflict(Exception):
    """A unit found that what it saw is not so any more. Nothing is kept, and it runs again."""


class Store(Protocol):
    """Where units run."""

    async def open(self) -> None:
        """Connect, and bring the schema up to date; once, before the first unit, in the loop that serves it."""

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit; answer after its commit has been flushed to disk. What it raises, the caller gets."""

    async def commit(self, unit: Unit[T]) -> T:
        """Run a unit; answer after its commit, perhaps before it has been flushed to disk. What it raises, the caller gets.

        For work that nobody outside hears of before a `write` or a `read` that comes later: what that one answers has
        this on disk, too. A power cut before takes back this unit and every later one, and none that was committed before.
        """

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, on a snapshot; answer when all that it could have seen is on disk."""

    async def look(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, without waiting for a flush: for decisions, never for replies.

        On PostgreSQL each of its statements sees what is committed by then: no snapshot.
        """

    def fail_pending(self) -> None:
        """Refuse the units that have not run yet, and all that come later."""

    def close(self) -> None:
        """Finish the group in hand and let go of the files."""
