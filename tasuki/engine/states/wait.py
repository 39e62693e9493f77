"""Wait: goes on at an instant."""

from tasuki.engine.events import Event, TimerFired
from tasuki.engine.execution import Frame, Phase
from tasuki.engine.flow import mode_of
from tasuki.engine.turn import Turn
from tasuki.language.definition import Wait


def enter(turn: Turn, frame: Frame, state: Wait) -> None:
    """Wait, or go on at once when the instant is past."""
    turn.enter(frame, state)
    until = state.until(mode_of(state).begin(turn, frame, state), turn.now)
    if until <= turn.now:
        _leave(turn, frame, state)
        return
    frame.phase = Phase.WAITING
    frame.wake_at = until


def resume(turn: Turn, frame: Frame, state: Wait, event: Event) -> None:
    """Go on when the time has come."""
    if isinstance(event, TimerFired) and frame.wake_at is not None and turn.now >= frame.wake_at:
        frame.wake_at = None
        _leave(turn, frame, state)


def _leave(turn: Turn, frame: Frame, state: Wait) -> None:
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    result = mode.arguments(scope, frame, state)
    output, assigned = mode.finish(scope, frame, state, result, state.assign)
    turn.leave(frame, state, output, assigned, state.next)
