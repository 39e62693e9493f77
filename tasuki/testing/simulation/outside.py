"""The world outside: a courier whose calls are answered from the seed, without a socket. All else of it is the house's own.

Answers are slow by way of slow duties: a node that takes longer than its lease finds its call made again by another.
"""

from collections.abc import Callable

from tasuki.runtime.courier import Courier
from tasuki.runtime.loop import LONGEST_NAP_S
from tasuki.services.buses import calls
from tasuki.services.buses import calls_requests as words
from tasuki.services.buses.calls import Call
from tasuki.services.switchboard import Ending
from tasuki.testing.house import House
from tasuki.testing.simulation.faults import Crash, FaultyStore, Weather
from tasuki.values.instant import SECOND, Instant
from tasuki.values.outbound import Outbound

NAP_MS = round(LONGEST_NAP_S * SECOND)
_STATUSES = (500, 429, 404, 401, 503)


class Outside(Courier):
    """A courier under the weather. `heard` is told of each call that was answered well, by its payload."""

    def __init__(self, house: House, weather: Weather, heard: Callable[[str, str], None], *, alone: bool) -> None:
        super().__init__(
            store=house.store,
            switchboard=house.switchboard,
            bell=house.bell,
            clock=house.clock,
            real_clock=house.clock,
            outbound=Outbound(),
            alone=alone,
            waits=True,
        )
        self._weather, self._heard = weather, heard

    async def round(self) -> Instant | None:
        """Do a round; while any node has a call in hand, look again after a nap, as the loop does: its lease may run out."""
        due = await super().round()
        nap = self._clock.now() + NAP_MS
        if (due is None or due > nap) and await self._store.look(calls.any_in_hand):
            return nap
        return due

    async def _called(self, call: Call) -> Ending:
        if call.destination is None or call.connection is None:
            return await super()._called(call)
        weather = self._weather
        if weather.strikes("call not answered", weather.rates.call_fails):
            return words.failed(words.TIMEOUT, "Timeout calling endpoint for API Destination.")
        status = 200
        if weather.strikes("call refused", weather.rates.call_fails):
            status = weather.chance.choice(_STATUSES)
        headers = {"Retry-After": "90"} if status == 429 else {}
        if status == 200:
            self._heard(call.key, call.payload)
        return words.answered(call, status, headers, b"", is_cut=False, real_now=self._real_clock.now())

    async def _settle(self) -> None:
        store = self._store
        if self._ended and self._weather.strikes("crash with a call in hand", self._weather.rates.call_crash):
            assert isinstance(store, FaultyStore)
            store.dead = True
            raise Crash(kept=False)
        await super()._settle()
