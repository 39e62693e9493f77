"""Who may knock at all: looked at before anything else of a request is believed.

A page in somebody's browser can send requests to a port of this machine. It can't choose the `Host` header (DNS
rebinding shows there), and the browser adds `Origin` or `Sec-Fetch-Site`. No answer ever carries CORS headers, so
a page may not add headers of its own, and without an Authorization header nothing is done.
"""

import re
from collections.abc import Mapping

from tasuki.protocol.faults import MalformedHeaders, Refused
from tasuki.values.config import Config

_SYNC = "sync-"
"""SDKs put this before the host for StartSyncExecution (`endpoint: {hostPrefix: "sync-"}` in the model)."""
_PORT = re.compile(r":\d+$")
_DECIDING = frozenset({b"authorization", b"host", b"x-amz-target", b"x-amz-date", b"content-type", b"origin"})


class Gate:
    """Knows our names and refuses what comes under another."""

    def __init__(self, config: Config) -> None:
        hosts = {"127.0.0.1", "localhost", "[::1]", f"[{config.host}]" if ":" in config.host else config.host}
        ports = (f":{config.port}", "") if config.port == 80 else (f":{config.port}",)
        names = {host + port for host in hosts for port in ports}
        for given in map(str.lower, config.names):
            names |= {given} if _PORT.search(given) else {given, f"{given}:{config.port}"}
        self._base_urls = {f"{prefix}{name}".encode(): f"http://{name}" for name in names for prefix in ("", _SYNC)}
        self._origins = frozenset(f"http://{name}".encode() for name in names)

    def admit(self, headers: Mapping[bytes, bytes]) -> str:
        """Answer the URL under which the client reached us. Raises `Refused` for foreign names and origins."""
        host = headers.get(b"host", b"")
        base_url = self._base_urls.get(host)
        if base_url is None:
            base_url = self._base_urls.get(host.lower())
        if base_url is None:
            known = ", ".join(sorted(name.decode() for name in self._base_urls if not name.startswith(_SYNC.encode())))
            raise Refused(
                f"The Host header is none of this node's names; use one of: {known} (others: names in [node] of tasuki.toml)"
            )
        if b"origin" in headers and headers[b"origin"] not in self._origins:
            raise Refused("Requests from pages of another origin are refused")
        if headers.get(b"sec-fetch-site", b"none") not in {b"none", b"same-origin"}:
            raise Refused("Requests from pages of another site are refused")
        return base_url


def merge(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Make a dict of headers, names in lower case. Repeated ones are joined as signatures want it.

    Raises `MalformedHeaders` when one that decides something is there twice: two readers could then differ on it.
    """
    headers = dict(pairs)
    if len(headers) == len(pairs):
        return headers
    headers = {}
    for name, value in pairs:
        if name in headers:
            if name in _DECIDING:
                raise MalformedHeaders(f"The header {name.decode('latin-1')} is there twice.")
            headers[name] += b"," + value
        else:
            headers[name] = value
    return headers
