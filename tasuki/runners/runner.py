"""The seam to whatever runs other people's code: four verbs, none of which blocks.

A runner knows attempts (`values/attempts.py`), not tasks, and makes no decision about them.
"""

from collections.abc import Collection
from typing import Protocol

from tasuki.values.attempts import Key, Launch, Report
from tasuki.values.instant import Instant


class StartFailed(Exception):
    """The attempt could not be started, and was not. The text says why."""


class StartLater(Exception):
    """The attempt could not be started now, and was not, for want of means that come back. To be asked again."""


class Runner(Protocol):
    """Where attempts run."""

    def start(self, launch: Launch) -> None:
        """Start an attempt. Its place in the store is committed. Raises `StartFailed`, `StartLater`."""

    def watch(self, key: Key) -> None:
        """Take over an attempt that a node before us may have started: adopt it, read its end, or rule that it never was."""

    def stop(self, key: Key) -> bool:
        """Ask an attempt to stop: its signal, its time, then SIGKILL. Twice or too late is harmless; False is "ask again"."""

    def collect(self, settled: Collection[Key] = ()) -> list[Report]:
        """Let go of what is settled, and answer what changed since the last time (and every end not yet settled)."""

    def remove(self, task: str) -> None:
        """Forget a task that is no longer shown, with its logs."""

    def kept(self) -> list[Key]:
        """Answer the tasks that something is kept of, with their latest attempts."""

    @property
    def due(self) -> Instant | None:
        """The house instant at which something will have changed by itself (scripted time only)."""

    @property
    def patience_s(self) -> float | None:
        """In how many real seconds to collect although nothing rang; None for never."""

    def notice(self) -> None:
        """Take in what rang, so that `fileno` is quiet again."""

    def fileno(self) -> int:
        """Answer a descriptor that is readable when there is something to collect; -1 for none."""

    def close(self) -> None:
        """Let go of everything but the attempts."""
