"""AWS's recorded executions, and how to compare with them.

The data are not in this repository: point TASUKI_CONFORMANCE at the folder that holds `asl/cases.jsonl`, or keep it as
`shared/conformance` beside the working copy. What the tokens in them mean is in that folder's README and placeholders.json.
"""

import json
import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tasuki.engine.commands import ScheduleTask
from tasuki.engine.events import Event, TaskFailed, TaskStarted, TaskSubmitted, TaskSucceeded
from tasuki.values.documents import Doc

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("TASUKI_CONFORMANCE", ROOT.parent / "shared" / "conformance")) / "asl"

TOKEN = re.compile(r"<[A-Za-z][\w .:-]*>")
FIXED = {"<partition>": "aws", "<region>": "us-east-1"}
DRAWN = frozenset({"RandomNumberGenerated", "generated-uuid", "activity_arn", "state_machine_role_arn"})
"""What a few recordings hold in place of a value, and placeholders.json doesn't list."""
DATE = r"(?:date|\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?)"


def cases() -> list[dict[str, Any]]:
    """Answer the recorded executions that are one execution: those with Map Runs are `distributed`."""
    return [case for case in executions() if "map:distributed" not in case["features"]]


def distributed() -> list[dict[str, Any]]:
    """Answer the recorded executions of Distributed Maps (tests/services/machines/test_map_runs_recorded.py)."""
    return [case for case in executions() if "map:distributed" in case["features"]]


@cache
def executions() -> list[dict[str, Any]]:
    """Answer every recorded execution of a Standard machine; none when the data are not here."""
    path = FOLDER / "cases.jsonl"
    if not path.exists():
        return []
    with path.open() as lines:
        found = [json.loads(line) for line in lines]
    return [case for case in found if case["kind"] == "execution" and case["type"] == "STANDARD"]


@cache
def bare_words() -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Answer the words that stand for any value: by lower-case key, and anywhere."""
    words = json.loads((FOLDER / "placeholders.json").read_text())["bare_words"]
    by_key: dict[str, set[str]] = {}
    for keys, values in words["by_key"].items():
        for key in keys.split(", "):
            by_key.setdefault(key.lower(), set()).update(values)
    return {key: frozenset(values) for key, values in by_key.items()}, frozenset(words["anywhere"])


def expand(value: Any) -> Any:
    """Answer a definition or input with its fixed tokens replaced and its repetitions written out."""
    if isinstance(value, dict):
        if set(value) == {"$repeat"}:
            text, times = value["$repeat"]
            return text * times
        return {
            expand(key): _resource(expand(inner)) if key == "Resource" else expand(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [expand(inner) for inner in value]
    if isinstance(value, str):
        for token, text in FIXED.items():
            value = value.replace(token, text)
    return value


def _resource(arn: Any) -> Any:
    """Answer an ARN that a definition may hold: names made of letters, and a whole one for an activity."""
    if arn == "activity_arn":
        return "arn:aws:states:us-east-1:111111111111:activity:recorded"
    return re.sub(r"<([\w.:-]+)>", r"\1", arn) if isinstance(arn, str) else arn


def parsed(value: Any) -> Any:
    """Parse every text of an object that is itself a JSON object: as the recordings store them, one level."""
    if isinstance(value, dict):
        return {
            key: _parsed_text(inner) if isinstance(inner, str) and inner.startswith("{") else parsed(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [parsed(inner) for inner in value]
    return value


def _parsed_text(text: str) -> Any:
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


class Matcher:
    """Compares with a recording; a token stands for the same text all over a case."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = dict(FIXED)

    def differences(self, expected: Any, actual: Any, path: str = "", key: str = "") -> Iterable[str]:
        """Answer what differs, one line each."""
        if isinstance(actual, str) and isinstance(expected, list | dict):
            # A few recordings hold parsed arrays.
            actual = _parsed_text(actual)
        if isinstance(expected, dict) and isinstance(actual, dict):
            for name in sorted(expected.keys() | actual.keys()):
                if name not in actual:
                    yield f"{path}/{name} is missing, expected {expected[name]!r:.200}"
                elif name not in expected:
                    yield f"{path}/{name} is not expected: {actual[name]!r:.200}"
                else:
                    yield from self.differences(expected[name], actual[name], f"{path}/{name}", name)
        elif isinstance(expected, list) and isinstance(actual, list):
            if len(expected) != len(actual):
                yield f"{path} has {len(actual)} members, expected {len(expected)}"
            for place, (one, other) in enumerate(zip(expected, actual, strict=False)):
                yield from self.differences(one, other, f"{path}/{place}", key)
        elif isinstance(expected, str):
            if not self._same_text(expected, actual, key):
                yield f"{path} is {actual!r:.300}, expected {expected!r:.300}"
        elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
            yield f"{path} is {actual!r:.300}, expected {expected!r:.300}"

    def _same_text(self, expected: str, actual: Any, key: str) -> bool:
        by_key, anywhere = bare_words()
        if expected in by_key.get(key.lower(), ()) or expected in anywhere or expected in DRAWN:
            return True
        if not isinstance(actual, str):
            # A token may stand for a document that our side has parsed.
            return TOKEN.fullmatch(expected) is not None
        if expected == actual:
            return True
        expected = re.sub(r"<<([\w-]+)>:(\d+)>", r"<\1:\2>", expected)  # a slip in two recordings
        pattern = ""
        names: list[str] = []
        place = 0
        for found in TOKEN.finditer(expected):
            pattern += _dated(expected[place : found.start()])
            token = found.group()
            if token in self.bound:
                pattern += f"(?:{re.escape(self.bound[token])}|{re.escape(token)})"
            elif token in names:
                pattern += f"(?P=g{names.index(token)})"
            else:
                pattern += f"(?P<g{len(names)}>.+?)"
                names.append(token)
            place = found.end()
        pattern += _dated(expected[place:])
        match = re.fullmatch(pattern, actual, re.DOTALL)
        if match is None:
            return False
        self.bound.update({token: match.group(f"g{number}") for number, token in enumerate(names)})
        return True


def _dated(text: str) -> str:
    return DATE.join(re.escape(part) for part in re.split(r"\bdate\b", text))


class Answers:
    """A handler that gives each task the answer that AWS recorded for it, in the order in which they were scheduled."""

    def __init__(self, history: list[dict[str, Any]]) -> None:
        # Where branches were sorted, their events have no numbers: answers are given in the order they stand in.
        self._unnumbered = [
            event
            for event in history
            if not isinstance(event["id"], int) and re.fullmatch(r"Task(Succeeded|Failed)", event["type"])
        ]
        history = [event for event in history if isinstance(event["id"], int)]
        self._ahead = [event for event in history if event["type"].endswith("Scheduled")]
        self._after: dict[int, list[dict[str, Any]]] = {}
        for event in history:
            self._after.setdefault(event["previousEventId"], []).append(event)

    def __call__(self, command: ScheduleTask) -> list[Event]:
        if not self._ahead and self._unnumbered:
            return [_answer(command, self._unnumbered.pop(0), spaced=False)]
        if not self._ahead:
            return []
        made: list[Event] = []
        spaced = command.resource.kind == "lambda"
        here: dict[str, Any] | None = self._ahead.pop(0)
        while here is not None:
            here = next(
                (
                    event
                    for event in self._after.get(here["id"], [])
                    if re.fullmatch(
                        r"(Task|LambdaFunction|Activity)(Started|Submitted|Succeeded|\w*Failed)", event["type"]
                    )
                ),
                None,
            )
            if here is not None:
                made.append(_answer(command, here, spaced))
        return made


def _answer(command: ScheduleTask, event: dict[str, Any], spaced: bool) -> Event:
    details: dict[str, Any] = next((value for key, value in event.items() if key.endswith("EventDetails")), {})
    kind = event["type"]
    frame, attempt = command.frame, command.attempt
    if kind.endswith("Started"):
        return TaskStarted(frame, attempt, details.get("workerName"))
    if kind.endswith("Submitted"):
        return TaskSubmitted(frame, attempt, _document(details["output"]))
    if kind.endswith("Succeeded"):
        return TaskSucceeded(frame, attempt, _document(details["output"]))
    cause = details.get("cause")
    if isinstance(cause, dict):
        cause = json.dumps(cause, separators=None if spaced else (",", ":"))
    at = {"StartFailed": "start", "SubmitFailed": "submit", "ScheduleFailed": "schedule"}
    return TaskFailed(
        frame, attempt, details.get("error"), cause, next((at[e] for e in at if kind.endswith(e)), "running")
    )


def _document(output: Any) -> Doc:
    """Answer a recorded output: text, unless it was stored parsed."""
    return Doc.of_text(output) if isinstance(output, str) else Doc(output)
