"""Events: taken in, and kept until the rules have seen them.

Only what a rule might want is kept: the source of each event is held against the sources that the bus's patterns ask for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tasuki.rules.patterns import PatternError, compile_pattern
from tasuki.services.buses import queries as sql
from tasuki.services.buses.errors import InvalidEventPatternException, ThirdBus, ValidationException
from tasuki.services.buses.model import DEFAULT, NAME, Bus, Event, bus_name, lane_of, trace_header
from tasuki.services.buses.shelf import wanted
from tasuki.services.switchboard import Happening
from tasuki.store.store import Tx
from tasuki.values.documents import loads
from tasuki.values.errors import MalformedDocument
from tasuki.values.instant import Instant
from tasuki.values.operations import Request

MOST_BYTES = 256 * 1024
"""Of all entries of a call together (recorded: test_put_event_with_too_big_detail)."""
_TIME_BYTES = 14
_SPARE = 200
"""Levels that an event's detail leaves free of those that a document may have."""
_MANDATORY = ("id", "source", "detail-type", "account", "region", "time")


def put_events(tx: Tx, request: Request) -> dict[str, Any]:
    """PutEvents. What is wrong with an entry is said in its place; events of one call keep their order.

    An event for a bus that isn't there has an id, and goes nowhere (recorded: test_put_events_nonexistent_event_bus).
    Raises `ValidationException` for what concerns the whole call.
    """
    given = request.input
    if given.get("EndpointId") is not None:
        raise ValidationException("EndpointId names a global endpoint, which is not offered here: leave it out.")
    return put_all(tx, given["Entries"], request.account, request.region, request.trace)


def put_all(
    tx: Tx, entries: Sequence[Mapping[str, Any]], account: str, region: str, trace: str | None
) -> dict[str, Any]:
    """Take in entries that are of the model's shape; answer as PutEvents does. Raises `ValidationException`."""
    if sum(map(_size, entries)) > MOST_BYTES:
        raise ValidationException("Total size of the entries in the request is over the limit.")
    answers: list[dict[str, str]] = []
    events: list[tuple[str, Event, str]] = []
    for entry in entries:
        wrong = _wrong(entry)
        if wrong is not None:
            answers.append({"ErrorCode": wrong[0], "ErrorMessage": wrong[1]})
            continue
        event = Event(
            id=tx.chance.uuid(),
            source=entry["Source"],
            detail_type=entry["DetailType"],
            account=account,
            region=region,
            at=entry.get("Time", tx.now),
            resources=entry.get("Resources") or (),
            detail=entry["Detail"],
        )
        answers.append({"EventId": event.id})
        bus = bus_name(entry.get("EventBusName"), account, region)
        if bus is not None:
            events.append((bus, event, entry.get("TraceHeader") or trace or ""))
    keep(tx, events)
    return {"FailedEntryCount": sum("ErrorCode" in answer for answer in answers), "Entries": answers}


def _size(entry: Mapping[str, Any]) -> int:
    """Count an entry as AWS does (user guide, "Calculating PutEvents event entry size")."""
    texts = [entry.get(name) or "" for name in ("Source", "DetailType", "Detail")] + list(entry.get("Resources") or ())
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) + (_TIME_BYTES if "Time" in entry else 0)


def _wrong(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Answer code and message of what is wrong with an entry (recorded)."""
    for name in ("Source", "DetailType", "Detail"):
        if not entry.get(name):
            return "InvalidArgument", f"Parameter {name} is not valid. Reason: {name} is a required argument."
    if entry["Source"].startswith("aws."):
        return "NotAuthorizedForSourceException", "Not authorized for the source."
    return None if is_detail(entry["Detail"]) else ("MalformedDetail", "Detail is malformed.")


def is_detail(text: str) -> bool:
    """Tell whether a text is a JSON object that can be read wherever it goes.

    How deep a document may be depends on how deep in our own calls it is read: what only just fits here is refused, so that
    whoever looks at the event later can read it.
    """
    try:
        detail = loads(text)
        if text.count("[") + text.count("{") > _SPARE:
            loads("[" * _SPARE + text + "]" * _SPARE)
    except MalformedDocument:
        return False
    return isinstance(detail, dict)


def keep(tx: Tx, events: Sequence[tuple[str, Event, str]]) -> None:
    """Keep events (with their bus and trace) that a rule of their bus may want."""
    rows = []
    for bus, event, trace in events:
        number = wanted(tx, event.account, event.region, bus, event.source)
        if number is not None:
            lane = lane_of(event.source)
            rows.append((number, lane, 0, tx.now, trace or trace_header(tx.chance.hex(24), tx.now), event.body))
    if rows:
        tx.many(sql.ADD_EVENT, rows)
        tx.ring(NAME)


def pass_on(tx: Tx, bus: Bus, body: str, hops: int, trace: str) -> str:
    """Take in an event that comes from another bus, as it is; answer its id. Raises `ThirdBus`."""
    if hops > 1:
        raise ThirdBus(f"The event came from another bus already, so it is not passed on to {bus.arn}.")
    event = loads(body)
    number = wanted(tx, bus.account, bus.region, bus.name, event["source"])
    if number is not None:
        tx.run(sql.ADD_EVENT, (number, lane_of(event["source"]), hops, tx.now, trace, body))
        tx.ring(NAME)
    return str(event["id"])


def publish(tx: Tx, happenings: Sequence[Happening]) -> None:
    """Put the house's own events on their buses (switchboard `publish`)."""
    keep(tx, [(one.bus, made_of(tx, one), one.trace) for one in happenings])


def made_of(tx: Tx, happening: Happening) -> Event:
    """Make an event of what happened."""
    return Event(
        id=tx.chance.uuid(),
        source=happening.source,
        detail_type=happening.detail_type,
        account=happening.account,
        region=happening.region,
        at=happening.at,
        resources=happening.resources,
        detail=happening.detail,
    )


def wants(tx: Tx, account: str, region: str, source: str) -> bool:
    """Whether any rule of the default bus may match (switchboard `wants`)."""
    return wanted(tx, account, region, DEFAULT, source) is not None


def try_pattern(_tx: Tx, request: Request) -> dict[str, Any]:
    """TestEventPattern. Raises `InvalidEventPatternException`, `ValidationException` for an event that is none."""
    try:
        event = loads(request.input["Event"])
    except MalformedDocument:
        event = None
    if not isinstance(event, dict) or any(name not in event for name in _MANDATORY):
        raise ValidationException("Parameter Event is not valid.")
    return {"Result": check_pattern(request.input["EventPattern"])(event)}


def check_pattern(pattern: str) -> Any:
    """Compile a pattern for an operation. Raises `InvalidEventPatternException`."""
    try:
        return compile_pattern(pattern)
    except PatternError as bad:
        raise InvalidEventPatternException(f"Event pattern is not valid. Reason: {bad}") from None


def scheduled(tx: Tx, rule: str, account: str, region: str, at: Instant) -> Event:
    """Make the event of a rule's planned time (recorded: events_schedule)."""
    return Event(tx.chance.uuid(), "aws.events", "Scheduled Event", account, region, at, (rule,), "{}")
