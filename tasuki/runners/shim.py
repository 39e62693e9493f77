# tasuki shim protocol 1
"""The shim: a tiny process that holds one attempt of a task and outlives the node.

Standard library only. A node copies these few files into the data directory, once per version, and starts its forkserver
from there: an upgrade takes nothing away from a shim that runs, which is a fork that called `main(folder)`.

The attempt's folder is the whole interface. Facts are durable when they appear (`facts.py`); a line in the
node's bell (a FIFO) says only "look", and losing it costs latency.

===============  ========  ======================================================================================
file             written   meaning
===============  ========  ======================================================================================
`launch.json`    node      what to run
`started`        shim      the fence: appears complete, by link(2), before anything runs, once and for ever. An
                           adopter that finds none puts a tombstone there, and then a late shim exits.
`facts`          shim      `phase` running or ended; containers with pid, exit code, reason; replaced as things happen
`stop`           node      please stop; then the node wakes the shim with SIGUSR1
`shim.log`       shim      complaints
===============  ========  ======================================================================================

The shim is a session leader, so no terminal reaches it, and a subreaper: whatever a container forks, daemonises or
moves to another session stays a descendant. "No children left" is therefore the proof that the tree is gone.
Containers carry PDEATHSIG, so they don't outlive a shim that is killed; their orphans are the adopter's to sweep.

SIGTERM to the shim itself means that the host is going down: the task is stopped with its grace and reported so. So it
is when the node is out of touch with a house that has others (`contact.py`), but killed in time.
Deadlines use CLOCK_BOOTTIME, which goes on while a machine sleeps and is moved by nobody.
"""

# ruff: noqa: PTH110, PTH116 - pathlib would double what a shim imports

import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any, NoReturn

from tasuki.runners import facts
from tasuki.runners.become import NO_COMMAND, adopt_orphans, become, roll, set_oom_score
from tasuki.runners.contact import FINE, KILL, Lifeline
from tasuki.runners.facts import ESSENTIAL_EXITED, OUT_OF_MEMORY, OUT_OF_TOUCH, PROTOCOL, boottime
from tasuki.runners.tree import Cgroups, Walk, descendants, kill, rss

_LOG_CHECK_S, _LOG_CHECK_MOST_S = 1.0, 5.0
_RSS_CHECK_S, _RSS_EASY_S = 0.1, 0.3
"""How often the resident size is looked at: above half of a limit, and below."""
_OOM_SETTLE_S = 3.0
"""How long after the kernel's out-of-memory notice we look for its kill counter to move."""
_AGAIN_S = 0.5
"""How soon SIGKILL is sent again to what it did not end yet, or to what was forked meanwhile."""
_GONE_S = 60.0
"""How long we wait for processes that SIGKILL does not end (stuck in the kernel) before we report without them."""


class Container:
    """One container of the task and what became of it."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.name: str = spec["name"]
        self.pid: int | None = None
        self.ticks: int | None = None
        self.ended = False
        self.exit_code: int | None = None
        self.reason: str | None = None
        self.out_of_memory = False
        self.kill_at: float | None = None
        self.started_at: float | None = None
        self.ended_at: float | None = None

    @property
    def alive(self) -> bool:
        """Started and not ended."""
        return self.pid is not None and not self.ended

    def facts(self) -> dict[str, Any]:
        """Answer what the node is told."""
        return {
            "name": self.name,
            "pid": self.pid,
            "ticks": self.ticks,
            "exit_code": self.exit_code,
            "reason": self.reason,
            "ended": self.ended,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }


class Shim:
    """One attempt, from the fence to its last fact."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.containers = [Container(one) for one in spec["containers"]]
        self.by_name = {container.name: container for container in self.containers}
        memory = spec["memory"]
        self.cgroups = Cgroups(memory, self.containers) if memory["kind"] in {"v1", "v2"} else None
        self.walk = Walk(f"{spec['task']}/{spec['attempt']}", self.containers)
        self.task_bytes: int | None = memory["task_bytes"]
        self.boot = facts.boot_id()
        self.lifeline, self.is_cut = Lifeline(spec.get("contact"), self.boot), False
        self.stop_code: str | None = None
        self.reason: str | None = None
        self.host_down = False
        self.dirty = False
        self.look_for_oom_until = 0.0
        self.next_rss = 0.0
        self.log_pause, self.next_log = _LOG_CHECK_S, boottime() + _LOG_CHECK_S
        self.log_sizes: dict[str, int] = {}
        self.wake, wake_end = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_end, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, self._host_goes_down)
        self.poll = select.poll()
        self.poll.register(self.wake, select.POLLIN)

    def _host_goes_down(self, _number: int, _frame: Any) -> None:
        self.host_down = True

    # -- the life of an attempt -------------------------------------------------------------------------------

    def run(self) -> None:
        """Live it."""
        if self.cgroups is not None:
            try:
                self.cgroups.make()
            except OSError as bad:
                sys.stderr.write(f"no cgroup ({bad}); watching the resident size instead\n")
                self.cgroups.remove()
                self.cgroups = None
            else:
                for bell in self.cgroups.events:
                    self.poll.register(bell, select.POLLIN)
        while not self._round():
            for fd, _ in self.poll.poll(self._timeout_ms()):
                try:
                    os.read(fd, 4096)
                except BlockingIOError:
                    continue
                if fd != self.wake:
                    self.look_for_oom_until = boottime() + _OOM_SETTLE_S
        self.end_tree()
        self.tell("ended")
        if self.cgroups is not None:
            self.cgroups.remove()

    def _round(self) -> bool:
        self._reap()
        if self.stop_code is None and os.path.exists("stop"):
            self._begin_stop("UserInitiated", None)
        if self.stop_code is None and self.host_down:
            self._begin_stop("InfrastructureHealth", "The host that the task ran on is shutting down")
        self._mind_contact()
        self._watch_memory()
        self._watch_logs()
        if self.stop_code is None:
            self._start_ready()
        if self.stop_code is not None:
            self._go_on_stopping()
        if all(container.ended or (self.stop_code and container.pid is None) for container in self.containers):
            return True
        if self.dirty:
            self.tell("running")
        return False

    def _timeout_ms(self) -> int:
        due = [self.next_log, self.lifeline.next_look]
        due += [c.kill_at for c in self.containers if c.alive and c.kill_at is not None]
        now = boottime()
        if now < self.look_for_oom_until:
            due.append(now + 0.02)
        if self.next_rss:
            due.append(self.next_rss)
        return max(0, int((min(due) - now) * 1000) + 1)

    def tell(self, phase: str) -> None:
        """Write the facts, then ring."""
        self.dirty = False
        tree = {
            "protocol": PROTOCOL,
            "phase": phase,
            "stop_code": self.stop_code,
            "reason": self.reason,
            "cgroups": self.cgroups is not None,
            "boot": self.boot,
            "containers": [container.facts() for container in self.containers],
        }
        facts.keep("facts", tree)
        facts.ring(self.spec)

    # -- starting ---------------------------------------------------------------------------------------------

    def _start_ready(self) -> None:
        for container in self.containers:
            if container.pid is None and not container.ended and self.stop_code is None:
                ready = self._ready(container)
                if ready is None:
                    self._begin_stop("TaskFailedToStart", f"A dependency of container {container.name} was not met")
                elif ready:
                    self._start(container)

    def _ready(self, container: Container) -> bool | None:
        for other_name, condition in container.spec["depends_on"]:
            other = self.by_name[other_name]
            if condition == "START":
                met = other.pid is not None
            elif condition == "SUCCESS" and other.ended and other.exit_code != 0:
                return None
            else:
                met = other.ended
            if not met:
                return False
        return True

    def _start(self, container: Container) -> None:
        reader, writer = os.pipe()
        shim = os.getpid()
        pid = os.fork()
        if pid == 0:
            become(container, self.cgroups, shim, writer, self.spec["files"])
        os.close(writer)
        complaint = b""
        while chunk := os.read(reader, 4096):
            complaint += chunk
        os.close(reader)
        container.pid, container.ticks, container.started_at = pid, facts.start_ticks(pid), boottime()
        self.dirty = True
        if complaint.startswith(NO_COMMAND.encode()):
            container.reason = complaint.decode("utf-8", "replace")
        elif complaint:  # the command never ran, and its place was not there
            os.waitpid(pid, 0)
            container.ended, container.ended_at, container.pid = True, boottime(), None
            container.reason = complaint.decode("utf-8", "replace")
            self._begin_stop("TaskFailedToStart", container.reason)

    # -- ending -----------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for container in self.containers:
                if container.pid == pid and not container.ended:
                    self._ended(container, status)

    def _ended(self, container: Container, status: int) -> None:
        container.ended, container.ended_at = True, boottime()
        code = os.waitstatus_to_exitcode(status)
        container.exit_code = code if code >= 0 else 128 - code
        if self.cgroups is not None and self.cgroups.killed(container):
            container.out_of_memory = True
        if container.out_of_memory:
            container.exit_code, container.reason = 137, OUT_OF_MEMORY
            if self.cgroups is not None and self.cgroups.task_over():
                self._task_over()
        self.dirty = True
        for pid in self._pids(container):
            kill(pid)  # as when the first process of a container ends
        if container.spec["essential"]:
            self._begin_stop("EssentialContainerExited", ESSENTIAL_EXITED)

    def _begin_stop(self, code: str, reason: str | None) -> None:
        if self.stop_code is None:
            self.stop_code, self.reason, self.dirty = code, reason, True

    def _mind_contact(self) -> None:
        state = self.lifeline.look()
        if state != FINE:
            self._begin_stop("InfrastructureHealth", OUT_OF_TOUCH)
        if state == KILL and not self.is_cut:
            self.is_cut = True
            for container in self.containers:
                container.kill_at = 0.0

    def _go_on_stopping(self) -> None:
        """Signal what nothing alive depends on; kill what had its time."""
        now = boottime()
        alive = [container for container in self.containers if container.alive]
        needed = {name for container in alive for name, _ in container.spec["depends_on"]}
        for container in alive:
            assert container.pid is not None
            if container.kill_at is None:
                if container.name not in needed:
                    container.kill_at = now + container.spec["stop_timeout_s"]
                    kill(container.pid, container.spec["stop_signal"])
            elif now >= container.kill_at:
                container.kill_at = now + _AGAIN_S
                for pid in {container.pid, *self._pids(container)}:
                    kill(pid)

    def end_tree(self) -> None:
        """Kill whatever is below us until nothing is."""
        give_up = boottime() + _GONE_S
        while boottime() < give_up:
            for pid in descendants():
                kill(pid)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            self.poll.poll(20)
            with suppress(BlockingIOError):
                os.read(self.wake, 4096)
        sys.stderr.write(f"processes that SIGKILL does not end: {descendants()}\n")

    # -- memory -----------------------------------------------------------------------------------------------

    def _pids(self, container: Container) -> list[int]:
        if self.cgroups is not None:
            return self.cgroups.pids(container)
        return self.walk.pids(container)

    def _watch_memory(self) -> None:
        if self.cgroups is not None:
            if boottime() < self.look_for_oom_until:
                for container in self.containers:
                    if container.alive and not container.out_of_memory and self.cgroups.killed(container):
                        container.out_of_memory = True
                        if self.cgroups.task_over():
                            self._task_over()
                        for pid in self.cgroups.pids(container):
                            kill(pid)
            return
        limited = [c for c in self.containers if c.alive and c.spec["memory_bytes"] is not None]
        if self.task_bytes is None and not limited:
            self.next_rss = 0.0
            return
        if (now := boottime()) < self.next_rss:
            return
        fullest = 0.0
        for container in limited:
            pids = self._pids(container)
            used = sum(map(rss, pids)) / container.spec["memory_bytes"]
            fullest = max(fullest, used)
            if used > 1:
                container.out_of_memory = True
                for pid in pids:
                    kill(pid)
        if self.task_bytes is not None:
            used = sum(map(rss, descendants())) / self.task_bytes
            fullest = max(fullest, used)
            if used > 1:
                self._task_over()
        self.next_rss = now + (_RSS_CHECK_S if fullest > 1 / 2 else _RSS_EASY_S)

    def _task_over(self) -> None:
        """The task as a whole is over its limit: it ends as a whole, at once."""
        for container in self.containers:
            if container.alive:
                container.out_of_memory = True
        for pid in descendants():
            kill(pid)

    # -- output -----------------------------------------------------------------------------------------------

    def _watch_logs(self) -> None:
        """Keep each log below its cap: what is over goes to `NAME.log.1`, and the file starts anew.

        A container writes straight to its file, in append mode, so no reader can die and block it, and no limit of the
        kernel's (RLIMIT_FSIZE would be a signal) ends it. The file is looked at each second while it grows, more seldom
        while it doesn't: it can pass its cap by what is written in that time.
        """
        now = boottime()
        if now < self.next_log:
            return
        grew = False
        for container in self.containers:
            path = container.spec["log"]
            try:
                size = os.stat(path).st_size
                if size > self.spec["log_bytes"]:
                    size = roll(path, self.spec["log_bytes"])
            except OSError:
                continue
            grew |= size != self.log_sizes.get(path)
            self.log_sizes[path] = size
        self.log_pause = _LOG_CHECK_S if grew else min(2 * self.log_pause, _LOG_CHECK_MOST_S)
        self.next_log = now + self.log_pause


def main(folder: str) -> NoReturn:
    """Hold the attempt in `folder`, as a process of our own, to its end."""
    code = 0
    try:
        os.setsid()
        os.chdir(folder)
        adopt_orphans()
        spec = facts.read("launch.json")
        assert spec is not None, "a launch without launch.json"
        shim = Shim(spec)
        log = os.open("shim.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if facts.fence(".", facts.identity()):
            set_oom_score("-900")
            try:
                shim.run()
            except BaseException:
                shim.end_tree()
                shim.stop_code, shim.reason = "InfrastructureHealth", "The task's shim failed; see shim.log"
                shim.tell("ended")
                raise
        else:
            sys.stderr.write("late: a tombstone stands here\n")
    except BaseException:  # noqa: BLE001 - nobody is above us
        code = 1
        with suppress(OSError):
            os.write(2, traceback.format_exc().encode())
    os._exit(code)
