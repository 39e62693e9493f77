"""Several nodes on one PostgreSQL: at the same time, with real shims, and with clocks that are wrong."""

import asyncio
import fcntl
import json
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tasuki.runners.contact import Contact
from tasuki.runners.process import ProcessRunner
from tasuki.runtime import nodes as runtime_nodes
from tasuki.runtime import nodes_home
from tasuki.runtime.attendant import Attendant, house_id
from tasuki.runtime.bell import Bell
from tasuki.runtime.clock import WallClock, steady_ms
from tasuki.runtime.loop import Duty, Loop, PollDuty, TimerDuty
from tasuki.runtime.nodes import Membership
from tasuki.runtime.share import Share
from tasuki.services import machines, tasks
from tasuki.services.switchboard import Ending, Switchboard
from tasuki.services.tasks import attending, claiming, nodes
from tasuki.store.postgres import PostgresStore
from tasuki.store.store import Tx
from tasuki.values.attempts import ContainerReport, Key, Report
from tasuki.values.chance import Chance
from tasuki.values.config import Config, Image
from tasuki.values.errors import ConfigError, StoreBusy
from tasuki.values.instant import Clock
from tasuki.values.operations import Principal, Request
from tests.postgres import ask

BOUND_S = 60
ROLE = "arn:aws:iam::000000000000:role/r"
SYNC = "arn:aws:states:::ecs:runTask.sync"
JOB = """
import fcntl, os, sys
place = sys.argv[1]
lock = open(place + "/held", "a")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel lets go of it when the last of the task is gone
except BlockingIOError:
    sys.exit(9)
os.close(os.open(place + "/runs-" + str(len([n for n in os.listdir(place) if n.startswith("runs-")])), os.O_CREAT))
word = open(place + "/word").readline()
sys.exit(0 if word == "end\\n" else 8)
"""


class Node:
    """What a node is for its tasks, its machines, and the others."""

    def __init__(
        self, folder: Path, url: str, *, lost_s: float = 600, wall: Clock | None = None, dev: bool = True
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.shared = folder, folder.parent
        image = Image("job", folder, ("python3", "-I", "-S", "-c", JOB, str(self.shared)))
        images = {"job": image}
        self.config = Config(
            data=folder,
            images=images,
            store=f"{url}&synchronous_commit=off",
            lost_node_s=lost_s,
            memory_mib=640,
            dev=dev,
        )
        self.bell, self.chance = Bell(), Chance.system()
        self.store = PostgresStore(
            str(self.config.store),
            chance=self.chance,
            wall=WallClock(),
            steady=steady_ms,
            on_ring=self.bell.ring,
            connections=4,
        )
        self.clock = self.store.clock
        self.switchboard = Switchboard()
        made = [build(self.config, self.switchboard) for build in (tasks.room, machines.room)]
        self.rooms = {room.name: room for room in made}
        self.switchboard.connect(made)
        self.here = nodes_home.here(folder, self.chance)
        self.setting = tasks.setting_of(self.config, self.switchboard)
        (folder / "tasks").mkdir(exist_ok=True)
        self.contact = Contact(str(folder / "tasks"), lost_s)
        joining = nodes_home.joining(self.config, "key", self.setting.memory_mib)
        self.membership = Membership(
            store=self.store,
            bell=self.bell,
            setting=self.setting,
            here=self.here,
            joining=joining,
            contact=self.contact,
            share=Share(),
            wall=wall or WallClock(),
        )
        self.serving: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Join and serve, as a node does."""
        await self.store.open()
        await self.membership.join()
        runner = ProcessRunner(self.folder / "tasks", await self.store.look(house_id), contact=self.contact)
        self.attendant = Attendant(
            store=self.store,
            runner=runner,
            bell=self.bell,
            config=self.config,
            switchboard=self.switchboard,
            clock=self.clock,
            here=self.here,
        )
        await self.attendant.open()
        duties: list[Duty] = [TimerDuty(self.rooms, self.store, self.clock), self.membership, self.attendant]
        duties += [PollDuty(poll, self.store, self.clock) for room in self.rooms.values() for poll in room.polls]
        self.serving = asyncio.create_task(Loop(duties, self.bell, self.clock).serve())

    async def kill(self) -> None:
        """End it without a word to its tasks or to the others."""
        if self.serving is not None:
            self.serving.cancel()
            with suppress(asyncio.CancelledError):
                await self.serving
            self.serving = None
            self.attendant.close()
        if self.membership._later is not None:
            self.membership._later.cancel()

    async def call(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        request = Request(
            service, operation, given, "id", Principal("test"), "000000000000", "us-east-1", "http://127.0.0.1"
        )
        found = self.switchboard.operations[service, operation]
        answer = await self.store.write(lambda tx: found.run(tx, request))
        assert isinstance(answer, dict)
        return answer

    async def until(self, what: Callable[[], Any], *topics: str) -> Any:
        """Look each time something rings here, and each time this node is renewed."""
        rung = self.bell.subscribe((*topics, "tasks", "tasks-shown", "membership", "clock"))
        async with asyncio.timeout(BOUND_S):
            while True:
                rung.clear()
                found = await what()
                if found:
                    return found
                await rung.wait()


@asynccontextmanager
async def opened(*made: Node) -> AsyncIterator[None]:
    """Stores and members that do no rounds: the test says what they do, and when."""
    for one in made:
        await one.store.open()
        await one.membership.join()
    try:
        yield
    finally:
        await closed(*made)


async def closed(*made: Node) -> None:
    for one in made:
        await one.kill()
        await one.store.leave()


async def defined(node: Node, memory: int = 64) -> None:
    container = {"name": "main", "image": "job", "memory": memory}
    await node.call("ecs", "RegisterTaskDefinition", family="job", containerDefinitions=[container])


async def settled(node: Node, launches: list[Key], code: int = 0) -> None:
    reports = [
        Report(key, "ended", (ContainerReport("main", 1, code, None, True),), "EssentialContainerExited", "done")
        for key in launches
    ]
    await node.store.write(lambda tx: attending.settle(tx, node.setting, reports))


def pair(folder: Path, url: str, **more: Any) -> tuple[Node, Node]:
    return Node(folder / "a", url, **more), Node(folder / "b", url, **more)


def test_two_nodes_claim_at_once_and_no_task_twice(tmp_path: Path, postgres_url: str) -> None:
    async def play() -> None:
        a, b = pair(tmp_path, postgres_url)
        async with opened(a, b):
            await defined(a)
            for _ in range(2):
                assert not (await a.call("ecs", "RunTask", taskDefinition="job", count=10))["failures"]
            got: dict[str, list[str]] = {"a": [], "b": []}

            async def claims(name: str, node: Node) -> None:
                while await node.store.look(lambda tx: claiming.waiting(tx, node.setting, node.here)):
                    launches, _ = await node.store.write(lambda tx: attending.claim(tx, node.setting, node.here))
                    got[name] += [launch.key.task for launch in launches]

            await asyncio.gather(claims("a", a), claims("b", b))
            assert [len(one) for one in got.values()] == [10, 10], "640 MiB each"
            assert len({*got["a"], *got["b"]}) == 20

    asyncio.run(play())


def test_a_client_token_starts_one_batch_though_two_nodes_are_asked_at_once(tmp_path: Path, postgres_url: str) -> None:
    async def play() -> None:
        a, b = pair(tmp_path, postgres_url)
        async with opened(a, b):
            await defined(a)
            asked = [
                node.call("ecs", "RunTask", taskDefinition="job", count=3, clientToken="once")
                for node in (a, b, a, b, a, b)
            ]
            answers = await asyncio.gather(*asked)
            started = {tuple(sorted(task["taskArn"] for task in answer["tasks"])) for answer in answers}
            assert len(started) == 1
            assert len((await a.call("ecs", "ListTasks"))["taskArns"]) == 3

    asyncio.run(play())


class Told:
    """Stands in for the machines: counts in the store how often it was told, so that what was rolled back does not count."""

    def __init__(self) -> None:
        self.calls = 0

    def finished(self, tx: Tx, key: str, ending: Ending) -> None:
        tx.run("UPDATE told SET times = times + 1 WHERE key = ?", (key,))
        assert len(json.loads(json.dumps(ending.output))["Tasks"]) == 2


@pytest.mark.parametrize("times", [8])
def test_two_tasks_of_a_batch_that_end_at_once_on_two_nodes_tell_their_watcher_once(
    tmp_path: Path, postgres_url: str, times: int
) -> None:
    async def play() -> None:
        a, b = pair(tmp_path, postgres_url)
        a.switchboard.watchers["machines"] = b.switchboard.watchers["machines"] = Told()
        async with opened(a, b):
            await a.store.write(lambda tx: tx.run("CREATE TABLE told (key TEXT PRIMARY KEY, times BIGINT)"))
            await defined(a)
            for turn in range(times):
                watcher = f"machines:{turn}"
                await a.store.write(lambda tx, turn=turn: tx.run("INSERT INTO told VALUES (?, 0)", (str(turn),)))  # type: ignore[misc]
                await a.call("ecs", "RunTask", taskDefinition="job", count=2)
                await a.store.write(
                    lambda tx, watcher=watcher: tx.run(
                        "UPDATE tasks SET watcher = ? WHERE stopped_at IS NULL", (watcher,)
                    )  # type: ignore[misc]
                )
                claimed, _ = await a.store.write(lambda tx: attending.claim(tx, a.setting, a.here))
                await asyncio.gather(settled(a, [claimed[0].key]), settled(b, [claimed[1].key]))
            told = await a.store.look(lambda tx: [row[0] for row in tx.all("SELECT times FROM told")])
            assert told == [1] * times

    asyncio.run(play())


def test_statements_of_an_idle_node_and_of_a_task(tmp_path: Path, postgres_url: str) -> None:
    async def play() -> None:
        a, b = pair(tmp_path, postgres_url)
        async with opened(a, b):
            await defined(a)
            counters = a.store.counters

            async def cost(work: Any) -> int:
                before = counters.statements
                await work
                return int(counters.statements - before)

            assert await cost(a.store.write(lambda tx: nodes.renew(tx, a.here, 0))) == 3
            assert await cost(a.call("ecs", "RunTask", taskDefinition="job")) <= 7
            assert await cost(a.store.write(lambda tx: attending.claim(tx, a.setting, a.here))) <= 6
            (task,) = (await a.call("ecs", "ListTasks"))["taskArns"]
            assert await cost(settled(a, [Key(task.rpartition("/")[2], 1)])) <= 5

    asyncio.run(play())


def test_a_node_killed_with_its_task_the_retry_runs_it_elsewhere_and_never_two_at_once(
    tmp_path: Path, postgres_url: str
) -> None:
    """The shim ends the task before node b gives node a up; then the machine's Retry runs it on b, where it ends."""
    os.mkfifo(tmp_path / "word")

    def runs() -> int:
        return len(list(tmp_path.glob("runs-*")))

    async def play() -> None:
        a, b = Node(tmp_path / "a", postgres_url, lost_s=3.0), Node(tmp_path / "b", postgres_url)
        held = os.open(
            tmp_path / "word", os.O_RDWR
        )  # whoever opens the other end is not held up, and reads nothing yet
        try:
            await a.begin()
            await defined(a)
            retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 3, "BackoffRate": 1}]
            state = {
                "Type": "Task",
                "Resource": SYNC,
                "Parameters": {"TaskDefinition": "job"},
                "Retry": retry,
                "End": True,
            }
            made = await a.call(
                "stepfunctions",
                "CreateStateMachine",
                name="m",
                definition=json.dumps({"StartAt": "Run", "States": {"Run": state}}),
                roleArn=ROLE,
            )
            begun = await a.call(
                "stepfunctions", "StartExecution", stateMachineArn=made["stateMachineArn"], input="{}", name="e"
            )

            async def runs_on_a() -> bool:
                return runs() == 1 and await told(a, "RUNNING") == 1

            await a.until(runs_on_a)
            await b.begin()
            await a.kill()

            async def runs_on_b() -> bool:
                return runs() == 2

            await b.until(runs_on_b)
            ended = await first_task(b)
            assert ended["stopCode"] == "InfrastructureHealth"
            assert ended["stoppedReason"].startswith(f"Node {a.here.node} (")
            assert ended["stoppedReason"].endswith("was not heard of for 3 s")
            os.write(held, b"end\n")

            async def done() -> bool:
                shown = await b.call("stepfunctions", "DescribeExecution", executionArn=begun["executionArn"])
                return bool(shown["status"] != "RUNNING")

            await b.until(done, "states")
            shown = await b.call("stepfunctions", "DescribeExecution", executionArn=begun["executionArn"])
            assert shown["status"] == "SUCCEEDED", shown
            assert runs() == 2
            listed = await b.store.look(nodes.everybody)
            assert [one.state(b.store.clock.now()) for one in listed] == ["LOST", "UP"]
            # It comes back too late: nothing is settled twice, and its folder is let go.
            late = Node(tmp_path / "a", postgres_url)
            await late.begin()
            assert late.here.term == 1

            async def let_go() -> bool:
                return not late.attendant._runner._attempts  # type: ignore[attr-defined]

            await late.until(let_go)
            assert await first_task(b) == ended
            await closed(late)
        finally:
            os.close(held)
            await closed(a, b)

    async def told(node: Node, status: str) -> int:
        arns = (await node.call("ecs", "ListTasks"))["taskArns"]
        shown = (await node.call("ecs", "DescribeTasks", tasks=arns))["tasks"] if arns else []
        return sum(task["lastStatus"] == status for task in shown)

    async def first_task(node: Node) -> dict[str, Any]:
        arns = (await node.call("ecs", "ListTasks", desiredStatus="STOPPED"))["taskArns"]
        found: dict[str, Any] = (await node.call("ecs", "DescribeTasks", tasks=arns[:1]))["tasks"][0]
        return found

    asyncio.run(play())
    with (tmp_path / "held").open("a") as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nothing of any task is left


def test_what_went_elsewhere_while_a_node_was_away_is_cleaned_away(tmp_path: Path, postgres_url: str) -> None:
    async def play() -> None:
        a = Node(tmp_path / "a", postgres_url)
        left = a.folder / "tasks" / ("0" * 32) / "1"
        left.mkdir(parents=True)
        (left / "launch.json").write_text("{}")
        await a.begin()
        assert not left.parent.exists()
        assert (a.folder / "tasks" / ".shim").exists(), "what is no task's stays"
        await closed(a)

    asyncio.run(play())


def test_join_leave_and_be_spoken_of(tmp_path: Path, postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        a, b = pair(tmp_path, postgres_url)
        async with opened(a):
            await a.membership.round()
            await b.store.open()
            await b.membership.join()
            await a.membership.round()
            await b.membership.leave()
            await a.membership.round()
            await closed(b)

    with caplog.at_level(logging.INFO, logger="tasuki.nodes"):
        asyncio.run(play())
    said = [record.getMessage() for record in caplog.records if record.name == "tasuki.nodes"]
    assert [words.rpartition(") ")[2] for words in said if " node " not in words[:13]] == ["is there", "has left"]


def test_nodes_that_together_offer_more_than_their_machine_has_are_warned_of(
    tmp_path: Path, postgres_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_nodes, "machine_mib", lambda: 1300)

    async def play() -> None:
        a, b, c = (*pair(tmp_path, postgres_url), Node(tmp_path / "c", postgres_url))
        async with opened(a, b, c):
            pass

    asyncio.run(play())
    (said,) = [record.getMessage() for record in caplog.records if "offer" in record.getMessage()]
    assert said.startswith("the 3 nodes on ")
    assert said.endswith(
        "offer their tasks 1920 MiB together, and the machine has 1300 MiB: set memory in [node] of each one's tasuki.toml"
    )


class Wrong:
    """A machine's clock that is wrong by some milliseconds."""

    def __init__(self, by_ms: int) -> None:
        self.by_ms, self.right = by_ms, WallClock()

    def now(self) -> int:
        return self.right.now() + self.by_ms


def test_clocks_apart_are_detected_and_said_by_both(
    tmp_path: Path, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> str:
        wrong = Wrong(60_000)
        a, b = Node(tmp_path / "a", postgres_url), Node(tmp_path / "b", postgres_url, wall=wrong)
        async with opened(a, b):
            for _ in range(3):  # once, and not at each renewal
                await b.membership.round()
                await a.membership.round()
            wrong.by_ms = 0
            for _ in range(2):
                await b.membership.round()
                await a.membership.round()
        return b.here.node

    with caplog.at_level(logging.INFO, logger="tasuki.nodes"):
        b = asyncio.run(play())
    said = [record.getMessage() for record in caplog.records if "clock" in record.getMessage()]
    assert said[0].startswith("this machine's clock is 60.0 s ahead of the database's")
    assert said[1].startswith(f"the clock of node {b} is 60.0 s ahead of the database's")
    assert said[2:] == [f"the clocks of node {b} and of the database agree again"] * 2


def test_a_copy_of_a_data_directory_is_refused_while_the_original_lives(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        monkeypatch.setattr(runtime_nodes, "AGAIN_S", 0.01)
        a = Node(tmp_path / "a", postgres_url)
        (tmp_path / "copy").mkdir()
        (tmp_path / "copy" / "node_id").write_text((tmp_path / "a" / "node_id").read_text())
        copy = Node(tmp_path / "copy", postgres_url)
        async with opened(a):
            await copy.store.open()
            joining = asyncio.create_task(copy.membership.join())
            while not joining.done():
                await a.membership._renew()
            with pytest.raises(StoreBusy, match="remove node_id and tasks/ from the copy"):
                await joining
            await closed(copy)

    asyncio.run(play())


def test_a_newer_schema_stops_this_node_with_a_word(
    tmp_path: Path, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        a = Node(tmp_path / "a", postgres_url)
        async with opened(a):
            await a.store.write(lambda tx: tx.run("UPDATE house SET value = '9999' WHERE name = 'schema'"))
            await a.membership.round()
            assert a.membership.over.is_set()

    asyncio.run(play())
    assert "brought to schema 9999 by a newer Tasuki" in caplog.text


def test_a_newer_schema_stops_this_node_also_if_its_connections_were_ended(
    tmp_path: Path, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As who migrates does with those of a node that was taken for dead."""

    async def play() -> None:
        a = Node(tmp_path / "a", postgres_url)
        async with opened(a):
            await a.store.write(lambda tx: tx.run("UPDATE house SET value = '9999' WHERE name = 'schema'"))
            ask(postgres_url.partition("?")[0], SEND_AWAY, f"tasuki {a.store.address.schema}")
            await a.membership.round()
            assert a.membership.over.is_set()

    asyncio.run(play())
    (said,) = [
        record.getMessage() for record in caplog.records if record.name == "tasuki.nodes" and record.levelno > 20
    ]
    assert "has schema 9999 now" in said
    assert said.endswith("Start it with the new version. This node stops.")


SEND_AWAY = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"


def test_another_holder_of_our_id_stops_this_node(
    tmp_path: Path, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        a = Node(tmp_path / "a", postgres_url)
        async with opened(a):
            await a.store.write(lambda tx: tx.run("UPDATE nodes SET incarnation = 'another'"))
            await a.membership.round()
            assert a.membership.over.is_set()

    asyncio.run(play())
    assert "started with this one's id" in caplog.text


def test_a_row_that_is_gone_is_made_again(tmp_path: Path, postgres_url: str) -> None:
    async def play() -> None:
        a = Node(tmp_path / "a", postgres_url)
        async with opened(a):
            await a.store.write(lambda tx: tx.run("DELETE FROM nodes"))
            await a.membership.round()
            assert [one.id for one in await a.store.look(nodes.everybody)] == [a.here.node]
            assert not a.membership.over.is_set()

    asyncio.run(play())


def test_a_database_clock_that_leaps_makes_nobody_lost(tmp_path: Path, postgres_url: str) -> None:
    """All seem silent for an hour at once. Whoever looks on does not believe it before it has looked for long enough."""

    class Steady:
        seconds = 1000.0

    async def play() -> None:
        a, b = pair(tmp_path, postgres_url)
        a.membership._steady = lambda: Steady.seconds
        async with opened(a, b):
            await a.membership.round()
            hour = 3_600_000
            await a.store.write(
                lambda tx: tx.run("UPDATE nodes SET seen_at = seen_at - ? WHERE id = ?", (hour, b.here.node))
            )
            await a.membership.round()
            states = {one.id: one.lost_at for one in await a.store.look(nodes.everybody)}
            assert states[b.here.node] is None, "silent for an hour, says the clock; seen so for a moment only"
            Steady.seconds += 31
            await a.membership.round()
            states = {one.id: one.lost_at for one in await a.store.look(nodes.everybody)}
            assert states[b.here.node] is not None

    asyncio.run(play())


def test_the_id_is_made_once_and_is_its_owners_only(tmp_path: Path) -> None:
    first = nodes_home.node_id(tmp_path, Chance.system())
    assert nodes_home.node_id(tmp_path, Chance.system()) == first
    assert (tmp_path / "node_id").stat().st_mode & 0o777 == 0o600
    (tmp_path / "node_id").write_text("nonsense\n")
    with pytest.raises(ConfigError, match="remove it, and this directory joins as a new node"):
        nodes_home.node_id(tmp_path, Chance.system())


def test_one_process_holds_a_data_directory(tmp_path: Path) -> None:
    config = Config(data=tmp_path, store="postgresql://h/d")
    held = nodes_home.hold(config)
    with pytest.raises(StoreBusy, match="Another node is running"):
        nodes_home.hold(config)
    os.close(held)
    os.close(nodes_home.hold(config))
