"""What one unit of the queues room costs: through the operations, on a store in memory, without HTTP and flushes.

    python bench/queues_unit.py [--count 20000] [--backlog 100000]

Prints microseconds of CPU per message. The store's own work (savepoint, commit shared by 64 units) is included.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasuki.services import queues
from tasuki.services.switchboard import Switchboard
from tasuki.store.sqlite import SqliteStore
from tasuki.store.sqlite_tx import SqliteTx
from tasuki.testing.clock import ManualClock
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.operations import NotYet, Operation, Principal, Request

GROUP = 64


class Bench:
    """A room on a store in memory, whose units are run in groups as a busy node does."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.chance = Chance.system()
        self.store = SqliteStore(None, clock=self.clock, real_clock=self.clock, chance=self.chance)
        self.room = queues.room(Config(data=Path()), Switchboard())
        self.connection = self.store._writer  # noqa: SLF001 - measured from inside

    def request(self, operation: str, given: dict[str, Any]) -> tuple[Operation, Request]:
        """Make a request, as the door hands it over."""
        request = Request(
            "sqs", operation, given, "id", Principal("test"), "000000000000", "us-east-1", "http://127.0.0.1:4566"
        )
        return self.room.operations[operation], request

    @contextmanager
    def group(self) -> Iterator[None]:
        """One transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        yield
        self.connection.execute("COMMIT")

    def unit(self, operation: str, given: dict[str, Any]) -> dict[str, Any]:
        """Run one call as the store and the door would."""
        found, request = self.request(operation, given)
        tx = SqliteTx(self.connection, self.clock.now(), self.clock.now(), self.chance)
        if found.look is not None and found.look(tx, request) is not None:
            return {}
        self.connection.execute("SAVEPOINT unit")
        answer = found.run(tx, request)
        self.connection.execute("RELEASE unit")
        return answer.answer if isinstance(answer, NotYet) else answer

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        """Run one call in a transaction of its own."""
        with self.group():
            return self.unit(operation, given)


def measure(bench: Bench, label: str, units: int, per_unit: int, act: Callable[[int], object]) -> None:
    """Run `act` for each unit, in groups of one commit; print the CPU per message, and the time of the quickest tenth.

    On a machine that others use too, the second is what the code costs, and the first has what the neighbours add.
    """
    took: list[int] = []
    before = time.process_time()
    for first in range(0, units, GROUP):
        with bench.group():
            for at in range(first, min(first + GROUP, units)):
                started = time.perf_counter_ns()
                act(at)
                took.append(time.perf_counter_ns() - started)
    cpu = (time.process_time() - before) * 1e6
    quick = sorted(took)[len(took) // 10] / 1e3
    print(f"{label:<58}{cpu / units / per_unit:9.1f} us CPU,{quick / per_unit:9.1f} us undisturbed")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--backlog", type=int, default=100_000)
    options = parser.parse_args()
    bench, count = Bench(), options.count
    url = bench.call("CreateQueue", QueueName="bench")["QueueUrl"]
    body = "x" * 200

    def single() -> list[str]:
        handles: list[str] = []

        def receive(_: int) -> None:
            handles.extend(m["ReceiptHandle"] for m in bench.unit("ReceiveMessage", {"QueueUrl": url})["Messages"])

        measure(
            bench,
            "SendMessage, 200 bytes",
            count,
            1,
            lambda _: bench.unit("SendMessage", {"QueueUrl": url, "MessageBody": body}),
        )
        measure(bench, "ReceiveMessage of 1", count, 1, receive)
        return handles

    handles = single()
    measure(
        bench,
        "DeleteMessage",
        count,
        1,
        lambda at: bench.unit("DeleteMessage", {"QueueUrl": url, "ReceiptHandle": handles[at]}),
    )
    entries = [{"Id": str(at), "MessageBody": body} for at in range(10)]
    batches: list[list[dict[str, Any]]] = []

    def receive_ten(_: int) -> None:
        batches.append(bench.unit("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})["Messages"])

    def delete_ten(at: int) -> None:
        gone = [{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(batches[at])]
        bench.unit("DeleteMessageBatch", {"QueueUrl": url, "Entries": gone})

    tens = count // 10
    measure(
        bench,
        "SendMessageBatch of 10",
        tens,
        10,
        lambda _: bench.unit("SendMessageBatch", {"QueueUrl": url, "Entries": entries}),
    )
    measure(bench, "ReceiveMessage of 10", tens, 10, receive_ten)
    measure(bench, "DeleteMessageBatch of 10", tens, 10, delete_ten)
    measure(
        bench, "ReceiveMessage, empty (per call)", count, 1, lambda _: bench.unit("ReceiveMessage", {"QueueUrl": url})
    )
    big = "x" * 2_000
    measure(
        bench,
        "SendMessage, 2,000 bytes",
        count // 4,
        1,
        lambda _: bench.unit("SendMessage", {"QueueUrl": url, "MessageBody": big}),
    )
    batches.clear()
    measure(bench, "ReceiveMessage of 10, 2,000 bytes", count // 40, 10, receive_ten)

    backlog = options.backlog
    measure(
        bench,
        f"  filling a backlog of {backlog:,}",
        backlog // 10,
        10,
        lambda _: bench.unit("SendMessageBatch", {"QueueUrl": url, "Entries": entries}),
    )
    measure(
        bench,
        f"ReceiveMessage of 1, {backlog:,} waiting",
        2_000,
        1,
        lambda _: bench.unit("ReceiveMessage", {"QueueUrl": url}),
    )
    measure(
        bench,
        "GetQueueAttributes All (per call)",
        100,
        1,
        lambda _: bench.unit("GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["All"]}),
    )
    measure(bench, f"  taking {backlog:,}", backlog // 10 - 300, 10, receive_ten)
    measure(
        bench,
        f"SendMessage, {backlog:,} in flight",
        2_000,
        1,
        lambda _: bench.unit("SendMessage", {"QueueUrl": url, "MessageBody": body}),
    )
    measure(
        bench,
        f"ReceiveMessage of 1, {backlog:,} in flight",
        2_000,
        1,
        lambda _: bench.unit("ReceiveMessage", {"QueueUrl": url}),
    )
    measure(
        bench,
        f"GetQueueAttributes All, {backlog:,} in flight (per call)",
        50,
        1,
        lambda _: bench.unit("GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["All"]}),
    )


if __name__ == "__main__":
    main()
