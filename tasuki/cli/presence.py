"""Is a node there, or on its way? What tells that without speaking to it.

A node that starts says so at once, in `DIR/starting`, long before it can answer: `tasuki up &` may be followed by
`eval $(tasuki env)` on the next line, and the second waits for the first.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

_SIGN = "starting"
_CONNECT_WITHIN_S = 2


class Sign:
    """The file that says that this process is about to be a node."""

    def __init__(self, data: Path) -> None:
        self._path = data / _SIGN
        self._made_folder = False

    def put_up(self) -> None:
        """Write it. A folder that cannot be written is the node's to complain of, a moment later."""
        with suppress(OSError):
            self._made_folder = not self._path.parent.exists()
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.write_text(f"{os.getpid()}\n")

    def take_down(self) -> None:
        """Remove it, unless another node's stands there by now."""
        with suppress(OSError):
            if _pid_in(self._path) == os.getpid():
                self._path.unlink()

    def tidy(self) -> None:
        """Leave no empty folder behind where nothing came of it."""
        self.take_down()
        if self._made_folder:
            with suppress(OSError):
                self._path.parent.rmdir()


@contextmanager
def starting(data: Path) -> Iterator[Sign]:
    """Say that a node is on its way; whoever is inside takes the sign down when it is there."""
    sign = Sign(data)
    sign.put_up()
    try:
        yield sign
    finally:
        sign.tidy()


def is_starting(data: Path) -> bool:
    """Tell whether a node is on its way there."""
    pid = _pid_in(data / _SIGN)
    return pid is not None and is_alive(pid)


def is_alive(pid: int) -> bool:
    """Tell whether a process of this id is there."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def answers(url: str) -> bool:
    """Tell whether somebody listens at the address."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname, parts.port or 80), _CONNECT_WITHIN_S):
            return True
    except (OSError, ValueError):
        return False


def _pid_in(sign: Path) -> int | None:
    try:
        return int(sign.read_text())
    except (OSError, ValueError):
        return None
