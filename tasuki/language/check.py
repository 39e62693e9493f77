"""How the states of a definition hang together: names, targets, ends, reachability.

Works on the plain JSON, after its schema was found right; complaints stand where AWS puts them.
"""

from collections.abc import Iterator
from typing import Any

from tasuki.language.payload import escape
from tasuki.language.schema import Complaints

LONGEST_NAME = 80


def blocks_of(value: dict[str, Any], pointer: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Go through every block, outer ones first, with its pointer."""
    todo = [(pointer, value)]
    while todo:
        here, block = todo.pop(0)
        yield here, block
        for name, state in block["States"].items():
            at = f"{here}/States/{escape(name)}"
            todo.extend((f"{at}/Branches[{place}]", branch) for place, branch in enumerate(state.get("Branches", ())))
            todo.extend((f"{at}/{field}", state[field]) for field in ("ItemProcessor", "Iterator") if field in state)


def check_names(value: dict[str, Any], complaints: Complaints) -> None:
    """Refuse names that are empty, too long, or there twice in the machine."""
    seen: set[str] = set()
    labels: set[str] = set()
    for pointer, block in blocks_of(value):
        for name, state in block["States"].items():
            at = f"{pointer}/States/{escape(name)}"
            if not 0 < len(name) <= LONGEST_NAME:
                message = f"The name of a state must have 1 to {LONGEST_NAME} characters"
                complaints.add(at, message, "INVALID_STATE_NAME")
            if name in seen:
                complaints.add(at, f"Duplicate State name: {name}", "DUPLICATE_STATE_NAME")
            seen.add(name)
            label = state.get("Label")
            if label is not None and label in labels:
                complaints.add(f"{at}/Label", f"Duplicate Label: {label}", "DUPLICATE_LABEL_NAME")
            labels.add(label)


def check_graph(value: dict[str, Any], complaints: Complaints, *, alone: bool = False) -> None:
    """Refuse targets that are missing, states that nothing leads to, and blocks without an end.

    `alone`: the outermost block is a single state's, which may lead anywhere.
    """
    for pointer, block in blocks_of(value):
        if alone and not pointer:
            continue
        states = block["States"]
        before = len(complaints.found)
        if block["StartAt"] not in states:
            _missing(complaints, "StartAt", block["StartAt"], f"{pointer}/StartAt")
        leads: dict[str, list[str]] = {}
        for name, state in states.items():
            leads[name] = []
            for field, target, at in targets(state):
                if target not in states:
                    _missing(complaints, field, target, f"{pointer}/States/{escape(name)}/{at}")
                leads[name].append(target)
        if len(complaints.found) > before:
            continue
        reached = _reached(block["StartAt"], leads)
        for name in states:
            if name not in reached:
                at = f"{pointer}/States/{escape(name)}"
                complaints.add(at, f'State "{name}" is not reachable.', "MISSING_TRANSITION_TARGET")
        if not any(_ends(states[name]) for name in reached):
            complaints.add(f"{pointer}/States", "No terminal state: one state must end the block", "MISSING_END_STATE")


def _missing(complaints: Complaints, field: str, target: str, at: str) -> None:
    complaints.add(at, f"Missing '{field}' target: {target}", "MISSING_TRANSITION_TARGET")


def targets(state: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Go through where a state may lead: the field, the target, the place below the state."""
    for field in ("Next", "Default"):
        if field in state:
            yield field, state[field], field
    for field in ("Choices", "Catch"):
        for place, entry in enumerate(state.get(field, ())):
            yield "Next", entry["Next"], f"{field}[{place}]/Next"


def _reached(start: str, leads: dict[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo.extend(leads[name])
    return reached


def _ends(state: dict[str, Any]) -> bool:
    return state["Type"] in {"Succeed", "Fail"} or state.get("End") is True
