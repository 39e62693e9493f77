"""How history and inbox events are packed into rows. Each row begins with a format version.

A history chunk holds every event that one unit made::

    [1, [text, text, ...], [[previous, at, type, plain, documents], ...]]

`plain` are the details that are no documents, `documents` maps a detail's name to its text's place in the list (or, for
`assignedVariables`, to a map of such): what several events share (a state's output is the next one's input) is there
once. Event ids count up from the row's `first`.
"""

from collections.abc import Iterator
from typing import Any

from tasuki.engine.events import Event, StopRequested, TaskFailed, TaskSubmitted, TaskSucceeded
from tasuki.engine.history import HistoryEvent
from tasuki.values.documents import Doc, pack, unpack
from tasuki.values.errors import StoreNewer

CHUNK_BYTES = 1 << 20
"""The most a chunk holds (HOUSE.md, "Units are small"); one event that is larger has a chunk of its own."""

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
        details = event.details
        if not details:
            self.rows.append((event.previous, event.at, event.type, details, None))
            self.size += 48
            return
        plain: dict[str, Any] = {}
        documents: dict[str, Any] = {}
        for name, value in details.items():
            if isinstance(value, Doc):
                documents[name] = self._place(value.text)
            elif isinstance(value, dict):
                documents[name] = {key: self._place(one.text) for key, one in value.items()}
            else:
                plain[name] = value
                if isinstance(value, str):
                    self.size += len(value)
        self.rows.append((event.previous, event.at, event.type, plain, documents or None))
        self.size += 64

    def _place(self, text: str) -> int:
        texts = self.texts
        place = texts.get(text)
        if place is None:
            place = texts[text] = len(texts)
            self.size += len(text)
        return place

    def body(self) -> bytes:
        return pack((_CHUNK_VERSION, list(self.texts), self.rows))


def pack_history(events: list[HistoryEvent]) -> Iterator[tuple[int, int, bytes]]:
    """Pack events, in the order of their ids, into chunks: (first id, count, body)."""
    start, chunk = 0, _Chunk()
    for place, event in enumerate(events):
        if chunk.size >= CHUNK_BYTES - _weight(event) and chunk.rows:
            yield events[start].id, place - start, chunk.body()
            start, chunk = place, _Chunk()
        chunk.add(event)
    if chunk.rows:
        yield events[start].id, len(events) - start, chunk.body()


def _weight(event: HistoryEvent) -> int:
    """Answer about how many bytes an event may add; only worth a look when it could matter."""
    details = event.details or {}
    return sum(len(value.text) for value in details.values() if isinstance(value, Doc))


def unpack_history(first: int, body: bytes) -> list[HistoryEvent]:
    """Take a chunk apart. Documents come as `Doc`s of their text. Raises `StoreNewer` for an unknown format."""
    version, texts, rows = unpack(body)
    _check("a history chunk", version, _CHUNK_VERSION)
    docs = [Doc.of_text(text) for text in texts]
    events = []
    for offset, (previous, at, kind, plain, documents) in enumerate(rows):
        if documents:
            for name, place in documents.items():
                plain[name] = {key: docs[one] for key, one in place.items()} if isinstance(place, dict) else docs[place]
        events.append(HistoryEvent(first + offset, previous, at, kind, plain))
    return events


def pack_event(event: Event, resource: str | None = None) -> bytes:
    """Pack an event for the inbox: one of those that come from elsewhere, or later.

    `resource` names the integration that a TaskSubmitted came from, so that what it started can still be stopped.
    """
    row: tuple[Any, ...]
    if isinstance(event, TaskSucceeded):
        row = ("succeeded", event.frame, event.attempt, event.output.text)
    elif isinstance(event, TaskFailed):
        row = ("failed", event.frame, event.attempt, event.error, event.cause, event.at)
    elif isinstance(event, TaskSubmitted):
        row = ("submitted", event.frame, event.attempt, event.output.text, event.handle, resource)
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
    return StopRequested(*rest)


def unpack_submitted(body: bytes) -> tuple[int, int, str, str] | None:
    """Answer (frame, attempt, handle, resource) if an inbox row says that something was started that can be stopped."""
    _, kind, *rest = unpack(body)
    if kind != "submitted" or rest[3] is None or rest[4] is None:
        return None
    return rest[0], rest[1], rest[3], rest[4]


def _check(what: str, version: int, known: int) -> None:
    if version != known:
        raise StoreNewer(f"{what} has format {version}; this Tasuki reads up to {known}")
