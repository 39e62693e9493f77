"""Frames as rows: every field comes back, and formats have a version."""

from dataclasses import fields

import pytest

from tasuki.engine.execution import Frame, Phase
from tasuki.engine.saved import VERSION, pack_counts, pack_frame, unpack_frame
from tasuki.values.documents import Doc, pack, unpack
from tasuki.values.errors import StoreNewer

FULL = Frame(
    id=7,
    parent=3,
    index=2,
    block="/States/M/ItemProcessor",
    state="T",
    phase=Phase.RUNNING,
    input=Doc({"big": 2**80, "text": "é"}),
    last_event=41,
    variables={"v": 2**70, "w": [None, 1.5]},
    item=Doc({"k": 1}),
    entered_at=1_700_000_000_000,
    entered_event=40,
    attempt=9,
    started=True,
    token="ab" * 32,
    handle="arn:aws:ecs:...",
    retries=[1, 0],
    retry_count=1,
    wake_at=1,
    timeout_at=2,
    heartbeat_at=3,
    heartbeat_ms=4,
    items=[Doc(2**65), Doc("x")],
    concurrency=5,
    total=6,
    opened=4,
    done=3,
)


def test_every_field_of_a_frame_is_saved() -> None:
    empty = Frame(1, None, 0, "", "A", Phase.READY, Doc({}), 0)
    for one in fields(Frame):
        assert getattr(FULL, one.name) != getattr(empty, one.name), f"{one.name} is not put to the test"
    assert unpack_frame(pack_frame(FULL)) == FULL
    assert unpack_frame(pack_frame(empty)) == empty


def test_counts_are_newer_than_the_body() -> None:
    body = pack_frame(FULL)
    moved = unpack_frame(body)
    moved.last_event, moved.opened, moved.done, moved.heartbeat_at = 50, 5, 4, 77
    assert unpack_frame(body, pack_counts(moved)) == moved


def test_a_newer_format_is_refused() -> None:
    body = pack([VERSION + 1, *unpack(pack_frame(FULL))[1:]])
    with pytest.raises(StoreNewer, match=f"format {VERSION + 1}"):
        unpack_frame(body)
    with pytest.raises(StoreNewer):
        unpack_frame(pack_frame(FULL), pack([VERSION + 1, 1, 1, 1, None]))


def test_a_body_of_version_one_still_reads() -> None:
    # Written by the first release: must read for ever.
    first = pack(
        [
            1,
            2,
            1,
            0,
            "",
            "A",
            "waiting",
            "[1]",
            3,
            None,
            None,
            5,
            2,
            0,
            False,
            None,
            None,
            [],
            0,
            9,
            None,
            None,
            None,
            None,
            0,
            0,
            0,
            0,
        ]
    )
    frame = unpack_frame(first)
    assert (frame.id, frame.parent, frame.phase, frame.input.value, frame.wake_at) == (2, 1, Phase.WAITING, [1], 9)
