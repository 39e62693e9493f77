"""Images that run nothing: the configuration says how long each takes, how it ends, what it prints, how much memory it comes to.

In house time, so only where that is moved by hand: a job of an hour takes no time at all. What began when is in the attempt's folder
(`script.json`), so it outlasts the node. All other attempts are the real runner's.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tasuki.runners.process import log_name
from tasuki.runners.runner import Runner, StartFailed
from tasuki.values.attempts import ESSENTIAL_EXITED, OUT_OF_MEMORY, ContainerReport, Key, Launch, Report
from tasuki.values.config import Script
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import Clock, Instant

KILLED, TERMINATED = 137, 143


class ScriptedRunner:
    """See the module. `folder` is that of the tasks; `scripts` are by image."""

    def __init__(self, real: Runner, folder: Path, clock: Clock, scripts: Mapping[str, Script]) -> None:
        self._real, self._folder, self._clock, self._scripts = real, folder, clock, scripts
        self._plays: dict[Key, dict[str, Any]] = {}
        self._told: set[Key] = set()
        self._over: set[Key] = set()
        """Whose beginning, and whose end, was told."""

    def plays(self, key: Key) -> bool:
        """Tell whether an attempt is one of ours, and takes no real time."""
        return key in self._plays

    def start(self, launch: Launch) -> None:
        """Begin: what comes of it is decided now. Raises `StartFailed`, and what the real runner raises."""
        scripts = [self._scripts.get(one.image) for one in launch.containers]
        if not any(scripts):
            self._real.start(launch)
            return
        if not all(scripts):
            raise StartFailed("the images of a task are all scripted, or none of them")
        now = self._clock.now()
        parts = [_part(launch, at, script, now) for at, script in enumerate(scripts) if script is not None]
        play = {"ends": min(part["ends"] for part in parts if part["essential"]), "parts": parts, "stopped": False}
        place = self._place(launch.key)
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            for one, script in zip(launch.containers, scripts, strict=True):
                (place.parent / log_name(one.name)).write_text(script.output if script is not None else "")
            self._keep(launch.key, play)
        except OSError as bad:
            raise StartFailed(f"the folder of the attempt could not be written ({bad})") from bad

    def watch(self, key: Key) -> None:
        """Go on with what was begun; all else the real runner knows."""
        try:
            self._plays[key] = loads((self._place(key) / "script.json").read_text())
        except FileNotFoundError:
            self._real.watch(key)

    def stop(self, key: Key) -> bool:
        """End it now, as by its signal."""
        play = self._plays.get(key)
        if play is None:
            return self._real.stop(key)
        if self._clock.now() < play["ends"]:
            self._keep(key, play | {"ends": self._clock.now(), "stopped": True})
        return True

    def collect(self, settled: Collection[Key] = ()) -> list[Report]:
        """Tell what has begun and ended by now."""
        for key in settled:
            self._plays.pop(key, None)
            self._told.discard(key)
            self._over.discard(key)
        reports = self._real.collect(settled)
        for key, play in self._plays.items():
            if play["ends"] <= self._clock.now():
                reports.append(_ended(key, play))
                self._over.add(key)
            elif key not in self._told:
                self._told.add(key)
                running = tuple(ContainerReport(part["name"], pid=1) for part in play["parts"])
                reports.append(Report(key, "running", running))
        return reports

    def remove(self, task: str) -> None:
        """Delete a task's folder."""
        self._real.remove(task)

    def kept(self) -> list[Key]:
        """Answer the tasks that have a folder."""
        return self._real.kept()

    @property
    def due(self) -> Instant | None:
        """The next end in a script that was not told yet: it may be now, of what was stopped."""
        return min((play["ends"] for key, play in self._plays.items() if key not in self._over), default=None)

    @property
    def patience_s(self) -> float | None:
        """As the real runner's."""
        return self._real.patience_s

    def notice(self) -> None:
        """As the real runner's."""
        self._real.notice()

    def fileno(self) -> int:
        """As the real runner's."""
        return self._real.fileno()

    def close(self) -> None:
        """As the real runner's. What is scripted goes on."""
        self._real.close()

    def _place(self, key: Key) -> Path:
        return self._folder / key.task / str(key.attempt)

    def _keep(self, key: Key, play: dict[str, Any]) -> None:
        draft = self._place(key) / ".script.json"
        draft.write_text(dumps(play))
        draft.replace(self._place(key) / "script.json")
        self._plays[key] = play


def _part(launch: Launch, at: int, script: Script, now: Instant) -> dict[str, Any]:
    container = launch.containers[at]
    limits = [one for one in (container.memory_mib, launch.memory_mib) if one is not None]
    is_over = script.memory_mib is not None and any(script.memory_mib > limit for limit in limits)
    return {
        "name": container.name,
        "essential": container.essential,
        "ends": now + script.duration_ms,
        "code": KILLED if is_over else script.exit_code,
        "reason": OUT_OF_MEMORY if is_over else None,
    }


def _ended(key: Key, play: dict[str, Any]) -> Report:
    """How it ended. What had not ended by itself was stopped with the task."""
    containers = tuple(
        ContainerReport(part["name"], 1, part["code"], part["reason"], ended=True)
        if part["ends"] <= play["ends"]
        else ContainerReport(part["name"], 1, TERMINATED, ended=True)
        for part in play["parts"]
    )
    if play["stopped"]:
        return Report(key, "ended", containers, "UserInitiated")
    return Report(key, "ended", containers, "EssentialContainerExited", ESSENTIAL_EXITED)
