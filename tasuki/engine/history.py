"""What an execution will say happened: the events of GetExecutionHistory, before they have a wire shape."""

from dataclasses import dataclass
from typing import Any

from tasuki.values.instant import Instant


@dataclass(slots=True)
class HistoryEvent:
    """One event.

    `type` is AWS's name (`TaskStateEntered`). `details` holds the members of its `...EventDetails` as AWS names them
    (`name`, `input`, `output`, `error`, ...); documents are `Doc`s, so that one shared by several events is stored
    once. None when the event has no details member at all.
    """

    id: int
    previous: int
    at: Instant
    type: str
    details: dict[str, Any] | None
