"""A pipe: its row, and what may be asked of it.

States (user guide, "Amazon EventBridge Pipes concepts", and the API's `PipeState`)::

    CreatePipe ──► RUNNING or STOPPED (as desired)          DeletePipe ──► gone
    RUNNING ── StopPipe, UpdatePipe ──► STOPPED             STOPPED ── StartPipe, UpdatePipe ──► RUNNING
    RUNNING ── source or target is gone ──► STOPPED, with a StateReason
    STOPPED ── StartPipe, but source or target is gone ──► START_FAILED, with a StateReason

A change takes effect in the unit that asks for it. The answers name the passing state as AWS's do (CREATING, UPDATING,
STARTING, STOPPING, DELETING), and whoever describes the pipe afterwards sees where it arrived. Only STOPPING lasts: as long as
batches are on their way that it gave to an enrichment or a target which it waits for. They end as they began, whether the pipe is
stopped, changed or deleted meanwhile, and nothing has to wait for them: AWS's ConflictException for a pipe in a passing state
doesn't occur.

What can't work is refused when the pipe is made, not shown as RUNNING while nothing moves: other sources, enrichments and
targets, a queue or machine that isn't there, a batch that is larger than the target takes, and REQUEST_RESPONSE, which is the
default, on a machine of type STANDARD (AWS accepts that one and stops the pipe later).
"""

from dataclasses import asdict, dataclass
from typing import Any

from tasuki.services.pipes import queries
from tasuki.services.pipes.errors import invalid_field
from tasuki.store.store import Row, Tx
from tasuki.values import documents
from tasuki.values.arns import build_arn
from tasuki.values.instant import Instant
from tasuki.values.operations import Request

DEFAULT_BATCH_SIZE = 10
MAX_BATCH_SIZE = 10_000
MAX_BATCH_SIZE_WITHOUT_WINDOW = 10
MAX_WINDOW_S = 300
MAX_REASON_LENGTH = 512
MAX_TAGS = 50


def as_reason(text: str) -> str:
    """Answer a StateReason: no longer than the API's."""
    return text[:MAX_REASON_LENGTH]


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
    enrichment_parameters: dict[str, Any]
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
        for position in (9, 11, 13, 15, 17):
            if columns[position] is not None:
                columns[position] = documents.loads(columns[position])
        return cls(*columns)

    def packed(self) -> str:
        """Write the pipe down, for `unpacked`."""
        return documents.dumps(asdict(self))

    @classmethod
    def unpacked(cls, text: str) -> "Pipe":
        """Read what `packed` wrote."""
        return cls(**documents.loads(text))

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
            **({"EnrichmentParameters": self.enrichment_parameters} if self.enrichment_parameters else {}),
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


def batching(pipe: Pipe) -> tuple[int, int]:
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
