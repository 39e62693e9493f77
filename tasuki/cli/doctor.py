"""`doctor`: what this machine can do, before a node is asked to do it."""

import errno
import os
import platform
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.reach import read_node
from tasuki.runtime.clock import SystemClock
from tasuki.values.errors import StoreError

_FLUSH_FOR_MS = 400
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `state` is ok, limited (a node runs, with less) or no (a node cannot run)."""

    what: str
    state: str
    found: str
    advice: str = ""


def examine(data: Path, port: int, *, as_json: bool) -> Code:
    """Look at everything; print it; `Code.NO` if a node could not run here."""
    findings = [_python(), _sqlite(), _memory(), _cgroup(), *_disk(data), _port(port, data), _processes()]
    return _show(findings, as_json=as_json)


def examine_store(data: Path, url: str | None, *, as_json: bool) -> Code:
    """Look at a store; print it; `Code.NO` if something is wrong with it. Raises `Complaint` when it can't be opened."""
    from tasuki.runtime import store_health

    try:
        found = store_health.examine(data, url)
    except StoreError as bad:
        raise Complaint(str(bad), Code.DATA) from bad
    return _show([Finding(*one) for one in found], as_json=as_json)


def _show(findings: list[Finding], *, as_json: bool) -> Code:
    if as_json:
        screen.show_json([asdict(finding) for finding in findings])
    else:
        screen.show_table([asdict(f) for f in findings], ("what", "state", "found", "advice"), empty="")
    return Code.NO if any(finding.state == "no" for finding in findings) else Code.DONE


def _python() -> Finding:
    good = sys.version_info >= (3, 11)
    return Finding("python", "ok" if good else "no", platform.python_version(), "" if good else "needs 3.11 or newer")


def _sqlite() -> Finding:
    import apsw

    return Finding("sqlite", "ok", f"{apsw.sqlite_lib_version()}, comes with the package")


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    mib = memory.total // 2**20
    advice = "" if mib >= 1024 else "tasks that ask for more than is free are refused"
    found = f"{mib} MiB, {memory.available // 2**20} MiB available; tasks may use three quarters unless tasuki.toml says otherwise"
    return Finding("memory", "ok" if mib >= 1024 else "limited", found, advice)


def _cgroup() -> Finding:
    """Tell whether a task's memory limit can be the kernel's business (else the tree's RSS is watched)."""
    reason = "no memory cgroup"
    for version, folder in _cgroup_places():
        probe = folder / f"tasuki-doctor-{os.getpid()}"
        try:
            probe.mkdir()
            probe.rmdir()
        except OSError as refused:
            reason = f"cgroup {version} at {folder}: {refused.strerror}"
        else:
            return Finding("memory limits", "ok", f"cgroup {version} at {folder}: the kernel enforces them")
    return Finding(
        "memory limits", "limited", reason, "limits are watched by polling; delegate a cgroup for exact ones"
    )


def _cgroup_places() -> Iterator[tuple[str, Path]]:
    """Yield where a memory cgroup could be made: version, folder."""
    if (_CGROUPS / "memory").is_dir():
        yield "v1", _CGROUPS / "memory"
    if (_CGROUPS / "cgroup.controllers").is_file():
        own = Path("/proc/self/cgroup").read_text().partition("0::/")[2].splitlines()
        yield "v2", _CGROUPS / (own[0] if own else "")


def _disk(data: Path) -> Iterator[Finding]:
    """Write and flush in the data directory (or the nearest one that exists), as every reply does."""
    folder = next(place for place in (data.absolute(), *data.absolute().parents) if place.is_dir())
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            clock, count = SystemClock(), 0
            began = clock.now()
            while (spent := clock.now() - began) < _FLUSH_FOR_MS:
                probe.write(b"x" * 4096)
                probe.flush()
                os.fdatasync(probe.fileno())
                count += 1
    except OSError as refused:
        yield Finding("data directory", "no", f"{folder}: {refused.strerror}", "choose another with --data DIR")
        return
    rate = count * 1000 // spent
    free = psutil.disk_usage(str(folder)).free // 2**20
    yield Finding("data directory", "ok" if free > 512 else "limited", f"{folder}, {free} MiB free")
    advice = "" if rate >= 200 else "each reply waits for a flush; put the data on a faster disk"
    yield Finding("disk flushes", "ok" if rate >= 200 else "limited", f"{rate} a second", advice)


def _port(port: int, data: Path) -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as refused:
            used = refused.errno == errno.EADDRINUSE
            if used and (pid := _own_node(port, data)) is not None:
                return Finding("port", "ok", f"{port} is held by the node on {data} (pid {pid}), which runs")
            return Finding(
                "port", "no", f"{port} is {'in use' if used else refused.strerror}", "choose another with --port N"
            )
    return Finding("port", "ok", f"{port} is free")


def _own_node(port: int, data: Path) -> int | None:
    """Answer the pid of the node that runs on `data`, if it is the one at this port."""
    try:
        node = read_node(data)
    except Complaint:
        return None
    return node.pid if urlsplit(node.url).port == port and node.is_there() else None


def _processes() -> Finding:
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    good = limit >= 1024
    return Finding(
        "open files", "ok" if good else "limited", f"up to {limit}", "" if good else "raise it: ulimit -n 4096"
    )
