"""Every tape still plays: from the start, and from its rows in the middle."""

import json
from pathlib import Path

import pytest

from tests.engine.player import Play
from tests.engine.tapes import FOLDER, RUNS, answered, replay, restore, rows_of, text_of

TAPES = sorted(FOLDER.glob("*.json"))


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first tapes were made before parameters were checked, with some that no service takes."""
    monkeypatch.setattr("tasuki.engine.states.task.check_parameters", lambda *_: None)


def test_every_run_has_its_tape() -> None:
    assert {path.stem for path in TAPES} >= set(RUNS)


@pytest.mark.parametrize("path", TAPES, ids=lambda path: path.stem)
def test_a_tape_plays_byte_for_byte(path: Path) -> None:
    tape = json.loads(path.read_text())
    play = Play(tape["definition"], input_text=tape["input"])
    half = len(tape["told"]) // 2
    replay(play, tape["told"][:half])
    assert text_of(rows_of(play)) == text_of(tape["middle"]), "rows are written otherwise than when the tape was made"
    replay(play, tape["told"][half:])
    assert text_of(answered(play)) == text_of(tape["answered"])


@pytest.mark.parametrize("path", TAPES, ids=lambda path: path.stem)
def test_a_tape_plays_on_from_the_rows_of_its_time(path: Path) -> None:
    tape = json.loads(path.read_text())
    play = Play(tape["definition"], input_text=tape["input"])
    restore(play, tape["middle"])
    begun = play.execution.last_event
    replay(play, tape["told"][len(tape["told"]) // 2 :])
    rest = [event for event in tape["answered"]["history"] if event["id"] > begun]
    assert text_of(play.wire()) == text_of(rest)
    assert play.rows.bodies == {}
