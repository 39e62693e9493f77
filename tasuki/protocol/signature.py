"""Signature Version 4, in headers only (AWS General Reference, "Signing AWS API requests").

A request proves that its sender knows a secret: it signs the method, path, query string, some headers and the hash
of the body with a key derived from the secret, the day, the region and the service. Here the body's hash is always
our own, so a tampered body is a wrong signature, whatever `x-amz-content-sha256` claims. Signatures in the query
string are accepted for nothing: any web page can make a browser send those.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from tasuki.protocol.call import Call
from tasuki.protocol.faults import IncompleteSignature, InvalidSignature
from tasuki.values.instant import MINUTE, Instant, from_datetime, to_datetime

SKEW_MS = 15 * MINUTE
"""How far a request's time may be from ours."""
_KEYS_KEPT = 1_024
_DIGITS = 64

_AUTHORIZATION = re.compile(
    rb"AWS4-HMAC-SHA256 +Credential=([^/,\s]+)/(\d{8})/([^/,\s]+)/([^/,\s]+)/aws4_request"
    rb"\s*,\s*SignedHeaders=([^,\s]+)\s*,\s*Signature=([0-9a-f]{64})\s*"
)
_WORD = rb"[A-Za-z0-9_~-][A-Za-z0-9_.~-]*"
_PLAIN_PATH = re.compile(rb"/(?:%b(?:/%b)*/?)?" % (_WORD, _WORD))
_PLAIN_QUERY = re.compile(rb"(?:[A-Za-z0-9_.~=&-]|%[0-9A-F]{2})*")
_TIME = re.compile(rb"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")
_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)


class Credential(NamedTuple):
    """What an Authorization header claims."""

    access_key: str
    date: bytes
    region: str
    service: str
    signed: tuple[bytes, ...]
    signed_text: bytes
    signature: bytes


def parse_authorization(header: bytes) -> Credential:
    """Read an Authorization header. Raises `IncompleteSignature` that names what is missing."""
    found = _AUTHORIZATION.fullmatch(header)
    if found is None:
        found = _reordered(header)
    key, date, region, service, signed, signature = found.groups()
    names = tuple(signed.split(b";"))
    if b"host" not in names:
        raise InvalidSignature("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
    try:
        return Credential(
            key.decode("ascii"), date, region.decode("ascii"), service.decode("ascii"), names, signed, signature
        )
    except UnicodeDecodeError:
        raise IncompleteSignature("The Authorization header is not ASCII.") from None


def _reordered(header: bytes) -> re.Match[bytes]:
    """Put the three parts in our order and try again; say what is missing otherwise."""
    algorithm, _, rest = header.partition(b" ")
    if algorithm != b"AWS4-HMAC-SHA256":
        raise IncompleteSignature("Unsupported AWS 'algorithm': only AWS4-HMAC-SHA256 is accepted.")
    parts = {name.strip(): value.strip() for name, _, value in (part.partition(b"=") for part in rest.split(b","))}
    missing = [name for name in ("Credential", "Signature", "SignedHeaders") if not parts.get(name.encode())]
    if missing:
        raise IncompleteSignature(" ".join(f"Authorization header requires '{name}' parameter." for name in missing))
    found = _AUTHORIZATION.fullmatch(
        b"AWS4-HMAC-SHA256 Credential=%b,SignedHeaders=%b,Signature=%b"
        % (parts[b"Credential"], parts[b"SignedHeaders"], parts[b"Signature"])
    )
    if found is None:
        raise IncompleteSignature(
            "Credential must have exactly 5 slash-delimited elements, e.g. "
            "keyid/date/region/service/aws4_request, and Signature 64 hexadecimal digits."
        )
    return found


class Verifier:
    """Checks signatures; keeps the derived keys of the day."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, bytes, str, str], _Key] = {}
        self._claims: dict[bytes, Credential] = {}
        self._last_time: tuple[bytes | None, Instant] = (None, 0)

    def claims(self, header: bytes) -> Credential:
        """Read an Authorization header as `parse_authorization` does; a client's next one differs in its end only."""
        start, signature = header[:-_DIGITS], header[-_DIGITS:]
        known = self._claims.get(start)
        if known is not None:
            # Whatever stands there is only compared; digits that are none match nothing.
            return Credential(*known[:-1], signature)
        credential = parse_authorization(header)
        if credential.signature == signature:
            if len(self._claims) >= _KEYS_KEPT:
                self._claims.clear()
            self._claims[start] = credential
        return credential

    def check_time(self, credential: Credential, headers: Mapping[bytes, bytes], now: Instant) -> bytes:
        """Refuse a request from another time; answer the timestamp in the signature's form.

        Raises `IncompleteSignature` without a readable date, `InvalidSignature` outside of the 15 minutes.
        """
        stamp = headers.get(b"x-amz-date")
        if stamp is None:
            stamp = _from_date_header(headers.get(b"date"))
        last, moment = self._last_time
        if stamp != last:
            moment = _moment(stamp)
            self._last_time = (stamp, moment)
        if not -SKEW_MS <= now - moment <= SKEW_MS:
            there, here = stamp.decode(), _stamp(now)
            if moment < now:
                raise InvalidSignature(
                    f"Signature expired: {there} is now earlier than {_stamp(now - SKEW_MS)} ({here} - 15 min.)"
                )
            raise InvalidSignature(
                f"Signature not yet current: {there} is still later than {_stamp(now + SKEW_MS)} ({here} + 15 min.)"
            )
        if stamp[:8] != credential.date:
            raise InvalidSignature(
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
                f"'{credential.date.decode()}' != '{stamp[:8].decode()}', from '{stamp.decode()}'."
            )
        return stamp

    def check(self, credential: Credential, secret: str, stamp: bytes, call: Call) -> None:
        """Refuse what `secret` did not sign. Raises `InvalidSignature`."""
        headers, path, query = call.headers, call.path, call.query
        # A target that is not signed could be exchanged on the way. A signed header that is not there can't match.
        if b"x-amz-target" in headers and b"x-amz-target" not in credential.signed:
            raise InvalidSignature("'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.")
        find = headers.get
        lines = [
            call.method.encode(),
            path if path == b"/" else canonical_path(path),
            query and canonical_query(query),
            *[b"%b:%b" % (name, b" ".join(find(name, b"").split())) for name in credential.signed],
            b"",
            credential.signed_text,
            hashlib.sha256(call.body).hexdigest().encode(),
        ]
        scope = f"/{credential.region}/{credential.service}/aws4_request".encode()
        to_sign = b"AWS4-HMAC-SHA256\n%b\n%b%b\n%b" % (
            stamp,
            credential.date,
            scope,
            hashlib.sha256(b"\n".join(lines)).hexdigest().encode(),
        )
        expected = self._key(credential, secret).sign(to_sign).encode()
        if not hmac.compare_digest(expected, credential.signature):
            raise InvalidSignature(_MISMATCH)

    def _key(self, credential: Credential, secret: str) -> "_Key":
        name = (secret, credential.date, credential.region, credential.service)
        key = self._keys.get(name)
        if key is None:
            derived = b"AWS4" + secret.encode()
            for part in (credential.date, credential.region.encode(), credential.service.encode(), b"aws4_request"):
                derived = hmac.digest(derived, part, "sha256")
            if len(self._keys) >= _KEYS_KEPT:
                self._keys.clear()
            key = self._keys[name] = _Key(derived)
        return key


class _Key:
    """A derived key with both halves of HMAC (RFC 2104) begun: a copy of those costs a quarter of a new HMAC."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = key.ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def sign(self, text: bytes) -> str:
        """Answer the signature in hexadecimal digits."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(text)
        outer.update(inner.digest())
        return outer.hexdigest()


def canonical_path(path: bytes) -> bytes:
    """Resolve `.` and `..`, drop doubled slashes, and encode what is already encoded once more, as SDKs do."""
    if _PLAIN_PATH.fullmatch(path):
        return path
    kept: list[bytes] = []
    for part in path.split(b"/"):
        if part == b"..":
            if kept:
                kept.pop()
        elif part not in {b"", b"."}:
            kept.append(part)
    tail = b"/" if kept and path.endswith(b"/") else b""
    return quote(b"/" + b"/".join(kept) + tail, safe="/~").encode()


def canonical_query(query: bytes) -> bytes:
    """Sort the parameters by name and value, each encoded the one right way."""
    pairs = [part.partition(b"=")[::2] for part in query.split(b"&") if part]
    if not _PLAIN_QUERY.fullmatch(query):
        pairs = [(_encode_again(name), _encode_again(value)) for name, value in pairs]
    return b"&".join(b"%b=%b" % pair for pair in sorted(pairs))


def _encode_again(text: bytes) -> bytes:
    return quote(unquote_to_bytes(text), safe="-_.~").encode()


def _from_date_header(text: bytes | None) -> bytes:
    """`Date: Mon, 30 Nov 2026 00:15:00 GMT` in the signature's form."""
    try:
        if text:
            if _TIME.fullmatch(text):
                return text
            return f"{parsedate_to_datetime(text.decode('ascii')).astimezone(UTC):%Y%m%dT%H%M%SZ}".encode()
    except ValueError:
        pass
    raise IncompleteSignature("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.")


def _moment(stamp: bytes) -> Instant:
    found = _TIME.fullmatch(stamp)
    try:
        if found is not None:
            year, month, day, hour, minute, second = map(int, found.groups())
            return from_datetime(datetime(year, month, day, hour, minute, second, tzinfo=UTC))
    except ValueError:
        pass
    raise IncompleteSignature(
        "Date must be in ISO-8601 'basic format'. See http://en.wikipedia.org/wiki/ISO_8601: YYYYMMDDTHHMMSSZ"
    )


def _stamp(instant: Instant) -> str:
    return f"{to_datetime(instant):%Y%m%dT%H%M%SZ}"
