"""`nodes`, and a node among others: as a user sees it who starts two on one database."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasuki.cli.own_node import OwnNode, free_port
from tests.cli.conftest import Command, decoded, run

pytestmark = pytest.mark.clients

IMAGE = '[node]\nmemory = "100MiB"\n\n[images.talks]\nfolder = "."\ncommand = ["sh", "-c", "echo from here"]\n'
Maker = Callable[..., OwnNode]


@pytest.fixture
def make(tmp_path: Path, postgres_url: str) -> Iterator[Maker]:
    """Make a node on the test's database, in a folder of its own."""
    made: list[OwnNode] = []

    def node(name: str, *, dev: bool = True) -> OwnNode:
        data = tmp_path / name
        data.mkdir(mode=0o700, exist_ok=True)
        (data / "tasuki.toml").write_text(IMAGE)
        (data / "tasuki.toml").chmod(0o600)
        made.append(OwnNode(data, dev=dev, options=("--store", postgres_url)))
        return made[-1]

    yield node
    for one in made:
        one.stop()


def refused(node: OwnNode, url: str, *words: str, code: int | None = None) -> str:
    """Start a node that is not let in; answer why."""
    command = [sys.executable, "-m", "tasuki.cli.main", "up", "--data", str(node.data), "--port", str(free_port())]
    store = ("--store", url) if url else ()
    done = subprocess.run([*command, *store, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert code in {None, done.returncode}
    return done.stderr


def test_the_one_node_of_a_file(tasuki: Command, node: OwnNode) -> None:
    (row,) = decoded(tasuki("nodes", "--json"))
    assert (row["node"], row["url"], row["state"], row["seen"]) == ("here", node.url, "UP", None)


def test_nodes_are_listed_by_any_of_them_and_a_log_is_said_to_be_elsewhere(make: Maker) -> None:
    a, b = make("a"), make("b")
    a.start()
    ecs = a.reach.client("ecs")
    ecs.register_task_definition(family="talks", containerDefinitions=[{"name": "m", "image": "talks", "memory": 32}])
    arn = ecs.run_task(taskDefinition="talks")["tasks"][0]["taskArn"]
    ecs.get_waiter("tasks_stopped").wait(tasks=[arn], WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    first = (a.data / "node_id").read_text().strip()
    says_where(a, first)
    b.start()
    rows = decoded(run("nodes", "--data", str(b.data), "--json"))
    assert [(row["node"], row["url"], row["state"]) for row in rows] == [
        (first, a.url, "UP"),
        ((b.data / "node_id").read_text().strip(), b.url, "UP"),
    ]
    identity = arn.rpartition("/")[2]
    assert run("logs", identity, "--data", str(a.data)).stdout == "from here\n"
    elsewhere = run("logs", identity, "--data", str(b.data))
    assert elsewhere.returncode != 0
    assert f"runs on node {first} ({a.url}), and its log files are there" in elsewhere.stderr
    assert a.stop() == 0
    assert [row["state"] for row in decoded(run("nodes", "--data", str(b.data), "--json"))] == ["STOPPED", "UP"]


def says_where(node: OwnNode, name: str) -> None:
    """See that each command that shows a task names its node."""
    data = ("--data", str(node.data))
    parameters = {"TaskDefinition": "talks"}
    state = {"Type": "Task", "Resource": "arn:aws:states:::ecs:runTask.sync", "Parameters": parameters, "End": True}
    definition = json.dumps({"StartAt": "Run", "States": {"Run": state}})
    role = "arn:aws:iam::000000000000:role/any"
    node.reach.client("stepfunctions").create_state_machine(name="runs", definition=definition, roleArn=role)
    assert run("start", "runs", "--name", "e", "--watch", *data).returncode == 0
    assert {row["node"] for row in decoded(run("ps", "--all", "--json", *data))} == {name}
    assert name in run("ps", "--all", *data).stdout
    assert f"on node {name}, exit 0" in run("history", "runs:e", *data).stdout
    assert f"exit 0 on node {name}" in run("trace", "runs:e", *data).stdout


def test_all_nodes_take_the_first_ones_key(make: Maker, postgres_url: str) -> None:
    a, b = make("a", dev=False), make("b", dev=False)
    a.start()
    said = refused(b, postgres_url)
    assert "This house has an owner's key, and this data directory has none: copy DIR/credentials" in said
    assert not (b.data / "credentials").exists(), "which would only have to be replaced"
    (b.data / "credentials").write_text("[default]\naws_access_key_id = other\naws_secret_access_key = key\n")
    (b.data / "credentials").chmod(0o600)
    assert "take the same owner's key, and this one has another: copy DIR/credentials" in refused(b, postgres_url)
    assert "start all of them with --dev or none" in refused(b, postgres_url, "--dev")
    (b.data / "credentials").write_bytes((a.data / "credentials").read_bytes())
    b.start()
    rows = decoded(run("nodes", "--data", str(b.data), "--json"))
    assert [row["state"] for row in rows] == ["UP", "UP"]


def test_a_node_of_another_region_or_account_is_refused(make: Maker, postgres_url: str) -> None:
    a, b = make("a"), make("b")
    a.start()
    toml = b.data / "tasuki.toml"
    toml.write_text('[node]\nregion = "eu-central-1"\n')
    said = refused(b, postgres_url, "--dev", code=2)
    assert (
        "This house's region is us-east-1, and this node's is eu-central-1: through it nothing would be found." in said
    )
    assert f'Set region = "us-east-1" in [node] of {toml}, or choose another store.' in said
    toml.write_text('[node]\naccount = "000000000001"\n')
    assert "This house's account is 000000000000, and this node's is 000000000001" in refused(b, postgres_url, "--dev")
    assert not (b.data / "node_id").exists()


def test_a_data_directory_keeps_its_region(tmp_path: Path) -> None:
    node = OwnNode(tmp_path / "data")
    node.start()
    assert node.stop() == 0
    (node.data / "tasuki.toml").write_text('[node]\nregion = "eu-central-1"\n')
    (node.data / "tasuki.toml").chmod(0o600)
    assert "This house's region is us-east-1, and this node's is eu-central-1" in refused(node, "", "--dev", code=2)


def test_a_data_directory_is_one_nodes_at_a_time(make: Maker, postgres_url: str) -> None:
    a = make("a")
    a.start()
    assert f"Another node is running on {a.data}" in refused(a, postgres_url, "--dev")
