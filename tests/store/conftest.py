"""Every backend that must keep the store's contract."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tasuki.store.postgres import PostgresStore
from tasuki.store.postgres_bell import EVERYTHING
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Store, T, Unit
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance


@dataclass
class Opened:
    """A store with the clocks and bells that a test holds."""

    store: Store
    clock: ManualClock
    real_clock: ManualClock
    rings: list[tuple[str, int]] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop | None = None

    def run(self, play: Coroutine[Any, Any, T]) -> T:
        """Play something in the store's own loop."""
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
        return self.loop.run_until_complete(play)

    def look(self, unit: Unit[T]) -> T:
        """Look once."""
        return self.run(self.store.look(unit))

    def close(self) -> None:
        """Let go of it."""
        self.store.close()
        if self.loop is not None:
            self.loop.close()


Open = Callable[[], Opened]


def open_sqlite(path: Path | None) -> Opened:
    clock, real_clock = ManualClock(), ManualClock()
    rings: list[tuple[str, int]] = []
    store = SqliteStore(
        path,
        clock=clock,
        real_clock=real_clock,
        chance=Chance.seeded(1),
        on_ring=lambda topic, times: rings.append((topic, times)),
    )
    return Opened(store, clock, real_clock, rings)


def open_postgres(url: str) -> Opened:
    clock, real_clock = ManualClock(), ManualClock()
    rings: list[tuple[str, int]] = []

    def ring(topic: str, times: int) -> None:
        if topic != EVERYTHING:  # the bell's own greeting
            rings.append((topic, times))

    store = PostgresStore(
        url,
        chance=Chance.seeded(1),
        wall=real_clock,
        clock=clock,
        real_clock=real_clock,
        on_ring=ring,
    )
    one = Opened(store, clock, real_clock, rings)
    one.run(store.open())
    return one


@pytest.fixture(params=["sqlite file", "sqlite memory", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    if request.param == "postgresql":
        one = open_postgres(request.getfixturevalue("postgres_url"))
    else:
        one = open_sqlite(tmp_path / "tasuki.db" if request.param == "sqlite file" else None)
    yield one
    one.close()
