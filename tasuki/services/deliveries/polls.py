"""What the room does when time passes: each delivery has a timer of its own, so that none holds up another."""

from tasuki.services.deliveries import queries
from tasuki.store.store import Tx


def hold_owner(tx: Tx, key: str) -> None:
    """Take in hand the delivery whose timer `key` is, before the timer is claimed: no two nodes try it at once."""
    tx.lock(queries.HOLD, (int(key),))
