"""A machine of 33 states (ten Pass, a Choice, an inline Map of twenty Pass, a Succeed), 500 times over 16 connections.

Full history, every reply flushed. The output and the length of the history of each execution are checked.
"""

import asyncio
import time
from typing import Any

from bench.load import Connection, Load, median, node
from bench.table import Row, show
from tasuki.values.documents import dumps, loads

CONNECTIONS, EXECUTIONS, STATES = 16, 500, 33


def definition() -> str:
    """Write the machine: every Pass builds a payload, the Choice compares twice."""
    states: dict[str, Any] = {
        f"P{n}": {
            "Type": "Pass",
            "Parameters": {"n": n, "id.$": "$.id"},
            "ResultPath": "$.last",
            "Next": f"P{n + 1}" if n < 9 else "C",
        }
        for n in range(10)
    }
    both = [{"Variable": "$.id", "NumericGreaterThanEquals": 0}, {"Variable": "$.items[19]", "IsPresent": True}]
    states["C"] = {"Type": "Choice", "Choices": [{"And": both, "Next": "M"}], "Default": "Bad"}
    item = {"X": {"Type": "Pass", "Parameters": {"v.$": "$"}, "End": True}}
    states["M"] = {
        "Type": "Map",
        "ItemsPath": "$.items",
        "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, "StartAt": "X", "States": item},
        "ResultPath": "$.out",
        "Next": "Done",
    }
    states["Done"] = {"Type": "Succeed"}
    states["Bad"] = {"Type": "Fail"}
    return dumps({"StartAt": "P0", "States": states})


async def measure(load: Load) -> list[Row]:
    """Run all measurements on a node."""
    await load.connect(CONNECTIONS)
    first = load.connections[0]
    role = "arn:aws:iam::000000000000:role/bench"
    machine = (
        await first.call("states", "CreateStateMachine", {"name": "bench", "definition": definition(), "roleArn": role})
    )["stateMachineArn"]
    arns: dict[int, str] = {}
    starts: list[float] = []

    async def start(connection: Connection, number: int) -> None:
        given = dumps({"id": number, "items": list(range(20))})
        began = time.perf_counter()
        answer = await connection.call("states", "StartExecution", {"stateMachineArn": machine, "input": given})
        starts.append(time.perf_counter() - began)
        arns[number] = answer["executionArn"]

    async def finish(connection: Connection, number: int) -> None:
        while True:
            seen = await connection.call("states", "DescribeExecution", {"executionArn": arns[number]})
            if seen["status"] != "RUNNING":
                break
            await asyncio.sleep(0.005)
        assert seen["status"] == "SUCCEEDED", seen
        assert loads(seen["output"])["out"] == [{"v": n} for n in range(20)], seen

    await load.spread(50, start)
    await load.spread(50, finish)
    arns.clear()
    starts.clear()
    before, began = load.cpu_s(), time.perf_counter()
    await load.spread(EXECUTIONS, start)
    await load.spread(EXECUTIONS, finish)
    seconds, cpu = time.perf_counter() - began, load.cpu_s() - before
    page = await first.call("states", "GetExecutionHistory", {"executionArn": arns[0], "maxResults": 1000})
    entered = sum(1 for event in page["events"] if event["type"].endswith("StateEntered"))
    assert entered == STATES, entered
    alone: list[float] = []
    for number in range(EXECUTIONS, EXECUTIONS + 30):
        began = time.perf_counter()
        await start(first, number)
        await finish(first, number)
        alone.append(time.perf_counter() - began)
    return [
        Row("states", EXECUTIONS * STATES / seconds, "states/s", at_least=20_000),
        Row("an execution of 33 states, server CPU", cpu / EXECUTIONS * 1000, "ms each", at_most=1.7),
        Row("events in its history", float(len(page["events"])), "events"),
        Row("StartExecution under load, median", median(starts) * 1000, "ms"),
        Row("one alone, start to seen done, median", median(alone) * 1000, "ms", at_most=15),
    ]


def rows() -> list[Row]:
    """Measure on a node of our own."""
    with node() as load:
        return asyncio.run(measure(load))


if __name__ == "__main__":
    show("Machines over HTTP", rows())
