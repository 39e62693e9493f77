"""Whose program is at the other end of a loopback connection? Linux tells when asked for one socket (sock_diag(7)).

With `--dev` the key is public, so the port alone would let every user of the machine in. Where the kernel takes no such
question, `/proc/net/tcp` and `tcp6` (proc(5)) are read: they list every socket, which with a thousand connections open
cost 15 ms for each new one.
"""

import ipaddress
import socket
import struct
import sys
from pathlib import Path

Address = tuple[str, int]
NOBODY = -1
"""A socket that its program has closed: it belongs to no inode any more, and the kernel calls its user 0, who is root.
Whoever sends a request and hangs up at once must not pass for root."""
_SOCK_DIAG, _BY_FAMILY, _REQUEST, _HEAD = 4, 20, 1, 16
_UID = _HEAD + 4 + 48 + 12
"""Where the answer has the user id: behind the head, four bytes, the socket's id, and three counters. Then comes the inode."""
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def uid_of(peer: Address, here: Address) -> int | None:
    """The user id that owns the peer's socket, or None where the system doesn't tell."""
    uid = ask(peer, here)
    return uid if uid is not None else read(peer, here)


def ask(local: Address, remote: Address) -> int | None:
    """Ask the kernel for the socket between two ends; None if it doesn't know, or takes no questions (linux/inet_diag.h)."""
    places = [ipaddress.ip_address(address[0].split("%")[0]) for address in (local, remote)]
    family = socket.AF_INET if places[0].version == 4 else socket.AF_INET6
    ends = [place.packed.ljust(16, b"\0") for place in places]
    ports = struct.pack("!HH", local[1], remote[1])
    which = ports + ends[0] + ends[1] + struct.pack("=I8s", 0, b"\xff" * 8)  # any interface, any cookie
    question = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + which
    head = struct.pack("=IHHII", _HEAD + len(question), _BY_FAMILY, _REQUEST, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
            kernel.settimeout(1)
            kernel.send(head + question)
            answer = kernel.recv(1024)
    except OSError:
        return None
    (kind,) = struct.unpack_from("=H", answer, 4)
    if kind != _BY_FAMILY or len(answer) < _UID + 8:
        return None
    uid, inode = struct.unpack_from("=II", answer, _UID)
    return int(uid) if inode else NOBODY


def read(peer: Address, here: Address) -> int | None:
    """Look for the peer's socket in the tables of all."""
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
    """Find the socket between two ends in a table. Columns: sl, local, remote, state, queues, timer, retries, uid, timeout, inode."""
    for line in table.splitlines()[1:]:
        columns = line.split(None, 10)
        if len(columns) > 9 and columns[1] in local and columns[2] in remote:
            return int(columns[7]) if columns[9] != "0" else NOBODY
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
