"""What the expressions of a state see."""

from typing import Any

from tasuki.engine.context import STATE_DATA, Context
from tasuki.engine.execution import Frame
from tasuki.engine.turn import Turn
from tasuki.language.definition import Scope, State
from tasuki.values.documents import Doc


def make_scope(
    turn: Turn,
    frame: Frame,
    state: State,
    value: Any,
    item: tuple[int, Doc] | None = None,
    *,
    source: str = STATE_DATA,
) -> Scope:
    """Answer a scope in which `$` (JSONata: `$states.input`) is `value`, and `$$.Map.Item` is `item` or the one around."""
    scope = Scope(
        value, Context(turn, frame, state, item, source), turn.variables(frame), turn.chance(), trace=turn.trace
    )
    if state.query_language == "JSONata":
        if not isinstance(value, Doc):
            scope.input = Doc(value)
        scope.now = turn.now
        scope.fuel = turn.fuel
    return scope
