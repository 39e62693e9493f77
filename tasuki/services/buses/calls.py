"""HTTP calls between the unit that asks for one and the unit that hears how it ended.

::

    deliver ─► a row ─► claim (a unit, a lease in real time) ─► the courier calls ─► settle (a unit): tell the watcher, drop the row
                         │
                         └─ over the destination's rate: its turn is booked, and comes by house time

A node that dies with a call in hand leaves its lease, and when that is over any node calls again, with the same key: at least once.

A destination's rate is a token bucket of a tenth of a second's calls (one at least): in any second up to the rate, and those, are
begun.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasuki.services.buses import calls_queries as sql
from tasuki.services.buses.connections import Connection
from tasuki.services.buses.destinations import DEFAULT_RATE, Destination
from tasuki.services.switchboard import Ending, Switchboard
from tasuki.store.store import Conflict, Row, Tx
from tasuki.values.documents import loads
from tasuki.values.instant import SECOND, Instant

_MICROS = 1_000
"""Microseconds in a millisecond: 300 calls a second are not a whole number of milliseconds apart."""
_COLUMNS_OF_A_CONNECTION = 15


@dataclass(frozen=True, slots=True)
class Call:
    """A claimed call. Without a destination (it was deleted meanwhile) or a connection there is nothing to call."""

    id: int
    key: str
    to: int
    """The destination's row."""
    holder: str
    payload: str = field(repr=False)
    parameters: Mapping[str, Any] = field(repr=False)
    trace: str
    destination: Destination | None
    connection: Connection | None


@dataclass(frozen=True, slots=True)
class Hands:
    """What a node can take: `free` hands, beside those that are busy with each destination (by its row).

    No destination gets more than it leaves to the others: one that never answers has half of them, another one half of the rest.
    """

    free: int
    held: Mapping[int, int]

    def full(self) -> str:
        """Answer the destinations that get no more, as the statements read them."""
        full = [str(at) for at, count in sorted(self.held.items()) if count >= self.free]
        return f",{','.join(full)}," if full else ""


def next_due(tx: Tx, hands: Hands) -> Instant | None:
    """Answer when the next call that nobody makes, and this node could, is due; None when there is none (reads only)."""
    row = tx.one(sql.NEXT, (tx.real_now, hands.full()))
    return row[0] if row is not None else None


def claim(tx: Tx, hands: Hands, lease_ms: int) -> list[Call]:
    """Take due calls in hand for `lease_ms` of real time; book the turns of those that come too soon."""
    holder = tx.chance.hex(24)
    rows = tx.all(sql.TO_CLAIM, (tx.now, tx.real_now, hands.full(), hands.free))
    known: dict[int, tuple[Connection | None, Destination | None]] = {}
    turns: dict[int, Turns] = {}
    for at in sorted({row[2] for row in rows}):  # in one order, on every node
        known[at] = _known(tx, at)
        full_at = tx.one(sql.PACE, (at,)) if any(row[2] == at and not row[8] for row in rows) else None
        destination = known[at][1]
        if full_at is not None and destination is not None:
            turns[at] = Turns(full_at[0], destination.rate or DEFAULT_RATE, tx.now)
    taken: list[Call] = []
    held = dict(hands.held)
    for row in rows:
        at = row[2]
        if held.get(at, 0) >= hands.free - len(taken):
            continue
        due = turns[at].next() if at in turns and not row[8] else tx.now
        if due > tx.now:
            tx.run(sql.PUT_OFF, (due, row[0]))
            continue
        tx.run(sql.CLAIM, (holder, tx.real_now + lease_ms, row[0]))
        held[at] = held.get(at, 0) + 1
        connection, destination = known[at]
        taken.append(Call(row[0], row[1], at, holder, row[3], loads(row[4]), row[6], destination, connection))
    for at, booked in turns.items():
        tx.run(sql.SET_PACE, (booked.full_at, at))
    return taken


class Turns:
    """Gives out turns under a rate (the generic cell rate algorithm). `full_at` is in microseconds, the rest in milliseconds."""

    def __init__(self, full_at: int, rate: int, now: Instant) -> None:
        self.full_at = full_at
        self._now = now * _MICROS
        self._apart = SECOND * _MICROS // rate
        self._ahead = (max(rate // 10, 1) - 1) * self._apart

    def next(self) -> Instant:
        """Answer when the next call may begin, and count it."""
        turn = max(self._now, self.full_at - self._ahead)
        self.full_at = max(self._now, self.full_at) + self._apart
        return -(-turn // _MICROS)


def settle(tx: Tx, switchboard: Switchboard, call: Call, ending: Ending) -> bool:
    """Tell who asked for a call how it ended, and forget it. False if it is no longer ours: another node makes it again.

    The watcher's rows come first and the call's last, as in the unit that asks for a call: no two units wait for each other.
    """
    row = tx.one(sql.HELD, (call.id, call.holder))
    if row is None:
        return False
    if row[0] is not None:
        switchboard.finished(tx, row[0], ending)
    if tx.run(sql.DROP, (call.id, call.holder)) != 1:
        raise Conflict
    return True


def let_go(tx: Tx, holders: frozenset[str]) -> None:
    """Give back what a node has in hand that ends: another makes those calls again, at once."""
    for holder in sorted(holders):
        tx.run(sql.LET_GO, (holder,))
    tx.ring("courier")


def any_in_hand(tx: Tx) -> bool:
    """Tell whether any node has a call in hand (reads only)."""
    return tx.one(sql.ANY_HELD) is not None


def let_all_go(tx: Tx) -> None:
    """Give back what a node had in hand that was killed, where it is the only one."""
    tx.run(sql.LET_ALL_GO)


def _known(tx: Tx, destination: int) -> tuple[Connection | None, Destination | None]:
    row: Row | None = tx.one(sql.WITH_ALL, (destination,))
    if row is None:
        return None, None
    connection = Connection.of_row(row[:_COLUMNS_OF_A_CONNECTION]) if row[0] is not None else None
    return connection, Destination.of_row(row[_COLUMNS_OF_A_CONNECTION:])
