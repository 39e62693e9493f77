"""What the door hands to a room, and what a room hands back.

The protocol is given a table `{service: {operation name: Operation}}` and knows nothing else about rooms.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tasuki.values.instant import Instant


@dataclass(frozen=True, slots=True)
class Principal:
    """Who signed a request. `actions` is None for the owner, else the `service:Operation` names allowed."""

    access_key: str
    actions: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One validated call.

    `input` follows botocore's model: strings, numbers, booleans, lists, dicts, blobs as bytes and timestamps as
    `Instant`. `base_url` is how the client reached us (`http://127.0.0.1:4566`), for queue URLs. `trace` is the
    `X-Amzn-Trace-Id` header. `region` and `account` come from the signature's scope and the configuration.
    """

    service: str
    operation: str
    input: Mapping[str, Any]
    request_id: str
    principal: Principal
    account: str
    region: str
    base_url: str
    trace: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotYet:
    """A long poll's answer when there is nothing: try again when `topic` rings or at `wake_at`, until `until`.

    `answer` is what to reply when the time is up. Where `crowd` is given, so many may wait on the topic at a time, and
    whoever is one too many gets its error.
    """

    topic: str
    until: Instant
    wake_at: Instant | None
    answer: dict[str, Any]
    crowd: "Crowd | None" = None


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many may wait for the same thing."""

    most: int
    refusal: Callable[[], Exception]


Kind: TypeAlias = Literal["read", "write", "poll", "act"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a service.

    `run(tx, request)` is the unit; it answers the output members or raises a `DomainError`. Kind `read` gets a
    snapshot, `write` a unit, and `poll` a snapshot first: `look(tx, request)` answers `NotYet` or None; on None,
    `run` is a write unit which may also answer `NotYet` (somebody else was faster). What is no unit, for it concerns the node
    itself, is of kind `act` (see `acting`): the door awaits `act(request)`, and cancels it when the client hangs up.
    """

    kind: Kind
    run: Callable[[Any, Request], dict[str, Any] | NotYet]
    look: Callable[[Any, Request], NotYet | None] | None = None
    act: Callable[[Request], Awaitable[dict[str, Any]]] | None = None


def acting(act: Callable[[Request], Awaitable[dict[str, Any]]]) -> Operation:
    """Make an operation that is awaited outside units. It raises `DomainError`s as units do."""
    return Operation("act", _no_unit, act=act)


def _no_unit(_tx: Any, request: Request) -> dict[str, Any]:
    raise TypeError(f"{request.operation} is no unit: its `act` is to be awaited")


Operations: TypeAlias = Mapping[str, Operation]
