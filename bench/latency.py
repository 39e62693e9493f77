"""From SendMessage to the first instruction of the task it causes: queue, pipe, machine, ecs:runTask.sync, shim, process.

The task is a shell that writes the time it woke at; its clock is the client's clock.
"""

import asyncio
import time
from typing import Any

from bench.load import Load, median, node, percentile
from bench.table import Row, show
from tasuki.values.documents import dumps

MESSAGES = 40
ROLE = "arn:aws:iam::000000000000:role/bench"
CONFIG = """
[images.clock]
folder = "."
command = ["/bin/sh", "-c", "date +%s%N > woke-$JOB.tmp && mv woke-$JOB.tmp woke-$JOB"]
"""


def definition() -> str:
    """One state: run the task that the message names."""
    override = {"Name": "main", "Environment": [{"Name": "JOB", "Value.$": "$[0].body"}]}
    run: dict[str, Any] = {
        "Type": "Task",
        "Resource": "arn:aws:states:::ecs:runTask.sync",
        "Parameters": {"TaskDefinition": "clock", "Overrides": {"ContainerOverrides": [override]}},
        "End": True,
    }
    return dumps({"StartAt": "Run", "States": {"Run": run}})


async def measure(load: Load) -> list[Row]:
    """Send one message at a time and wait for its mark."""
    await load.connect(1)
    call = load.connections[0].call
    await call(
        "ecs",
        "RegisterTaskDefinition",
        {"family": "clock", "containerDefinitions": [{"name": "main", "image": "clock", "memory": 64}]},
    )
    machine = await call("states", "CreateStateMachine", {"name": "clock", "definition": definition(), "roleArn": ROLE})
    url = (await call("sqs", "CreateQueue", {"QueueName": "jobs"}))["QueueUrl"]
    await load.connections[0].request(
        "pipes",
        "POST",
        "/v1/pipes/clock",
        {
            "Source": "arn:aws:sqs:us-east-1:000000000000:jobs",
            "SourceParameters": {"SqsQueueParameters": {"BatchSize": 1}},
            "Target": machine["stateMachineArn"],
            "TargetParameters": {"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}},
            "RoleArn": ROLE,
        },
    )
    taken: list[float] = []
    for number in range(MESSAGES):
        sent = time.time_ns()
        await call("sqs", "SendMessage", {"QueueUrl": url, "MessageBody": str(number)})
        mark = load.data / f"woke-{number}"
        deadline = time.monotonic() + 10
        while not mark.exists():
            if time.monotonic() > deadline:
                raise RuntimeError(f"message {number} started no task within 10 s")
            await asyncio.sleep(0.002)
        taken.append((int(mark.read_text()) - sent) / 1e6)
    return [
        Row("SendMessage to the task's first instruction, median", median(taken[3:]), "ms", at_most=50),
        Row("the same, slowest tenth", percentile(taken[3:], 0.9), "ms"),
    ]


def rows() -> list[Row]:
    """Measure on a node of our own."""
    with node(CONFIG) as load:
        return asyncio.run(measure(load))


if __name__ == "__main__":
    show("From message to task", rows())
