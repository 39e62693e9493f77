"""What AWS says about input that breaks the model. The slow, talkative twin of the readers in `protocol/json.py`.

A reader only notices that something is amiss; then `convert` finds what is of the wrong type (the first fault, a
`SerializationException`) and `complaints` lists all broken constraints, in the words of AWS's service framework
(recorded: "1 validation error detected: Value '1001' at 'maxResults' failed to satisfy constraint: Member must have
value less than or equal to 1000"; "... at 'routingConfiguration.1.member.weight' ...").

SQS checks its values itself: only what is missing is said here, in SQS's words (recorded: "The request must contain
the parameter MessageBody.").
"""

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from tasuki.values.errors import DomainError
from tasuki.values.instant import EARLIEST, LATEST, SECOND, Instant, from_datetime
from tasuki.values.service_models import Member, Service, Shape

INTEGERS = {"integer": 1 << 31, "long": 1 << 63}
"""Integer kinds and the first number that no longer fits."""
EARLIEST_S, LATEST_S = EARLIEST // SECOND, LATEST // SECOND
PATTERN_LENGTH = 8_192
"""Longer texts are not matched against patterns: their length is what is wrong with them."""
_ARTICLES = {
    "string": "a String",
    "integer": "an Integer",
    "long": "a Long",
    "boolean": "a Boolean",
    "float": "a Float",
    "double": "a Double",
    "blob": "a Blob",
    "timestamp": "a Timestamp",
}
FRAMEWORK_FREE = frozenset({"sqs"})
"""Services that look after their own constraints."""


class Serialization(DomainError):
    """The body is not what the protocol says, or a value is of another type."""

    code = "SerializationException"
    query_code = "MalformedInput"


class Validation(DomainError):
    """A value breaks the model's constraints."""

    code = "ValidationException"
    query_code = "ValidationError"


class MissingParameter(DomainError):
    """SQS's own word for a required member that is not there."""

    code = "MissingRequiredParameterException"
    query_code = "MissingParameter"


def check(service: Service, shape: Shape, tree: dict[str, Any]) -> None:
    """Refuse converted input that breaks the model. Raises `Validation` or, for SQS, `MissingParameter`."""
    if service.name in FRAMEWORK_FREE:
        for missing in _missing(shape, tree, ""):
            raise MissingParameter(f"The request must contain the parameter {missing}.")
        return
    found = list(complaints(shape, tree, ""))
    if found:
        plural = "" if len(found) == 1 else "s"
        raise Validation(f"{len(found)} validation error{plural} detected: {'; '.join(found)}")


def _missing(shape: Shape, value: Any, at: str) -> Iterator[str]:
    """Name required members that are not there, the way SQS counts: `SendMessageBatchRequestEntry.1.Id`."""
    if shape.kind == "structure":
        for name in shape.required:
            if name not in value:
                yield at + name
        for name, inner in value.items():
            member = shape.members[name]
            if member.shape.kind in {"structure", "list"}:
                yield from _missing(member.shape, inner, f"{at}{name}.")
    elif shape.kind == "list" and shape.element.shape.kind == "structure":
        for number, inner in enumerate(value, 1):
            yield from _missing(shape.element.shape, inner, f"{shape.element.shape.name}.{number}.")


def complaints(shape: Shape, value: Any, at: str) -> Iterator[str]:
    """Say every constraint that a converted value breaks, in the model's order."""
    if shape.kind == "structure":
        for name, member in shape.members.items():
            here = f"{at}.{_lower(name)}" if at else _lower(name)
            if name in value:
                yield from complaints(member.shape, value[name], here)
            elif name in shape.required:
                yield f"Value null at '{here}' failed to satisfy constraint: Member must not be null"
        return
    for broken in _broken(shape, value):
        shown = "" if shape.sensitive else f" '{render(shape, value)}'"
        yield f"Value{shown} at '{at}' failed to satisfy constraint: {broken}"
    if shape.kind == "list" and shape.element.shape.kind in {"structure", "list", "map"}:
        for number, inner in enumerate(value, 1):
            yield from complaints(shape.element.shape, inner, f"{at}.{number}.member")
    elif shape.kind == "map" and shape.pair[1].shape.kind in {"structure", "list", "map"}:
        for key, inner in value.items():
            yield from complaints(shape.pair[1].shape, inner, f"{at}.{key}.member")


def _broken(shape: Shape, value: Any) -> Iterator[str]:
    """Say which constraints of its own shape a value breaks, without its place."""
    if shape.kind == "string":
        if shape.enum and value not in shape.enum:
            yield f"Member must satisfy enum value set: [{', '.join(_in_their_order(shape))}]"
        if shape.pattern and len(value) <= PATTERN_LENGTH and not shape.matches(value):
            yield f"Member must satisfy regular expression pattern: {shape.pattern}"
        yield from _bounds(shape, len(value), "length")
    elif shape.kind in {"integer", "long", "float", "double"}:
        yield from _bounds(shape, value, "value")
    elif shape.kind in {"list", "map", "blob"}:
        yield from _bounds(shape, len(value), "length")
        if shape.kind == "list":
            yield from _each(shape.element, value, "Member must satisfy constraint: ")
        elif shape.kind == "map":
            yield from _each(shape.pair[0], value, "Map keys must satisfy constraint: ")
            yield from _each(shape.pair[1], value.values(), "Map value must satisfy constraint: ")


def _each(member: Member, values: Any, prefix: str) -> Iterator[str]:
    """Scalars inside a list or map are complained about once, with all constraints of their shape."""
    shape = member.shape
    if shape.kind in {"structure", "list", "map"}:
        return
    for value in values:
        if any(_broken(shape, value)):
            yield f"{prefix}[{', '.join(_constraints(shape))}]"
            return


def _constraints(shape: Shape) -> Iterator[str]:
    measure = "value" if shape.kind in {"integer", "long", "float", "double"} else "length"
    if shape.maximum is not None:
        yield f"Member must have {measure} less than or equal to {shape.maximum}"
    if shape.minimum is not None:
        yield f"Member must have {measure} greater than or equal to {shape.minimum}"
    if shape.pattern:
        yield f"Member must satisfy regular expression pattern: {shape.pattern}"
    if shape.enum:
        yield f"Member must satisfy enum value set: [{', '.join(_in_their_order(shape))}]"


_ENUM_ORDERS = {
    "ExecutionStatus": ("SUCCEEDED", "TIMED_OUT", "PENDING_REDRIVE", "ABORTED", "FAILED", "RUNNING"),
}
"""Where AWS lists an enum otherwise than its model does (recorded: sfn_api/test_state_machine_status_filter)."""


def _in_their_order(shape: Shape) -> tuple[str, ...]:
    order = _ENUM_ORDERS.get(shape.name, ())
    return order if set(order) == set(shape.enum) else shape.enum


def _bounds(shape: Shape, size: float, measure: str) -> Iterator[str]:
    if shape.maximum is not None and size > shape.maximum:
        yield f"Member must have {measure} less than or equal to {shape.maximum}"
    if shape.minimum is not None and size < shape.minimum:
        yield f"Member must have {measure} greater than or equal to {shape.minimum}"


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def render(shape: Shape, value: Any) -> str:
    """Show a value as AWS's framework prints it: `[a, b]`, `{k=v}`, `Item(weight=50, arn=null)`."""
    if value is None:
        return "null"
    if shape.kind == "structure":
        inside = (
            f"{_lower(name)}={'***Sensitive Data Redacted***' if m.shape.sensitive else render(m.shape, value.get(name))}"
            for name, m in shape.members.items()
        )
        return f"{shape.name}({', '.join(inside)})"
    if shape.kind == "list":
        return f"[{', '.join(render(shape.element.shape, inner) for inner in value)}]"
    if shape.kind == "map":
        of = shape.pair[1].shape
        return f"{{{', '.join(f'{key}={render(of, inner)}' for key, inner in value.items())}}}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def convert(shape: Shape, raw: Any, timestamp: str | None = None) -> Any:
    """Turn a decoded JSON value into what rooms get, or raise `Serialization` for the first wrong type."""
    if shape.document:
        return raw
    if shape.kind == "structure":
        if not isinstance(raw, dict):
            raise _unexpected(raw, shape)
        by_wire = {member.wire: member for member in shape.members.values()}
        return {
            by_wire[wire].name: convert(by_wire[wire].shape, inner, by_wire[wire].timestamp)
            for wire, inner in raw.items()
            if inner is not None and wire in by_wire
        }
    if shape.kind == "list":
        if not isinstance(raw, list):
            raise _unexpected(raw, shape)
        if None in raw:
            raise Serialization("Null is not expected inside of a list")
        return [convert(shape.element.shape, inner, shape.element.timestamp) for inner in raw]
    if shape.kind == "map":
        if not isinstance(raw, dict):
            raise _unexpected(raw, shape)
        of = shape.pair[1]
        return {key: convert(of.shape, inner, of.timestamp) for key, inner in raw.items() if inner is not None}
    return _scalar(shape, raw, timestamp)


def _scalar(shape: Shape, raw: Any, timestamp: str | None) -> Any:
    if isinstance(raw, dict | list):
        raise _unexpected(raw, shape)
    if shape.kind in {"string", "character"} and isinstance(raw, str):
        return raw
    if shape.kind == "boolean" and isinstance(raw, bool):
        return raw
    if shape.kind in INTEGERS and is_integer(raw) and -INTEGERS[shape.kind] <= raw < INTEGERS[shape.kind]:
        return int(raw)
    if shape.kind in {"float", "double", "bigdecimal"} and isinstance(raw, int | float) and not isinstance(raw, bool):
        return raw
    if shape.kind == "blob" and isinstance(raw, str):
        return from_base64(raw)
    if shape.kind == "timestamp" and not isinstance(raw, bool):
        if isinstance(raw, int | float):
            return from_epoch(raw)
        return from_text(shape, raw, timestamp)
    raise _unexpected(raw, shape)


def is_integer(raw: Any) -> bool:
    """Tell whether a JSON number is a whole one; `3.0` is."""
    return (isinstance(raw, int) and not isinstance(raw, bool)) or (isinstance(raw, float) and raw.is_integer())


def from_epoch(seconds: float) -> Instant:
    """Turn epoch seconds into an instant. Raises `Serialization` when no calendar reaches that far."""
    if not EARLIEST_S <= seconds < LATEST_S:
        raise Serialization("NUMBER_VALUE can not be converted to a Timestamp")
    return round(seconds * 1000)


def from_base64(text: str) -> bytes:
    """Decode a blob. Raises `Serialization`."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Serialization("Invalid Base64 in a blob") from None


def from_text(shape: Shape, text: str, timestamp: str | None = None) -> Any:
    """Turn text (query form, URI, query string, header) into what the shape wants. Raises `Serialization`."""
    kind = shape.kind
    try:
        if kind == "string":
            return text
        if kind in INTEGERS:
            number = int(text) if len(text) < 24 else INTEGERS[kind]
            if -INTEGERS[kind] <= number < INTEGERS[kind]:
                return number
        elif kind in {"float", "double"}:
            real = float(text)
            if real - real == 0:
                return real
        elif kind == "boolean" and text.lower() in {"true", "false"}:
            return text.lower() == "true"
        elif kind == "blob":
            return from_base64(text)
        elif kind == "timestamp":
            return _moment(text, timestamp)
    except (ValueError, OverflowError):
        pass
    raise Serialization(f"STRING_VALUE can not be converted to {_ARTICLES.get(kind, 'a ' + kind)}")


def _moment(text: str, timestamp: str | None) -> Instant:
    if timestamp == "unixTimestamp" or text.replace(".", "", 1).isdigit():
        return from_epoch(float(text))
    if timestamp == "rfc822" or text[:1].isalpha():
        moment = parsedate_to_datetime(text)
    else:
        moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return from_epoch(from_datetime(moment) / 1000)


def _unexpected(raw: Any, shape: Shape) -> Serialization:
    """Word a wrong type as AWS's framework does."""
    if isinstance(raw, list):
        return Serialization("Start of list found where not expected")
    if isinstance(raw, dict):
        return Serialization("Start of structure or map found where not expected.")
    if raw is None:
        token = "NULL_VALUE"  # noqa: S105 - the word of a parser, not a secret
    elif isinstance(raw, bool):
        token = "TRUE_VALUE" if raw else "FALSE_VALUE"
    else:
        token = "STRING_VALUE" if isinstance(raw, str) else "NUMBER_VALUE"
    if shape.kind in {"structure", "list", "map"}:
        return Serialization("Unexpected token received from parser")
    return Serialization(f"{token} can not be converted to {_ARTICLES.get(shape.kind, 'a ' + shape.kind)}")
