"""What the front door costs: CPU per request, from the ASGI call to the answer, with operations that do nothing.

    .venv/bin/python bench/protocol_door.py            # in process, each step apart, and over a socket
    .venv/bin/python bench/protocol_door.py --profile  # where the time goes

Requests are signed once by botocore and repeated; the signature is checked each time.
"""

import argparse
import asyncio
import cProfile
import pstats
import resource
import socket
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tasuki.protocol.call import Call
from tasuki.protocol.http import Door, application
from tasuki.protocol.model import Models
from tasuki.protocol.signature import Verifier, parse_authorization
from tasuki.protocol.wire import settings
from tasuki.runtime.bell import Bell
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.documents import dumpb
from tasuki.values.instant import Instant
from tasuki.values.operations import Operation, Principal, Request

KEY, SECRET, PORT = "test", "test", 4566
ANSWER = {"MessageId": "c0ffee00-0000-4000-8000-000000000000", "MD5OfMessageBody": "5d41402abc4b2a76b9719d911017c592"}
SEND = {
    "QueueUrl": f"http://127.0.0.1:{PORT}/000000000000/jobs",
    "MessageBody": dumpb({"jobId": "job-1", "version": "v1", "instance": "X-n101-k25", "seconds": 5}).decode(),
}


class RealClock:
    """The machine's clock."""

    def now(self) -> Instant:
        """Answer the present instant."""
        return time.time_ns() // 1_000_000


class IdleStore:
    """A store that keeps nothing."""

    async def write(self, unit: Any) -> Any:
        """Run the unit at once."""
        return unit(None)

    async def commit(self, unit: Any) -> Any:
        """Run the unit at once."""
        return unit(None)

    async def read(self, unit: Any) -> Any:
        """Run the unit at once."""
        return unit(None)

    async def look(self, unit: Any) -> Any:
        """Run the unit at once."""
        return unit(None)

    async def open(self) -> None:
        """Nothing to open."""

    def fail_pending(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing to close."""


def door(port: int = PORT) -> Door:
    """A front door before operations that do nothing."""

    def send(_tx: Any, _request: Request) -> dict[str, Any]:
        return ANSWER

    def machines(_tx: Any, _request: Request) -> dict[str, Any]:
        return {"executionArn": "arn:aws:states:us-east-1:000000000000:execution:m:e", "startDate": 1_700_000_000_123}

    return Door(
        config=Config(data=Path(), port=port),
        operations={
            "sqs": {"SendMessage": Operation("write", send)},
            "stepfunctions": {"StartExecution": Operation("write", machines)},
        },
        store=IdleStore(),
        bell=Bell(),
        clock=RealClock(),
        real_clock=RealClock(),
        chance=Chance.system(),
        credential=lambda key: (SECRET, Principal(key)) if key == KEY else None,
    )


def signed(target: str, service: str, body: bytes, port: int = PORT) -> list[tuple[bytes, bytes]]:
    """The headers that boto3 sends."""
    headers = {
        "X-Amz-Target": target,
        "Content-Type": "application/x-amz-json-1.0",
        "User-Agent": "Boto3/1.44.8 md/Botocore#1.44.8 ua/2.1 os/linux md/arch#x86_64 lang/python#3.11",
        "amz-sdk-invocation-id": "5f1f8a3c-0000-4000-8000-3b7c5d1f2a4e",
        "amz-sdk-request": "attempt=1",
    }
    request = AWSRequest("POST", f"http://127.0.0.1:{port}/", headers=headers, data=body)
    SigV4Auth(Credentials(KEY, SECRET), service, "us-east-1").add_auth(request)
    pairs = [(b"host", f"127.0.0.1:{port}".encode()), (b"accept-encoding", b"identity")]
    pairs += [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    return [*pairs, (b"content-length", str(len(body)).encode())]


def cpu() -> float:
    """CPU seconds of this process."""
    return time.process_time()


def in_process(target: str, service: str, given: dict[str, Any], rounds: int) -> float:
    """Microseconds of CPU per call of the application."""
    app = application(door())
    body = dumpb(given)
    headers = signed(target, service, body)
    answers: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    async def run() -> float:
        scope = {
            "type": "http",
            "method": "POST",
            "raw_path": b"/",
            "path": "/",
            "query_string": b"",
            "headers": headers,
        }
        for _ in range(200):
            await app(scope, receive, send)
        assert answers[0]["status"] == 200, answers
        began = cpu()
        for _ in range(rounds):
            await app(scope, receive, send)
        return (cpu() - began) / rounds * 1e6

    return asyncio.run(run())


def signature_alone(rounds: int) -> float:
    """Microseconds of CPU for reading and checking one signature."""
    body = dumpb(SEND)
    headers = dict(signed("AmazonSQS.SendMessage", "sqs", body))
    verifier, now = Verifier(), RealClock().now()
    call = Call("POST", b"/", b"", headers, body, "sqs", "")
    began = cpu()
    for _ in range(rounds):
        credential = parse_authorization(headers[b"authorization"])
        stamp = verifier.check_time(credential, headers, now)
        verifier.check(credential, SECRET, stamp, call)
    return (cpu() - began) / rounds * 1e6


def over_sockets(connections: int, rounds: int) -> tuple[float, float]:
    """(requests per second, server CPU microseconds per request) with a uvicorn in a thread of this process."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = uvicorn.Server(settings(door(port), loop="none"))
    started = threading.Event()
    stop: list[Any] = []
    spent: list[float] = []

    async def serve() -> None:
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup(sockets=[listener])
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        stop.append(lambda: loop.call_soon_threadsafe(done.set))
        began = time.thread_time()
        started.set()
        await done.wait()
        spent.append(time.thread_time() - began)
        await server.shutdown(sockets=[listener])

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    body = dumpb(SEND)
    head = b"".join(b"%b: %b\r\n" % pair for pair in signed("AmazonSQS.SendMessage", "sqs", body, port))
    raw = b"POST / HTTP/1.1\r\n" + head + b"\r\n" + body
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    began = time.perf_counter()
    for _ in range(rounds):
        for client in clients:
            client.sendall(raw)
        for client in clients:
            answer = b""
            while not answer.endswith(b"}"):
                answer += client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200"), answer
    took = time.perf_counter() - began
    for client in clients:
        client.close()
    stop[0]()
    thread.join()
    count = rounds * connections
    return count / took, spent[0] / count * 1e6


def models() -> None:
    """Print what the models cost in time and memory."""
    print(f"{'model':<16}{'ms':>8}{'MiB':>8}")
    for name in ("sqs", "stepfunctions", "ecs", "pipes", "lambda"):
        before, began = _resident(), time.perf_counter()
        service = Models({name: {}}).service(name)
        assert service is not None
        for action in service.names():
            service.action(action)
        print(f"{name:<16}{(time.perf_counter() - began) * 1e3:>8.1f}{(_resident() - before) / 1024:>8.1f}")


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.profile:
        with cProfile.Profile() as profile:
            in_process("AmazonSQS.SendMessage", "sqs", SEND, options.rounds)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
        return
    models()
    start = {"stateMachineArn": "arn:aws:states:us-east-1:000000000000:stateMachine:m", "input": "{}"}
    print(f"\n{'CPU per request':<48}{'us':>8}")
    print(f"{'signature alone':<48}{signature_alone(options.rounds):>8.1f}")
    print(
        f"{'SendMessage, application only':<48}{in_process('AmazonSQS.SendMessage', 'sqs', SEND, options.rounds):>8.1f}"
    )
    took = in_process("AWSStepFunctions.StartExecution", "states", start, options.rounds)
    print(f"{'StartExecution, application only':<48}{took:>8.1f}")
    rate, spent = over_sockets(16, options.rounds // 16)
    print(
        f"{'SendMessage, uvicorn and 16 connections':<48}{spent:>8.1f}   {rate:,.0f} requests/s with the client beside it"
    )


if __name__ == "__main__":
    main()
