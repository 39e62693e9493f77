"""What the room does when time passes: ticks, and the end of groups.

A tick is one unit: what is planned is read, the tick after it is planned and given a timer, and then a delivery is posted, which
tries the target at once. They commit together, so a restart repeats nothing and loses nothing. Ticks that a node missed follow
one after the other, each with its own planned time, `SLICE` in a unit; what is too old by then the deliveries room gives up,
visibly (MaximumEventAgeInSeconds).
"""

from collections.abc import Mapping
from typing import Any

from tasuki.services.room import Poll
from tasuki.services.schedules import queries
from tasuki.services.schedules.deleting import delete_slice, forget
from tasuki.services.schedules.model import NAME, schedule_arn
from tasuki.services.schedules.plans import Plan
from tasuki.services.schedules.senders import deliver_to
from tasuki.services.switchboard import Ending, Switchboard
from tasuki.store.store import Tx
from tasuki.store.timers import set_timer
from tasuki.values.documents import loads
from tasuki.values.instant import Instant

SLICE = 50
"""Missed ticks of one schedule that fire in one unit."""


class Ticking:
    """Fires schedules, and hears of the end of their last ticks."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard

    def hold(self, tx: Tx, key: str) -> None:
        """Hold a schedule's plan before its timer is taken (`Room.lock_owner`)."""
        tx.lock(queries.HOLD_TICK, (int(key),))

    def fire(self, tx: Tx, key: str) -> None:
        """Post what is due of schedule `key`, and plan what comes next (`Room.on_timer`)."""
        schedule = int(key)
        row = tx.one(queries.FIRING, (schedule,))
        if row is None:
            return
        revision, anchor, tick, moment, last, account, region, group, name, text = row
        definition = loads(text)
        plan = Plan.of(definition, anchor)
        fired: list[tuple[Instant, Instant]] = []
        while tick is not None and moment <= tx.now and len(fired) < SLICE:
            fired.append((tick, moment))
            last, tick = tick, plan.next(tick)
            moment = plan.moment(tick, tx.chance)
        tx.run(queries.MOVE_ON, (tick, moment, last, schedule))
        if moment is not None:
            set_timer(tx, NAME, key, max(moment, tx.now))  # what was missed waits its turn behind what is due by now
        arn = schedule_arn(region, account, group, name)
        watcher = f"{NAME}:{schedule}.{revision}" if _ends(definition) and tick is None else None
        for planned, due in fired:
            self._switchboard.post(
                tx,
                deliver_to(
                    definition["Target"],
                    arn=arn,
                    account=account,
                    region=region,
                    tick=planned,
                    due=due,
                    trace=f"Root=1-{tx.now // 1000:08x}-{tx.chance.hex(24)}",
                    notice=tx.chance.uuid(),
                    watcher=watcher if planned == last else None,
                ),
            )

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:  # noqa: ARG002 - delivered or given up: it is over
        """Delete a schedule whose last tick is over (ActionAfterCompletion DELETE), unless one was planned since. `key`: `ID.REVISION`."""
        number, _, revision = key.partition(".")
        row = tx.one(queries.COMPLETED, (int(number), revision))
        if row is not None and _ends(loads(row[0])):
            forget(tx, int(number))


def _ends(definition: Mapping[str, Any]) -> bool:
    return bool(definition["ActionAfterCompletion"] == "DELETE")


def emptying() -> Poll:
    """Answer the poll that deletes the schedules of groups that are being deleted."""
    return Poll("schedules", ("schedules",), _look, _empty)


def _look(tx: Tx) -> Instant | None:
    return tx.now if tx.one(queries.DELETING) is not None else None


def _empty(tx: Tx) -> Instant | None:
    """Delete a slice of a group, and the group once it is empty."""
    tx.alone()
    row = tx.one(queries.DELETING)
    if row is None:
        return None
    group, account, region, name = row
    if delete_slice(tx, account, region, name) == 0:
        tx.run(queries.DELETE_GROUP, (group,))
    return tx.now
