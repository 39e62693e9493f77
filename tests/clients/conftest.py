"""A real node for clients from outside: started once, on a free port, stopped by its pid."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import boto3
import pytest

from tasuki.cli.own_node import OwnNode

ROOT = Path(__file__).resolve().parents[2]
AWS = ROOT / ".venv-awscli" / "bin" / "aws"
ROLE = "arn:aws:iam::000000000000:role/any"


class Boto(Protocol):
    def __call__(self, service: str) -> Any: ...


def write_images(data: Path, **commands: str) -> None:
    """Map each image name to a line of shell."""
    data.mkdir(parents=True, exist_ok=True)
    lines = [
        f'[images."{name.replace("_", "-")}"]\nfolder = "."\ncommand = ["sh", "-c", {json.dumps(script)}]\n'
        for name, script in commands.items()
    ]
    (data / "tasuki.toml").write_text("\n".join(lines))
    (data / "tasuki.toml").chmod(0o600)


def client_of(node: OwnNode) -> Boto:
    """What `eval $(tasuki env)` gives boto3, without changing this process's environment."""
    environment = node.reach.environment
    session = boto3.Session(
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_REGION"],
    )
    return lambda service: session.client(service, endpoint_url=environment["AWS_ENDPOINT_URL"])


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnNode]:
    data = tmp_path_factory.mktemp("clients") / "data"
    write_images(data, hello="echo hello $WHO", quick="true", fails="echo broken >&2; exit 3")
    with OwnNode(data) as running:
        yield running


@pytest.fixture(scope="session")
def boto(node: OwnNode) -> Boto:
    return client_of(node)


@pytest.fixture(scope="session")
def aws_cli() -> Path:
    """The AWS CLI in an environment of its own; made here when the tests were not started with make."""
    if not AWS.exists():
        subprocess.run(["make", "--silent", ".venv-awscli/.ready"], cwd=ROOT, check=True, timeout=300)
    return AWS


@pytest.fixture(scope="session")
def aws(node: OwnNode, aws_cli: Path) -> Callable[..., Any]:
    """Run one AWS CLI command as a user would, and answer what it prints, decoded."""
    environment = {**os.environ, **node.reach.environment, "AWS_CONFIG_FILE": os.devnull, "AWS_PAGER": ""}

    def run(*words: str, check: bool = True) -> Any:
        # AWS CLI v1 ignores AWS_ENDPOINT_URL for sqs alone; `tasuki env` says so.
        place = ["--endpoint-url", node.url] if words[0] == "sqs" else []
        done = subprocess.run(
            [aws_cli, *place, "--output", "json", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if not check:
            return done
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run
