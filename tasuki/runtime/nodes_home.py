"""What makes a data directory a node's own: an id that is made once, and a lock that one process holds."""

import hashlib
import os
import platform
from pathlib import Path

from tasuki import __version__
from tasuki.runners.facts import boot_id
from tasuki.services.tasks.nodes import Joining
from tasuki.services.tasks.setting import Here
from tasuki.store.sqlite_file import lock, sync_folder
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.errors import ConfigError


def hold(config: Config) -> int:
    """Hold the data directory for this process, as SQLite's store does; answer the descriptor. Raises `StoreBusy`."""
    return lock(config.data / "tasuki.db")


def node_id(folder: Path, chance: Chance) -> str:
    """Answer the directory's id, making it at the first start. Raises `ConfigError` when it is not one."""
    file = folder / "node_id"
    if not file.exists():
        draft = file.with_name(f".node_id.{os.getpid()}")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, f"{chance.hex(12)}\n".encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        draft.rename(file)
        sync_folder(folder)
    found = file.read_text().strip()
    if len(found) != 12 or not set(found) <= set("0123456789abcdef"):
        raise ConfigError(f"{file} is not what a node writes; remove it, and this directory joins as a new node")
    return found


def here(folder: Path, chance: Chance) -> Here:
    """Answer who this node is, in an incarnation of its own."""
    return Here(node_id(folder, chance), platform.node(), boot_id(), chance.hex(16))


def joining(config: Config, owner: str, memory_mib: int) -> Joining:
    """Answer what this node says of itself to the others."""
    return Joining(
        place=_place(config.data),
        url=url_of(platform.node() if config.host in {"0.0.0.0", "::"} else config.host, config.port),  # noqa: S104 - read
        version=__version__,
        owner=owner,
        dev=config.dev,
        memory_mib=memory_mib,
        lost_ms=int(config.lost_node_s * 1000),
        images=tuple(sorted(config.images)),
    )


def url_of(host: str, port: int) -> str:
    """Answer where clients reach the node."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _place(folder: Path) -> str:
    """Answer where the directory is: a copy of it is elsewhere."""
    facts = folder.stat()
    return f"{platform.node()}/{boot_id()}/{facts.st_dev}/{facts.st_ino}"


def digest(key: str, secret: str) -> str:
    """Answer what tells two owners' keys apart, and nothing else."""
    return hashlib.sha256(f"owner {key} {secret}".encode()).hexdigest()
