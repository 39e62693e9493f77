"""A relay on loopback between a store and its server, which cuts connections at a COMMIT, or altogether, when a test says so."""

import asyncio
from contextlib import suppress
from typing import Literal, Self
from urllib.parse import urlsplit, urlunsplit

Cut = Literal["before", "after", "silent"]
COMMIT = b"COMMIT\x00"


class Relay:
    """`cut_at` COMMITs (counted down) lose their answer: cut *before* the server got it, *after* it did, or *silent*: the client
    is cut, and the server is not told, so that the transaction stays in progress.
    """

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.StreamWriter] = set()
        self._kept: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut: Cut = "after"
        self.cut_at = 0
        self.refuses = False
        self.answers = True
        self.cuts = 0

    @property
    def url(self) -> str:
        """The store's URL through the relay."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        at = self._target
        user = f"{at.username}@" if at.username else ""
        return urlunsplit((at.scheme, f"{user}127.0.0.1:{port}", at.path, at.query, ""))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._lines |= self._kept
        self.hang_up()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hang_up(self) -> None:
        """Cut all connections."""
        for line in tuple(self._lines):
            line.transport.abort()

    async def _serve(self, down_in: asyncio.StreamReader, down: asyncio.StreamWriter) -> None:
        if self.refuses:
            down.transport.abort()
            return
        up_in, up = await asyncio.open_connection(self._target.hostname, self._target.port or 5432)
        self._lines |= {down, up}
        for work in (self._ask(down_in, down, up), self._answer(up_in, down)):
            task = asyncio.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, source: asyncio.StreamReader, down: asyncio.StreamWriter, up: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                if self.cut_at and data.endswith(COMMIT):
                    self.cut_at -= 1
                    self.cuts += 1
                    if self.cut == "after":
                        up.write(data)
                        await up.drain()
                    down.transport.abort()
                    if self.cut == "silent":
                        self._lines.discard(up)
                        self._kept.add(up)
                        return
                    break
                up.write(data)
            up.close()  # in good order: what was written arrives

    async def _answer(self, source: asyncio.StreamReader, down: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                if self.answers and not down.is_closing():
                    down.write(data)
            down.close()
