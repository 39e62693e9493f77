"""What a pipe says about its target, in the words of the target's own API. Pure.

`TargetParameters` has one object for each kind of target, and `EnrichmentParameters` one for HTTP; `switchboard.Target` says
what each room wants to hear. A string that is a path (`$.body.tenant`) anywhere in such an object is replaced, for each event,
by what is there (user guide, "Amazon EventBridge Pipes targets", dynamic path parameters): text as it is, anything else as JSON
text. Paths see what the target's template sees: the enrichment's answer if there is one, else the record with its body parsed.

A path that leads nowhere, or to null, fails that event, with the path and the parameter named. (AWS doesn't say what it does;
a made-up value would go to the wrong group, or start the wrong command.)
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from tasuki.rules.paths import MISSING, compile_path
from tasuki.services.pipes.errors import UnresolvedParameter, invalid_field
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument
from tasuki.values.instant import Instant, from_datetime, has_date

Resolver: TypeAlias = Callable[[Any], dict[str, Any]]
"""Takes an event, answers the target's parameters. Raises `UnresolvedParameter`."""
_Place: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of target."""

    key: str
    """The service of its ARN, or for `events` the first part of the resource."""
    name: str
    member: str
    """The object of TargetParameters that is its own."""
    most: int | None
    """Events that one batch may have (user guide, "Amazon EventBridge Pipes batching and concurrency"); None: as many as come."""
    translate: Callable[[dict[str, Any], str], dict[str, Any]]
    """Takes the object, with its places filled, and where it stands."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """An object of parameters, compiled."""

    fixed: dict[str, Any] | None
    """For the target's check: what is known without an event, and paths in the place of text; None if that is too little."""
    resolve: Resolver


def kind_of(service: str, resource: str) -> Kind | None:
    """Answer what kind of target an ARN of this service names; None for what is no target of pipes."""
    if service == "events":
        return KINDS.get(resource.partition("/")[0])
    return KINDS.get(service)


def compile_parameters(kind: Kind, given: dict[str, Any], where: str) -> Parameters:
    """Check and compile the object of a kind; `where` names it. Raises `ValidationException`."""
    place = _compile(given, where)
    if place is None:
        fixed = kind.translate(given, where)
        return Parameters(fixed, lambda _event: fixed)
    fill = place
    known = {name: value for name, value in given.items() if not (name in _UNKNOWN and _is_dynamic(value))}
    is_enough = not _is_dynamic(given.get("TaskDefinitionArn"))
    return Parameters(
        kind.translate(known, where) if is_enough else None, lambda event: kind.translate(fill(event), where)
    )


def _compile(value: Any, where: str) -> _Place | None:
    """Answer what fills the places in a value; None when it has none."""
    if isinstance(value, str):
        return _compile_path(value, where) if _is_place(value) else None
    if isinstance(value, dict):
        members = {name: _compile(member, f"{where}.{name}") for name, member in value.items()}
        if not any(members.values()):
            return None
        return lambda event: {
            name: place(event) if (place := members[name]) is not None else member for name, member in value.items()
        }
    if isinstance(value, list):
        places = [_compile(member, f"{where}[{at}]") for at, member in enumerate(value)]
        if not any(places):
            return None
        return lambda event: [
            place(event) if place is not None else member for place, member in zip(places, value, strict=True)
        ]
    return None


def _is_place(text: str) -> bool:
    return text == "$" or text.startswith("$.")


def _compile_path(path: str, where: str) -> _Place:
    find = compile_path(path)
    if find is None:
        raise invalid_field(where, f"{path} is not a path; write it like $.body.jobId or $.body.lines[0].id.")

    def place(event: Any) -> str:
        value = find(event)
        if value is MISSING or value is None:
            raise UnresolvedParameter(f"{where}: {path} leads nowhere in this event")
        try:
            return value if isinstance(value, str) else documents.dumps(value)
        except MalformedDocument as bad:  # nested so deep that it could just be read
            raise UnresolvedParameter(f"{where}: {path} can't be written as JSON: {bad}") from None

    return place


def _is_dynamic(value: Any) -> bool:
    return isinstance(value, str) and _is_place(value)


_UNKNOWN = frozenset({"Time", "TaskDefinitionArn"})
"""What is nothing without an event, since a path's text can't stand for it."""


# -- kinds --------------------------------------------------------------------------------------------------


def _as_given(given: dict[str, Any], _where: str) -> dict[str, Any]:
    return given


def _bus(given: dict[str, Any], where: str) -> dict[str, Any]:
    told = dict(given)
    if "Time" in told:
        instant: Instant | None = None
        with suppress(ValueError, TypeError):  # TypeError: it says no zone
            instant = from_datetime(datetime.fromisoformat(told["Time"]))
        if instant is None or not has_date(instant):
            raise UnresolvedParameter(
                f"{where}.Time: {told['Time']} is no RFC 3339 time with a zone, like 2026-01-31T06:00:00Z, in the years 1 to 9999"
            )
        told["Time"] = instant
    return told


_RENAMED = {"TaskDefinitionArn": "TaskDefinition", "TaskCount": "Count"}


def _tasks(given: dict[str, Any], _where: str) -> dict[str, Any]:
    return {_RENAMED.get(name, name): _capitalised(value) for name, value in given.items()}


def _capitalised(value: Any) -> Any:
    """Write member names as RunTask's in a state machine: some of Pipes' begin with a small letter, as ECS's own do."""
    if isinstance(value, dict):
        return {name[:1].upper() + name[1:]: _capitalised(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_capitalised(member) for member in value]
    return value


KINDS = {
    "states": Kind("states", "a state machine", "StepFunctionStateMachineParameters", None, _as_given),
    "sqs": Kind("sqs", "a queue", "SqsQueueParameters", 10, _as_given),
    "ecs": Kind("ecs", "a cluster", "EcsTaskParameters", 1, _tasks),
    "event-bus": Kind("event-bus", "an event bus", "EventBridgeEventBusParameters", 10, _bus),
    "api-destination": Kind("api-destination", "an API destination", "HttpParameters", 1, _as_given),
}
"""By `Kind.key`."""
