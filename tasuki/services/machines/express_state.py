"""Where an Express execution stands, in one blob: all its open frames, results, and news it was not told yet.

A MessagePack list that begins with a format version. An Express execution is small and short, so it is saved whole.
"""

from collections.abc import Iterable

from tasuki.engine.events import Event
from tasuki.engine.execution import Execution, Frames
from tasuki.engine.saved import pack_frame, unpack_frame
from tasuki.services.machines.chunks import pack_event, unpack_event
from tasuki.values.documents import Doc, pack, unpack
from tasuki.values.errors import StoreNewer

_VERSION = 1


def pack_standing(state: Execution, news: Iterable[Event], *, goes_on: bool) -> bytes:
    """Pack where an execution stands. `goes_on`: it stopped at its bound, so something in it could run."""
    frames = state.frames
    return pack(
        (
            _VERSION,
            (state.last_event, state.last_frame, state.last_attempt, state.history_bytes, state.deadline),
            [pack_frame(frame) for frame in frames.loaded()],
            [
                (parent, child, output.text)
                for parent, outputs in frames.new_results.items()
                for child, output in outputs.items()
            ],
            [pack_event(event) for event in news],
            goes_on,
        )
    )


def with_news(blob: bytes, event: Event) -> bytes:
    """Put an event behind the news that an execution was not told yet."""
    version, numbers, frames, results, news, goes_on = unpack(blob)
    _check(version)
    return pack((version, numbers, frames, results, [*news, pack_event(event)], goes_on))


def unpack_standing(state: Execution, blob: bytes) -> tuple[list[Event], bool]:
    """Put an execution where it stood; answer (news it was not told, whether it goes on by itself).

    Raises `StoreNewer` for an unknown format.
    """
    version, numbers, frames, results, news, goes_on = unpack(blob)
    _check(version)
    state.last_event, state.last_frame, state.last_attempt, state.history_bytes, state.deadline = numbers
    state.frames = Frames()
    for body in frames:
        state.frames.open(unpack_frame(body, None))
    for parent, child, output in results:
        state.frames.finish_child(parent, child, Doc.of_text(output))
    return [unpack_event(body) for body in news], goes_on


def _check(version: int) -> None:
    if version != _VERSION:
        raise StoreNewer(f"an Express execution has format {version}; this Tasuki reads up to {_VERSION}")
