"""What a shim and a node tell each other through the attempt's folder. Standard library only: a shim runs on it.

A fact is written to a temporary file, forced to disk, renamed into its place, and the folder is forced too: whoever
reads it reads all of it, and a power cut takes nothing back.
"""

# ruff: noqa: PTH104, PTH108, PTH116, PTH121, PTH123 - pathlib would double what a shim imports

import errno
import json
import os
import time
from contextlib import suppress
from typing import Any

PROTOCOL = 1
OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"
OUT_OF_TOUCH = "The task's node was out of touch with the other nodes, so the task was ended before they give it up"
ESSENTIAL_EXITED = "Essential container in task exited"
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
WITHOUT_MEANS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors that say something about who looks, and nothing about what was looked for."""
_LOST_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})


def boottime() -> float:
    """Answer seconds since boot, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Answer the kernel's name for this boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_ticks(pid: int) -> int | None:
    """Answer when a process started, in clock ticks since boot; None when it is gone or a zombie.

    Raises OSError when it cannot be known: without a descriptor to look with, nobody is dead.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
    except OSError as bad:
        if bad.errno in WITHOUT_MEANS:
            raise
        return None
    return None if fields[0] in {b"Z", b"X"} else int(fields[19])


def identity() -> dict[str, Any]:
    """Answer who we are: a pid alone is used again, this is not."""
    return {
        "protocol": PROTOCOL,
        "boot": boot_id(),
        "namespace": os.stat("/proc/self/ns/pid").st_ino,
        "pid": os.getpid(),
        "ticks": start_ticks(os.getpid()),
    }


def lives(identity: dict[str, Any], folder: str) -> int | None:
    """Answer a pidfd of the process that `identity` names, if it still lives *in this folder*; else None.

    The folder is compared by where the process stands, so a copy of a data directory adopts nothing of the original.
    Raises OSError when it cannot be known (no descriptor left): that is no reason to call a process dead.
    """
    pid = identity["pid"]
    if identity["boot"] != boot_id() or identity["namespace"] != os.stat("/proc/self/ns/pid").st_ino:
        return None
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:  # asked after the handle was opened, so that both speak of the same process
        if start_ticks(pid) == identity["ticks"] and os.path.samefile(f"/proc/{pid}/cwd", folder):
            return handle
    except (FileNotFoundError, ProcessLookupError):
        pass  # it ended just now
    except OSError:
        os.close(handle)
        raise
    os.close(handle)
    return None


def sync_folder(path: str) -> None:
    """Force a folder's entries to disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fence(folder: str, tree: dict[str, Any]) -> bool:
    """Create `started` with its content, or find that somebody was faster. Durable on return.

    By link(2): the name and all of its content appear at once. Where a file system has no links, by O_EXCL.
    """
    name, draft = f"{folder}/started", f"{folder}/.started.{os.getpid()}"
    write(draft, tree)
    try:
        os.link(draft, name)
    except FileExistsError:
        return False
    except OSError as bad:
        if bad.errno not in _NO_LINKS:
            raise
        try:
            write(name, tree, os.O_EXCL)
        except FileExistsError:
            return False
    finally:
        os.unlink(draft)
    for place in (folder, f"{folder}/..", f"{folder}/../.."):
        sync_folder(place)
    return True


def write(name: str, tree: dict[str, Any], how: int = os.O_TRUNC) -> None:
    """Write a file of ours (mode 0600), forced to disk."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    try:
        left = memoryview(json.dumps(tree).encode())
        while left:  # a disk that has some room takes some of it, and says nothing
            left = left[os.write(fd, left) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def read(path: str) -> dict[str, Any] | None:
    """Read a fact; None when it is not there, empty when it was not written to its end (see `fence` without links)."""
    try:
        with open(path, "rb") as file:
            tree = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return {}
    assert isinstance(tree, dict)
    return tree


def keep(name: str, tree: dict[str, Any]) -> None:
    """Put a fact in its place, waiting for a full disk if need be: whoever calls holds it as long as they live."""
    draft = f".{name}.{os.getpid()}"
    while True:
        try:
            write(draft, tree)
            os.rename(draft, name)
            sync_folder(".")
        except OSError as bad:
            if bad.errno not in _LOST_DISK:
                raise
            time.sleep(1)
        else:
            return


def ring(spec: dict[str, Any]) -> None:
    """Tell the node, if there is one, to look at our folder."""
    try:
        fd = os.open(spec["bell"], os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # nobody listens: whoever comes back will look by himself
    try:
        with suppress(OSError):
            os.write(fd, f"{spec['task']}/{spec['attempt']}\n".encode())
    finally:
        os.close(fd)
