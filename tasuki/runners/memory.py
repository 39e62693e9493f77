"""What this machine can do to hold a task to its memory: a cgroup v2, a cgroup v1, or watching the resident size."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["v1", "v2", "rss"]
MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Memory:
    """How limits are kept, and the cgroup below which tasks get theirs."""

    kind: Kind
    root: Path | None = None


def find_memory(mount: Path = MOUNT, own: Path = Path("/proc/self/cgroup")) -> Memory:
    """Look what is allowed here, by trying: v2 in our own delegated cgroup or (for root) at the top, else v1."""
    for root in _v2_places(mount, own):
        if _usable_v2(root):
            return Memory("v2", root)
    v1 = mount / "memory" / "tasuki"
    if (mount / "memory" / "memory.limit_in_bytes").exists() and _makes(v1) and os.access(v1 / "cgroup.procs", os.W_OK):
        return Memory("v1", v1)
    return Memory("rss")


def _v2_places(mount: Path, own: Path) -> list[Path]:
    """Answer where a v2 cgroup of ours could be: inside our own (`Delegate=yes` makes it ours), or at the top."""
    if not (mount / "cgroup.controllers").exists():
        return []
    places: list[Path] = []
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("0::"):
            ours = mount / line[3:].lstrip("/")
            if ours != mount:
                places.append(ours)
    places.append(mount)
    return [place / "tasuki" for place in places]


def _usable_v2(root: Path) -> bool:
    """Make `root` and have it hand the memory controller down.

    A cgroup with processes of its own hands nothing down, so when the parent is ours alone, we move into a leaf beside.
    """
    parent = root.parent
    try:
        if "memory" not in (parent / "cgroup.controllers").read_text().split():
            return False
        if "memory" not in (parent / "cgroup.subtree_control").read_text().split():
            if (parent / "cgroup.type").exists():  # not at the top, where the rule does not hold
                leaf = parent / "tasuki-node"
                leaf.mkdir(exist_ok=True)
                (leaf / "cgroup.procs").write_text("0")
            (parent / "cgroup.subtree_control").write_text("+memory")
        root.mkdir(exist_ok=True)
        (root / "cgroup.subtree_control").write_text("+memory")
        (root / "cgroup.procs").read_text()
    except OSError:
        return False
    return os.access(root / "cgroup.procs", os.W_OK)


def _makes(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    return True
