"""The context object: `$$`, `$states.context`.

Members and their order as recorded (context_object/*): RetryCount only in states that retry, Token only in tasks
that are given one, Map only inside a Map.
"""

from typing import Any

from tasuki.engine.execution import Frame
from tasuki.engine.turn import Turn
from tasuki.language.definition import Map, Parallel, State, Task
from tasuki.values.documents import Doc
from tasuki.values.instant import to_iso

STATE_DATA = "STATE_DATA"
"""Where a Map's items come from that stand in its input."""


class Context:
    """Makes the context object of a state's visit when it is first asked for, and keeps it."""

    __slots__ = ("_frame", "_item", "_made", "_source", "_state", "_turn")

    def __init__(
        self, turn: Turn, frame: Frame, state: State, item: tuple[int, Doc] | None = None, source: str = STATE_DATA
    ) -> None:
        self._turn = turn
        self._frame = frame
        self._state = state
        self._item = item
        self._source = source
        self._made: dict[str, Any] | None = None

    def __call__(self) -> dict[str, Any]:
        """Answer the context object."""
        if self._made is None:
            given = self._turn.given_context
            self._made = self._make() if given is None else given
        return self._made

    def _make(self) -> dict[str, Any]:
        turn, frame = self._turn, self._frame
        if turn.execution_context is None:
            turn.execution_context = _execution_context(turn)
        state: dict[str, Any] = {"Name": self._state.name, "EnteredTime": to_iso(frame.entered_at)}
        if isinstance(self._state, Task | Parallel | Map):
            state["RetryCount"] = frame.retry_count
        made = {**turn.execution_context, "State": state}
        if frame.token is not None:
            made["Task"] = {"Token": frame.token}
        item = self._item or _nearest_item(turn, frame)
        if item is not None:
            made["Map"] = {"Item": {"Index": item[0], "Value": item[1].value}}
            if self._item is not None:
                # Said to an ItemSelector only (developer guide, "Accessing execution data from the Context object").
                made["Map"]["Item"]["Source"] = self._source
        return made


def _execution_context(turn: Turn) -> dict[str, Any]:
    """Answer the part that is the same all over the execution."""
    execution = turn.execution
    of_execution = {
        "Id": execution.arn,
        "Input": execution.input.value,
        "StartTime": to_iso(execution.started_at),
        "Name": execution.name,
        "RoleArn": execution.role_arn,
    }
    if not execution.express:
        of_execution["RedriveCount"] = execution.redrive_count
    if execution.redriven_at is not None:
        of_execution["RedriveTime"] = to_iso(execution.redriven_at)
    return {
        "Execution": of_execution,
        "StateMachine": {"Id": execution.machine_arn, "Name": execution.machine_name},
    }


def _nearest_item(turn: Turn, frame: Frame) -> tuple[int, Doc] | None:
    """Answer index and item of the innermost Map iteration around a frame."""
    here: Frame | None = frame
    while here is not None:
        if here.item is not None:
            return here.index, here.item
        here = turn.frames.get(here.parent) if here.parent is not None else None
    return None
