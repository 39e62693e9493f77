"""A node of one's own: started as a process, watched until it is ready, stopped or killed. For stories and tests."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.reach import Reach, read_node

START_WITHIN_S = 20
STOP_WITHIN_S = 20
_LAST_WORDS = 10


def free_port() -> int:
    """Answer a port of loopback that nobody holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class OwnNode:
    """`tasuki up` on a data directory, at the same port whenever it is started again.

    What it logs goes to `DIR/node.log`. As a context it is stopped at the end, whatever happened.
    """

    def __init__(self, data: Path, *, port: int | None = None, dev: bool = True, options: tuple[str, ...] = ()) -> None:
        self.data, self.port = data, port or free_port()
        self._options = (*(("--dev",) if dev else ()), *options)
        self._process: subprocess.Popen[str] | None = None
        self.log = data / "node.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The node's process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Tell whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def reach(self) -> Reach:
        """How to speak to it."""
        return read_node(self.data)

    def start(self) -> str:
        """Start it and wait for its ready line, which is the answer. Raises `Complaint` with its last words."""
        self.data.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tasuki.cli.main", "up", "--data", str(self.data), "--port", str(self.port)]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [*command, *self._options], stdout=subprocess.PIPE, stderr=log, text=True, env=_environment()
            )
        assert self._process.stdout is not None
        ready = _first_line(self._process.stdout, START_WITHIN_S)
        if not ready:
            self.kill()
            words = self.log.read_text().strip().splitlines()[-_LAST_WORDS:] or ["it said nothing"]
            raise Complaint("the node did not start", Code.NO, hint="\n".join([f"from {self.log}:", *words]))
        return ready

    def stop(self) -> int | None:
        """End it with SIGTERM and wait; answer its exit code, or None if it did not run."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int | None:
        """End it with SIGKILL, in the middle of whatever it does."""
        return self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        process.send_signal(how)
        try:
            code = process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if process.stdout is not None:
            with suppress(OSError):
                process.stdout.close()
        return code


def _environment() -> dict[str, str]:
    """Leave out what would point the node's own commands elsewhere."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TASUKI_"))}


def _first_line(stream: IO[str], within_s: float) -> str:
    """Read one line, waiting at most `within_s`; nothing if the other end closed or was silent."""
    import select

    readable, _, _ = select.select([stream], [], [], within_s)
    return stream.readline().strip() if readable else ""
