"""One JSONata expression: compiled once, evaluated within bounds.

Documents go in and come out as JSON text, which the library parses only as far as the expression reads them, while the
interpreter's lock is free. `$states` and the variables are not bound as Python values: the expression is compiled
behind assignments from an input document that holds them (`($states:=states;$x:=x; ... )`). That is right only because
nothing in it reads the input itself; where something does (`$string()` without an argument), or where a variable
covers a function's name, the values are bound and the input stays undefined: slower, and rare.

Bounds. An evaluation gets steps (one costs about 0.1 us), first few, then more: `Fuel` counts them, so that `step` can
yield after a state that used many, and a state that wants too many fails. Depth and sizes are near AWS's (a hundred
levels; some hundred thousand numbers). Time is the last bound: it ends what steps do not count well, regular
expressions above all.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jlens

from tasuki.language.definition import Scope
from tasuki.language.jsonata_functions import ADDED, LARGEST_ARRAY, PRELUDES, PURE, drawing
from tasuki.language.jsonata_scan import Words, scan
from tasuki.values.documents import Doc, dumps

DEEPEST = 100
_OUR_LEVELS = 1
"""The block that an expression is put into."""
LARGEST_TEXT_BYTES = 4_194_304
LARGEST_RESULT_BYTES = 4_194_304
LONGEST_SECONDS = 0.2

MOST_STEPS = 3_000_000
"""How many steps the expressions of one visit of a state may take together."""

_TIERS = ((500, 100), *((steps, steps) for steps in (8_000, 128_000, 1_000_000)))
"""How many steps an evaluation gets at each try, and what a try counts for. Nearly all need the first only."""

_STATES = ("input", "result", "errorOutput", "context")
_DRAWN = frozenset({"random", "uuid"})
_SHUFFLED = frozenset({"shuffle"})


class BadQuery(Exception):
    """An expression that no machine may hold: AWS's code, and its words, one for each thing that is wrong."""

    def __init__(self, code: str, messages: list[str]) -> None:
        super().__init__(code, messages)
        self.code = code
        self.messages = messages


@dataclass(slots=True)
class Fuel:
    """What expressions have used up, in steps, roughly: counted by the tries that were needed."""

    spent: int = 0
    limit: int = MOST_STEPS

    def refill(self) -> None:
        """Let another state use as much as any may."""
        self.limit = self.spent + MOST_STEPS


class Compiled:
    """An expression as the library takes it, shared by all fields that hold the same text."""

    __slots__ = (
        "_functions",
        "_members",
        "_own_names",
        "_prelude",
        "_reads",
        "_source",
        "_whole_input",
        "_words",
        "variables",
    )

    def __init__(self, words: Words, reads: Any, functions: tuple[str, ...], prelude: str) -> None:
        self._source = source = words.guarded
        self._words = words
        self._functions = functions
        self._prelude = prelude
        # An object's constructor looks at the input, too, but only whether it is an array: `{}`.
        self._whole_input = reads.get("input") is True or ("input" in reads and bool(words.context))
        # The library takes odd characters for a part of a name ($x`b`): no variable can be called so.
        named = frozenset(name for name in reads["bindings"] if name.isidentifier())
        self.variables = named - ADDED - {"states"} - set(PURE)
        # Names of functions and of what the expression binds itself: a variable of the machine may have them, too.
        self._own_names = words.variables - self.variables
        seen = reads["bindings"].get("states")
        self._members = tuple(name for name in _STATES if seen is True or seen == {} or (seen and name in seen))
        names = "".join(f"${name}:=`{name}`;" for name in sorted(self.variables))
        states = "$states:=states;" if seen is not None else ""
        self._reads = self._registered(_behind(states + names + prelude, source))

    def _registered(self, text: str) -> jlens.Expression:
        made = jlens.Expression(text)
        for name in self._functions:
            function, signature = PURE[name]
            made.register_function(name, function, signature)
        return made

    @property
    def of_states(self) -> tuple[str, ...]:
        """Which members of `$states` it names."""
        return self._words.of_states

    def evaluate(self, scope: Scope, fuel: Fuel) -> str | None:
        """Answer the result's text, None for nothing and for a function."""
        if self._whole_input or not self._own_names.isdisjoint(scope.variables):
            bound = self._registered(_behind(self._prelude_beside(scope), self._source))
            return self._run(bound, None, self._bindings(scope), scope, fuel)
        return self._run(self._reads, self._text(scope), self._drawing(scope), scope, fuel)

    def evaluate_over(self, document: str | None, scope: Scope, fuel: Fuel) -> str | None:
        """Answer the result's text over an input document."""
        made = self._registered(_behind(self._prelude, self._source))
        return self._run(made, document, {**(self._drawing(scope) or {}), **scope.variables}, scope, fuel)

    def is_function(self, scope: Scope, fuel: Fuel) -> bool:
        """Tell whether the result, which had no text, is a function."""
        prelude = self._prelude_beside(scope)
        asked = self._registered(f'({prelude}$what_it_is:=\n{self._source}\n;$type($what_it_is)="function")')
        return self._run(asked, None, self._bindings(scope), scope, fuel) == "true"

    def _prelude_beside(self, scope: Scope) -> str:
        """Answer the prelude, unless a variable covers one of the names that it gives a meaning."""
        return self._prelude if scope.variables.keys().isdisjoint(PRELUDES) else ""

    def _run(
        self, made: jlens.Expression, text: str | None, bindings: dict[str, Any] | None, scope: Scope, fuel: Fuel
    ) -> str | None:
        seed = scope.chance.bits(53) if self._words.variables & _SHUFFLED else 0
        for steps, counts in _TIERS:
            if fuel.spent + counts > fuel.limit:
                break
            fuel.spent += counts
            try:
                answer: str | None = made.evaluate_json(
                    text,
                    bindings,
                    max_steps=steps,
                    timeout=LONGEST_SECONDS,
                    max_depth=DEEPEST + _OUR_LEVELS,
                    max_string_length=LARGEST_TEXT_BYTES,
                    max_array_length=LARGEST_ARRAY,
                    max_result_size=LARGEST_RESULT_BYTES,
                    now=scope.now,
                    seed=seed,
                )
            except jlens.JlensError as failed:
                if failed.code != "U1006":
                    raise
            else:
                return answer
        raise _OutOfFuel

    def _text(self, scope: Scope) -> str | None:
        """Answer the document that holds what it reads."""
        parts = []
        for name in self._members:
            if name == "context":
                parts.append(f'"context":{dumps(scope.context())}')
                continue
            doc: Doc | None = getattr(scope, "error_output" if name == "errorOutput" else name)
            if doc is not None:
                parts.append(f'"{name}":{doc.text}')
        members = [f'"states":{{{",".join(parts)}}}'] if parts else []
        seen = scope.variables
        members.extend([f'"{name}":{dumps(seen[name])}' for name in self.variables if name in seen])
        return f"{{{','.join(members)}}}" if members else None

    def _bindings(self, scope: Scope) -> dict[str, Any]:
        states: dict[str, Any] = {}
        for name in self._members:
            if name == "context":
                states["context"] = scope.context()
                continue
            doc: Doc | None = getattr(scope, "error_output" if name == "errorOutput" else name)
            if doc is not None:
                states[name] = doc.value
        mentioned = {name: scope.variables[name] for name in self._words.variables if name in scope.variables}
        return {"states": states, **(self._drawing(scope) or {}), **mentioned}

    def _drawing(self, scope: Scope) -> dict[str, Any] | None:
        bindings: dict[str, Any] | None = drawing(scope.chance) if self._words.variables & _DRAWN else None
        if "eval" in self._words.variables:
            bindings = {**(bindings or {}), "eval": None}  # Step Functions has no $eval: null cannot be called
        return bindings


def _behind(assignments: str, source: str) -> str:
    """Put an expression into a block; one that parses alone parses in it, too, and cannot leave it."""
    return f"({assignments}\n{source}\n)" if assignments else source


class _OutOfFuel(jlens.JlensError):
    """The state has used up its steps."""

    code = "U1006"


@lru_cache(maxsize=4096)
def compile_query(source: str) -> Compiled:
    """Compile an expression. Raises `BadQuery`."""
    compiled, refused = _compile(source)
    if refused:
        messages = [f"Reference to '{name}' at the top level is not supported." for name in refused]
        raise BadQuery("UNSUPPORTED_JSONATA_EXPRESSION", messages)
    return compiled


def compile_with_input(source: str) -> Compiled:
    """Compile an expression that may read an input document. Raises `BadQuery`."""
    return _compile(source)[0]


def _compile(source: str) -> tuple[Compiled, list[str]]:
    """Answer the compiled expression, and what it reads of the input document that a machine's has not."""
    words = scan(source)
    if words.newer is not None:
        raise BadQuery("INVALID_JSONATA_EXPRESSION", [words.newer])
    prelude = ""
    functions: list[str] = []
    for name in sorted(words.variables):
        if name in PRELUDES:
            text, wanted = PRELUDES[name]
            prelude += text
            functions.extend(wanted)
        elif name in PURE:
            functions.append(name)
    if words.guarded != source:
        functions.append("range_end")
    try:
        made = jlens.Expression(source)
        reads = made.reads(dict.fromkeys(ADDED | set(PURE) | {"eval"}, _known))
        compiled = Compiled(words, reads, tuple(functions), prelude)
    except (jlens.JlensError, UnicodeError) as bad:
        raise BadQuery("INVALID_JSONATA_EXPRESSION", [str(bad).rstrip()]) from None
    return compiled, _top_level(words, reads.get("input"))


def _known(*_arguments: Any) -> None:
    """Stand for a function of ours where only what is read is asked for."""


def _top_level(words: Words, read: Any) -> list[str]:
    """Answer what an expression reads of the input document, which it has none of."""
    if isinstance(read, dict) and read:
        return [name for name in words.names if name in read] or list(words.context[:1]) or list(read)
    return list(words.context[:1]) if read is True else []
