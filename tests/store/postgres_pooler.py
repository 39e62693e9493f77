"""A pooler in miniature, in transaction mode: each transaction of a client gets whichever server connection is free.

Just enough of the protocol: who comes is let in, and from each first message on a server connection is lent until the server says
that no transaction is open. The one that was used longest ago is lent first, as a busy pooler would. In session mode a client keeps
the first one it gets.
"""

import asyncio
import struct
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

_SSL_ASKED, _GSS_ASKED, _CANCEL = 80877103, 80877104, 80877102
_LET_IN = b"R\0\0\0\x08\0\0\0\0" + b"K\0\0\0\x0c" + struct.pack("!ii", 7, 7)
_READY = b"Z\0\0\0\x05I"


class Line:
    """A server connection: what the server says goes to the client that has it on loan."""

    def __init__(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        self.target, self._source = target, source
        self.borrower: asyncio.StreamWriter | None = None
        self.stands: asyncio.Queue[bytes] = asyncio.Queue()
        """How things stand (in a transaction or not), said after each query and at each Sync."""

    async def pump(self) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                answer = await message_of(self._source)
                if self.borrower is not None:
                    self.borrower.write(answer)
                if answer[:1] == b"Z":
                    self.stands.put_nowait(answer)


class Pooler:
    """`keeps_settings`: whether clients' settings of a connection (search_path, ...) are passed on; most poolers drop them."""

    def __init__(self, url: str, *, mode: str = "transaction", size: int = 2, keeps_settings: bool = True) -> None:
        self._target = urlsplit(url)
        self._mode, self._size, self._keeps_settings = mode, size, keeps_settings
        self._free: asyncio.Queue[Line] = asyncio.Queue()
        self._made = 0
        self._lines: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._come, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        at = self._target
        self.url = f"postgresql://{at.username}@127.0.0.1:{port}{at.path}?{at.query}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        for line in self._lines:
            line.transport.abort()

    async def _come(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        self._lines.add(target)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._serve(source, target)
        target.close()

    async def _serve(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while True:
            greeting = await source.readexactly(int.from_bytes(await source.readexactly(4)) - 4)
            kind = int.from_bytes(greeting[:4])
            if kind == _CANCEL:
                return
            if kind not in {_SSL_ASKED, _GSS_ASKED}:
                break
            target.write(b"N")
        first = True
        line: Line | None = None
        while True:
            if first:  # what the server says of itself at the beginning is the client's to know
                line = await self._lend(greeting, target)
                first = False
                if self._mode == "transaction":
                    self._free.put_nowait(line)
                    line = None
            message = await message_of(source)
            if message[:1] == b"X":
                return
            line = line or await self._lend(greeting, None)
            await self._transaction(message, source, target, line)
            if self._mode == "transaction":
                self._free.put_nowait(line)
                line = None

    async def _transaction(
        self, message: bytes, source: asyncio.StreamReader, target: asyncio.StreamWriter, line: Line
    ) -> None:
        """Pass messages on until the server says that nothing is open."""
        line.borrower = target
        while True:
            line.target.write(message)
            if message[:1] in b"QS" and await line.stands.get() == _READY:
                line.borrower = None
                return
            message = await message_of(source)

    async def _lend(self, greeting: bytes, told: asyncio.StreamWriter | None) -> Line:
        if self._free.empty() and self._made < self._size:
            self._made += 1
            return await self._open(greeting, told)
        if told is not None:
            told.write(_LET_IN + _parameter("server_version", "15.0") + _parameter("client_encoding", "utf-8") + _READY)
        return await self._free.get()

    async def _open(self, greeting: bytes, told: asyncio.StreamWriter | None) -> Line:
        source, target = await asyncio.open_connection(self._target.hostname, self._target.port or 5432)
        self._lines.add(target)
        if not self._keeps_settings:
            words = greeting[4:].split(b"\0")
            kept = dict(zip(words[::2], words[1::2], strict=False))
            greeting = (
                greeting[:4] + b"".join(one + b"\0" + kept[one] + b"\0" for one in (b"user", b"database")) + b"\0"
            )
        target.write((len(greeting) + 4).to_bytes(4) + greeting)
        while True:
            answer = await message_of(source)
            if told is not None:
                told.write(_LET_IN[9:] if answer[:1] == b"K" else answer)
            if answer[:1] in b"ZE":
                break
        line = Line(source, target)
        self._tasks.add(asyncio.create_task(line.pump()))
        return line


def _parameter(name: str, value: str) -> bytes:
    body = name.encode() + b"\0" + value.encode() + b"\0"
    return b"S" + (len(body) + 4).to_bytes(4) + body


async def message_of(source: asyncio.StreamReader) -> bytes:
    head = await source.readexactly(5)
    return head + await source.readexactly(int.from_bytes(head[1:]) - 4)
