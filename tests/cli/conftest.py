"""A node for the commands, and the commands themselves, run as a user runs them: as processes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tasuki.cli.own_node import OwnNode
from tasuki.cli.reach import Reach

ROLE = "arn:aws:iam::000000000000:role/any"
Done: TypeAlias = "subprocess.CompletedProcess[str]"
Command: TypeAlias = Callable[..., Done]

IMAGES = """
[images.talks]
folder = "."
command = ["sh", "-c", "echo one; echo two >&2"]

[images.waits]
folder = "."
command = ["sh", "-c", "echo at it; read go < $GATE; echo through"]
"""


def run(*words: str, environment: dict[str, str] | None = None, stdin: str = "", cwd: Path | None = None) -> Done:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TASUKI_"))}
    return subprocess.run(
        [sys.executable, "-m", "tasuki.cli.main", *words],
        env=clean | (environment or {}),
        input=stdin,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def decoded(done: Done) -> Any:
    """What a command with --json printed, if it went well."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipe that a task reads from: it runs until the test writes a line."""
    path = tmp_path_factory.mktemp("gate") / "gate"
    os.mkfifo(path)
    return path


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory, gate: Path) -> Iterator[OwnNode]:
    data = tmp_path_factory.mktemp("cli") / "data"
    data.mkdir()
    (data / "tasuki.toml").write_text(IMAGES + f'environment = {{ GATE = "{gate}" }}\n')
    (data / "tasuki.toml").chmod(0o600)
    with OwnNode(data) as running:
        _furnish(running.reach)
        yield running


@pytest.fixture(scope="session")
def tasuki(node: OwnNode) -> Command:
    """Run a command on the node."""

    def command(*words: str, **more: Any) -> Done:
        return run(*words, environment={"TASUKI_DATA": str(node.data)}, **more)

    return command


def _furnish(reach: Reach) -> None:
    """Machines that say hello, fail, and run the tasks above."""
    states, ecs = reach.client("stepfunctions"), reach.client("ecs")
    machines: dict[str, dict[str, Any]] = {
        "hello": {"Type": "Pass", "Result": {"hello": "world"}, "End": True},
        "fails": {"Type": "Fail", "Error": "Broken", "Cause": "on purpose"},
    }
    for image in ("talks", "waits"):
        ecs.register_task_definition(
            family=image, containerDefinitions=[{"name": "main", "image": image, "memory": 32}]
        )
        machines[image] = {
            "Type": "Task",
            "Resource": "arn:aws:states:::ecs:runTask.sync",
            "Parameters": {"TaskDefinition": image},
            "End": True,
        }
    for name, state in machines.items():
        definition = json.dumps({"StartAt": "Only", "States": {"Only": state}})
        states.create_state_machine(name=name, definition=definition, roleArn=ROLE)
