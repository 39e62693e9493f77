"""A duty that waits for a bell which never rings: the node that was to ring died between its commit and the bell."""

import asyncio

import pytest

from tasuki.runtime import loop
from tasuki.runtime.bell import Bell
from tasuki.testing import ManualClock
from tasuki.values.instant import Instant


class Deaf:
    """Nothing to do at first; later there is, and nobody rings."""

    name, topics = "deaf", ("work",)

    def __init__(self) -> None:
        self.looks = 0
        self.done = asyncio.Event()

    async def round(self) -> Instant | None:
        self.looks += 1
        if self.looks == 2:
            self.done.set()
        return None


@pytest.mark.parametrize("movable", [False, True])
def test_a_lost_ring_costs_latency_only(monkeypatch: pytest.MonkeyPatch, movable: bool) -> None:
    monkeypatch.setattr(loop, "LONGEST_NAP_S", 0.01)

    async def play() -> None:
        duty = Deaf()
        serving = asyncio.create_task(loop.Loop([duty], Bell(), ManualClock(), movable=movable).serve())
        await asyncio.wait_for(duty.done.wait(), 20)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(play())
