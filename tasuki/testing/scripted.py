"""A runner that runs nothing: a script says how long each image takes and how it ends, in the house's own time.

::

    runner = ScriptedRunner(clock, {"routing-v1": Script(minutes=61), "broken": Script(exit_code=3)})

So a job of an hour takes no time at all, and a crash of the node can be played at any point of its life: the runner
is the world outside, and lives on while nodes come and go.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tasuki.testing.clock import ManualClock, duration_ms
from tasuki.values.attempts import (
    ESSENTIAL_EXITED,
    HOST_LOST,
    OUT_OF_MEMORY,
    ContainerReport,
    Key,
    Launch,
    Report,
)
from tasuki.values.instant import Instant


@dataclass(frozen=True, slots=True)
class Script:
    """How a task of an image goes. `drain_ms` is what it needs after a stop; more than its stopTimeout is a SIGKILL.

    `forever` runs until it is stopped. `on_start` and `on_end` are called with the launch, at those instants: a task's
    effects on the world. The rest is for the testing kit (`acting.py`): what the run printed, how much memory it came to
    need (more than it may have is an end by the kernel, 137), and what it does to the world before it ends.
    """

    duration_ms: int = 0
    exit_code: int = 0
    out_of_memory: bool = False
    drain_ms: int = 0
    forever: bool = False
    on_start: Callable[[Launch], None] | None = None
    on_end: Callable[[Launch], None] | None = None
    output: str = ""
    memory_mib: int | None = None
    effect: Callable[[Any], Any] | None = None

    @classmethod
    def lasting(
        cls,
        exit_code: int = 0,
        *,
        output: str = "",
        memory_mib: int | None = None,
        effect: Callable[[Any], Any] | None = None,
        forever: bool = False,
        drain_seconds: float = 0,
        **duration: float,
    ) -> "Script":
        """A script that takes `minutes=`, `hours=` ... and then exits."""
        return cls(
            duration_ms(**duration),  # type: ignore[arg-type]
            exit_code,
            drain_ms=duration_ms(seconds=drain_seconds),
            forever=forever,
            output=output,
            memory_mib=memory_mib,
            effect=effect,
        )


@dataclass(slots=True)
class _Play:
    launch: Launch
    script: Script
    started: Instant
    ends: Instant | None
    stopped: bool = False
    lost: bool = False
    told: bool = False
    ended: Report | None = None


@dataclass(slots=True)
class ScriptedRunner:
    """See the module. `started` lists every attempt that was ever begun, in order: the proof of "never twice"."""

    clock: ManualClock
    scripts: Mapping[str, Script] = field(default_factory=dict)
    started: list[Launch] = field(default_factory=list)
    _plays: dict[Key, _Play] = field(default_factory=dict)
    _tombstones: set[Key] = field(default_factory=set)
    _never: set[Key] = field(default_factory=set)

    def start(self, launch: Launch) -> None:
        """Begin to play, unless a tombstone stands there."""
        if launch.key in self._tombstones:
            self._never.add(launch.key)
            return
        assert launch.key not in self._plays, "an attempt is started at most once"
        script = self.scripts.get(launch.containers[0].image, Script())
        now = self.clock.now()
        ends = None if script.forever else now + script.duration_ms
        self.started.append(launch)
        self._plays[launch.key] = _Play(launch, script, now, ends)
        if script.on_start is not None:
            script.on_start(launch)

    def watch(self, key: Key) -> None:
        """Take over: tell of it again, or rule that it never began."""
        play = self._plays.get(key)
        if play is not None:
            play.told = False
        else:
            self._tombstones.add(key)
            self._never.add(key)

    def stop(self, key: Key) -> bool:
        """Have it end after its drain, by SIGTERM or, when that takes too long, by SIGKILL."""
        play = self._plays.get(key)
        if play is None:
            return key in self._never
        if play.stopped or play.ended is not None:
            return True
        play.stopped = True
        grace = play.launch.containers[0].stop_timeout_s * 1000
        at = self.clock.now() + min(play.script.drain_ms, grace)
        play.ends = at if play.ends is None else min(play.ends, at)
        return True

    def lose(self, key: Key) -> None:
        """Have the host lose it: its shim is killed, and what it ran."""
        self._plays[key].lost = True
        self._plays[key].ends = self.clock.now()

    def collect(self, settled: Collection[Key] = ()) -> list[Report]:
        """Tell what the script says has happened by now."""
        for key in settled:
            self._plays.pop(key, None)
            self._never.discard(key)
        reports = [Report(key, "never") for key in sorted(self._never)]
        for play in self._plays.values():
            if play.ended is None and play.ends is not None and play.ends <= self.clock.now():
                play.ended = self._end(play)
                if play.script.on_end is not None:
                    play.script.on_end(play.launch)
            began_ms = self.clock.now() - play.started
            if play.ended is not None:
                ended_ms = self.clock.now() - play.ends if play.ends is not None else None
                reports.append(replace(play.ended, began_ms=began_ms, ended_ms=ended_ms))
            elif not play.told:
                play.told = True
                containers = tuple(ContainerReport(one.name, pid=1) for one in play.launch.containers)
                reports.append(Report(play.launch.key, "running", containers, began_ms=began_ms))
        return reports

    @staticmethod
    def _end(play: _Play) -> Report:
        code: int | None = play.script.exit_code
        reason = None
        why: tuple[str, str | None] = ("EssentialContainerExited", ESSENTIAL_EXITED)
        if play.lost:
            code, why = None, ("InfrastructureHealth", HOST_LOST)
        elif play.stopped:
            killed = play.script.drain_ms > play.launch.containers[0].stop_timeout_s * 1000
            code, why = 137 if killed else 143, ("UserInitiated", None)
        elif play.script.out_of_memory:
            code, reason = 137, OUT_OF_MEMORY
        containers = tuple(ContainerReport(one.name, 1, code, reason, ended=True) for one in play.launch.containers)
        return Report(play.launch.key, "ended", containers, *why)

    def remove(self, task: str) -> None:
        """Nothing was written."""

    def kept(self) -> list[Key]:
        """Nothing is kept of what is over."""
        return []

    def notice(self) -> None:
        """Nothing rings."""

    @property
    def due(self) -> Instant | None:
        """The next end in the script."""
        ends = [play.ends for play in self._plays.values() if play.ends is not None and play.ended is None]
        return min(ends, default=None)

    @property
    def patience_s(self) -> float | None:
        """Real time has no part in this."""
        return None

    def fileno(self) -> int:
        """Answer that there is no descriptor."""
        return -1

    def close(self) -> None:
        """The world goes on."""
