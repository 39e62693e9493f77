"""Slips in JSONata that AWS accepts at creation, and that show when the state runs, or never."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tasuki.language.integration_lint import Slip, states_in
from tasuki.language.integration_parameters import nearest
from tasuki.language.jsonata_compile import BadQuery, compile_query
from tasuki.language.jsonata_functions import ADDED
from tasuki.language.jsonata_scan import Words, scan
from tasuki.language.jsonata_templates import is_query
from tasuki.language.payload import escape
from tasuki.language.variables import assigns

_PLAIN = frozenset(
    [
        "Type",
        "Comment",
        "QueryLanguage",
        "Resource",
        "Next",
        "End",
        "Default",
        "Label",
        "Branches",
        "ItemProcessor",
        "Iterator",
        "Retry",
        "ErrorEquals",
    ]
)
"""Fields that never hold expressions, or whose states are looked at by themselves."""
_TEMPLATES = ("Parameters", "ItemSelector", "ResultSelector", "Assign", "Result")
_HAS_RESULT = frozenset({"Task", "Parallel", "Map"})
_TEXT = re.compile(r"""\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')\s*""")
FUNCTIONS = sorted(
    ADDED
    | {
        "sum",
        "max",
        "min",
        "average",
        "string",
        "length",
        "substring",
        "substringBefore",
        "substringAfter",
        "uppercase",
        "lowercase",
        "trim",
        "pad",
        "contains",
        "split",
        "join",
        "match",
        "replace",
        "base64encode",
        "base64decode",
        "encodeUrlComponent",
        "encodeUrl",
        "decodeUrlComponent",
        "decodeUrl",
        "number",
        "abs",
        "floor",
        "ceil",
        "round",
        "power",
        "sqrt",
        "formatNumber",
        "formatBase",
        "formatInteger",
        "parseInteger",
        "boolean",
        "not",
        "exists",
        "count",
        "append",
        "sort",
        "reverse",
        "shuffle",
        "distinct",
        "zip",
        "keys",
        "lookup",
        "spread",
        "merge",
        "sift",
        "each",
        "error",
        "assert",
        "type",
        "now",
        "millis",
        "fromMillis",
        "toMillis",
        "map",
        "filter",
        "single",
        "reduce",
    }
)
"""JSONata's functions and those that Step Functions adds."""


def slips(value: dict[str, Any]) -> Iterator[Slip]:
    """Complain about the states of a definition that AWS accepts."""
    times = Counter(name for _, state, _ in states_in(value) for _, names in assigns(state) for name in names)
    for at, state, language in states_in(value):
        if state["Type"] == "Choice" and "Default" not in state and not _covers_all(state["Choices"]):
            yield Slip(
                "NO_DEFAULT",
                "WARNING",
                at,
                "The Choice has no Default: when no rule matches, the execution fails with States.NoChoiceMatched, "
                "which a Choice cannot catch.",
                "Add Default, if only to a Fail state that says what was unexpected.",
            )
        if language == "JSONata":
            yield from _of_state(state, at, times)
        else:
            yield from _marks_in_json_path(state, at)


def calls(state: dict[str, Any]) -> frozenset[str]:
    """Answer the names that a state's expressions call as functions."""
    return frozenset[str]().union(*(_words(text).called for _, text in _texts(state, "") if is_query(text)))


def nearest_function(name: str) -> str:
    """Answer the function that a slip of the pen may have meant, or nothing."""
    return nearest(name, FUNCTIONS)


def _of_state(state: dict[str, Any], at: str, times: Counter[str]) -> Iterator[Slip]:
    for place, text in _texts(state, ""):
        if not is_query(text):
            yield from _literal(text, f"{at}{place}")
            continue
        words = _words(text)
        if "eval" in words.called and not re.search(r"\$eval\s*:=", text):
            message = (
                "Step Functions has no $eval: the state fails with States.QueryEvaluationError when this is evaluated."
            )
            yield Slip(
                "NO_EVAL", "ERROR", f"{at}{place}", message, "Write the expression itself, or use $parse for JSON."
            )
        if "result" in words.of_states and not _sees_result(state, place):
            yield Slip(
                "NO_RESULT_HERE",
                "WARNING",
                f"{at}{place}",
                "$states.result is nothing here: only Output and Assign of a Task, Parallel or Map have a result.",
                "Use $states.input, or in a Catch $states.errorOutput.",
            )
        if re.fullmatch(r"/Choices\[\d+\]/Condition", place) and _TEXT.fullmatch(text[2:-2]):
            message = "The Condition is always the same text, not true or false: the state fails whenever it is asked."
            yield Slip(
                "CONDITION_IS_TEXT", "WARNING", f"{at}{place}", message, "Remove the quotes, or compare with it."
            )
    yield from _own_assigns(state, at, times)


def _literal(text: str, at: str) -> Iterator[Slip]:
    if "{%" in text or "%}" in text or re.match(r"\$states\b", text):
        yield Slip(
            "TEXT_NOT_EXPRESSION",
            "WARNING",
            at,
            "This looks like an expression, but passes through as text: only a text that is wholly '{% ... %}' is evaluated.",
            "Begin the text with '{%' and end it with '%}'; join pieces inside it with &.",
        )


def _marks_in_json_path(state: dict[str, Any], at: str) -> Iterator[Slip]:
    for field in _TEMPLATES:
        for place, text in _texts(state.get(field), f"{at}/{field}"):
            if is_query(text):
                message = "The state's QueryLanguage is JSONPath: '{% ... %}' passes through as text."
                fix = 'Set "QueryLanguage": "JSONata" for the state or the machine, or write it as a path.'
                yield Slip("TEXT_NOT_EXPRESSION", "WARNING", place, message, fix)


def _sees_result(state: dict[str, Any], place: str) -> bool:
    return state["Type"] in _HAS_RESULT and place.startswith(("/Output", "/Assign"))


def _own_assigns(state: dict[str, Any], at: str, times: Counter[str]) -> Iterator[Slip]:
    """Complain about variables that get their only value where they are read."""
    for place, names in assigns(state):
        alone = {name for name in names if times[name] == 1}
        for here, text in _texts(state, ""):
            if not here.startswith(f"/{place}/") or not is_query(text):
                continue
            for name in sorted(alone & _variables(text)):
                if re.search(rf"\$exists\(\s*\${name}\b", text):
                    continue
                yield Slip(
                    "VARIABLE_NOT_YET_ASSIGNED",
                    "WARNING",
                    f"{at}{here}",
                    f"${name} is assigned in this Assign alone, and an Assign sees the values from before it: "
                    "here it has none when it is first read.",
                    f"Assign ${name} in an earlier state, or repeat its expression here.",
                )


def _variables(text: str) -> frozenset[str]:
    try:
        return compile_query(text[2:-2].strip()).variables
    except BadQuery:
        return frozenset()


def _words(text: str) -> Words:
    return scan(text[2:-2].strip())


def _texts(value: Any, at: str) -> Iterator[tuple[str, str]]:
    """Go through the texts of a state that may be expressions, each with its place."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _texts(inner, f"{at}[{place}]")
    elif isinstance(value, dict):
        # Only a state itself, its rules and its catchers have fields; deeper the names are anybody's.
        fields = not at or re.fullmatch(r"/(Choices|Catch)\[\d+\]", at)
        for key, inner in value.items():
            if not (fields and key in _PLAIN):
                yield from _texts(inner, f"{at}/{escape(key)}")


def _covers_all(rules: list[dict[str, Any]]) -> bool:
    """Tell whether rules surely leave nothing over: one is always true, or one is what another is not."""
    bare = [
        {key: inner for key, inner in rule.items() if key not in {"Next", "Assign", "Output", "Comment"}}
        for rule in rules
    ]
    conditions = {_inside(rule["Condition"]) for rule in bare if "Condition" in rule}
    if "true" in conditions or any(f"$not({one})" in conditions for one in conditions):
        return True
    return any(
        rule | {key: not inner} in bare for rule in bare for key, inner in rule.items() if isinstance(inner, bool)
    ) or any({"Not": rule} in bare for rule in bare)


def _inside(condition: Any) -> str:
    return condition[2:-2].strip() if is_query(condition) else str(condition).lower()
