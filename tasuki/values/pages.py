"""Page tokens: where a listing goes on, in a form that only we can make.

A token is signed, versioned and bound to its query: what was handed out for one listing opens no other, an older or
newer format is refused, and nobody can point a page at a row by guessing. The position inside is a key (a name, an
id), never an offset, so a page stays right when rows come and go before it.

::

    token = base64url( version (1 byte) · HMAC-SHA256(secret, version · query · position)[:16] · MessagePack(position) )
"""

import base64
import binascii
import hashlib
import hmac

from tasuki.values.documents import pack, unpack
from tasuki.values.errors import TasukiError

_VERSION = b"\x01"
_MAC_BYTES = 16


class BadPageToken(TasukiError):
    """A page token that we did not make, or not for this query. Each room answers with its service's own error."""


class PageTokens:
    """Seals and opens page tokens with one secret (the house's: `store/pages.py`)."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def seal(self, query: str, position: str | int) -> str:
        """Make the token that continues `query` after `position`.

        `query` names the listing with all that selects or orders its rows (operation, filter, direction), but not
        its page size: that may change from page to page.
        """
        packed = pack(position)
        token = _VERSION + self._mac(query, packed) + packed
        return base64.urlsafe_b64encode(token).decode().rstrip("=")

    def open(self, query: str, token: str) -> str | int:
        """Answer the position in a token made for `query`. Raises `BadPageToken`."""
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            raise BadPageToken("not a page token") from None
        version, mac, packed = raw[:1], raw[1 : 1 + _MAC_BYTES], raw[1 + _MAC_BYTES :]
        if version != _VERSION or not hmac.compare_digest(mac, self._mac(query, packed)):
            raise BadPageToken("not a page token of this query")
        position = unpack(packed)
        assert isinstance(position, str | int)
        return position

    def _mac(self, query: str, packed: bytes) -> bytes:
        text = query.encode()
        message = _VERSION + len(text).to_bytes(4, "big") + text + packed
        return hmac.digest(self._secret, message, hashlib.sha256)[:_MAC_BYTES]
