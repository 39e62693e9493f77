"""A unit on SQLite: what it sees, and who waits for it. Where they run: `sqlite.py`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic

import apsw

from tasuki.store.store import MET_TOO_OFTEN, Conflict, Params, Row, T, Unit
from tasuki.values.chance import Chance
from tasuki.values.errors import StoreError
from tasuki.values.instant import Instant

if TYPE_CHECKING:
    import asyncio


class SqliteTx:
    """A unit's view of the one writer (or of a reader)."""

    __slots__ = ("_connection", "_execute", "chance", "notes", "now", "real_now", "rings")

    stripe = 0

    def __init__(self, connection: apsw.Connection, now: Instant, real_now: Instant, chance: Chance) -> None:
        self._connection = connection
        self._execute = connection.execute
        self.now = now
        self.real_now = real_now
        self.chance = chance
        self.notes: dict[str, Any] = {}
        self.rings: list[tuple[str, int]] = []

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        """Run a statement and answer all its rows."""
        return self._execute(sql, params).fetchall()

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Run a statement and answer its first row, or None."""
        rows = self._execute(sql, params).fetchall()
        return rows[0] if rows else None

    def run(self, sql: str, params: Params = ()) -> int:
        """Run a statement and answer how many rows it changed."""
        self._execute(sql, params)
        return self._connection.changes()

    def many(self, sql: str, rows: Sequence[Params]) -> None:
        """Run one statement for each of `rows`."""
        self._connection.executemany(sql, rows)

    def lock(self, sql: str, params: Params = ()) -> None:
        """Do nothing: there is nobody to keep away."""

    def alone(self) -> None:
        """Do nothing: it is."""

    def ring(self, topic: str, times: int = 1) -> None:
        """Ring the bell for `topic` after the commit."""
        self.rings.append((topic, times))


class Waiting(Generic[T]):
    """A unit with the future of whoever waits for it: for the flush, or, `at_commit`, only for the commit."""

    __slots__ = ("at_commit", "error", "future", "result", "unit")

    def __init__(self, unit: Unit[T], future: "asyncio.Future[T]", *, at_commit: bool = False) -> None:
        self.unit = unit
        self.future = future
        self.at_commit = at_commit
        self.result: T | None = None
        self.error: BaseException | None = None

    def release(self) -> None:
        """Give whoever waits what came of it."""
        if self.future.done():  # the client went away; its unit counts all the same
            return
        error = self.error
        if isinstance(error, Conflict):
            error = StoreError(MET_TOO_OFTEN)
        elif isinstance(error, StopIteration):  # a future takes none, as a coroutine raises none
            error = RuntimeError("a unit raised StopIteration")
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]
