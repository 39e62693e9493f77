"""A request's body: read once, bounded in size and time.

Nearly every body is there when it is asked for, so a timer per request would cost more than it guards. One timer
looks after all bodies that are being read, a few times per time limit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tasuki.protocol.dispatch import ClientGone
from tasuki.protocol.faults import RequestTimeout, TooLarge

_LOOKS = 4
"""How often a body is looked at within its time limit."""


class Deadline:
    """Ends the reading of bodies that take too long."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._readers: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, task: "asyncio.Task[Any]") -> None:
        """Watch over `task` from now on."""
        loop = task.get_loop()
        self._readers[task] = loop.time() + self._timeout_s
        if self._timer is None:
            self._timer = loop.call_later(self._timeout_s / _LOOKS, self._look, loop)

    def end(self, task: "asyncio.Task[Any]") -> bool:
        """Stop watching; answer whether `task` was interrupted."""
        self._readers.pop(task, None)
        if task in self._late:
            self._late.discard(task)
            task.uncancel()
            return True
        return False

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for task in [task for task, until in self._readers.items() if until <= now]:
            del self._readers[task]
            self._late.add(task)
            task.cancel()
        self._timer = loop.call_later(self._timeout_s / _LOOKS, self._look, loop) if self._readers else None


class Body:
    """One request's body. `receive` is ASGI's."""

    __slots__ = ("_deadline", "_limit", "finished", "receive")

    def __init__(self, receive: Callable[[], Awaitable[Any]], limit: int, deadline: Deadline) -> None:
        self.receive = receive
        self.finished = False
        self._limit = limit
        self._deadline = deadline

    async def read(self, headers: Mapping[bytes, bytes]) -> bytes:
        """Answer the whole body. Raises `TooLarge`, `RequestTimeout`, or `ClientGone`."""
        length = headers.get(b"content-length")
        if length is None and b"transfer-encoding" not in headers:
            self.finished = True
            return b""
        if length is not None and (len(length) > 12 or not length.isdigit() or int(length) > self._limit):
            raise self._too_large()
        task = asyncio.current_task()
        assert task is not None, "a body is read in a task"
        self._deadline.begin(task)
        try:
            body = await self._rest()
        except asyncio.CancelledError:
            if self._deadline.end(task):
                raise RequestTimeout("The request's body did not arrive in time") from None
            raise
        except BaseException:
            self._deadline.end(task)
            raise
        self._deadline.end(task)
        return body

    async def _rest(self) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > self._limit:
                raise self._too_large()
            if not message.get("more_body", False):
                self.finished = True
                return b"".join([*chunks, chunk]) if chunks else chunk
            chunks.append(chunk)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"Request bodies are limited to {self._limit} bytes")
