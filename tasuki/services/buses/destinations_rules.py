"""What an endpoint, a header or a value of an HTTP call may be. Pure.

Headers that are HTTP's own affair, or that EventBridge sets (user guide, "Headers in requests to API destinations"), cannot be set.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from tasuki.services.buses.destinations_errors import Invalid, invalid

RESERVED_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "max-forwards",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
    }
)
PLACEHOLDER = "*"
"""Stands in an endpoint's path for a value that each call brings."""
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VISIBLE = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def check_endpoint(field: str, url: str) -> None:
    """Refuse what is no HTTP address of a host. Raises `Invalid`."""
    if not _VISIBLE.fullmatch(url):
        raise invalid(field, "It must be a URL; what is not of its letters, digits and signs is written as %XX.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise invalid(field, "It is not a URL.") from None
    if parts.scheme not in {"https", "http"}:
        raise invalid(field, "It must be a URL that begins with https://.")
    if not parts.hostname or port == 0 or PLACEHOLDER in parts.netloc or "%" in parts.netloc:
        raise invalid(field, "It must name a host.")
    if "@" in parts.netloc:
        raise invalid(field, "A user name or a password has no place in it; a connection has BasicAuthParameters.")
    if parts.fragment or url.endswith("#"):
        raise invalid(field, "It must not have a fragment.")


def check_header(field: str, name: str) -> None:
    """Refuse a header's name that is none, or that cannot be set. Raises `Invalid`."""
    if not _TOKEN.fullmatch(name):
        raise invalid(field, "It is not the name of a header.")
    if name.lower() in RESERVED_HEADERS:
        raise invalid(field, f"The header {name} cannot be set; leave it out.")


def refuse_breaks(field: str, value: Any) -> None:
    """Refuse control characters in a value, or in any inside it: a line break would begin another header. Raises `Invalid`."""
    if isinstance(value, str):
        if _BREAKS.search(value):
            raise invalid(field, "It must not have line breaks or other control characters.")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            refuse_breaks(f"{field}.{name}", inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            refuse_breaks(f"{field}.{number}", inner)


def call_problems(endpoint: str, parameters: Mapping[str, Any]) -> Iterator[Invalid]:
    """Say what is wrong with the parameters of calls to an endpoint."""
    wanted = endpoint.count(PLACEHOLDER)
    values = parameters.get("PathParameterValues") or []
    if len(values) != wanted:
        yield invalid(
            "HttpParameters.PathParameterValues",
            f"The endpoint has {wanted} of {PLACEHOLDER} to fill, and {len(values)} values are given.",
        )
    for number, value in enumerate(values, 1):
        if value in {".", ".."}:  # a client or a server on the way would take it for a step
            yield invalid(f"HttpParameters.PathParameterValues.{number}", f"It must not be {value}.")
    for name, value in (parameters.get("HeaderParameters") or {}).items():
        try:
            check_header(f"HttpParameters.HeaderParameters.{name}", name)
            refuse_breaks(f"HttpParameters.HeaderParameters.{name}", value)
        except Invalid as bad:
            yield bad
