"""Which operation does a request want, and in which protocol?

::

    X-Amz-Target there           AWS JSON      AmazonSQS.SendMessage
    form body, or Action=        query         Action=SendMessage; the service is the signature's
    neither                      REST          the service is the signature's, method and path name the operation

What the signature is scoped to must be what is asked for. Services that Tasuki does not offer are refused in their
own protocol's shape.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from tasuki.protocol.call import Call
from tasuki.protocol.faults import InvalidSignature, MissingAction, NotOffered, UnknownOperation
from tasuki.protocol.json import JsonActions, json_fault
from tasuki.protocol.model import Models
from tasuki.protocol.query import QueryActions, ec2_fault, parse_form, query_fault
from tasuki.protocol.reply import Reply
from tasuki.protocol.rest import RestActions, rest_fault, rest_xml_fault
from tasuki.values.errors import DomainError
from tasuki.values.operations import Operation, Operations
from tasuki.values.service_checks import Serialization
from tasuki.values.service_models import Action, Service

Fault = Callable[[DomainError, str], Reply]
_FORM = b"application/x-www-form-urlencoded"


class Bound(NamedTuple):
    """A request's operation and how to talk about it."""

    action: Action
    operation: Operation
    decode: Callable[[Call], dict[str, Any]]
    encode: Callable[[Action, dict[str, Any], str], Reply]
    fault: Fault


class Resolver:
    """Finds operations; keeps the codecs of the services that are offered."""

    def __init__(self, table: Mapping[str, Operations]) -> None:
        self._table = table
        self.models = Models(table)
        self._targets: dict[bytes, Bound] = {}
        self._jsons: dict[str, JsonActions] = {}
        self._queries: dict[str, QueryActions] = {}
        self._rests: dict[str, RestActions] = {}

    def bind(self, call: Call) -> Bound:
        """Find what is asked for. Raises `InvalidSignature` (other scope), `UnknownOperation`, `NotOffered`, ..."""
        headers = call.headers
        target = headers.get(b"x-amz-target")
        if target is not None:
            bound = self._targets.get(target) or self._target(target, call)
            _check_scope(bound.action.service, call)
            return bound
        if b"smithy-protocol" in headers or headers.get(b"content-type", b"").startswith(b"application/cbor"):
            raise Serialization("Tasuki doesn't speak CBOR; use the service's JSON or query protocol")
        service = self.models.signed_as(call.service)
        if service is None:
            raise UnknownOperation(f"There is no service that signs as '{call.service[:64]}'")
        fields = _fields(call)
        if fields is not None:
            return self._query(service, fields, call)
        return self._rest(service, call)

    def fault(self, headers: Mapping[bytes, bytes], query: bytes, signing_name: str | None) -> Fault:
        """How to word an error for a request that could not be bound."""
        target = headers.get(b"x-amz-target")
        if target is not None:
            service = self.models.targeted(target.partition(b".")[0].decode("latin-1"))
            return partial(json_fault, service)
        service = self.models.signed_as(signing_name) if signing_name is not None else None
        protocol = service.protocol if service is not None else None
        if protocol == "ec2":
            return ec2_fault
        if protocol == "rest-xml" and service is not None:
            return partial(rest_xml_fault, service)
        if _is_form(headers) or b"Action=" in query or protocol == "query":
            older = self.models.service(service.name, "query") if service is not None else None
            return partial(query_fault, older)
        if protocol in {"json", "smithy-rpc-v2-cbor"}:
            return partial(json_fault, service)
        return partial(rest_fault, service)

    def _target(self, target: bytes, call: Call) -> Bound:
        prefix, _, name = target.decode("latin-1").rpartition(".")
        service = self.models.targeted(prefix)
        if service is None:
            service = self.models.signed_as(call.service)
            if service is None or service.target_prefix != prefix:
                raise UnknownOperation(f"There is no operation {prefix[:64]}.{name[:64]} of '{call.service[:64]}'")
        _check_scope(service, call)
        action, operation = self._find(service, name)
        codec = self._jsons.setdefault(service.name, JsonActions(service))
        bound = Bound(action, operation, lambda call: codec.decode(action, call.body), codec.encode, codec.fault)
        self._targets[target] = bound
        return bound

    def _query(self, service: Service, fields: dict[str, str], call: Call) -> Bound:
        older = self.models.service(service.name, "query")
        if older is None:
            if service.name not in self._table:
                raise NotOffered(f"Tasuki doesn't offer the service '{service.signing_name}'")
            raise UnknownOperation(f"The service '{service.signing_name}' doesn't speak the query protocol")
        name = fields.get("Action")
        if not name:
            raise MissingAction("The request must contain the parameter Action.")
        action, operation = self._find(older, name)
        codec = self._queries.setdefault(older.name, QueryActions(older))
        # SQS: what is sent to a queue's own URL is for that queue.
        if "QueueUrl" in action.input.members and "QueueUrl" not in fields and call.path.count(b"/") > 1:
            fields["QueueUrl"] = call.base_url + call.path.decode("latin-1")
        return Bound(action, operation, lambda _call: codec.decode(action, fields), codec.encode, codec.fault)

    def _rest(self, service: Service, call: Call) -> Bound:
        if service.protocol != "rest-json":
            if service.name not in self._table:
                raise NotOffered(f"Tasuki doesn't offer the service '{service.signing_name}'")
            raise UnknownOperation("The request names no operation: it has neither X-Amz-Target nor Action")
        codec = self._rests.get(service.name)
        if codec is None:
            codec = RestActions(service)
            if service.name in self._table:
                self._rests[service.name] = codec
        action, labels = codec.find(call.method, call.path.decode("latin-1"))
        action, operation = self._find(service, action.name)
        return Bound(
            action,
            operation,
            lambda call: codec.decode(action, labels, call.query, call.headers, call.body),
            codec.encode,
            codec.fault,
        )

    def _find(self, service: Service, name: str) -> tuple[Action, Operation]:
        action = service.action(name)
        if action is None:
            if service.protocol == "query":
                raise UnknownOperation(f"The action {name[:128]} is not valid for this web service.")
            raise UnknownOperation(f"There is no operation {name[:128]} of '{service.signing_name}'")
        offered = self._table.get(service.name)
        if offered is None:
            raise NotOffered(f"Tasuki doesn't offer the service '{service.signing_name}'")
        operation = offered.get(name)
        if operation is None:
            raise NotOffered(f"Tasuki doesn't offer {service.signing_name}:{name}")
        return action, operation


def _check_scope(service: Service, call: Call) -> None:
    if service.signing_name != call.service:
        raise InvalidSignature(f"Credential should be scoped to correct service: '{service.signing_name}'.")


def _is_form(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"content-type", b"").lower().startswith(_FORM)


def _fields(call: Call) -> dict[str, str] | None:
    """The fields of a query request, or None when it is none."""
    if call.method == "POST" and _is_form(call.headers):
        return {**parse_form(call.query), **parse_form(call.body)}
    if call.method == "GET" and b"Action=" in call.query:
        return parse_form(call.query)
    return None
