"""Several nodes on one store: each claims what fits it, and attends to its own tasks only. Scripted runners, a manual clock."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasuki.runtime.attendant import Attendant
from tasuki.services import machines, tasks
from tasuki.services.tasks import attending, nodes
from tasuki.services.tasks.nodes import Holder, Joining
from tasuki.services.tasks.setting import ALONE, Here, Setting
from tasuki.testing import House
from tasuki.testing.house import Builder
from tasuki.testing.scripted import ScriptedRunner
from tasuki.values.config import Config, Image
from tasuki.values.errors import ConfigError
from tasuki.values.instant import DAY, SECOND, Instant
from tests.services.tasks.stage import IMAGES, SCRIPTS
from tests.services.tasks.test_with_machines import described, execute

LOST_MS = 600 * SECOND


class One:
    """A node of the town: its own world outside, and an attendant that goes when it is killed."""

    topics = ("tasks",)

    def __init__(self, town: "Town", name: str, images: tuple[str, ...] = IMAGES) -> None:
        self.town, self.name, self.images = town, name, images
        mapped = {one: image for one, image in town.house.config.images.items() if one in images}
        self.config = replace(town.house.config, images=mapped)
        self.runner = ScriptedRunner(town.house.clock, SCRIPTS)
        self.here = Here(name, f"host-of-{name}", "boot", "first", 0)
        self.lives = True
        self.attendant = self._new()

    def _new(self) -> Attendant:
        house = self.town.house
        return Attendant(
            store=house.store,
            runner=self.runner,
            bell=house.bell,
            config=self.config,
            switchboard=house.switchboard,
            clock=house.clock,
            here=self.here,
        )

    async def round(self) -> Instant | None:
        return await self.attendant.round() if self.lives else None

    def restart(self) -> None:
        self.here.incarnation = "next"
        answer = self.join()
        assert isinstance(answer, int)
        self.here.term = answer
        self.attendant = self._new()
        self.lives = True

    def join(self, **more: Any) -> int | Holder:
        joining = Joining(**{**self.town.joining, "place": f"place-of-{self.name}", "images": self.images, **more})
        return self.town.house.unit(lambda tx: nodes.join(tx, self.here, joining))

    def renew(self) -> nodes.Round:
        return self.town.house.unit(lambda tx: nodes.renew(tx, self.here, 0))


class Town:
    """A house with nodes of 200 MiB each."""

    def __init__(self, *names: str, rooms: tuple[Builder, ...] = (), memory_mib: int = 200) -> None:
        mapped = {name: Image(name, Path(f"/images/{name}"), ("run", name)) for name in IMAGES}
        config = Config(data=Path("/data"), dev=True, memory_mib=memory_mib, images=mapped, store="postgresql://h/d")
        self.nodes: dict[str, One] = {}
        self.joining = {
            "url": "http://127.0.0.1:1",
            "version": "1",
            "owner": "key",
            "dev": True,
            "memory_mib": memory_mib,
            "lost_ms": LOST_MS,
        }
        self.house = House(tasks.room, *rooms, duties=(lambda _house: self,), config=config)
        self.setting: Setting = tasks.setting_of(config, self.house.switchboard)
        for name in names:
            self.nodes[name] = One(self, name)
            assert self.nodes[name].join() == 0

    name, topics = "attendants", ("tasks",)

    async def round(self) -> Instant | None:
        dues = [await one.round() for one in self.nodes.values()]
        return min((due for due in dues if due is not None), default=None)

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("ecs", operation, given)

    def define(self, image: str, memory: int = 64) -> None:
        container = {"name": "main", "image": image, "memory": memory}
        self.call("RegisterTaskDefinition", family=image, containerDefinitions=[container])

    def run(self, image: str, count: int = 1, memory: int = 64) -> dict[str, Any]:
        self.define(image, memory)
        ran = self.call("RunTask", taskDefinition=image, count=count)
        self.house.drain()
        return ran

    def tasks(self) -> list[dict[str, Any]]:
        arns = [
            arn for status in ("RUNNING", "STOPPED") for arn in self.call("ListTasks", desiredStatus=status)["taskArns"]
        ]
        found: list[dict[str, Any]] = self.call("DescribeTasks", tasks=arns)["tasks"] if arns else []
        return found

    def give_up(self, name: str) -> None:
        (seen_at,) = (one.seen_at for one in self.house.look(nodes.everybody) if one.id == name)
        while self.house.unit(lambda tx: nodes.give_up(tx, self.setting, name, seen_at))[1]:
            pass


@pytest.fixture
def town() -> Iterator[Town]:
    made = Town("a", "b")
    yield made
    made.house.close()


def node_of(task: dict[str, Any]) -> str | None:
    return next((one["value"] for one in task["attributes"] if one["name"] == "node"), None)


def test_each_claims_what_fits_it_and_all_get_some(town: Town) -> None:
    town.run("forever", count=6)
    assert [len(one.runner.started) for one in town.nodes.values()] == [3, 3]
    assert {node_of(task) for task in town.tasks()} == {"a", "b"}
    assert all(task["containerInstanceArn"].endswith(node_of(task)) for task in town.tasks())


def test_one_claims_a_few_at_a_time_and_leaves_the_others_some() -> None:
    town = Town("a", "b", memory_mib=10_000)
    town.run("forever", count=8)
    assert [len(one.runner.started) for one in town.nodes.values()] == [4, 4]
    town.house.close()


def test_listed_by_the_instance_that_has_them(town: Town) -> None:
    town.run("forever", count=6)
    arn = town.tasks()[0]["containerInstanceArn"]
    assert len(town.call("ListTasks", containerInstance=arn)["taskArns"]) == 3
    assert town.call("ListTasks", containerInstance="nobody")["taskArns"] == []


def test_room_is_what_the_nodes_have_together(town: Town) -> None:
    ran = town.run("forever", count=8)
    assert len(ran["tasks"]) == 6, "three fit each of them"
    assert [one["reason"] for one in ran["failures"]] == ["RESOURCE:MEMORY"] * 2
    assert "on 2 nodes together, of 200 MiB on the largest" in ran["failures"][0]["detail"]


def test_a_task_that_fits_no_node_is_refused_though_all_together_had_room(town: Town) -> None:
    ran = town.run("hour", memory=201)
    assert (ran["tasks"], ran["failures"][0]["reason"]) == ([], "RESOURCE:MEMORY")


def test_a_node_that_is_not_heard_of_is_no_room(town: Town) -> None:
    town.nodes["b"].lives = False
    town.house.advance(seconds=31)
    town.nodes["a"].renew()
    assert len(town.run("forever", count=6)["tasks"]) == 3


def test_a_large_task_is_overtaken_for_a_while_only(town: Town) -> None:
    town.nodes["b"].lives = False
    town.run("forever", memory=150)
    (held,) = town.tasks()
    town.run("hour", memory=190)  # b would have room, and never claims
    waiting = next(one for one in town.tasks() if one["lastStatus"] == "PROVISIONING")
    town.run("hungry", memory=40)
    assert len(town.nodes["a"].runner.started) == 2, "the small one went first"
    town.house.advance(seconds=61)
    town.nodes["a"].renew()
    town.nodes["b"].renew()
    town.run("quick", memory=40)
    assert len(town.nodes["a"].runner.started) == 2, "now nobody does"
    town.call("StopTask", task=held["taskArn"])
    town.house.advance(seconds=10)
    started = [launch.key.task for launch in town.nodes["a"].runner.started]
    assert started[2] == waiting["taskArn"].rpartition("/")[2]


def test_a_stop_reaches_the_node_that_has_the_task(town: Town) -> None:
    town.run("forever", count=6)
    for task in town.tasks():
        town.call("StopTask", task=task["taskArn"])
    town.house.advance(seconds=6)
    assert {task["containers"][0]["exitCode"] for task in town.tasks()} == {143}


def test_a_restart_adopts_its_own_and_no_other(town: Town) -> None:
    town.run("hour", count=6)
    town.nodes["a"].restart()
    town.house.advance(minutes=62)
    assert [task["containers"][0].get("exitCode") for task in town.tasks()] == [0] * 6
    assert [len(one.runner.started) for one in town.nodes.values()] == [3, 3]


def test_given_up_its_tasks_stop_with_ecs_infrastructure_code_and_its_reports_come_too_late(town: Town) -> None:
    town.run("hour", count=6)
    town.nodes["b"].lives = False
    town.house.advance(seconds=601)
    town.give_up("b")
    lost = [task for task in town.tasks() if node_of(task) == "b"]
    assert {(task["lastStatus"], task["stopCode"], task["stoppedReason"]) for task in lost} == {
        ("STOPPED", "InfrastructureHealth", "Node b (host-of-b) was not heard of for 600 s")
    }
    assert all("exitCode" not in task["containers"][0] for task in lost)
    before = [task for task in town.tasks() if node_of(task) == "b"]
    town.nodes["b"].restart()
    assert town.nodes["b"].here.term == 1
    town.house.advance(minutes=62)
    assert [task for task in town.tasks() if node_of(task) == "b"] == before
    assert not town.nodes["b"].runner._plays, "it was told that they are settled"


def test_seen_in_time_it_is_not_given_up(town: Town) -> None:
    town.run("hour", count=2)
    (seen_at,) = (one.seen_at for one in town.house.look(nodes.everybody) if one.id == "a")
    town.house.advance(seconds=700)
    town.nodes["a"].renew()
    assert town.house.unit(lambda tx: nodes.give_up(tx, town.setting, "a", seen_at)) == (False, 0)
    assert all(task["lastStatus"] == "RUNNING" for task in town.tasks())


def test_one_that_was_given_up_claims_nothing_until_it_knows(town: Town) -> None:
    town.nodes["b"].lives = town.nodes["a"].lives = False
    town.house.advance(seconds=601)
    town.give_up("b")
    town.nodes["a"].renew()
    town.run("forever", count=1)
    b = town.nodes["b"]
    assert town.house.unit(lambda tx: attending.claim(tx, town.setting, b.here)) == ([], False)
    b.here.term = b.renew().term
    launches, any_claimed = town.house.unit(lambda tx: attending.claim(tx, town.setting, b.here))
    assert (len(launches), any_claimed) == (1, True)


def test_what_it_claimed_before_it_was_given_up_is_not_started_any_more(town: Town) -> None:
    b = town.nodes["b"]
    town.nodes["a"].lives = b.lives = False
    town.run("forever", count=1)

    async def frozen_between_claim_and_start() -> None:
        await b.attendant._claim()

    town.house._run(frozen_between_claim_and_start())
    assert len(b.attendant._to_start) == 1
    town.house.advance(seconds=601)
    town.give_up("b")
    b.here.term = b.renew().term
    b.lives = True
    town.house.advance(seconds=5)
    assert b.runner.started == []
    assert [task["stopCode"] for task in town.tasks()] == ["InfrastructureHealth"]


def test_a_retry_runs_it_on_another_node() -> None:
    town = Town("a", "b", rooms=(machines.room,))
    town.nodes["a"].lives = False
    retry = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2}
    arn = execute(town, "hour", Retry=[retry])  # type: ignore[arg-type]
    town.house.drain()
    assert len(town.nodes["b"].runner.started) == 1
    town.nodes["b"].lives, town.nodes["a"].lives = False, True
    town.house.advance(seconds=601)
    town.nodes["a"].renew()
    town.give_up("b")
    town.house.advance(minutes=62)
    assert described(town, arn)["status"] == "SUCCEEDED"  # type: ignore[arg-type]
    assert [len(one.runner.started) for one in town.nodes.values()] == [1, 1]
    town.house.close()


def test_a_folder_is_removed_by_its_own_node_and_then_the_row_goes(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[tuple[str, str]] = []
    monkeypatch.setattr(ScriptedRunner, "remove", lambda self, task: removed.append((_owner(town, self), task)))
    town.run("quick", count=6)
    owners = {task["taskArn"].rpartition("/")[2]: node_of(task) for task in town.tasks()}
    town.house.advance(days=7)
    assert {(owner, task) for task, owner in owners.items()} == set(removed)
    assert town.tasks() == []


def _owner(town: Town, runner: ScriptedRunner) -> str:
    return next(name for name, one in town.nodes.items() if one.runner is runner)


def test_rows_of_a_node_that_never_comes_back_are_forgotten_in_the_end(town: Town) -> None:
    town.run("quick", count=6)
    town.nodes["b"].lives = False
    town.house.advance(days=7)
    assert {node_of(task) for task in town.tasks()} == {"b"}
    town.nodes["a"].renew()
    town.house.unit(lambda tx: nodes.tidy(tx, town.setting))
    assert town.tasks() == []
    town.house.unit(lambda tx: nodes.tidy(tx, town.setting))
    assert [one.id for one in town.house.look(nodes.everybody)] == ["a"]


def test_a_store_with_one_node_takes_over_what_several_had(town: Town) -> None:
    town.run("hour", count=2)
    alone = Here(ALONE, "host", "boot")
    assert town.house.look(lambda tx: attending.any_of_others(tx, alone))
    town.house.unit(lambda tx: attending.take_over(tx, alone))
    assert len(town.house.look(lambda tx: attending.claimed_before(tx, alone))) == 2
    assert not town.house.look(lambda tx: attending.any_of_others(tx, alone))


def test_tasks_of_a_node_that_nobody_knows_are_found(town: Town) -> None:
    town.run("hour", count=6)
    town.house.unit(lambda tx: tx.run("DELETE FROM nodes WHERE id = ?", ("b",)))
    assert town.house.look(nodes.unknown) == ["b"]
    assert town.house.unit(lambda tx: attending.give_up(tx, town.setting, "b", 20)) == 3
    assert town.house.look(nodes.unknown) == []


def test_an_id_that_somebody_else_bears_is_not_ours_while_he_lives(town: Town) -> None:
    answer = town.nodes["a"].join(place="a copy")
    assert isinstance(answer, Holder)
    assert answer.host == "host-of-a"
    town.house.advance(seconds=15)
    assert town.nodes["a"].join(place="a copy") == 0, "nobody has been seen for three renewals"


def test_the_same_directory_comes_back_at_once(town: Town) -> None:
    town.nodes["a"].here.incarnation = "second"
    assert town.nodes["a"].join() == 0
    town.nodes["a"].here.incarnation = "first"
    seen = town.nodes["a"].renew()
    assert (seen.term, seen.known) == (None, True), "the first one learns that it is not the holder any more"


def test_all_nodes_take_the_same_owners_key(town: Town) -> None:
    other = One(town, "c")
    with pytest.raises(ConfigError, match="start all of them with --dev or none"):
        other.join(owner="another")
    town.house.advance(seconds=31)
    assert other.join(owner="another") == 0, "those that are not there have no say"
    third = One(town, "d")
    town.house.advance(seconds=31)
    assert third.join(owner="kept", dev=False) == 0
    town.house.advance(seconds=31)
    with pytest.raises(ConfigError, match="copy DIR/credentials from the data directory of a node that is in"):
        One(town, "e").join(owner="lost", dev=False)
    assert One(town, "e").join(owner="kept", dev=False) == 0


def test_states_as_listed(town: Town) -> None:
    town.house.unit(lambda tx: nodes.leave(tx, town.nodes["b"].here))
    listing: Any = town.house.switchboard.house["ListNodes"].run

    def states() -> list[tuple[str, str]]:
        return [(one["Id"], one["State"]) for one in town.house.unit(lambda tx: listing(tx, None))["Nodes"]]

    assert states() == [("a", "UP"), ("b", "STOPPED")]
    town.house.advance(seconds=15)
    assert states() == [("a", "UP"), ("b", "STOPPED")]
    town.house.advance(ms=1)
    assert states() == [("a", "SILENT"), ("b", "STOPPED")]
    town.give_up("a")
    assert states() == [("a", "LOST"), ("b", "STOPPED")]
    town.house.advance(ms=DAY)
    town.nodes["a"].renew()
    assert states() == [("a", "UP"), ("b", "STOPPED")]
