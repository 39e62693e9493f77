"""Frames as rows: packed small, readable by the next version.

A frame is two blobs. The *body* is all of it as it was when it was last touched; the *counts* are the few numbers
that move while children of a Map come and go, or while a task shows signs of life (`Frames.counted`), so that a wide Map
does not rewrite its items, nor a heartbeat the task's input. When
both are there, the counts are the newer ones: saving a body saves the counts too (or clears them).

Both are MessagePack lists that begin with a format version: a saved frame outlives the code that wrote it. Users'
documents are inside as JSON text, because MessagePack has no integers beyond 64 bits and JSON does.
"""

from typing import Any

from tasuki.engine.execution import Frame, Phase
from tasuki.values.documents import Doc, pack, unpack
from tasuki.values.errors import StoreNewer

VERSION = 1


def pack_frame(frame: Frame) -> bytes:
    """Answer the body of a frame."""
    return pack(
        (
            VERSION,
            frame.id,
            frame.parent,
            frame.index,
            frame.block,
            frame.state,
            frame.phase.value,
            frame.input.text,
            frame.last_event,
            Doc(frame.variables).text if frame.variables else None,
            frame.item.text if frame.item is not None else None,
            frame.entered_at,
            frame.entered_event,
            frame.attempt,
            frame.started,
            frame.token,
            frame.handle,
            frame.retries,
            frame.retry_count,
            frame.wake_at,
            frame.timeout_at,
            frame.heartbeat_at,
            frame.heartbeat_ms,
            [item.text for item in frame.items] if frame.items is not None else None,
            frame.concurrency,
            frame.total,
            frame.opened,
            frame.done,
        )
    )


def pack_counts(frame: Frame) -> bytes:
    """Answer the counts of a frame: what a child that comes or goes changes in its parent, and the next heartbeat."""
    return pack((VERSION, frame.last_event, frame.opened, frame.done, frame.heartbeat_at))


def unpack_frame(body: bytes, counts: bytes | None = None) -> Frame:
    """Answer the frame that was packed. Raises `StoreNewer` for a format this version doesn't know."""
    fields = _known(unpack(body))
    (_, number, parent, index, block, state, phase, text, last_event, variables, item, *rest) = fields
    (entered_at, entered_event, attempt, started, token, handle, retries, retry_count, *rest) = rest
    (wake_at, timeout_at, heartbeat_at, heartbeat_ms, items, concurrency, total, opened, done) = rest
    if counts is not None:
        _, last_event, opened, done, heartbeat_at = _known(unpack(counts))
    return Frame(
        id=number,
        parent=parent,
        index=index,
        block=block,
        state=state,
        phase=Phase(phase),
        input=Doc.of_text(text),
        last_event=last_event,
        variables=Doc.of_text(variables).value if variables is not None else {},
        item=Doc.of_text(item) if item is not None else None,
        entered_at=entered_at,
        entered_event=entered_event,
        attempt=attempt,
        started=started,
        token=token,
        handle=handle,
        retries=retries,
        retry_count=retry_count,
        wake_at=wake_at,
        timeout_at=timeout_at,
        heartbeat_at=heartbeat_at,
        heartbeat_ms=heartbeat_ms,
        items=[Doc.of_text(one) for one in items] if items is not None else None,
        concurrency=concurrency,
        total=total,
        opened=opened,
        done=done,
    )


def _known(fields: list[Any]) -> list[Any]:
    """Answer the fields if their format is known."""
    if fields[0] != VERSION:
        raise StoreNewer(f"a frame has format {fields[0]}; this Tasuki reads up to {VERSION}")
    return fields
