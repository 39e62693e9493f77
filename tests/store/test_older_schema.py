"""A data directory that an older Tasuki left in the middle of its work: brought up to date, nothing is lost and everything ends."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from tasuki.runtime import backup as operation
from tasuki.services import handovers, machines, pipes, queues, tasks
from tasuki.store import backup, sqlite_file
from tasuki.store.migrations import migrations
from tasuki.store.postgres import PostgresStore
from tasuki.store.sqlite import SqliteStore
from tasuki.testing import House, ManualClock

LEFT = Path(__file__).with_name("schema_11.sql")
"""By a node at commit 301df87: see `ENDS` for the executions, `WORK` for the queue `work`."""
SCHEMA = 11
LEFT_AT = 1767225642000
HELD = "AQAAAAAAAAAEAAAAAAAAAAQAAAGbdts4iAAAAAAAAAAHOAFuGFHvGSIAAAAAAAAAAD1x+Dg="
"""The receipt of `work 6`, which a consumer has in hand."""
WORKER = "8d120077cfd60b68752b890eca03d0bb27dc4bd60d2be39fab96031555409a0a"
"""The token of the activity task that a worker has in hand."""
Q = "http://127.0.0.1:4566/000000000000/"
WORK = {"work": ["work 5", "work 7"], "dead": ["work 0", "work 1", "work 2", "work 3"]}
"""What is there to be received: `work 5` was delayed, 0 to 3 were received too often, 4 was deleted, 6 is in a consumer's hand."""
ENDS = [
    "asks",  # waits for a token, which is a message of `in2`
    "both",  # a Parallel, one branch of which waits
    "by pipe",
    "by pipe later",  # a pipe had just begun it: it stands in `ready`
    "done",  # had ended
    "item 0",  # a Map Run of five, two at a time
    "item 1",
    "item 2",
    "item 3",
    "item 4",
    "quick",  # Express, waiting
    "second map",  # a Map Run that had just begun: it stands in `map_ready`
    "waits",
    "works",  # an activity
]
"""Each sends one message with its name to `out`, when it ends. Besides, one has failed, and can be redriven."""


def left(path: Path) -> Path:
    """Make the file as it was left."""
    with closing(apsw.Connection(str(path))) as made:
        for _, sql in migrations()[:SCHEMA]:
            made.execute(sql)
        made.execute(LEFT.read_text())
        made.pragma("user_version", SCHEMA)
        made.pragma("application_id", sqlite_file.APPLICATION_ID)
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """The house that was left: on SQLite the very file, on PostgreSQL by way of a backup."""
    file = left(tmp_path / "tasuki.db")
    if request.param == "postgresql":
        backup.note(file, made_at=LEFT_AT, origin="sqlite", version="0", credentials=None)
        operation.restore(file, tmp_path / "data", request.getfixturevalue("postgres_url"), force=False)

    def opens(house: House) -> SqliteStore | PostgresStore:
        given: dict[str, Any] = {"chance": house.chance, "on_ring": house.bell.ring}
        given |= {"clock": house.clock, "real_clock": house.clock}
        if request.param == "sqlite":
            return SqliteStore(file, **given)
        return PostgresStore(request.getfixturevalue("postgres_url"), wall=house.clock, connections=4, **given)

    rooms = (handovers.room, queues.room, tasks.room, machines.room, pipes.room)
    with House(*rooms, clock=ManualClock(LEFT_AT), store=opens) as one:
        yield one


def bodies(house: House, queue: str) -> list[str]:
    """Receive everything from a queue, once; answer the bodies."""
    found: list[str] = []
    while got := house.call("sqs", "ReceiveMessage", QueueUrl=Q + queue, MaxNumberOfMessages=10).get("Messages", []):
        found += [one["Body"] for one in got]
    return sorted(found)


def assert_conserved(house: House) -> None:
    account, region = house.config.account, house.config.region
    for name in ("in", "in2", "out", "work", "dead"):
        queue = house.unit(lambda tx, name=name: queues.find_queue(tx, account, region, name))  # type: ignore[misc]
        assert house.unit(lambda tx, queue=queue: queues.conservation(tx, queue)), name  # type: ignore[misc]


def executions(house: House, status: str) -> list[str]:
    call = house.call
    machine_arns = [one["stateMachineArn"] for one in call("stepfunctions", "ListStateMachines")["stateMachines"]]
    standard = [arn for arn in machine_arns if not arn.endswith(":quick")]
    found = [call("stepfunctions", "ListExecutions", stateMachineArn=arn, statusFilter=status) for arn in standard]
    return [one["executionArn"] for page in found for one in page["executions"]]


def assert_whole(house: House, execution: str, last: str) -> None:
    events = house.call("stepfunctions", "GetExecutionHistory", executionArn=execution, maxResults=1000)["events"]
    assert [one["id"] for one in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == last
    instants = [one["timestamp"] for one in events]
    assert instants == sorted(instants)


def test_nothing_is_lost_and_everything_ends(house: House) -> None:
    call = house.call
    assert_conserved(house)
    call("sqs", "DeleteMessage", QueueUrl=Q + "work", ReceiptHandle=HELD)
    call("stepfunctions", "SendTaskSuccess", taskToken=WORKER, output="{}")
    (token,) = bodies(house, "in2")
    call("stepfunctions", "SendTaskSuccess", taskToken=token, output=json.dumps({"n": "asks"}))
    (failed,) = executions(house, "FAILED")
    call("stepfunctions", "RedriveExecution", executionArn=failed)
    house.advance(hours=1)
    assert bodies(house, "out") == ENDS
    assert {queue: bodies(house, queue) for queue in WORK} == WORK
    assert executions(house, "RUNNING") == []
    assert executions(house, "FAILED") == [failed]
    assert_whole(house, failed, "ExecutionFailed")
    for execution in executions(house, "SUCCEEDED"):
        assert_whole(house, execution, "ExecutionSucceeded")
    described = call("pipes", "DescribePipe", Name="p")
    assert described["CurrentState"] == "RUNNING"
    call("sqs", "SendMessage", QueueUrl=Q + "in", MessageBody="after")
    house.advance(hours=1)
    assert bodies(house, "out").count("after") == 1
    assert_conserved(house)
