"""`InputTemplate`: how a record is reshaped before it is handed on. Pure.

What a template is, and where its places may stand, is in `rules/templates.py`. A place of a pipe is `<$.path>` or a reserved
variable `<aws.pipes.NAME>` (user guide, "Amazon EventBridge Pipes input transformation"); any other `<` is itself. The result
is always JSON, because most targets take nothing else.

A path that leads nowhere gives the empty string: `""` as a value, nothing inside a string. (AWS doesn't say; an
empty value would break the JSON.) `<$.body>` of a JSON body gives the object itself as a value and the original
text inside a string, where AWS loses the inner quotes and breaks the target's input.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tasuki.rules.paths import compile_path
from tasuki.rules.templates import BadTemplate, Template
from tasuki.services.pipes.records import Sighted

Renderer: TypeAlias = Callable[[Sighted, str], str]
"""Takes a passenger, or what an enrichment made, and the ingestion time (ISO 8601), answers JSON text."""
_Context: TypeAlias = tuple[Sighted, str]

MAX_TEMPLATE_LENGTH = 8_192
CONSTANTS = ("pipe-arn", "pipe-name", "source-arn", "enrichment-arn", "target-arn")
"""The reserved variables that are the same for all events of a pipe."""
_PLACE = re.compile(r"<(\$[^<>]*|aws\.pipes\.[^<>]*)>")


def compile_template(template: str, constants: Mapping[str, str]) -> Renderer:
    """Compile a template; `constants` are the values of `CONSTANTS`. Raises `BadTemplate`."""
    compiled: Template[_Context] = Template(template, _PLACE, lambda text: _place(text, constants), _as_sent)
    return lambda seen, ingested: compiled.render((seen, ingested))


def _place(text: str, constants: Mapping[str, str]) -> Callable[[_Context], Any]:
    """Compile what stands between `<` and `>`."""
    if text.startswith("$"):
        find = compile_path(text)
        if find is None:
            raise BadTemplate(f"<{text}> is not a path; write it like <$.body.jobId> or <$.body.lines[0].id>.")
        return lambda context: find(context[0].event)
    name = text.removeprefix("aws.pipes.")
    if name in constants:
        value = constants[name]
        return lambda _context: value
    if name == "event.ingestion-time":
        return lambda context: context[1]
    if name == "event":
        return lambda context: context[0].record
    if name == "event.json":
        return lambda context: context[0].event
    known = ", ".join((*CONSTANTS, "event.ingestion-time", "event", "event.json"))
    raise BadTemplate(f"<{text}> is not a reserved variable; known are aws.pipes. followed by {known}.")


def _as_sent(value: Any, context: _Context) -> str | None:
    """Answer a JSON body inside a string as it was sent."""
    seen = context[0]
    if isinstance(value, dict | list) and isinstance(seen.event, dict) and value is seen.event.get("body"):
        body = seen.record["body"]
        return body if isinstance(body, str) else None
    return None
