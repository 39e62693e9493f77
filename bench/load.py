"""A light signed client and a node to load: what the benchmarks over HTTP share.

boto3 costs 0.84 ms of CPU a call and would measure itself. This client keeps connections open, signs each request
(Signature Version 4, some 15 us) and reads answers by their Content-Length. Server CPU is read from the node's process
tree: on a shared machine it is steadier than throughput, so it is what we gate on.
"""

import asyncio
import hashlib
import hmac
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import psutil

from tasuki.cli.own_node import OwnNode
from tasuki.values.documents import dumpb, loads

TARGETS = {
    "sqs": ("AmazonSQS", "1.0", "sqs"),
    "states": ("AWSStepFunctions", "1.0", "states"),
    "ecs": ("AmazonEC2ContainerServiceV20141113", "1.1", "ecs"),
}


def _sign(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Connection:
    """One keep-alive connection, one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._host = f"127.0.0.1:{port}"
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._keys: dict[tuple[str, str], bytes] = {}

    async def open(self) -> Self:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        await self._writer.wait_closed()

    async def call(self, service: str, operation: str, given: dict[str, Any]) -> dict[str, Any]:
        """Call an operation; raise `RuntimeError` with the body when it is refused."""
        prefix, version, scope = TARGETS[service]
        status, body = await self._post(
            scope, f"{prefix}.{operation}", f"application/x-amz-json-{version}", dumpb(given)
        )
        if status != 200:
            raise RuntimeError(f"{operation}: {status} {body[:300]!r}")
        answer: dict[str, Any] = loads(body) if body else {}
        return answer

    async def request(self, service: str, method: str, path: str, given: dict[str, Any]) -> dict[str, Any]:
        """Call a REST-JSON operation."""
        status, body = await self._send(service, method, path, {"content-type": "application/json"}, dumpb(given))
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {body[:300]!r}")
        answer: dict[str, Any] = loads(body)
        return answer

    async def _post(self, scope: str, target: str, kind: str, body: bytes) -> tuple[int, bytes]:
        return await self._send(scope, "POST", "/", {"content-type": kind, "x-amz-target": target}, body)

    async def _send(self, scope: str, method: str, path: str, more: dict[str, str], body: bytes) -> tuple[int, bytes]:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        day = stamp[:8]
        headers = {"host": self._host, "x-amz-date": stamp, **more}
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        reach = f"{day}/us-east-1/{scope}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{reach}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = self._keys.get((day, scope))
        if key is None:
            key = _sign(_sign(_sign(_sign(b"AWS4test", day), "us-east-1"), scope), "aws4_request")
            self._keys[day, scope] = key
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        authorization = f"AWS4-HMAC-SHA256 Credential=test/{reach}, SignedHeaders={names}, Signature={signature}"
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"{method} {path} HTTP/1.1\r\n{head}authorization: {authorization}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        low = answer.lower()
        at = low.find(b"content-length:")
        length = int(low[at + 15 : low.index(b"\r\n", at)])
        return int(answer[9:12]), await self._reader.readexactly(length)


@dataclass
class Load:
    """A running node with connections to it."""

    port: int
    pid: int
    data: Path
    connections: list[Connection] = field(default_factory=list)

    async def connect(self, count: int) -> None:
        """Open connections until there are `count`."""
        while len(self.connections) < count:
            self.connections.append(await Connection(self.port).open())

    def cpu_s(self) -> float:
        """Answer the CPU seconds of the node and all below it."""
        node = psutil.Process(self.pid)
        total = 0.0
        for process in [node, *node.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
        return total

    def memory_mib(self) -> float:
        """Answer the node's resident memory."""
        return float(psutil.Process(self.pid).memory_info().rss) / 2**20

    async def spread(self, count: int, work: Callable[[Connection, int], Awaitable[None]]) -> "Span":
        """Do `work` `count` times over all connections, each taking the next number when it is free."""
        numbers = iter(range(count))

        async def serve(connection: Connection) -> None:
            for number in numbers:
                await work(connection, number)

        before, start = self.cpu_s(), time.perf_counter()
        await asyncio.gather(*(serve(connection) for connection in self.connections))
        return Span(count, time.perf_counter() - start, self.cpu_s() - before)


@dataclass(frozen=True)
class Span:
    """What a stretch of load took."""

    count: int
    seconds: float
    cpu_s: float

    @property
    def rate(self) -> float:
        """Per second."""
        return self.count / self.seconds

    @property
    def cpu_us(self) -> float:
        """Server CPU of each, in microseconds."""
        return self.cpu_s / self.count * 1e6


@contextmanager
def node(config: str = "") -> Iterator[Load]:
    """Start a node on fresh data, and end it."""
    with tempfile.TemporaryDirectory(prefix="tasuki-bench-") as folder:
        data = Path(folder)
        (data / "tasuki.toml").write_text(config)
        own = OwnNode(data)
        own.start()
        try:
            yield Load(own.port, own.pid, data)
        finally:
            own.stop()


def percentile(values: list[float], part: float) -> float:
    """Answer the value below which `part` of all lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def median(values: list[float]) -> float:
    """Answer the middle value."""
    return statistics.median(values)
