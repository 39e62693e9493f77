"""Fail: ends its block with an error."""

from tasuki.engine.execution import Frame
from tasuki.engine.failing import fail_state
from tasuki.engine.flow import mode_of
from tasuki.engine.turn import Failure, Turn
from tasuki.language.definition import Expression, Fail, Scope


def enter(turn: Turn, frame: Frame, state: Fail) -> None:
    """End the block with an error, whose name and cause may be missing (recorded: base/test_state_fail_empty)."""
    turn.enter(frame, state)
    scope = mode_of(state).begin(turn, frame, state)
    fail_state(turn, frame, state, Failure(_text(state.error, scope), _text(state.cause, scope)))


def _text(field: str | Expression | None, scope: Scope) -> str | None:
    """Answer a literal, or what an expression says."""
    if field is None or isinstance(field, str):
        return field
    value = field(scope)
    return value if isinstance(value, str) else None
