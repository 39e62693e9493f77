"""Which variables a state can see, and which it may assign.

The machine's own states are the outermost scope; each Parallel branch and Map iteration is one below the state that opens it.
It reads what lies around it and assigns names of its own; a distributed Map's children see nothing of it (developer guide,
"Passing data between states with variables").

AWS wants names to be unique across a scope and those around it. Yet it took a Parallel whose catcher assigns a name that its
branch assigns, too (recorded: states_variables/test_parallel_catch_error), so refused is only what can really meet: a name
that has a value already when the inner scope begins.
"""

from collections.abc import Iterator
from typing import Any

from tasuki.language.check import blocks_of, targets
from tasuki.language.payload import escape
from tasuki.language.schema import Complaints


def names_in_reach(value: dict[str, Any]) -> dict[str, frozenset[str]]:
    """Answer the variables that the states of each block can see, by the block's pointer."""
    reach: dict[str, frozenset[str]] = {}
    for pointer, block in blocks_of(value):
        own = {name for state in block["States"].values() for _, names in assigns(state) for name in names}
        reach[pointer] = reach.get(pointer, frozenset()) | own
        for name, state in block["States"].items():
            for place, inner in inner_blocks(state):
                reach[f"{pointer}/States/{escape(name)}/{place}"] = (
                    frozenset() if _is_distributed(inner) else reach[pointer]
                )
    return reach


def check_scopes(value: dict[str, Any], complaints: Complaints) -> None:
    """Refuse assignments to a name that an outer scope has given a value."""
    taken: dict[str, frozenset[str]] = {"": frozenset()}
    for pointer, block in blocks_of(value):
        outer = taken[pointer]
        for name, state in block["States"].items():
            at = f"{pointer}/States/{escape(name)}"
            for place, names in assigns(state):
                for variable in sorted(names & outer):
                    message = f"The variable '{variable}' is assigned in an outer scope, and can only be read here"
                    complaints.add(f"{at}/{place}", message)
            inner = list(inner_blocks(state))
            if inner:
                before = outer | _assigned_before(block["States"], name)
                taken |= {f"{at}/{place}": frozenset() if _is_distributed(below) else before for place, below in inner}


def inner_blocks(state: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Go through the blocks of a state, each with its place below it."""
    yield from ((f"Branches[{place}]", branch) for place, branch in enumerate(state.get("Branches", ())))
    yield from ((field, state[field]) for field in ("ItemProcessor", "Iterator") if field in state)


def _is_distributed(block: dict[str, Any]) -> bool:
    return bool(block.get("ProcessorConfig", {}).get("Mode") == "DISTRIBUTED")


def assigns(state: dict[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    """Go through every Assign of a state: its place, and the names."""
    holders = [("Assign", state)]
    for field in ("Catch", "Choices"):
        holders += [(f"{field}[{place}]/Assign", entry) for place, entry in enumerate(state.get(field, ()))]
    for place, holder in holders:
        if "Assign" in holder:
            yield place, frozenset(key.removesuffix(".$") for key in holder["Assign"])


def _assigned_before(states: dict[str, Any], name: str) -> frozenset[str]:
    """Answer what may have been assigned when a state begins: by any state from which it can be reached."""
    comes_from: dict[str, list[str]] = {}
    for state_name, state in states.items():
        for _, target, _ in targets(state):
            comes_from.setdefault(target, []).append(state_name)
    before: set[str] = set()
    todo = list(comes_from.get(name, ()))
    while todo:
        earlier = todo.pop()
        if earlier not in before:
            before.add(earlier)
            todo += comes_from.get(earlier, ())
    return frozenset(variable for earlier in before for _, names in assigns(states[earlier]) for variable in names)
