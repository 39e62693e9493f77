"""What the language's tests evaluate expressions in."""

from typing import Any

from tasuki.language.definition import Expression, Scope
from tasuki.language.paths import parse_path, path_missing
from tasuki.language.payload import compile_template
from tasuki.values.chance import Chance

CONTEXT = {"Execution": {"Id": "arn:x", "Input": {"n": 1}}, "State": {"Name": "S"}}


def scope(document: Any, context: Any = None, **variables: Any) -> Scope:
    return Scope(input=document, context=lambda: context or CONTEXT, variables=variables, chance=Chance.seeded(7))


def read(path: str, document: Any, **variables: Any) -> Any:
    return parse_path(path).bind(path_missing)(scope(document, **variables))


def template(value: Any) -> Expression:
    complaints: list[Any] = []
    made = compile_template(value, set(), lambda *complaint: complaints.append(complaint))
    assert complaints == []
    return made


def fill(value: Any, document: Any, **variables: Any) -> Any:
    return template(value)(scope(document, **variables))
