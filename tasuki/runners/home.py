"""The runner's own files in the data directory: whose it is, and what its shims run on.

Whole or not there, also after a power cut: each is written beside its place, forced to disk, and renamed.
"""

import hashlib
import os
import shutil
from pathlib import Path

from tasuki.runners.facts import sync_folder
from tasuki.values.errors import ConfigError

_SHIM_FILES = ("__init__", "become", "contact", "facts", "forkserver", "shim", "tree")


def house_id(secret: str) -> str:
    """Answer the id of a store, by the secret that it was made with and that moves along with it."""
    return hashlib.sha256(f"tasks of {secret}".encode()).hexdigest()[:32]


def claim(folder: Path, house: str) -> None:
    """Mark a folder of tasks as this store's. Raises `ConfigError` when it is another's."""
    file = folder / "house"
    owner = file.read_text() if file.exists() else ""
    if not owner:  # a disk that was full when it was made leaves it empty, and no task in the folder
        draft = file.with_suffix(f".{os.getpid()}")
        _write(draft, house.encode())
        draft.rename(file)
        sync_folder(str(folder))
    elif owner != house:
        raise ConfigError(
            f"{folder} holds the tasks of another store ({owner}, ours is {house}); "
            "choose another data directory, or put the matching database back."
        )


def publish(folder: Path) -> Path:
    """Copy the shim's files below `folder`, once per version; answer where they are. What is damaged is replaced."""
    here = Path(__file__).parent
    sources = {f"tasuki/runners/{name}.py": (here / f"{name}.py").read_bytes() for name in _SHIM_FILES}
    place = folder / hashlib.sha256(b"".join(sources.values())).hexdigest()[:16]
    sources["tasuki/__init__.py"] = b""
    if place.exists():
        if all(_holds(place / name, source) for name, source in sources.items()):
            return place
        shutil.rmtree(place)  # shims have read all they need of it
    draft = folder / f".{place.name}.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "tasuki" / "runners").mkdir(parents=True)
    for name, source in sources.items():
        _write(draft / name, source)
    for inner in ("tasuki/runners", "tasuki", ""):
        sync_folder(str(draft / inner))
    draft.rename(place)
    sync_folder(str(folder))
    return place


def _holds(file: Path, content: bytes) -> bool:
    try:
        return file.read_bytes() == content
    except OSError:
        return False


def _write(file: Path, content: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
