"""The query protocol: form data in, XML out. SQS's older face, and that of SNS, SES and others.

In: `Action=SendMessageBatch&SendMessageBatchRequestEntry.1.Id=a&...`. The dotted names are first made a tree, then
read by shape: lists count `Name.1` (flattened) or `Name.member.1`, maps `Name.1.Key` or `Name.entry.1.key`.

Out: `<ActionResponse xmlns="..."><ActionResult>...</ActionResult><ResponseMetadata>...`; errors in an
`<ErrorResponse>`. Recorded from AWS: SQS ends "The specified queue does not exist" with " for this wsdl version."
here and only here: an error with a longer text for this protocol has it in `query_message`.
"""

import base64
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from tasuki.protocol.reply import Reply
from tasuki.values.errors import DomainError
from tasuki.values.instant import to_iso
from tasuki.values.service_checks import Serialization, check, from_text
from tasuki.values.service_models import Action, Member, Service, Shape

FIELDS_MAX = 20_000
"""Fields of one form: ten messages with ten attributes each take some five hundred."""
_DEPTH_MAX = 32
_XML = b"text/xml"
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Tree = dict[str, Any]


def parse_form(text: bytes) -> dict[str, str]:
    """Read form data or a query string. Raises `Serialization` when it is none."""
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:
        raise Serialization("The request body is not form data in UTF-8, or has too many fields") from None
    return dict(pairs)


def plant(fields: dict[str, str]) -> Tree:
    """Make a tree of dotted names; a node's own text is under the empty name."""
    root: Tree = {}
    for name, text in fields.items():
        parts = name.split(".")
        if len(parts) > _DEPTH_MAX:
            raise Serialization(f"The parameter name {name[:80]} is nested too deeply")
        node = root
        for part in parts:
            node = node.setdefault(part or " ", {})
        node[""] = text
    return root


def take(shape: Shape, node: Tree, timestamp: str | None = None) -> Any:
    """Read a tree by shape. Raises `Serialization`."""
    if shape.kind == "structure":
        found = {}
        for member in shape.members.values():
            inner = node.get(member.tag)
            if inner is None and member.tag != member.wire:
                inner = node.get(member.wire)
            if inner is not None:
                found[member.name] = _take_member(member, inner)
        return found
    if shape.kind in {"list", "map"}:
        raise Serialization("Lists of lists are not part of the query protocol")
    if "" not in node:
        raise Serialization("Start of structure or map found where not expected.")
    return from_text(shape, node[""], timestamp)


def _take_member(member: Member, node: Tree) -> Any:
    shape = member.shape
    if shape.kind == "list":
        element = shape.element
        if not member.flattened:
            node = node.get(element.renamed or "member", {"": ""} if "" in node else {})
        return [_take_member(element, inner) for inner in _counted(node)]
    if shape.kind == "map":
        key, value = shape.pair
        if not member.flattened:
            node = node.get("entry", {})
        found = {}
        for inner in _counted(node):
            name = inner.get(key.renamed or "key", {}).get("")
            if name is None:
                raise Serialization(f"An entry of {member.wire} has no {key.renamed or 'key'}")
            if (value.renamed or "value") in inner:
                found[name] = _take_member(value, inner[value.renamed or "value"])
        return found
    return take(shape, node, member.timestamp)


def _counted(node: Tree) -> list[Tree]:
    """The children of a list, by number; gaps are closed as AWS does."""
    try:
        return [node[number] for number in sorted((name for name in node if name), key=int)]
    except ValueError:
        raise Serialization("The members of a list are numbered from 1") from None


class QueryActions:
    """Codecs of one service's operations in the query protocol."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def decode(self, action: Action, fields: dict[str, str]) -> dict[str, Any]:
        """Read and check a request's fields. Raises `Serialization`, `Validation` or `MissingParameter`."""
        found: dict[str, Any] = take(action.input, plant(fields))
        check(self._service, action.input, found)
        return found

    def encode(self, action: Action, output: dict[str, Any], request_id: str) -> Reply:
        """Write an answer."""
        name = action.name
        parts = [f'<?xml version="1.0"?><{name}Response xmlns="{self._service.xml_namespace}">']
        if action.output is not None:
            wrapper = action.result_wrapper or f"{name}Result"
            parts += [f"<{wrapper}>", *_members(action.output, output), f"</{wrapper}>"]
        parts.append(f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{name}Response>")
        return Reply(200, _XML, "".join(parts).encode(), request_id)

    def fault(self, error: DomainError, request_id: str) -> Reply:
        """Write an error."""
        return query_fault(self._service, error, request_id)


def _members(shape: Shape, value: dict[str, Any]) -> Iterator[str]:
    for name, inner in value.items():
        member = shape.members.get(name)
        if member is not None and inner is not None:
            yield from _member(member, member.tag, inner)


def _member(member: Member, tag: str, value: Any) -> Iterator[str]:
    shape = member.shape
    if shape.kind == "list":
        if member.flattened:
            for inner in value:
                yield from _member(shape.element, tag, inner)
            return
        yield f"<{tag}>"
        for inner in value:
            yield from _member(shape.element, shape.element.renamed or "member", inner)
        yield f"</{tag}>"
    elif shape.kind == "map":
        key, of = shape.pair
        entry = tag if member.flattened else "entry"
        if not member.flattened:
            yield f"<{tag}>"
        for name, inner in value.items():
            yield f"<{entry}><{key.renamed or 'key'}>{escape(name)}</{key.renamed or 'key'}>"
            yield from _member(of, of.renamed or "value", inner)
            yield f"</{entry}>"
        if not member.flattened:
            yield f"</{tag}>"
    elif shape.kind == "structure":
        yield f"<{tag}>"
        yield from _members(shape, value)
        yield f"</{tag}>"
    else:
        yield f"<{tag}>{_scalar(member, value)}</{tag}>"


def _scalar(member: Member, value: Any) -> str:
    kind = member.shape.kind
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "blob":
        return base64.b64encode(value).decode()
    if kind == "timestamp":
        return str(value / 1000) if member.timestamp == "unixTimestamp" else to_iso(value)
    return escape(str(value))


def escape(text: str) -> str:
    """Write text for XML; what XML can't say (control characters) becomes a question mark."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")
    return text if text.isprintable() else _ILLEGAL.sub("?", text)


def query_fault(service: Service | None, error: DomainError, request_id: str) -> Reply:
    """Write an error; `service` is None when it is not known yet who was meant."""
    code = error.query_code or error.code
    message: str = getattr(error, "query_message", error.message)
    if service is not None:
        shape = service.error(error.code)
        if shape is not None and shape.code and error.query_code is None:
            code = shape.code
    fault = "Sender" if error.sender else "Receiver"
    space = service.xml_namespace if service is not None else "http://webservices.amazon.com/AWSFault/2005-15-09"
    inside = f"<Type>{fault}</Type><Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    body = (
        f'<?xml version="1.0"?><ErrorResponse xmlns="{space}"><Error>{inside}<Detail/></Error>'
        f"<RequestId>{request_id}</RequestId></ErrorResponse>"
    )
    return Reply(error.status, _XML, body.encode(), request_id)


def ec2_fault(error: DomainError, request_id: str) -> Reply:
    """Write an error as EC2 does, whose operations are all refused."""
    inside = f"<Code>{escape(error.query_code or error.code)}</Code><Message>{escape(error.message)}</Message>"
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f"<Response><Errors><Error>{inside}</Error></Errors><RequestID>{request_id}</RequestID></Response>"
    )
    return Reply(error.status, _XML, body.encode(), request_id)
