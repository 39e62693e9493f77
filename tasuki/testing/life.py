"""One node's life in a test's own process: the rooms, the door on a real port and the duties, in a thread with its own loop.

::

    test's thread     boto3 ──HTTP──┐                    advance, settle, looks (run_coroutine_threadsafe)
                                    ▼                                   │
    node's thread     door ──> units of one store in memory <── duties, conductor
                                                                        │ starts, ends
    task's thread     what the test runs in its tasks <─────────────────┘

A request is answered when the house is at rest again: whatever it set off has happened by then, as far as it can without the clock.
So a test never waits, and the same calls and the same seed give the same history.

The life ends by `end`, or as by SIGKILL: what was committed is handed to the next one, and nothing else.
"""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import uvloop
from uvicorn.server import ServerState

from tasuki.protocol import wire
from tasuki.protocol.http import Door, Receive, Scope, Send
from tasuki.runners.runner import Runner
from tasuki.runtime.attendant import Attendant, house_id
from tasuki.runtime.bell import Bell
from tasuki.runtime.clock import HandClock, WallClock
from tasuki.runtime.clock_desk import ClockDesk
from tasuki.runtime.conductor import ClockBusy, Conductor, Restless
from tasuki.runtime.conductor import Courier as Awaited
from tasuki.runtime.courier import Courier
from tasuki.runtime.loop import Duty, Loop, PollDuty, TimerDuty
from tasuki.runtime.node import ROOMS
from tasuki.services.switchboard import Switchboard
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import T, Unit
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.instant import Instant
from tasuki.values.operations import NotYet, Operation, Operations, Principal, Request

log = logging.getLogger("tasuki.testing")

AT_ONCE = ("ReceiveMessage", "GetActivityTask")
"""Long polls that are answered at once when there is nothing: their wait would end only when the clock is moved."""
LOOK_S = 0.1
MOST_ROUNDS = 10_000
"""At one instant: some ten thousands of executions take fewer, and a loop without end is told before boto3 gives up waiting."""
OWNER = "UPDATE house SET value = ? WHERE name = 'page_secret'"


class LifeOver(Exception):
    """The node died, or was ended, before it answered."""


class MemoryStore(SqliteStore):
    """SQLite in memory that can be handed on, and dies at a commit when told to. Nothing of it is ever flushed: there is no disk."""

    def __init__(self, image: bytes | None, *, clock: HandClock, chance: Chance, bell: Bell) -> None:
        super().__init__(None, clock=clock, real_clock=WallClock(), chance=chance, on_ring=bell.ring, image=image)
        self.dies_in: int | None = None
        """At which of the next commits the node dies."""
        self.on_death: Callable[[], None] = lambda: None

    def image(self) -> bytes:
        """Answer all that is committed."""
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")
        return bytes(self._writer.serialize("main"))

    def _run_group(self, loop: asyncio.AbstractEventLoop) -> None:
        before = self._writer.total_changes()
        super()._run_group(loop)
        if self.dies_in is not None and self._writer.total_changes() != before:
            self.dies_in -= 1
            if self.dies_in <= 0:
                self.dies_in = None
                self.on_death()


@dataclass(frozen=True, slots=True)
class Birth:
    """What a life begins with: where it listens, what it finds in its store, and the world that is there already."""

    config: Config
    listener: socket.socket
    clock: HandClock
    seed: str
    key: str
    secret: str
    image: bytes | None
    runner: Callable[[str], Runner]
    """Given the house's id."""
    couriers: Sequence[Awaited] = ()
    running: Callable[[], Sequence[Any]] = tuple
    """The attempts that run in real time."""
    patience_s: float = 60.0


class Life:
    """See the module. `over` is called in the node's thread when it has died, with what it leaves."""

    def __init__(self, birth: Birth, over: Callable[[bytes], None]) -> None:
        self._birth, self._over = birth, over
        self._dying = self._ended = False
        self._born: Future[None] = Future()
        self._asked: set[Future[Any]] = set()
        self._loop = uvloop.new_event_loop()
        self.thread = threading.Thread(target=self._live, name="tasuki-node", daemon=True)
        self.thread.start()
        self._born.result()

    # -- from other threads -----------------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the node's loop, and wait for it. Raises `LifeOver` when the node ends before."""
        try:
            asked = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise LifeOver from None
        self._asked.add(asked)
        if self._ended:
            asked.cancel()
        try:
            return asked.result()
        except (asyncio.CancelledError, CancelledError):
            raise LifeOver from None
        except BaseException:  # who waited was interrupted: what nobody waits for must not hold the clock
            asked.cancel()
            raise
        finally:
            self._asked.discard(asked)

    def soon(self, call: Callable[[], None]) -> None:
        """Have something called on the node's thread; when it is over, never."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def die(self) -> None:
        """End as by SIGKILL, now."""
        self.soon(self._die)

    def end(self) -> None:
        """End in good order."""
        self.soon(self._loop.stop)
        self.thread.join()

    # -- on the node's thread ---------------------------------------------------------------------------------

    async def advance(self, to: Instant) -> None:
        """Move the clock, and come to rest."""
        await self._conductor.advance(max(to, self._birth.clock.now()), patience_s=self._birth.patience_s)

    async def rest(self, *, for_tasks: bool = True) -> None:
        """Come to rest; wait for what really runs, or not."""
        await self._conductor.rest(patience_s=self._birth.patience_s if for_tasks else 0)

    async def look(self, unit: Unit[T]) -> T:
        """Run a unit that only reads."""
        return await self.store.look(unit)

    async def call(self, service: str, operation: str, given: dict[str, Any]) -> dict[str, Any]:
        """Call an operation as the owner, without HTTP and model."""
        found = self.switchboard.operations.get((service, operation)) or self.switchboard.house[operation]
        config = self._birth.config
        request = Request(
            service=service,
            operation=operation,
            input=given,
            request_id=self._chance.uuid(),
            principal=Principal(self._birth.key),
            account=config.account,
            region=config.region,
            base_url=self.switchboard.url,
        )
        unit: Unit[Any] = lambda tx: found.run(tx, request)  # noqa: E731
        answer = await (self.store.read(unit) if found.kind == "read" else self.store.write(unit))
        return dict(answer.answer if isinstance(answer, NotYet) else answer)

    def _die(self) -> None:
        self._dying = True
        self._loop.stop()

    def _live(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._begin())
        except BaseException as bad:  # noqa: BLE001 - told to whoever waits for the birth
            self._ended = True
            loop.close()
            self._born.set_exception(bad)
            return
        self._born.set_result(None)
        loop.run_forever()
        self._ended = True
        image = self.store.image() if self._dying else b""
        loop.run_until_complete(self._let_go())
        self.store.close()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        for asked in list(self._asked):
            asked.cancel()
        if self._dying:
            self._over(image)

    async def _begin(self) -> None:
        birth = self._birth
        config, self._chance, bell = birth.config, Chance.seeded(f"{birth.seed} door"), Bell()
        image = birth.image if birth.image is not None else _nothing_yet()
        self.store = MemoryStore(image, clock=birth.clock, chance=Chance.seeded(f"{birth.seed} store"), bell=bell)
        self.store.on_death = self._die
        if birth.image is None:
            secret = Chance.seeded(f"{birth.seed} house").hex(64)
            await self.store.write(lambda tx: tx.run(OWNER, (secret,)))
        self.switchboard = Switchboard()
        self.rooms = {room.name: room for room in (build(config, self.switchboard) for build in ROOMS)}
        self.switchboard.connect(self.rooms.values())
        self.switchboard.url = f"http://{config.host}:{config.port}"
        self._attendant = Attendant(
            store=self.store,
            runner=birth.runner(await self.store.look(house_id)),
            bell=bell,
            config=config,
            switchboard=self.switchboard,
            clock=birth.clock,
        )
        self._courier = Courier(
            store=self.store,
            switchboard=self.switchboard,
            bell=bell,
            clock=birth.clock,
            real_clock=WallClock(),
            outbound=config.outbound,
        )
        polls = [PollDuty(poll, self.store, birth.clock) for room in self.rooms.values() for poll in room.polls]
        duties: list[Duty] = [TimerDuty(self.rooms, self.store, birth.clock), self._attendant, self._courier, *polls]
        await self._attendant.open()
        self.bell, self._duties = bell, Loop(duties, bell, birth.clock, movable=True)
        self._conductor = Conductor(
            loop=self._duties,
            clock=birth.clock,
            bell=bell,
            keep=_keep_nothing,
            steady=time.monotonic,
            tasks=birth.running,
            couriers=(*birth.couriers, self._courier),
            most_rounds=MOST_ROUNDS,
        )
        self._serving = asyncio.ensure_future(self._duties.serve())
        await self._listen()

    async def _listen(self) -> None:
        """Serve the door with uvicorn's plug, but without uvicorn's own loop, which looks up ten times a second only."""
        settings: Any = wire.settings(self._door())
        inner = settings.app

        async def at_rest(scope: Scope, receive: Receive, send: Send) -> None:
            asks_from_task = any(one.busy for one in self._birth.couriers)

            async def answered(message: Any) -> None:
                if message["type"] == "http.response.start":
                    await self._settle(asks_from_task)
                await send(message)

            await inner(scope, receive, answered)

        settings.app = at_rest
        settings.load()
        self._state = ServerState()
        connection = partial(
            settings.http_protocol_class,
            config=settings,
            server_state=self._state,
            app_state={},
        )
        listener = self._birth.listener.dup()
        self._server = await self._loop.create_server(connection, sock=listener, backlog=1024)

    def _door(self) -> Door:
        birth = self._birth
        owner = Principal(birth.key)

        def credential(access_key: str) -> Any:
            if access_key == birth.key:
                return birth.secret, owner
            return self.store.look(lambda tx: self.switchboard.credential(tx, access_key))

        operations = {one.service: _impatient(one.operations) for one in self.rooms.values() if one.service is not None}
        desk = ClockDesk(conductor=self._conductor, loop=self._duties, clock=birth.clock, store=self.store)
        operations["tasuki"] = {**operations["tasuki"], **self.switchboard.house, **desk.operations}
        return Door(
            config=birth.config,
            operations=operations,
            store=self.store,
            bell=self.bell,
            clock=birth.clock,
            real_clock=WallClock(),
            chance=self._chance,
            credential=credential,
        )

    async def _settle(self, asks_from_task: bool) -> None:
        """Come to rest before a request is answered. While a task's code asks it is the duties only: it is waited for itself."""
        if self._dying:
            await asyncio.Future()  # nobody hears of this one
        try:
            if not asks_from_task:
                await self.rest(for_tasks=False)
                return
        except ClockBusy:  # other threads ask, too, or move the clock
            pass
        except Restless as bad:
            log.critical("%s", bad)
            return
        duties = self._duties
        rounds = duties.rounds
        while duties.busy and not self._serving.done() and duties.rounds - rounds <= MOST_ROUNDS:
            duties.rested.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await duties.rested.wait()

    async def _let_go(self) -> None:
        """Close what holds descriptors; whatever was under way is dropped."""
        self._server.close()
        self._attendant.close()
        connections: list[Any] = list(self._state.connections)
        for connection in connections:
            connection._transport.abort()  # noqa: SLF001 - as the kernel does for a process that was killed
        if not self._dying:
            await self._courier.close()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks(self._loop) if task is not mine]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=1)
        await asyncio.sleep(0)  # the loop closes its transports


_nothing: list[bytes] = []
"""What a store is before anything is in it: the schema takes most of a house's start, and is the same for all of a run."""


def _nothing_yet() -> bytes:
    if not _nothing:
        first = MemoryStore(None, clock=HandClock(), chance=Chance.seeded(0), bell=Bell())
        _nothing.append(first.image())
        first.close()
    return _nothing[0]


async def _keep_nothing(_instant: Instant) -> None:
    """The clock belongs to the test, which outlives the node."""


def _impatient(operations: Operations) -> dict[str, Operation]:
    """Have long polls answered at once that wait for what only the test can bring about."""
    return {name: _at_once(one) if name in AT_ONCE else one for name, one in operations.items()}


def _at_once(operation: Operation) -> Operation:
    look = operation.look

    def run(tx: Any, request: Request) -> Any:
        answer = operation.run(tx, request)
        return replace(answer, until=tx.now) if isinstance(answer, NotYet) else answer

    def looks(tx: Any, request: Request) -> NotYet | None:
        seen = look(tx, request) if look is not None else None
        return None if seen is None else replace(seen, until=tx.now)

    return Operation(operation.kind, run, looks if look is not None else None)
