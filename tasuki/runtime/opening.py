"""Which store a node lives in, and the clocks that belong to it."""

from collections.abc import Callable

from tasuki.runtime.clock import HandClock, SystemClock, WallClock, steady_ms
from tasuki.services.tasks import nodes
from tasuki.store import standing
from tasuki.store.postgres_address import read_address
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Store, Tx
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.errors import ConfigError
from tasuki.values.instant import SECOND, Clock, Instant, to_iso

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
    With `clock = "manual"` it is one that stands still, at nothing yet: see `take_clock`.
    Raises a `StoreError` with a sentence that says what to do.
    """
    hand = HandClock() if config.clock == "manual" else None
    if config.store is None:
        clock = hand or SystemClock()
        path = config.data / "tasuki.db"
        return SqliteStore(path, clock=clock, real_clock=SystemClock(), chance=chance, on_ring=on_ring), clock
    from tasuki.store.postgres import PostgresStore  # its driver is loaded only where it is used

    store = PostgresStore(config.store, chance=chance, wall=WallClock(), steady=steady_ms, on_ring=on_ring, clock=hand)
    return store, store.clock


async def take_clock(config: Config, store: Store, clock: Clock, node: str = "") -> None:
    """Set a clock that is moved by hand to where it stood; let a house whose clock was moved go by the real one, if it can.

    `node` is this one's id where several share the store. Raises `ConfigError`: the house would see time run back, or by two clocks.
    """
    if await store.look(standing.stands_at) is None and config.clock == "real":
        return
    stands_at = await store.write(lambda tx: _stand(tx, config, node))
    if isinstance(clock, HandClock) and stands_at is not None:
        clock.set(stands_at)


def _stand(tx: Tx, config: Config, node: str) -> Instant | None:
    tx.alone()
    stood_at = standing.stands_at(tx)
    states = [] if config.store is None else [(one, one.state(tx.real_now)) for one in nodes.everybody(tx)]
    others = [one for one, state in states if one.id != node and state in {"UP", "SILENT"}]
    if config.clock == "manual":
        if others:
            raise ConfigError(
                f"A clock that is moved by hand is for a node that is alone, and node {others[0].id} on {others[0].host} "
                f"({others[0].url}) serves this house, too. Stop it (and wait until it is given up, if it was killed), "
                "or start this one without --clock manual."
            )
        at = stood_at if stood_at is not None else -(-tx.real_now // SECOND) * SECOND  # not before what happened so far
        standing.keep(tx, at)
        return at
    if stood_at is None:
        return None
    if others:
        raise ConfigError(
            f"This house's clock is moved by hand, on node {others[0].id} on {others[0].host} ({others[0].url}), and such a "
            "house has one node: no other can join. Stop that one first, or take another database."
        )
    if stood_at > tx.real_now:
        raise ConfigError(
            f"This house's clock was moved ahead to {to_iso(stood_at)}, and time must not run back. Start the node with "
            f"--clock manual, or take another data directory or database, or wait until {to_iso(stood_at)}."
        )
    standing.forget(tx)
    return None
