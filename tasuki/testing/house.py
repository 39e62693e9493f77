"""A whole house in memory: real rooms over a real store, with a clock and chance that the test holds.

::

    with House(queues.room, pipes.room, machines.room) as house:
        house.call("sqs", "SendMessage", {"QueueUrl": url, "MessageBody": "hello"})
        house.advance(minutes=5)

No HTTP, no model validation, no sleeping: `advance` visits every due instant in order, and returns when the house is
quiet. The loops, units and polls are those of a node.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, TypeAlias

from tasuki.runtime.bell import Bell
from tasuki.runtime.loop import Duty, Loop, PollDuty, TimerDuty
from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.store.sqlite import SqliteStore
from tasuki.store.store import Store, T, Unit
from tasuki.testing.clock import ManualClock, duration_ms
from tasuki.values.chance import Chance
from tasuki.values.config import Config
from tasuki.values.instant import Instant
from tasuki.values.operations import NotYet, Operation, Principal, Request

Builder: TypeAlias = Callable[[Config, Switchboard], Room]
DutyBuilder: TypeAlias = Callable[["House"], Duty]


class House:
    """Rooms, joined as a node joins them.

    `duties` adds what is not a room's poll (the attendant with its runner). `store` lends a store of the test's own
    (on disk, say); the house closes it. Use it as a context manager, or `close` it.
    `loop` lends an event loop that several houses share.
    `House.opens` is what houses without a `store` open: SQLite in memory, unless a whole test run is to use another.
    `House.runs_on` is the loop of houses without a `loop`, where stores outlast a house: each has its own if it is None.
    """

    opens: ClassVar[Callable[["House"], Store]]
    runs_on: ClassVar[asyncio.AbstractEventLoop | None] = None

    def __init__(
        self,
        *builders: Builder,
        duties: tuple[DutyBuilder, ...] = (),
        config: Config | None = None,
        seed: int = 0,
        clock: ManualClock | None = None,
        store: Callable[["House"], Store] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.config = config or Config(data=Path(), dev=True)
        self.clock = clock or ManualClock()
        self.chance = Chance.seeded(seed)
        self.bell = Bell()
        lent = loop or House.runs_on
        self._loop = lent or asyncio.new_event_loop()
        self._owns_loop = lent is None
        self.store: Store = (store or House.opens)(self)
        self._run(self.store.open())
        self.switchboard = Switchboard()
        self.rooms = {room.name: room for room in (build(self.config, self.switchboard) for build in builders)}
        self.switchboard.connect(self.rooms.values())
        polls = [PollDuty(poll, self.store, self.clock) for room in self.rooms.values() for poll in room.polls]
        extra = [build(self) for build in duties]
        self.duties: list[Duty] = [TimerDuty(self.rooms, self.store, self.clock), *polls, *extra]
        self._duties = Loop(self.duties, self.bell, self.clock, movable=True)

    # -- what a test says ---------------------------------------------------------------------------------

    @property
    def now(self) -> Instant:
        """The instant the house stands at."""
        return self.clock.now()

    def call(self, service: str, operation: str, given: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Call an operation as the owner; answer its output or raise its `DomainError`.

        Input comes as a dict or as keywords. A long poll that finds nothing answers what it would at its end, and the clock
        is not moved. `trace=` sets the trace header.
        """
        return self._run(self.calling(service, operation, given, **more))

    def calling(
        self, service: str, operation: str, given: dict[str, Any] | None = None, **more: Any
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """As `call`, for whoever awaits it: several callers at once."""
        trace = more.pop("trace", None)
        found = self.switchboard.operations[service, operation]
        request = Request(
            service=service,
            operation=operation,
            input={**(given or {}), **more},
            request_id=self.chance.uuid(),
            principal=Principal("test"),
            account=self.config.account,
            region=self.config.region,
            base_url="http://127.0.0.1:4566",
            trace=trace,
        )
        return self._call(found, request)

    def unit(self, unit: Unit[T]) -> T:
        """Run a unit of the test's own."""
        return self._run(self.store.write(unit))

    def look(self, unit: Unit[T]) -> T:
        """Run a unit of the test's own that only reads."""
        return self._run(self.store.look(unit))

    def drain(self) -> Instant | None:
        """Let everybody do what there is to do now; answer the next instant at which there will be something."""
        return self._run(self._duties.drain())

    def advance(self, **by: float) -> None:
        """Move the clock by `ms=`, `seconds=`, `minutes=`, `hours=` or `days=`, stopping at every due instant."""
        self.advance_to(self.now + duration_ms(**by))  # type: ignore[arg-type]

    def advance_to(self, target: Instant) -> None:
        """Move the clock to `target`, stopping at every due instant on the way."""
        due = self.drain()
        while due is not None and due <= target:
            self.clock.set(max(due, self.now))
            due = self.drain()
        self.clock.set(target)
        self.drain()

    def close(self) -> None:
        """Let go of everything."""
        self.store.close()
        if self._owns_loop:
            self._loop.close()

    # -- inside -------------------------------------------------------------------------------------------

    async def _call(self, operation: Operation, request: Request) -> dict[str, Any]:
        unit: Unit[dict[str, Any] | NotYet] = lambda tx: operation.run(tx, request)  # noqa: E731
        if operation.kind == "read":
            answer = await self.store.read(unit)
        else:
            look = operation.look
            nothing = await self.store.look(lambda tx: look(tx, request)) if look is not None else None
            answer = nothing if nothing is not None else await self.store.write(unit)
        return answer.answer if isinstance(answer, NotYet) else answer

    def _run(self, work: Awaitable[T]) -> T:
        return self._loop.run_until_complete(work)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, bad: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def in_memory(house: House) -> Store:
    """Open SQLite in memory: fast, and gone with the house."""
    return SqliteStore(None, clock=house.clock, real_clock=house.clock, chance=house.chance, on_ring=house.bell.ring)


House.opens = in_memory
