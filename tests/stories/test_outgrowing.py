"""A user outgrows one machine: from a data directory to PostgreSQL and two nodes, in the middle of the work."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from tasuki.cli.own_node import OwnNode
from tests.cli.conftest import ROLE, decoded, run

JOB = """
import fcntl, os, sys
place = sys.argv[1]
lock = open(place + "/held", "a")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel lets go of it when the last of the task is gone
except BlockingIOError:
    open(place + "/twice", "a").close()
    sys.exit(9)
open(place + "/begun", "a").write("begun\\n")
print("at it", flush=True)
print(open(place + "/gate").readline(), flush=True)
"""
SEND = {
    "Type": "Task",
    "Resource": "arn:aws:states:::sqs:sendMessage",
    "Parameters": {"QueueUrl.$": "$.to", "MessageBody.$": "$.n"},
    "End": True,
}
RUN = {
    "Type": "Task",
    "Resource": "arn:aws:states:::ecs:runTask.sync",
    "Parameters": {"TaskDefinition": "job"},
    "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 3}],
    "ResultPath": None,
    "Next": "S",
}


def folder(path: Path, shared: Path, store: str | None = None) -> Path:
    """A data directory whose node knows the image, and perhaps a database."""
    path.mkdir(exist_ok=True)
    text = f'[images.job]\nfolder = "."\ncommand = ["python3", "-I", "-S", "-c", {json.dumps(JOB)}, "{shared}"]\n'
    (path / "tasuki.toml").write_text((f'[node]\nstore = "{store}"\n' if store else "") + text)
    (path / "tasuki.toml").chmod(0o600)
    return path


def until(what: Callable[[], Any]) -> Any:
    """Ask until there is an answer: each question is a call, and takes its time."""
    for _ in range(20_000):
        if found := what():
            return found
    raise AssertionError("it did not come")


@pytest.mark.clients
@pytest.mark.timeout(120)
def test_from_one_machine_to_two_nodes_in_the_middle_of_the_work(tmp_path: Path, postgres_url: str) -> None:
    shared = tmp_path
    os.mkfifo(shared / "gate")
    one = OwnNode(folder(tmp_path / "one", shared), dev=False)
    with one:
        given = one.reach.environment
        assert given["AWS_ACCESS_KEY_ID"] != "test"
        client: Callable[[str, str], Any] = lambda name, at: boto3.client(  # noqa: E731 - the user's own, with the key of the first day
            name,
            endpoint_url=at,
            region_name="us-east-1",
            aws_access_key_id=given["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=given["AWS_SECRET_ACCESS_KEY"],
        )
        sqs, states, ecs, pipes = (client(name, one.url) for name in ("sqs", "stepfunctions", "ecs", "pipes"))
        out, inside = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("out", "in"))
        ecs.register_task_definition(family="job", containerDefinitions=[{"name": "c", "image": "job", "memory": 32}])

        def machine(name: str, **more: Any) -> str:
            definition = {"StartAt": next(iter(more)), "States": {**more, "S": SEND}}
            made = states.create_state_machine(name=name, definition=json.dumps(definition), roleArn=ROLE)
            return str(made["stateMachineArn"])

        waits = machine("waits", W={"Type": "Wait", "Seconds": 20, "Next": "S"})
        runs = machine("runs", R=RUN)
        piped = machine("piped", P={"Type": "Pass", "InputPath": "$[0]", "Next": "S"})
        template = json.dumps({"to": out, "n": "<$.body>"}).replace('"<$.body>"', "<$.body>")
        pipes.create_pipe(
            Name="p",
            Source="arn:aws:sqs:us-east-1:000000000000:in",
            Target=piped,
            RoleArn=ROLE,
            TargetParameters={
                "InputTemplate": template,
                "StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"},
            },
        )
        for arn, name in ((waits, "waits"), (runs, "runs")):
            states.start_execution(stateMachineArn=arn, name=name, input=json.dumps({"to": out, "n": name}))
        sqs.send_message(QueueUrl=inside, MessageBody="piped before")
        until((shared / "begun").exists)
    kept = tmp_path / "kept"
    assert run("backup", str(kept), "--data", str(one.data), "--with-credentials").returncode == 0
    folder(one.data, shared, postgres_url)  # the same directory, now with a database
    restored = run("restore", str(kept), "--data", str(one.data))
    assert restored.returncode == 0, restored.stderr
    two = OwnNode(folder(tmp_path / "two", shared, postgres_url), dev=False)
    shutil.copy(one.data / "credentials", two.data / "credentials")
    with two:  # the machine that is new comes first: the task is not its own to judge
        sqs = client("sqs", two.url)
        sqs.send_message(QueueUrl=inside.replace(str(one.port), str(two.port)), MessageBody="piped after")
        with one:
            assert {
                node["state"] for node in decoded(run("nodes", "--data", str(one.data), "--json")) if node["url"]
            } == {"UP"}
            refused = run("restore", str(kept), "--data", str(one.data), "--force")
            assert refused.returncode == 5, refused.stderr
            (task,) = client("ecs", one.url).list_tasks()["taskArns"]
            (shared / "gate").write_text("through\n")
            received: list[str] = []

            def all_there() -> bool:
                got = sqs.receive_message(QueueUrl=out, MaxNumberOfMessages=10, WaitTimeSeconds=5).get("Messages", [])
                received.extend(each["Body"] for each in got)
                return len(received) >= 4

            until(all_there)
            assert sorted(received) == ["piped after", "piped before", "runs", "waits"]
            assert (shared / "begun").read_text() == "begun\n"
            assert not (shared / "twice").exists()
            logs = run("logs", task, "--data", str(one.data))
            assert "at it" in logs.stdout
            assert "through" in logs.stdout
            families = client("ecs", two.url).list_task_definitions()["taskDefinitionArns"]
            assert [arn.rpartition("/")[2] for arn in families] == ["job:1"]
