"""The front door: a bare ASGI application.

::

    headers ──> gate ──> signature's claims ──> body ──> signature ──> operation ──> input ──> unit ──> answer
                (host,   (key known, time,      (bounded  (hash,       (resolve)     (codec)   (dispatch)
                origin)  in headers only)       in size    HMAC)
                                                and time)

Nothing of a request is believed before its signature is checked, and nothing but its headers is read before its
access key is known. Every answer carries a request id; what goes wrong inside is logged under it and answered with
`InternalFailure`. No secret, signature or body is ever logged.

`runtime/node.py` builds it: `application(Door(...))`, served through `wire.settings`.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tasuki.protocol.body import Body, Deadline
from tasuki.protocol.call import Call
from tasuki.protocol.dispatch import Bell, Client, ClientGone, Dispatch
from tasuki.protocol.faults import (
    InternalFailure,
    MissingToken,
    Unavailable,
    UnknownKey,
)
from tasuki.protocol.gate import Gate, merge
from tasuki.protocol.reply import Reply
from tasuki.protocol.resolve import Fault, Resolver
from tasuki.protocol.rest import rest_fault
from tasuki.protocol.signature import Credential, Verifier
from tasuki.store.store import Store
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.errors import DomainError, OutcomeUnknown, StoreError, StoreFull
from tasuki.values.instant import Clock
from tasuki.values.operations import Operations, Principal, Request

Found: TypeAlias = "tuple[str, Principal] | None"
CredentialLookup: TypeAlias = Callable[[str], "Found | Awaitable[Found]"]
"""Access key id to (secret, principal)."""
Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger("tasuki.door")
_HEALTH = b"/_tasuki/health"
_UNSIGNED = "Request is missing Authentication Token"
_IN_QUERY = (
    "Request is missing Authentication Token: signatures in the query string are not accepted here, sign in the "
    "Authorization header"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the door."""

    body_bytes: int = 3 * 1024 * 1024 + 256 * 1024
    """A message of 1 MiB may treble in a form's percent signs or in JSON's escapes; this admits every valid request."""
    header_bytes: int = 32 * 1024
    body_timeout_s: float = 20
    header_timeout_s: float = 10
    keep_alive_s: float = 75
    """Idle connections; longer than the pools of SDKs keep them, so that the client closes first."""
    connections: int = 4_096
    in_flight: int = 1_024
    """Requests whose units run or wait for the disk."""
    long_polls: int = 4_096


@dataclass(frozen=True, slots=True)
class Door:
    """All that the front door depends on. `config.port` is the port that is really bound."""

    config: Config
    operations: Mapping[str, Operations]
    """By botocore's service names."""
    store: Store
    bell: Bell
    clock: Clock
    """House time: what long polls wait by."""
    real_clock: Clock
    """Never moved: what signatures are held against."""
    chance: Chance
    credential: CredentialLookup
    limits: Limits = field(default_factory=Limits)


def application(door: Door) -> Application:
    """Build the ASGI application."""
    return _Application(door)


class _Application:
    """One node's door. Serves requests side by side on the loop thread."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._limits = door.limits
        self._gate = Gate(door.config)
        self._verifier = Verifier()
        self._deadline = Deadline(door.limits.body_timeout_s)
        # Request ids are shaped like UUIDs and unique; nobody needs them to be unguessable.
        self._prefix, self._count = door.chance.uuid()[:24], 0
        self._resolver = Resolver(door.operations)
        self._dispatch = Dispatch(
            door.store,
            door.bell,
            door.clock,
            real_clock=door.real_clock,
            manual_clock=door.config.clock == "manual",
            in_flight=door.config.quotas.get("requests_in_flight", door.limits.in_flight),
            long_polls=door.config.quotas.get("long_polls", door.limits.long_polls),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        assert scope["type"] == "http", scope["type"]
        self._count += 1
        request_id = f"{self._prefix}{self._count:012x}"
        body = Body(receive, self._limits.body_bytes, self._deadline)
        try:
            reply = await self._reply(scope, body, request_id)
        except ClientGone:
            return
        # Nobody wants to read the rest of what was refused: end the connection.
        close = not body.finished and _has_body(scope["headers"])
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers(close=close)})
        await send({"type": "http.response.body", "body": reply.body})

    async def _reply(self, scope: Scope, body: Body, request_id: str) -> Reply:
        """Answer a request, whatever happens."""
        fault: Fault | None = None
        credential: Credential | None = None
        headers: dict[bytes, bytes] = {}
        began = self._door.real_clock.now() if _log.isEnabledFor(logging.DEBUG) else 0
        what = "-"
        try:
            headers = merge(scope["headers"])
            base_url = self._gate.admit(headers)
            if scope["raw_path"] == _HEALTH and scope["method"] in {"GET", "HEAD"}:
                return Reply(200, b"application/json", b'{"status":"ok"}', request_id)
            credential = self._claims(scope, headers)
            stamp = self._verifier.check_time(credential, headers, self._door.real_clock.now())
            secret, principal = await self._known(credential.access_key)
            call = Call(
                method=scope["method"],
                path=scope["raw_path"],
                query=scope["query_string"],
                headers=headers,
                body=await body.read(headers),
                service=credential.service,
                base_url=base_url,
            )
            self._verifier.check(credential, secret, stamp, call)
            bound = self._resolver.bind(call)
            fault, what = bound.fault, bound.action.permission
            request = Request(
                service=bound.action.service.name,
                operation=bound.action.name,
                input=bound.decode(call),
                request_id=request_id,
                principal=principal,
                account=self._door.config.account,
                region=credential.region,
                base_url=base_url,
                trace=_trace(headers),
            )
            output = await self._dispatch.run(bound.action, bound.operation, request, Client(body.receive))
            reply = bound.encode(bound.action, output, request_id)
        except ClientGone:
            raise
        except Exception as bad:  # noqa: BLE001 - the door answers everything
            error = _as_domain_error(bad, request_id, what)
            if fault is None:
                fault = self._fault(headers, scope, credential)
            reply = fault(error, request_id)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "request request_id=%s action=%s status=%d bytes=%d ms=%d",
                request_id,
                what,
                reply.status,
                len(reply.body),
                self._door.real_clock.now() - began,
            )
        return reply

    def _claims(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Credential:
        """Read who signed, from the headers only. Raises `MissingToken` or `IncompleteSignature`."""
        query: bytes = scope["query_string"]
        if query and b"x-amz-signature" in query.lower():
            raise MissingToken(_IN_QUERY)
        authorization = headers.get(b"authorization")
        if authorization is None:
            raise MissingToken(_UNSIGNED)
        return self._verifier.claims(authorization)

    async def _known(self, access_key: str) -> tuple[str, Principal]:
        found = self._door.credential(access_key)
        if found is not None and not isinstance(found, tuple):
            found = await found
        if found is None:
            raise UnknownKey("The security token included in the request is invalid.")
        return found

    def _fault(self, headers: Mapping[bytes, bytes], scope: Scope, credential: Credential | None) -> Fault:
        try:
            signing_name = credential.service if credential is not None else None
            return self._resolver.fault(headers, scope["query_string"], signing_name)
        except Exception:  # noqa: BLE001 - a broken model must not hide the error itself
            _log.exception("an error could not be worded in its service's protocol")
            return lambda error, request_id: rest_fault(None, error, request_id)


def _has_body(pairs: list[tuple[bytes, bytes]]) -> bool:
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in pairs)


def _as_domain_error(bad: Exception, request_id: str, what: str) -> DomainError:
    """Turn anything into an error that can be answered; what is our own fault goes to the log."""
    if isinstance(bad, DomainError):
        return bad
    if isinstance(bad, StoreFull):
        _log.error("disk full request_id=%s action=%s", request_id, what)
        return Unavailable("The disk is full. Nothing was stored; free some space and send the request again.")
    if isinstance(bad, OutcomeUnknown):
        _log.error("outcome unknown request_id=%s action=%s", request_id, what)
        return InternalFailure(str(bad))
    if isinstance(bad, StoreError):
        _log.error("store failed request_id=%s action=%s error=%s", request_id, what, bad)
        return Unavailable("The store could not take the request. Nothing was stored; send it again.")
    _log.error("internal failure request_id=%s action=%s", request_id, what, exc_info=bad)
    return InternalFailure(f"The request failed on our side; the log has it under {request_id}.")


def _trace(headers: Mapping[bytes, bytes]) -> str | None:
    trace = headers.get(b"x-amzn-trace-id")
    return trace.decode("latin-1") if trace is not None else None


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
