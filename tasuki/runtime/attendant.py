"""The attendant of the tasks: takes what the room decided to the runner, and what the runner saw to the room.

One round::

    settle   a unit      what the runner reports is noted: running, ended, never began
    claim    a unit      waiting tasks are pinned to this host and boot; what is to stop is listed
    start    outside     the runner starts the claimed attempts, whose rows are on disk by now
    stop     outside     the runner is asked to stop (again: asking twice is harmless)

Die between any two of these and the next node goes on: `open` has the runner *watch* every claimed attempt, which
ends in one of three ways: it still runs and is adopted; it ended, and its facts are read; it never began, and now
never will, so the task is claimed again as another attempt. One that began and was lost with its shim is never run
again: it stops with ECS's infrastructure code, and the machine's Retry decides.
"""

import asyncio
import hashlib
import logging
import platform
from collections import deque
from contextlib import suppress

from tasuki.runners import facts
from tasuki.runners.runner import Runner, StartFailed, StartLater
from tasuki.runtime.bell import Bell
from tasuki.services.switchboard import Switchboard
from tasuki.services.tasks import attending, polls, setting_of
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
    return hashlib.sha256(f"tasks of {row[0]}".encode()).hexdigest()[:32]


class Attendant:
    """A duty of the loop. `open` before the first round, `close` after the last; the tasks go on in between and after."""

    name = "attendant"
    topics = ("tasks",)

    def __init__(
        self, *, store: Store, runner: Runner, bell: Bell, config: Config, switchboard: Switchboard, clock: Clock
    ) -> None:
        self._store, self._runner, self._bell, self._clock = store, runner, bell, clock
        self._setting = setting_of(config, switchboard)
        self._host, self._boot = platform.node(), facts.boot_id()
        self._opened = False
        self._settled: set[Key] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._later: asyncio.TimerHandle | None = None
        self._to_start: deque[Launch] = deque()
        """Claimed, not started yet: kept here, so that a round that fails in the middle loses none."""
        self._untold: dict[Key, Report] = {}
        self._asked: set[Key] = set()
        self._unheard = self._starved = False

    async def open(self) -> None:
        """Take over what a node before us started, and listen to the runner."""
        if self._opened:
            return
        for key in await self._store.read(attending.claimed_before):
            self._runner.watch(key)
        self._opened = True
        if self._runner.fileno() >= 0:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._runner.fileno(), self._rang)

    async def round(self) -> Instant | None:
        """Settle, claim, start, stop; answer the next instant at which something happens by itself (scripted time)."""
        await self.open()
        busy = await self._settle()
        if not self._to_start:
            busy |= await self._claim()
        self._starved = False
        while self._to_start and not self._starved:
            await self._start(self._to_start[0])
            await asyncio.sleep(0)  # others' turn: a burst is no reason to keep them waiting
        await self._stop()
        await self._remove_expired()
        self._be_patient()
        return self._clock.now() if busy else self._runner.due

    async def _settle(self) -> bool:
        """Note what the runner reports. What could not be noted is kept for the next round."""
        for report in self._runner.collect(self._settled):
            if report.key not in self._settled:
                self._untold[report.key] = report
        self._settled.clear()
        if not self._untold:
            return False
        reports = list(self._untold.values())
        await self._store.write(lambda tx: attending.settle(tx, self._setting, reports))
        self._untold.clear()
        self._settled = {one.key for one in reports if one.phase != "running"}
        self._asked -= self._settled
        return True

    async def _claim(self) -> bool:
        """Claim what waits. It is on disk before anything happens outside."""
        if not await self._store.look(attending.waiting):
            return False
        self._to_start.extend(
            await self._store.write(lambda tx: attending.claim(tx, self._setting, self._host, self._boot))
        )
        return True

    async def _stop(self) -> None:
        """Pass on what is to stop, once; what the runner could not take is asked again."""
        self._unheard = False
        if await self._store.look(attending.stopping):
            for key in await self._store.read(attending.to_stop):
                if key not in self._asked:
                    if self._runner.stop(key):
                        self._asked.add(key)
                    else:
                        self._unheard = True

    async def _start(self, launch: Launch) -> None:
        """Start the first of those that are claimed, and strike it off; or leave it for the next round."""
        try:
            self._runner.start(launch)
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
        gone = await self._store.look(lambda tx: polls.expired(tx, self._setting))
        if gone:
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
