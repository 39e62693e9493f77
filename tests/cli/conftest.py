"""A node for the commands, and the commands themselves."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest

from tasuki.cli.main import main
from tasuki.cli.own_node import OwnNode
from tasuki.cli.reach import Reach

ROLE = "arn:aws:iam::000000000000:role/any"
Done: TypeAlias = "subprocess.CompletedProcess[str]"
Command: TypeAlias = Callable[..., Done]

EXPRESS = {"hello", "fails"}
IMAGES = """
[images.talks]
folder = "."
command = ["sh", "-c", "echo one; echo two >&2"]

[images.fails]
folder = "."
command = ["sh", "-c", "exit 3"]

[images.absent]
folder = "."
command = ["no-such-command"]

[images.waits]
folder = "."
command = ["sh", "-c", "echo at it; read go < $GATE; echo through"]
"""


def run(*words: str, environment: dict[str, str] | None = None, stdin: str = "", cwd: Path | None = None) -> Done:
    """Run a command in this process: what it does is the same, and the imports are paid for once."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TASUKI_"))}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, clean | (environment or {}), clear=True))
        stack.enter_context(patch.object(sys, "argv", ["tasuki", *words]))
        stack.enter_context(patch.object(sys, "stdin", io.StringIO(stdin)))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        stack.enter_context(chdir(cwd or Path.cwd()))
        with pytest.raises(SystemExit) as ended:
            main()
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(list(words), int(ended.value.code or 0), said, complained)


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
        furnish(running.reach)
        yield running


@pytest.fixture(scope="session")
def tasuki(node: OwnNode) -> Command:
    """Run a command on the node."""

    def command(*words: str, environment: dict[str, str] | None = None, **more: Any) -> Done:
        return run(*words, environment={"TASUKI_DATA": str(node.data)} | (environment or {}), **more)

    return command


def furnish(reach: Reach) -> None:
    """Machines that say hello, fail, and run the tasks above."""
    states, ecs = reach.client("stepfunctions"), reach.client("ecs")
    machines: dict[str, dict[str, Any]] = {
        "hello": {"Type": "Pass", "Result": {"hello": "world"}, "End": True},
        "fails": {"Type": "Fail", "Error": "Broken", "Cause": "on purpose"},
    }
    for image in ("talks", "waits", "fails", "absent", "unmapped"):
        ecs.register_task_definition(
            family=image, containerDefinitions=[{"name": "main", "image": image, "memory": 32}]
        )
        machines[image if image not in machines else f"{image}-task"] = {
            "Type": "Task",
            "Resource": "arn:aws:states:::ecs:runTask.sync",
            "Parameters": {"TaskDefinition": image},
            "End": True,
        }
    for name, state in machines.items():
        definition = json.dumps({"StartAt": "Only", "States": {"Only": state}})
        states.create_state_machine(name=name, definition=definition, roleArn=ROLE)
        if name in EXPRESS:
            states.create_state_machine(name=f"quick-{name}", definition=definition, roleArn=ROLE, type="EXPRESS")
