"""Templates: text with places `<...>` that an event's values are put into. Pure.

Pipes' `InputTemplate` and rules' `InputTransformer` are of one kind and differ in their places: a template is JSON with places,
one place alone, or free text, and the result is always JSON.

==============================  ==============================================================================
where a place stands            what is put there
==============================  ==============================================================================
as a JSON value                 the value as JSON: text in quotes, objects and arrays as they are
inside a JSON string            text as it is, anything else as JSON text; escaped so that the string stays whole
in free text                    the same; the whole text is then one JSON string
==============================  ==============================================================================

A place that finds nothing (`MISSING`) gives `""` as a value and nothing inside a string.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tasuki.rules.paths import MISSING
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

C = TypeVar("C")
_SPECIAL = re.compile(r'"|\\.')
LONGEST = 1_048_576
"""Characters: no target takes more (a queue's message of 1 MiB). A short template can ask for a large value thousands of times."""


class BadTemplate(ValueError):
    """A template that could never give JSON. The text says what to change."""


class TooLong(MalformedDocument):
    """What a template makes of an event is larger than any target takes."""

    def __init__(self) -> None:
        super().__init__(f"The template makes more than {LONGEST:,} characters of it, which no target takes.")


class Template(Generic[C]):
    """A compiled template. `render(context)` answers JSON text.

    `pattern` finds the places, with one group; `place(name)` answers what a place finds in a context (a value, or `MISSING`) or
    raises `BadTemplate`; `as_text(value, context)` answers how a value that is no string reads inside one, None for its JSON.
    """

    def __init__(
        self,
        template: str,
        pattern: re.Pattern[str],
        place: Callable[[str], Callable[[C], Any]],
        as_text: Callable[[Any, C], str | None] = lambda _value, _context: None,
    ) -> None:
        pieces = pattern.split(template)
        self._literals: Sequence[str] = pieces[::2]
        self._places = [place(name) for name in pieces[1::2]]
        self._quoted = _inside_strings(self._literals)
        self._as_text = as_text
        skeleton = _join(self._literals, ["x" if inside else "{}" for inside in self._quoted])  # {} joins with nothing
        self.is_text = not _is_json(skeleton)
        """Free text: the whole is one JSON string."""
        if self.is_text:
            if template.lstrip()[:1] in {"{", "["}:
                raise BadTemplate(
                    "The template looks like JSON and isn't: check commas and quotes. A place <...> must be a whole value or "
                    "stand inside a string."
                )
            self._literals = [_escape(literal) for literal in self._literals]
            self._quoted = [True] * len(self._places)

    def render(self, context: C) -> str:
        """Put an event's values into the places. Raises `TooLong`, before it has made much more than may be."""
        texts, length = [], 0
        for place, inside in zip(self._places, self._quoted, strict=True):
            text = self._in_string(place(context), context) if inside else _as_value(place(context))
            length += len(text)
            if length > LONGEST:
                raise TooLong
            texts.append(text)
        whole = _join(self._literals, texts)
        return f'"{whole}"' if self.is_text else whole

    def _in_string(self, value: Any, context: C) -> str:
        if value is MISSING:
            return ""
        if isinstance(value, str):
            return _escape(value)
        text = self._as_text(value, context)
        return _escape(text if text is not None else documents.dumps(value))


def _as_value(value: Any) -> str:
    return '""' if value is MISSING else documents.dumps(value)


def _escape(text: str) -> str:
    return documents.dumps(text)[1:-1]


def _inside_strings(literals: Sequence[str]) -> list[bool]:
    """Tell for each place between the literals whether it stands inside a JSON string."""
    inside, answers = False, []
    for literal in literals[:-1]:
        quotes = sum(found == '"' for found in _SPECIAL.findall(literal))
        inside ^= quotes % 2 == 1
        answers.append(inside)
    return answers


def _join(literals: Sequence[str], texts: Sequence[str]) -> str:
    return "".join([part for pair in zip(literals, texts, strict=False) for part in pair]) + literals[-1]


def _is_json(text: str) -> bool:
    try:
        documents.loads(text)
    except MalformedDocument:
        return False
    return True
