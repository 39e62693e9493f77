"""Connections: what uvicorn leaves open is bounded here.

uvicorn reads a request's headers for as long as they take and as many as they are, and lets a silent connection
stay. `Wire` is its protocol with three bounds more: bytes of headers, time for headers, and (with `--dev`) whose
program the peer is. All three cost nothing per request: they act on connections and on headers that come in pieces.
"""

import asyncio
import logging
import os
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tasuki.protocol.http import Door, Limits, application
from tasuki.protocol.peer import uid_of

_log = logging.getLogger("tasuki.door")


def settings(door: Door, **options: Any) -> uvicorn.Config:
    """The configuration of a uvicorn server for this door. `options` go before ours."""
    ours: dict[str, Any] = {
        "host": door.config.host,
        "port": door.config.port,
        "http": connections(door.limits, dev=door.config.dev),
        "loop": "uvloop",
        "ws": "none",
        "lifespan": "off",
        "interface": "asgi3",
        # The peer is who it is; nobody stands in front of us and speaks for others.
        "proxy_headers": False,
        "server_header": False,
        "date_header": False,
        "access_log": False,
        "log_config": None,
        "backlog": 1024,
        "timeout_keep_alive": door.limits.keep_alive_s,
    }
    return uvicorn.Config(application(door), **{**ours, **options})


def connections(limits: Limits, *, dev: bool) -> type["Wire"]:
    """The protocol class with these limits; uvicorn makes one object of it per connection."""

    class Bounded(Wire):
        """A `Wire` that knows its limits."""

    Bounded.limits = limits
    Bounded.dev = dev
    return Bounded


class Wire(HttpToolsProtocol):
    """One connection."""

    limits: Limits = Limits()
    dev: bool = False

    _in_headers = True
    _pending = 0
    _chunk = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse other users' programs and the connection too many; start the clock for the first headers."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(b"503 Service Unavailable", "This node has too many connections")
            return
        if self.dev and self.client is not None and not _same_user(self.client, self.server):
            self._refuse(b"403 Forbidden", "With --dev this node serves only programs of the user it runs as")
            return
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to headers that have not ended yet."""
        if self.transport.is_closing():
            return
        self._chunk = len(data)
        super().data_received(data)
        if not self._in_headers or self.transport.is_closing():
            return
        self._pending += len(data)
        if self._pending > self.limits.header_bytes:
            self._refuse(b"431 Request Header Fields Too Large", "The headers are too large")
        elif self._deadline is None:
            self._arm()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_headers = True
        self._pending = 0

    def on_headers_complete(self) -> None:
        """The headers are there: from here the application bounds the request."""
        self._in_headers = False
        self._disarm()
        limit = self.limits.header_bytes
        if (
            self._pending + self._chunk > limit
            and sum(len(n) + len(v) for n, v in self.headers) + len(self.url) > limit
        ):
            self._refuse(b"431 Request Header Fields Too Large", "The headers are too large")
            raise ValueError("the headers are too large")  # ends the parser; see send_400_response
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Say that this was no HTTP, unless the connection has had its answer already."""
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def _arm(self) -> None:
        self._deadline = self.loop.call_later(self.limits.header_timeout_s, self._too_slow)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self._in_headers and not self.transport.is_closing():
            self._refuse(b"408 Request Timeout", "The request's headers did not arrive in time")

    def _refuse(self, status: bytes, text: str) -> None:
        body = text.encode()
        head = b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, len(body)) + body)
        self.transport.close()


def _same_user(peer: tuple[str, int], here: tuple[str, int | None] | None) -> bool:
    """Tell whether the peer's program is ours, root's, or of nobody that the system would name."""
    if here is None or here[1] is None:
        return True
    uid = uid_of(peer, (here[0], here[1]))
    if uid is None or uid in {os.getuid(), 0}:
        return True
    _log.warning("refused a connection of user id %d", uid)
    return False
