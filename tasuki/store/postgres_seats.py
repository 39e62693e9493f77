"""The connections of a node that units sit on: opened when they are wanted, lent in turn, let go when nobody wants them.

asyncpg's own pool cleans a connection at each return and wraps it at each loan (a fifth of what a small unit costs), and who waits
in its line waits however long it takes. Ours lends to whoever came first, and nobody waits beyond an instant that he names.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tasuki.store.postgres_outcome import Origin
from tasuki.store.postgres_tx import Side

if TYPE_CHECKING:
    import asyncpg

IDLE_S = 60.0
"""A connection that nobody wanted for so long is closed: other nodes and programs need some, too."""


@dataclass(slots=True, eq=False)
class Seat:
    """A connection, its stripe of hot counters, and which server's history it stands in."""

    connection: "asyncpg.Connection[Any]"
    stripe: int
    origin: Origin
    side: Side = field(default_factory=Side)
    idle_since: float = 0.0


class NoSeat(Exception):
    """All connections were in use until the instant that was named."""


class Seats:
    """At most `size` seats. `connect` opens one, by the instant (of the loop's clock) that it is given."""

    def __init__(self, connect: Callable[[float], Awaitable[Seat]], size: int) -> None:
        self._connect, self._size = connect, size
        self._free: deque[Seat] = deque()
        self._line: deque[asyncio.Future[Seat | None]] = deque()
        self._all: set[Seat] = set()
        self._opening = 0

    async def take(self, until: float) -> Seat:
        """Answer a seat that is ours until we `give` it. Raises `NoSeat` at `until`, and what `connect` raises."""
        while True:
            while self._free:
                seat = self._free.pop()
                if not seat.connection.is_closed():
                    return seat
                self._all.discard(seat)
            if len(self._all) + self._opening < self._size:
                return await self._open(until)
            if (given := await self._wait(until)) is not None:
                return given

    def give(self, seat: Seat) -> None:
        """Take a seat back, whole or broken."""
        if seat.connection.is_closed():
            self._all.discard(seat)
            self._call(None)
        elif not self._call(seat):
            seat.idle_since = asyncio.get_running_loop().time()
            self._free.append(seat)
            if seat.idle_since - self._free[0].idle_since > IDLE_S:
                self._let_go(self._free.popleft())

    def close(self) -> None:
        """Let go of all of them, at once."""
        self._free.clear()
        for seat in tuple(self._all):
            self._let_go(seat)

    async def _open(self, until: float) -> Seat:
        self._opening += 1
        try:
            seat = await self._connect(until)
        except BaseException:
            self._opening -= 1
            self._call(None)
            raise
        self._opening -= 1
        self._all.add(seat)
        return seat

    async def _wait(self, until: float) -> Seat | None:
        """Wait for a seat, or for word (None) that one more may be opened."""
        turn: asyncio.Future[Seat | None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            async with asyncio.timeout_at(until):
                return await turn
        except BaseException as why:
            if turn.done() and not turn.cancelled():  # called, and gone in the same moment: the next one's turn
                seat = turn.result()
                if seat is None:
                    self._call(None)
                else:
                    self.give(seat)
            if isinstance(why, TimeoutError):
                raise NoSeat from None
            raise

    def _call(self, seat: Seat | None) -> bool:
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(seat)
                return True
        return False

    def _let_go(self, seat: Seat) -> None:
        self._all.discard(seat)
        seat.connection.terminate()
