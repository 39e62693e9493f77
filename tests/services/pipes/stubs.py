"""A queue and a machine of the test's own: real tables, so that they roll back with the unit, and switches to fail."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tasuki.services import handovers, pipes
from tasuki.services.room import Room
from tasuki.services.switchboard import NOTHING, Caller, Received, Switchboard
from tasuki.store.store import Tx
from tasuki.testing import House
from tasuki.values import documents
from tasuki.values.config import Config
from tasuki.values.errors import DomainError
from tasuki.values.instant import Instant

QUEUE = "arn:aws:sqs:us-east-1:000000000000:jobs"
MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:router"
ROLE = "arn:aws:iam::000000000000:role/pipe"
FIRE_AND_FORGET = {"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}}
VISIBILITY_MS = 30_000


class ExecutionLimitExceeded(DomainError):
    code = "ExecutionLimitExceeded"


class InvalidExecutionInput(DomainError):
    code = "InvalidExecutionInput"


class StubQueue:
    """A queue that counts receives and moves what was received too often to `dead`."""

    def __init__(self) -> None:
        self.gone: str | None = None
        self.max_receives = 1_000_000
        self.visibility_ms = VISIBILITY_MS

    def check(self, _tx: Tx, arn: str) -> str | None:
        return self.gone if arn == QUEUE else f"queue {arn} does not exist"

    def nearest(self, tx: Tx, arns: Sequence[str]) -> dict[str, Instant | None]:
        row = tx.one("SELECT min(visible_at) FROM stub_messages")
        assert row is not None
        return dict.fromkeys(arns, row[0]) if self.gone is None else {}

    def count(self, tx: Tx, _arn: str) -> int:
        row = tx.one("SELECT count(*) FROM stub_messages WHERE visible_at <= ?", (tx.now,))
        assert row is not None
        return int(row[0])

    def receive(self, tx: Tx, arn: str, limit: int, max_bytes: int, hold_ms: int = 0) -> list[Received]:
        taken: list[Received] = []
        size = 0
        for id_, body, count in tx.all(
            "SELECT id, body, receives FROM stub_messages WHERE visible_at <= ? ORDER BY id LIMIT ? "
            "/*pg FOR UPDATE SKIP LOCKED */",
            (tx.now, limit),
        ):
            if count >= self.max_receives:
                tx.run("DELETE FROM stub_messages WHERE id = ?", (id_,))
                tx.run("INSERT INTO stub_dead VALUES (?)", (id_,))
                continue
            size += len(body)
            if taken and size > max_bytes:
                break
            tx.run(
                "UPDATE stub_messages SET receives = receives + 1, visible_at = ? WHERE id = ?",
                (tx.now + max(self.visibility_ms, hold_ms), id_),
            )
            record = {
                "messageId": id_,
                "receiptHandle": f"{id_}#{count + 1}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": str(count + 1), "SenderId": "AIDA"},
                "messageAttributes": {},
                "md5OfBody": "0",
                "eventSource": "aws:sqs",
                "eventSourceARN": arn,
                "awsRegion": "us-east-1",
            }
            taken.append(Received(id_, record, f"Root=1-{id_}", tx.now))
        return taken

    def delete(self, tx: Tx, _arn: str, receipts: Sequence[str]) -> None:
        tx.many("DELETE FROM stub_messages WHERE id = ?", [(receipt.split("#")[0],) for receipt in receipts])

    def release(self, tx: Tx, _arn: str, receipts: Sequence[str], delay_ms: int) -> None:
        for receipt in receipts:
            tx.run("UPDATE stub_messages SET visible_at = ? WHERE id = ?", (tx.now + delay_ms, receipt.split("#")[0]))

    def leave(self, tx: Tx, arn: str, receipts: Sequence[str], received: Instant) -> None:
        self.release(tx, arn, receipts, max(0, received + self.visibility_ms - tx.now))


class StubMachine:
    """A machine that writes down what it is given, and refuses when told to."""

    takes_arrays = True
    takes_text = False

    def __init__(self) -> None:
        self.gone: str | None = None
        self.refuse: Callable[[str], DomainError | None] = lambda _payload: None

    def check(self, _tx: Tx, arn: str, _parameters: dict[str, Any]) -> str | None:
        return self.gone if arn == MACHINE else f"state machine {arn} does not exist"

    def waits(self, _tx: Tx, _arn: str) -> bool | None:
        return False

    def deliver(
        self,
        tx: Tx,
        arn: str,
        payload: str,
        name: str | None,
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,  # noqa: ARG002
    ) -> str:
        refusal = self.refuse(payload)
        if refusal is not None:
            raise refusal
        if len(payload.encode()) > 262_144:
            raise InvalidExecutionInput("too large")
        name = name or tx.chance.uuid()
        execution = f"{arn.replace(':stateMachine:', ':execution:')}:{name}"
        tx.run(
            "INSERT INTO stub_executions VALUES (?, ?, ?, (SELECT count(*) FROM stub_executions)) ON CONFLICT (arn) DO NOTHING",
            (execution, payload, caller.trace),
        )
        return execution


class Given(NamedTuple):
    arn: str
    payload: str
    parameters: dict[str, Any]
    trace: str
    watcher: str | None


class StubTarget:
    """Whatever takes one event at a time: it writes down what it is given, and refuses when told to, after it has written."""

    takes_arrays = False

    def __init__(self, table: str, *, takes_text: bool = False) -> None:
        self.takes_text = takes_text
        self._table = table
        self.gone: str | None = None
        self.checked: list[dict[str, Any]] = []
        self.refuse: Callable[[str], DomainError | None] = lambda _payload: None

    def check(self, _tx: Tx, _arn: str, parameters: dict[str, Any]) -> str | None:
        self.checked.append(parameters)
        return self.gone

    def waits(self, _tx: Tx, arn: str) -> bool | None:
        return "api-destination" in arn

    def deliver(
        self,
        tx: Tx,
        arn: str,
        payload: str,
        name: str | None,  # noqa: ARG002
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,
    ) -> str:
        key = tx.chance.uuid()
        tx.run(
            f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?, ?, (SELECT count(*) FROM {self._table}))",
            (key, arn, payload, documents.dumps(dict(parameters)), caller.trace, caller.watcher),
        )
        refusal = self.refuse(payload)
        if refusal is not None:
            raise refusal
        return key

    def table(self, tx: Tx) -> None:
        tx.run(
            f"CREATE TABLE {self._table} (id TEXT, arn TEXT, payload TEXT, parameters TEXT, trace TEXT, watcher TEXT, "
            "place BIGINT)"
        )

    def given(self, house: House) -> list[Given]:
        rows = house.unit(
            lambda tx: tx.all(f"SELECT arn, payload, parameters, trace, watcher FROM {self._table} ORDER BY place")
        )
        return [Given(row[0], row[1], documents.loads(row[2]), row[3], row[4]) for row in rows]


class Bench:
    """A house with a pipes room between a stub queue and a stub machine."""

    def __init__(self, seed: int = 0, quotas: dict[str, int] | None = None) -> None:
        self.queue, self.machine = StubQueue(), StubMachine()
        config = Config(data=Path(), quotas=quotas or {})
        self.house = House(self._stubs, handovers.room, pipes.room, seed=seed, config=config)
        self.house.unit(self._tables)
        self.sent = 0

    def _stubs(self, _config: Config, switchboard: Switchboard) -> Room:
        switchboard.sources["sqs"] = self.queue
        switchboard.targets["states"] = self.machine
        return Room("stubs")

    def _tables(self, tx: Tx) -> None:
        tx.run("CREATE TABLE stub_messages (id TEXT PRIMARY KEY, body TEXT, visible_at BIGINT, receives BIGINT)")
        tx.run("CREATE TABLE stub_dead (id TEXT)")
        tx.run("CREATE TABLE stub_executions (arn TEXT PRIMARY KEY, input TEXT, trace TEXT, place BIGINT)")

    def call(self, operation: str, given: dict[str, Any]) -> dict[str, Any]:
        return self.house.call("pipes", operation, given)

    def pipe(self, name: str = "p", **members: Any) -> dict[str, Any]:
        """Create a pipe; `batch`, `window`, `patterns` and `template` are short for the members they fill."""
        sqs = {
            key: members.pop(short)
            for short, key in (("batch", "BatchSize"), ("window", "MaximumBatchingWindowInSeconds"))
            if short in members
        }
        source: dict[str, Any] = {"SqsQueueParameters": sqs} if sqs else {}
        if "patterns" in members:
            source["FilterCriteria"] = {"Filters": [{"Pattern": pattern} for pattern in members.pop("patterns")]}
        target: dict[str, Any] = {"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}}
        if "template" in members:
            target["InputTemplate"] = members.pop("template")
        given = {"Name": name, "Source": QUEUE, "Target": MACHINE, "RoleArn": ROLE, "SourceParameters": source}
        return self.call("CreatePipe", {**given, "TargetParameters": target, **members})

    def describe(self, name: str = "p") -> dict[str, Any]:
        return self.call("DescribePipe", {"Name": name})

    def send(self, *bodies: str, drain: bool = True) -> list[str]:
        ids = []
        for _ in bodies:
            self.sent += 1
            ids.append(f"m{self.sent:05d}")

        def unit(tx: Tx) -> None:
            tx.many(
                "INSERT INTO stub_messages VALUES (?, ?, ?, 0)",
                [(i, b, tx.now) for i, b in zip(ids, bodies, strict=True)],
            )
            tx.ring("queues")

        self.house.unit(unit)
        if drain:
            self.house.drain()
        return ids

    def _ids(self, sql: str) -> list[Any]:
        return [row[0] for row in self.house.unit(lambda tx: tx.all(sql))]

    @property
    def waiting(self) -> list[str]:
        return self._ids("SELECT id FROM stub_messages ORDER BY id")

    @property
    def dead(self) -> list[str]:
        return self._ids("SELECT id FROM stub_dead ORDER BY id")

    @property
    def inputs(self) -> list[Any]:
        return [documents.loads(text) for text in self._ids("SELECT input FROM stub_executions ORDER BY place")]

    @property
    def bodies(self) -> list[list[str]]:
        return [[record["body"] for record in records] for records in self.inputs]

    def handovers(self, **given: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.house.call("tasuki", "ListHandovers", {"MaxResults": 1000, **given})[
            "Handovers"
        ]
        return found

    def outcomes(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for handover in self.handovers():
            outcome = handover["Outcome"].split(":")[0]
            counts[outcome] = counts.get(outcome, 0) + 1
        return counts
