"""Wake-ups. Losing one costs latency, never correctness: whoever waits also knows when to look again.

Two kinds of listeners: *subscribers* (polls) are woken at every ring of their topic; *waiters* (long polls) take
turns, first come first served: a ring for k messages wakes k of them. A ring of EVERYTHING wakes them all: the clock was
moved, or rings of other nodes were lost, and nobody knows which.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable

EVERYTHING = "clock"
"""The topic that concerns everybody; polls subscribe to it, too."""


class Bell:
    """All topics of one node. Lives on the loop thread."""

    def __init__(self) -> None:
        self._subscribers: defaultdict[str, list[asyncio.Event]] = defaultdict(list)
        self._waiters: dict[str, deque[asyncio.Future[bool]]] = {}
        self.closed = False
        """The node ends: nobody waits any more."""

    def subscribe(self, topics: tuple[str, ...]) -> asyncio.Event:
        """Answer an event that is set at every ring of any of `topics`; the owner clears it."""
        event = asyncio.Event()
        for topic in topics:
            self._subscribers[topic].append(event)
        return event

    def ring(self, topic: str, times: int = 1) -> None:
        """Wake all subscribers of `topic` and its first `times` waiters; at EVERYTHING all waiters there are."""
        for event in self._subscribers.get(topic, ()):
            event.set()
        if topic == EVERYTHING:
            self.wake()
            return
        waiters = self._waiters.get(topic)
        while waiters and times > 0:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(True)
                times -= 1
        if waiters is not None and not waiters:
            del self._waiters[topic]

    def wake(self) -> None:
        """Wake all waiters, of every topic, and no subscriber: the clock was moved, and whoever is due knows it otherwise."""
        for everyone in self._waiters.values():
            _wake(everyone, True)
        self._waiters.clear()

    async def wait(self, topic: str, timeout_s: float | None) -> bool:
        """Wait in turn for a ring of `topic`; False when the time is up first, or the bell is closed."""
        if self.closed:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(topic, deque()).append(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                return await waiter
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.ring(topic)  # woken, and gone before it could look: the next one's turn
            raise
        finally:
            queue = self._waiters.get(topic)
            if queue is not None and waiter in queue:
                queue.remove(waiter)
                if not queue:
                    del self._waiters[topic]

    def close(self) -> None:
        """Send all waiters away, and who comes later too."""
        self.closed = True
        for waiters in self._waiters.values():
            _wake(waiters, False)

    def waiting(self, topic: str) -> int:
        """Answer how many wait for `topic` (for the tests and `doctor`)."""
        return len(self._waiters.get(topic, ()))


def _wake(waiters: Iterable[asyncio.Future[bool]], answer: bool) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(answer)
