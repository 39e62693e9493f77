"""How events are given to a stage: their payloads, and one delivery. Inside the caller's unit."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from tasuki.services.holding import held
from tasuki.services.pipes.flows import Flow, Stage
from tasuki.services.pipes.records import Sighted
from tasuki.services.switchboard import Caller, Switchboard
from tasuki.store.store import Tx
from tasuki.values import documents
from tasuki.values.errors import DomainError

MAX_INPUT_BYTES = 262_144
"""The largest input of an execution (Step Functions quotas)."""
T = TypeVar("T")


class Wish(NamedTuple):
    """One delivery."""

    seen: Sighted
    """What its parameters are taken from."""
    payload: str
    idempotency: str
    """The same for the same delivery of the same messages as they were received this time."""
    trace: str
    name: str | None = None
    """Of the execution that is to be started."""
    watcher: str | None = None


def encoded(stage: Stage, seen: Sighted, ingested: str) -> bytes:
    """Answer an event as JSON, reshaped by the stage's template. Raises `MalformedDocument`, `RecursionError`."""
    if stage.render is None:
        return documents.dumpb(seen.record)
    return stage.render(seen, ingested).encode("utf-8")


def as_text(payload: bytes) -> str:
    """Answer the payload of a target that takes any text: of a JSON string the text that it says."""
    text = payload.decode()
    return str(documents.loads(text)) if payload[:1] == b'"' else text


def array(texts: Sequence[bytes]) -> str:
    """Join events to a JSON array."""
    return (b"[" + b",".join(texts) + b"]").decode()


def arrays(kept: Sequence[T], texts: Sequence[bytes]) -> Iterator[tuple[Sequence[T], str]]:
    """Split what a batch keeps into JSON arrays that an execution takes, in order."""
    start, size = 0, 2
    for end, text in enumerate(texts):
        if end > start and size + len(text) > MAX_INPUT_BYTES:
            yield kept[start:end], array(texts[start:end])
            start, size = end, 2
        size += len(text) + 1
    if kept:
        yield kept[start:], array(texts[start:])


def hand_over(tx: Tx, switchboard: Switchboard, flow: Flow, stage: Stage, wish: Wish) -> str:
    """Give a payload to a stage; answer what it became there.

    Raises `DomainError`: the stage takes nothing, or a parameter finds nothing in the event. What was written for it is undone
    then, where a delivery may have written before it refused.
    """
    if switchboard.targets[stage.service].takes_arrays:
        return _deliver(tx, switchboard, flow, stage, wish)
    return held(tx, lambda: _deliver(tx, switchboard, flow, stage, wish))


def hand_over_all(
    tx: Tx, switchboard: Switchboard, flow: Flow, stage: Stage, wishes: Sequence[Wish]
) -> list[str] | None:
    """Give several payloads to a stage, all or none: None, if one was refused. It costs less than each by itself."""
    try:
        return held(tx, lambda: [_deliver(tx, switchboard, flow, stage, wish) for wish in wishes])
    except DomainError:
        return None


def _deliver(tx: Tx, switchboard: Switchboard, flow: Flow, stage: Stage, wish: Wish) -> str:
    caller = Caller(
        account=flow.account,
        region=flow.region,
        idempotency=wish.idempotency,
        trace=wish.trace,
        watcher=wish.watcher,
        origin=flow.arn,
    )
    parameters = stage.parameters.resolve(wish.seen.event)
    target = switchboard.targets[stage.service]
    return target.deliver(tx, stage.arn, wish.payload, wish.name, caller, parameters=parameters)
