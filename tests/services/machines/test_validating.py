"""ValidateStateMachineDefinition: recorded answers, severities, and how many there may be."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.recorded import FOLDER, expand
from tests.services.machines.stubs import PASS, Play

WARNED = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": {"a": "$.b"}, "End": True}}}


def validate(play: Play, definition: Any, **more: Any) -> dict[str, Any]:
    text = definition if isinstance(definition, str) else json.dumps(definition)
    return play.call("ValidateStateMachineDefinition", definition=text, **more)


def test_recorded_answers(play: Play, record_property: Callable[[str, object], None]) -> None:
    if not FOLDER.exists():
        pytest.skip("the recorded AWS answers (../shared/conformance) are not beside this checkout")
    with (FOLDER / "cases.jsonl").open() as lines:
        cases = [case for case in map(json.loads, lines) if case["kind"] == "validate_definition"]
    assert len(cases) == 9
    for case in cases:
        answer = validate(play, expand(case["definition_text"]), **case["params"])
        assert answer == case["expected"]["response"], case["id"]
    record_property("cases", len(cases))


def test_warnings_are_said_when_asked_for_and_make_nothing_wrong(play: Play) -> None:
    assert validate(play, WARNED)["diagnostics"] == []
    answer = validate(play, WARNED, severity="WARNING")
    assert answer["result"] == "OK"
    (one,) = answer["diagnostics"]
    assert (one["severity"], one["code"], one["location"]) == ("WARNING", "PASS_RESULT_IS_STATIC", "/States/P/Result/a")
    assert validate(play, PASS, severity="WARNING")["diagnostics"] == []


def test_no_more_than_asked_for(play: Play) -> None:
    wrong = {"StartAt": "A", "States": {f"S{n}": {"Type": "Pass", "Extra": n, "End": True} for n in range(120)}}
    for limit, shown in ((5, 5), (0, 100), (100, 100)):
        answer = validate(play, wrong, maxResults=limit)
        assert (len(answer["diagnostics"]), answer["truncated"], answer["result"]) == (shown, True, "FAIL")
    assert validate(play, "{}")["truncated"] is False


def test_a_refusal_spoils_nothing_that_follows(play: Play) -> None:
    for wrong in ("", "{", "[]", '{"StartAt": 1, "States": 2}', '{"StartAt": "A", "States": {"A": {"Type": "Map"}}}'):
        assert validate(play, wrong)["result"] == "FAIL"
    assert validate(play, PASS) == {"result": "OK", "diagnostics": [], "truncated": False}
    play.create(PASS)
