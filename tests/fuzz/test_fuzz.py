"""Nothing that anybody may write makes the language or the engine break, hang, or say something else than a refusal.

Each target runs for its share of FUZZ_SECONDS with a new seed a round; the smoke test is one short round of each. A round
that fails prints its example as hypothesis does, and `@seed(N)` by which it comes again.
"""

import os
from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tasuki.engine.commands import ScheduleTask
from tasuki.engine.events import Event, TaskFailed, TaskSucceeded
from tasuki.language.choice import BadRule, compile_rule
from tasuki.language.definition import Machine
from tasuki.language.errors import Diagnosis, InvalidDefinition, StatesError
from tasuki.language.intrinsics import parse_intrinsic
from tasuki.language.lint import Finding, lint
from tasuki.language.parse import parse, parse_state
from tasuki.language.path_steps import BadPath
from tasuki.language.paths import parse_path, path_missing
from tasuki.values.documents import Doc, dumps
from tests.engine.player import Play
from tests.fuzz.material import CALLS, DEFINITIONS, DOCUMENTS, PATHS, QUERIES, RULES, Strategy
from tests.language.scopes import scope

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
SLOWEST_SECONDS = 20
"""One example may take so long on a busy machine; what takes longer hangs."""
STATUSES = {"RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT"}


def path(text: str, document: Any) -> None:
    """A path is refused, or reads a document, or says that it finds nothing."""
    try:
        read = parse_path(text).bind(path_missing)
    except BadPath:
        return
    _evaluate(lambda: read(scope(document, x=document)))


def call(text: str, document: Any) -> None:
    """So is a call of intrinsic functions."""
    try:
        read = parse_intrinsic(text, set())
    except BadPath:
        return
    _evaluate(lambda: read(scope(document, x=document)))


def rule(value: dict[str, Any], document: Any) -> None:
    """A choice rule says yes or no."""
    try:
        test = compile_rule(value, set())
    except BadRule:
        return
    assert _evaluate(lambda: test(scope(document))) in {True, False, None}


def _evaluate(expression: Callable[[], Any]) -> Any:
    """Answer an expression's value, which is a document; None when it fails as expressions do."""
    failed: StatesError | None = None
    try:
        value = expression()
    except StatesError as error:
        failed = error
    if failed is not None:
        assert failed.error.startswith("States.")
        assert failed.cause
        return None
    dumps(value)
    return value


def query(text: str, document: Any) -> None:
    """A query is refused, or evaluated within its bounds."""
    state = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": text, "End": True}
    if not _refusals(parse, {"StartAt": "P", "States": {"P": state}}):
        _run({"StartAt": "P", "States": {"P": state}}, document)


FAILS_WHEN_IT_RUNS = {"WRONG_PARAMETERS", "NO_EVAL"}
"""Errors of lint's own: AWS creates such a machine, and the state fails whenever it is entered."""


def definition(value: Any, document: Any) -> None:
    """A definition is refused, or runs; lint says so, too."""
    findings = lint(dumps(value), pipe_target=True)
    assert all(isinstance(one, Finding) and one.code and one.message for one in findings)
    refused = [one.message for one in findings if one.severity == "ERROR" and one.code not in FAILS_WHEN_IT_RUNS]
    assert bool(refused) == bool(_refusals(parse, value))
    if not refused:
        _run(value, document)


def lone_state(value: Any, document: Any) -> None:
    """A state without its machine is refused, or compiled."""
    del document
    states = value.get("States") if isinstance(value, dict) else None
    for state in states.values() if isinstance(states, dict) else ():
        _refusals(parse_state, state)


def _refusals(compiled: Callable[[str], Machine], value: Any) -> list[Diagnosis]:
    """Answer why a definition is refused; nothing when it is not."""
    found: list[Diagnosis] | None = None
    try:
        compiled(dumps(value))
    except InvalidDefinition as bad:
        found = bad.diagnoses
    assert found is None or found
    return found or []


def _run(value: Any, document: Any) -> None:
    """Run a machine to its end, or for so many deadlines. Tasks answer, every other time with an error."""

    def handle(wish: ScheduleTask) -> list[Event]:
        if wish.attempt % 2:
            return [TaskFailed(wish.frame, wish.attempt, "States.TaskFailed", "fuzz")]
        return [TaskSucceeded(wish.frame, wish.attempt, Doc(document))]

    play = Play(value, document, handle, save_every=0)
    play.start()
    for _ in range(20):
        if not play.fire():
            break
    assert play.status in STATUSES


TARGETS: dict[str, tuple[Callable[[Any, Any], None], Strategy]] = {
    "path": (path, PATHS),
    "call": (call, CALLS),
    "rule": (rule, RULES),
    "query": (query, QUERIES),
    "definition": (definition, DEFINITIONS),
    "lone_state": (lone_state, DEFINITIONS),
}


def play_round(name: str, number: int, examples: int) -> None:
    """Try so many examples of a target, the same for the same number."""
    target, material = TARGETS[name]

    def bounded(value: Any, document: Any) -> None:
        began = monotonic()
        target(value, document)
        took = monotonic() - began
        assert took < SLOWEST_SECONDS, f"it took {took:.0f} s"

    settled = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    settled(seed(number)(given(material, DOCUMENTS)(bounded)))()


@pytest.mark.parametrize("name", TARGETS)
def test_smoke(name: str) -> None:
    play_round(name, 0, 40)


@pytest.mark.fuzz
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(name: str) -> None:
    begin = int(os.environ.get("FUZZ_SEED", "1"))
    end = monotonic() + SECONDS / len(TARGETS)
    number = begin
    while monotonic() < end:
        play_round(name, number, 300)
        number += 1
    print(f"{name}: {number - begin} rounds from FUZZ_SEED={begin}")  # noqa: T201 - how much was done
