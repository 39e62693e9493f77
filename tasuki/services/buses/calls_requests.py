"""What an HTTP call says, and what its answer means. Pure.

Sources: the user guide, "API destinations" (headers that are sent, status codes that are tried again, Retry-After),
HttpParameters in the API reference (where the connection and the target both have a key, the connection's value counts), RFC 6749 section 4.4
(client credentials), and dead letters that were seen in public repositories (their ERROR_MESSAGE).

==================  ==================================================================  ================
error               when                                                                trying again
==================  ==================================================================  ================
THROTTLING          429                                                                 helps
ERROR_FROM_TARGET   401, 407, 409, 5xx                                                  helps
TIMEOUT             no answer in time                                                   helps
CONNECTION_FAILURE  no connection, no name, a certificate that is not trusted           helps
SDK_CLIENT_ERROR    any other status; an address that may not be called; Retry-After    does not help
                    below zero
NO_RESOURCE         the destination was deleted                                         does not help
NO_PERMISSIONS      its connection is not authorized; no token for it                   does not help
==================  ==================================================================  ================
"""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlencode

from tasuki.services.buses.calls import Call
from tasuki.services.buses.connections import Connection, pairs, secrets_of
from tasuki.services.buses.destinations_rules import PLACEHOLDER
from tasuki.services.switchboard import Ending
from tasuki.values.documents import dumps, loads
from tasuki.values.errors import MalformedDocument
from tasuki.values.instant import DAY, SECOND, Instant, from_datetime

THROTTLING, FROM_TARGET, TIMEOUT = "THROTTLING", "ERROR_FROM_TARGET", "TIMEOUT"
UNREACHED, CLIENT, GONE, NO_PERMISSIONS = "CONNECTION_FAILURE", "SDK_CLIENT_ERROR", "NO_RESOURCE", "NO_PERMISSIONS"
TRIED_AGAIN = frozenset({THROTTLING, FROM_TARGET, TIMEOUT, UNREACHED})
"""The errors after which another try may help."""
LONGEST_CAUSE = 1_000
_SENT = {
    "User-Agent": "Amazon/EventBridge/ApiDestinations",
    "Range": "bytes=0-1048575",
    "Accept-Encoding": "gzip, deflate",
}
_CREDENTIALS = re.compile(r"\b(Basic|Bearer) [A-Za-z0-9._~+/=-]+")
_BODILESS = frozenset({"GET", "HEAD"})
_SIGNED_IN_AGAIN = frozenset({401, 407})


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One HTTP request."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)


# -- what is said -------------------------------------------------------------------------------------------


def outgoing(call: Call, token: str | None) -> Outgoing:
    """Write the request of a call that has its destination and its connection. `token` is OAuth's."""
    destination, connection = call.destination, call.connection
    assert destination is not None
    assert connection is not None
    extras = connection.extras
    queries = {**_texts(call.parameters.get("QueryStringParameters")), **pairs(extras, "QueryStringParameters")}
    headers = Headers({"Content-Type": "application/json; charset=utf-8", "Idempotency-Key": call.key})
    headers.lay(_texts(call.parameters.get("HeaderParameters")))
    headers.lay(pairs(extras, "HeaderParameters"))
    headers.lay(_signature(connection, token))
    headers.lay(_SENT)
    body = None if destination.method in _BODILESS else _with_fields(call.payload, pairs(extras, "BodyParameters"))
    if body is None:
        headers.drop("Content-Type")
    path = _filled(destination.endpoint, call.parameters.get("PathParameterValues") or ())
    return Outgoing(destination.method, _asking(path, queries), headers.all, body)


class Headers:
    """Headers by name, whatever its case; who comes last counts."""

    def __init__(self, first: Mapping[str, str]) -> None:
        self.all = dict(first)

    def lay(self, more: Mapping[str, str]) -> None:
        """Lay others over them."""
        for name, value in more.items():
            self.drop(name)
            self.all[name] = value

    def drop(self, name: str) -> None:
        """Take one away, if it is there."""
        for one in [one for one in self.all if one.lower() == name.lower()]:
            del self.all[one]


def _signature(connection: Connection, token: str | None) -> dict[str, str]:
    given = connection.parameters
    if connection.kind == "BASIC":
        return {"Authorization": _basic(given["BasicAuthParameters"], "Username", "Password")}
    if connection.kind == "API_KEY":
        key = given["ApiKeyAuthParameters"]
        return {key["ApiKeyName"]: key["ApiKeyValue"]}
    return {"Authorization": f"Bearer {token}"}


def _basic(given: Mapping[str, str], user: str, word: str) -> str:
    return "Basic " + base64.b64encode(f"{given[user]}:{given[word]}".encode()).decode()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def _texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: _text(value) for name, value in (values or {}).items()}


def _filled(endpoint: str, values: Iterable[Any]) -> str:
    """Put values in the places of an endpoint, each as one part of the path."""
    for value in values:
        endpoint = endpoint.replace(PLACEHOLDER, quote(_text(value), safe="").replace("*", "%2A"), 1)
    return endpoint


def _asking(url: str, more: Mapping[str, str]) -> str:
    """Add to the query of a URL; a key that is there already gets the new value."""
    if not more:
        return url
    path, _, query = url.partition("?")
    kept = [(key, value) for key, value in parse_qsl(query, keep_blank_values=True) if key not in more]
    return f"{path}?{urlencode([*kept, *more.items()], quote_via=quote)}"


def _with_fields(payload: str, fields: Mapping[str, str]) -> bytes:
    """Add the connection's fields to a payload that is an object."""
    if fields:
        try:
            value = loads(payload)
        except MalformedDocument:
            value = None
        if isinstance(value, dict):
            return dumps({**value, **fields}).encode()
    return payload.encode("utf-8", "replace")


def token_request(connection: Connection) -> Outgoing:
    """Write the request for a token: client credentials in the form that every server must take, HTTP Basic (RFC 6749 section 2.3.1).

    OAuthHttpParameters are added. Where they bring a `client_id` of their own in the body, they alone say who we are.
    """
    given = connection.parameters["OAuthParameters"]
    extras = given.get("OAuthHttpParameters") or {}
    fields = {"grant_type": "client_credentials", **pairs(extras, "BodyParameters")}
    queries = pairs(extras, "QueryStringParameters")
    headers = Headers({"Accept": "application/json"})
    if "client_id" not in fields and "client_id" not in queries:
        client = {name: quote(given["ClientParameters"][name], safe="") for name in ("ClientID", "ClientSecret")}
        headers.lay({"Authorization": _basic(client, "ClientID", "ClientSecret")})
    headers.lay({"Content-Type": "application/x-www-form-urlencoded"})
    headers.lay(pairs(extras, "HeaderParameters"))
    headers.lay({"User-Agent": _SENT["User-Agent"], "Accept-Encoding": _SENT["Accept-Encoding"]})
    method = given["HttpMethod"]
    body: bytes | None = None
    if method in _BODILESS:
        headers.drop("Content-Type")
        queries = {**fields, **queries}
    elif "json" in next(value for name, value in headers.all.items() if name.lower() == "content-type"):
        body = dumps(fields).encode()
    else:
        body = urlencode(fields, quote_via=quote).encode()
    return Outgoing(method, _asking(given["AuthorizationEndpoint"], queries), headers.all, body)


# -- what is heard ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Token:
    """An access token; `lives_s` is how long from when it was given, None if that was not said."""

    text: str = field(repr=False)
    lives_s: float | None


def read_token(body: bytes) -> Token | None:
    """Read the answer to a request for a token; None if there is none in it."""
    try:
        answer = loads(body)
    except MalformedDocument:
        return None
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
        return None
    lives = answer.get("expires_in")
    try:
        return Token(token, max(float(lives), 0.0) if lives is not None else None)
    except (TypeError, ValueError, OverflowError):
        return Token(token, None)


def signs_in_again(call: Call, status: int) -> bool:
    """Tell whether another token may help (user guide: tokens are refreshed when a 401 or a 407 is returned)."""
    return status in _SIGNED_IN_AGAIN and call.connection is not None and call.connection.kind.startswith("OAUTH")


def answered(
    call: Call, status: int, headers: Mapping[str, str], body: bytes, *, is_cut: bool, real_now: Instant
) -> Ending:
    """Say what an answer means. `output` has Status and Body, and RetryAfterMs where the server said when to come again."""
    text = body.decode("utf-8", "replace")
    output: dict[str, Any] = {"Status": status, "Body": text}
    if is_cut:
        output["Truncated"] = True
    if 200 <= status < 300:
        return Ending(True, output)
    output["Body"] = text = _hushed(text, call.connection)
    after = retry_after(headers.get("Retry-After"), real_now)
    if after is not None:
        output["RetryAfterMs"] = max(after, 0)
    error = error_of(status) if after is None or after >= 0 else CLIENT
    cause = f"API destination returned HTTP status {status} with payload: {text}"
    return failed(error, cause, output)


def error_of(status: int) -> str:
    """Answer the error of a status that is no success."""
    if status == 429:
        return THROTTLING
    return FROM_TARGET if status in {401, 407, 409} or status >= 500 else CLIENT


def retry_after(value: str | None, real_now: Instant) -> int | None:
    """Read Retry-After, in seconds or as a date: milliseconds from now; at most a day; below zero, do not come again; None if it says nothing."""
    if not value:
        return None
    try:
        return min(round(float(value) * SECOND), DAY)
    except (ValueError, OverflowError):
        pass
    try:
        return min(max(from_datetime(parsedate_to_datetime(value)) - real_now, 0), DAY)
    except (ValueError, TypeError):
        return None


def failed(error: str, cause: str, output: dict[str, Any] | None = None) -> Ending:
    """End a call that did not succeed, in the words in which EventBridge says it."""
    said = f"Unable to invoke ApiDestination endpoint: {cause}"
    return Ending(False, output or {}, error, said[:LONGEST_CAUSE])


def _hushed(text: str, connection: Connection | None) -> str:
    """Take out of a text what nobody is to see: some servers answer with what they were sent."""
    text = _CREDENTIALS.sub(r"\1 ***", text)
    if connection is None:
        return text
    for secret in secrets_of(dict(connection.parameters)):
        if len(secret) > 3:
            for said in (
                secret,
                dumps(secret)[1:-1],
                quote(secret, safe=""),
                quote_plus(secret),
            ):  # as it may come back
                text = text.replace(said, "***")
    return text
