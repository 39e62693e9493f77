"""Speaks HTTP to other people's servers: one request, one answer, nothing remembered.

Every request has a connection of its own, to an address that was looked at: names are resolved here, once, and what they resolve
to is what is connected to. No redirects, no proxies, no cookies, no credentials of the machine. aiohttp is loaded by the first
call, so a house without API destinations never has it in memory.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from tasuki.services.buses.calls_requests import Outgoing
from tasuki.values.outbound import Outbound, literal

if TYPE_CHECKING:
    from types import ModuleType

Lookup: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""Host and port to addresses. Raises OSError."""

MOST_BYTES = 6 << 20
"""What is read of an answer (Pipes: an enrichment's response is up to 6 MB); of one that is no success, a hundredth."""
_HUNDREDTH = MOST_BYTES // 100


class Refused(Exception):
    """The request is not made: it goes where the configuration lets nobody go, or its URL is none."""


class Unreached(Exception):
    """There was no connection, or it broke."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer. `is_cut`: the body went on."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    is_cut: bool


class Line:
    """Makes requests, each within `timeout_s` in all. Raises `Refused`, `Unreached` or TimeoutError."""

    def __init__(self, outbound: Outbound, *, timeout_s: float, lookup: Lookup | None = None) -> None:
        self._outbound, self._timeout_s, self._lookup = outbound, timeout_s, lookup or resolved
        self._looking: dict[tuple[str, int], asyncio.Task[list[str]]] = {}
        """Names that are being resolved. A lookup holds one of few threads, longer than the call that wants it may take."""

    async def ask(self, request: Outgoing) -> Heard:
        """Make one request, and hear its answer out."""
        http = _aiohttp()
        yarl = _yarl()
        try:
            url = yarl.URL(request.url, encoded=True)
            host = url.raw_host
        except ValueError:
            raise Refused("The endpoint is not a URL.") from None
        if url.scheme not in {"http", "https"} or not host:
            raise Refused("The endpoint is not an HTTP address.")
        if literal(host) is not None:
            self._check(url.scheme, host, [host])
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._ask(http, url, request)
        except http.InvalidURL as bad:
            raise Refused(f"The endpoint is not one that can be called: {bad.description or 'not a URL'}.") from None
        except http.ServerTimeoutError:
            raise TimeoutError from None
        except http.ClientConnectorCertificateError as bad:
            raise Unreached(f"the certificate of {host} is not trusted: {bad.certificate_error}") from None
        except (http.ClientError, OSError) as bad:
            if isinstance(bad, TimeoutError):
                raise
            raise Unreached(f"API destination endpoint cannot be reached: {_why(bad)}") from None

    async def _ask(self, http: Any, url: Any, request: Outgoing) -> Heard:
        connector = http.TCPConnector(
            resolver=_resolver(self, url.scheme), use_dns_cache=False, force_close=True, limit=0
        )
        async with (
            http.ClientSession(
                connector=connector,
                cookie_jar=http.DummyCookieJar(),
                trust_env=False,
                requote_redirect_url=False,
                timeout=http.ClientTimeout(total=None),  # the caller's bounds all of it
                skip_auto_headers=("Content-Type", "Accept"),
            ) as session,
            session.request(
                request.method, url, data=request.body, headers=request.headers, allow_redirects=False
            ) as answer,
        ):
            most = MOST_BYTES if 200 <= answer.status < 300 else _HUNDREDTH
            body = bytearray()
            async for piece in answer.content.iter_chunked(1 << 16):
                body += piece
                if len(body) > most:
                    break
            return Heard(answer.status, answer.headers, bytes(body[:most]), len(body) > most)

    def _check(self, scheme: str, host: str, addresses: list[str]) -> None:
        why = self._outbound.refusal(scheme, host, addresses)
        if why is not None:
            raise Refused(why)

    async def addresses(self, scheme: str, host: str, port: int) -> list[str]:
        """Resolve a name to addresses that may all be called. Raises `Refused`, OSError."""
        looking = self._looking.get((host, port))
        if looking is None:
            looking = self._looking[host, port] = asyncio.create_task(self._look(host, port), name=f"lookup {host}")
            looking.add_done_callback(_ended)
        found = await asyncio.shield(looking)
        self._check(scheme, host, found)
        return found

    async def _look(self, host: str, port: int) -> list[str]:
        try:
            return await self._lookup(host, port)
        finally:
            del self._looking[host, port]


def _ended(lookup: "asyncio.Task[list[str]]") -> None:
    """Take note of how a lookup ended that nobody may wait for any more."""
    if not lookup.cancelled():
        lookup.exception()


async def resolved(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@cache
def _aiohttp() -> Any:
    import aiohttp

    return aiohttp


@cache
def _yarl() -> "ModuleType":
    import yarl

    return yarl


def _resolver(line: Line, scheme: str) -> Any:
    """Make what aiohttp asks for addresses."""
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Resolver(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            found = []
            for address in await line.addresses(scheme, host, port):
                kind = socket.AF_INET6 if ":" in address else socket.AF_INET
                if family in {socket.AF_UNSPEC, kind}:
                    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
                    found.append(
                        ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=flags)
                    )
            return found

        async def close(self) -> None:
            """Nothing is held."""

    return Resolver()


def _why(bad: Exception) -> str:
    """Say what went wrong with a connection, without the URL, whose query may have secrets."""
    cause = getattr(bad, "os_error", None) or bad
    if isinstance(cause, OSError) and cause.strerror:
        return f"{cause.strerror}."
    return f"{type(bad).__name__}."
