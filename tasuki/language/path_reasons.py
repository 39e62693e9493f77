"""Why a definite path finds nothing, in the words of AWS's JSON path library (recorded: test_invalid_jsonpath, test_catch_states_runtime)."""

from typing import Any

from tasuki.language.path_steps import Call, Indices, Names, Step
from tasuki.values.documents import dumps

_NODE_TYPES: dict[type, str] = {
    str: "TextNode",
    bool: "BooleanNode",
    int: "IntNode",
    float: "DoubleNode",
    type(None): "NullNode",
}
_JACKSON = "com.fasterxml.jackson.databind.node."
_PROVIDER = "com.jayway.jsonpath.spi.json.JacksonJsonNodeJsonProvider"


def explain(steps: tuple[Step, ...], document: Any) -> str:
    """Say in Jayway's words why a definite path finds nothing in `document`."""
    shown = "$"
    node = document
    for place, step in enumerate(steps):
        leaf = place == len(steps) - 1
        if isinstance(step, Names):
            fragment = "[" + ",".join(f"'{name}'" for name in step.names) + "]"
            if type(node) is not dict:
                kind = _JACKSON + ("ArrayNode" if type(node) is list else _NODE_TYPES.get(type(node), "ObjectNode"))
                return (
                    f"Expected to find an object with property {fragment} in path {shown} but found '{kind}'. "
                    f"This is not a json object according to the JsonProvider: '{_PROVIDER}'."
                )
            shown += fragment
            if len(step.names) == 1:
                if step.names[0] not in node:
                    return f"{'No results for path:' if leaf else 'Missing property in path'} {shown}"
                node = node[step.names[0]]
        elif isinstance(step, Indices):
            fragment = f"[{step.indices[0]}]"
            if type(node) is not list:
                return f"Filter: {fragment} can only be applied to arrays. Current context is: {dumps(node)}"
            shown += fragment
            node = node[step.indices[0]] if -len(node) <= step.indices[0] < len(node) else None
        elif isinstance(step, Call):
            return "Aggregation function attempted to calculate value using empty array"
    return f"No results for path: {shown}"
