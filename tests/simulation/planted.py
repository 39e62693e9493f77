"""Bugs to plant between the rooms and the store: a statement that is skipped, done twice, or followed by another."""

from collections.abc import Callable, Sequence

import pytest

from tasuki.store.store import Params, Row, Tx
from tasuki.testing.simulation import grounds
from tasuki.testing.simulation.actions import furnish
from tasuki.testing.simulation.faults import Rates, WatchedTx
from tasuki.testing.simulation.invariants import CHEAP, LAST, QUIET, Invariant, check
from tasuki.testing.simulation.world import Violation, World

Deed = Callable[[Tx, str, Params], int | None]
"""Given a statement, do something else and answer how many rows it changed; None leaves it as it is."""


class Bugged(WatchedTx):
    """A `Tx` whose `run`, `one` and `many` pass by a deed first. `mute` are bells that never ring."""

    __slots__ = ("_deed", "_mute")

    def __init__(self, inner: Tx, deed: Deed, mute: tuple[str, ...]) -> None:
        super().__init__(inner)
        self._deed, self._mute = deed, mute

    def run(self, sql: str, params: Params = ()) -> int:
        done = self._deed(self._inner, sql, params)
        return done if done is not None else super().run(sql, params)

    def many(self, sql: str, rows: Sequence[Params]) -> None:
        for row in rows:
            if self._deed(self._inner, sql, row) is None:
                super().many(sql, [row])

    def one(self, sql: str, params: Params = ()) -> Row | None:
        found = super().one(sql, params)
        self._deed(self._inner, sql, params)
        return found

    def ring(self, topic: str, times: int = 1) -> None:
        if topic not in self._mute:
            super().ring(topic, times)


def bug(deed: Deed = lambda _tx, _sql, _params: None, *, mute: tuple[str, ...] = ()) -> Callable[[Tx], Tx]:
    return lambda tx: Bugged(tx, deed, mute)


def skipped(*statements: str) -> Callable[[Tx], Tx]:
    """Statements that say they were done and were not."""
    return bug(lambda _tx, sql, _params: 1 if sql in statements else None)


FAIR = Rates(*(0.0 for _ in Rates.__dataclass_fields__))


def sql(world: World, statement: str, *params: object) -> None:
    world.node().unit(lambda tx: tx.run(statement, params))


def finds(invariant: Invariant | None, plant: Callable[[World], None]) -> None:
    """See that an invariant (None: no one) finds what is wrong in a house where nothing was."""
    world = World(1, grounds.memory, FAIR, nodes=1)
    try:
        furnish(world)
        check(world, CHEAP + QUIET + LAST)
        plant(world)
        world.counted = None
        if invariant is None:
            check(world, CHEAP + QUIET)
            return
        with pytest.raises(Violation, match=invariant.__name__.replace("_", " ")):
            invariant(world)
    finally:
        world.close()
