"""The attendant of the tasks: takes what the room decided to the runner, and what the runner saw to the room.

One round::

    settle   a unit      what the runner reports is noted: running, ended, never began
    claim    a unit      waiting tasks are pinned to this node, host and boot; what is to stop is listed
    start    outside     the runner starts the claimed attempts, whose rows are on disk by now
    stop     outside     the runner is asked to stop (again: asking twice is harmless)

Die between any two of these and the next node goes on: `open` has the runner *watch* every claimed attempt, which
ends in one of three ways: it still runs and is adopted; it ended, and its facts are read; it never began, and now
never will, so the task is claimed again as another attempt. One that began and was lost with its shim is never run
again: it stops with ECS's infrastructure code, and the machine's Retry decides.

Where several nodes share the store each attends to its own tasks. One that was given up by the others (`nodes.py`) drops
what it claimed before and had not started; what it had started ends by itself, and what is left of it is cleaned away.
"""

import asyncio
import logging
import platform
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tasuki.runners import facts, home
from tasuki.runners.runner import Runner, StartFailed, StartLater
from tasuki.runtime.bell import Bell
from tasuki.services.switchboard import Switchboard
from tasuki.services.tasks import attending, claiming, nodes, polls, setting_of
from tasuki.services.tasks.setting import ALONE, Here
from tasuki.store import pages
from tasuki.store.store import Store, Tx
from tasuki.values.attempts import Key, Launch, Report
from tasuki.values.config import Config
from tasuki.values.instant import Clock, Instant

log = logging.getLogger("tasuki.tasks")

ASKED_AGAIN_S = 1.0
"""After how long a stop or a start that the runner could not take (a full disk, no descriptor) is asked again."""


def house_id(tx: Tx) -> str:
    """Answer the store's own id, which its folder of tasks bears: another store's tasks are never adopted."""
    row = tx.one(pages.SECRET)
    assert row is not None, "the first migration makes it"
    return home.house_id(row[0])


class Attendant:
    """A duty of the loop. `open` before the first round, `close` after the last; the tasks go on in between and after.

    `here` is this node where several share the store; left out, it is the only one.
    """

    name = "attendant"
    topics = ("tasks",)

    def __init__(
        self,
        *,
        store: Store,
        runner: Runner,
        bell: Bell,
        config: Config,
        switchboard: Switchboard,
        clock: Clock,
        here: Here | None = None,
        is_scripted: Callable[[Key], bool] = lambda _key: False,
    ) -> None:
        self._store, self._runner, self._bell, self._clock = store, runner, bell, clock
        self._setting = setting_of(config, switchboard)
        self._here = here or Here(ALONE, platform.node(), facts.boot_id())
        self._opened, self._is_scripted = False, is_scripted
        self._settled: set[Key] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._later: asyncio.TimerHandle | None = None
        self._to_start: deque[tuple[int | None, Launch]] = deque()
        """Claimed in a term, not started yet: kept here, so that a round that fails in the middle loses none."""
        self._untold: dict[Key, Report] = {}
        self._asked: set[Key] = set()
        self._unheard = self._starved = False
        self._stands = config.clock == "manual" and runner.fileno() >= 0
        """Our clock is moved by hand, and what runs takes real time: how long ago something was says nothing of when it was."""
        self._out: set[Key] = set()
        """Attempts that the runner has, from start (or watch) to end."""

    @property
    def running(self) -> set[Key]:
        """The attempts that run in real time, or are about to: while there are any, a clock that is moved by hand waits."""
        if self._runner.fileno() < 0:
            return set()
        real = {key for key in self._out if not self._is_scripted(key)}
        return real | {launch.key for _, launch in self._to_start}

    async def open(self) -> None:
        """Take over what a node before us started, and listen to the runner."""
        if self._opened:
            return
        here = self._here
        if await self._store.look(lambda tx: attending.any_of_others(tx, here)):
            await self._store.write(lambda tx: attending.take_over(tx, here))
        if here.term is not None:
            await self._adopt()
        for key in await self._store.read(lambda tx: attending.claimed_before(tx, here)):
            self._runner.watch(key)
            self._out.add(key)
        if here.term is not None:
            await self._clean_up()
        self._opened = True
        if self._runner.fileno() >= 0:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._runner.fileno(), self._rang)

    async def _adopt(self) -> None:
        """Take what ran here when the store was this node's alone, before it was restored into one that several share."""
        names = [key.task for key in self._runner.kept()]
        left = await self._store.look(lambda tx: nodes.left_alone(tx, names))
        if left:
            await self._store.write(lambda tx: nodes.adopt(tx, self._here, left))

    async def _clean_up(self) -> None:
        """Remove what is left of tasks that went elsewhere, or were forgotten, while this node was away."""
        kept = {key.task: key for key in self._runner.kept()}
        names = list(kept)
        gone, lost = await self._store.read(lambda tx: nodes.folders_of_others(tx, self._here, names))
        for name in gone:
            self._runner.remove(name)
        for name in lost:
            self._runner.watch(kept[name])  # it ended by itself long ago; to be sure of that costs one look

    async def round(self) -> Instant | None:
        """Settle, claim, start, stop; answer the next instant at which something happens by itself (scripted time)."""
        await self.open()
        busy = await self._settle()
        if not self._to_start:
            busy |= await self._claim()
        self._starved = False
        while self._to_start and not self._starved:
            term, launch = self._to_start[0]
            if term == self._here.term:
                await self._start(launch)
            else:
                self._runner.watch(launch.key)  # we were given up meanwhile: it is over, or never began
                self._to_start.popleft()
            await asyncio.sleep(0)  # others' turn: a burst is no reason to keep them waiting
        await self._stop()
        await self._remove_expired()
        self._be_patient()
        return self._clock.now() if busy else self._runner.due

    async def _settle(self) -> bool:
        """Note what the runner reports. What could not be noted is kept for the next round."""
        for report in self._runner.collect(self._settled):
            if report.key not in self._settled:
                self._untold[report.key] = replace(report, began_ms=None, ended_ms=None) if self._stands else report
        self._settled.clear()
        if not self._untold:
            return False
        reports = list(self._untold.values())
        await self._store.write(lambda tx: attending.settle(tx, self._setting, reports))
        self._untold.clear()
        self._settled = {one.key for one in reports if one.phase != "running"}
        self._asked -= self._settled
        self._out -= self._settled
        return True

    async def _claim(self) -> bool:
        """Claim what waits. It is on disk before anything happens outside."""
        here, term = self._here, self._here.term
        if not await self._store.look(lambda tx: claiming.waiting(tx, self._setting, here)):
            return False
        launches, any_claimed = await self._store.write(lambda tx: attending.claim(tx, self._setting, here))
        self._to_start.extend((term, launch) for launch in launches)
        return any_claimed

    async def _stop(self) -> None:
        """Pass on what is to stop, once; what the runner could not take is asked again."""
        self._unheard = False
        if await self._store.look(lambda tx: attending.stopping(tx, self._here)):
            for key in await self._store.read(lambda tx: attending.to_stop(tx, self._here)):
                if key not in self._asked:
                    if self._runner.stop(key):
                        self._asked.add(key)
                    else:
                        self._unheard = True

    async def _start(self, launch: Launch) -> None:
        """Start the first of those that are claimed, and strike it off; or leave it for the next round."""
        try:
            self._runner.start(launch)
            self._out.add(launch.key)
        except StartLater as bad:
            log.warning("task %s waits to be started: %s", launch.key.task, bad)
            self._starved = True
            return
        except StartFailed as bad:
            why = str(bad)
            log.warning("task %s could not be started: %s", launch.key.task, why)
            await self._store.write(lambda tx: attending.could_not_start(tx, self._setting, launch.key, why))
        self._to_start.popleft()

    async def _remove_expired(self) -> None:
        gone = await self._store.look(lambda tx: polls.expired(tx, self._setting, self._here))
        if gone:
            await self._store.read(lambda _tx: None)  # folders don't come back, and the clock may until it is on disk
            for _, name in gone:
                self._runner.remove(name)
            await self._store.write(lambda tx: polls.forget(tx, self._setting, [row for row, _ in gone]))

    def _rang(self) -> None:
        self._runner.notice()
        self._bell.ring("tasks")

    def _be_patient(self) -> None:
        """Look again after a while, if the runner expects something that might not ring."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        patience = ASKED_AGAIN_S if self._unheard or self._starved else self._runner.patience_s
        if patience is not None and self._loop is not None:
            self._later = self._loop.call_later(patience, self._bell.ring, "tasks")

    def close(self) -> None:
        """Stop listening. Nothing is stopped: what runs, runs on."""
        if self._later is not None:
            self._later.cancel()
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.remove_reader(self._runner.fileno())
        self._runner.close()
