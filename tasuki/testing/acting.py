"""The cast: what each image does when a task runs it, said by the test instead of by a program.

::

    house.image("routing-v1", minutes=61)
    house.image("flaky", exit_code=3, times=2).then(seconds=5)
    house.image("job", lambda run: 1 if run.environment["DATE"] == "" else Script.lasting(minutes=3))

The cast is the world outside: it outlives the node's crashes, and goes on while there is none. What a test gives to be called
(a rule, an effect) runs in a thread of its own, one after the other, while house time stands still: it may call the house.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tasuki.runners.runner import StartFailed
from tasuki.testing import clock
from tasuki.testing.scripted import Script
from tasuki.values.attempts import (
    ESSENTIAL_EXITED,
    HOST_LOST,
    OUT_OF_MEMORY,
    ContainerReport,
    Key,
    Launch,
    Report,
)
from tasuki.values.instant import Clock, Instant

KILLED, TERMINATED = 137, 143
WORDS = frozenset({*clock.WORDS} | {"exit_code", "output", "memory_mib", "effect", "forever", "drain_seconds"})
"""What `Script.lasting` takes."""


class ScriptMissing(AssertionError):
    """A task runs an image of which the test has not said what it does."""


@dataclass(slots=True, eq=False)
class Run:
    """One run of an image. `number` counts the image's runs, `attempt` those of them for the same execution, both from 1."""

    task: str
    image: str
    container: str
    environment: Mapping[str, str]
    command: tuple[str, ...]
    memory_mib: int | None
    number: int
    attempt: int
    started: Instant
    exit_code: int | None = None
    output: str = ""

    @property
    def execution(self) -> str:
        """The ARN of the execution (or the pipe) that started it; empty for RunTask over the API."""
        return self.environment.get("TASUKI_ORIGIN_ARN", "")


Rule: TypeAlias = Callable[[Run], "Script | int | None"]
"""What a run does: the exit code (None is 0), or a script of how it goes on. Called when the run begins."""


class Part:
    """The part that an image plays: its scripts in turn, the last one for ever unless it says `times`."""

    def __init__(self, image: str, runs: list[Run] | None = None) -> None:
        self.image = image
        self.runs: list[Run] = [] if runs is None else runs
        """Every run that began, in order."""
        self._acts: list[tuple[Script | Rule, int | None]] = []
        self._before = len(self.runs)

    def then(self, act: Script | Rule | None = None, *, times: int | None = None, **script: Any) -> "Part":
        """Add what comes after: a script, a rule, or the words of `Script.lasting`. `times`: for so many runs."""
        if self._acts and self._acts[-1][1] is None:
            raise TypeError(f'image("{self.image}"): what comes before .then() must say times=')
        if act is not None and script:
            raise TypeError(f'image("{self.image}"): give a rule or {", ".join(script)}, not both')
        if strange := script.keys() - WORDS:
            raise TypeError(
                f'image("{self.image}"): no {min(strange)}=; there is {", ".join(sorted(WORDS))}, or command= for a program'
            )
        self._acts.append((act if act is not None else Script.lasting(**script), times))
        return self

    def act(self, number: int) -> "Script | Rule":
        """Answer what the run of that number does. Raises `ScriptMissing`."""
        before = self._before
        for act, times in self._acts:
            if times is None or number <= before + times:
                return act
            before += times
        raise ScriptMissing(
            f'image "{self.image}" was scripted for {before} runs in all, and this is number {number}; '
            "add .then(...) for those that follow"
        )


@dataclass(slots=True, eq=False)
class _Play:
    launch: Launch
    run: Run
    script: Script | None = None
    ends: Instant | None = None
    effect: Callable[[Any], Any] | None = None
    stopped: bool = False
    lost: bool = False
    told: bool = False
    ended: Report | None = None


@dataclass(slots=True, eq=False)
class _Work:
    """Something of the test's that is called in a thread; `settle` takes the answer, on the node's thread."""

    call: Callable[[], Any]
    settle: Callable[[Any], None]
    answer: Any = None
    over: bool = False


@dataclass(slots=True, eq=False)
class Cast:
    """A `Runner` of scripted images, and a courier that the clock waits for while something of the test's runs.

    `wake` is the present node's: it has `resume` called on the node's thread. `troubles` are what the test has to hear of.
    """

    clock: Clock
    parts: dict[str, Part] = field(default_factory=dict)
    troubles: list[BaseException] = field(default_factory=list)
    wake: Callable[[], None] = lambda: None
    programs: bool = False
    """Whether an image may be a program instead."""
    worker: int | None = None
    """The thread in which something of the test's runs just now."""
    _attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Runs by image and execution."""
    _plays: dict[Key, _Play] = field(default_factory=dict)
    _tombstones: set[Key] = field(default_factory=set)
    _never: set[Key] = field(default_factory=set)
    _works: deque[_Work] = field(default_factory=deque)
    _in_hand: _Work | None = None

    name = "what the test runs in its tasks"
    patience_s = None

    # -- a courier --------------------------------------------------------------------------------------------

    @property
    def busy(self) -> int:
        """How much of the test's runs, or waits to be run."""
        return len(self._works) + (self._in_hand is not None)

    def resume(self) -> None:
        """Settle what is over, and begin with what is next: on the node's thread."""
        work = self._in_hand
        if work is not None:
            if not work.over:
                return
            self._in_hand = None
            work.settle(work.answer)
        if self._works:
            self._in_hand = self._works.popleft()
            threading.Thread(target=self._perform, args=(self._in_hand,), name="tasuki-task", daemon=True).start()

    def _perform(self, work: _Work) -> None:
        self.worker = threading.get_ident()
        try:
            work.answer = work.call()
        except BaseException as bad:  # noqa: BLE001 - it is the test's, and raised there
            work.answer = 1
            self.troubles.append(bad)
        self.worker = None
        work.over = True
        self.wake()

    def _submit(self, work: _Work) -> None:
        self._works.append(work)
        if self._in_hand is None:
            self.resume()

    # -- a runner ---------------------------------------------------------------------------------------------

    def start(self, launch: Launch) -> None:
        """Begin a run, unless a tombstone stands there."""
        if launch.key in self._tombstones:
            self._never.add(launch.key)
            return
        assert launch.key not in self._plays, "an attempt is started at most once"
        leading = next((one for one in launch.containers if one.essential), launch.containers[0])
        try:
            part = self._part(leading.image)
            act = part.act(len(part.runs) + 1)
        except ScriptMissing as bad:
            self.troubles.append(bad.with_traceback(None))  # the sentence says it all
            raise StartFailed(str(bad)) from None
        origin = leading.environment.get("TASUKI_ORIGIN_ARN", "")
        if origin:
            self._attempts[leading.image, origin] += 1
        run = Run(
            task=leading.environment.get("TASUKI_TASK_ARN", launch.key.task),
            image=leading.image,
            container=leading.name,
            environment=dict(leading.environment),
            command=leading.argv,
            memory_mib=leading.memory_mib or launch.memory_mib,
            number=len(part.runs) + 1,
            attempt=self._attempts[leading.image, origin] if origin else 1,
            started=self.clock.now(),
        )
        part.runs.append(run)
        play = self._plays[launch.key] = _Play(launch, run)
        if isinstance(act, Script):
            self._decide(play, act)
        else:
            self._submit(_Work(lambda: act(run), lambda answer: self._decide(play, answer)))

    def _part(self, image: str) -> Part:
        if image not in self.parts:
            raise ScriptMissing(_unknown(image, self.parts, self.programs))
        return self.parts[image]

    def _decide(self, play: _Play, answer: Any) -> None:
        """Note how a run goes on: as its script says, or that it is over."""
        script = answer if isinstance(answer, Script) else Script(exit_code=_code(answer))
        play.script, play.effect = script, script.effect
        play.run.output += script.output
        if play.ends is None and not script.forever:  # it may have been stopped meanwhile
            play.ends = play.run.started + script.duration_ms

    def watch(self, key: Key) -> None:
        """Take over: tell of it again, or rule that it never began."""
        play = self._plays.get(key)
        if play is not None:
            play.told = False
        else:
            self._tombstones.add(key)
            self._never.add(key)

    def has(self, key: Key) -> bool:
        """Tell whether it began here."""
        return key in self._plays

    def stop(self, key: Key) -> bool:
        """Have it end after its drain, by SIGTERM or, when that takes too long, by SIGKILL."""
        play = self._plays.get(key)
        if play is None:
            return key in self._never
        if play.stopped or play.ended is not None:
            return True
        play.stopped = True
        drain_ms = play.script.drain_ms if play.script is not None else 0
        at = self.clock.now() + min(drain_ms, _grace_ms(play))
        play.ends = at if play.ends is None else min(play.ends, at)
        return True

    def lose(self, task: str) -> None:
        """Have the machine lose a task, with what it ran. Raises KeyError for one that does not run."""
        running = (one for key, one in self._plays.items() if task.endswith(key.task) and one.ended is None)
        play = next(running, None)
        if play is None:
            raise KeyError(f"no scripted task {task} runs")
        play.lost, play.ends, play.effect = True, self.clock.now(), None

    def collect(self, settled: Collection[Key] = ()) -> list[Report]:
        """Tell what the scripts say has happened by now."""
        for key in settled:
            self._plays.pop(key, None)
            self._never.discard(key)
        now = self.clock.now()
        reports = [Report(key, "never") for key in sorted(self._never)]
        for play in list(self._plays.values()):
            if self._is_due(play, now):
                self._end(play)
            if play.ended is not None:
                reports.append(play.ended)
            elif not play.told:
                play.told = True
                containers = tuple(ContainerReport(one.name, pid=1) for one in play.launch.containers)
                reports.append(Report(play.launch.key, "running", containers, began_ms=now - play.run.started))
        return reports

    @staticmethod
    def _is_due(play: _Play, now: Instant) -> bool:
        return play.ended is None and play.script is not None and play.ends is not None and play.ends <= now

    def _end(self, play: _Play) -> None:
        """End a run; what it still does to the world comes before, and is waited for."""
        effect, script = play.effect, play.script
        if effect is not None and not play.stopped:
            play.script, play.effect = None, None  # nothing is due of it until its effect is over

            def over(answer: Any) -> None:
                play.script = script
                if _code(answer) and script is not None:
                    play.script = replace(script, exit_code=_code(answer))

            self._submit(_Work(lambda: effect(play.run), over))
            return
        now, ends = self.clock.now(), play.ends
        assert script is not None
        assert ends is not None
        code: int | None = script.exit_code
        reason = None
        why: tuple[str, str | None] = ("EssentialContainerExited", ESSENTIAL_EXITED)
        limit = play.run.memory_mib
        if play.lost:
            code, why = None, ("InfrastructureHealth", HOST_LOST)
        elif play.stopped:
            code, why = KILLED if script.drain_ms > _grace_ms(play) else TERMINATED, ("UserInitiated", None)
        elif script.out_of_memory or (limit is not None and (script.memory_mib or 0) > limit):
            code, reason = KILLED, OUT_OF_MEMORY
        play.run.exit_code = code
        containers = tuple(
            ContainerReport(one.name, 1, code, reason, ended=True)
            if one.name == play.run.container
            else ContainerReport(one.name, 1, None if play.lost else TERMINATED if one.essential else 0, ended=True)
            for one in play.launch.containers
        )
        play.ended = Report(play.launch.key, "ended", containers, *why, now - play.run.started, now - ends)

    def remove(self, task: str) -> None:
        """Nothing was written."""

    def kept(self) -> list[Key]:
        """Nothing is kept of what is over."""
        return []

    def notice(self) -> None:
        """Nothing rings."""

    @property
    def due(self) -> Instant | None:
        """The next end in the scripts."""
        ends = [
            one.ends
            for one in self._plays.values()
            if one.ends is not None and one.ended is None and one.script is not None
        ]
        return min(ends, default=None)

    def fileno(self) -> int:
        """Answer that there is no descriptor."""
        return -1

    def close(self) -> None:
        """The world goes on."""


def _code(answer: Any) -> int:
    """Read what a function of the test's answered: a number is an exit code, anything else is no failure."""
    return answer if isinstance(answer, int) and not isinstance(answer, bool) else 0


def _grace_ms(play: _Play) -> int:
    return next(one.stop_timeout_s for one in play.launch.containers if one.name == play.run.container) * 1000


def _unknown(image: str, parts: Mapping[str, Part], programs: bool) -> str:
    known = f"; scripted are {', '.join(sorted(parts))}" if parts else ""
    program = f', or house.image("{image}", command=[...]) for a program' if programs else ""
    return (
        f'a task runs image "{image}", and the test has not said what that does{known}. '
        f'Say it before: house.image("{image}", minutes=5) or house.image("{image}", lambda run: 0){program}'
    )
