"""Real shims, real signals. Nothing sleeps: tests wait on the runner's descriptor, with a bound."""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tasuki.runners import facts
from tasuki.runners.memory import Memory
from tasuki.runners.process import ProcessRunner
from tasuki.runners.sweep import sweep
from tasuki.values.attempts import Container, ContainerReport, Key, Launch, Report

BOUND_S = 20.0
PATH = os.defpath


class Bench:
    """A runner with a folder, and what tests say to it. `again()` is a node's kill and restart."""

    def __init__(self, folder: Path, memory: Memory | None = None, log_bytes: int = 1 << 20) -> None:
        self.folder, self.memory, self.log_bytes = folder, memory, log_bytes
        self.runner = self._open()
        self.keys: list[Key] = []

    def _open(self) -> ProcessRunner:
        return ProcessRunner(self.folder, "house", memory=self.memory, log_bytes=self.log_bytes)

    def container(self, *argv: str, name: str = "main", **more: object) -> Container:
        given = {"environment": {"PATH": PATH}, "folder": str(self.folder), "stop_timeout_s": 20, **more}
        return Container(name, argv, **given)  # type: ignore[arg-type]

    def python(self, code: str, *, name: str = "main", **more: object) -> Container:
        return self.container(sys.executable, "-I", "-S", "-c", code, name=name, **more)

    def key(self, attempt: int = 1) -> Key:
        key = Key(f"t{len(self.keys)}x{os.getpid()}", attempt)
        self.keys.append(key)
        return key

    def start(self, *containers: Container, memory_mib: int | None = None) -> Key:
        key = self.key()
        self.runner.start(Launch(key, containers, memory_mib))
        return key

    def until(self, key: Key, reached: Callable[[Report], bool]) -> Report:
        """Collect, each time something rings, until a report of `key` is as wished."""
        give_up = time.monotonic() + BOUND_S
        while time.monotonic() < give_up:
            for report in self.runner.collect():
                if report.key == key and reached(report):
                    return report
            select.select([self.runner], [], [], self.runner.patience_s or BOUND_S)
        raise AssertionError(f"{key} did not get there: {self.files(key)}")

    def running(self, key: Key) -> Report:
        return self.until(key, lambda report: report.phase == "running")

    def ended(self, key: Key) -> Report:
        return self.until(key, lambda report: report.phase != "running")

    def only(self, key: Key) -> ContainerReport:
        (container,) = self.ended(key).containers
        return container

    def place(self, key: Key) -> Path:
        return self.folder / key.task / str(key.attempt)

    def log(self, key: Key, name: str = "main") -> str:
        return (self.folder / key.task / f"{name}.log").read_text()

    def says(self, key: Key, word: str, name: str = "main") -> str:
        """Wait for a word in a container's log (its own sign that it got somewhere)."""
        give_up = time.monotonic() + BOUND_S
        while time.monotonic() < give_up:
            path = self.folder / key.task / f"{name}.log"
            if path.exists() and word in path.read_text():
                return path.read_text()
            select.select([], [], [], 0.005)
        raise AssertionError(f"{word!r} was never said: {self.files(key)}")

    def files(self, key: Key) -> dict[str, str]:
        return {str(one): one.read_text()[:2000] for one in (self.folder / key.task).rglob("*") if one.is_file()}

    def again(self) -> ProcessRunner:
        self.runner.close()
        self.runner = self._open()
        return self.runner

    def shim_pid(self, key: Key) -> int:
        started = facts.read(str(self.place(key) / "started"))
        assert started is not None
        pid = started["pid"]
        assert isinstance(pid, int)
        return pid

    def close(self) -> None:
        for key in self.keys:
            for _ in range(200):
                handle = None
                try:
                    handle = os.pidfd_open(self.shim_pid(key)) if (self.place(key) / "started").exists() else None
                except (OSError, KeyError):
                    handle = None
                if handle is not None:
                    with suppress(ProcessLookupError):  # it ended by itself in between
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                    select.select([handle], [], [], 5)
                    os.close(handle)
                if sweep(key, self.runner._cgroup(key)):
                    break
                select.select([], [], [], 0.01)
        self.runner.close()


def alive(pid: int) -> bool:
    return facts.start_ticks(pid) is not None
