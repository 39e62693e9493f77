"""The typed machine: what `parse` makes of a definition. Frozen; expressions are compiled, never parsed again.

::

    Machine ── Block ──┬── Pass   Task   Choice   Wait   Succeed   Fail
                       ├── Parallel ── Block, Block, ...
                       └── Map ─────── Block

Every `Block` (the machine's own, a Parallel branch, a Map's item processor) has a `path` that names it for good
(JSON pointer, `` for the root, `/States/P/Branches/0`, `/States/M/ItemProcessor`): frames are saved with it, and
`Machine.blocks` finds it again.

Wherever AWS lets a field be a literal or an expression, it is here an `Expression`: call it with a `Scope`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tasuki.values.documents import Doc


@dataclass(slots=True)
class Scope:
    """What an expression can see.

    `input` is the document that `$` means, `context` the context object (`$$`, `$states.context`), made on first use,
    `variables` those in reach, `result` and `error_output` what `$states` adds in JSONata mode. `chance` draws for
    `States.UUID` and `States.MathRandom`. In JSONata mode `input`, `result` and `error_output` are `Doc`s: an expression
    takes their text. `now` is the time that `$now()` tells, `fuel` what expressions may use up (`jsonata_compile.Fuel`).
    """

    input: Any
    context: Callable[[], dict[str, Any]]
    variables: Mapping[str, Any]
    chance: Any
    result: Any = None
    error_output: Any = None
    trace: dict[str, Any] | None = None
    """Where a mode notes how the data passed through the state, when somebody wants to know (TestState)."""
    now: int = 0
    fuel: Any = None


Expression: TypeAlias = Callable[[Scope], Any]
"""Raises `StatesError` (language/errors.py) with AWS's error name and cause."""

QueryLanguage: TypeAlias = Literal["JSONPath", "JSONata"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """How data pass through a state (JSONPath mode). None means: not given, the default applies.

    `input_path`, `output_path`: an `Expression`, or None for `$`; a path of JSON null is an expression that answers `{}`.
    `result_path`: the reference path's steps (field names and indices) below `$`; () is `$`; "discard" is JSON null.
    """

    input_path: Expression | None = None
    parameters: Expression | None = None
    result_selector: Expression | None = None
    result_path: tuple[str | int, ...] | Literal["discard"] = ()
    output_path: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrier:
    """One entry of Retry. Numbers as AWS defaults them."""

    error_equals: tuple[str, ...]
    interval_seconds: int = 1
    max_attempts: int = 3
    backoff_rate: float = 2.0
    max_delay_seconds: int | None = None
    full_jitter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Catcher:
    """One entry of Catch."""

    error_equals: tuple[str, ...]
    next: str
    result_path: tuple[str | int, ...] | Literal["discard"] = ()
    output: Expression | None = None
    assign: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What all states have. `next` None on a state with `end`."""

    name: str
    query_language: QueryLanguage = "JSONPath"
    flow: Flow = field(default_factory=Flow)
    next: str | None = None
    end: bool = False
    assign: Expression | None = None
    """Answers a dict of variable name to value."""
    output: Expression | None = None
    """JSONata's Output."""
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass(State):
    """Passes its input on, or a fixed result."""

    result: Doc | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A Task's Resource, taken apart.

    `arn:aws:states:::sqs:sendMessage.waitForTaskToken` is service `sqs`, action `sendMessage`, pattern `waitForTaskToken`;
    `arn:aws:states:::aws-sdk:sqs:sendMessage` has `sdk` true. `kind` is `integration`, `lambda` or `activity`.
    """

    arn: str
    kind: Literal["integration", "lambda", "activity"]
    service: str = ""
    action: str = ""
    pattern: Literal["", "sync", "sync:2", "waitForTaskToken"] = ""
    sdk: bool = False

    @property
    def resource_type(self) -> str:
        """What history calls `resourceType`: `sqs`, `aws-sdk:sqs`."""
        return f"aws-sdk:{self.service}" if self.sdk else self.service

    @property
    def resource(self) -> str:
        """What history calls `resource`: `sendMessage.waitForTaskToken`."""
        return f"{self.action}.{self.pattern}" if self.pattern else self.action


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(State):
    """Has work done elsewhere. Timeouts are seconds; an Expression when given by path."""

    resource: Resource
    arguments: Expression | None = None
    timeout_seconds: int | Expression | None = None
    heartbeat_seconds: int | Expression | None = None
    credentials: Expression | None = None
    retry: tuple[Retrier, ...] = ()
    catch: tuple[Catcher, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One top-level choice rule: `test(scope)` tells whether it matches."""

    test: Expression
    next: str
    assign: Expression | None = None
    output: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(State):
    """Picks the next state."""

    choices: tuple[Rule, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(State):
    """Waits. `until(scope, now)` answers the instant to go on at; raises `StatesError`."""

    until: Callable[[Scope, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeed(State):
    """Ends its block well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail(State):
    """Ends its block with an error. Each a literal text, an Expression, or None."""

    error: str | Expression | None = None
    cause: str | Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(State):
    """Runs branches side by side."""

    branches: tuple["Block", ...]
    arguments: Expression | None = None
    retry: tuple[Retrier, ...] = ()
    catch: tuple[Catcher, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReader:
    """Where a distributed Map's items come from, if not from the state's input: an object, or a listing of objects.

    `arguments` answers Bucket and Key or Prefix. `delimiter` and `headers` are for CSV, `pointer` leads into a JSON file.
    """

    action: str
    arguments: Expression | None
    input_type: str = ""
    header_location: str = ""
    headers: tuple[str, ...] = ()
    delimiter: str = ","
    pointer: str = ""
    manifest_type: str = ""
    transformation: str = "NONE"
    max_items: int | Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBatcher:
    """How items are grouped: each group is one child execution."""

    max_items: int | Expression | None = None
    max_bytes: int | Expression | None = None
    batch_input: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultWriter:
    """What becomes of the results. Without `arguments` (Bucket, Prefix) they are not exported, only transformed."""

    arguments: Expression | None
    output_type: str
    transformation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributed:
    """What makes a Map distributed. Its processor's blocks run as executions of their own."""

    express: bool
    label: str | None = None
    reader: ItemReader | None = None
    batcher: ItemBatcher | None = None
    writer: ResultWriter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(State):
    """Runs its processor once an item."""

    processor: "Block"
    distributed: Distributed | None = None
    items: Expression | None = None
    """ItemsPath (JSONPath) or Items (JSONata)."""
    item_selector: Expression | None = None
    max_concurrency: int | Expression = 0
    tolerated_failure_count: int | Expression | None = None
    tolerated_failure_percentage: float | Expression | None = None
    retry: tuple[Retrier, ...] = ()
    catch: tuple[Catcher, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A `States` object with its `StartAt`."""

    path: str
    start_at: str
    states: Mapping[str, State]
    query_language: QueryLanguage = "JSONPath"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A whole definition."""

    root: Block
    blocks: Mapping[str, Block]
    """Every block of the machine by its path, the root under ``."""
    timeout_seconds: int | None = None
    comment: str | None = None
    query_language: QueryLanguage = "JSONPath"
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """`variableReferences`: state name to the variables it reads."""
