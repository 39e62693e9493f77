r"""Calls of intrinsic functions: `States.Format('Hello {}', $.name)`, parsed once into closures.

Arguments are texts in single quotes, numbers, true, false, null, paths, or calls, nested at most ten deep. In a text
`\'`, `\{`, `\}` and `\\` are escapes; any other backslash is an error when the call runs, as AWS documents.
"""

from collections.abc import Callable
from typing import Any

from tasuki.language.definition import Expression, Scope
from tasuki.language.errors import StatesError
from tasuki.language.intrinsic_functions import FUNCTIONS, BadArgument, Function, shown
from tasuki.language.path_steps import BadPath, Cursor
from tasuki.language.paths import Path, parse_path
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument

DEEPEST = 10
"""How deep calls may nest (AWS developer guide)."""

_ESCAPED = "'{}\\"
_FORMAT = Function(lambda arguments, _: arguments, 1, None)


def parse_intrinsic(text: str, variables: set[str]) -> Expression:
    """Compile a call. The variables it reads are added to `variables`. Raises `BadPath`.

    The expression raises States.IntrinsicFailure for arguments a function cannot work with.
    """
    cursor = Cursor(text)
    cursor.spaces()
    made = _call(cursor, variables, 1)
    cursor.spaces()
    if cursor.at != len(text):
        cursor.fail("the call ends here")
    return made


def _call(cursor: Cursor, variables: set[str], depth: int) -> Expression:
    start = cursor.at
    while cursor.peek() == "." or cursor.peek().isalnum():
        cursor.at += 1
    name = cursor.text[start : cursor.at]
    if depth > DEEPEST:
        cursor.fail(f"calls nest at most {DEEPEST} deep")
    function = _FORMAT if name == "States.Format" else FUNCTIONS.get(name)
    if function is None:
        cursor.fail(f"'{name}' is no intrinsic function")
    cursor.spaces()
    cursor.expect("(")
    cursor.spaces()
    arguments: list[Expression] = []
    template: str | None = None
    while not cursor.skip(")"):
        if not arguments and name == "States.Format" and cursor.peek() == "'":
            template = _raw_text(cursor)
            arguments.append(lambda scope: None)  # noqa: ARG005 - the template takes its place
        else:
            arguments.append(_argument(cursor, variables, depth))
        cursor.spaces()
        if not cursor.skip(",") and cursor.peek() != ")":
            cursor.fail("expected ',' or ')'")
        cursor.spaces()
    if len(arguments) < function.fewest or (function.most is not None and len(arguments) > function.most):
        cursor.fail(f"{len(arguments)} is not how many arguments {name} takes")
    words = cursor.text[start : cursor.at]
    if name == "States.Format":
        return _format(words, template, arguments)
    return _invoke(words, function.run, arguments)


def _invoke(words: str, run: Callable[[list[Any], Any], Any], arguments: list[Expression]) -> Expression:
    def invoke(scope: Scope) -> Any:
        values = [argument(scope) for argument in arguments]
        try:
            return run(values, scope.chance)
        except (BadArgument, MalformedDocument) as bad:
            raise _failure(words, str(bad)) from None
        except (OverflowError, RecursionError, ValueError):
            raise _failure(words, _TOO_LARGE) from None

    return invoke


def _failure(words: str, reason: str) -> StatesError:
    return StatesError("States.IntrinsicFailure", f"The function '{words}' had the following error: {reason}")


def _failing(words: str, reason: str) -> Expression:
    """Answer an expression that always fails: AWS finds such faults when the call runs."""

    def fail(scope: Scope) -> Any:  # noqa: ARG001 - an expression's shape
        raise _failure(words, reason)

    return fail


def _format(words: str, template: str | None, arguments: list[Expression]) -> Expression:
    source, rest = arguments[0], arguments[1:]

    def from_path(scope: Scope) -> str:
        text = source(scope)
        if not isinstance(text, str):
            raise _failure(words, "The template must be a string")
        try:
            return _fill(_pieces(text), [argument(scope) for argument in rest])
        except BadArgument as bad:
            raise _failure(words, str(bad)) from None
        except (RecursionError, ValueError):
            raise _failure(words, _TOO_LARGE) from None

    if template is None:
        return from_path
    try:
        pieces = _pieces(template)
    except BadArgument as bad:
        return _failing(words, str(bad))
    if len(pieces) - 1 != len(rest):
        return _failing(words, _MISCOUNT)

    def fill(scope: Scope) -> str:
        values = [argument(scope) for argument in rest]
        try:
            return _fill(pieces, values)
        except (RecursionError, ValueError):
            raise _failure(words, _TOO_LARGE) from None

    return fill


_TOO_LARGE = "A number is too large, or a value lies too deep"
_MISCOUNT = "The number of arguments do not match the occurrences of '{}' in the template"


def _fill(pieces: list[str], values: list[Any]) -> str:
    if len(pieces) - 1 != len(values):
        raise BadArgument(_MISCOUNT)
    made = [pieces[0]]
    for value, piece in zip(values, pieces[1:], strict=True):
        made.append(value if isinstance(value, str) else shown(value))
        made.append(piece)
    return "".join(made)


def _pieces(template: str) -> list[str]:
    """Cut a template at its `{}` and resolve its escapes. Raises `BadArgument`."""
    pieces: list[str] = []
    here: list[str] = []
    at = 0
    while at < len(template):
        character = template[at]
        if character == "\\":
            here.append(_escape(template, at))
            at += 2
        elif template.startswith("{}", at):
            pieces.append("".join(here))
            here = []
            at += 2
        else:
            here.append(character)
            at += 1
    pieces.append("".join(here))
    return pieces


def _escape(text: str, at: int) -> str:
    escaped = text[at + 1 : at + 2]
    if not escaped or escaped not in _ESCAPED:
        raise BadArgument(f"Invalid escape sequence: \\{escaped}")
    return escaped


def _raw_text(cursor: Cursor) -> str:
    """Read a text in single quotes, escapes left in it."""
    cursor.expect("'")
    start = cursor.at
    while (here := cursor.peek()) != "'":
        if not here:
            cursor.fail("a quote is not closed")
        cursor.at += 2 if here == "\\" else 1
    cursor.at += 1
    return cursor.text[start : cursor.at - 1]


def _argument(cursor: Cursor, variables: set[str], depth: int) -> Expression:
    here = cursor.peek()
    if here == "'":
        return _literal_text(_raw_text(cursor))
    if here == "$":
        path = _path(cursor)
        if path.variable not in {"", "$"}:
            variables.add(path.variable)
        return path.bind(_argument_missing)
    if cursor.starts("States."):
        return _call(cursor, variables, depth + 1)
    start = cursor.at
    while cursor.peek() not in {"", ",", ")"} and not cursor.peek().isspace():
        cursor.at += 1
    word = cursor.text[start : cursor.at]
    try:
        value = loads(word)
    except MalformedDocument:
        value = {}
    if isinstance(value, dict | list | str):
        cursor.at = start
        cursor.fail("expected a path, a call or a literal")
    return lambda scope: value  # noqa: ARG005 - an expression's shape


def _literal_text(raw: str) -> Expression:
    if "\\" not in raw:
        return lambda scope: raw  # noqa: ARG005 - an expression's shape
    made: list[str] = []
    at = 0
    while at < len(raw):
        if raw[at] == "\\":
            try:
                made.append(_escape(raw, at))
            except BadArgument as bad:
                return _failing(f"'{raw}'", str(bad))
            at += 2
        else:
            made.append(raw[at])
            at += 1
    text = "".join(made)
    return lambda scope: text  # noqa: ARG005 - an expression's shape


def _path(cursor: Cursor) -> Path:
    """Read a path that ends at a comma, a blank or a parenthesis outside its own brackets and quotes."""
    start = cursor.at
    depth = 0
    quote = ""
    while here := cursor.peek():
        if quote:
            if here == "\\":
                cursor.at += 1
            elif here == quote:
                quote = ""
        elif here in "'\"" and depth:
            quote = here
        elif here in "[(":
            depth += 1
        elif here in "])" and depth:
            depth -= 1
        elif not depth and (here in ",)" or here.isspace()):
            break
        cursor.at += 1
    if depth or quote:
        raise BadPath(f"a bracket is not closed in '{cursor.text}'")
    return parse_path(cursor.text[start : cursor.at])


def _argument_missing(path: Path, scope: Scope, _reason: str) -> StatesError:
    return StatesError(
        "States.Runtime",
        f"The JsonPath argument for the field '{path.text}' could not be found in the input '{dumps(scope.input)}'",
    )
