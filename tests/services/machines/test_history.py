"""GetExecutionHistory: pages in both directions, over chunks; and the chunks themselves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasuki.engine.history import HistoryEvent
from tasuki.services.machines.chunks import CHUNK_BYTES, pack_history, unpack_history
from tasuki.services.machines.errors import InvalidToken
from tasuki.values.documents import Doc
from tests.services.machines.stubs import PASS, WAIT, Play

WAITS = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Pass", "Assign": {"x": 1, "y.$": "$"}, "Next": "W"},
        "W": {"Type": "Wait", "Seconds": 1, "Next": "B"},
        "B": {"Type": "Pass", "Next": "V"},
        "V": {"Type": "Wait", "Seconds": 1, "Next": "C"},
        "C": {"Type": "Succeed"},
    },
}


def test_pages_run_over_chunks_in_both_directions(play: Play) -> None:
    execution = play.run(WAITS)
    play.house.advance(seconds=5)
    assert play.rows("history") == 3
    ids = [event["id"] for event in play.events(execution)]
    assert ids == list(range(1, 13))
    for size in (1, 2, 3, 5, 12, 1000, 0):
        for backward in (False, True):
            assert paged(play, execution, size, backward=backward) == (ids[::-1] if backward else ids)


def paged(play: Play, execution: str, size: int, *, backward: bool) -> list[int]:
    found: list[int] = []
    token: dict[str, str] = {}
    while True:
        page = play.call("GetExecutionHistory", executionArn=execution, maxResults=size, reverseOrder=backward, **token)
        assert 0 < len(page["events"]) <= (size or 100)
        found += [event["id"] for event in page["events"]]
        if "nextToken" not in page:
            return found
        token = {"nextToken": page["nextToken"]}


def test_a_forward_page_token_does_not_open_a_backward_page(play: Play) -> None:
    execution = play.run(WAIT)
    token = play.call("GetExecutionHistory", executionArn=execution, maxResults=1)["nextToken"]
    with pytest.raises(InvalidToken):
        play.call("GetExecutionHistory", executionArn=execution, reverseOrder=True, nextToken=token)


def test_events_have_aws_shape(play: Play) -> None:
    execution = play.run(WAITS, {"a": "ä"})
    started, entered, exited, *_ = play.events(execution)
    now = play.house.now
    assert started == {
        "id": 1,
        "previousEventId": 0,
        "timestamp": now,
        "type": "ExecutionStarted",
        "executionStartedEventDetails": {
            "input": json.dumps({"a": "ä"}),
            "inputDetails": {"truncated": False},
            "roleArn": "arn:aws:iam::000000000000:role/machines",
        },
    }
    assert entered["previousEventId"] == 0
    assert entered["stateEnteredEventDetails"]["name"] == "A"
    details = exited["stateExitedEventDetails"]
    assert {name: json.loads(text) for name, text in details["assignedVariables"].items()} == {"x": 1, "y": {"a": "ä"}}
    assert details["assignedVariablesDetails"] == {"truncated": False}


def test_execution_data_can_be_left_out(play: Play) -> None:
    execution = play.run(WAITS)
    page = play.call("GetExecutionHistory", executionArn=execution, includeExecutionData=False)
    started, entered, exited, *_ = page["events"]
    assert list(started["executionStartedEventDetails"]) == ["roleArn"]
    assert entered["stateEnteredEventDetails"] == exited["stateExitedEventDetails"] == {"name": "A"}


def test_a_page_ends_at_a_byte_limit(play: Play) -> None:
    large = {
        "StartAt": "A",
        "States": {
            f"{name}": {"Type": "Pass", "Next": following}
            for name, following in zip("ABCDEFGH", "BCDEFGHZ", strict=True)
        }
        | {"Z": {"Type": "Succeed"}},
    }
    execution = play.run(large, "x" * 250_000)
    first = play.call("GetExecutionHistory", executionArn=execution, maxResults=1000)
    assert 14 <= len(first["events"]) < 20
    assert len(play.events(execution)) == 20


def test_what_events_share_is_stored_once(play: Play) -> None:
    large = {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "End": True}}}
    play.run(large, "x" * 200_000)
    size = play.house.unit(lambda tx: tx.one("SELECT sum(length(body)) FROM history"))
    assert size is not None
    assert size[0] < 201_000


def test_an_execution_that_runs_at_once_is_one_chunk(play: Play) -> None:
    play.run(PASS)
    assert play.rows("history") == 1


documents = st.recursive(
    st.none() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3), max_leaves=4
)
details = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.text(max_size=5),
            "index": st.integers(0, 9),
            "input": documents.map(Doc),
            "output": documents.map(Doc),
            "assignedVariables": st.dictionaries(st.text(max_size=3), documents.map(Doc), max_size=2),
            "taskCredentials": st.just({"roleArn": "r"}),
        },
    ),
)


@given(st.lists(details, min_size=1, max_size=8), st.integers(1, 1000))
def test_chunks_answer_what_was_packed(many: list[dict[str, object] | None], first: int) -> None:
    events = [HistoryEvent(first + n, n, 5, "TaskSucceeded", one) for n, one in enumerate(many)]
    found = [event for start, _, body in pack_history(events) for event in unpack_history(start, body)]
    assert found == events


@given(st.lists(st.integers(1, 400_000), min_size=1, max_size=12))
def test_chunks_are_bounded(sizes: list[int]) -> None:
    events = [HistoryEvent(n + 1, n, 5, "X", {"input": Doc(f"{n}" + "x" * size)}) for n, size in enumerate(sizes)]
    chunks = list(pack_history(events))
    assert all(len(body) <= CHUNK_BYTES for _, _, body in chunks)
    assert [first for first, _, _ in chunks] == [1, *(first + count for first, count, _ in chunks[:-1])]
    assert sum(count for _, count, _ in chunks) == len(events)
