"""A request as it came off the wire."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class Call:
    """One request. `path` is raw (still percent-encoded); `headers` have lower-case names.

    `service` is the name in the signature's scope, `base_url` how the client reached us.
    """

    method: str
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes
    service: str
    base_url: str
