"""How documents pass through a state: what it works on, and what becomes of its result.

`mode_of` is the one place that looks at the query language. A mode is four questions, asked by the state modules and by
`failing`; JSONPath's answers are below (developer guide, "Input and output processing"; recorded: assign/*, base/*),
JSONata's in `flow_jsonata`.

    input ─InputPath→ scope ─Parameters→ arguments ─(work)→ result ─ResultSelector→ ─ResultPath→ ─OutputPath→ output
                                                              └─Assign→ variables

A document that nothing changes stays the same `Doc`, so that history holds it once.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from tasuki.engine.execution import Frame
from tasuki.engine.flow_jsonata import Jsonata
from tasuki.engine.scopes import make_scope as make_scope  # noqa: PLC0414 - those who have a mode make scopes, too
from tasuki.engine.turn import Turn
from tasuki.language.definition import Catcher, Expression, Scope, State
from tasuki.language.payload import merge
from tasuki.values.documents import Doc

Assigned: TypeAlias = Mapping[str, Any] | None


class Mode(Protocol):
    """What a query language decides. Everything here raises `StatesError`."""

    def begin(self, turn: Turn, frame: Frame, state: State) -> Scope:
        """Answer the scope of a visit: what the state's first expressions see."""

    def arguments(self, scope: Scope, frame: Frame, state: State) -> Doc:
        """Answer what the state works on: Parameters or Arguments, by default the input."""

    def finish(
        self,
        scope: Scope,
        frame: Frame,
        state: State,
        result: Doc,
        assign: Expression | None,
        *,
        output: Expression | None = None,
    ) -> tuple[Doc, Assigned]:
        """Answer a result's output, and the variables to assign. `output` is that of a Choice, which has several."""

    def caught(self, scope: Scope, frame: Frame, catcher: Catcher, error_output: Doc) -> tuple[Doc, Assigned]:
        """Answer the output of a caught error, and the variables to assign."""


class JsonPath:
    """The JSONPath mode."""

    __slots__ = ()

    def begin(self, turn: Turn, frame: Frame, state: State) -> Scope:
        """`$` is the input after InputPath."""
        scope = make_scope(turn, frame, state, frame.input.value)
        path = state.flow.input_path
        if path is not None:
            scope.input = path(scope)
        if scope.trace is not None:
            scope.trace.setdefault("afterInputPath", Doc(scope.input))
        return scope

    def arguments(self, scope: Scope, frame: Frame, state: State) -> Doc:
        """Parameters, by default the input after InputPath."""
        flow = state.flow
        if flow.parameters is not None:
            made = Doc(flow.parameters(scope))
        else:
            made = frame.input if flow.input_path is None else Doc(scope.input)
        if scope.trace is not None:
            scope.trace["afterParameters"] = made
        return made

    def finish(
        self,
        scope: Scope,
        frame: Frame,
        state: State,
        result: Doc,
        assign: Expression | None,
        *,
        output: Expression | None = None,
    ) -> tuple[Doc, Assigned]:
        """ResultSelector, ResultPath into the raw input, OutputPath; in Assign `$` is the result as it came."""
        del output
        return self._finish(scope, frame, state, result, assign)

    def _finish(
        self, scope: Scope, frame: Frame, state: State, result: Doc, assign: Expression | None
    ) -> tuple[Doc, Assigned]:
        flow = state.flow
        output = result
        if flow.result_selector is not None:
            scope.input = result.value
            output = Doc(flow.result_selector(scope))
        if scope.trace is not None:
            scope.trace["afterResultSelector"] = output
        where = flow.result_path
        if where == "discard":
            output = frame.input
        elif where:
            output = Doc(merge(frame.input.value, where, output.value))
        if scope.trace is not None:
            scope.trace["afterResultPath"] = output
        if flow.output_path is not None:
            scope.input = output.value
            output = Doc(flow.output_path(scope))
        if assign is None:
            return output, None
        scope.input = result.value
        return output, assign(scope)

    def caught(self, scope: Scope, frame: Frame, catcher: Catcher, error_output: Doc) -> tuple[Doc, Assigned]:
        """The error at the catcher's ResultPath of the raw input; in Assign `$` is the error."""
        where = catcher.result_path
        if where == "discard":
            output = frame.input
        else:
            output = Doc(merge(frame.input.value, where, error_output.value)) if where else error_output
        if catcher.assign is None:
            return output, None
        scope.input = error_output.value
        return output, catcher.assign(scope)


_JSONPATH = JsonPath()
_JSONATA = Jsonata()


def mode_of(state: State) -> Mode:
    """Answer a state's mode."""
    return _JSONATA if state.query_language == "JSONata" else _JSONPATH
