"""What every room shows to the house. `runtime/node.py` asks each room for one and joins them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasuki.store.store import Tx
from tasuki.values.instant import Instant
from tasuki.values.operations import Operations


@dataclass(frozen=True, slots=True)
class Poll:
    """One bounded round of work.

    `look(tx)` runs on a snapshot and answers when there is work next: an instant not after `tx.now` means now, None
    means not before the bell rings. `run(tx)` is one write unit; it answers the same. The loop calls `look` when
    one of `topics` rings or the instant that was answered last has come, and `run` only if there is work: an idle
    house costs no write. `width` rounds may share a commit, when each takes another piece of work. `failed(notes, now, why)`
    is called when a round failed for good, not to be run again: with what it left in `tx.notes`, so that the poll can
    leave alone for a while what it was at; it tells whether it did, and then the rounds go on.
    """

    name: str
    topics: tuple[str, ...]
    look: Callable[[Tx], Instant | None]
    run: Callable[[Tx], Instant | None]
    width: int = 1
    failed: Callable[[Mapping[str, Any], Instant, Exception], bool] | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """A service of the house.

    `name` keys its timers and leases. `service` is botocore's service name (`sqs`, `stepfunctions`, `pipes`,
    `ecs`), or None for a room without an API. `on_timer(tx, key)` is called in the unit that claimed a timer, and
    `lock_owner(tx, key)` before it is claimed: whoever steps an execution holds it and then clears its timers, so a timer
    that fires takes the two in the same order.
    """

    name: str
    service: str | None = None
    operations: Operations = field(default_factory=dict)
    polls: tuple[Poll, ...] = ()
    on_timer: Callable[[Tx, str], None] | None = None
    lock_owner: Callable[[Tx, str], None] | None = None


Rooms = Mapping[str, Room]
