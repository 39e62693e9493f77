"""The node's end of the forkserver: asks for shims, takes their pidfds, and starts another forkserver when it dies."""

import array
import logging
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

_BOOTSTRAP = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tasuki.runners.forkserver import serve; serve(int(sys.argv[2]))"
)
SILENT_S = 15.0
"""After how long without an answer a forkserver is taken for hung, and replaced. A fork takes a millisecond."""
ENDS_WITHIN_S = 2.0
log = logging.getLogger("tasuki.runners")


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
        self._asked: dict[str, float] = {}
        """What was asked for and not answered, with when."""
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
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
        except BaseException:
            ours.close()
            raise
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
            self._asked[self._unsent.popleft()] = time.monotonic()

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
            self._asked.pop(name, None)
            if handles:
                os.set_inheritable(handles[0], False)
            self._answered(name, handles[0] if handles else None, refused)

    def tend(self) -> None:
        """Replace a forkserver that gives no answer, or that could not be started. To be called while answers are due."""
        silent = bool(self._asked) and time.monotonic() - next(iter(self._asked.values())) > SILENT_S
        if silent:
            log.warning("the forkserver gave no answer for %.0f s; starting another", SILENT_S)
        if silent or self._door.fileno() < 0:
            self._restart()

    def _restart(self) -> None:
        self._door.close()
        self.process.kill()  # its shims don't notice; what it was asked for and did not do, the fence decides
        self.process.wait()
        try:
            self._start()
        except OSError as bad:  # no memory, no descriptor: what is asked meanwhile waits for `tend`
            log.warning("no forkserver could be started (%s); trying again", bad)
            return
        asked, self._asked = set(self._asked), {}
        self._lost(asked)
        self.flush()

    def close(self) -> None:
        """Close the door, which ends the forkserver; its shims go on."""
        self._door.close()
        try:
            self.process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
