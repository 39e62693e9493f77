"""Paths: JSONPath and Reference Paths, compiled to closures once and called for ever after.

`$` is the state's input, `$$` the context object, `$name` a variable. A path is *definite* when it can name one node
only; an indefinite one (wildcard, slice, filter, descent, union) answers a list. Where AWS's answer is recorded:

- a definite path that finds nothing is an error, whose words depend on the field it stands in (`field_missing`,
  `path_missing`);
- an indefinite path never fails: `$.items[*].x` of `{}` is `[]` (recorded: test_json_path_array_wildcard_or_slice_with_no_input);
- an index past the end at the end of a path is null (measured, field pitfall PF-13), because AWS's JSON provider says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tasuki.language.definition import Expression, Scope
from tasuki.language.errors import StatesError
from tasuki.language.path_functions import FUNCTIONS, Unanswerable
from tasuki.language.path_reasons import explain
from tasuki.language.path_steps import (
    BadPath,
    Call,
    Cursor,
    Descend,
    Every,
    Indices,
    Names,
    Slice,
    Step,
    Where,
    read_steps,
)
from tasuki.values.documents import dumps
from tasuki.values.errors import TasukiError

Reader: TypeAlias = Callable[..., Any]
"""Takes the document, answers the value; raises `Missing`. One of an indefinite path also takes what `$` means in filters."""

Complaint: TypeAlias = Callable[["Path", Scope, str], StatesError]
"""Words an error: the path, what it was applied to, and Jayway's reason."""


class Missing(TasukiError):
    """A definite path found nothing."""


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled path. `variable` is the name after `$`, "$" for the context object, "" for the input."""

    text: str
    variable: str
    steps: tuple[Step, ...]

    @property
    def definite(self) -> bool:
        """Tell whether it can name one node only."""
        return all(map(_is_definite, self.steps))

    @property
    def reference(self) -> tuple[str | int, ...] | None:
        """The names and indices of a Reference Path; None when it is not one."""
        made: list[str | int] = []
        for step in self.steps:
            if isinstance(step, Names) and len(step.names) == 1:
                made.append(step.names[0])
            elif isinstance(step, Indices) and len(step.indices) == 1 and step.indices[0] >= 0:
                made.append(step.indices[0])
            else:
                return None
        return tuple(made)

    def bind(self, complaint: Complaint, *, strict: bool = False) -> Expression:
        """Answer the expression that reads this path, and complains in the words of its field.

        `strict` makes an index past the end a path that finds nothing, as choice rules see it, instead of null.
        """
        read = reader(self.steps, strict=strict)
        steps, name = self.steps, self.variable

        def of_input(scope: Scope) -> Any:
            try:
                return read(scope.input)
            except Missing:
                raise complaint(self, scope, explain(steps, scope.input)) from None

        def of_context(scope: Scope) -> Any:
            try:
                return read(scope.context())
            except Missing:
                raise complaint(self, scope, explain(steps, scope.context())) from None

        def of_variable(scope: Scope) -> Any:
            if name not in scope.variables:
                raise complaint(self, scope, f"No variable named '{name}'")
            try:
                return read(scope.variables[name])
            except Missing:
                raise complaint(self, scope, explain(steps, scope.variables[name])) from None

        if name:
            return of_context if name == "$" else of_variable
        return self._quick(complaint) or of_input

    def present(self) -> Callable[[Scope], bool]:
        """Answer the test whether this path finds something, null included."""
        names, name = self.reference or (), self.variable
        if names and not name and all(isinstance(step, str) for step in names):

            def probe(scope: Scope) -> bool:
                node = scope.input
                for step in names:
                    if type(node) is not dict or step not in node:
                        return False
                    node = node[step]
                return True

            return probe
        read = reader(self.steps, strict=True)

        def test(scope: Scope) -> bool:
            try:
                read(scope.input if not name else scope.context() if name == "$" else scope.variables[name])
            except (Missing, KeyError):
                return False
            return True

        return test

    def _quick(self, complaint: Complaint) -> Expression | None:
        """Answer the expression of one or two names below the input: most paths of all, so worth the repetition."""
        match self.reference:
            case ():
                return lambda scope: scope.input
            case (str() as only,):

                def one(scope: Scope) -> Any:
                    try:
                        return scope.input[only]
                    except (KeyError, TypeError):
                        raise complaint(self, scope, explain(self.steps, scope.input)) from None

                return one
            case (str() as outer, str() as inner):

                def two(scope: Scope) -> Any:
                    try:
                        return scope.input[outer][inner]
                    except (KeyError, TypeError):
                        raise complaint(self, scope, explain(self.steps, scope.input)) from None

                return two
        return None


def parse_path(text: str) -> Path:
    """Compile a path. Raises `BadPath` with the reason."""
    if not text.startswith("$"):
        raise BadPath(f"a path begins with '$', not '{text[:20]}'")
    cursor = Cursor(text, 1)
    variable = ""
    if cursor.skip("$"):
        variable = "$"
    else:
        start = cursor.at
        while cursor.peek() and cursor.peek() not in ".[":
            cursor.at += 1
        variable = text[start : cursor.at]
        if variable and not is_variable_name(variable):
            raise BadPath(f"'{variable}' is no name of a variable in '{text}'")
    steps = read_steps(cursor)
    if cursor.at != len(text):
        cursor.fail("a path ends here")
    for step, following in zip(steps, (*steps[1:], None), strict=False):
        if not isinstance(step, Call):
            continue
        if step.name not in FUNCTIONS:
            raise BadPath(f"there is no function '{step.name}' in '{text}'")
        if following is not None and not isinstance(following, Call):
            raise BadPath(f"nothing may follow the function '{step.name}' in '{text}'")
    return Path(text, variable, steps)


def is_variable_name(name: str) -> bool:
    """Tell whether a variable may be called so: a Unicode identifier of at most 80 characters."""
    return name.isidentifier() and len(name) <= 80


def field_missing(field: str) -> Complaint:
    """Words for payload templates and the like (recorded: test_invalid_jsonpath)."""

    def complaint(path: Path, scope: Scope, _reason: str) -> StatesError:
        return StatesError(
            "States.Runtime",
            f"The JSONPath '{path.text}' specified for the field '{field}' could not be found in the input '{dumps(scope.input)}'",
        )

    return complaint


def path_missing(path: Path, _scope: Scope, reason: str) -> StatesError:
    """Words for InputPath, OutputPath, ItemsPath and numbers by path (recorded: test_invalid_jsonpath)."""
    return StatesError("States.Runtime", f"Invalid path '{path.text}' : {reason}")


def _is_definite(step: Step) -> bool:
    if isinstance(step, Names | Call):
        return True
    return isinstance(step, Indices) and len(step.indices) == 1


def reader(steps: tuple[Step, ...], *, strict: bool = False) -> Reader:
    """Compile steps to a function of the document. Definite ones raise `Missing`; others answer a list."""
    split = len(steps)
    while split and isinstance(steps[split - 1], Call):
        split -= 1
    chain, calls = steps[:split], [step for step in steps[split:] if isinstance(step, Call)]
    if not all(map(_is_definite, chain)) or any(_merges(step) for step in chain[:-1]):
        read = _collector(chain)
        each = not isinstance(chain[0], Descend)
    else:
        read = _names_walker(chain) or _walker(chain, strict=strict)
        each = False
    if not calls:
        return read

    def call(document: Any) -> Any:
        value = read(document)
        return [_apply(calls, item, document) for item in value] if each else _apply(calls, value, document)

    return call


def finder(steps: tuple[Step, ...], absent: Any) -> Callable[[Any, Any], Any]:
    """Compile steps for use inside a filter: a function of (node, root) that answers `absent` for nothing."""
    read = reader(steps)
    only = steps[0].names if len(steps) == 1 and isinstance(steps[0], Names) else ()
    if len(only) == 1:
        name = only[0]
        return lambda node, _root: node.get(name, absent) if type(node) is dict else absent

    if not all(map(_is_definite, steps)) and not isinstance(steps[-1], Call):
        return read

    def find(node: Any, _root: Any) -> Any:
        try:
            return read(node)
        except Missing:
            return absent

    return find


def _merges(step: Step) -> bool:
    return isinstance(step, Names) and len(step.names) > 1


def _apply(calls: list[Call], value: Any, document: Any) -> Any:
    for call in calls:
        try:
            value = FUNCTIONS[call.name](value, [argument(document) for argument in call.arguments])
        except (Unanswerable, OverflowError):
            raise Missing from None
    return value


def _names_walker(steps: tuple[Step, ...]) -> Reader | None:
    """Compile a path of one, two or three single names, the quickest way; None when it is another path."""
    names = [step.names[0] for step in steps if isinstance(step, Names) and len(step.names) == 1]
    if len(names) != len(steps) or not 1 <= len(names) <= 3:
        return None
    first, second, third = (*names, None, None)[:3]

    def walk(node: Any) -> Any:
        try:
            if third is not None:
                return node[first][second][third]
            return node[first] if second is None else node[first][second]
        except (KeyError, TypeError):
            raise Missing from None

    return walk


def _walker(steps: tuple[Step, ...], *, strict: bool) -> Reader:
    """Compile a definite path: one node in, one node out."""
    keys: list[Any] = []
    for step in steps:
        if isinstance(step, Names):
            keys.append(step.names[0] if len(step.names) == 1 else step.names)
        elif isinstance(step, Indices):
            keys.append(step.indices[0])
    last = len(keys) - 1

    def walk(node: Any) -> Any:
        for place, key in enumerate(keys):
            if type(key) is str:
                try:
                    node = node[key]
                except (KeyError, TypeError):
                    raise Missing from None
            elif type(key) is int:
                if type(node) is not list:
                    raise Missing
                if -len(node) <= key < len(node):
                    node = node[key]
                elif place == last and not strict:
                    return None
                else:
                    raise Missing
            elif type(node) is dict:
                node = {name: node[name] for name in key if name in node}
            else:
                raise Missing
        return node

    return walk


_THE_DOCUMENT: Any = object()


def _collector(steps: tuple[Step, ...]) -> Reader:
    """Compile an indefinite path: nodes in, nodes out, step by step, in document order."""
    stages = [
        _stage(step, leaf=place == len(steps) - 1, after_descent=place > 0 and isinstance(steps[place - 1], Descend))
        for place, step in enumerate(steps)
    ]

    def collect(document: Any, root: Any = _THE_DOCUMENT) -> list[Any]:
        nodes = [document]
        top = document if root is _THE_DOCUMENT else root
        for stage in stages:
            nodes = stage(nodes, top)
        return nodes

    return collect


def _stage(step: Step, *, leaf: bool, after_descent: bool) -> Callable[[list[Any], Any], list[Any]]:
    """Compile one step of an indefinite path to a function of (nodes, document)."""
    if isinstance(step, Names):
        names = step.names
        if len(names) > 1 and leaf and not after_descent:
            return lambda nodes, _: [{k: n[k] for k in names if k in n} for n in nodes if type(n) is dict]
        return lambda nodes, _: [n[k] for n in nodes if type(n) is dict for k in names if k in n]
    if isinstance(step, Indices):
        indices = step.indices
        return lambda nodes, _: [n[i] for n in nodes if type(n) is list for i in indices if -len(n) <= i < len(n)]
    if isinstance(step, Slice):
        piece = slice(step.start, step.stop)
        return lambda nodes, _: [item for n in nodes if type(n) is list for item in n[piece]]
    if isinstance(step, Every):
        return lambda nodes, _: [item for n in nodes for item in _children(n)]
    if isinstance(step, Where):
        test = step.test
        if after_descent:
            return lambda nodes, root: [n for n in nodes if type(n) is dict and test(n, root)]
        return lambda nodes, root: [item for n in nodes for item in _candidates(n) if test(item, root)]
    return lambda nodes, _: [below for n in nodes for below in _descend(n)]


def _children(node: Any) -> Any:
    if type(node) is dict:
        return node.values()
    return node if type(node) is list else ()


def _candidates(node: Any) -> Any:
    """What a filter looks at: an array's items, or an object itself (Jayway; RFC 9535 looks at its values)."""
    if type(node) is list:
        return node
    return (node,) if type(node) is dict else ()


def _descend(node: Any) -> list[Any]:
    """List a node and all arrays and objects below it, parents first. No recursion: documents may be deep."""
    found: list[Any] = []
    todo = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, dict | list):
            found.append(here)
            todo.extend(reversed(list(_children(here))))
    return found
