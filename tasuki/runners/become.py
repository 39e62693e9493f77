"""The moment between fork and exec, and what a container's output goes to. Standard library only."""

# ruff: noqa: PTH112, S606 - pathlib would double what a shim imports; a container is not a shell command

import ctypes
import os
import resource
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from tasuki.runners.tree import Cgroups, Limited

NO_COMMAND = "CannotStartContainerError: exec "
"""How a complaint begins when all was ready but the command; it ends with an exit code all the same."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SIGNALS = tuple(n for n in range(1, 32) if n not in {signal.SIGKILL, signal.SIGSTOP})
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def become(container: Limited, cgroups: Cgroups | None, shim: int, writer: int, files: int) -> NoReturn:
    """Turn the child into the container's command. A complaint means that it could not even try."""
    spec = container.spec
    code = 127
    try:
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)  # what the forkserver or Python ignores, a task does not
        os.setsid()
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != shim:
            os._exit(137)
        if cgroups is not None:
            cgroups.join(container)
        set_oom_score("0")
        os.umask(0o022)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        log = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        missing = next((folder for folder in spec["requires"] if not os.path.isdir(folder)), None)
        if missing is not None:
            os.write(writer, f"CannotStartContainerError: the folder {missing} does not exist".encode()[:4000])
            os._exit(127)
        os.chdir(spec["folder"])
    except BaseException as bad:  # noqa: BLE001 - whatever it is, the task is told
        os.write(writer, f"CannotStartContainerError: {bad}".encode()[:4000])
        os._exit(127)
    try:
        os.execvpe(spec["argv"][0], spec["argv"], spec["environment"])
    except FileNotFoundError:
        os.write(2, f"tasuki: {spec['argv'][0]}: command not found\n".encode())
        os.write(writer, f"{NO_COMMAND}{_not_found(spec)}".encode()[:4000])
    except BaseException as bad:  # noqa: BLE001
        os.write(2, f"tasuki: {spec['argv'][0]}: {bad}\n".encode())
        os.write(writer, f"{NO_COMMAND}{spec['argv'][0]}: {bad}".encode()[:4000])
        code = 126
    os._exit(code)


def _not_found(spec: Mapping[str, Any]) -> str:
    """Say where a command was looked for, and what helps."""
    program = spec["argv"][0]
    if "/" in program:
        return f"{program}: no such file in {spec['folder']}, or what its first line names is not there"
    return (
        f"{program}: executable file not found in PATH, which is {spec['environment'].get('PATH', os.defpath)}; "
        "give the image a venv, or name the program by its absolute path"
    )


def set_oom_score(value: str) -> None:
    """Make us the last to be killed when the machine itself runs out of memory; a container is like anybody."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        with suppress(OSError):  # to be spared takes a right that not everybody has
            os.write(fd, value.encode())
    finally:
        os.close(fd)


def roll(path: str, cap: int) -> int:
    """Move a log's last `cap` bytes to `PATH.1` and start it anew, in place: its writers keep their descriptor.

    What is written meanwhile comes along, up to a bound: one that writes as fast as we copy must not hold the shim.
    """
    source = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        size = os.fstat(source).st_size
        target = os.open(f"{path}.1", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            offset = max(0, size - cap)
            while offset < size + cap and (sent := os.sendfile(target, source, offset, 1 << 20)) > 0:
                offset += sent
        finally:
            os.close(target)
        os.ftruncate(source, 0)
        os.write(
            source, f"tasuki: the log passed {cap} bytes; what came before is in {path.rpartition('/')[2]}.1\n".encode()
        )
        return os.fstat(source).st_size
    finally:
        os.close(source)
