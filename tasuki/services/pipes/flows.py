"""A pipe compiled: what its rounds and calls need of it.

A batch goes through one or two stages: the enrichment, if there is one, and the target. Each reshapes the events with its
template, has parameters of its own, and is either done with what it was given or waited for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tasuki.rules.templates import BadTemplate
from tasuki.services.pipes.errors import invalid_field
from tasuki.services.pipes.filters import Filter, compile_filters
from tasuki.services.pipes.model import Pipe, batching
from tasuki.services.pipes.naming import TAG, Namer, compile_naming
from tasuki.services.pipes.target_parameters import Kind, Parameters, compile_parameters, kind_of
from tasuki.services.pipes.templates import MAX_TEMPLATE_LENGTH, Renderer, compile_template
from tasuki.values.arns import Arn, parse_arn
from tasuki.values.instant import SECOND

CACHED = 2_000
"""Compiled pipes kept in memory, by revision."""
BATCH_SIZE = "SourceParameters.SqsQueueParameters.BatchSize"
SOURCES = ("sqs",)
ENRICHMENTS = ("states", "api-destination")
"""The kinds that answer: what a pipe may be enriched by here."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a batch is given to."""

    field: str
    """`Enrichment` or `Target`."""
    arn: str
    service: str
    kind: Kind
    render: Renderer | None
    parameters: Parameters
    waits: bool
    """Whether its end decides about the messages: always that of an enrichment and of an API destination, and a machine's
    unless it is started with FIRE_AND_FORGET."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A pipe compiled. Never changes; a new definition is a new revision."""

    pipe: int
    revision: str
    arn: str
    account: str
    region: str
    source: str
    source_service: str
    batch_size: int
    window_ms: int
    passes: Filter | None
    enrichment: Stage | None
    target: Stage
    name: Namer | None
    definition: str
    """The pipe, for those batches that are enriched: they end as they began, whatever becomes of it meanwhile."""

    @property
    def first(self) -> Stage:
        """What a batch is given to first."""
        return self.enrichment or self.target

    @property
    def waits(self) -> bool:
        """Whether batches are on their way longer than one unit."""
        return self.first.waits


def compile_flow(pipe: Pipe, blame: str = "Tags", revision: str = "") -> Flow:
    """Check a pipe's own fields and compile them. Raises `ValidationException`.

    `blame` is the field to name when the execution name's tag and the batch size don't go together.
    """
    source = arn_in("Source", pipe.source)
    if source.service not in SOURCES:
        raise invalid_field(
            "Source",
            f"{pipe.source} is a {source.service} source, which this Tasuki doesn't offer; it offers {', '.join(SOURCES)}.",
        )
    _no_fifo("Source", pipe.source)
    _only("SourceParameters", pipe.source_parameters, {"FilterCriteria", "SqsQueueParameters"}, "a queue")
    batch_size, window_s = batching(pipe)
    if pipe.enrichment_parameters and not pipe.enrichment:
        raise invalid_field("EnrichmentParameters", "There are parameters of an enrichment and no Enrichment.")
    enrichment = _enrichment(pipe) if pipe.enrichment else None
    target = _target(pipe)
    for stage in (enrichment, target):
        if stage is not None and stage.kind.most is not None and batch_size > stage.kind.most:
            most = stage.kind.most
            raise invalid_field(
                BATCH_SIZE,
                f"BatchSize is {batch_size}, and {stage.kind.name} as {stage.field} takes "
                f"{'one event' if most == 1 else f'at most {most} events'} at a time: set BatchSize to {most}"
                f"{'' if most == 1 else ' or less'}.",
            )
    if TAG in pipe.tags and target.kind.key != "states":
        raise invalid_field("Tags", f"The tag {TAG} names executions, and the target is {target.kind.name}.")
    return Flow(
        pipe=pipe.id,
        revision=revision,
        arn=pipe.arn,
        account=pipe.account,
        region=pipe.region,
        source=pipe.source,
        source_service=source.service,
        batch_size=batch_size,
        window_ms=window_s * SECOND,
        passes=compile_filters(pipe.source_parameters.get("FilterCriteria") or {}),
        enrichment=enrichment,
        target=target,
        name=compile_naming(pipe.tags.get(TAG), batch_size, blame),
        definition=pipe.packed() if enrichment is not None else "",
    )


def arn_in(field: str, text: str) -> Arn:
    """Read the ARN in a field. Raises `ValidationException`."""
    parsed = parse_arn(text)
    if parsed is None:
        raise invalid_field(field, f"{text} is not an ARN.")
    return parsed


def _enrichment(pipe: Pipe) -> Stage:
    arn = arn_in("Enrichment", pipe.enrichment)
    kind = kind_of(arn.service, arn.resource)
    if kind is None or kind.key not in ENRICHMENTS:
        raise invalid_field(
            "Enrichment",
            f"{pipe.enrichment} is no enrichment that this Tasuki offers; it offers EXPRESS state machines and API destinations.",
        )
    given = pipe.enrichment_parameters
    offered = {"InputTemplate", kind.member} if kind.key == "api-destination" else {"InputTemplate"}
    _only("EnrichmentParameters", given, offered, kind.name)
    return Stage(
        field="Enrichment",
        arn=pipe.enrichment,
        service=arn.service,
        kind=kind,
        render=_renderer(pipe, "EnrichmentParameters", given.get("InputTemplate")),
        parameters=compile_parameters(kind, given.get(kind.member) or {}, f"EnrichmentParameters.{kind.member}"),
        waits=True,
    )


def _target(pipe: Pipe) -> Stage:
    arn = arn_in("Target", pipe.target)
    kind = kind_of(arn.service, arn.resource)
    if kind is None:
        raise invalid_field("Target", f"{pipe.target} is no target that this Tasuki offers to pipes.")
    given = pipe.target_parameters
    _only("TargetParameters", given, {"InputTemplate", kind.member}, kind.name)
    own = dict(given.get(kind.member) or {})
    where = f"TargetParameters.{kind.member}"
    waits = kind.key == "api-destination"
    match kind.key:
        case "states":
            waits = own.get("InvocationType") != "FIRE_AND_FORGET"
        case "sqs":
            _no_fifo("Target", pipe.target)
        case "ecs":
            if not own.get("TaskDefinitionArn"):
                raise invalid_field(f"{where}.TaskDefinitionArn", "A pipe to a cluster says which task it runs.")
        case "event-bus":
            if own.get("EndpointId"):
                raise invalid_field(
                    f"{where}.EndpointId", "This Tasuki offers no global endpoints; leave EndpointId out."
                )
            # What AWS fills in where nothing is given, as seen in events that pipes sent.
            own = {"DetailType": "Event from aws:sqs", "Source": f"Pipe {pipe.name}", **own}
    return Stage(
        field="Target",
        arn=pipe.target,
        service=arn.service,
        kind=kind,
        render=_renderer(pipe, "TargetParameters", given.get("InputTemplate")),
        parameters=compile_parameters(kind, own, where),
        waits=waits,
    )


def _no_fifo(field: str, arn: str) -> None:
    if arn.endswith(".fifo"):
        raise invalid_field(field, f"{arn} is a FIFO queue, which this Tasuki doesn't offer yet; use a standard queue.")


def _only(field: str, parameters: dict[str, Any], offered: set[str], whose: str) -> None:
    extra = sorted(name for name, value in parameters.items() if value and name not in offered)
    if extra:
        names = ", ".join(sorted(offered))
        raise invalid_field(f"{field}.{extra[0]}", f"These parameters don't fit {whose}; {field} takes {names} there.")


def _renderer(pipe: Pipe, field: str, template: str | None) -> Renderer | None:
    where = f"{field}.InputTemplate"
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


class Flows:
    """Compiled pipes by revision.

    A revision is never used twice, so what was compiled for one stays right: also when the unit that did is undone, and
    when a look that saw the revision finds the definition after it, since from then on nobody sees that revision.
    """

    def __init__(self) -> None:
        self._flows: dict[str, Flow] = {}

    def get(self, revision: str, find: Callable[[], Pipe | None]) -> Flow | None:
        """Answer the flow of a revision; None when there is no pipe to compile it of."""
        flow = self._flows.get(revision)
        if flow is None:
            pipe = find()
            if pipe is None:
                return None
            if len(self._flows) >= CACHED:
                self._flows.clear()
            flow = self._flows[revision] = compile_flow(pipe, revision=revision)
        return flow
