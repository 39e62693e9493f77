"""Choice: the first rule that matches says where to go."""

from tasuki.engine.execution import Frame
from tasuki.engine.flow import mode_of
from tasuki.engine.turn import Turn
from tasuki.language.definition import Choice, Expression
from tasuki.language.errors import StatesError


def enter(turn: Turn, frame: Frame, state: Choice) -> None:
    """Pick and go. A rule's Assign counts when it matched, the state's own with Default (recorded: assign/*choice*)."""
    turn.enter(frame, state)
    mode = mode_of(state)
    scope = mode.begin(turn, frame, state)
    result = mode.arguments(scope, frame, state)
    following: str | None = None
    assign: Expression | None = None
    for rule in state.choices:
        if rule.test(scope):
            following, assign = rule.next, rule.assign
            break
    else:
        following, assign = state.default, state.assign
    if following is None:
        raise StatesError(
            "States.NoChoiceMatched",
            "Failed to transition out of the state. The state does not point to a next state.",
        )
    output, assigned = mode.finish(scope, frame, state, result, assign)
    turn.leave(frame, state, output, assigned, following)
