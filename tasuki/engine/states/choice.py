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
    output: Expression | None = None
    for rule in state.choices:
        if rule.test(scope):
            following, assign, output = rule.next, rule.assign, rule.output
            break
    else:
        following, assign, output = state.default, state.assign, state.output
    if following is None:
        raise StatesError(
            "States.NoChoiceMatched",
            "Failed to transition out of the state. The state does not point to a next state.",
        )
    made, assigned = mode.finish(scope, frame, state, result, assign, output=output)
    turn.leave(frame, state, made, assigned, following)
