"""How the same work goes on SQLite, and on one PostgreSQL with 1, 2 and 4 nodes: figures, ratios, and who is busy.

Needs a PostgreSQL server: `--server postgresql://user@127.0.0.1:5432/database` (a schema of its own is made and dropped), or
leave it out, and the tests' own finder looks for one (tests/postgres.py). On one machine all share its cores: the
ratio to one node then says what the nodes cost, not what a second machine would bring; the CPU columns say that.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil

from bench.load import Connection
from bench.machines_http import ITEMS, JSONPATH
from tasuki.cli.own_node import OwnNode
from tasuki.values.documents import dumps, loads
from tests.postgres import drop_schema, in_schema, new_schema, server

Work = Callable[[Connection, int], Awaitable[None]]

CONNECTIONS = 32
BODY = "x" * 100
QUEUES = 4
SENDS, BATCHES, EXECUTIONS = 6_000, 1_000, 400
WAITERS, WAITS = 600, 5
"""Executions that wait a second so many times: a unit for each wait, which is what tasks and callbacks cost too."""


@dataclass
class Town:
    """Nodes on one store, and connections spread over them."""

    nodes: list[OwnNode]
    connections: list[Connection]

    def node_cpu_s(self) -> float:
        """CPU seconds of all nodes."""
        return sum(_cpu_s(psutil.Process(node.pid)) for node in self.nodes)


def _cpu_s(process: psutil.Process) -> float:
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
    return total


def database_cpu() -> dict[tuple[int, float], float]:
    """CPU seconds of each PostgreSQL process of this machine that lives now, by its id and start."""
    found = {}
    for process in psutil.process_iter(["name"]):
        if process.info["name"] == "postgres":
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                found[process.pid, process.create_time()] = times.user + times.system
    return found


def database_cpu_s(before: dict[tuple[int, float], float]) -> float:
    """CPU seconds that PostgreSQL spent since, at least: what a process spent that ended meanwhile nobody knows."""
    return sum(spent - before.get(process, 0.0) for process, spent in database_cpu().items())


@contextmanager
def town(count: int, store: str | None) -> Iterator[list[OwnNode]]:
    """Start `count` nodes on one store, and end them."""
    with tempfile.TemporaryDirectory(prefix="tasuki-scaling-") as folder, contextlib.ExitStack() as stack:
        options = () if store is None else ("--store", store)
        nodes = [stack.enter_context(OwnNode(Path(folder) / f"node-{n}", options=options)) for n in range(count)]
        yield nodes


@dataclass(frozen=True)
class Figure:
    """What one stretch of work came to."""

    what: str
    rate: float
    node_us: float
    database_us: float


async def measure(nodes: list[OwnNode]) -> list[Figure]:
    """Do the same work through whatever nodes there are."""
    ports = [node.port for node in nodes]
    connections = [await Connection(ports[n % len(ports)]).open() for n in range(CONNECTIONS)]
    here = Town(nodes, connections)
    first = connections[0]
    urls: list[str] = [
        (await first.call("sqs", "CreateQueue", {"QueueName": f"q{n}"}))["QueueUrl"] for n in range(QUEUES)
    ]
    role = "arn:aws:iam::000000000000:role/bench"
    wanted = {"name": "bench", "definition": JSONPATH.definition(), "roleArn": role}
    machine = (await first.call("states", "CreateStateMachine", wanted))["stateMachineArn"]

    async def stretch(what: str, count: int, each: int, work: Work) -> Figure:
        numbers = iter(range(count))

        async def serve(connection: Connection) -> None:
            for number in numbers:
                await work(connection, number)

        nodes_before, database_before, began = here.node_cpu_s(), database_cpu(), time.perf_counter()
        await asyncio.gather(*(serve(connection) for connection in connections))
        seconds = time.perf_counter() - began
        done = count * each
        node_us = (here.node_cpu_s() - nodes_before) / done * 1e6
        return Figure(what, done / seconds, node_us, database_cpu_s(database_before) / done * 1e6)

    def queue(number: int) -> str:
        return urls[number % QUEUES]

    async def send(connection: Connection, number: int) -> None:
        await connection.call("sqs", "SendMessage", {"QueueUrl": queue(number), "MessageBody": BODY})

    async def send_one_queue(connection: Connection, _: int) -> None:
        await connection.call("sqs", "SendMessage", {"QueueUrl": urls[0], "MessageBody": BODY})

    async def send_ten(connection: Connection, number: int) -> None:
        entries = [{"Id": str(n), "MessageBody": BODY} for n in range(10)]
        await connection.call("sqs", "SendMessageBatch", {"QueueUrl": queue(number), "Entries": entries})

    async def take_ten(connection: Connection, number: int) -> None:
        url = queue(number)
        got = await connection.call("sqs", "ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})
        entries = [{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(got.get("Messages", ()))]
        if entries:
            await connection.call("sqs", "DeleteMessageBatch", {"QueueUrl": url, "Entries": entries})

    async def execute(connection: Connection, number: int) -> None:
        given = dumps({"id": number, "items": list(range(ITEMS))})
        arn = (await connection.call("states", "StartExecution", {"stateMachineArn": machine, "input": given}))[
            "executionArn"
        ]
        while True:
            seen = await connection.call("states", "DescribeExecution", {"executionArn": arn})
            if seen["status"] != "RUNNING":
                break
            await asyncio.sleep(0.005)
        assert seen["status"] == "SUCCEEDED", seen
        assert loads(seen["output"]).items() >= JSONPATH.answer(number).items(), seen

    waits = {
        f"W{n}": {"Type": "Wait", "Seconds": 1, "Next": f"W{n + 1}" if n < WAITS - 1 else "End"} for n in range(WAITS)
    }
    waiting = {"StartAt": "W0", "States": {**waits, "End": {"Type": "Succeed"}}}
    wanted = {"name": "waits", "definition": dumps(waiting), "roleArn": role}
    patient = (await first.call("states", "CreateStateMachine", wanted))["stateMachineArn"]
    running: list[str] = []

    async def begin(connection: Connection, _: int) -> None:
        answer = await connection.call("states", "StartExecution", {"stateMachineArn": patient, "input": "{}"})
        running.append(answer["executionArn"])

    async def end(connection: Connection, _: int) -> None:
        arn = running.pop()
        while True:
            if (await connection.call("states", "DescribeExecution", {"executionArn": arn}))["status"] != "RUNNING":
                break
            await asyncio.sleep(0.2)

    await stretch("warm", 1_000, 1, send)
    await stretch("warm", 50, 33, execute)
    figures = [
        await stretch("single sends, 4 queues", SENDS, 1, send),
        await stretch("single sends, one queue", SENDS // 2, 1, send_one_queue),
        await stretch("batched sends", BATCHES, 10, send_ten),
        await stretch("batched receive + delete", BATCHES, 10, take_ten),
        await stretch("state transitions (33 a run)", EXECUTIONS, 33, execute),
    ]
    nodes_before, database_before, began = here.node_cpu_s(), database_cpu(), time.perf_counter()
    await stretch("start", WAITERS, 1, begin)
    await stretch("end", WAITERS, 1, end)
    done, seconds = WAITERS * WAITS, time.perf_counter() - began
    node_us, database_us = (
        (here.node_cpu_s() - nodes_before) / done * 1e6,
        database_cpu_s(database_before) / done * 1e6,
    )
    figures.append(Figure(f"waits of 1 s ({WAITERS} at once)", done / seconds, node_us, database_us))
    for connection in connections:
        await connection.close()
    return figures


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", help="a PostgreSQL server with a database")
    parser.add_argument("--nodes", default="1,2,4", help="how many nodes, one run each")
    parser.add_argument("--no-sqlite", action="store_true", help="leave SQLite out")
    asked = parser.parse_args()
    runs: list[tuple[str, list[Figure]]] = []
    if not asked.no_sqlite:
        with town(1, None) as nodes:
            runs.append(("SQLite, 1 node", asyncio.run(measure(nodes))))
    base = asked.server or server()
    for count in [int(one) for one in asked.nodes.split(",")]:
        schema = new_schema()
        url = in_schema(base, schema)
        try:
            with town(count, url) as nodes:
                runs.append((f"PostgreSQL, {count} node{'s' if count > 1 else ''}", asyncio.run(measure(nodes))))
        finally:
            drop_schema(base, schema)
    one = {figure.what: figure.rate for name, figures in runs if name.endswith(", 1 node") for figure in figures}
    print(f"\n{'':24} {'':30} {'per second':>11} {'of 1 node':>10} {'node CPU':>10} {'database CPU, at least':>23}")
    for name, figures in runs:
        for figure in figures:
            ratio = figure.rate / one[figure.what] if figure.what in one else 1.0
            print(
                f"{name:24} {figure.what:30} {figure.rate:11,.0f} {ratio:9.2f}x {figure.node_us:7.0f} us {figure.database_us:20.0f} us"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
