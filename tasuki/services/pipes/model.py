"""A pipe: its row, what may be asked of it, and its compiled form.

States (user guide, "Amazon EventBridge Pipes concepts", and the API's `PipeState`)::

    CreatePipe ──► RUNNING or STOPPED (as desired)          DeletePipe ──► gone
    RUNNING ── StopPipe, UpdatePipe ──► STOPPED             STOPPED ── StartPipe, UpdatePipe ──► RUNNING
    RUNNING ── source or target is gone ──► STOPPED, with a StateReason
    STOPPED ── StartPipe, but source or target is gone ──► START_FAILED, with a StateReason

A change takes effect in the unit that asks for it. The answers name the passing state as AWS's do (CREATING, UPDATING,
STARTING, STOPPING, DELETING), and whoever describes the pipe afterwards sees where it arrived; so a pipe is never
in a passing state when somebody calls, and AWS's ConflictException for that doesn't occur.

What can't work is refused when the pipe is made, not shown as RUNNING while nothing moves: other sources and
targets, enrichments, a queue or machine that isn't there, and REQUEST_RESPONSE, which is the default, on a machine
of type STANDARD (AWS accepts that one and stops the pipe later).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasuki.rules.templates import BadTemplate
from tasuki.services.pipes import queries
from tasuki.services.pipes.errors import invalid_field
from tasuki.services.pipes.filters import Filter, compile_filters
from tasuki.services.pipes.naming import TAG, Namer, compile_naming
from tasuki.services.pipes.templates import MAX_TEMPLATE_LENGTH, Renderer, compile_template
from tasuki.services.switchboard import Switchboard
from tasuki.store.store import Row, Tx
from tasuki.values import documents
from tasuki.values.arns import build_arn, parse_arn
from tasuki.values.instant import SECOND, Instant
from tasuki.values.operations import Request

DEFAULT_BATCH_SIZE = 10
MAX_BATCH_SIZE = 10_000
MAX_BATCH_SIZE_WITHOUT_WINDOW = 10
MAX_WINDOW_S = 300
MAX_REASON_LENGTH = 512
MAX_TAGS = 50


def as_reason(text: str) -> str:
    """Answer a StateReason that every store keeps: bounded, and with a sign for U+0000, which PostgreSQL's texts can't hold."""
    return text[:MAX_REASON_LENGTH].replace("\0", "\N{SYMBOL FOR NULL}")


_COUNTED = ("Name", "Delivered", "Duplicates", "Filtered", "Failed")


@dataclass(frozen=True, slots=True)
class Pipe:
    """A pipe's row; parameter objects are decoded, in the API's shapes."""

    id: int
    account: str
    region: str
    name: str
    description: str | None
    desired: str
    current: str
    reason: str
    source: str
    source_parameters: dict[str, Any]
    enrichment: str
    target: str
    target_parameters: dict[str, Any]
    role: str
    log_configuration: dict[str, Any] | None
    kms_key: str | None
    tags: dict[str, str]
    created: Instant
    modified: Instant

    @classmethod
    def of_row(cls, row: Row) -> "Pipe":
        """Read a row of `queries.BY_NAME`, `BY_ID` or `PAGE`."""
        columns: list[Any] = list(row)
        for position in (9, 12, 14, 16):
            if columns[position] is not None:
                columns[position] = documents.loads(columns[position])
        return cls(*columns)

    @property
    def arn(self) -> str:
        """The pipe's ARN."""
        return build_arn("pipes", self.region, self.account, f"pipe/{self.name}")

    def summary(self, current: str | None = None) -> dict[str, Any]:
        """Answer what Create, Update, Start, Stop and Delete answer; `current` is the passing state to name."""
        return {
            "Arn": self.arn,
            "Name": self.name,
            "DesiredState": self.desired,
            "CurrentState": current or self.current,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
        }

    def listed(self) -> dict[str, Any]:
        """Answer the entry of ListPipes."""
        return {
            **self.summary(),
            **self._reason(),
            "Source": self.source,
            "Target": self.target,
            "Enrichment": self.enrichment,
        }

    def described(self) -> dict[str, Any]:
        """Answer DescribePipe."""
        parameters = {
            "Description": self.description,
            "LogConfiguration": self.log_configuration,
            "KmsKeyIdentifier": self.kms_key,
        }
        return {
            **self.listed(),
            **{name: value for name, value in parameters.items() if value is not None},
            "SourceParameters": {**self.source_parameters, "SqsQueueParameters": self._sqs_parameters()},
            "TargetParameters": self.target_parameters,
            "RoleArn": self.role,
            "Tags": self.tags,
        }

    def _sqs_parameters(self) -> dict[str, Any]:
        """Answer `SqsQueueParameters` with what is in force, defaults included, as AWS shows it."""
        defaults = {"BatchSize": DEFAULT_BATCH_SIZE, "MaximumBatchingWindowInSeconds": 0}
        return {**defaults, **(self.source_parameters.get("SqsQueueParameters") or {})}

    def _reason(self) -> dict[str, str]:
        return {"StateReason": self.reason} if self.reason else {}


@dataclass(frozen=True, slots=True)
class Flow:
    """A pipe compiled: what its rounds need of it. Never changes; a new definition is a new revision."""

    pipe: int
    arn: str
    account: str
    region: str
    source: str
    source_service: str
    target: str
    target_service: str
    target_parameters: dict[str, Any]
    batch_size: int
    window_ms: int
    passes: Filter | None
    render: Renderer | None
    name: Namer | None
    waits: bool
    """Whether the end of what it starts decides about the messages (REQUEST_RESPONSE, which is the default)."""


def compile_flow(pipe: Pipe, blame: str = "Tags") -> Flow:
    """Check a pipe's own fields and compile them. Raises `ValidationException`.

    `blame` is the field to name when the execution name's tag and the batch size don't go together.
    """
    source_service, target_service = _service("Source", pipe.source), _service("Target", pipe.target)
    batch_size, window_s = _batching(pipe)
    return Flow(
        pipe=pipe.id,
        arn=pipe.arn,
        account=pipe.account,
        region=pipe.region,
        source=pipe.source,
        source_service=source_service,
        target=pipe.target,
        target_service=target_service,
        target_parameters=pipe.target_parameters,
        batch_size=batch_size,
        window_ms=window_s * SECOND,
        passes=compile_filters(pipe.source_parameters.get("FilterCriteria") or {}),
        render=_renderer(pipe),
        name=compile_naming(pipe.tags.get(TAG), batch_size, blame),
        waits=_invocation(pipe) != "FIRE_AND_FORGET",
    )


def _invocation(pipe: Pipe) -> str | None:
    parameters = pipe.target_parameters.get("StepFunctionStateMachineParameters") or {}
    invocation: str | None = parameters.get("InvocationType")
    return invocation


def _service(field: str, arn: str) -> str:
    parsed = parse_arn(arn)
    if parsed is None:
        raise invalid_field(field, f"{arn} is not an ARN.")
    return parsed.service


def _batching(pipe: Pipe) -> tuple[int, int]:
    """Check `SqsQueueParameters`; answer (batch size, window in seconds)."""
    where = "SourceParameters.SqsQueueParameters"
    parameters = pipe.source_parameters.get("SqsQueueParameters") or {}
    size = parameters.get("BatchSize", DEFAULT_BATCH_SIZE)
    window_s = parameters.get("MaximumBatchingWindowInSeconds", 0)
    if not 1 <= size <= MAX_BATCH_SIZE:
        raise invalid_field(f"{where}.BatchSize", f"BatchSize must be between 1 and {MAX_BATCH_SIZE} (inclusive)")
    if not 0 <= window_s <= MAX_WINDOW_S:
        raise invalid_field(
            f"{where}.MaximumBatchingWindowInSeconds",
            f"MaximumBatchingWindowInSeconds must be between 0 and {MAX_WINDOW_S} (inclusive)",
        )
    if size > MAX_BATCH_SIZE_WITHOUT_WINDOW:
        if pipe.source.endswith(".fifo"):
            raise invalid_field(f"{where}.BatchSize", "BatchSize must be at most 10 for a FIFO queue.")
        if window_s == 0:
            raise invalid_field(
                f"{where}.MaximumBatchingWindowInSeconds",
                "MaximumBatchingWindowInSeconds must be greater than 0 if BatchSize is greater than 10",
            )
    return size, window_s


def _renderer(pipe: Pipe) -> Renderer | None:
    where = "TargetParameters.InputTemplate"
    template = pipe.target_parameters.get("InputTemplate")
    if not template:
        return None
    if len(template) > MAX_TEMPLATE_LENGTH:
        raise invalid_field(where, f"Member must have length less than or equal to {MAX_TEMPLATE_LENGTH}")
    constants = {
        "pipe-arn": pipe.arn,
        "pipe-name": pipe.name,
        "source-arn": pipe.source,
        "enrichment-arn": pipe.enrichment,
        "target-arn": pipe.target,
    }
    try:
        return compile_template(template, constants)
    except BadTemplate as bad:
        raise invalid_field(where, str(bad)) from None


def check_surroundings(tx: Tx, switchboard: Switchboard, pipe: Pipe) -> None:
    """Refuse what this house doesn't offer, and sources and targets that aren't there. Raises `ValidationException`."""
    if pipe.enrichment:
        raise invalid_field(
            "Enrichment", "This Tasuki offers no enrichment; shape the events in the target state machine instead."
        )
    _offered("Source", pipe.source, switchboard.sources)
    _offered("Target", pipe.target, switchboard.targets)
    _only("SourceParameters", pipe.source_parameters, {"FilterCriteria", "SqsQueueParameters"})
    _only("TargetParameters", pipe.target_parameters, {"InputTemplate", "StepFunctionStateMachineParameters"})
    invocation = _invocation(pipe)
    waits = switchboard.targets[_service("Target", pipe.target)].waits(tx, pipe.target)
    if invocation != "FIRE_AND_FORGET" and waits is False:
        given = "it is absent, which means REQUEST_RESPONSE" if invocation is None else f"it is {invocation}"
        raise invalid_field(
            "TargetParameters.StepFunctionStateMachineParameters.InvocationType",
            f"InvocationType must be FIRE_AND_FORGET for a state machine of type STANDARD; {given}, and a standard workflow "
            "can't be called synchronously.",
        )
    problem = missing(tx, switchboard, pipe.source, pipe.target, pipe.target_parameters)
    if problem is not None:
        raise invalid_field(*problem)


def _offered(field: str, arn: str, offers: Mapping[str, Any]) -> None:
    service = _service(field, arn)
    if service not in offers:
        offered = ", ".join(sorted(offers)) or "none"
        raise invalid_field(
            field, f"{arn} is a {service} {field.lower()}, which this Tasuki doesn't offer; it offers {offered}."
        )


def _only(field: str, parameters: dict[str, Any], offered: set[str]) -> None:
    extra = sorted(name for name, value in parameters.items() if value and name not in offered)
    if extra:
        names = ", ".join(sorted(offered))
        raise invalid_field(f"{field}.{extra[0]}", f"These parameters don't fit this pipe; {field} takes {names}.")


def missing(
    tx: Tx, switchboard: Switchboard, source: str, target: str, target_parameters: dict[str, Any]
) -> tuple[str, str] | None:
    """Answer None, or (field, why) when the source or the target isn't there or takes no deliveries."""
    why = switchboard.sources[_service("Source", source)].check(tx, source)
    if why is not None:
        return "Source", why
    parameters = target_parameters.get("StepFunctionStateMachineParameters") or {}
    why = switchboard.targets[_service("Target", target)].check(tx, target, parameters)
    return ("Target", why) if why is not None else None


def counters(tx: Tx, account: str, region: str, name: str) -> dict[str, int] | None:
    """Answer what became of a pipe's messages so far: delivered, duplicates, filtered, failed; None without such a pipe.

    A message that failed twice counts twice. The API of Pipes has no place for it.
    """
    row = tx.one(queries.COUNTERS, (account, region, name))
    return dict(zip(("delivered", "duplicates", "filtered", "failed"), row, strict=True)) if row is not None else None


def list_counters(tx: Tx, request: Request) -> dict[str, Any]:
    """Answer ListPipeCounters, an operation of our own: the counters of every pipe."""
    rows = tx.all(queries.ALL_COUNTERS, (request.account, request.region))
    return {"Pipes": [dict(zip(_COUNTED, row, strict=True)) for row in rows]}
