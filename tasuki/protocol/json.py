"""JSON in, JSON out: readers and writers compiled from shapes, and the AWS JSON 1.0/1.1 protocol.

A reader turns a decoded JSON value into what rooms get (blobs as bytes, timestamps as instants, members by their own
names) and checks the model's constraints on the way; it raises `Amiss` and says no more, since the fast path has
nothing to say. A writer does the reverse; where nothing needs to change there is none, and the value goes to the
encoder as it is.

Errors (recorded from AWS): `{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "..."}`, and for services
that used to speak query `x-amzn-query-error: AWS.SimpleQueueService.NonExistentQueue;Sender`.
"""

import base64
from collections.abc import Callable
from typing import Any, TypeAlias

from tasuki.protocol.reply import Reply
from tasuki.values.documents import dumpb, loads
from tasuki.values.errors import DomainError, MalformedDocument
from tasuki.values.instant import to_iso
from tasuki.values.service_checks import (
    FRAMEWORK_FREE,
    INTEGERS,
    PATTERN_LENGTH,
    Serialization,
    check,
    convert,
    from_base64,
    from_epoch,
    from_text,
    is_integer,
)
from tasuki.values.service_models import Action, Member, Service, Shape

Reader: TypeAlias = Callable[[Any], Any]
Writer: TypeAlias = Callable[[Any], Any]


class Amiss(Exception):
    """Something is wrong with the input; `checks` finds out what."""


class Readers:
    """Compiles and keeps the readers of one service."""

    def __init__(self, service: Service) -> None:
        self._free = service.name in FRAMEWORK_FREE
        self._kept: dict[tuple[str, str | None], Reader] = {}

    def reader(self, shape: Shape, timestamp: str | None = None) -> Reader:
        """The reader of a shape; one that contains itself is reached through its entry here."""
        key = (shape.name, timestamp)
        if key not in self._kept:
            self._kept[key] = lambda value: self._kept[key](value)  # noqa: PLW0108 - looked up when called
            self._kept[key] = self._compile(shape, timestamp)
        return self._kept[key]

    def _compile(self, shape: Shape, timestamp: str | None) -> Reader:
        if shape.document:
            return lambda value: value
        if shape.kind == "structure":
            return self.structure(shape.members.values(), shape.required)
        if shape.kind == "list":
            return self._list(shape)
        if shape.kind == "map":
            return self._map(shape)
        if shape.kind == "string":
            return _text if self._free else _constrained_text(shape)
        if shape.kind in INTEGERS or shape.kind in {"float", "double"}:
            return _number(shape, check=not self._free)
        return _slow_scalar(shape, timestamp, check=not self._free)

    def structure(self, members: Any, required: tuple[str, ...]) -> Reader:
        """A reader of an object with these members; members it doesn't know and nulls are passed over."""
        place = {m.wire: (m.name, self.reader(m.shape, m.timestamp)) for m in members}
        find = place.get

        def read(value: Any) -> Any:
            if value.__class__ is not dict:
                raise Amiss
            out = {}
            for wire, inner in value.items():
                found = find(wire)
                if found is not None and inner is not None:
                    out[found[0]] = found[1](inner)
            for name in required:
                if name not in out:
                    raise Amiss
            return out

        return read

    def _list(self, shape: Shape) -> Reader:
        inside = self.reader(shape.element.shape, shape.element.timestamp)
        least, most = _limits(shape, free=self._free)

        def read(value: Any) -> Any:
            if value.__class__ is not list or not least <= len(value) <= most:
                raise Amiss
            return [inside(inner) for inner in value]

        return read

    def _map(self, shape: Shape) -> Reader:
        key, of = shape.pair
        read_key, inside = self.reader(key.shape), self.reader(of.shape, of.timestamp)
        least, most = _limits(shape, free=self._free)

        def read(value: Any) -> Any:
            if value.__class__ is not dict or not least <= len(value) <= most:
                raise Amiss
            return {read_key(name): inside(inner) for name, inner in value.items() if inner is not None}

        return read


def _limits(shape: Shape, *, free: bool) -> tuple[float, float]:
    if free:
        return 0, float("inf")
    return shape.minimum or 0, float("inf") if shape.maximum is None else shape.maximum


def _text(value: Any) -> Any:
    if value.__class__ is not str:
        raise Amiss
    return value


def _constrained_text(shape: Shape) -> Reader:
    if shape.enum:
        enum = frozenset(shape.enum)

        def read_enum(value: Any) -> Any:
            if value.__class__ is not str or value not in enum:
                raise Amiss
            return value

        return read_enum
    if shape.minimum is None and shape.maximum is None and shape.pattern is None:
        return _text
    least, most = _limits(shape, free=False)
    matches = shape.matches if shape.pattern is not None else None

    def read(value: Any) -> Any:
        if value.__class__ is not str or not least <= len(value) <= most:
            raise Amiss
        if matches is not None and len(value) <= PATTERN_LENGTH and not matches(value):
            raise Amiss
        return value

    return read


def _number(shape: Shape, *, check: bool) -> Reader:
    whole = shape.kind in INTEGERS
    least: float = -INTEGERS[shape.kind] if whole else -float("inf")
    most: float = INTEGERS[shape.kind] - 1 if whole else float("inf")
    if check and shape.minimum is not None:
        least = max(least, shape.minimum)
    if check and shape.maximum is not None:
        most = min(most, shape.maximum)

    def read(value: Any) -> Any:
        if value.__class__ is not int:
            if value.__class__ is not float or (whole and not is_integer(value)):
                raise Amiss
            if whole:
                value = int(value)
        if not least <= value <= most:
            raise Amiss
        return value

    return read


def _slow_scalar(shape: Shape, timestamp: str | None, *, check: bool) -> Reader:
    """Booleans, blobs, timestamps: rare enough to share their rules with the slow twin."""
    if shape.kind == "boolean":

        def read_boolean(value: Any) -> Any:
            if value is True or value is False:
                return value
            raise Amiss

        return read_boolean
    if shape.kind == "blob":
        least, most = _limits(shape, free=not check)

        def read_blob(value: Any) -> Any:
            if value.__class__ is not str:
                raise Amiss
            blob = from_base64(value)
            if not least <= len(blob) <= most:
                raise Amiss
            return blob

        return read_blob

    def read(value: Any) -> Any:
        if shape.kind == "timestamp" and value.__class__ in {int, float}:
            return from_epoch(value)
        if value.__class__ is not str:
            raise Amiss
        return from_text(shape, value, timestamp)

    return read


class Writers:
    """Compiles and keeps the writers of one service. None stands for "as it is"."""

    def __init__(self, default_timestamp: str = "unixTimestamp") -> None:
        self._default_timestamp = default_timestamp
        self._kept: dict[tuple[str, str | None], Writer | None] = {}

    def writer(self, shape: Shape, timestamp: str | None = None) -> Writer | None:
        """The writer of a shape, or None when its values need no change."""
        key = (shape.name, timestamp)
        if key not in self._kept:
            # A shape that contains itself is always walked.
            self._kept[key] = lambda value: self._again(key, value)
            self._kept[key] = self._compile(shape, timestamp)
        return self._kept[key]

    def _again(self, key: tuple[str, str | None], value: Any) -> Any:
        write = self._kept[key]
        return value if write is None else write(value)

    def _compile(self, shape: Shape, timestamp: str | None) -> Writer | None:
        if shape.document:
            return None
        if shape.kind == "structure":
            return self.structure(shape.members.values())
        if shape.kind == "list":
            inside = self.writer(shape.element.shape, shape.element.timestamp)
            return None if inside is None else lambda value: [inside(inner) for inner in value]
        if shape.kind == "map":
            of = self.writer(shape.pair[1].shape, shape.pair[1].timestamp)
            return None if of is None else lambda value: {name: of(inner) for name, inner in value.items()}
        if shape.kind == "blob":
            return lambda value: base64.b64encode(value).decode()
        if shape.kind == "timestamp":
            return _seconds if (timestamp or self._default_timestamp) == "unixTimestamp" else to_iso
        return None

    def structure(self, members: Any, *, always: bool = False) -> Writer | None:
        """A writer of an object with these members, or None when all of them go out as they are."""
        place = {m.name: (m.wire, self.writer(m.shape, m.timestamp)) for m in members}
        if not always and all(wire == name and write is None for name, (wire, write) in place.items()):
            return None
        find = place.get

        def write(value: Any) -> Any:
            out = {}
            for name, inner in value.items():
                found = find(name)
                if found is not None and inner is not None:
                    wire, write_inner = found
                    out[wire] = inner if write_inner is None else write_inner(inner)
            return out

        return write


def _seconds(instant: int) -> float:
    return instant / 1000


def parse_body(body: bytes) -> Any:
    """Decode a request's body; an empty one is an empty object. Raises `Serialization`."""
    if not body:
        return {}
    try:
        return loads(body)
    except MalformedDocument as bad:
        raise Serialization(f"The request body is not a JSON document: {bad}") from None


class JsonActions:
    """Codecs of one service's operations in AWS JSON."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._readers = Readers(service)
        self._writers = Writers()
        self._read: dict[str, Reader] = {}
        self._write: dict[str, Writer] = {}
        self._type = f"application/x-amz-json-{service.json_version}".encode()

    def decode(self, action: Action, body: bytes) -> dict[str, Any]:
        """Read and check a request's body. Raises `Serialization`, `Validation` or `MissingParameter`."""
        read = self._read.get(action.name)
        if read is None:
            read = self._read[action.name] = self._readers.reader(action.input)
        raw = parse_body(body)
        try:
            found: dict[str, Any] = read(raw)
        except Amiss:
            found = convert(action.input, raw)
            check(self._service, action.input, found)
        return found

    def encode(self, action: Action, output: dict[str, Any], request_id: str) -> Reply:
        """Write an answer."""
        if action.output is None:
            return Reply(200, self._type, b"", request_id)
        write = self._write.get(action.name)
        if write is None:
            write = self._writers.structure(action.output.members.values(), always=True)
            assert write is not None
            self._write[action.name] = write
        return Reply(200, self._type, dumpb(write(output)), request_id)

    def fault(self, error: DomainError, request_id: str) -> Reply:
        """Write an error."""
        return json_fault(self._service, error, request_id)


def error_fields(service: Service | None, error: DomainError) -> dict[str, Any]:
    """The members of an error's body: the message, and what its shape has beside it."""
    body: dict[str, Any] = {"message": error.message}
    shape = service.error(error.code) if service is not None else None
    if shape is not None and error.fields:
        known: list[Member] = [shape.members[name] for name in error.fields if name in shape.members]
        write = Writers().structure([member for member in known if member.location is None], always=True)
        assert write is not None
        body.update(write(error.fields))
    return body


def json_fault(service: Service | None, error: DomainError, request_id: str) -> Reply:
    """Write an error in AWS JSON; `service` is None when it is not known yet who was meant."""
    if service is None:
        kind, version = f"com.amazon.coral.service#{error.code}", "1.0"
    else:
        version = service.json_version
        if service.error(error.code) is None:
            kind = f"com.amazon.coral.service#{error.code}"
        else:
            kind = f"com.amazonaws.{service.signing_name}#{error.code}" if service.query_compatible else error.code
    body = dumpb({"__type": kind, **error_fields(service, error)})
    extra: tuple[tuple[bytes, bytes], ...] = ()
    if service is not None and service.query_compatible:
        fault = "Sender" if error.sender else "Receiver"
        extra = ((b"x-amzn-query-error", f"{error.query_code or error.code};{fault}".encode()),)
    return Reply(error.status, f"application/x-amz-json-{version}".encode(), body, request_id, extra)
