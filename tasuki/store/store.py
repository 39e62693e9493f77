"""The seam: `Store` and `Tx`.

The laws of a unit: it runs to completion; it touches nothing but its `tx`; it may be run again from the top, so
only its commit counts; what it wants from the world it writes as a row; it is bounded; inside it nothing awaits.

SQL is written in the common dialect of SQLite and PostgreSQL with `?` placeholders, as named constants in the
`queries.py` of the room that owns the table. Instants are integers (milliseconds), documents TEXT, our own packed
values BLOB, booleans integers. Upserts are `ON CONFLICT`, results come back by `RETURNING`.
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

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        """Run a statement and answer all its rows."""

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Run a statement and answer its first row, or None."""

    def run(self, sql: str, params: Params = ()) -> int:
        """Run a statement and answer how many rows it changed."""

    def many(self, sql: str, rows: Sequence[Params]) -> None:
        """Run one statement for each of `rows`."""

    def ring(self, topic: str, times: int = 1) -> None:
        """Ring the bell for `topic` after the commit, waking at most `times` waiters of the kind that takes turns."""


Unit: TypeAlias = Callable[[Tx], T]


class Store(Protocol):
    """Where units run."""

    async def write(self, unit: Unit[T]) -> T:
        """Run a unit; answer after its commit has been flushed to disk. What it raises, the caller gets."""

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, on a snapshot; answer when all that it could have seen is on disk."""

    def look(self, unit: Unit[T]) -> T:
        """Run a unit that only reads, at once, without waiting for a flush: for decisions, never for replies."""

    def close(self) -> None:
        """Finish the group in hand and let go of the files."""
