"""What a simulated house stands on: a store that outlives its nodes. Opened once for each life of a node.

The simulation itself knows only `Ground`, so that the same seeds run on every store there is.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Store, T, Unit
from tasuki.testing.clock import ManualClock
from tasuki.values.chance import Chance


class Ground(Protocol):
    """Where stores are opened."""

    together: bool
    """Whether nodes work at the same time, instead of in turns."""
    fill: Callable[[bool], None] | None
    """Fill the disk under the store, or free it again; None where a full disk must be pretended."""

    def open(self, chance: Chance) -> Store:
        """Open the store for a node that is born; the node closes it when it dies. All see the same data."""

    def close(self) -> None:
        """Forget the data."""


GroundMaker: TypeAlias = Callable[[ManualClock], Ground]
"""Given the simulation's clock, an empty ground."""


class SqliteGround:
    """One SQLite store, in memory or in a file, whose nodes take turns: each sees it as its own.

    `together`: their rounds and the clients' calls alternate at each unit instead, in an order that is always the same (in
    memory only: a file's flushes take their own time). `fills`: a full disk is a real one, whose units fail in the middle, as far as they need another page at all.
    """

    def __init__(
        self, clock: ManualClock, path: Path | None = None, *, together: bool = False, fills: bool = False
    ) -> None:
        self.together = together
        self.fill: Callable[[bool], None] | None = self._fill if fills else None
        chance = Chance.seeded(0)
        self._shared = _Steered(chance)
        self._store = SqliteStore(path, clock=clock, real_clock=clock, chance=Chance(self._shared))

    def open(self, chance: Chance) -> Store:
        """See `Ground`."""
        return _Share(self._store, self._shared, chance)

    def _fill(self, full: bool) -> None:
        self._store.limit_pages(1 if full else None)  # not below what it has: SQLite sees to that

    def close(self) -> None:
        """See `Ground`."""
        self._store.close()


class _Steered:
    """The draws of whichever node has the turn."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance

    def getrandbits(self, count: int, /) -> int:
        return self.chance.bits(count)

    def random(self) -> float:
        return self.chance.fraction()


class _Share:
    """The shared store as one node has it: closing it ends the node's part only."""

    def __init__(self, store: SqliteStore, shared: _Steered, chance: Chance) -> None:
        self._store, self._shared, self._chance = store, shared, chance

    async def open(self) -> None:
        await self._store.open()

    async def write(self, unit: Unit[T]) -> T:
        self._shared.chance = self._chance
        return await self._store.write(unit)

    async def commit(self, unit: Unit[T]) -> T:
        return await self.write(unit)

    async def read(self, unit: Unit[T]) -> T:
        return await self._store.read(unit)

    async def look(self, unit: Unit[T]) -> T:
        return await self._store.look(unit)

    def fail_pending(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Others have it still."""


def memory(clock: ManualClock) -> Ground:
    """SQLite in memory; the nodes take turns."""
    return SqliteGround(clock)


def mingled(clock: ManualClock) -> Ground:
    """SQLite in memory; the nodes alternate at each unit."""
    return SqliteGround(clock, together=True)


def file(path: Path, *, fills: bool = False) -> GroundMaker:
    """SQLite in a file that is not there yet."""
    return lambda clock: SqliteGround(clock, path, fills=fills)
