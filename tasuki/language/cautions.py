"""What AWS warns of in a definition that it accepts (ValidateStateMachineDefinition with severity WARNING).

The codes and their meaning are the API reference's; the texts are ours, as none is recorded.
"""

import re
from collections.abc import Iterator
from typing import Any

from tasuki.language.check import blocks_of
from tasuki.language.errors import Diagnosis
from tasuki.language.payload import escape

_PATH = re.compile(r"\$\$?(\.|\[)|\$\$$|States\.[A-Z]\w*\(")
_TEMPLATES = ("Parameters", "ItemSelector", "ResultSelector", "Assign")
_LITERAL = re.compile(r"(?:String|Numeric|Boolean|Timestamp)(?:Equals|LessThan|GreaterThan)\w*(?<!Path)")


def cautions(value: dict[str, Any]) -> list[Diagnosis]:
    """Answer the warnings about a definition whose schema is right."""
    found: list[Diagnosis] = []
    languages: dict[str, str] = {"": value.get("QueryLanguage", "JSONPath")}
    for pointer, block in blocks_of(value):
        outer = languages.setdefault(pointer, block.get("QueryLanguage", languages[""]))
        for name, state in block["States"].items():
            if state.get("QueryLanguage", outer) == "JSONPath":
                found.extend(_of_state(state, f"{pointer}/States/{escape(name)}"))
    return found


def _of_state(state: dict[str, Any], at: str) -> Iterator[Diagnosis]:
    if state["Type"] == "Pass":
        for place, key, _ in _paths(state.get("Result"), f"{at}/Result"):
            yield _caution(
                "PASS_RESULT_IS_STATIC", f"The Result of a Pass state is static: the path in '{key}' stays text", place
            )
    for field in _TEMPLATES:
        for place, key, _ in _paths(state.get(field), f"{at}/{field}"):
            yield _caution(
                "NO_DOLLAR", f"No '.$' at the end of the field '{key}', whose value looks like a path", place
            )
    for number, rule in enumerate(state.get("Choices", ())):
        yield from _of_rule(rule, f"{at}/Choices[{number}]")


def _of_rule(rule: dict[str, Any], at: str) -> Iterator[Diagnosis]:
    for field, operand in rule.items():
        if field == "Not":
            yield from _of_rule(operand, f"{at}/Not")
        elif field in {"And", "Or"}:
            for place, inner in enumerate(operand):
                yield from _of_rule(inner, f"{at}/{field}[{place}]")
        elif isinstance(operand, str) and _LITERAL.fullmatch(field) and _PATH.match(operand):
            yield _caution(
                "NO_PATH", f"The value of '{field}' looks like a path; did you mean '{field}Path'?", f"{at}/{field}"
            )


def _paths(value: Any, at: str, key: str = "") -> Iterator[tuple[str, str, str]]:
    """Go through the texts that look like a path under keys without `.$`: place, key, text."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not name.endswith(".$"):
                yield from _paths(inner, f"{at}/{escape(name)}", name)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _paths(inner, f"{at}/{place}", key)
    elif isinstance(value, str) and _PATH.match(value):
        yield at, key, value


def _caution(code: str, message: str, at: str) -> Diagnosis:
    return Diagnosis(code, message, at, "WARNING")
