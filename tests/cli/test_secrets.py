"""The password of a database reaches the node and nobody else: no task, no child, no file, no line that anybody prints."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tasuki.cli.reach import read_node
from tests.cli.conftest import ROLE, run
from tests.own_postgres import LOGIC, NoServer, OwnServer
from tests.postgres import own_server

SECRET = "s3cret-word"
OTHER = "an0ther-word"
IMAGE = """
[images.tells]
folder = "."
command = ["sh", "-c", "env; echo there; read word < ./gate"]
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[OwnServer]:
    try:
        one = own_server(LOGIC, password=SECRET)
    except NoServer as why:
        pytest.skip(str(why))
    with one:
        yield one


@pytest.mark.clients
def test_a_password_stays_with_the_node(tmp_path: Path, guarded: OwnServer) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.mkfifo(data / "gate")
    (data / "tasuki.toml").write_text(IMAGE)
    (data / "tasuki.toml").chmod(0o600)
    given = {"TASUKI_STORE": guarded.url, "PGPASSWORD": OTHER}
    command = [sys.executable, "-m", "tasuki.cli.main", "up", "--data", str(data), "--port", "0", "--dev"]
    said: list[str] = []
    with (tmp_path / "log").open("w") as log:
        node = subprocess.Popen(command, env=os.environ | given, stdout=subprocess.PIPE, stderr=log, text=True)
    with node:
        assert node.stdout is not None
        said.append(node.stdout.readline())
        try:
            reach = read_node(data)
            ecs, states = reach.client("ecs"), reach.client("stepfunctions")
            ecs.register_task_definition(
                family="t", containerDefinitions=[{"name": "c", "image": "tells", "memory": 32}]
            )
            (task,) = ecs.run_task(taskDefinition="t")["tasks"]
            logs = data / "tasks" / task["taskArn"].rpartition("/")[2]
            while not (found := [one for one in logs.rglob("*") if one.is_file() and b"there\n" in one.read_bytes()]):
                node.poll()
                assert node.returncode is None
            written = found[0].read_text()
            for words in (("doctor", "--store"), ("nodes",), ("ps",), ("backup", str(tmp_path / "b"))):
                for more in ((), ("--json",)):
                    environment = {"TASUKI_STORE": guarded.url, "TASUKI_DATA": str(data)}
                    done = run(*words, *more, environment=environment)
                    said += [done.stdout, done.stderr]
            states.create_state_machine(
                name="m", definition=json.dumps({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}), roleArn=ROLE
            )
            kin = [*psutil.Process(node.pid).children(recursive=True), *_marked(task["taskArn"].rpartition("/")[2])]
            kept = {one.pid: one.environ() for one in kin}
            typed = [" ".join(one.cmdline()) for one in (psutil.Process(node.pid), *kin)]
            (data / "gate").write_text("go\n")
        finally:
            node.terminate()
    said.append((tmp_path / "log").read_text())
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    for secret in (SECRET, OTHER):
        assert not [one for one in (*said, *typed, written, repr(kept)) if secret in one]
        assert not [one for one in files if secret.encode() in one.read_bytes()]
    assert "TASUKI_STORE" not in written
    assert len(kept) >= 2, "the forkserver and the task at least"
    assert not [one for one in kept.values() if {"TASUKI_STORE", "PGPASSWORD"} & set(one)]


def _marked(task: str) -> list[psutil.Process]:
    """Answer the processes of a task, whoever their parent is by now."""
    found = []
    for one in psutil.process_iter():
        try:
            if task in repr(one.environ()) or task in " ".join(one.cmdline()):
                found.append(one)
        except psutil.Error:
            continue
    return found
