"""Pass: hands its input on, or a fixed result, or what its Parameters make of the input."""

from tasuki.engine.execution import Frame
from tasuki.engine.flow import mode_of
from tasuki.engine.turn import Turn
from tasuki.language.definition import Pass


def enter(turn: Turn, frame: Frame, state: Pass) -> None:
    """Pass through."""
    turn.enter(frame, state)
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    result = state.result
    if result is None:
        result = mode.arguments(scope, frame, state)
    output, assigned = mode.finish(scope, frame, state, result, state.assign)
    turn.leave(frame, state, output, assigned, state.next)
