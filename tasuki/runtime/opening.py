"""Which store a node lives in, and the clocks that belong to it."""

from collections.abc import Callable

from tasuki.runtime.clock import SystemClock, WallClock, steady_ms
from tasuki.store.postgres_address import read_address
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Store
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.instant import Clock

Ring = Callable[[str, int], None]


def place_of(config: Config) -> str | None:
    """Answer where a node's data is besides its directory, as anybody may read it. Raises `ConfigError`."""
    return None if config.store is None else read_address(config.store).shown


def has_password(url: str) -> bool:
    """Tell whether a store's URL has a password in it. Raises `ConfigError`."""
    return read_address(url).has_password


def open_store(config: Config, *, chance: Chance, on_ring: Ring) -> tuple[Store, Clock]:
    """Answer the store that the configuration names, and the clock that its house goes by.

    SQLite lives in the data directory and goes by this machine's clock. PostgreSQL's own clock is the time of all its nodes.
    Raises a `StoreError` with a sentence that says what to do.
    """
    if config.store is None:
        clock, real_clock = SystemClock(), SystemClock()
        path = config.data / "tasuki.db"
        return SqliteStore(path, clock=clock, real_clock=real_clock, chance=chance, on_ring=on_ring), clock
    from tasuki.store.postgres import PostgresStore  # its driver is loaded only where it is used

    store = PostgresStore(config.store, chance=chance, wall=WallClock(), steady=steady_ms, on_ring=on_ring)
    return store, store.clock
