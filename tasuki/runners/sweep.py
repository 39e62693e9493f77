"""What is left of an attempt whose shim was killed: found by its cgroup and by its mark, and killed.

Containers die with their shim (PDEATHSIG); these are their orphans. Every process carries the mark of its attempt in
its environment from the start, so it is recognised as ours before it is killed, by pidfd: a pid used again is spared.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

from tasuki.runners.facts import WITHOUT_MEANS
from tasuki.runners.tree import MARK, carries
from tasuki.values.attempts import Key


def sweep(key: Key, cgroup: Path | None) -> bool:
    """Kill what is left; tell whether there was nothing. Raises OSError when that cannot be known (no descriptor left)."""
    mark = f"{MARK}={key.task}/{key.attempt}/".encode()
    found = 0
    for pid in {*_members(cgroup), *_marked(mark)}:
        try:
            handle = os.pidfd_open(pid)
        except OSError as bad:
            _is_gone(bad)
            continue
        try:
            if pid in _members(cgroup) or carries(pid, mark):
                found += 1
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except OSError as bad:
            _is_gone(bad)
            continue
        finally:
            os.close(handle)
    if found == 0 and cgroup is not None:
        _remove(cgroup)
    return found == 0


def _is_gone(bad: OSError) -> None:
    """Pass over what has gone meanwhile, not over our own want of descriptors."""
    if bad.errno in WITHOUT_MEANS:
        raise bad


def _members(cgroup: Path | None) -> set[int]:
    pids: set[int] = set()
    if cgroup is not None:
        for procs in (cgroup / "cgroup.procs", *cgroup.glob("*/cgroup.procs")):
            try:
                pids.update(map(int, procs.read_text().split()))
            except OSError as bad:
                _is_gone(bad)
    return pids


def _marked(mark: bytes) -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and carries(int(name), mark)]  # noqa: PTH208


def _remove(cgroup: Path) -> None:
    with suppress(OSError):
        for inner in cgroup.iterdir():
            if inner.is_dir():
                inner.rmdir()
        cgroup.rmdir()
