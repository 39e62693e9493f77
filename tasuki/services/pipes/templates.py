"""`InputTemplate`: how a record is reshaped before it is handed on. Pure.

A template is JSON with places, one place alone, or free text (user guide, "Amazon EventBridge Pipes input
transformation"). A place is `<$.path>` or a reserved variable `<aws.pipes.NAME>`; any other `<` is itself. The result
is always JSON, because the target takes nothing else:

==============================  ==============================================================================
where a place stands            what is put there
==============================  ==============================================================================
as a JSON value                 the value as JSON: text in quotes, objects and arrays as they are
inside a JSON string            text as it is, anything else as JSON text; escaped so that the string stays whole
in free text                    the same; the whole text is then one JSON string
==============================  ==============================================================================

A path that leads nowhere gives the empty string: `""` as a value, nothing inside a string. (AWS doesn't say; an
empty value would break the JSON.) `<$.body>` of a JSON body gives the object itself as a value and the original
text inside a string, where AWS loses the inner quotes and breaks the target's input.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tasuki.services.pipes.paths import MISSING, Finder, compile_path
from tasuki.services.pipes.records import Passenger
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

Renderer: TypeAlias = Callable[[Passenger, str], str]
"""Takes a passenger and the ingestion time (ISO 8601), answers JSON text."""
_Place: TypeAlias = Callable[[Passenger, str], Any]

MAX_TEMPLATE_LENGTH = 8_192
CONSTANTS = ("pipe-arn", "pipe-name", "source-arn", "enrichment-arn", "target-arn")
"""The reserved variables that are the same for all events of a pipe."""
_PLACE = re.compile(r"<(\$[^<>]*|aws\.pipes\.[^<>]*)>")
_SPECIAL = re.compile(r'"|\\.')


class BadTemplate(ValueError):
    """A template that could never give JSON. The text says what to change."""


def compile_template(template: str, constants: Mapping[str, str]) -> Renderer:
    """Compile a template; `constants` are the values of `CONSTANTS`. Raises `BadTemplate`."""
    pieces = _PLACE.split(template)
    literals, places = pieces[::2], [_place(text, constants) for text in pieces[1::2]]
    quoted = _inside_strings(literals)
    skeleton = _join(literals, ["x" if inside else "{}" for inside in quoted])  # {} joins with nothing beside it
    if not _is_json(skeleton):
        if template.lstrip()[:1] in {"{", "["}:
            raise BadTemplate(
                "The template looks like JSON and isn't: check commas and quotes. A place <...> must be a whole value or "
                "stand inside a string."
            )
        return _free_text(literals, places)

    def render(passenger: Passenger, ingested: str) -> str:
        texts = [
            _in_string(place(passenger, ingested), passenger) if inside else _as_value(place(passenger, ingested))
            for place, inside in zip(places, quoted, strict=True)
        ]
        return _join(literals, texts)

    return render


def _free_text(literals: list[str], places: list[_Place]) -> Renderer:
    escaped = [_escape(literal) for literal in literals]

    def render(passenger: Passenger, ingested: str) -> str:
        return f'"{_join(escaped, [_in_string(place(passenger, ingested), passenger) for place in places])}"'

    return render


def _place(text: str, constants: Mapping[str, str]) -> _Place:
    """Compile what stands between `<` and `>`."""
    if text.startswith("$"):
        find = compile_path(text)
        if find is None:
            raise BadTemplate(f"<{text}> is not a path; write it like <$.body.jobId> or <$.body.lines[0].id>.")
        return _from_record(find)
    name = text.removeprefix("aws.pipes.")
    if name in constants:
        value = constants[name]
        return lambda _passenger, _ingested: value
    if name == "event.ingestion-time":
        return lambda _passenger, ingested: ingested
    if name == "event":
        return lambda passenger, _ingested: passenger.record
    if name == "event.json":
        return lambda passenger, _ingested: passenger.event
    known = ", ".join((*CONSTANTS, "event.ingestion-time", "event", "event.json"))
    raise BadTemplate(f"<{text}> is not a reserved variable; known are aws.pipes. followed by {known}.")


def _from_record(find: Finder) -> _Place:
    return lambda passenger, _ingested: find(passenger.event)


def _as_value(value: Any) -> str:
    return '""' if value is MISSING else documents.dumps(value)


def _in_string(value: Any, passenger: Passenger) -> str:
    if value is MISSING:
        return ""
    if isinstance(value, str):
        return _escape(value)
    if isinstance(value, dict | list) and value is passenger.event.get("body"):
        return _escape(passenger.record["body"])
    return _escape(documents.dumps(value))


def _escape(text: str) -> str:
    return documents.dumps(text)[1:-1]


def _inside_strings(literals: list[str]) -> list[bool]:
    """Tell for each place between the literals whether it stands inside a JSON string."""
    inside, answers = False, []
    for literal in literals[:-1]:
        quotes = sum(found == '"' for found in _SPECIAL.findall(literal))
        inside ^= quotes % 2 == 1
        answers.append(inside)
    return answers


def _join(literals: list[str], texts: list[str]) -> str:
    return "".join([part for pair in zip(literals, texts, strict=False) for part in pair]) + literals[-1]


def _is_json(text: str) -> bool:
    try:
        documents.loads(text)
    except MalformedDocument:
        return False
    return True
