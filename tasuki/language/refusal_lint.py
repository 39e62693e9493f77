"""What `lint` adds to AWS's refusals: where JSON breaks off, and what to write instead of a field of the other language."""

import re
from typing import Any

from tasuki.language.errors import Diagnosis, InvalidDefinition
from tasuki.language.parse import read_object

_BYTE = re.compile(r"\(byte (\d+)\)$")
_YAML = re.compile(
    r"\s*(?:---|#.*\n\s*)*\s*(?:StartAt|States|Comment|QueryLanguage|Version|TimeoutSeconds)\s*:", re.MULTILINE
)
_JSON = "INVALID_JSON_DESCRIPTION"
_FOR_JSON_PATH = {
    "Parameters": "Arguments (in a Pass Output, in a Map ItemSelector)",
    "InputPath": "$states.input in Arguments or Output",
    "OutputPath": "Output",
    "ResultPath": "Output or Assign",
    "ResultSelector": "Output, where $states.result is the result",
    "Result": "Output",
    "ItemsPath": "Items",
    "SecondsPath": "Seconds",
    "TimestampPath": "Timestamp",
    "TimeoutSecondsPath": "TimeoutSeconds",
    "HeartbeatSecondsPath": "HeartbeatSeconds",
    "MaxConcurrencyPath": "MaxConcurrency",
    "ErrorPath": "Error",
    "CausePath": "Cause",
    "Variable": "Condition",
}
"""Fields of JSONPath states, and what JSONata has in their place."""
_FOR_JSONATA = {
    "Arguments": "Parameters",
    "Output": "Parameters, ResultSelector, ResultPath or OutputPath",
    "Items": "ItemsPath",
    "Condition": "Variable with an operator",
}
_FIXES = (
    ("Field is not supported", "Correct the field's name, or remove it: this type of state does not have it."),
    ("These fields are required", "Add what is named."),
    ("Exactly one of these fields", "Keep one of them, or add one."),
    ("Only one of these fields", "Remove all but one."),
    ("Expected value of type Boolean", "Write true or false, or in JSONata a text that is wholly '{% ... %}'."),
    ("Expected value of type", "Write a value of this type."),
)


def explained(text: str, one: Diagnosis) -> tuple[str, str]:
    """Answer the message of a refusal with its why, and a fix, or nothing where none is known."""
    if one.code == _JSON:
        return _unreadable(text, one.message)
    if one.message == "Field is not supported":
        better = _of_other_language(text, one.location)
        if better is not None:
            return better
    return one.message, next((fix for begin, fix in _FIXES if one.message.startswith(begin)), "")


def _unreadable(text: str, message: str) -> tuple[str, str]:
    if _YAML.match(text):
        return (
            "This is not JSON: it looks like YAML, and Step Functions takes definitions as JSON alone.",
            "Turn it into JSON first; tools that take YAML (SAM, CDK) do so before they create the machine.",
        )
    found = _BYTE.search(message)
    if found is not None:
        before = text.encode()[: int(found[1])].decode(errors="ignore")
    elif "truncated" in message:
        before = text
    else:
        return message, "Write the definition as JSON."
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return f"{_BYTE.sub('', message).strip()} at line {line}, column {column}", "Correct the text at this place."


def _of_other_language(text: str, location: str) -> tuple[str, str] | None:
    at, _, field = location.rpartition("/")
    language = _language_at(text, at)
    theirs = _FOR_JSON_PATH if language == "JSONata" else _FOR_JSONATA
    if field not in theirs:
        return None
    other = "JSONPath" if language == "JSONata" else "JSONata"
    return (
        f"Field is not supported: {field} belongs to {other}, and the QueryLanguage here is {language}.",
        f'Use {theirs[field]}, or set "QueryLanguage": "{other}" where that is meant.',
    )


def _language_at(text: str, pointer: str) -> str:
    """Answer the query language of what stands at a pointer."""
    try:
        here: Any = read_object(text)
    except InvalidDefinition:
        return "JSONPath"
    root = language = here.get("QueryLanguage", "JSONPath")
    for word in pointer.split("/")[1:]:
        name, *places = re.split(r"\[(\d+)\]", word)
        if name in {"ItemProcessor", "Iterator", "Branches"}:
            language = root
        steps: list[str | int] = [name.replace("~1", "/").replace("~0", "~"), *(int(one) for one in places if one)]
        for step in steps:
            try:
                here = here[step]
            except (KeyError, IndexError, TypeError):
                return str(language)
        if isinstance(here, dict):
            language = here.get("QueryLanguage", language)
    return str(language)
