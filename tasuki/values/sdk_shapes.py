"""Parameters and results as Step Functions' AWS SDK integrations write them, by a service's model.

Names are those of AWS's SDK for Java in PascalCase, at every depth (developer guide, "Using AWS SDK service
integrations"): `DBInstanceArn` is `DbInstanceArn`, `stateMachineArn` is `StateMachineArn`; keys of maps stay as they are.
A string member that is given an object or a list takes its JSON text (recorded:
aws_sdk_task_service/test_sfn_start_execution_implicit_json_serialisation); a blob is text, or the JSON text of anything
else (recorded: aws_sdk_task_service/test_s3_put_object).
"""

import re
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any

from tasuki.values.documents import dumps
from tasuki.values.errors import TasukiError
from tasuki.values.instant import Instant, from_datetime, has_date, to_iso
from tasuki.values.service_models import Shape

_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[^A-Za-z0-9]+"), " "),
    (re.compile(r"(?<=[a-z])(?=[A-Z][a-zA-Z0-9])"), " "),
    (re.compile(r"([A-Z]+)([A-Z][a-z])"), r"\1 \2"),
    (re.compile(r"([0-9])([a-zA-Z])"), r"\1 \2"),
)
"""Where the SDK for Java divides a name into words, step after step."""
_WHOLE = {"integer": 1 << 31, "long": 1 << 63, "short": 1 << 15, "byte": 1 << 7}
"""Kinds of whole numbers, and the first number that no longer fits."""
_REAL = frozenset({"float", "double", "bigdecimal"})


class Misfit(TasukiError):
    """Parameters that an operation doesn't take. The text is what Step Functions says in its brackets."""


@cache
def sdk_name(name: str) -> str:
    """Answer a member's name in parameters and results: `MD5OfBody` is `Md5OfBody`."""
    for pattern, by in _WORDS:
        name = pattern.sub(by, name)
    return "".join(word[:1].upper() + word[1:].lower() for word in name.split())


def read(shape: Shape, value: Any, at: str = "", *, implicit: bool = True) -> dict[str, Any]:
    """Turn a structure's parameters into input (blobs as bytes, timestamps as instants). Raises `Misfit`.

    `implicit` lets objects and lists become text where the model says string.

    Null is a value for Step Functions and none for the service (recorded: task_service_sqs/test_send_message_empty_body).
    """
    if not isinstance(value, dict):
        raise _must_be(at, "OBJECT")
    members = _members(shape)
    out: dict[str, Any] = {}
    for given, inner in value.items():
        name = members.get(given)
        if name is None:
            raise Misfit(f'The field "{given}" is not supported by Step Functions')
        if inner is not None:
            out[name] = _value(shape.members[name].shape, inner, f"{at}.{given}" if at else given, implicit)
    for name in shape.required:
        if name not in out and sdk_name(name) not in value:
            raise Misfit(f"The field '{sdk_name(name)}' is required but was missing")
    return out


_KNOWN: dict[int, tuple[Shape, dict[str, str]]] = {}


def _members(shape: Shape) -> dict[str, str]:
    """Answer the members of a structure by their names in parameters."""
    found = _KNOWN.get(id(shape))
    if found is None:
        # The shape is kept, so that its id stays its own.
        found = _KNOWN[id(shape)] = shape, {sdk_name(name): name for name in shape.members}
    return found[1]


def _value(shape: Shape, value: Any, at: str, implicit: bool) -> Any:
    kind = shape.kind
    if shape.document:
        return value
    if kind == "structure":
        return read(shape, value, at, implicit=implicit)
    if kind == "list":
        if not isinstance(value, list):
            raise _must_be(at, "ARRAY")
        return [_value(shape.element.shape, inner, at, implicit) for inner in value if inner is not None]
    if kind == "map":
        if not isinstance(value, dict):
            raise _must_be(at, "OBJECT")
        of = shape.pair[1].shape
        return {key: _value(of, inner, f"{at}.{key}", implicit) for key, inner in value.items() if inner is not None}
    if implicit and kind == "string" and isinstance(value, dict | list):
        return dumps(value)
    return _scalar(shape, value, at)


def _scalar(shape: Shape, value: Any, at: str) -> Any:
    kind = shape.kind
    if kind == "boolean":
        if isinstance(value, bool):
            return value
        raise _must_be(at, "BOOLEAN")
    if kind in _WHOLE or kind in _REAL:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _must_be(at, "NUMBER")
        if kind in _REAL:
            return value
        whole = int(value)
        if whole != value or not -_WHOLE[kind] <= whole < _WHOLE[kind]:
            raise Misfit(f"The value for the field '{at}' must be an {kind.upper()}")
        return whole
    if kind == "blob":
        return (value if isinstance(value, str) else dumps(value)).encode()
    if kind == "timestamp":
        return _instant(value, at)
    if not isinstance(value, str):
        raise _must_be(at, "STRING")
    return value


def _instant(value: Any, at: str) -> int:
    """Read a timestamp: ISO 8601, as Step Functions wants it."""
    instant: Instant | None = None
    with suppress(TypeError, ValueError):
        instant = from_datetime(datetime.fromisoformat(value))
    if instant is None or not has_date(instant):
        raise Misfit(f"The value for the field '{at}' must be a valid ISO 8601 timestamp")
    return instant


def _must_be(at: str, wanted: str) -> Misfit:
    return Misfit(f"The value for the field '{at}' must be a {wanted}")


def show(shape: Shape | None, value: Any) -> dict[str, Any]:
    """Turn an operation's output into what a Task shows of it."""
    return _shown(shape, value) if shape is not None else {}


def _shown(shape: Shape, value: Any) -> Any:
    if value is None or shape.document:
        return value
    kind = shape.kind
    if kind == "structure":
        return {
            sdk_name(name): _shown(shape.members[name].shape, inner)
            for name, inner in value.items()
            if inner is not None and name in shape.members
        }
    if kind == "list":
        return [_shown(shape.element.shape, inner) for inner in value]
    if kind == "map":
        of = shape.pair[1].shape
        return {key: _shown(of, inner) for key, inner in value.items()}
    if kind == "timestamp":
        return to_iso(value)
    if kind == "blob":
        return value.decode(errors="replace") if isinstance(value, bytes) else value
    return value
