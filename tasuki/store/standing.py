"""Where a house's clock stands, if it is moved by hand. Written before it moves, so that nobody ever sees time run back."""

from tasuki.store.store import Tx
from tasuki.values.instant import Instant

STANDS_AT = "SELECT stands_at FROM clock WHERE name = 'house'"
KEEP = (
    "INSERT INTO clock (name, stands_at) VALUES ('house', ?) ON CONFLICT (name) DO UPDATE "
    "SET stands_at = excluded.stands_at WHERE clock.stands_at < excluded.stands_at"
)
FORGET = "DELETE FROM clock WHERE name = 'house'"


def stands_at(tx: Tx) -> Instant | None:
    """Answer where the clock stands; None in a house whose clock nobody moves (reads only)."""
    row = tx.one(STANDS_AT)
    return row[0] if row else None


def keep(tx: Tx, instant: Instant) -> None:
    """Note where the clock is about to stand. Never back."""
    tx.run(KEEP, (instant,))


def forget(tx: Tx) -> None:
    """Let the house go by the machine's clock from now on."""
    tx.run(FORGET)
