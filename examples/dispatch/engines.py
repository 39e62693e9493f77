"""The engines' own environments: made once from each engine's lock file, made again when it changes."""

import hashlib
import subprocess
import sys
from pathlib import Path

from tasuki.cli.complaints import Complaint

ENGINES = Path(__file__).resolve().parent / "engines"
VERSIONS = ("v1", "v2")


def missing() -> list[str]:
    """Answer the engines that have no environment yet, or one from another lock file."""
    return [version for version in VERSIONS if not _is_ready(version)]


def set_up(versions: list[str]) -> None:
    """Make environments, side by side. Raises `Complaint` with what pip said."""
    running = [(version, _install(version)) for version in versions]
    ended = [(version, *process.communicate(), process.returncode) for version, process in running]
    for version, _, said, code in ended:
        if code != 0:
            words = said.strip().splitlines() or ["no reason was given"]
            raise Complaint(
                f"engine {version}: its environment could not be made: {words[-1]}", hint=str(ENGINES / version)
            )
        _marker(version).write_text(_fingerprint(version))


def _install(version: str) -> "subprocess.Popen[str]":
    folder = ENGINES / version
    script = (
        '"$0" -m venv --clear .venv && .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input'
        " --only-binary :all: --require-hashes --requirement requirements.lock"
    )
    return subprocess.Popen(
        ["sh", "-c", script, sys.executable], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _is_ready(version: str) -> bool:
    marker = _marker(version)
    return marker.is_file() and marker.read_text() == _fingerprint(version)


def _marker(version: str) -> Path:
    return ENGINES / version / ".venv" / "made-from"


def _fingerprint(version: str) -> str:
    lock = (ENGINES / version / "requirements.lock").read_bytes()
    return hashlib.sha256(lock + sys.version.encode()).hexdigest()
