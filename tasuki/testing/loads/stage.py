"""The house a strategy is played in, and the agenda of what happens outside it: arrivals, workers' doings, rounds of a rule.

Between two entries of the agenda the house is moved on, stopping at everything that is due in it.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Self, TypeAlias

from tasuki.runtime.attendant import Attendant
from tasuki.services import queues, tasks
from tasuki.testing.clock import ManualClock
from tasuki.testing.house import Builder, House
from tasuki.testing.loads.ledger import Ledger
from tasuki.testing.loads.plan import Plan, Version
from tasuki.testing.scripted import Script, ScriptedRunner
from tasuki.values.attempts import Launch
from tasuki.values.config import Config, Image
from tasuki.values.documents import dumps
from tasuki.values.instant import DAY, SECOND, Instant

ROLE = "arn:aws:iam::000000000000:role/any"
CONTAINER = "engine"
PLENTY_MIB = 1 << 40
"""Memory is no limit here: AWS has plenty; how many tasks may run is `limits.running_tasks`."""
TAIL = DAY
"""For how long the jobs are waited for that have not ended when the last one has come."""
COUNTED = frozenset({"SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"})

Act: TypeAlias = Callable[[], None]


class Actors(ScriptedRunner):
    """A scripted runner that asks for each launch by itself how it goes."""

    def __init__(self, clock: ManualClock, script_of: Callable[[Launch], Script]) -> None:
        super().__init__(clock)
        self._script_of = script_of

    def start(self, launch: Launch) -> None:
        """Begin to play what this launch is to do."""
        self.scripts = {launch.containers[0].image: self._script_of(launch)}
        super().start(launch)
        self.started.clear()


class Stage:
    """A house with queues and tasks, and what `more` there is to be in it. A context manager."""

    def __init__(
        self,
        plan: Plan,
        ledger: Ledger,
        script_of: Callable[[Launch], Script],
        on_dead: Callable[[str], None],
        *more: Builder,
    ) -> None:
        self.plan, self.ledger, self._on_dead, self._dead = plan, ledger, on_dead, ""
        clock = ManualClock(plan.start)
        runner = Actors(clock, script_of)
        images = {one.name: Image(one.name, Path("/images"), ("run",)) for one in plan.versions}
        quotas = {"running_tasks": plan.running_tasks}
        config = Config(data=Path(), dev=True, memory_mib=PLENTY_MIB, images=images, quotas=quotas)

        def attendant(house: House) -> Attendant:
            return Attendant(
                store=house.store,
                runner=runner,
                bell=house.bell,
                config=config,
                switchboard=house.switchboard,
                clock=clock,
            )

        self.house = House(
            queues.room, tasks.room, *more, duties=(attendant,), config=config, seed=plan.seed, clock=clock
        )
        self._agenda: list[tuple[Instant, int, Act]] = []
        self._entries = 0
        for version in plan.versions:
            self.define(version)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.house.close()

    # -- time ------------------------------------------------------------------------------------------------

    @property
    def now(self) -> Instant:
        """The time of the play, from its start."""
        return self.house.now - self.plan.start

    def at(self, instant: Instant, act: Act) -> None:
        """Enter something in the agenda; what is entered for the same instant happens in the order of entry."""
        self._entries += 1
        heappush(self._agenda, (instant, self._entries, act))

    def play(self, is_over: Callable[[], bool]) -> None:
        """Go through the agenda, until it is over after the last arrival, or the tail is."""
        last, house = self.plan.ends + TAIL, self.house
        due = house.drain()
        while self._agenda and (at := self._agenda[0][0]) <= last:
            # As House.advance_to, but that the house is drained once for each instant, after what happens there.
            while due is not None and due <= self.plan.start + at:
                house.clock.set(max(due, house.now))
                due = house.drain()
            house.clock.set(self.plan.start + at)
            while self._agenda and self._agenda[0][0] == at:
                heappop(self._agenda)[2]()
            due = house.drain()
            if at >= self.plan.ends and is_over():
                return

    # -- short words -----------------------------------------------------------------------------------------

    def sqs(self, operation: str, **given: Any) -> dict[str, Any]:
        """Call an operation of queues, and count it as AWS would charge it."""
        if operation in COUNTED:
            self.ledger.calls[operation] += 1
        return self.house.call("sqs", operation, given)

    def ecs(self, operation: str, **given: Any) -> dict[str, Any]:
        """Call an operation of tasks."""
        return self.house.call("ecs", operation, given)

    def define(self, version: Version) -> None:
        """Register the task definition of a version, under the version's name."""
        container = {"name": CONTAINER, "image": version.name, "memory": 64}
        self.ecs("RegisterTaskDefinition", family=version.name, containerDefinitions=[container])

    def queue(self, name: str, **attributes: Any) -> str:
        """Create a queue; answer its URL."""
        given = {"MessageRetentionPeriod": str(14 * DAY // SECOND)}
        given |= {key: value if isinstance(value, str) else dumps(value) for key, value in attributes.items()}
        return str(self.house.call("sqs", "CreateQueue", {"QueueName": name, "Attributes": given})["QueueUrl"])

    def dead_queue(self) -> str:
        """Create the dead-letter queue, which somebody clears every day: messages are not kept for longer than two weeks."""
        self._dead = self.queue("dead")
        self.at(DAY, self._clear_daily)
        return self._dead

    def clear_dead(self) -> None:
        """Take what is in the dead-letter queue, and note whose it was. These calls are the operator's, and not counted."""
        while found := self.house.call("sqs", "ReceiveMessage", QueueUrl=self._dead, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            for message in found:
                self._on_dead(message["Body"])
                self.house.call("sqs", "DeleteMessage", QueueUrl=self._dead, ReceiptHandle=message["ReceiptHandle"])

    def _clear_daily(self) -> None:
        self.clear_dead()
        self.at(self.now + DAY, self._clear_daily)

    def arn(self, url: str) -> str:
        """Answer a queue's ARN."""
        return str(self._attributes(url)["QueueArn"])

    def standing(self, url: str) -> tuple[int, int]:
        """Answer how many messages wait in a queue and how many are in flight: metrics, which AWS does not charge."""
        found = self._attributes(url)
        return int(found["ApproximateNumberOfMessages"]), int(found["ApproximateNumberOfMessagesNotVisible"])

    def _attributes(self, url: str) -> dict[str, Any]:
        given = {"QueueUrl": url, "AttributeNames": ["All"]}
        found: dict[str, Any] = self.house.call("sqs", "GetQueueAttributes", given)["Attributes"]
        return found


def environment(launch: Launch) -> dict[str, str]:
    """Answer what the container of a launch is told."""
    return dict(launch.containers[0].environment)
