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
from tasuki.services.machines.events import weight_of
from tasuki.values.documents import Doc, pack, unpack
from tasuki.values.errors import StoreNewer

CHUNK_BYTES = 1 << 20
"""The most a chunk holds (HOUSE.md, "Units are small"); one event that is larger has a chunk of its own."""
_LOOK_CLOSER = CHUNK_BYTES // 4
"""Below this no single event can fill a chunk."""

_CHUNK_VERSION = 1
_INBOX_VERSION = 1


class _Chunk:
    """Events on their way into one row."""

    __slots__ = ("rows", "size", "texts")

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.texts: dict[str, int] = {}
        self.size = 0

    def add(self, event: HistoryEvent) -> None:
        """Put an event in. Runs a hundred times a unit: no call that can be spared."""
        details = event.details
        packed: dict[str, Any] | None = None
        self.size += 48
        if details is not None:
            texts = self.texts
            packed = {}
            for name, value in details.items():
                if value.__class__ is Doc:
                    text = value.text
                    new = len(texts)
                    place = texts.setdefault(text, new)
                    if place == new:
                        self.size += len(text)
                    packed[name] = (place,)
                elif name == "assignedVariables":
                    packed[name] = {key: (self._place(doc.text),) for key, doc in value.items()}
                else:
                    packed[name] = value
        self.rows.append((event.previous, event.at, event.type, packed))

    def _place(self, text: str) -> int:
        new = len(self.texts)
        place = self.texts.setdefault(text, new)
        if place == new:
            self.size += len(text)
        return place

    def body(self) -> bytes:
        return pack((_CHUNK_VERSION, list(self.texts), self.rows))


def pack_history(events: list[HistoryEvent]) -> Iterator[tuple[int, int, bytes]]:
    """Pack events, in the order of their ids, into chunks: (first id, count, body)."""
    start, chunk = 0, _Chunk()
    for place, event in enumerate(events):
        if chunk.size > _LOOK_CLOSER and chunk.size + weight_of(event) > CHUNK_BYTES:
            yield events[start].id, place - start, chunk.body()
            start, chunk = place, _Chunk()
        chunk.add(event)
    if chunk.rows:
        yield events[start].id, len(events) - start, chunk.body()


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
