"""A house with the tasks room, an attendant that can be killed, and a scripted world outside."""

from pathlib import Path
from typing import Any

from tasuki.runtime.attendant import Attendant
from tasuki.services import tasks
from tasuki.services.switchboard import Answer, Caller, Ending
from tasuki.store.store import Tx
from tasuki.testing import House
from tasuki.testing.house import Builder
from tasuki.testing.scripted import Script, ScriptedRunner
from tasuki.values.config import Config, Image
from tasuki.values.instant import Instant

IMAGES = ("quick", "hour", "broken", "hungry", "forever", "stubborn")
SCRIPTS = {
    "quick": Script(),
    "hour": Script.lasting(minutes=61),
    "broken": Script(exit_code=3),
    "hungry": Script(duration_ms=1000, out_of_memory=True),
    "forever": Script(forever=True, drain_ms=5_000),
    "stubborn": Script(forever=True, drain_ms=999_999),
}


class Died(BaseException):
    """The node was killed here. Nobody catches it."""


class Watcher:
    """Stands in for the machines: notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Ending]] = []

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:  # noqa: ARG002 - the switchboard's own words
        self.told.append((key, ending))


class Stage:
    """`crash()` is kill -9 and a new node: rows and the world outside stay, everything in memory goes."""

    name = "attendant"
    topics = ("tasks",)

    def __init__(
        self,
        *,
        memory_mib: int = 4096,
        images: tuple[str, ...] = IMAGES,
        rooms: tuple[Builder, ...] = (),
        **quotas: int,
    ) -> None:
        mapped = {name: Image(name, Path(f"/images/{name}"), ("run", name)) for name in images}
        config = Config(data=Path("/data"), dev=True, memory_mib=memory_mib, images=mapped, quotas=quotas)
        self.house = House(tasks.room, *rooms, duties=(lambda _house: self,), config=config)
        self.runner = ScriptedRunner(self.house.clock, SCRIPTS)
        self.watcher = Watcher()
        self.house.switchboard.watchers.setdefault("machines", self.watcher)
        self.attendant = self._new()
        self.crash_before_start = False

    def _new(self) -> Attendant:
        house = self.house
        return Attendant(
            store=house.store,
            runner=self.runner,
            bell=house.bell,
            config=house.config,
            switchboard=house.switchboard,
            clock=house.clock,
        )

    async def round(self) -> Instant | None:
        return await self.attendant.round()

    def crash(self) -> None:
        self.attendant = self._new()

    # -- short words -----------------------------------------------------------------------------------------

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("ecs", operation, given)

    def define(self, image: str = "quick", memory: int = 64, **more: Any) -> str:
        container = {"name": "main", "image": image, "memory": memory, **more}
        made = self.call("RegisterTaskDefinition", family=image, containerDefinitions=[container])
        return str(made["taskDefinition"]["taskDefinitionArn"])

    def run(self, image: str = "quick", *, drain: bool = True, **given: Any) -> str:
        self.define(image)
        ran = self.call("RunTask", taskDefinition=image, **given)
        assert not ran["failures"], ran
        if drain:
            self.house.drain()
        return str(ran["tasks"][0]["taskArn"])

    def task(self, arn: str) -> dict[str, Any]:
        (found,) = self.call("DescribeTasks", tasks=[arn])["tasks"]
        assert isinstance(found, dict)
        return found

    def sync(
        self, parameters: dict[str, Any], idempotency: str = "execution/1/1", watcher: str | None = "machines:7"
    ) -> Answer:
        """Call the integration as a machine does."""
        integration = self.house.switchboard.integrations["ecs:runTask"]
        caller = Caller(
            self.house.config.account,
            self.house.config.region,
            idempotency,
            "Root=1-x",
            watcher,
            "arn:aws:states:::execution:m:e",
        )
        return self.house.unit(lambda tx: integration.call(tx, parameters, caller))
