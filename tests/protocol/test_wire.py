"""The door behind a real uvicorn on a real socket: slow, broken and hostile clients harm nobody."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from tasuki.protocol import wire
from tasuki.protocol.http import Door, Limits
from tasuki.protocol.peer import NOBODY, ask, encode, find, read, uid_of
from tasuki.protocol.wire import settings
from tasuki.runtime.bell import Bell
from tasuki.values.config import Config
from tasuki.values.operations import NotYet, Operation
from tests.protocol.knocking import Knock, Script, StillClock, make_door, sign, turn

LIST = {"X-Amz-Target": "AmazonSQS.ListQueues"}
RECEIVE = {"X-Amz-Target": "AmazonSQS.ReceiveMessage"}


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def say(self, text: bytes) -> None:
        self.writer.write(text)

    async def hear(self) -> tuple[int, bytes]:
        """(status, body) of one answer; (0, b"") when the connection ended without one."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, b""
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        return int(head.split()[1]), await self.reader.readexactly(length)

    async def ended(self) -> bool:
        try:
            return not await self.reader.read(1)
        except ConnectionError:
            return True

    def close(self) -> None:
        self.writer.close()


class Served:
    def __init__(self, port: int) -> None:
        self.port = port

    async def connect(self) -> Connection:
        return Connection(*await asyncio.open_connection("127.0.0.1", self.port))

    def listing(self, body: bytes = b"{}") -> Knock:
        return sign("sqs", headers=LIST, body=body, host=f"127.0.0.1:{self.port}")

    async def still_serves(self) -> bool:
        line = await self.connect()
        line.say(raw(self.listing()))
        status, _ = await line.hear()
        line.close()
        return status == 200


def raw(request: Knock) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers)
    return f"{request.method} {request.path} HTTP/1.1\r\n{head}\r\n".encode() + request.body


def chunked(request: Knock, *chunks: bytes) -> bytes:
    request.headers = [pair for pair in request.headers if pair[0] != "content-length"]
    request.add("transfer-encoding", "chunked")
    request.body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    return raw(request)


def serve(
    story: Callable[[Served], Awaitable[None]], script: Script | None = None, *, dev: bool = False, **changes: Any
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    door: Door = make_door(script or Script(), config=Config(data=Path(), port=port, dev=dev), **changes)

    async def run() -> None:
        server = uvicorn.Server(settings(door, loop="none", timeout_graceful_shutdown=1))
        await_ready = asyncio.Event()
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup(sockets=[listener])
        await_ready.set()
        try:
            async with asyncio.timeout(15):
                await story(Served(port))
        finally:
            server.should_exit = True
            await server.shutdown(sockets=[listener])

    asyncio.run(run())


def test_a_request_is_served_and_the_connection_kept() -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        for _ in range(3):
            line.say(raw(it.listing()))
            assert await line.hear() == (200, b"{}")
        line.close()

    serve(story)


def test_headers_and_body_in_pieces() -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        for byte in raw(it.listing()):
            line.say(bytes([byte]))
            await turn()
        assert (await line.hear())[0] == 200
        line.close()

    serve(story)


def test_requests_sent_ahead_are_answered_in_order() -> None:
    script = Script()

    async def story(it: Served) -> None:
        line = await it.connect()
        line.say(b"".join(raw(it.listing(b'{"QueueNamePrefix":"%d"}' % n)) for n in range(20)))
        for _ in range(20):
            assert (await line.hear())[0] == 200
        line.close()

    serve(story, script)
    assert [request.input["QueueNamePrefix"] for request in script.seen] == [str(n) for n in range(20)]


def test_too_many_requests_sent_ahead_are_refused() -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        line.say(b"GET /_tasuki/health HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % it.port * 100)
        assert (await line.hear())[0] == 429
        assert await line.ended()
        line.close()
        assert await it.still_serves()

    serve(story)


def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        request = raw(it.listing(b'{"QueueNamePrefix":"a"}').add("expect", "100-continue"))
        head, _, body = request.partition(b"\r\n\r\n")
        line.say(head + b"\r\n\r\n")
        assert (await line.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 Continue")
        line.say(body)
        assert (await line.hear())[0] == 200
        line.close()

    serve(story)


def test_trailers_are_not_headers() -> None:
    script = Script()

    async def story(it: Served) -> None:
        line = await it.connect()
        request = chunked(it.listing(), b"{}")
        line.say(request[:-2] + b"x-amzn-trace-id: forged\r\nhost: evil\r\n\r\n")
        assert (await line.hear())[0] == 200
        line.close()

    serve(story, script)
    assert script.seen[0].trace is None


def test_trailers_without_end_are_bounded() -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        request = chunked(it.listing(), b"{}")
        line.say(request[:-2] + b"x: " + b"y" * 400_000)
        assert (await line.hear())[0] in {413, 400, 0}
        assert await line.ended()
        line.close()
        assert await it.still_serves()

    serve(story, limits=Limits(body_bytes=100_000))


def test_an_idle_connection_is_closed() -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        line.say(raw(it.listing()))
        assert (await line.hear())[0] == 200
        assert await line.ended()
        line.close()

    serve(story, limits=Limits(keep_alive_s=0.1, header_timeout_s=0.2))


def test_a_client_that_does_not_take_its_answers_harms_nobody() -> None:
    async def story(it: Served) -> None:
        deaf = await it.connect()
        for _ in range(20):
            deaf.say(raw(it.listing()))
        assert await it.still_serves()
        deaf.close()

    serve(story, Script(answers={"ListQueues": {"QueueUrls": ["x" * 1_000_000]}}))


def test_a_whole_url_as_target_is_cut_down() -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        text = "GET http://127.0.0.1:{0}/_tasuki/health HTTP/1.1\r\nhost: 127.0.0.1:{0}\r\n\r\n"
        line.say(text.format(it.port).encode())
        assert await line.hear() == (200, b'{"status":"ok"}')
        line.close()

    serve(story)


def test_chunks_are_taken() -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        line.say(chunked(it.listing(b'{"QueueNamePrefix":"a"}'), b'{"QueueName', b'Prefix":"a"}'))
        assert (await line.hear())[0] == 200
        line.close()

    serve(story)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 200_000 + b"\r\n\r\n", {431}),
        (b"GET / HTTP/1.1\r\nhost: x\r\n" + b"".join(b"x-%d: y\r\n" % n for n in range(20_000)), {431}),
        (b"GET /" + b"y" * 200_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n", {431}),
        (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", {403}),
        (b"GET / HTTP/1.1\r\n\r\n", {403}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400}),
        (b"NONSENSE\r\n\r\n", {400}),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n", {400, 403}),
    ],
)
def test_hostile_bytes_are_refused(text: bytes, status: set[int]) -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        line.say(text)
        assert (await line.hear())[0] in {*status, 0}
        line.close()
        assert await it.still_serves()

    serve(story)


def test_bad_chunks_end_the_connection_and_do_nothing() -> None:
    script = Script()

    async def story(it: Served) -> None:
        line = await it.connect()
        request = chunked(it.listing(), b"{}")
        line.say(request[: -len(b"2\r\n{}\r\n0\r\n\r\n")] + b"nonsense\r\n{}\r\n0\r\n\r\n")
        assert (await line.hear())[0] in {0, 400}
        assert await line.ended()
        line.close()
        assert not script.seen
        assert await it.still_serves()

    serve(story, script)


def test_chunks_without_end_are_bounded() -> None:
    async def story(it: Served) -> None:
        line = await it.connect()
        line.say(chunked(it.listing(), *[b"x" * 10_000] * 20))
        assert (await line.hear())[0] == 413
        line.close()
        assert await it.still_serves()

    serve(story, limits=Limits(body_bytes=100_000))


def test_slow_headers_time_out() -> None:
    async def story(it: Served) -> None:
        silent, slow = await it.connect(), await it.connect()
        slow.say(b"POST / HTTP/1.1\r\nhost: 127.0.0.1")
        assert (await slow.hear())[0] == 408
        assert (await silent.hear())[0] == 408
        assert await it.still_serves()
        slow.close()
        silent.close()

    serve(story, limits=Limits(header_timeout_s=0.5))


def test_a_slow_body_times_out_and_harms_nobody() -> None:
    script = Script()

    async def story(it: Served) -> None:
        line = await it.connect()
        request = raw(it.listing(b'{"QueueNamePrefix":"a"}'))
        line.say(request[:-5])
        assert await it.still_serves()
        status, body = await line.hear()
        assert (status, b"did not arrive in time" in body) == (408, True)
        assert await line.ended()
        line.close()

    serve(story, script, limits=Limits(body_timeout_s=0.5))
    assert len(script.seen) == 1


def test_a_client_that_leaves_amid_its_body_does_nothing() -> None:
    script = Script()

    async def story(it: Served) -> None:
        line = await it.connect()
        line.say(raw(it.listing(b'{"QueueNamePrefix":"a"}'))[:-5])
        await line.writer.drain()
        line.close()
        assert await it.still_serves()

    serve(story, script)
    assert len(script.seen) == 1


def test_a_client_that_leaves_amid_a_long_poll_gives_up_its_place() -> None:
    bell, clock, claims = Bell(), StillClock(), []
    waiting = NotYet("t", clock.now() + 20_000, None, {})

    def claim(_tx: Any, _request: Any) -> dict[str, Any]:
        claims.append(1)
        return {}

    async def story(it: Served) -> None:
        line = await it.connect()
        line.say(raw(sign("sqs", headers=RECEIVE, body=b'{"QueueUrl":"u"}', host=f"127.0.0.1:{it.port}")))
        while not bell.waiting("t"):
            await turn()
        line.close()
        while bell.waiting("t"):
            await turn()

    polls = {"sqs": {"ReceiveMessage": Operation("poll", claim, lambda _tx, _request: waiting)}}
    serve(story, bell=bell, clock=clock, operations=polls)
    assert not claims


def test_the_connection_too_many_is_refused() -> None:
    async def story(it: Served) -> None:
        first = await it.connect()
        first.say(raw(it.listing()))
        assert (await first.hear())[0] == 200
        second = await it.connect()
        assert (await second.hear())[0] == 503
        first.close()
        second.close()

    serve(story, limits=Limits(connections=1))


def test_dev_serves_no_other_user(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(it: Served) -> None:
        line = await it.connect()
        status, body = await line.hear()
        assert (status, b"user it runs as" in body) == (403, True)
        line.close()

    async def served(it: Served) -> None:
        assert await it.still_serves()

    monkeypatch.setattr(wire, "uid_of", lambda *_: os.getuid() + 4_242)
    serve(refused, dev=True)
    serve(served, dev=False)
    for uid in (os.getuid(), 0, None):
        monkeypatch.setattr(wire, "uid_of", lambda *_, uid=uid: uid)
        serve(served, dev=True)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells whose socket it is")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_system_tells_whose_socket_it_is(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with listener, socket.create_connection(listener.getsockname()[:2]) as client:
        accepted, peer = listener.accept()
        with accepted:
            assert uid_of(peer[:2], listener.getsockname()[:2]) == os.getuid()
            assert ask(peer[:2], listener.getsockname()[:2]) in {os.getuid(), None}
            assert read(peer[:2], listener.getsockname()[:2]) == os.getuid()
        assert uid_of(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
        assert client.getsockname()[1] == peer[1]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells whose socket it is")
def test_who_hangs_up_at_once_does_not_pass_for_root_and_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A closed socket has no owner, and the kernel names user 0 for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        client.sendall(b"POST / HTTP/1.1\r\n")
        client.close()
        accepted, peer = listener.accept()
        with accepted:
            assert uid_of(peer, listener.getsockname()) == NOBODY
            assert ask(peer, listener.getsockname()) in {NOBODY, None}
            assert read(peer, listener.getsockname()) == NOBODY
            assert not wire._same_user(peer, listener.getsockname())
            assert caplog.records == []


def test_the_systems_table_is_read() -> None:
    table = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:11D6 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0\n"
        "   1: 0100007F:D431 0100007F:11D6 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0\n"
        "   2: 0100007F:D432 0100007F:11D6 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0\n"
    )
    assert find(table, encode(("127.0.0.1", 0xD431)), encode(("127.0.0.1", 4566))) == 1001
    assert find(table, encode(("127.0.0.1", 0xD432)), encode(("127.0.0.1", 4566))) == NOBODY
    assert find(table, encode(("127.0.0.1", 1)), encode(("127.0.0.1", 4566))) is None
    assert encode(("::ffff:127.0.0.1", 1)) == encode(("127.0.0.1", 1))
    assert encode(("::1", 1)) == {"00000000000000000000000001000000:0001"}
