"""Machines of other shapes: payloads of 256 KB, a Parallel of 40 branches, a Map over 1,000 items. Alone and under load."""

import asyncio
import time
from typing import Any

from bench.load import Connection, Load, median, node
from bench.table import Row, show
from tasuki.values.documents import dumps, loads

CONNECTIONS = 8


def _chain(name: str, *states: dict[str, Any]) -> dict[str, Any]:
    """Put states one behind another."""
    named = {f"{name}{n}": {**state, "Next": f"{name}{n + 1}"} for n, state in enumerate(states)}
    last = named[f"{name}{len(states) - 1}"]
    del last["Next"]
    return {"StartAt": f"{name}0", "States": {**named, f"{name}{len(states) - 1}": {**last, "End": True}}}


_PASS = {"Type": "Pass", "Parameters": {"v.$": "$"}}
SHAPES: dict[str, tuple[dict[str, Any], Any, int]] = {
    "ten Pass with 256 KB": (
        _chain("P", *({"Type": "Pass", "Parameters": {"n": n, "big.$": "$.big"}} for n in range(10))),
        {"big": ["x" * 1000] * 254},
        10,
    ),
    "a Parallel of 40": (
        _chain("A", {"Type": "Parallel", "Branches": [_chain(f"B{n}-", _PASS, _PASS) for n in range(40)]}),
        {},
        81,
    ),
    "a Map of 1,000": (_chain("M", {"Type": "Map", "ItemProcessor": _chain("I", _PASS)}), list(range(1000)), 1001),
}
"""What: the machine, its input, and how many states an execution enters."""


async def _measure_one(load: Load, what: str) -> list[Row]:
    definition, given, states = SHAPES[what]
    role = "arn:aws:iam::000000000000:role/bench"
    asked = {"name": f"s{len(what)}", "definition": dumps(definition), "roleArn": role}
    machine = (await load.connections[0].call("states", "CreateStateMachine", asked))["stateMachineArn"]
    text, took = dumps(given), []

    async def run(connection: Connection, number: int) -> None:  # noqa: ARG001
        began = time.perf_counter()
        started = await connection.call("states", "StartExecution", {"stateMachineArn": machine, "input": text})
        while True:
            seen = await connection.call("states", "DescribeExecution", started)
            if seen["status"] != "RUNNING":
                break
            await asyncio.sleep(0.005)
        assert seen["status"] == "SUCCEEDED", seen
        assert loads(seen["output"]), seen
        took.append(time.perf_counter() - began)

    for number in range(3):
        await run(load.connections[0], number)
    alone = min(took)
    took.clear()
    span = await load.spread(40, run)
    return [
        Row(f"{what}: CPU of an execution", span.cpu_s / span.count * 1000, "ms"),
        Row(f"{what}: states", span.rate * states, "states/s"),
        Row(f"{what}: alone, start to seen done", alone * 1000, "ms"),
        Row(f"{what}: under load, median", median(took) * 1000, "ms"),
    ]


async def measure(load: Load) -> list[Row]:
    """Run all shapes on a node."""
    await load.connect(CONNECTIONS)
    return [row for what in SHAPES for row in await _measure_one(load, what)]


def rows() -> list[Row]:
    """Measure on a node of our own."""
    with node() as load:
        return asyncio.run(measure(load))


if __name__ == "__main__":
    show("Machines of other shapes", rows())
