"""How documents pass through a state in JSONata mode (developer guide, "Transforming data with JSONata").

    input ─Arguments→ (work) → $states.result ─Output→ output
                                      └─Assign→ variables

Output and Assign see the same: the state's input, its result, and the variables as they were when it was entered. What
is not given is the default: the input for Arguments; the result, or without work the input, for Output.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from tasuki.engine.execution import Frame
from tasuki.engine.scopes import make_scope
from tasuki.engine.turn import Turn
from tasuki.language.definition import Catcher, Choice, Expression, Map, Parallel, Scope, State, Task
from tasuki.language.jsonata_templates import Template
from tasuki.values.documents import Doc

Assigned: TypeAlias = Mapping[str, Any] | None


class Jsonata:
    """The JSONata mode."""

    __slots__ = ()

    def begin(self, turn: Turn, frame: Frame, state: State) -> Scope:
        """`$states.input` is the raw input."""
        return make_scope(turn, frame, state, frame.input)

    def arguments(self, scope: Scope, frame: Frame, state: State) -> Doc:
        """Arguments, by default the input."""
        if not isinstance(state, Task | Parallel) or state.arguments is None:
            return frame.input
        made = _doc(state.arguments, scope)
        if scope.trace is not None:
            scope.trace["afterArguments"] = made
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
        """Output and Assign; a Choice hands in those of the rule that matched."""
        made = frame.input
        if isinstance(state, Task | Parallel | Map):
            scope.result = made = result
        chosen = output if isinstance(state, Choice) else state.output
        if chosen is not None:
            made = _doc(chosen, scope)
        return made, None if assign is None else assign(scope)

    def caught(self, scope: Scope, frame: Frame, catcher: Catcher, error_output: Doc) -> tuple[Doc, Assigned]:
        """The catcher's Output, by default the error; its Assign."""
        del frame
        scope.error_output = error_output
        output = error_output if catcher.output is None else _doc(catcher.output, scope)
        return output, None if catcher.assign is None else catcher.assign(scope)


def _doc(expression: Expression, scope: Scope) -> Doc:
    return expression.doc(scope) if isinstance(expression, Template) else Doc(expression(scope))
