"""Nodes that share due timers: each fires its own at once, and those that another one has left lying."""

import asyncio
from itertools import pairwise

from tasuki.runtime.loop import TimerDuty
from tasuki.runtime.share import LATE_MS, Share
from tasuki.services.room import Room
from tasuki.store import timers
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Tx
from tasuki.testing import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.instant import Instant

KEYS = [f"k{number}" for number in range(40)]


class Street:
    """One store, and a duty of timers for each of some nodes."""

    def __init__(self, nodes: int) -> None:
        self.clock = ManualClock()
        self.store = SqliteStore(None, clock=self.clock, real_clock=self.clock, chance=Chance.seeded(1))
        self.fired: list[tuple[int, str]] = []
        self.shares = [Share(number, nodes) for number in range(nodes)]
        self.duties = [self._duty(number, share) for number, share in enumerate(self.shares)]

    def _duty(self, number: int, share: Share) -> TimerDuty:
        def on_timer(_tx: Tx, key: str) -> None:
            self.fired.append((number, key))

        return TimerDuty({"r": Room("r", on_timer=on_timer)}, self.store, self.clock, share)

    async def set(self, keys: list[str], due: Instant) -> None:
        def unit(tx: Tx) -> None:
            for key in keys:
                timers.set_timer(tx, "r", key, due)

        await self.store.write(unit)


def test_each_timer_is_one_nodes_and_it_fires_it_at_once() -> None:
    street = Street(3)

    async def play() -> None:
        now = street.clock.now()
        await street.set(KEYS, now)
        for duty in street.duties:
            await duty.round()
        assert sorted(key for _, key in street.fired) == sorted(KEYS)
        assert all(street.shares[node].takes(key) for node, key in street.fired)
        assert {node for node, _ in street.fired} == {0, 1, 2}

    asyncio.run(play())


def test_what_a_dead_node_leaves_lying_the_others_fire_a_little_later() -> None:
    street = Street(2)

    async def play() -> None:
        began = street.clock.now()
        await street.set(KEYS, began)
        await street.set(["later"], began + 200)
        alive = street.duties[0]
        await alive.round()
        mine = len(street.fired)
        assert 0 < mine < len(KEYS)
        assert await alive.round() == began + 200, "the nearest that may be ours"
        street.clock.set(began + LATE_MS)
        while await alive.round() is not None:
            street.clock.set(street.clock.now() + LATE_MS)
        assert {key for _, key in street.fired} == {*KEYS, "later"}
        assert all(node == 0 for node, _ in street.fired)

    asyncio.run(play())


def test_with_many_due_a_node_looks_past_those_of_others() -> None:
    street = Street(2)
    mine, theirs = ([f"{n}" for n in range(400) if share.takes(f"{n}")] for share in street.shares)

    async def play() -> None:
        await street.set(theirs[:40], street.clock.now())
        await street.set(mine[:1], street.clock.now())
        await street.duties[0].round()
        assert street.fired == [(0, mine[0])]

    asyncio.run(play())


def test_a_share_follows_who_lives() -> None:
    share = Share()
    assert share.takes("anything")
    share.settle("b", ["c", "a"])
    assert (share.index, share.count) == (1, 3)
    share.settle("b", [])
    assert (share.index, share.count) == (0, 1)
    all_of_them = [Share(index, 3) for index in range(3)]
    assert all(sum(one.takes(key) for one in all_of_them) == 1 for key in KEYS)
    assert all(one != two for one, two in pairwise(all_of_them))
