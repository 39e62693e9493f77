"""The simulated world: a clock, a runner, one store and the nodes over it, clients, and the weather.

Everything follows from one seed. A client asks some node; when the node dies at it, or the reply is lost, or the store
fails, it asks again, as boto3 does, and perhaps another node.
"""

import asyncio
import hashlib
import logging
import random
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tasuki.runtime.attendant import Attendant
from tasuki.services import buses, deliveries, handovers, machines, pipes, queues, schedules, tasks
from tasuki.store.store import Store, T, Tx, Unit
from tasuki.testing.clock import ManualClock
from tasuki.testing.house import House
from tasuki.testing.simulation.census import Census, Standing
from tasuki.testing.simulation.faults import Crash, FaultyStore, Rates, Weather
from tasuki.testing.simulation.grounds import GroundMaker
from tasuki.testing.simulation.hosts import MEMORY_MIB, Host
from tasuki.testing.simulation.ledger import Ledger
from tasuki.testing.simulation.moody import IMAGES, MoodyRunner
from tasuki.testing.simulation.node import NeverAtRest, Node
from tasuki.testing.simulation.outside import Outside
from tasuki.testing.simulation.told import Told
from tasuki.values.attempts import Key, Launch
from tasuki.values.chance import Chance
from tasuki.values.config import Config, Image
from tasuki.values.errors import DomainError, StoreError
from tasuki.values.instant import Instant
from tasuki.values.operations import NotYet

ROOMS = (
    handovers.room,
    queues.room,
    tasks.room,
    machines.room,
    pipes.room,
    deliveries.room,
    buses.room,
    schedules.room,
)
TRIES = 6
"""How often a client asks before it gives up."""
QUOTAS = {"handover_days": 3_650, "execution_days": 3_650, "stopped_tasks_days": 3_650}
"""So that what was done can be counted at the end."""
LAST_ACTIONS = 30


class Violation(AssertionError):
    """An invariant does not hold. `name` is the invariant's."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


Kept: TypeAlias = Callable[[dict[str, Any]], None]
"""Called with the output of every attempt of a client that was committed."""
Call: TypeAlias = tuple[str, str, dict[str, Any], Kept | None]
"""What a client asks: service, operation, input, and what to note."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client heard: an output, or the code of a refusal, or (after `TRIES`) nothing."""

    said: dict[str, Any] | None = None
    refused: str = ""

    def __str__(self) -> str:
        """Put it in a word, for the trace."""
        return "ok" if self.said is not None else self.refused or "no answer"


class World:
    """See the module. `tamper` plants a bug between rooms and store, to test an invariant."""

    def __init__(
        self, seed: int, ground: GroundMaker, rates: Rates, *, nodes: int, tamper: Callable[[Tx], Tx] | None = None
    ) -> None:
        self.seed = seed
        self.chance = random.Random(seed)  # noqa: S311 - repeatable
        self.clock = ManualClock()
        self.began = self.clock.now()
        self.weather = Weather(random.Random(f"weather {seed}"), rates, calm=True)  # noqa: S311 - repeatable
        self.told = Told()
        self.census = Census()
        self.ledger = Ledger()
        self.counted: list[Standing] | None = None
        """The census that is shared just now."""
        self.hosts = [Host(number, MoodyRunner(self.clock, self.weather, self._launched)) for number in range(nodes)]
        self.last: deque[str] = deque(maxlen=LAST_ACTIONS)
        self.fired: deque[tuple[str, str]] = deque(maxlen=40)
        """Timers that were fired lately."""
        self.crashes = 0
        self.units = 0
        self.complaints: list[str] = []
        """Faults of ours that a room or a loop only logged."""
        self.checked: dict[int, tuple[str, int, int]] = {}
        """Executions whose history was looked at: (status, last event, redrives) as it was then."""
        self.ended: dict[int, tuple[str, int]] = {}
        self.loop = asyncio.new_event_loop()
        self._digest = hashlib.sha256()
        self._tamper = tamper
        self._lives = 0
        self._ground = ground(self.clock)
        images = {name: Image(name, Path(f"/images/{name}"), ("run",)) for name in IMAGES}
        shared = "postgresql://simulated/" if nodes > 1 else None  # tells the rooms that there may be several nodes
        self._config = Config(data=Path(), dev=True, memory_mib=MEMORY_MIB, images=images, quotas=QUOTAS, store=shared)
        self._ear = _Ear(self.complaints)
        logging.getLogger("tasuki").addHandler(self._ear)
        self.nodes: list[Node | None] = [None] * nodes
        try:
            self.revive()
        except BaseException:
            logging.getLogger("tasuki").removeHandler(self._ear)
            self.loop.close()
            raise

    # -- nodes ------------------------------------------------------------------------------------------------

    def _bear(self, number: int) -> Node:
        self._lives += 1
        seed = self.seed * 1_000_003 + self._lives
        host = self.hosts[number]
        here = host.here(several=len(self.hosts) > 1)

        def store(house: House) -> Store:
            inner = self._ground.open(Chance.seeded(f"store {seed}"))
            del house
            return FaultyStore(inner, self.weather, self._heard, self._tamper, self._ground.fill)

        def attendant(house: House) -> Attendant:
            return Attendant(
                store=house.store,
                runner=host.runner,
                bell=house.bell,
                config=house.config,
                switchboard=house.switchboard,
                clock=house.clock,
                here=here,
            )

        def courier(house: House) -> Outside:
            return Outside(house, self.weather, self._answered, alone=len(self.hosts) == 1)

        node = Node(
            ROOMS,
            (attendant, courier),
            config=self._config,
            seed=seed,
            clock=self.clock,
            weather=self.weather,
            store=store,
            loop=self.loop,
            here=here,
        )
        if here is not None:
            with self.fair():
                host.join(node, here)
        return node

    @contextmanager
    def fair(self) -> Iterator[None]:
        """For what the simulation itself does: no fault meanwhile."""
        before = self.weather.calm
        self.weather.calm = True
        try:
            yield
        finally:
            self.weather.calm = before

    def _heard(self, rings: Sequence[str], fired: Sequence[tuple[str, str]], mute: bool) -> None:
        self.fired.extend(fired)
        if rings:
            topics = list(dict.fromkeys(rings))
            for node in self.nodes:
                if node is not None:
                    node.hear(topics, mute=mute)

    def _launched(self, launch: Launch) -> None:
        for one in launch.containers[0].environment.items():
            if one[0] == "TOKEN":
                self.told.tokens.append(one[1])

    def _answered(self, _key: str, payload: str) -> None:
        self.told.answered[payload] += 1

    def node(self) -> Node:
        """Answer a node that lives; where none does, one is born."""
        living = [one for one in self.nodes if one is not None]
        if not living:
            self.revive()
            living = [one for one in self.nodes if one is not None]
        return living[0] if len(living) == 1 else self.chance.choice(living)

    def revive(self) -> None:
        """Have every dead node start again on what the store holds, unless its host is gone."""
        for number, node in enumerate(self.nodes):
            if node is None and not self.hosts[number].gone:
                self.nodes[number] = self._bear(number)

    def bury(self, node: Node) -> None:
        """A node died; whoever hears of it first takes it away."""
        if node not in self.nodes:
            return
        self.crashes += 1
        self.units += node.faulty.units
        self.nodes[self.nodes.index(node)] = None
        node.die()

    @property
    def started(self) -> list[Launch]:
        """Everything that ever began, on any host."""
        return [launch for host in self.hosts for launch in host.runner.started]

    @property
    def alive(self) -> list[Key]:
        """The attempts that run now, on any host."""
        return [key for host in self.hosts for key in host.runner.alive()]

    # -- clients ----------------------------------------------------------------------------------------------

    def ask(
        self,
        service: str,
        operation: str,
        given: dict[str, Any] | None = None,
        kept: Kept | None = None,
    ) -> Answer:
        """Ask as a client does. `kept(output)` is called for each of its attempts that was committed, heard of or not."""
        return self.ask_together([(service, operation, given or {}, kept)])[0]

    def ask_together(self, calls: Sequence[Call]) -> list[Answer]:
        """Several clients ask at once, each perhaps another node, and again as long as they hear nothing."""
        answers = [Answer()] * len(calls)
        open_calls = dict(enumerate(calls))
        for _ in range(TRIES):
            if not open_calls:
                break
            asked = [(number, self.node(), call) for number, call in open_calls.items()]
            attempts = [_attempt(node, call) for _, node, call in asked]
            busy = (
                [one for one in self.nodes if one is not None]
                if self._ground.together and not self.weather.calm
                else []
            )
            heard, came_of_rounds = self.loop.run_until_complete(_both(attempts, [node.pump() for node in busy]))
            for (number, node, call), came in zip(asked, heard, strict=True):
                answer = self._heard_of(node, call, came)
                if answer is not None:
                    answers[number] = answer
                    del open_calls[number]
            self._see(busy, came_of_rounds)
        return answers

    def _heard_of(self, node: Node, call: Call, came: Any) -> Answer | None:
        """Answer what a client makes of what came of an attempt; None has it ask again."""
        *_, kept = call
        if isinstance(came, Crash):
            self.bury(node)
            if self.chance.random() < 0.7:
                self.revive()
            if came.kept and kept is not None:
                kept(came.answer.answer if isinstance(came.answer, NotYet) else came.answer)
            return None
        if isinstance(came, DomainError):
            return Answer(refused=came.code)
        if isinstance(came, StoreError):
            return None
        if isinstance(came, BaseException):
            raise came
        if kept is not None:
            kept(came)
        return None if self.weather.strikes("lost reply", self.weather.rates.lost_reply) else Answer(came)

    def look(self, unit: Unit[T]) -> T:
        """Read for an invariant: past the weather, from the store itself."""
        node = self.node()
        with self.fair():
            return node.look(unit)

    # -- time -------------------------------------------------------------------------------------------------

    def pump(self, *, some: bool = False) -> Instant | None:
        """Let the nodes do what there is to do now (`some`: each perhaps); answer the next instant anybody named."""
        nearest: Instant | None = None
        order = [one for one in self.nodes if one is not None]
        with self.fair():
            for node in order:
                self.hosts[self.nodes.index(node)].be_seen(node, node.here)
        self.chance.shuffle(order)
        if some:
            order = [node for node in order if self.chance.random() >= 0.3]
        together = [order] if self._ground.together else [[node] for node in order]
        for nodes in together:
            came = self.loop.run_until_complete(_all(node.pump() for node in nodes))
            dues = [nearest, self._see(nodes, came)]
            nearest = min((due for due in dues if due is not None), default=None)
        return nearest

    def _see(self, nodes: Sequence[Node], came: Sequence[Any]) -> Instant | None:
        """Take in what came of nodes' rounds: the nearest instant they named, or a death. Raises what breaks a round."""
        dues = []
        for node, due in zip(nodes, came, strict=True):
            if isinstance(due, Crash):
                self.bury(node)
            elif isinstance(due, NeverAtRest):
                raise Violation("the house comes to rest", str(due))
            elif isinstance(due, BaseException):
                raise due
            elif due is not None:
                dues.append(due)
        return min(dues, default=None)

    def rest(self) -> Instant | None:
        """Let all nodes work until nobody has anything to do now; answer the next instant anybody named."""
        while True:
            self.revive()
            before = self._rounds()
            nearest = self.pump()
            dead = [one for one, host in zip(self.nodes, self.hosts, strict=True) if one is None and not host.gone]
            if self._rounds() == before and not dead:
                return nearest

    def _rounds(self) -> tuple[int, ...]:
        return tuple(node.rounds if node is not None else -1 for node in self.nodes)

    def advance(self, by_ms: int) -> None:
        """Move the clock, stopping at every instant that somebody named."""
        target = self.clock.now() + by_ms
        due = self.rest()
        while due is not None and due <= target:
            self.clock.set(max(due, self.clock.now()))
            due = self.rest()
        self.clock.set(target)
        self.rest()

    # -- the record -------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Add to the trace."""
        line = f"{self.clock.now() - self.began:>12} {text}"
        self.last.append(line)
        self._digest.update(line.encode() + b"\n")

    @property
    def trace(self) -> str:
        """The digest of all that was done and answered: the same for the same seed."""
        return self._digest.hexdigest()

    def close(self) -> None:
        """Take it all down."""
        logging.getLogger("tasuki").removeHandler(self._ear)
        for node in self.nodes:
            if node is not None:
                self.units += node.faulty.units
                node.die()
        self.nodes = []
        self._ground.close()
        self.loop.close()


async def _all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T | BaseException]:
    """Do all of it at once; answer what each came to, crashes too."""
    return await asyncio.gather(*work, return_exceptions=True)


async def _both(
    first: Iterable[Coroutine[Any, Any, Any]], second: Iterable[Coroutine[Any, Any, Any]]
) -> list[list[Any]]:
    """Do two lots of work at once."""
    return list(await asyncio.gather(_all(first), _all(second)))


async def _attempt(node: Node, call: Call) -> dict[str, Any]:
    service, operation, given, _ = call
    return await node.calling(service, operation, given)


class _Ear(logging.Handler):
    """Hears what a room or a loop caught and logged: with faults of the weather nothing is wrong, with others all."""

    def __init__(self, complaints: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._complaints = complaints

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a complaint."""
        bad = record.exc_info[1] if record.exc_info else None
        if isinstance(bad, StoreError | DomainError) or type(bad).__name__ in {"Undone", "Conflict"}:
            return
        self._complaints.append(f"{record.getMessage()}: {bad!r}")
