"""What a target gets of an event: all of it, a constant, a part, or a template filled in. Pure.

A template (`InputTransformer`) is what `rules/templates.py` says; a place is `<key>` of InputPathsMap or one of the reserved
variables. Recorded on AWS (events_inputs), and kept here:

==============================================  ============================================================================
a path that finds nothing                       `""` as a value, nothing inside a string
an object or array in a template that is text   its JSON without quotes: `"of <payload>"` gives `"of {id:7,tags:[a,b]}"`
the same inside a string of a JSON template     its quotes break the JSON: the event reaches nobody (`INVALID_JSON`)
`<aws.events.event>`                            the event without its detail, with `detailType` for `detail-type`
==============================================  ============================================================================

The documents say nothing of an InputPath that finds nothing: here it gives `null`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tasuki.rules.paths import MISSING, compile_path
from tasuki.rules.templates import BadTemplate, Template
from tasuki.services.buses.errors import InvalidJson, ValidationException
from tasuki.services.buses.model import in_seconds
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument
from tasuki.values.instant import Instant

_PLACE = re.compile(r"<([A-Za-z0-9_.\-]+)>")
_OWN = "aws.events."
RESERVED = ("rule-arn", "rule-name", "event.ingestion-time", "event", "event.json")
_WITHOUT_DETAIL = ("id", "account", "detail-type", "time", "source", "region", "resources", "version")


class Seen(NamedTuple):
    """An event as a target's input sees it."""

    event: Mapping[str, Any]
    body: str
    ingested: Instant
    trace: str
    hops: int = 0
    """How many buses it came through before this one."""


Renderer: TypeAlias = Callable[[Seen], str]
"""Answers JSON text. Raises `InvalidJson`."""


def compile_input(target: Mapping[str, Any], rule_arn: str, rule_name: str) -> Renderer:
    """Check and compile what a target gets. Raises `ValidationException`."""
    given = [name for name in ("Input", "InputPath", "InputTransformer") if target.get(name)]
    if len(given) > 1:
        raise ValidationException(
            f"Only one of Input, InputPath, or InputTransformer must be provided for target {target['Id']}."
        )
    if "Input" in given:
        return _constant(target["Input"], target["Id"])
    if "InputPath" in given:
        find = compile_path(target["InputPath"])
        if find is None:
            raise ValidationException(
                f"Invalid InputPath for target {target['Id']}: {target['InputPath']} is not a path like $.detail."
            )
        return lambda seen: dumps(_or_null(find(seen.event)))
    if "InputTransformer" in given:
        return _template(target["InputTransformer"], target["Id"], rule_arn, rule_name)
    return lambda seen: seen.body


def _or_null(value: Any) -> Any:
    return None if value is MISSING else value


def _constant(text: str, target: str) -> Renderer:
    try:
        loads(text)
    except MalformedDocument as bad:
        raise ValidationException(f"JSON syntax error in input for target {target}: {bad}") from None
    return lambda _seen: text


def _template(transformer: Mapping[str, Any], target: str, rule_arn: str, rule_name: str) -> Renderer:
    paths = {}
    for key, path in (transformer.get("InputPathsMap") or {}).items():
        find = compile_path(path)
        if find is None:
            raise ValidationException(
                f"Invalid InputPathsMap for target {target}: {key} is {path}, which is not a path like $.detail.id."
            )
        if key.lower().startswith("aws"):
            raise ValidationException(f"Invalid InputPathsMap for target {target}: the name {key} is reserved.")
        paths[key] = find
    own = {"rule-arn": rule_arn, "rule-name": rule_name}

    def place(name: str) -> Callable[[Seen], Any]:
        if name in paths:
            found = paths[name]
            return lambda seen: found(seen.event)
        reserved = name.removeprefix(_OWN) if name.startswith(_OWN) else ""
        if reserved in own:
            value = own[reserved]
            return lambda _seen: value
        if reserved in RESERVED:
            return {"event.ingestion-time": _ingested, "event": _without_detail, "event.json": _whole}[reserved]
        raise ValidationException(f"InputTemplate for target {target} contains invalid placeholder {name}.")

    text: str = transformer["InputTemplate"]
    inside = _in_json if text.lstrip()[:1] in {"{", "["} else _in_text
    try:
        return Template(text, _PLACE, place, inside).render
    except BadTemplate as bad:
        raise ValidationException(f"Invalid InputTemplate for target {target}: {bad}") from None


def _ingested(seen: Seen) -> str:
    return in_seconds(seen.ingested)


def _whole(seen: Seen) -> Mapping[str, Any]:
    return seen.event


def _without_detail(seen: Seen) -> dict[str, Any]:
    return {"detailType" if name == "detail-type" else name: seen.event[name] for name in _WITHOUT_DETAIL}


def _in_text(value: Any, _seen: Seen) -> str | None:
    return dumps(value).replace('"', "") if isinstance(value, dict | list) else None


def _in_json(value: Any, _seen: Seen) -> str | None:
    text = dumps(value) if isinstance(value, dict | list) else ""
    if '"' in text:
        raise InvalidJson(
            f"The InputTemplate has an object inside a string, whose quotes end that string: {text:.80}. Put the place "
            "where a value stands, without quotes around it."
        )
    return text or None
