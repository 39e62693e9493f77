"""JSONata's templates: any JSON value, in which every text between `{%` and `%}` is an expression.

What a template makes is put together as text: between constant pieces stand the texts that expressions answer, and
nothing is decoded that nobody looks into.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from tasuki.language.definition import Scope
from tasuki.language.jsonata import Query
from tasuki.language.jsonata_compile import BadQuery
from tasuki.language.payload import escape
from tasuki.values.documents import Doc, dumps

Complain: TypeAlias = Callable[[str, str, str], None]
"""Told of a pointer below the template, AWS's code and its words."""

_Piece: TypeAlias = "str | Query"

_MEMBERS = frozenset({"input", "result", "context"})
_IN_CATCH = _MEMBERS | {"errorOutput"}
"""What `$states` has."""


def is_query(value: Any) -> bool:
    """Tell whether a value is an expression: a text that is wholly between `{%` and `%}`."""
    return isinstance(value, str) and value.startswith("{%") and value.endswith("%}")


def read_query(text: str, location: str) -> Query:
    """Compile what stands between the marks. Raises `BadQuery`, also for a member that `$states` does not have here.

    Reported from AWS are `errorOutput` outside a Catch, and names that are none at all. Whether AWS refuses `result` where
    there is none is not known: it fails when it is read.
    """
    query = Query(text[2:-2].strip(), location)
    known = _IN_CATCH if location.startswith("Catch[") else _MEMBERS
    if not known.issuperset(query.of_states):
        absent = [f"Field '$states.{name}' does not exist." for name in query.of_states if name not in known]
        raise BadQuery("UNSUPPORTED_JSONATA_EXPRESSION", absent)
    return query


class Template:
    """A compiled template: an `Expression` that can also answer its document. Raises `QueryFailed`."""

    __slots__ = ("_constant", "_pieces", "_single", "queries")

    def __init__(self, pieces: list[_Piece]) -> None:
        joined: list[_Piece] = []
        for piece in pieces:
            if joined and isinstance(piece, str) and isinstance(joined[-1], str):
                joined[-1] += piece
            else:
                joined.append(piece)
        self._pieces = tuple(joined)
        self.queries = tuple(piece for piece in joined if isinstance(piece, Query))
        self._single = self.queries[0] if len(joined) == 1 and self.queries else None
        self._constant = None if self.queries else Doc.of_text("".join(map(str, joined)))

    def doc(self, scope: Scope) -> Doc:
        """Answer what it makes as a document."""
        if self._single is not None:
            return self._single.doc(scope)
        if self._constant is not None:
            return self._constant
        return Doc.of_text("".join([piece if isinstance(piece, str) else piece.text(scope) for piece in self._pieces]))

    def __call__(self, scope: Scope) -> Any:
        """Answer what it makes as a value."""
        return self.doc(scope).value


def compile_template(template: Any, location: str, pointer: str, complain: Complain) -> Template:
    """Compile a template that stands in the field `location` of a state, at `pointer` of the definition."""
    pieces: list[_Piece] = []
    _compile(template, location, pointer, pieces, complain)
    return Template(pieces)


def _compile(value: Any, location: str, pointer: str, pieces: list[_Piece], complain: Complain) -> None:
    if is_query(value):
        try:
            pieces.append(read_query(value, location))
        except BadQuery as bad:
            for message in bad.messages:
                complain(pointer, bad.code, message)
    elif isinstance(value, dict):
        for place, (key, inner) in enumerate(value.items()):
            pieces.append(f"{',' if place else '{'}{dumps(key)}:")
            _compile(inner, f"{location}/{key}", f"{pointer}/{escape(key)}", pieces, complain)
        pieces.append("}" if value else "{}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            pieces.append("," if place else "[")
            _compile(inner, f"{location}[{place}]", f"{pointer}[{place}]", pieces, complain)
        pieces.append("]" if value else "[]")
    else:
        pieces.append(dumps(value))
