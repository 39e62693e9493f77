"""What an execution will say happened: the events of GetExecutionHistory, before they have a wire shape."""

from dataclasses import dataclass
from typing import Any

from tasuki.values.instant import Instant

MAX_EVENTS = 25_000
"""An execution that would write more fails (Step Functions quotas)."""


@dataclass(slots=True)
class HistoryEvent:
    """One event.

    `type` is AWS's name (`TaskStateEntered`). `details` holds the members of its `...EventDetails` as AWS names them
    (`name`, `input`, `output`, `error`, ...); documents are `Doc`s, so that one shared by several events is stored
    once (a state's output and the next one's input are the same object). None when the event has no details member at
    all, `{}` when it has an empty one (`executionAbortedEventDetails: {}`).

    Where a `Doc` stands: `input`, `output`, `parameters`; and the values of `assignedVariables` (a dict of name to Doc).
    Everything else is plain. `inputDetails`, `outputDetails` and `assignedVariablesDetails` are always
    `{"truncated": False}` and are added where the event is shown, beside `input`, `output` and `assignedVariables`.
    """

    id: int
    previous: int
    at: Instant
    type: str
    details: dict[str, Any] | None
