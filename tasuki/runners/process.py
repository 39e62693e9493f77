"""Runs attempts as processes of this machine, each under a shim that outlives the node.

::

    DIR/tasks/
      house                     whose directory this is; another store's is refused
      contact                   when the store last saw this node, if several share it; else a date far ahead (contact.py)
      bell                      FIFO: shims write "TASK/ATTEMPT" when there is something to read
      .shim/DIGEST/             the few files that shims run on, as they were when this version first ran here
      TASK/NAME.log             a container's output, written by the container itself
      TASK/ATTEMPT/             launch.json, started, facts, stop, shim.log (see shim.py)

The node holds a pidfd of every shim, so it learns of a death at once and signals nobody else. What a shim says is in
its files; everything here can be lost and is found again by `watch`.
"""

import logging
import os
import resource
import select
import shutil
import signal
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasuki.runners import facts, home
from tasuki.runners.contact import Contact
from tasuki.runners.forks import Forks
from tasuki.runners.memory import Memory, find_memory
from tasuki.runners.runner import StartFailed, StartLater
from tasuki.runners.sweep import sweep
from tasuki.runners.tree import MARK
from tasuki.values.attempts import HOST_LOST, ContainerReport, Key, Launch, Report
from tasuki.values.documents import dumpb
from tasuki.values.errors import MalformedDocument

log = logging.getLogger("tasuki.runners")

MIB = 1 << 20
LOG_BYTES = 64 * MIB
"""Where a log starts anew; the part before it is kept as `NAME.log.1`."""
MOST_FILES = 1 << 16
_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@dataclass(slots=True, eq=False)
class _Attempt:
    """What we know of an attempt. `dead` says that its shim is gone; `waits`, that we expect to hear of it soon."""

    pidfd: int = -1
    dead: bool = False
    waits: bool = True
    stopping: bool = False
    sweeping: bool = False
    ended: Report | None = None


class ProcessRunner:
    """The `process` runner. `house` is the store's id; `memory` defaults to what the machine allows.

    `contact` is where shims learn whether other nodes may take our tasks for lost: they end them by themselves before.
    """

    def __init__(
        self,
        folder: Path,
        house: str,
        *,
        memory: Memory | None = None,
        log_bytes: int = LOG_BYTES,
        contact: Contact | None = None,
    ) -> None:
        self.folder, self.contact = folder, contact
        self.memory = memory or find_memory()
        self._log_bytes = log_bytes
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.claim(folder, house)
        bell = folder / "bell"
        with suppress(FileExistsError):
            os.mkfifo(bell, 0o600)
        self._bell = os.open(bell, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(self._bell, select.EPOLLIN)
        _raise_file_limit()
        self._attempts: dict[Key, _Attempt] = {}
        self._by_pidfd: dict[int, Key] = {}
        self._look: set[Key] = set()
        self._shim = home.publish(folder / ".shim")
        self._forks = Forks(folder, self._shim, self._forked, self._forkserver_died)
        self._epoll.register(self._forks, select.EPOLLIN)

    # -- the four verbs ---------------------------------------------------------------------------------------

    def start(self, launch: Launch) -> None:
        """Write what to run, and have the forkserver fork its shim."""
        key = launch.key
        place = self._place(key)
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            (place / "launch.json").write_bytes(dumpb(self._spec(launch)))
        except (OSError, MalformedDocument) as bad:
            if isinstance(bad, OSError) and bad.errno in facts.WITHOUT_MEANS:
                raise StartLater(str(bad)) from bad
            raise StartFailed(f"the folder of the attempt could not be written ({bad})") from bad
        self._attempts[key] = _Attempt()
        self._forks.ask(f"{key.task}/{key.attempt}")
        if self._forks.wants_to_write:
            self._attend_forks()

    def watch(self, key: Key) -> None:
        """Adopt what lives, read what ended, and leave a tombstone where nothing was started."""
        attempt = self._attempts.setdefault(key, _Attempt())
        place = self._place(key)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        attempt.dead = not self._grasp(key, attempt)
        self._look.add(key)

    def stop(self, key: Key) -> bool:
        """Leave the wish in the attempt's folder, then wake its shim, if it is there already."""
        attempt = self._attempts.get(key)
        if attempt is None:
            return False
        if attempt.ended is not None:
            return True
        attempt.waits = True
        try:
            os.close(os.open(self._place(key) / "stop", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return False
        attempt.stopping = True
        _wake(attempt)
        return True

    def collect(self, settled: Collection[Key] = ()) -> list[Report]:
        """Answer what changed. Reads only the folders that somebody rang for."""
        for key in settled:
            done = self._attempts.pop(key, None)
            self._look.discard(key)
            if done is not None:
                self._release(done)
        self.notice()
        if self.patience_s is not None:
            self._forks.tend()
            self._look.update(key for key, attempt in self._attempts.items() if attempt.waits or attempt.sweeping)
        reports = {key: attempt.ended for key, attempt in self._attempts.items() if attempt.ended is not None}
        for key in list(self._look):
            attempt = self._attempts.get(key)
            try:
                report = self._examine(key, attempt) if attempt is not None and attempt.ended is None else None
            except OSError as bad:  # no descriptor left, a disk that fails: nothing is decided, the others go on
                log.warning("attempt %s/%s could not be looked at: %s", key.task, key.attempt, bad)
                self._attempts[key].waits = True
                continue
            self._look.discard(key)
            if report is not None:
                reports[key] = report
        return list(reports.values())

    def remove(self, task: str) -> None:
        """Delete a task's folder, logs and all."""
        shutil.rmtree(self.folder / task, ignore_errors=True)

    def kept(self) -> list[Key]:
        """Answer the tasks that have a folder, with their latest attempts."""
        found = []
        for folder in (one for one in self.folder.iterdir() if one.is_dir() and not one.name.startswith(".")):
            attempts = [int(one.name) for one in folder.iterdir() if one.name.isdigit()]
            if attempts:
                found.append(Key(folder.name, max(attempts)))
        return found

    # -- waking -----------------------------------------------------------------------------------------------

    @property
    def due(self) -> int | None:
        """Nothing here happens in the house's own time."""
        return None

    @property
    def patience_s(self) -> float | None:
        """Bells can be lost: while something is expected, look once a second; while something dies, more often."""
        if any(attempt.sweeping for attempt in self._attempts.values()):
            return 0.02
        return 1.0 if any(a.waits and a.ended is None for a in self._attempts.values()) else None

    def fileno(self) -> int:
        """Answer the epoll that stands for bell, forkserver and all shims."""
        return self._epoll.fileno()

    def notice(self) -> None:
        """Take in what rang, so that `fileno` is quiet again; `collect` does it too."""
        for fd, _ in self._epoll.poll(0, 1024):
            if fd == self._bell:
                self._hear()
            elif fd == self._forks.fileno():
                self._forks.flush()
                self._attend_forks()
                self._forks.receive()
            elif fd in self._by_pidfd:
                key = self._by_pidfd[fd]
                self._release(self._attempts[key])
                self._attempts[key].dead = True
                self._look.add(key)

    def close(self) -> None:
        """Let go. Shims and their tasks go on; the forkserver ends with its socket."""
        for attempt in self._attempts.values():
            self._release(attempt)
        self._attempts.clear()
        self._epoll.close()
        os.close(self._bell)
        self._forks.close()

    # -- inside -----------------------------------------------------------------------------------------------

    def _place(self, key: Key) -> Path:
        return self.folder / key.task / str(key.attempt)

    def _cgroup(self, key: Key) -> Path | None:
        return self.memory.root / f"{key.task}-{key.attempt}" if self.memory.root is not None else None

    def _spec(self, launch: Launch) -> dict[str, Any]:
        key = launch.key
        mark = f"{key.task}/{key.attempt}"
        return {
            "protocol": facts.PROTOCOL,
            "shim": self._shim.name,
            "task": key.task,
            "attempt": key.attempt,
            "bell": "../../bell",
            "log_bytes": self._log_bytes,
            "contact": None if self.contact is None else self.contact.spec(),
            "files": _FILES,
            "memory": {
                "kind": self.memory.kind,
                "folder": str(self._cgroup(key)),
                "task_bytes": _bytes(launch.memory_mib),
            },
            "containers": [
                {
                    "name": one.name,
                    "argv": one.argv,
                    "environment": {**one.environment, MARK: f"{mark}/{one.name}"},
                    "folder": one.folder,
                    "requires": one.requires,
                    "essential": one.essential,
                    "memory_bytes": _bytes(one.memory_mib),
                    "reservation_bytes": _bytes(one.reservation_mib),
                    "stop_signal": one.stop_signal,
                    "stop_timeout_s": one.stop_timeout_s,
                    "depends_on": one.depends_on,
                    "log": f"../{log_name(one.name)}",  # seen from the attempt, wherever its data directory is moved to
                }
                for one in launch.containers
            ],
        }

    def _examine(self, key: Key, attempt: _Attempt) -> Report | None:
        """Find out where an attempt stands. The order of the looks matters: a shim may write between any two."""
        place = str(self._place(key))
        said = facts.read(f"{place}/facts") or None
        if said is not None and said["phase"] == "ended":
            return self._over(attempt, _report(key, said))
        if not attempt.dead:
            if said is not None and attempt.pidfd < 0 and not self._grasp(key, attempt):
                attempt.dead = True
                return self._examine(key, attempt)
            attempt.waits = attempt.waits and said is None
            return None if said is None else _report(key, said)
        started = facts.read(f"{place}/started")
        if started is None:
            try:
                facts.fence(place, {"protocol": facts.PROTOCOL, "tombstone": True})
            except OSError:
                attempt.waits = True  # a full disk: nothing is decided until this can be written
                return None
            return self._examine(key, attempt)  # whoever was faster, the fence stands now
        if "tombstone" in started:
            return self._over(attempt, Report(key, "never"))
        if self._grasp(key, attempt):  # it began, or its descriptor came, since it was taken for dead
            attempt.dead = False
            return self._examine(key, attempt)
        said = facts.read(f"{place}/facts") or None  # again: now that it is certainly gone, it has said all it will
        if said is not None and said["phase"] == "ended":
            return self._over(attempt, _report(key, said))
        elsewhere = started.get("boot") == facts.boot_id() and facts.start_ticks(started["pid"]) == started["ticks"]
        if not elsewhere and not sweep(key, self._cgroup(key)):
            attempt.sweeping = True
            return None
        return self._over(attempt, _lost(key, said))

    @staticmethod
    def _over(attempt: _Attempt, report: Report) -> Report:
        attempt.waits = attempt.sweeping = False
        attempt.ended = report
        return report

    def _grasp(self, key: Key, attempt: _Attempt) -> bool:
        """Hold a shim by what `started` says of it; tell whether it lives. Raises OSError when we have no descriptor left."""
        if attempt.pidfd < 0:
            place = str(self._place(key))
            started = facts.read(f"{place}/started")
            handle = facts.lives(started, place) if started is not None and "pid" in started else None
            if handle is not None:
                self._hold(key, attempt, handle)
        return attempt.pidfd >= 0

    def _hold(self, key: Key, attempt: _Attempt, handle: int) -> None:
        attempt.pidfd = handle
        self._by_pidfd[handle] = key
        self._epoll.register(handle, select.EPOLLIN)
        if attempt.stopping:
            _wake(attempt)

    def _release(self, attempt: _Attempt) -> None:
        if attempt.pidfd >= 0:
            self._by_pidfd.pop(attempt.pidfd, None)
            self._epoll.unregister(attempt.pidfd)
            os.close(attempt.pidfd)
            attempt.pidfd = -1

    def _hear(self) -> None:
        for line in os.read(self._bell, 1 << 16).split(b"\n"):
            task, _, attempt = line.partition(b"/")
            if attempt.isdigit():
                self._look.add(Key(task.decode("ascii", "replace"), int(attempt)))

    def _forked(self, name: str, handle: int | None, refused: bool) -> None:
        key = _key(name)
        attempt = self._attempts.get(key)
        if attempt is None or attempt.pidfd >= 0:
            if handle is not None:
                os.close(handle)
        elif handle is not None:
            self._hold(key, attempt, handle)
        elif refused:
            attempt.dead = True
            self._look.add(key)
        # else it lives and we have no descriptor for it: its facts are looked at once a second (`waits`)

    def _forkserver_died(self, asked: set[str]) -> None:
        """Whatever we had asked for and heard nothing of is decided by the fence."""
        self._epoll.register(self._forks, select.EPOLLIN)
        for key in map(_key, asked):
            if key in self._attempts:
                self.watch(key)

    def _attend_forks(self) -> None:
        if self._forks.fileno() < 0:
            return  # it is gone, and another one not there yet
        self._epoll.modify(self._forks, select.EPOLLIN | (select.EPOLLOUT if self._forks.wants_to_write else 0))


def _raise_file_limit() -> None:
    """Allow us a descriptor for each running task. Tasks themselves get the limit that we were started with."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if wanted > resource.getrlimit(resource.RLIMIT_NOFILE)[0]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _wake(attempt: _Attempt) -> None:
    if attempt.pidfd >= 0:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(attempt.pidfd, signal.SIGUSR1)


def _key(name: str) -> Key:
    task, _, attempt = name.partition("/")
    return Key(task, int(attempt))


def log_name(container: str) -> str:
    """Answer the file name of a container's output."""
    return f"{container[:200]}.log"


def _bytes(mib: int | None) -> int | None:
    return None if mib is None else mib * MIB


def _report(key: Key, said: dict[str, Any]) -> Report:
    began = [one["started_at"] for one in said["containers"] if one.get("started_at") is not None]
    ended = [one["ended_at"] for one in said["containers"] if one["ended_at"] is not None]
    return Report(
        key,
        "ended" if said["phase"] == "ended" else "running",
        tuple(
            ContainerReport(one["name"], one["pid"], one["exit_code"], one["reason"], one["ended"])
            for one in said["containers"]
        ),
        said["stop_code"],
        said["reason"],
        _age_ms(said, min(began, default=None)),
        _age_ms(said, max(ended, default=None)),
    )


def _age_ms(said: dict[str, Any], at: float | None) -> int | None:
    """Answer how long ago a moment of a shim's was; None when it cannot be told (the machine was booted since)."""
    return None if at is None or said["boot"] != facts.boot_id() else max(0, round((facts.boottime() - at) * 1000))


def _lost(key: Key, said: dict[str, Any] | None) -> Report:
    known = () if said is None else _report(key, said).containers
    return Report(key, "ended", known, "InfrastructureHealth", HOST_LOST)
