"""Whose program is at the other end of a loopback connection? Linux tells in `/proc/net/tcp` and `tcp6` (proc(5)).

With `--dev` the key is public, so the port alone would let every user of the machine in.
"""

import ipaddress
import sys
from pathlib import Path

Address = tuple[str, int]
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def uid_of(peer: Address, here: Address) -> int | None:
    """The user id that owns the peer's socket, or None where the system doesn't tell."""
    local, remote = encode(peer), encode(here)
    for table in _TABLES:
        try:
            text = table.read_text()
        except OSError:
            continue
        uid = find(text, local, remote)
        if uid is not None:
            return uid
    return None


def find(table: str, local: frozenset[str], remote: frozenset[str]) -> int | None:
    """Find the socket between two ends in a table. Columns: sl, local, remote, state, queues, timer, retries, uid."""
    for line in table.splitlines()[1:]:
        columns = line.split(None, 8)
        if len(columns) > 7 and columns[1] in local and columns[2] in remote:
            return int(columns[7])
    return None


def encode(address: Address) -> frozenset[str]:
    """How the kernel may print an address: 32 bit words in the machine's byte order, as IPv4 and mapped into IPv6."""
    host, port = address[0].split("%")[0], address[1]
    ip = ipaddress.ip_address(host)
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    forms = [ip.packed]
    if isinstance(ip, ipaddress.IPv4Address):
        forms.append(b"\0" * 10 + b"\xff\xff" + ip.packed)
    return frozenset(f"{_words(packed)}:{port:04X}" for packed in forms)


def _words(packed: bytes) -> str:
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join((word[::-1] if sys.byteorder == "little" else word).hex().upper() for word in words)
