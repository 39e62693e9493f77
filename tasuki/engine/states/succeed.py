"""Succeed: ends its block well."""

from tasuki.engine.execution import Frame
from tasuki.engine.flow import mode_of
from tasuki.engine.turn import Turn
from tasuki.language.definition import Succeed


def enter(turn: Turn, frame: Frame, state: Succeed) -> None:
    """End the block with the input."""
    turn.enter(frame, state)
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    output, _ = mode.finish(scope, frame, state, mode.arguments(scope, frame, state), None)
    turn.leave(frame, state, output, None, None)
