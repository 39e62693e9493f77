"""SQS over HTTP with 16 connections: single and batched sends, receive and delete, the wake-up of a long poll."""

import asyncio
import time
from typing import Any

from bench.load import Connection, Load, median, node
from bench.table import Row, show

CONNECTIONS = 16
SINGLES, BATCHES, IDLE_S = 12_000, 2_000, 5.0
BODY = "x" * 100


async def measure(load: Load) -> list[Row]:
    """Run all measurements on a node."""
    await load.connect(CONNECTIONS)
    first = load.connections[0]
    url = (await first.call("sqs", "CreateQueue", {"QueueName": "bench"}))["QueueUrl"]

    async def send(connection: Connection, _: int) -> None:
        await connection.call("sqs", "SendMessage", {"QueueUrl": url, "MessageBody": BODY})

    async def send_ten(connection: Connection, _: int) -> None:
        entries = [{"Id": str(n), "MessageBody": BODY} for n in range(10)]
        answer = await connection.call("sqs", "SendMessageBatch", {"QueueUrl": url, "Entries": entries})
        assert len(answer["Successful"]) == 10, answer

    async def take_one(connection: Connection, _: int) -> None:
        got: dict[str, Any] = await connection.call("sqs", "ReceiveMessage", {"QueueUrl": url})
        await connection.call(
            "sqs", "DeleteMessage", {"QueueUrl": url, "ReceiptHandle": got["Messages"][0]["ReceiptHandle"]}
        )

    async def take_ten(connection: Connection, _: int) -> None:
        got = await connection.call("sqs", "ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})
        entries = [{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(got["Messages"])]
        answer = await connection.call("sqs", "DeleteMessageBatch", {"QueueUrl": url, "Entries": entries})
        assert len(answer["Successful"]) == len(entries), answer

    await load.spread(2_000, send)  # warm
    single = await load.spread(SINGLES, send)
    taken = await load.spread(SINGLES // 2, take_one)
    batched = await load.spread(BATCHES, send_ten)
    emptied = await load.spread(BATCHES // 2, take_ten)
    wakes = await wake_ups(load)
    memory = load.memory_mib()
    before = load.cpu_s()
    await asyncio.sleep(IDLE_S)
    idle = (load.cpu_s() - before) / IDLE_S * 100
    return [
        Row("single sends", single.rate, "messages/s", at_least=3_000),
        Row("single sends, server CPU", single.cpu_us, "us each", at_most=250),
        Row("receive + delete, single", taken.rate, "messages/s"),
        Row("receive + delete, server CPU", taken.cpu_us, "us each"),
        Row("batched sends", batched.rate * 10, "messages/s", at_least=15_000),
        Row("batched sends, server CPU", batched.cpu_us / 10, "us each"),
        Row("batched receive + delete", emptied.rate * 10, "messages/s"),
        Row("long-poll wake-up, median", median(wakes) * 1000, "ms", at_most=5),
        Row("idle CPU", idle, "%", at_most=1),
        Row("resident memory", memory, "MiB", at_most=120),
    ]


async def wake_ups(load: Load) -> list[float]:
    """Measure from the moment of a send to the moment a waiting receive has the message."""
    sender, waiter = load.connections[:2]
    url = (await sender.call("sqs", "CreateQueue", {"QueueName": "wake"}))["QueueUrl"]
    wakes = []
    for _ in range(200):
        waiting = asyncio.create_task(
            waiter.call("sqs", "ReceiveMessage", {"QueueUrl": url, "WaitTimeSeconds": 20, "VisibilityTimeout": 3600})
        )
        await asyncio.sleep(0.005)
        start = time.perf_counter()
        await sender.call("sqs", "SendMessage", {"QueueUrl": url, "MessageBody": "wake"})
        assert (await waiting)["Messages"]
        wakes.append(time.perf_counter() - start)
    return wakes


def rows() -> list[Row]:
    """Measure on a node of our own."""
    with node() as load:
        return asyncio.run(measure(load))


if __name__ == "__main__":
    show("SQS over HTTP", rows())
