"""A PostgreSQL that says it is an older one: a relay before a real server, which changes the version in the server's greeting.

The wheel holds one version only; what a node says to an old server is decided by that greeting.
"""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_SAID = re.compile(rb"S(....)server_version\0([^\0]*)\0", re.DOTALL)


@contextmanager
def posing_as(url: str, version: str) -> Iterator[str]:
    """Answer the URL of the same server and database, as long as the context lasts, under another version ("12.9")."""
    at = urlsplit(url)
    address = (at.hostname or "127.0.0.1", at.port or 5432)
    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=_serve, args=(door, address, version.encode()), daemon=True).start()
        who = f"{at.netloc.rpartition('@')[0]}@" if "@" in at.netloc else ""
        yield at._replace(netloc=f"{who}127.0.0.1:{door.getsockname()[1]}").geturl()
        with suppress(OSError):
            door.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits at it


def _serve(door: socket.socket, address: tuple[str, int], version: bytes) -> None:
    with suppress(OSError):
        while True:
            client, _ = door.accept()
            server = socket.create_connection(address)
            threading.Thread(target=_pass_on, args=(client, server, None), daemon=True).start()
            threading.Thread(target=_pass_on, args=(server, client, version), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, version: bytes | None) -> None:
    """Pass on all that comes; with a version, put it into the greeting, which the server sends as one piece."""
    with source, suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data if version is None else _SAID.sub(lambda _found: _greeting(version), data))
        target.shutdown(socket.SHUT_WR)


def _greeting(version: bytes) -> bytes:
    """Write a ParameterStatus message: its length counts itself, but not the letter before it."""
    words = b"server_version\0" + version + b"\0"
    return b"S" + (len(words) + 4).to_bytes(4, "big") + words
