"""How rooms reach each other. Everything here happens inside the caller's unit: together or not at all.

Each room plugs in what it offers when the node is built; nobody imports anybody.

=================  ====================================================================================
plug               offered by
=================  ====================================================================================
integrations       queues `sqs:sendMessage`, tasks `ecs:runTask`, machines `states:startExecution`
watchers           machines (`machines`), pipes (`pipes`): told when a task or execution they watch has ended
sources            queues: taken from by pipes
targets            machines: given to by pipes
objects            nobody yet: what Map Runs read from and write to
credentials        tasks: the key of a running task
operations         all rooms with an API: what `aws-sdk:` integrations call
house              pipes: operations of the house's own service, `tasuki`, beside ListHandovers
handovers          handovers: the record of what was passed on
status_listeners   nobody yet: told of each status change of a Standard execution
=================  ====================================================================================

`watcher` is a string `ROOM:KEY`, chosen by the caller and handed back untouched: `finished(tx, watcher, outcome)`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from tasuki.services.room import Room
from tasuki.store.store import Tx
from tasuki.values.instant import Instant
from tasuki.values.operations import Operation, Principal


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf an integration is called.

    `idempotency` is the same for a repeat of the same attempt (execution, visit, attempt) and for no other: a room
    that starts something must not start it twice for one. `watcher` is set when the caller wants to be told of the
    end (`.sync`). `trace` is the correlation id (`Root=1-...`), carried on to whatever is started.
    """

    account: str
    region: str
    idempotency: str
    trace: str
    watcher: str | None = None
    origin: str = ""
    """The ARN of the execution or pipe that calls."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An integration's answer.

    `output` is the response in the service's own member names, PascalCase, timestamps already as Step Functions shows
    them. `handle` names what was started, for `cancel`. `later`: this is no answer yet, it comes with the end of what
    was started, by the caller's watcher.
    """

    output: dict[str, Any]
    handle: str | None = None
    later: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """How watched work ended: `output` (the service's description of it, PascalCase) and whether it succeeded.

    `error` is the Step Functions error name when it did not; the cause is then the JSON text of `output`, unless
    `cause` says otherwise.
    """

    succeeded: bool
    output: dict[str, Any]
    error: str = "States.TaskFailed"
    cause: str | None = None


class Integration(Protocol):
    """Something a Task state or a pipe can call.

    `call` raises the room's `DomainError`, which the machine turns into `error_prefix` + the code.
    """

    error_prefix: str

    def call(self, tx: Tx, parameters: dict[str, Any], caller: Caller) -> Answer:
        """Do it, in this unit."""

    def cancel(self, tx: Tx, handle: str, cause: str) -> None:
        """Stop what was started (best effort, as AWS does on abort and timeout)."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message taken from a source: `record` is the source's JSON shape (SQS: messageId, receiptHandle, body, ...)."""

    id: str
    record: dict[str, Any]
    trace: str
    sent: Instant


class Source(Protocol):
    """A queue, as a pipe sees it."""

    def check(self, tx: Tx, arn: str) -> str | None:
        """Answer None if the source exists, else why not."""

    def nearest(self, tx: Tx, arns: Sequence[str]) -> Mapping[str, Instant | None]:
        """Answer, of up to a hundred sources, those that exist, and when the next message becomes receivable. Reads only.

        Not after now: one is. None: there is none.
        """

    def count(self, tx: Tx, arn: str) -> int:
        """Answer how many messages are receivable now, at most some thousands. Reads only."""

    def receive(self, tx: Tx, arn: str, limit: int, max_bytes: int) -> list[Received]:
        """Claim up to `limit` messages as a receive does (counts, dead-letter redrive included)."""

    def delete(self, tx: Tx, arn: str, receipts: Sequence[str]) -> None:
        """Delete received messages by receipt handle."""

    def release(self, tx: Tx, arn: str, receipts: Sequence[str], delay_ms: int) -> None:
        """Give received messages back: receivable again after `delay_ms`."""


class Target(Protocol):
    """A machine, as a pipe sees it."""

    def check(self, tx: Tx, arn: str, parameters: dict[str, Any]) -> str | None:
        """Answer None if the target takes deliveries with these TargetParameters, else why not."""

    def waits(self, tx: Tx, arn: str) -> bool | None:
        """Tell whether the end of a delivery can be waited for; None when there is no such target."""

    def deliver(self, tx: Tx, arn: str, payload: str, name: str | None, caller: Caller) -> str:
        """Start an execution with JSON text `payload`, in this unit; answer its ARN. The caller's watcher hears of its end.

        With a `name`, a second delivery under that name answers the first one's ARN and starts nothing.
        Raises `DomainError` (throttled, too large, machine gone).
        """


class Watcher(Protocol):
    """A room that is told how watched work ended."""

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:
        """Take note. Telling twice, or about what no longer waits, is harmless."""


@dataclass(frozen=True, slots=True)
class Handover:
    """What was passed on: one row per message or delivery, with every attempt's outcome."""

    source: str
    source_id: str
    via: str
    target: str
    target_id: str
    trace: str
    outcome: str
    """`DELIVERED`, `FILTERED`, or `FAILED: reason`."""


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A Standard execution began to run, or ended: what EventBridge tells as "Step Functions Execution Status Change"."""

    execution: str
    account: str
    region: str
    at: Instant
    detail: dict[str, Any]
    """AWS's payload; instants in it are epoch milliseconds, as there."""


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """An object in a listing."""

    key: str
    size: int
    etag: str
    modified: Instant
    storage_class: str = "STANDARD"


class Objects(Protocol):
    """Buckets and their objects (S3), as a Map Run reads its items and writes its results.

    Everything raises the room's `DomainError` (no such bucket, no such key).
    """

    def get(self, tx: Tx, bucket: str, key: str, start: int, length: int) -> bytes:
        """Answer `length` bytes of an object from `start` on: fewer at its end, none behind it."""

    def list(self, tx: Tx, bucket: str, prefix: str, after: str, limit: int) -> Sequence[ObjectFacts]:
        """Answer the next objects by key, behind key `after`."""

    def put(self, tx: Tx, bucket: str, key: str, body: bytes) -> None:
        """Write an object as a whole, in place of an older one."""


CredentialLookup: TypeAlias = Callable[[Tx, str], "tuple[str, Principal] | None"]
"""Access key id to (secret, principal)."""


@dataclass(slots=True)
class Switchboard:
    """The plugs. Filled once by `runtime/node.py`, before the first request."""

    integrations: dict[str, Integration] = field(default_factory=dict)
    watchers: dict[str, Watcher] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    """By the service part of the ARN (`sqs`)."""
    targets: dict[str, Target] = field(default_factory=dict)
    """By the service part of the ARN (`states`)."""
    objects: Objects | None = None
    """None while no room offers buckets."""
    credentials: list[CredentialLookup] = field(default_factory=list)
    operations: dict[tuple[str, str], Operation] = field(default_factory=dict)
    """By botocore's name of the service, and the operation's; filled when all rooms are built."""
    house: dict[str, Operation] = field(default_factory=dict)
    """Operations of our own service, by name: what a room tells that AWS has no operation for."""
    url: str = "http://127.0.0.1:4566"
    """Where clients reach the house."""
    record: Callable[[Tx, Handover], None] = lambda _tx, _handover: None
    record_all: Callable[[Tx, Sequence[Handover]], None] = lambda _tx, _handovers: None
    """The same for many at once, which costs less."""
    handed_over: Callable[[Tx, str], bool] = lambda _tx, _target_id: False
    """Whether something was handed over to this target id (an execution's ARN) before."""

    status_listeners: list[Callable[[Tx, StatusChange], None]] = field(default_factory=list)
    """Whoever wants to hear of status changes, in the unit that makes them. While there is nobody, none is told."""

    def status_changed(self, tx: Tx, change: StatusChange) -> None:
        """Tell everybody who listens that an execution's status changed."""
        for listener in self.status_listeners:
            listener(tx, change)

    def connect(self, rooms: Iterable[Room]) -> None:
        """Take in the operations of all rooms."""
        for room in rooms:
            if room.service is not None:
                self.operations |= {(room.service, name): one for name, one in room.operations.items()}

    def finished(self, tx: Tx, watcher: str, ending: Ending) -> None:
        """Tell `ROOM:KEY` how its work ended."""
        room, _, key = watcher.partition(":")
        self.watchers[room].finished(tx, key, ending)

    def credential(self, tx: Tx, access_key: str) -> tuple[str, Principal] | None:
        """Find the secret and principal of an access key among all that rooms gave out."""
        for lookup in self.credentials:
            found = lookup(tx, access_key)
            if found is not None:
                return found
        return None
