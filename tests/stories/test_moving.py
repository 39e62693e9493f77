"""A house moves while a real task runs: from a file to PostgreSQL and back, once for good, and never twice at a time."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tasuki.cli.own_node import OwnNode
from tasuki.runners import facts
from tasuki.runners.contact import FINE, STOP, Lifeline
from tests.cli.conftest import ROLE, Done, decoded, run
from tests.postgres import ask
from tests.stories.test_outgrowing import RUN, folder

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]


WITHIN_S = 60


def until(what: Callable[[], Any]) -> None:
    """Ask until it is so."""
    give_up = time.monotonic() + WITHIN_S
    while not what():
        assert time.monotonic() < give_up, "it did not come"


class Town:
    """A data directory with a task that runs until it is let through, and the execution that waits for it."""

    def __init__(self, path: Path) -> None:
        self.path, self.data = path, folder(path / "old", path)
        os.mkfifo(path / "gate")
        self.kept = path / "kept"

    def node(self, url: str | None = None, *, data: Path | None = None) -> OwnNode:
        return OwnNode(data or self.data, options=() if url is None else ("--store", url))

    def begin(self, node: OwnNode) -> None:
        states, ecs = node.reach.client("stepfunctions"), node.reach.client("ecs")
        ecs.register_task_definition(family="job", containerDefinitions=[{"name": "c", "image": "job", "memory": 32}])
        definition = json.dumps(
            {"StartAt": "R", "States": {"R": {**{k: v for k, v in RUN.items() if k != "Next"}, "End": True}}}
        )
        made = states.create_state_machine(name="m", definition=definition, roleArn=ROLE)
        self.execution = states.start_execution(stateMachineArn=made["stateMachineArn"])["executionArn"]
        until((self.path / "begun").exists)
        until(lambda: [one for one in self.tasks(node) if one["lastStatus"] == "RUNNING"])

    @staticmethod
    def tasks(node: OwnNode) -> list[dict[str, Any]]:
        ecs = node.reach.client("ecs")
        arns = ecs.list_tasks()["taskArns"]
        return list(ecs.describe_tasks(tasks=arns)["tasks"]) if arns else []

    def back_up(self, *words: str) -> None:
        assert run("backup", str(self.kept), "--data", str(self.data), "--force", *words).returncode == 0

    def restore(self, *words: str) -> Done:
        return run("restore", str(self.kept), *words)

    @property
    def place(self) -> Path:
        """The attempt's folder."""
        (found,) = self.data.glob("tasks/*/1")
        return found

    def shim(self) -> int:
        """The pid of the shim, which is one as long as it is the same attempt."""
        started = facts.read(f"{self.place}/started")
        assert started is not None
        return int(started["pid"])

    def verdict(self, *, after_s: float = 0.0) -> int:
        """What the shim finds when it looks, if that had been so much later."""
        given = json.loads((self.place / "launch.json").read_text())["contact"]
        line = (self.data / "tasks" / "contact").read_text().split()
        shifted = self.path / "line"
        shifted.write_text(f"{line[0]} {float(line[1]) - after_s:018.3f} {line[2]} {line[3]}\n")
        return Lifeline({**given, "file": str(shifted)}, facts.boot_id()).look()

    def ends_well(self, node: OwnNode) -> None:
        """Let the task through; it ran once, and its execution has its end."""
        (self.path / "gate").write_text("through\n")
        states = node.reach.client("stepfunctions")
        describe: Callable[[], str] = lambda: states.describe_execution(executionArn=self.execution)["status"]  # noqa: E731
        until(lambda: describe() != "RUNNING")
        assert describe() == "SUCCEEDED"
        assert (self.path / "begun").read_text() == "begun\n"
        assert not (self.path / "twice").exists()


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    made = Town(tmp_path)
    yield made
    if not (made.path / "begun").exists():
        return
    fd = os.open(made.path / "gate", os.O_RDWR | os.O_NONBLOCK)  # whatever still reads there ends
    os.write(fd, b"through\n")
    os.close(fd)


def test_a_task_that_runs_is_adopted_by_the_directory_that_the_restore_names_and_back_again(
    town: Town, postgres_url: str
) -> None:
    with town.node() as node:
        town.begin(node)
        shim = town.shim()
        node.kill()
    assert town.verdict(after_s=1e9) == FINE, "nobody else could take it"
    town.back_up()
    assert town.restore("--data", str(town.data), "--store", postgres_url).returncode == 0
    assert (town.verdict(), town.verdict(after_s=500)) == (FINE, STOP), "should its node never come, it ends in time"
    with town.node(postgres_url, data=folder(town.path / "new", town.path)) as stranger:
        (row,) = [one for one in decoded(run("nodes", "--data", str(stranger.data), "--json")) if not one["url"]]
        assert (row["node"], row["tasks"]) == ((town.data / "node_id").read_text().strip(), 1)
        with town.node(postgres_url) as node:
            (task,) = town.tasks(node)
            assert (task["lastStatus"], town.shim()) == ("RUNNING", shim)
    town.back_up("--store", postgres_url)
    (town.data / "store").unlink()
    assert town.restore("--data", str(town.data), "--force").returncode == 0
    with town.node() as node:
        assert town.verdict(after_s=1e9) == FINE, "the node has lifted the deadline"
        assert town.shim() == shim
        town.ends_well(node)


def test_tasks_that_may_run_elsewhere_are_not_run_again_unless_somebody_says_that_they_have_ended(
    town: Town, postgres_url: str
) -> None:
    with town.node() as node:
        town.begin(node)
        node.kill()
    town.back_up()
    new = town.path / "new"
    for words in (("--store", postgres_url), ("--store", postgres_url, "--data", str(new)), ("--data", str(new))):
        refused = run("restore", str(town.kept), *words, cwd=town.path)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "A task was running on " in refused.stderr
        assert "--tasks-ended" in refused.stderr
        assert not new.exists()
    schema = postgres_url.rpartition("=")[2]
    assert not ask(postgres_url.partition("?")[0], "SELECT 1 FROM pg_namespace WHERE nspname = $1", schema)
    (town.path / "gate").write_text("through\n")  # it ends, and nobody is told
    until(lambda: (facts.read(f"{town.place}/facts") or {}).get("phase") == "ended")
    done = town.restore("--store", postgres_url, "--data", str(new), "--tasks-ended")
    assert done.returncode == 0, done.stderr
    found = run("doctor", "--store", postgres_url, "--json")
    assert found.returncode == 1
    (nodes,) = [one for one in json.loads(found.stdout) if one["what"] == "nodes"]
    assert (nodes["state"], "1 task is of a node that nobody knows" in nodes["found"]) == ("no", True)
    (town.path / "begun").unlink()
    with town.node(postgres_url, data=folder(new, town.path)) as node:
        until(lambda: town.tasks(node) and (town.path / "begun").exists())  # its Retry has run it again
        town.ends_well(node)


def test_a_directory_whose_node_runs_is_not_moved(town: Town, postgres_url: str) -> None:
    with town.node() as node:
        town.back_up()
        refused = town.restore("--data", str(node.data), "--store", postgres_url)
        assert refused.returncode == 5
        assert "Another node is running on" in refused.stderr
    assert not (town.data / "store").exists()
