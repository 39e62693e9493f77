"""How rooms reach each other. Everything here happens inside the caller's unit: together or not at all.

Each room plugs in what it offers when the node is built; nobody imports anybody.

=================  ====================================================================================
plug               offered by
=================  ====================================================================================
integrations       queues `sqs:sendMessage`, tasks `ecs:runTask`, machines `states:startExecution`
watchers           machines (`machines`), pipes (`pipes`): told when a task or execution they watch has ended
sources            queues: taken from by pipes
targets            machines, queues, tasks, buses (and their API destinations): given to by pipes, schedules and rules
post               deliveries: tries a delivery, again and again, until it is taken or given up
bury               queues: puts a dead letter into one
senders            schedules, buses: what a posted delivery says at each try, and in a dead-letter queue
publish, wants     buses: the house's own events
withdraw, turn     buses: a call to an API destination that waits for its turn: nobody waits for it; when that comes
objects            nobody yet: what Map Runs read from and write to
credentials        tasks: the key of a running task
operations         all rooms with an API: what `aws-sdk:` integrations call
house              pipes: operations of the house's own service, `tasuki`, beside ListHandovers
handovers          handovers: the record of what was passed on
=================  ====================================================================================

`watcher` is a string `ROOM:KEY`, chosen by the caller and handed back untouched: `finished(tx, watcher, outcome)`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from tasuki.services.room import Room
from tasuki.store.store import Tx
from tasuki.values.instant import Instant
from tasuki.values.operations import Operation, Principal

NOTHING: Mapping[str, Any] = MappingProxyType({})
PAYLOAD = "<payload>"
"""Stands in a target's parameters for what a delivery says."""


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

    def receive(self, tx: Tx, arn: str, limit: int, max_bytes: int, hold_ms: int = 0) -> list[Received]:
        """Claim up to `limit` messages as a receive does (counts, dead-letter redrive included).

        They are hidden for the queue's visibility timeout, and for `hold_ms` at least.
        """

    def delete(self, tx: Tx, arn: str, receipts: Sequence[str]) -> None:
        """Delete received messages by receipt handle."""

    def release(self, tx: Tx, arn: str, receipts: Sequence[str], delay_ms: int) -> None:
        """Give received messages back: receivable again after `delay_ms`."""

    def leave(self, tx: Tx, arn: str, receipts: Sequence[str], received: Instant) -> None:
        """Leave messages as any consumer that failed does: receivable again a visibility timeout after `received`."""


class Target(Protocol):
    """Whatever is given to: a machine, a queue, a cluster of tasks, a bus, an API destination.

    `parameters` are in the words of the target's own API, whoever sends (pipes, schedules and rules each have shapes of their own,
    and translate them):

    ================  =========================================================================================
    target            parameters
    ================  =========================================================================================
    machine           `InvocationType` (`FIRE_AND_FORGET`; else, and by default, an Express machine is waited for)
    queue             `MessageGroupId`, `MessageDeduplicationId`
    cluster           RunTask's: `TaskDefinition`, `Count`, `LaunchType`, `Overrides`, `Group`, `Tags`, ... in PascalCase.
                      `Overrides` may be `PAYLOAD`: then the payload of each try is their JSON
    bus               `DetailType`, `Source`, `Resources`, `Time` (an Instant)
    API destination   `PathParameterValues`, `HeaderParameters`, `QueryStringParameters`
    ================  =========================================================================================
    """

    takes_arrays: bool
    """Whether one delivery may be a JSON array of a whole batch; else it is one event."""
    takes_text: bool
    """Whether a payload may be any text; else it is JSON."""

    def check(self, tx: Tx, arn: str, parameters: dict[str, Any]) -> str | None:
        """Answer None if the target is there and takes deliveries with these parameters, else why not."""

    def waits(self, tx: Tx, arn: str) -> bool | None:
        """Tell whether the end of a delivery can be waited for; None when there is no such target."""

    def deliver(
        self,
        tx: Tx,
        arn: str,
        payload: str,
        name: str | None,
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,
    ) -> str:
        """Hand over `payload` in this unit; answer what it became there (an execution's or a task's ARN, a message's id).

        Where it can be waited for, the caller's watcher hears of the end. A machine takes a `name`: a second delivery under it
        answers the first one's ARN and starts nothing. Raises `DomainError` (throttled, too large, gone); what was written
        before is the caller's to undo (`holding.held`).
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
    """`DELIVERED`, `DUPLICATE`, `FILTERED`, or `FAILED`, `DEAD_LETTERED`, `DROPPED` and `: reason`."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something for one target, to be tried until it is taken or given up: a tick of a schedule, an event that a rule matched.

    `source` and `source_id` say what it is of (the schedule's ARN and the tick; the rule's ARN and the event's id); with the target
    they name it in the record of handovers. `payload` is as the sender keeps it: `Sender.payload` makes each try's text of it.
    """

    sender: str
    """The room that posts it, by its name in `senders`."""
    source: str
    source_id: str
    target: str
    """An ARN in the house; also `arn:aws:scheduler:::aws-sdk:SERVICE:ACTION`, whose payload is the operation's input."""
    payload: str
    account: str
    region: str
    trace: str
    since: Instant
    """From when its age counts: when it was due."""
    max_age_ms: int
    max_retries: int
    """Tries after the first one."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """As `Target` wants them."""
    dead_letter: str | None = None
    """The queue's ARN that gets it when it is given up; without one it is dropped, and the record says so."""
    context: Mapping[str, str] = field(default_factory=dict)
    """What the sender wants to find again at each try."""
    watcher: str | None = None
    """Told once, when it was taken (or, waited for, has succeeded) or was given up. `ROOM:KEY`."""
    letter: str | None = None
    """The body of its dead letter, where that is not what the target was given."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a try failed: `code` is the error's name, `message` its words.

    Where an error has an older name, that is it (`AWS.SimpleQueueService.NonExistentQueue`: Scheduler user guide, "Configuring a
    dead-letter queue").
    """

    code: str
    message: str


class Sender(Protocol):
    """A room that posts deliveries."""

    def payload(self, tx: Tx, delivery: Delivery, attempt: int, try_id: str) -> str:
        """Answer the text of one try. `attempt` counts from 1; `try_id` is this try's own (hex)."""

    def is_final(self, refusal: Refusal) -> bool:
        """Tell whether trying again makes no sense."""

    def dead_letter(
        self, delivery: Delivery, attempt: int, try_id: str, refusal: Refusal, exhausted: str
    ) -> dict[str, str]:
        """Answer the string attributes of the dead letter. `exhausted` is `MaximumRetryAttempts`, `MaximumEventAgeInSeconds` or ``."""


@dataclass(frozen=True, slots=True)
class Happening:
    """An event for a bus. `detail` is JSON text (an object)."""

    source: str
    detail_type: str
    detail: str
    account: str
    region: str
    at: Instant
    resources: tuple[str, ...] = ()
    bus: str = "default"
    trace: str = ""


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

    post: Callable[[Tx, Delivery], None] = lambda _tx, _delivery: None
    """Try a delivery now, in this unit; what is not taken is tried again later, and given up in the end. Never raises for a refusal."""
    senders: dict[str, Sender] = field(default_factory=dict)
    """By room."""
    bury: Callable[[Tx, str, str, Mapping[str, str], str], str] = lambda _tx, _arn, _body, _attributes, _trace: ""
    """Put (a standard queue's ARN, body, string attributes, trace) there as a dead letter; answer the message's id.

    What a queue does not take is cut: then the attribute `IS_PAYLOAD_TRUNCATED` says `true`. Raises `DomainError`."""
    wants: Callable[[Tx, str, str, str], bool] = lambda _tx, _account, _region, _source: False
    """Whether any rule of the default bus may match an event of this source: whoever makes an event asks first. Cheap."""
    withdraw: Callable[[Tx, str], None] = lambda _tx, _call: None
    """Nobody waits any more for this call to an API destination (what `deliver` answered): it is not made, unless it is being made."""
    turn: Callable[[Tx, str, Caller], Instant | None] = lambda _tx, _arn, _caller: None
    """When the turn of a call to an API destination (its ARN, and who asked) comes that waits for it; None if it doesn't. Only reads."""
    publish: Callable[[Tx, Sequence[Happening]], None] = lambda _tx, _happenings: None
    """Put events on their buses, in this unit."""

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
