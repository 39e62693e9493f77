"""The node's end of the forkserver: asks for shims, takes their pidfds, and starts another forkserver when it dies."""

import array
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

_BOOTSTRAP = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tasuki.runners.forkserver import serve; serve(int(sys.argv[2]))"
)


class Forks:
    """One forkserver in `folder`, running the files in `code`.

    `answered(name, pidfd, refused)` is called for each request: with None and True when the machine could not fork, with
    None and False when it did and we had no descriptor left to be given. `lost(names)` is called when the forkserver
    died, with what it had been asked for and not answered.
    """

    def __init__(
        self,
        folder: Path,
        code: Path,
        answered: Callable[[str, int | None, bool], None],
        lost: Callable[[set[str]], None],
    ) -> None:
        self._folder, self._code, self._answered, self._lost = folder, code, answered, lost
        self._unsent: deque[str] = deque()
        self._asked: set[str] = set()
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own files
                [sys.executable, "-I", "-S", "-B", "-c", _BOOTSTRAP, self._code.absolute(), str(theirs.fileno())],
                cwd=self._folder,
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        ours.setblocking(False)
        self._door = ours

    def fileno(self) -> int:
        """Answer the descriptor to wait on; it changes when another forkserver is started."""
        return self._door.fileno()

    @property
    def wants_to_write(self) -> bool:
        """Requests wait for room in the socket."""
        return bool(self._unsent)

    def ask(self, name: str) -> None:
        """Ask for a shim in the folder `name`."""
        self._unsent.append(name)
        self.flush()

    def flush(self) -> None:
        """Send what there is room for."""
        while self._unsent:
            try:
                self._door.send(self._unsent[0].encode())
            except BlockingIOError:
                return
            except OSError:
                return  # it died; the answer says so
            self._asked.add(self._unsent.popleft())

    def receive(self) -> None:
        """Take the answers that have come."""
        while True:
            try:
                answer, ancillary, _, _ = self._door.recvmsg(65536, socket.CMSG_SPACE(4))
            except BlockingIOError:
                return
            except OSError:
                answer, ancillary = b"", []
            if not answer:
                self._restart()
                return
            handles = array.array("i")
            for _, _, content in ancillary:
                handles.frombytes(content[:4])
            first, _, second = answer.partition(b"\0")
            refused = first.startswith(b"-")
            name = (first[1:] if refused else second).decode()
            self._asked.discard(name)
            if handles:
                os.set_inheritable(handles[0], False)
            self._answered(name, handles[0] if handles else None, refused)

    def _restart(self) -> None:
        self.close()
        self._start()
        asked, self._asked = self._asked, set()
        self._lost(asked)
        self.flush()

    def close(self) -> None:
        """Close the door, which ends the forkserver; its shims go on."""
        self._door.close()
        self.process.wait()
