"""The REST-JSON protocol: method and path name the operation; input comes from path, query string, headers and body.

Templates look like `/v1/pipes/{Name}` or `/2015-03-31/functions/{FunctionName}/invocations`; `{Key+}` takes slashes.
Errors carry their name in `x-amzn-ErrorType`.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from tasuki.protocol.faults import NotFound
from tasuki.protocol.json import Amiss, Reader, Readers, Writers, error_fields, parse_body
from tasuki.protocol.query import FIELDS_MAX, escape
from tasuki.protocol.reply import Reply
from tasuki.values.documents import dumpb
from tasuki.values.errors import DomainError
from tasuki.values.instant import to_datetime, to_iso
from tasuki.values.service_checks import Serialization, check, convert, from_text
from tasuki.values.service_models import Action, Member, Service, Shape

_JSON = b"application/json"
_BYTES = b"application/octet-stream"
_LABEL = re.compile(r"\{([^}+]+)(\+?)\}")


class Route(NamedTuple):
    """Where an operation lives."""

    pattern: re.Pattern[str]
    labels: tuple[str, ...]
    action: Action
    weight: tuple[int, int]
    """More literal text wins, then fewer labels."""


class _Parts(NamedTuple):
    """How an input or output shape is spread over a message."""

    uri: dict[str, Member]
    query: list[Member]
    header: list[Member]
    headers: list[Member]
    status: Member | None
    payload: Member | None
    body: list[Member]


def _spread(shape: Shape) -> _Parts:
    members = shape.members.values()
    payload = shape.members[shape.payload] if shape.payload else None
    return _Parts(
        uri={m.wire: m for m in members if m.location == "uri"},
        query=[m for m in members if m.location == "querystring"],
        header=[m for m in members if m.location == "header"],
        headers=[m for m in members if m.location == "headers"],
        status=next((m for m in members if m.location == "statusCode"), None),
        payload=payload,
        body=[m for m in members if m.location is None and m is not payload],
    )


class RestActions:
    """Codecs and routes of one service in REST-JSON."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._readers = Readers(service)
        self._writers = Writers()
        self._bodies: dict[str, Reader] = {}
        self._routes: dict[str, list[Route]] = {}
        for name in service.names():
            action = service.action(name)
            assert action is not None
            self._routes.setdefault(action.method, []).append(_route(action))
        for routes in self._routes.values():
            routes.sort(key=lambda route: route.weight, reverse=True)

    def find(self, method: str, path: str) -> tuple[Action, dict[str, str]]:
        """The operation at a method and a raw path, and the labels' text. Raises `NotFound`."""
        for route in self._routes.get(method, ()):
            found = route.pattern.fullmatch(path)
            if found is not None:
                return route.action, {
                    label: unquote(text) for label, text in zip(route.labels, found.groups(), strict=True)
                }
        raise NotFound(f"{self._service.name} has no operation at {method} {path[:200]}")

    def decode(
        self, action: Action, labels: dict[str, str], query: bytes, headers: Mapping[bytes, bytes], body: bytes
    ) -> dict[str, Any]:
        """Read and check a request. Raises `Serialization` or `Validation`."""
        parts = _spread(action.input)
        found = self._body(action, parts, body)
        for wire, member in parts.uri.items():
            found[member.name] = from_text(member.shape, labels[wire], member.timestamp)
        if parts.query:
            found.update(_from_query(parts.query, query))
        for member in parts.header:
            text = headers.get(member.wire.lower().encode())
            if text is not None:
                found[member.name] = from_text(member.shape, text.decode("latin-1"), member.timestamp or "rfc822")
        for member in parts.headers:
            prefix = member.wire.lower()
            names = (name.decode("latin-1") for name in headers)
            found[member.name] = {
                name[len(prefix) :]: headers[name.encode("latin-1")].decode("latin-1")
                for name in names
                if name.startswith(prefix)
            }
        check(self._service, action.input, found)
        return found

    def _body(self, action: Action, parts: _Parts, body: bytes) -> dict[str, Any]:
        if parts.payload is not None:
            shape = parts.payload.shape
            if shape.kind == "blob":
                return {parts.payload.name: body} if body else {}
            if shape.kind == "string":
                try:
                    return {parts.payload.name: body.decode()} if body else {}
                except UnicodeDecodeError:
                    raise Serialization("The request body is not UTF-8") from None
            return {parts.payload.name: convert(shape, parse_body(body))} if body else {}
        if not parts.body:
            return {}
        read = self._bodies.get(action.name)
        if read is None:
            read = self._bodies[action.name] = self._readers.structure(parts.body, ())
        raw = parse_body(body)
        try:
            found: dict[str, Any] = read(raw)
        except Amiss:
            found = convert(action.input, raw)
            inside = {member.name for member in parts.body}
            found = {name: value for name, value in found.items() if name in inside}
        return found

    def encode(self, action: Action, output: dict[str, Any], request_id: str) -> Reply:
        """Write an answer."""
        if action.output is None:
            return Reply(action.status, _JSON, b"", request_id)
        parts = _spread(action.output)
        extra = tuple(
            (member.wire.lower().encode(), _header_text(member, output[member.name]).encode())
            for member in parts.header
            if output.get(member.name) is not None
        )
        extra += tuple(
            (f"{member.wire}{name}".lower().encode(), str(value).encode())
            for member in parts.headers
            for name, value in (output.get(member.name) or {}).items()
        )
        status = output.get(parts.status.name, action.status) if parts.status else action.status
        if parts.payload is not None:
            value = output.get(parts.payload.name)
            if parts.payload.shape.kind == "blob":
                return Reply(status, _BYTES, value or b"", request_id, extra)
            if parts.payload.shape.kind == "string":
                return Reply(status, b"text/plain", (value or "").encode(), request_id, extra)
            write = self._writers.writer(parts.payload.shape)
            body = dumpb({} if value is None else value if write is None else write(value))
            return Reply(status, _JSON, body, request_id, extra)
        write = self._writers.structure(parts.body, always=True)
        assert write is not None
        return Reply(status, _JSON, dumpb(write(output)), request_id, extra)

    def fault(self, error: DomainError, request_id: str) -> Reply:
        """Write an error."""
        return rest_fault(self._service, error, request_id)


def _route(action: Action) -> Route:
    path = action.uri.split("?", 1)[0]
    pattern, labels, literal, end = "", [], 0, 0
    for label in _LABEL.finditer(path):
        before = path[end : label.start()]
        pattern += re.escape(before) + (r"(.+)" if label[2] else r"([^/]+)")
        literal += len(before)
        labels.append(label[1])
        end = label.end()
    pattern += re.escape(path[end:].rstrip("/")) + "/?"
    literal += len(path) - end
    return Route(re.compile(pattern), tuple(labels), action, (literal, -len(labels)))


def _from_query(members: list[Member], query: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:
        raise Serialization("The query string is not UTF-8, or has too many fields") from None
    named = {member.wire for member in members if member.shape.kind != "map"}
    found: dict[str, Any] = {}
    for member in members:
        shape = member.shape
        if shape.kind == "map":
            rest: dict[str, Any] = {}
            for name, text in pairs:
                if name in named:
                    continue
                if shape.pair[1].shape.kind == "list":
                    rest.setdefault(name, []).append(text)
                else:
                    rest[name] = text
            found[member.name] = rest
            continue
        texts = [text for name, text in pairs if name == member.wire]
        if not texts:
            continue
        if shape.kind == "list":
            found[member.name] = [from_text(shape.element.shape, text, shape.element.timestamp) for text in texts]
        else:
            found[member.name] = from_text(shape, texts[-1], member.timestamp)
    return found


def _header_text(member: Member, value: Any) -> str:
    if member.shape.kind == "boolean":
        return "true" if value else "false"
    if member.shape.kind == "timestamp":
        if member.timestamp == "iso8601":
            return to_iso(value)
        return f"{to_datetime(value):%a, %d %b %Y %H:%M:%S} GMT"
    return str(value)


def rest_fault(service: Service | None, error: DomainError, request_id: str) -> Reply:
    """Write an error; `service` is None when it is not known yet who was meant."""
    extra = [(b"x-amzn-errortype", error.code.encode())]
    shape = service.error(error.code) if service is not None else None
    if shape is not None:
        extra += [
            (member.wire.lower().encode(), str(error.fields[member.name]).encode())
            for member in shape.members.values()
            if member.location == "header" and member.name in error.fields
        ]
    return Reply(error.status, _JSON, dumpb(error_fields(service, error)), request_id, tuple(extra))


def rest_xml_fault(service: Service, error: DomainError, request_id: str) -> Reply:
    """Write an error of a REST-XML service, whose operations are all refused; S3 has no envelope."""
    code, message = escape(error.query_code or error.code), escape(error.message)
    if service.name == "s3":
        body = f"<Error><Code>{code}</Code><Message>{message}</Message><RequestId>{request_id}</RequestId></Error>"
    else:
        body = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
            f"<RequestId>{request_id}</RequestId></ErrorResponse>"
        )
    xml = f'<?xml version="1.0" encoding="UTF-8"?>{body}'
    return Reply(error.status, b"application/xml", xml.encode(), request_id)
