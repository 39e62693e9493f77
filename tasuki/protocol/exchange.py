"""One request and its answer on a connection: the ASGI side of `wire.Connection`."""

import asyncio
from http import HTTPStatus
from typing import Any, Protocol

STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
HIGH_WATER = 64 * 1024
"""Bytes of a body that wait for a reader before the connection stops reading."""
_GONE = {"type": "http.disconnect"}


class Line(Protocol):
    """What an exchange needs of its connection."""

    def write(self, answer: bytes) -> None:
        """Send bytes."""

    def more(self) -> None:
        """Read on."""

    def enough(self) -> None:
        """Read no further for now."""

    def answered(self, exchange: "Exchange") -> None:
        """The answer has been written."""

    async def writable(self) -> None:
        """Wait until the client has taken enough of what was written."""


class Exchange:
    """A request that is coming in, and the answer that will go out."""

    __slots__ = (
        "_buffer",
        "_complete",
        "_delivered",
        "_head",
        "_line",
        "_waiter",
        "done",
        "expects_continue",
        "gone",
        "keep_alive",
        "scope",
    )

    def __init__(self, line: Line, scope: dict[str, Any], *, keep_alive: bool, expects_continue: bool) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.expects_continue = expects_continue
        self.done = False
        self.gone = False
        self._line = line
        self._buffer = b""
        self._complete = False
        self._delivered = False
        self._head: Any = None
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, chunk: bytes) -> None:
        """More of the body has come."""
        if self.done:
            return
        self._buffer = self._buffer + chunk if self._buffer else chunk
        if len(self._buffer) > HIGH_WATER:
            self._line.enough()
        self._wake()

    def finish(self) -> None:
        """The body has ended."""
        self._complete = True
        self._wake()

    def hang_up(self) -> None:
        """The client has gone."""
        self.gone = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> dict[str, Any]:
        """ASGI's `receive`: the body as it comes, then, when there is no more, the client's leaving."""
        if self.expects_continue and not self._complete:
            self._line.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.expects_continue = False
        while not self.gone and not self.done:
            if not self._delivered and (self._buffer or self._complete):
                body, self._buffer = self._buffer, b""
                self._delivered = self._complete
                self._line.more()
                return {"type": "http.request", "body": body, "more_body": not self._complete}
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return _GONE

    async def send(self, message: Any) -> None:
        """ASGI's `send`. Head and body go out together: one packet, one system call."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        assert message["type"] == "http.response.body", message["type"]
        assert not message.get("more_body", False), "answers are written whole"
        assert not self.done, "an answer was written already"
        self.done = True
        self._wake()
        if self.gone:
            return
        parts = [STATUS_LINES[self._head["status"]]]
        for name, value in self._head["headers"]:
            parts += (name, b": ", value, b"\r\n")
            if name == b"connection" and value == b"close":
                self.keep_alive = False
        parts.append(b"\r\n" if self.keep_alive or (b"connection", b"close") in self._head["headers"] else _CLOSING)
        if self.scope["method"] != "HEAD":
            parts.append(message["body"])
        self._line.write(b"".join(parts))
        self._line.answered(self)
        await self._line.writable()


_CLOSING = b"connection: close\r\n\r\n"
