"""Who holds what, until when. Row locks for decisions, leases for work, no elections.

In real time, which never moves: the movable clock must not take work away from somebody who still does it.
"""

from tasuki.store.store import Tx
from tasuki.values.instant import Instant

TAKE = (
    "INSERT INTO leases (room, key, holder, until) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (room, key) DO UPDATE SET holder = excluded.holder, until = excluded.until "
    "WHERE leases.until <= ? OR leases.holder = excluded.holder"
)
HOLDER = "SELECT holder FROM leases WHERE room = ? AND key = ? AND until > ?"
RENEW = "UPDATE leases SET until = ? WHERE room = ? AND key = ? AND holder = ? AND until > ?"
RELEASE = "DELETE FROM leases WHERE room = ? AND key = ? AND holder = ?"


def take(tx: Tx, room: str, key: str, holder: str, until: Instant) -> bool:
    """Take a lease that is free, expired or already ours; tell whether we have it."""
    return tx.run(TAKE, (room, key, holder, until, tx.real_now)) == 1


def holds(tx: Tx, room: str, key: str, holder: str) -> bool:
    """Tell whether `holder` still holds the lease: the guard of every finish."""
    row = tx.one(HOLDER, (room, key, tx.real_now))
    return row is not None and row[0] == holder


def renew(tx: Tx, room: str, key: str, holder: str, until: Instant) -> bool:
    """Extend our lease; False when it is no longer ours."""
    return tx.run(RENEW, (until, room, key, holder, tx.real_now)) == 1


def release(tx: Tx, room: str, key: str, holder: str) -> None:
    """Give the lease back, if it is ours."""
    tx.run(RELEASE, (room, key, holder))
