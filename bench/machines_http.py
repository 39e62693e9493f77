"""A machine of 33 states (ten Pass, a Choice, an inline Map of twenty Pass, a Succeed), 500 times over 16 connections.

In JSONPath and in JSONata. Full history, every reply flushed. The output and the length of the history of each execution
are checked.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bench.load import Connection, Load, median, node
from bench.table import Row, show
from tasuki.values.documents import dumps, loads

CONNECTIONS, EXECUTIONS, STATES = 16, 500, 33
ITEMS = 20


@dataclass(frozen=True)
class Language:
    """The machine in a query language: its passes, its Choice, its Map, what it must answer, and how fast."""

    name: str
    passing: Callable[[int], dict[str, Any]]
    rule: dict[str, Any]
    mapping: dict[str, Any]
    each: dict[str, Any]
    answer: Callable[[int], dict[str, Any]]
    """What an execution's output must hold, by its number."""
    states_a_second: float
    cpu_ms: float | None = None

    def definition(self) -> str:
        """Write the machine."""
        states: dict[str, Any] = {
            f"P{n}": {"Type": "Pass", **self.passing(n), "Next": f"P{n + 1}" if n < 9 else "C"} for n in range(10)
        }
        states["C"] = {"Type": "Choice", "Choices": [{**self.rule, "Next": "M"}], "Default": "Bad"}
        item = {"StartAt": "X", "States": {"X": {"Type": "Pass", **self.each, "End": True}}}
        states["M"] = {
            "Type": "Map",
            "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, **item},
            **self.mapping,
            "Next": "Done",
        }
        states["Done"] = {"Type": "Succeed"}
        states["Bad"] = {"Type": "Fail"}
        return dumps({"QueryLanguage": self.name, "StartAt": "P0", "States": states})


JSONPATH = Language(
    "JSONPath",
    lambda n: {"Parameters": {"n": n, "id.$": "$.id"}, "ResultPath": "$.last"},
    {"And": [{"Variable": "$.id", "NumericGreaterThanEquals": 0}, {"Variable": "$.items[19]", "IsPresent": True}]},
    {"ItemsPath": "$.items", "ResultPath": "$.out"},
    {"Parameters": {"v.$": "$"}},
    lambda number: {"id": number, "out": [{"v": n} for n in range(ITEMS)]},
    states_a_second=20_000,
    cpu_ms=1.7,
)
JSONATA = Language(
    "JSONata",
    lambda n: {"Output": f"{{% $merge([$states.input, {{'i': {n}, 'prev': $states.input.i}}]) %}}"},
    {"Condition": f"{{% $states.input.id >= 0 and $count($states.input.items) = {ITEMS} %}}"},
    {
        "Items": "{% $states.input.items %}",
        "Output": "{% {'sum': $sum($states.result.v), 'id': $states.input.id} %}",
    },
    {"Output": "{% {'v': $states.input * 2} %}"},
    lambda number: {"id": number, "sum": ITEMS * (ITEMS - 1)},
    states_a_second=10_000,
)


async def measure(load: Load, language: Language) -> list[Row]:
    """Run all measurements on a node."""
    await load.connect(CONNECTIONS)
    first = load.connections[0]
    role = "arn:aws:iam::000000000000:role/bench"
    wanted = {"name": "bench", "definition": language.definition(), "roleArn": role}
    machine = (await first.call("states", "CreateStateMachine", wanted))["stateMachineArn"]
    arns: dict[int, str] = {}
    starts: list[float] = []

    async def start(connection: Connection, number: int) -> None:
        given = dumps({"id": number, "items": list(range(ITEMS))})
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
        assert loads(seen["output"]).items() >= language.answer(number).items(), seen

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
    figures = [
        Row("states", EXECUTIONS * STATES / seconds, "states/s", at_least=language.states_a_second),
        Row("an execution of 33 states, server CPU", cpu / EXECUTIONS * 1000, "ms each", at_most=language.cpu_ms),
        Row("events in its history", float(len(page["events"])), "events"),
        Row("StartExecution under load, median", median(starts) * 1000, "ms"),
        Row("one alone, start to seen done, median", median(alone) * 1000, "ms", at_most=15),
    ]
    return [replace(row, what=f"{language.name}: {row.what}") for row in figures]


def rows() -> list[Row]:
    """Measure each language on a node of its own."""
    found: list[Row] = []
    for language in (JSONPATH, JSONATA):
        with node() as load:
            found += asyncio.run(measure(load, language))
    return found


if __name__ == "__main__":
    show("Machines over HTTP", rows())
