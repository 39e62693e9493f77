"""History events as GetExecutionHistory shows them (states.md section 10)."""

import re
from typing import Any

from tasuki.engine.history import HistoryEvent
from tasuki.values.documents import Doc

_WITHOUT_DATA = frozenset({"input", "output", "parameters", "assignedVariables"})
"""What `includeExecutionData=false` leaves out."""
_TRUNCATED = {"truncated": False}
_WITH_DETAILS = {
    "input": "inputDetails",
    "output": "outputDetails",
    "assignedVariables": "assignedVariablesDetails",
}
_STATE_EVENT = re.compile(r"(?:Pass|Task|Choice|Wait|Succeed|Fail|Parallel|Map)State(Entered|Exited)")


def details_member(kind: str) -> str:
    """Answer the member that holds an event's details.

    All states share two: `stateEnteredEventDetails` and `stateExitedEventDetails` (PITFALLS PF-12).
    """
    found = _MEMBERS.get(kind)
    if found is None:
        state = _STATE_EVENT.fullmatch(kind)
        found = f"state{state[1]}EventDetails" if state else f"{kind[0].lower()}{kind[1:]}EventDetails"
        _MEMBERS[kind] = found
    return found


_MEMBERS: dict[str, str] = {}


def shown_event(event: HistoryEvent, *, with_data: bool) -> dict[str, Any]:
    """Answer an event in its wire shape."""
    shown: dict[str, Any] = {
        "timestamp": event.at,
        "type": event.type,
        "id": event.id,
        "previousEventId": event.previous,
    }
    if event.details is not None:
        shown[details_member(event.type)] = _shown_details(event.details, with_data=with_data)
    return shown


def _shown_details(details: dict[str, Any], *, with_data: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in details.items():
        if name in _WITHOUT_DATA:
            if not with_data:
                continue
            if isinstance(value, Doc):
                shown[name] = value.text
            else:
                shown[name] = {key: doc.text for key, doc in value.items()}
            beside = _WITH_DETAILS.get(name)
            if beside is not None:
                shown[beside] = _TRUNCATED
        else:
            shown[name] = value
    return shown


def weight_of(event: HistoryEvent) -> int:
    """Answer about how many bytes an event takes in an answer."""
    size = 200
    for value in (event.details or {}).values():
        if isinstance(value, Doc):
            size += len(value.text)
        elif isinstance(value, str):
            size += len(value)
        elif isinstance(value, dict):
            size += sum(len(doc.text) for doc in value.values() if isinstance(doc, Doc))
    return size
