"""The clock story: eight of its nights, its real absence, and its checks, which must notice what they are there to notice."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clock import absence, nights, story

from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.stories import Options
from tests.cli.conftest import run

EIGHT = 8
PLANNED = "2026-10-09T16:00:00Z"
RESULT = {"scheduledTime": PLANNED, "scheduledDate": "2026-10-10"}
SEEN = absence.Seen(PLANNED, [RESULT], 3.5, 1, 1, 0)


@pytest.fixture(scope="module")
def played() -> nights.Told:
    """Nights that die after each commit that a night has, and at rest."""
    return nights.perform(EIGHT)


def test_every_date_once_whatever_commit_was_the_last(played: nights.Told) -> None:
    rows, fault = nights.reckon(played, EIGHT)
    assert fault == ""
    assert "all, at rest" in played.crashes
    assert [row.scheduled_date for row in rows] == [f"2026-10-{day:02}" for day in range(2, 2 + EIGHT)]
    assert (rows[0].planned, rows[0].crash_after, rows[0].tries, rows[0].ended, rows[0].result) == (
        "2026-10-01T16:00:00Z",
        "commit 1",
        1,
        "10-02 02:00",
        "once",
    )


def changed(told: nights.Told, what: str) -> nights.Told:
    """Spoil one thing about what was played."""
    results, executions = list(told.results), list(told.executions)
    if what == "a result twice":
        return replace(told, results=[*results, results[3]])
    if what == "no result":
        return replace(told, results=results[1:])
    if what == "a strange result":
        return replace(told, results=[*results, {"scheduledDate": "2026-12-24"}])
    if what == "no execution":
        return replace(told, executions=executions[1:])
    if what == "an execution twice":
        return replace(told, executions=[*executions, executions[0]])
    if what == "a failure":
        return replace(told, executions=[replace(executions[0], status="FAILED"), *executions[1:]])
    if what == "a run twice":
        return replace(told, runs=[*told.runs, told.runs[0]])
    assert what == "no crash"
    return replace(told, lives=told.lives - 1)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("a result twice", "night 4 (2026-10-05): 2 results"),
        ("no result", "night 1 (2026-10-02): 0 results"),
        ("a strange result", "results for 2026-12-24, which nobody planned"),
        ("no execution", "no execution was given 2026-10-01T16:00:00Z"),
        ("an execution twice", "9 executions for 8 nights"),
        ("a failure", "its execution is FAILED"),
        ("a run twice", "its runs ended with [0, 0], not [0]"),
        ("no crash", "7 crashes in 8 nights"),
    ],
)
def test_what_is_not_as_it_should_be_is_the_verdict(played: nights.Told, what: str, said: str) -> None:
    assert said in nights.reckon(changed(played, what), EIGHT)[1]


def test_a_wrong_date_is_noticed(played: nights.Told) -> None:
    first = played.runs[0]
    right, first.environment = first.environment, {**first.environment, "SCHEDULED_DATE": "2026-10-01"}
    try:
        assert "its task was told 2026-10-01" in nights.reckon(played, EIGHT)[1]
    finally:
        first.environment = right


def test_the_absence_as_it_should_be() -> None:
    assert absence.date_of(PLANNED) == "2026-10-10"
    assert absence.reckon(SEEN, "2026-10-10") == ""


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (replace(SEEN, results=[]), "results for []"),
        (replace(SEEN, results=[RESULT, RESULT]), f"not for {PLANNED} once"),
        (replace(SEEN, results=[{**RESULT, "scheduledTime": "2026-10-09T16:00:04Z"}]), "2026-10-09T16:00:04Z"),
        (replace(SEEN, results=[{**RESULT, "scheduledDate": "2026-10-09"}]), "was told 2026-10-09, not 2026-10-10"),
        (replace(SEEN, executions=2), "2 executions"),
        (replace(SEEN, handovers=2), "2 hand-overs"),
        (replace(SEEN, left=1), "1 still to come"),
        (replace(SEEN, late_s=0.1), "0.1 s after its time"),
    ],
)
def test_an_absence_that_shows(spoiled: absence.Seen, said: str) -> None:
    assert said in absence.reckon(spoiled, "2026-10-10")


@pytest.mark.clients
def test_a_tick_that_is_due_while_the_node_is_down(tmp_path: Path) -> None:
    said: list[str] = []
    seen = absence.perform(tmp_path, said.append)
    assert absence.reckon(seen, absence.date_of(seen.planned)) == ""
    assert "killed with SIGKILL" in said[0]


@pytest.mark.parametrize(("words", "late_s"), [((), 3.5), (("--keep",), 3.5), ((), 0.0)])
def test_what_the_story_prints_and_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], late_s: float, played: nights.Told
) -> None:
    kept = bool(words) or not late_s

    def perform(data: Path, _say: Any) -> absence.Seen:
        (data / "node.log").write_text("last words")
        return replace(SEEN, late_s=late_s)

    monkeypatch.setattr(absence, "perform", perform)
    monkeypatch.setattr(nights, "perform", lambda: played)
    monkeypatch.setattr(nights, "reckon", lambda told, reckon=nights.reckon: reckon(told, EIGHT))
    done = run("demo", "clock", "--json", *words, cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (len(told["nights"]), bool(told["verdict"])) == (EIGHT, late_s == 0)
    assert done.returncode == (Code.DONE if late_s else Code.NO)
    assert bool(list(tmp_path.rglob("node.log"))) == kept
    assert ("kept: " in done.stderr) == kept


@pytest.mark.parametrize("options", [Options(crash=True), Options(jobs=9), Options(seconds=9)])
def test_options_of_other_stories_are_refused(options: Options) -> None:
    with pytest.raises(Complaint) as refused:
        story.play(options)
    assert refused.value.code is Code.USAGE
