"""Connections: HTTP/1.1 over httptools, served by uvicorn, with every bound of `Limits` kept.

::

    silent ──first byte──> headers ──complete──> exchange (body, answer) ──answered──> idle ──next byte──> headers
       │ header_timeout       │ header_timeout, header_bytes    │ body_timeout, body_bytes    │ keep_alive
       └──────> 408           └──────> 408, 431                 └──> 408, 413 (application)   └──> closed

uvicorn's own protocol class bounds neither time nor size of headers and writes an answer in two pieces; this one is
the same plug (`http=`) with that mended, and costs half. Requests that a client sends ahead (pipelining) wait for
the answer before theirs, and there may be few of them.
"""

import asyncio
import logging
import os
from collections import deque
from typing import Any

import httptools
import uvicorn

from tasuki.protocol.exchange import STATUS_LINES, Exchange
from tasuki.protocol.http import Door, Limits, application
from tasuki.protocol.peer import NOBODY, Address, uid_of

_log = logging.getLogger("tasuki.door")
_AHEAD_MAX = 64
"""Requests that may be sent ahead of the answer to the first."""


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
        "timeout_keep_alive": int(door.limits.keep_alive_s),
    }
    return uvicorn.Config(application(door), **{**ours, **options})


def connections(limits: Limits, *, dev: bool) -> type["Connection"]:
    """The protocol class with these limits; uvicorn makes one object of it per connection."""

    class Bounded(Connection):
        """A `Connection` that knows its limits."""

    Bounded.limits = limits
    Bounded.dev = dev
    return Bounded


class Connection(asyncio.Protocol):
    """One connection. uvicorn calls the constructor and `shutdown`, the loop and httptools the rest."""

    limits: Limits = Limits()
    dev: bool = False

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Any,
        app_state: dict[str, Any],  # noqa: ARG002 - part of uvicorn's plug
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self._app = config.loaded_app
        self._server = server_state
        self._loop = _loop or asyncio.get_running_loop()
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: Any = None
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        self._in_headers = True
        self._pending = self._chunk = 0
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._coming: Exchange | None = None
        self._serving: Exchange | None = None
        self._ahead: deque[Exchange] = deque()
        self._reading = True
        self._drained: asyncio.Future[None] | None = None

    # -- the loop calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuse other users' programs and the connection too many; start the clock for the first headers."""
        self._transport = transport
        self._server.connections.add(self)
        if len(self._server.connections) > self.limits.connections:
            self._refuse(503, "This node has too many connections")
            return
        if self.dev and not _same_user(transport.get_extra_info("peername"), transport.get_extra_info("sockname")):
            self._refuse(403, "With --dev this node serves only programs of the user it runs as")
            return
        self._since = self._loop.time()
        self._look_in(self.limits.header_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended makes no difference
        """Tell whoever waits that the client has gone."""
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        for exchange in (self._coming, self._serving, *self._ahead):
            if exchange is not None:
                exchange.hang_up()
        self._ahead.clear()
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse what came, and count what belongs to headers that have not ended yet."""
        if self._transport.is_closing():
            return
        self._chunk = len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, "This node speaks HTTP/1.1 only")
        except httptools.HttpParserError:
            if not self._transport.is_closing():
                self._refuse(400, "This is not an HTTP request")
        self._pending += len(data)
        limits = self.limits
        # A body may need twice its size in chunks; chunks of single bytes, or trailers without end, are an attack.
        limit = limits.header_bytes if self._in_headers else 2 * limits.body_bytes + limits.header_bytes
        if self._pending > limit and not self._transport.is_closing():
            self._refuse(431 if self._in_headers else 413, "The request is too large")

    def pause_writing(self) -> None:
        """The client takes its answers too slowly."""
        if self._drained is None:
            self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """The client has caught up, or is gone."""
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def shutdown(self) -> None:
        """The server stops: end the connection now, or after the answer in hand."""
        if self._serving is None:
            self._transport.close()
        else:
            self._serving.keep_alive = False

    # -- httptools calls ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_headers = True
        self._pending = 0
        self._since = self._loop.time()
        self._url = b""
        self._headers = []

    def on_url(self, url: bytes) -> None:
        """A piece of the request target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header. Trailers, which come after a body in chunks, are not taken for headers."""
        if not self._in_headers:
            return
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The headers are there: from here the application bounds the request."""
        self._in_headers = False
        limit = self.limits.header_bytes
        if self._pending + self._chunk > limit and self._size() > limit:
            self._refuse(431, "The headers are too large")
            raise ValueError("headers too large")  # ends the parser
        path, _, query = self._target().partition(b"?")
        scope = {
            "type": "http",
            "method": self._parser.get_method().decode("ascii"),
            "raw_path": path,
            "query_string": query,
            "headers": self._headers,
        }
        exchange = self._coming = Exchange(
            self,
            scope,
            keep_alive=self._parser.should_keep_alive(),
            expects_continue=any(name == b"expect" for name, _ in self._headers),
        )
        if self._serving is None:
            self._serve(exchange)
            return
        if len(self._ahead) >= _AHEAD_MAX:
            self._refuse(429, "Too many requests were sent ahead")
            raise ValueError("too many requests ahead")
        self._ahead.append(exchange)
        self.enough()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self._coming is not None:
            self._coming.feed(body)

    def on_message_complete(self) -> None:
        """The request has ended."""
        if self._coming is not None:
            self._coming.finish()
            self._coming = None

    def _size(self) -> int:
        return len(self._url) + sum(len(name) + len(value) for name, value in self._headers)

    def _target(self) -> bytes:
        """Path and query; the form with scheme and host (RFC 9112, 3.2.2) is cut down to them."""
        if self._url.startswith(b"/"):
            return self._url.partition(b"#")[0]
        parsed = httptools.parse_url(self._url)
        return (parsed.path or b"/") + (b"?" + parsed.query if parsed.query else b"")

    # -- exchanges call ----------------------------------------------------------------------------------------

    def write(self, answer: bytes) -> None:
        """Send bytes."""
        self._transport.write(answer)

    def enough(self) -> None:
        """Read no further for now."""
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def more(self) -> None:
        """Read on, unless somebody sends ahead."""
        if not self._reading and not self._ahead and not self._transport.is_closing():
            self._reading = True
            self._transport.resume_reading()

    async def writable(self) -> None:
        """Wait until the client has taken enough of what was written."""
        if self._drained is not None:
            await self._drained

    def answered(self, exchange: Exchange) -> None:
        """End the connection, or go on with the next request."""
        self._server.total_requests += 1
        self._serving = None
        if not exchange.keep_alive:
            self._transport.close()
            return
        self._since = self._loop.time()
        if self._ahead:
            self._serve(self._ahead.popleft())
        self.more()

    # -- inside ------------------------------------------------------------------------------------------------

    def _serve(self, exchange: Exchange) -> None:
        self._serving = exchange
        task = self._loop.create_task(self._run(exchange))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    async def _run(self, exchange: Exchange) -> None:
        try:
            await self._app(exchange.scope, exchange.receive, exchange.send)
        except Exception:  # noqa: BLE001 - nobody is above us to hear of it
            _log.exception("the door failed to answer")
        finally:
            if not exchange.done:
                self._transport.close()

    def _look_in(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """Now and then: has the client been silent for too long? One timer per connection, none per request."""
        if self._transport.is_closing():
            return
        idle = self._serving is None and not self._in_headers
        limit = self.limits.keep_alive_s if idle else self.limits.header_timeout_s
        left = self._since + limit - self._loop.time()
        if self._serving is not None:
            self._look_in(self.limits.header_timeout_s)
        elif left > 0:
            self._look_in(min(left, self.limits.header_timeout_s))
        elif idle:
            self._transport.close()
        else:
            self._refuse(408, "The request's headers did not arrive in time")

    def _refuse(self, status: int, text: str) -> None:
        """Say why, unless an answer is being made, and end the connection."""
        if self._serving is not None:
            self._serving.hang_up()
        body = text.encode()
        head = b"%bcontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self._transport.write(head % (STATUS_LINES[status], len(body)) + body)
        self._transport.close()


def _same_user(peer: Address | None, here: Address | None) -> bool:
    """Tell whether the peer's program is ours, root's, or of nobody that the system would name."""
    if not peer or not here:
        return True
    uid = uid_of((peer[0], peer[1]), (here[0], here[1]))
    if uid is None or uid in {os.getuid(), 0}:
        return True
    if uid == NOBODY:
        _log.debug("a connection was closed by its program before anybody could say whose it was")
    else:
        _log.warning("refused a connection of a program of user id %d: --dev serves only this node's own user", uid)
    return False
