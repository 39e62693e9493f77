"""How data pass through a state in JSONPath mode: templates, and ResultPath's merge.

A template is compiled once. What has no `.$` key in it is a constant that is shared by every run: nobody changes
documents in place.
"""

from collections.abc import Callable
from typing import Any

from tasuki.language.definition import Expression
from tasuki.language.errors import StatesError
from tasuki.language.intrinsics import parse_intrinsic
from tasuki.language.path_steps import BadPath
from tasuki.language.paths import field_missing, parse_path
from tasuki.values.documents import dumps


def compile_value(text: str, field: str, variables: set[str]) -> Expression:
    """Compile what stands under a `.$` key: a path, or a call of an intrinsic function.

    `field` is the key with its suffix, for the error's words. The variables it reads are added to `variables`. Raises
    `BadPath`.
    """
    if text.startswith("$"):
        path = parse_path(text)
        if path.variable not in {"", "$"}:
            variables.add(path.variable)
        return path.bind(field_missing(field))
    return parse_intrinsic(text, variables)


def compile_template(
    template: Any, variables: set[str], complain: Callable[[str, str, str], None], pointer: str = ""
) -> Expression:
    """Compile a payload template.

    `complain(pointer, key, reason)` is told about every `.$` key whose value is no path or call; `pointer` is the JSON
    pointer of the object that holds the key, below the template.
    """
    made = _compile(template, variables, complain, pointer)
    if made is None:
        return lambda scope: template  # noqa: ARG005 - an expression's shape
    return made


def _compile(
    template: Any, variables: set[str], complain: Callable[[str, str, str], None], pointer: str
) -> Expression | None:
    """Answer the expression, or None when the template is a constant."""
    if isinstance(template, dict):
        return _compile_object(template, variables, complain, pointer)
    if isinstance(template, list):
        entries = [_compile(item, variables, complain, f"{pointer}/{place}") for place, item in enumerate(template)]
        if not any(entries):
            return None
        dynamic = [(place, entry) for place, entry in enumerate(entries) if entry is not None]

        def build_array(scope: Any) -> Any:
            made = template.copy()
            for place, entry in dynamic:
                made[place] = entry(scope)
            return made

        return build_array
    return None


def _compile_object(
    template: dict[str, Any], variables: set[str], complain: Callable[[str, str, str], None], pointer: str
) -> Expression | None:
    frame: dict[str, Any] = {}
    dynamic: list[tuple[str, Expression]] = []
    for key, value in template.items():
        if not key.endswith(".$"):
            entry = _compile(value, variables, complain, f"{pointer}/{escape(key)}")
            frame[key] = value if entry is None else None
            if entry is not None:
                dynamic.append((key, entry))
            continue
        name = key[:-2]
        if name in template or not isinstance(value, str):
            complain(pointer, key, "the field is there twice" if name in template else "it is not text")
            continue
        try:
            dynamic.append((name, compile_value(value, key, variables)))
        except BadPath as bad:
            complain(pointer, key, str(bad))
        frame[name] = None
    if not dynamic:
        return None
    if len(dynamic) == len(frame) == 1:
        ((only, single),) = dynamic
        return lambda scope: {only: single(scope)}
    entries = tuple(dynamic)

    def build_object(scope: Any) -> Any:
        made = frame.copy()
        for name, entry in entries:
            made[name] = entry(scope)
        return made

    return build_object


def escape(key: str) -> str:
    """Write a key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def merge(document: Any, steps: tuple[str | int, ...], value: Any) -> Any:
    """Put `value` at a ResultPath of `document`; answer the new document.

    Nothing is changed in place: what lies on the way is copied, the rest is shared. Missing objects on the way are made.
    Raises `StatesError` (States.ResultPathMatchFailure) when something else stands in the way.
    """
    if not steps:
        return value
    made: Any = None
    holder: Any = None
    holder_key: Any = None
    node = document
    for place, step in enumerate(steps):
        if isinstance(step, str):
            if not isinstance(node, dict):
                raise _mismatch(steps, document)
            copy: Any = node.copy()
        else:
            if not isinstance(node, list) or step >= len(node):
                raise _mismatch(steps, document)
            copy = node.copy()
        if holder is None:
            made = copy
        else:
            holder[holder_key] = copy
        holder, holder_key = copy, step
        if place < len(steps) - 1:
            node = copy.get(step, {}) if isinstance(step, str) else copy[step]
    holder[holder_key] = value
    return made


def _mismatch(steps: tuple[str | int, ...], document: Any) -> StatesError:
    path = "$" + "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in steps)
    return StatesError(
        "States.ResultPathMatchFailure", f"Unable to apply Reference Path '{path}' to the input '{dumps(document)}'"
    )
