"""The world outside a house in a test: scripted images, and beside them real programs under the process runner."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from tasuki.runners.contact import Contact
from tasuki.runners.process import ProcessRunner
from tasuki.runtime.conductor import ClockBusy
from tasuki.testing.acting import Cast
from tasuki.values.attempts import Key, Launch, Report
from tasuki.values.config import LOST_NODE_S, Image
from tasuki.values.instant import Instant

NO_FOLDER = Path("/")
LAST_S, LOOK_S = 10.0, 0.01
"""How long real tasks may take to end with the house."""


class Images(Mapping[str, Image]):
    """Every image there could be: whether anything is known of one is seen when a task runs it. `real` are programs."""

    def __init__(self) -> None:
        self.real: dict[str, Image] = {}

    def __getitem__(self, name: str) -> Image:
        """Answer what an image stands for."""
        return self.real.get(name) or Image(name, NO_FOLDER, ())

    def __iter__(self) -> Iterator[str]:
        """Name the real ones."""
        return iter(self.real)

    def __len__(self) -> int:
        """Count the real ones."""
        return len(self.real)


class Outside:
    """A `Runner` that passes each task on: to the cast, or to the process runner of the node's present life."""

    def __init__(self, cast: Cast, folder: Path | None, images: Images) -> None:
        self._cast, self._folder, self._images = cast, folder, images
        self._processes: ProcessRunner | None = None
        self._real: set[Key] = set()

    def open(self, house: str) -> Self:
        """Take part in another life of the node."""
        if self._folder is not None:
            place = self._folder / "tasks"
            contact = Contact(str(place), LOST_NODE_S)
            self._processes = ProcessRunner(place, house, contact=contact)
            contact.lift()  # nobody else could take our tasks
        return self

    def running(self) -> list[Key]:
        """Answer the attempts that run in real time."""
        return list(self._real)

    def start(self, launch: Launch) -> None:
        """Start an attempt."""
        if self._processes is not None and launch.containers[0].image in self._images.real:
            self._processes.start(launch)
            self._real.add(launch.key)
        else:
            self._cast.start(launch)

    def watch(self, key: Key) -> None:
        """Take over an attempt."""
        if self._processes is not None and key in self._real:
            self._processes.watch(key)
        else:
            self._cast.watch(key)

    def stop(self, key: Key) -> bool:
        """Ask an attempt to stop."""
        if self._processes is not None and key in self._real:
            return self._processes.stop(key)
        return self._cast.stop(key)

    def collect(self, settled: Collection[Key] = ()) -> list[Report]:
        """Answer what changed on either side."""
        reports = self._cast.collect(settled)
        if self._processes is not None:
            real = self._processes.collect(settled)
            self._real -= {one.key for one in real if one.phase != "running"}
            reports += real
        return reports

    def remove(self, task: str) -> None:
        """Forget a task."""
        if self._processes is not None:
            self._processes.remove(task)

    def kept(self) -> list[Key]:
        """Answer the real tasks of which something is kept."""
        return self._processes.kept() if self._processes is not None else []

    @property
    def due(self) -> Instant | None:
        """The next end in the scripts."""
        return self._cast.due

    @property
    def patience_s(self) -> float | None:
        """The process runner's."""
        return self._processes.patience_s if self._processes is not None else None

    def notice(self) -> None:
        """Take in what rang."""
        if self._processes is not None:
            self._processes.notice()

    def fileno(self) -> int:
        """The process runner's."""
        return self._processes.fileno() if self._processes is not None else -1

    def close(self) -> None:
        """End this life's part."""
        if self._processes is not None:
            self._processes.close()
            self._processes = None

    def log_of(self, task: str) -> str:
        """Answer what a real task has printed."""
        if self._folder is None:
            return ""
        place = self._folder / "tasks" / task.rpartition("/")[2]
        return "".join(one.read_text(errors="replace") for one in sorted(place.glob("*.log")))

    def end(self, rest: Callable[[], None]) -> None:
        """Have the real tasks end that still run, before their house goes."""
        if not self._real or self._processes is None:
            return
        for key in list(self._real):
            with suppress(OSError):
                self._processes.stop(key)
        until = time.monotonic() + LAST_S
        while self._real and time.monotonic() < until:
            with suppress(ClockBusy):  # a thread of the test's was interrupted while it moved the clock
                rest()
            time.sleep(LOOK_S)
