"""The paths of templates and execution names: `$.body.jobId`, `$.body.lines[0].id`, `$.body.lines[*].id`. Pure.

Pipes knows a part of JSONPath (user guide, "Amazon EventBridge Pipes input transformation"): dots, brackets with
an index or a quoted name, `*` for all elements or members.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

_STEP = re.compile(r"""\.([^.\[\]<>"'\s]+)|\[([0-9]{1,9}|\*)\]|\['([^']*)'\]|\["([^"]*)"\]""")

Finder: TypeAlias = Callable[[Any], Any]

MISSING: Final = type("_Missing", (), {"__repr__": lambda _self: "MISSING"})()
"""What a path answers that leads nowhere."""
_ALL: Final = object()


def compile_path(path: str) -> Finder | None:
    """Compile a path; None when it is not one. The finder answers the value there, or `MISSING`."""
    if not path.startswith("$"):
        return None
    steps: list[Any] = []
    offset = 1
    while offset < len(path):
        found = _STEP.match(path, offset)
        if found is None:
            return None
        name, index, single, double = found.groups()
        if "*" in {name, index}:
            steps.append(_ALL)
        else:
            steps.append(
                int(index) if index is not None else next(text for text in (name, single, double) if text is not None)
            )
        offset = found.end()
    return lambda event: _find(event, steps, 0)


def _find(value: Any, steps: list[Any], start: int) -> Any:
    for position in range(start, len(steps)):
        step = steps[position]
        if step is _ALL:
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            found = (_find(item, steps, position + 1) for item in inner)
            return [item for item in found if item is not MISSING]
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return MISSING
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return MISSING
    return value
