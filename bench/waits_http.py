"""10,000 executions that wait: memory of each, CPU meanwhile, and how late their timers are.

Each waits for an instant of its own; they come a millisecond apart, in a row that begins when all have been started.
"""

import asyncio
import time
from datetime import UTC, datetime

from bench.load import Connection, Load, node, percentile
from bench.table import Row, show
from tasuki.values.documents import dumps

CONNECTIONS, EXECUTIONS, FIRST = 64, 10_000, 500
IDLE_S = 3.0


def definition() -> str:
    """Write the machine: a Wait and a Succeed."""
    wait = {"Type": "Wait", "TimestampPath": "$.until", "Next": "D"}
    return dumps({"StartAt": "W", "States": {"W": wait, "D": {"Type": "Succeed"}}})


async def measure(load: Load) -> list[Row]:
    """Start them all, look at the node while they wait, and ask each when it ended."""
    await load.connect(CONNECTIONS)
    role = "arn:aws:iam::000000000000:role/bench"
    asked = {"name": "waits", "definition": definition(), "roleArn": role}
    machine = (await load.connections[0].call("states", "CreateStateMachine", asked))["stateMachineArn"]
    until: dict[str, float] = {}
    begin = time.time()

    async def start(connection: Connection, number: int) -> None:
        moment = round(begin + number / 1000, 3)
        text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        given = {"stateMachineArn": machine, "input": dumps({"until": text})}
        until[(await connection.call("states", "StartExecution", given))["executionArn"]] = moment

    warm = await load.spread(FIRST, start)  # they end at once
    until.clear()
    before = load.memory_mib()
    begin = time.time() + EXECUTIONS / warm.rate * 1.5 + IDLE_S + 2
    started = await load.spread(EXECUTIONS, start)
    memory = (load.memory_mib() - before) * 1024 / EXECUTIONS
    cpu = load.cpu_s()
    await asyncio.sleep(IDLE_S)
    idle = (load.cpu_s() - cpu) / IDLE_S
    await asyncio.sleep(max(0.0, begin + EXECUTIONS / 1000 + 1 - time.time()))
    arns, late = list(until), []

    async def ask(connection: Connection, number: int) -> None:
        while True:
            seen = await connection.call("states", "DescribeExecution", {"executionArn": arns[number]})
            if seen["status"] != "RUNNING":
                break
            await asyncio.sleep(0.1)
        assert seen["status"] == "SUCCEEDED", seen
        late.append((seen["stopDate"] - until[arns[number]]) * 1000)

    await load.spread(EXECUTIONS, ask)
    return [
        Row("executions that wait", float(EXECUTIONS), "of them"),
        Row("started", started.rate, "/s"),
        Row("memory of each", memory, "KiB", at_most=1),
        Row("CPU while they wait", idle * 100, "% of a core", at_most=1),
        Row("timers late, 1,000 a second, median", percentile(late, 0.5), "ms"),
        Row("timers late, 1,000 a second, p99", percentile(late, 0.99), "ms", at_most=20),
    ]


def rows() -> list[Row]:
    """Measure on a node of our own."""
    with node() as load:
        return asyncio.run(measure(load))


if __name__ == "__main__":
    show("Executions that wait", rows())
