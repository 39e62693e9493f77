"""Real programs as images of a test: what `house.image(name, command=...)` takes, and where it looks.

A relative `folder` or `venv` starts at the house's root: the folder of the test's file. Without a `venv` the programs beside the
interpreter that runs the test come first in PATH, so `python` is that very one, with what is installed there.
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasuki.services.tasks.model import BASE_PATH
from tasuki.values.config import Image

OF_PROGRAMS = ("folder", "venv", "environment", "stop_signal")
"""What goes with `command=`."""


def program(name: str, command: Sequence[str], root: Path, given: Mapping[str, Any]) -> Image:
    """Answer the image of a program. Raises `TypeError` for what no program takes, `ValueError` for a folder that isn't there."""
    if strange := given.keys() - set(OF_PROGRAMS):
        known = ", ".join(("command", *OF_PROGRAMS))
        raise TypeError(f'image("{name}"): a program has no {min(strange)}=; there is {known}')
    if isinstance(command, str) or not command:
        raise TypeError(f'image("{name}"): command is a list of words, like ["python", "etl.py"]')
    stop_signal = given.get("stop_signal", "SIGTERM")
    if stop_signal not in signal.Signals.__members__:
        raise ValueError(f'image("{name}"): no signal is called {stop_signal}; they are named like SIGTERM')
    folder = _there(name, "folder", root, given.get("folder") or ".")
    venv = _there(name, "venv", root, given["venv"]) if given.get("venv") is not None else None
    environment = dict(given.get("environment") or {})
    if venv is None:
        environment = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{BASE_PATH}", **environment}
        if command[0] == "python":  # some systems have python3 only
            command = [sys.executable, *command[1:]]
    return Image(name, folder, tuple(command), venv=venv, stop_signal=stop_signal, environment=environment)


def _there(name: str, what: str, root: Path, given: str | Path) -> Path:
    found = root / given
    if not found.is_dir():
        relative = (
            "" if Path(given).is_absolute() else f": a relative {what} starts at {root}, the folder of the test's file"
        )
        raise ValueError(f'image("{name}"): there is no {what} {found}{relative}')
    return found.resolve() if what == "folder" else found
