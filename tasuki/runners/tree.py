"""The processes of a task: found, weighed, killed. Part of what a shim runs on: standard library only.

Two ways of holding them. `Cgroups` where the machine allows: exact limits, kept by the kernel. Else the walk: the
shim is a subreaper, so everything that a container starts stays below it, daemonised or not.
"""

# ruff: noqa: PTH102, PTH106, PTH123, PTH208 - pathlib would double what a shim imports

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from tasuki.runners.facts import WITHOUT_MEANS

MARK = "TASUKI_CONTAINER"
"""In every container's environment: `TASK/ATTEMPT/NAME`. Finds its processes where there is no cgroup."""
_PAGE = os.sysconf("SC_PAGESIZE")
_CHARGED_AHEAD = 256 * _PAGE
"""How far below a limit the kernel may refuse: it charges in batches, per processor."""


class Limited(Protocol):
    """A container, as its cgroup sees it."""

    name: str
    pid: int | None
    spec: dict[str, Any]
    out_of_memory: bool


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        pass  # it ended while we looked
    return found


def descendants() -> list[int]:
    """Answer all processes below us: complete, since orphans come to us."""
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = _children(todo.pop())
        found += below
        todo += below
    return found


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a descendant (it can't be anybody else's pid: we have not reaped it)."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def rss(pid: int) -> int:
    """Answer the resident size of a process, in bytes; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


class Walk:
    """Which process is whose, without cgroups: by descent where there is one container, else by session or mark."""

    def __init__(self, attempt: str, containers: Sequence[Limited]) -> None:
        self.attempt, self.containers = attempt, containers

    def pids(self, container: Limited) -> list[int]:
        """Answer the processes of a container."""
        below = descendants()
        if len(self.containers) == 1:
            return below
        mark = f"{MARK}={self.attempt}/{container.name}".encode()
        return [pid for pid in below if pid == container.pid or _session(pid) == container.pid or carries(pid, mark)]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def carries(pid: int, mark: bytes) -> bool:
    """Tell whether `mark` is (or, when it ends in a slash, begins) a variable of the process's environment.

    Raises OSError when we have no descriptor left to look with.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError as bad:
        if bad.errno in WITHOUT_MEANS:
            raise
        return False
    return any(one.startswith(mark) if mark.endswith(b"/") else one == mark for one in variables)


class Cgroups:
    """The memory cgroups: one for the task, one inside it for each container.

    v1: a child that is killed for memory rings an eventfd, and we end its container. v2: `memory.oom.group` has the
    kernel do that. The shim itself stays outside: it must not be the one that is killed.
    """

    def __init__(self, memory: dict[str, Any], containers: Sequence[Limited]) -> None:
        self.v2 = memory["kind"] == "v2"
        self.folder: str = memory["folder"]
        self.task_bytes: int | None = memory["task_bytes"]
        self.containers = containers
        self.events: dict[int, Limited] = {}

    def make(self) -> None:
        """Create them. Raises `OSError` where the machine does not allow it."""
        os.mkdir(self.folder)
        if self.v2:
            self._set(self.folder, "cgroup.subtree_control", "+memory")
        self._limit(self.folder, self.task_bytes, None)
        for container in self.containers:
            folder = self.of(container)
            os.mkdir(folder)
            self._limit(folder, container.spec["memory_bytes"], container.spec["reservation_bytes"])
            if not self.v2:
                bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
                control = os.open(f"{folder}/memory.oom_control", os.O_RDONLY | os.O_CLOEXEC)
                self._set(folder, "cgroup.event_control", f"{bell} {control}")
                self.events[bell] = container

    def of(self, container: Limited) -> str:
        """Answer the folder of a container's cgroup."""
        return f"{self.folder}/c-{container.name[:200]}"

    def _limit(self, folder: str, hard: int | None, soft: int | None) -> None:
        if self.v2:
            self._try(folder, "memory.oom.group", "1")
            self._try(folder, "memory.swap.max", "0")
            if soft is not None:
                self._try(folder, "memory.low", str(soft))
            if hard is not None:
                self._set(folder, "memory.max", str(hard))
            return
        if soft is not None:
            self._try(folder, "memory.soft_limit_in_bytes", str(soft))
        if hard is not None:
            self._set(folder, "memory.limit_in_bytes", str(hard))
            self._try(folder, "memory.memsw.limit_in_bytes", str(hard))

    def _set(self, folder: str, name: str, value: str) -> None:
        fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, value.encode())
        finally:
            os.close(fd)

    def _try(self, folder: str, name: str, value: str) -> None:
        with suppress(OSError):  # not every kernel has this file; the hard limit is what counts
            self._set(folder, name, value)

    def join(self, container: Limited) -> None:
        """Enter the container's cgroup: called in the child, before it runs anything.

        By `tasks` on v1: a thread that moves itself takes no lock, while `cgroup.procs` waits 20 ms for every processor.
        """
        self._set(self.of(container), "cgroup.procs" if self.v2 else "tasks", "0")

    def pids(self, container: Limited) -> list[int]:
        """Answer the processes of a container."""
        try:
            with open(f"{self.of(container)}/cgroup.procs", "rb") as file:
                return [int(pid) for pid in file.read().split()]
        except OSError:
            return []

    def killed(self, container: Limited) -> bool:
        """Tell whether the kernel has killed anything in it for memory."""
        name = "memory.events" if self.v2 else "memory.oom_control"
        return self._count(f"{self.of(container)}/{name}", b"oom_kill") > 0

    def task_over(self) -> bool:
        """Tell whether it is the task's own limit that was hit."""
        if self.task_bytes is None:
            return False
        if self.v2:
            return self._count(f"{self.folder}/memory.events.local", b"oom") > 0
        if any(self._reached(self.of(c), c.spec["memory_bytes"]) for c in self.containers if c.out_of_memory):
            return False
        return self._reached(self.folder, self.task_bytes)

    def _reached(self, folder: str, limit: int | None) -> bool:
        """Tell whether a v1 cgroup has been at its limit (newer kernels leave `memory.failcnt` at zero)."""
        return limit is not None and self._number(f"{folder}/memory.max_usage_in_bytes") >= limit - _CHARGED_AHEAD

    @staticmethod
    def _count(path: str, word: bytes) -> int:
        try:
            with open(path, "rb") as file:
                return next((int(line.split()[1]) for line in file if line.split()[0] == word), 0)
        except (OSError, ValueError):
            return 0

    @staticmethod
    def _number(path: str) -> int:
        try:
            with open(path, "rb") as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0

    def remove(self) -> None:
        """Take them away (empty by now)."""
        for folder in (*(self.of(container) for container in self.containers), self.folder):
            for _ in range(50):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)  # the kernel lets go of a dead process's cgroup a moment later
                else:
                    break
