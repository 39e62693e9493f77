"""How history and inbox events are packed into rows. Each row begins with a format version.

A history chunk holds every event that one unit made::

    [1, [text, text, ...], [[previous, at, type, details], ...]]

In the details a document is a list with its text's place, `[3]` (nothing else there is a list): what several events
share (a state's output is the next one's input) is there once. Event ids count up from the row's `first`.
"""

from collections.abc import Iterator
from typing import Any

from tasuki.engine.events import (
    Event,
    Heartbeat,
    MapRunEnded,
    StopRequested,
    TaskFailed,
    TaskStarted,
    TaskSubmitted,
    TaskSucceeded,
)
from tasuki.engine.history import HistoryEvent
from tasuki.values.documents import Doc, Raw, pack, pack_docs, unpack
from tasuki.values.errors import StoreNewer

CHUNK_BYTES = 1 << 20
"""The most a chunk holds (HOUSE.md, "Units are small"); one event that is larger has a chunk of its own."""

_CHUNK_VERSION = 1
_INBOX_VERSION = 1


def pack_history(events: list[HistoryEvent]) -> Iterator[tuple[int, int, bytes]]:
    """Pack events, in the order of their ids, into chunks: (first id, count, body).

    All are packed at once, since they nearly always fit; where they don't, each half by itself.
    """
    if not events:
        return
    body = _body(events)
    if len(body) <= CHUNK_BYTES or len(events) == 1:
        yield events[0].id, len(events), body
        return
    middle = len(events) // 2
    yield from pack_history(events[:middle])
    yield from pack_history(events[middle:])


def _body(events: list[HistoryEvent]) -> bytes:
    """Pack events into one row's body. Runs for every unit: the encoder walks the details, not we."""
    texts: dict[str, int] = {}

    def place(doc: Doc) -> tuple[int]:
        return (texts.setdefault(doc.text, len(texts)),)

    rows = pack_docs([(event.previous, event.at, event.type, event.details) for event in events], place)
    return pack((_CHUNK_VERSION, list(texts), Raw(rows)))


def unpack_history(first: int, body: bytes) -> list[HistoryEvent]:
    """Take a chunk apart. Documents come as `Doc`s of their text. Raises `StoreNewer` for an unknown format."""
    version, texts, rows = unpack(body)
    _check("a history chunk", version, _CHUNK_VERSION)
    docs = [Doc.of_text(text) for text in texts]
    events = []
    for offset, (previous, at, kind, details) in enumerate(rows):
        if details:
            for name, value in details.items():
                if value.__class__ is list:
                    details[name] = docs[value[0]]
                elif name == "assignedVariables":
                    details[name] = {key: docs[place] for key, (place,) in value.items()}
        events.append(HistoryEvent(first + offset, previous, at, kind, details))
    return events


def pack_event(event: Event) -> bytes:
    """Pack an event for the inbox: one of those that come from elsewhere, or later."""
    row: tuple[Any, ...]
    if isinstance(event, TaskSucceeded):
        row = ("succeeded", event.frame, event.attempt, event.output.text)
    elif isinstance(event, TaskFailed):
        row = ("failed", event.frame, event.attempt, event.error, event.cause, event.at)
    elif isinstance(event, TaskSubmitted):
        row = ("submitted", event.frame, event.attempt, event.output.text, event.handle)
    elif isinstance(event, MapRunEnded):
        text = event.output.text if event.output is not None else None
        row = ("map_run", event.frame, event.attempt, text, event.error, event.cause)
    elif isinstance(event, TaskStarted):
        row = ("started", event.frame, event.attempt, event.worker)
    elif isinstance(event, Heartbeat):
        row = ("heartbeat", event.frame, event.attempt)
    else:
        assert isinstance(event, StopRequested), f"{type(event).__name__} does not travel by inbox"
        row = ("stop", event.error, event.cause)
    return pack((_INBOX_VERSION, *row))


def unpack_event(body: bytes) -> Event:
    """Make an event of what was packed. Raises `StoreNewer` for an unknown format."""
    version, kind, *rest = unpack(body)
    _check("an inbox row", version, _INBOX_VERSION)
    if kind == "succeeded":
        return TaskSucceeded(rest[0], rest[1], Doc.of_text(rest[2]))
    if kind == "failed":
        return TaskFailed(*rest)
    if kind == "submitted":
        return TaskSubmitted(rest[0], rest[1], Doc.of_text(rest[2]), rest[3])
    if kind == "map_run":
        frame, attempt, text, error, cause = rest
        return MapRunEnded(frame, attempt, Doc.of_text(text) if text is not None else None, error, cause)
    if kind == "started":
        return TaskStarted(*rest)
    if kind == "heartbeat":
        return Heartbeat(*rest)
    return StopRequested(*rest)


def unpack_submitted(body: bytes) -> tuple[tuple[int, int], str] | None:
    """Answer ((frame, attempt), handle) if an inbox row says that something was started that can be stopped."""
    _, kind, *rest = unpack(body)
    if kind != "submitted" or rest[3] is None:
        return None
    return (rest[0], rest[1]), rest[3]


def _check(what: str, version: int, known: int) -> None:
    if version != known:
        raise StoreNewer(f"{what} has format {version}; this Tasuki reads up to {known}")
