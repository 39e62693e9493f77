"""The attendant with real processes, a store on disk and a real loop: tasks outlive the node that started them."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tasuki.runners.process import ProcessRunner
from tasuki.runners.runner import StartLater
from tasuki.runtime import attendant
from tasuki.runtime.attendant import Attendant, house_id
from tasuki.runtime.bell import Bell
from tasuki.runtime.clock import SystemClock
from tasuki.runtime.loop import Duty, Loop, TimerDuty
from tasuki.services import tasks
from tasuki.services.switchboard import Switchboard
from tasuki.store.sqlite import SqliteStore
from tasuki.values.attempts import Key, Launch
from tasuki.values.chance import Chance
from tasuki.values.config import Config, Image
from tasuki.values.errors import ConfigError
from tasuki.values.operations import Principal, Request

BOUND_S = 30
DURATION = 'read x < "$1"; echo "got $x"; exit 7'


class Node:
    """What a node is, for its tasks."""

    def __init__(self, folder: Path) -> None:
        image = Image("job", folder, ("sh", "-c", DURATION, "job", str(folder / "fifo")))
        self.config = Config(data=folder, images={"job": image})
        self.bell, self.clock = Bell(), SystemClock()
        self.store = SqliteStore(
            folder / "tasuki.db",
            clock=self.clock,
            real_clock=self.clock,
            chance=Chance.system(),
            on_ring=self.bell.ring,
        )
        switchboard = Switchboard()
        self.room = tasks.room(self.config, switchboard)
        self.runner = ProcessRunner(folder / "tasks", asyncio.run(self.store.look(house_id)))
        self.attendant = Attendant(
            store=self.store,
            runner=self.runner,
            bell=self.bell,
            config=self.config,
            switchboard=switchboard,
            clock=self.clock,
        )
        duties: list[Duty] = [TimerDuty({"tasks": self.room}, self.store, self.clock), self.attendant]
        self.loop = Loop(duties, self.bell, self.clock)

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        request = Request(
            "ecs", operation, given, "id", Principal("test"), "000000000000", "us-east-1", "http://127.0.0.1"
        )
        answer = await self.store.write(lambda tx: self.room.operations[operation].run(tx, request))
        assert isinstance(answer, dict)
        return answer

    async def until(self, arn: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for the room's own word that something changed."""
        changed = self.bell.subscribe(("tasks-shown",))
        async with asyncio.timeout(BOUND_S):
            while True:
                changed.clear()
                (task,) = (await self.call("DescribeTasks", tasks=[arn]))["tasks"]
                if reached(task):
                    return task  # type: ignore[no-any-return]
                await changed.wait()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Node]:
    """Serve a node, and drop it at the end without a word to its tasks."""
    node = await asyncio.to_thread(Node, folder)
    serving = asyncio.create_task(node.loop.serve())
    try:
        yield node
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        node.attendant.close()
        node.store.close()


async def begin(node: Node) -> str:
    container = {"name": "main", "image": "job", "memory": 64}
    await node.call("RegisterTaskDefinition", family="job", containerDefinitions=[container])
    arn = (await node.call("RunTask", taskDefinition="job"))["tasks"][0]["taskArn"]
    await node.until(arn, lambda task: task["lastStatus"] == "RUNNING")
    assert isinstance(arn, str)
    return arn


def stopped(task: dict[str, Any]) -> bool:
    return bool(task["lastStatus"] == "STOPPED")


def let_go(folder: Path) -> None:
    (folder / "fifo").write_text("word\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def test_a_task_is_started_seen_and_settled(folder: Path) -> None:
    async def play() -> None:
        async with serving(folder) as node:
            arn = await begin(node)
            await asyncio.to_thread(let_go, folder)
            task = await node.until(arn, stopped)
            assert (task["stopCode"], task["containers"][0]["exitCode"]) == ("EssentialContainerExited", 7)
            log = folder / "tasks" / arn.rpartition("/")[2] / "main.log"
            assert log.read_text() == "got word\n"
            assert node.runner.patience_s is None, "an idle house looks at nothing"

    asyncio.run(play())


def test_the_next_node_adopts_it(folder: Path) -> None:
    async def play() -> None:
        async with serving(folder) as node:
            arn = await begin(node)
        async with serving(folder) as node:
            task = await node.until(arn, lambda _task: True)
            assert task["lastStatus"] == "RUNNING"
            await asyncio.to_thread(let_go, folder)
            task = await node.until(arn, stopped)
            assert task["containers"][0]["exitCode"] == 7

    asyncio.run(play())


def test_what_ended_in_between_is_settled(folder: Path) -> None:
    async def play() -> None:
        async with serving(folder) as node:
            arn = await begin(node)
        await asyncio.to_thread(let_go, folder)
        async with serving(folder) as node:
            task = await node.until(arn, stopped)
            assert task["containers"][0]["exitCode"] == 7
            assert task["stoppedAt"] >= task["executionStoppedAt"] >= task["startedAt"]

    asyncio.run(play())


def test_a_stop_reaches_the_process(folder: Path) -> None:
    async def play() -> None:
        async with serving(folder) as node:
            arn = await begin(node)
            await node.call("StopTask", task=arn, reason="enough")
            task = await node.until(arn, stopped)
            assert (task["stoppedReason"], task["containers"][0]["exitCode"]) == ("enough", 143)

    asyncio.run(play())


def test_a_start_without_means_is_asked_again_and_no_task_fails_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attendant, "ASKED_AGAIN_S", 0.01)

    async def play() -> None:
        async with serving(folder) as node:
            start = node.runner.start
            refused: list[Key] = []

            def starved(launch: Launch) -> None:
                if len(refused) < 3:
                    refused.append(launch.key)
                    raise StartLater("too many open files")
                start(launch)

            monkeypatch.setattr(node.runner, "start", starved)
            arn = await begin(node)
            assert len(refused) == 3
            let_go(folder)
            assert (await node.until(arn, stopped))["containers"][0]["exitCode"] == 7

    asyncio.run(play())


def test_the_tasks_of_another_store_are_refused(folder: Path) -> None:
    async def play() -> None:
        async with serving(folder):
            pass

    asyncio.run(play())
    for name in folder.glob("tasuki.db*"):
        name.unlink()
    with pytest.raises(ConfigError, match="another store"):
        Node(folder)
