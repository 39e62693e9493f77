"""The AWS CLI from outside, command by command, as somebody at a shell would."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasuki.cli.own_node import OwnNode
from tests.clients.conftest import ROLE

pytestmark = pytest.mark.clients
Aws = Callable[..., Any]


def test_the_whole_relay_from_a_shell(aws: Aws) -> None:
    source = aws("sqs", "create-queue", "--queue-name", "cli-in")["QueueUrl"]
    results = aws("sqs", "create-queue", "--queue-name", "cli-out")["QueueUrl"]
    attributes = aws("sqs", "get-queue-attributes", "--queue-url", source, "--attribute-names", "QueueArn")
    container = [{"name": "main", "image": "hello", "memory": 32}]
    registered = aws(
        "ecs", "register-task-definition", "--family", "cli", "--container-definitions", json.dumps(container)
    )
    definition = {
        "StartAt": "Run",
        "States": {
            "Run": {
                "Type": "Task",
                "Resource": "arn:aws:states:::ecs:runTask.sync",
                "Parameters": {"TaskDefinition": registered["taskDefinition"]["taskDefinitionArn"]},
                "ResultPath": "$[0].task",
                "Next": "Tell",
            },
            "Tell": {
                "Type": "Task",
                "Resource": "arn:aws:states:::sqs:sendMessage",
                "Parameters": {
                    "QueueUrl": results,
                    "MessageBody": {"execution.$": "$$.Execution.Id", "task.$": "$[0].task.TaskArn"},
                },
                "End": True,
            },
        },
    }
    machine = aws(
        *("stepfunctions", "create-state-machine", "--name", "cli"),
        *("--definition", json.dumps(definition), "--role-arn", ROLE),
    )["stateMachineArn"]
    aws(
        *("pipes", "create-pipe", "--name", "cli", "--role-arn", ROLE, "--target", machine),
        *("--source", attributes["Attributes"]["QueueArn"]),
        *("--target-parameters", '{"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}}'),
    )
    assert aws("pipes", "describe-pipe", "--name", "cli")["CurrentState"] == "RUNNING"

    aws("sqs", "send-message", "--queue-url", source, "--message-body", "a job")
    received = aws("sqs", "receive-message", "--queue-url", results, "--wait-time-seconds", "20")
    told = json.loads(received["Messages"][0]["Body"])
    history = aws("stepfunctions", "get-execution-history", "--execution-arn", told["execution"])
    assert "TaskSubmitted" in {event["type"] for event in history["events"]}
    [task] = aws("ecs", "describe-tasks", "--tasks", told["task"])["tasks"]
    assert task["containers"][0]["exitCode"] == 0


def test_an_error_reads_as_on_aws(aws: Aws) -> None:
    done = aws("sqs", "get-queue-url", "--queue-name", "nothing-here", check=False)
    assert done.returncode != 0
    assert "AWS.SimpleQueueService.NonExistentQueue" in done.stderr


def test_what_env_prints_is_all_a_shell_needs(node: OwnNode, aws_cli: Path) -> None:
    script = (
        f'eval $("{sys.executable}" -m tasuki.cli.main env --data "{node.data}"); '
        f'"{aws_cli}" stepfunctions list-state-machines && "{aws_cli}" --endpoint-url "$AWS_ENDPOINT_URL" sqs list-queues'
    )
    clean = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    done = subprocess.run(["sh", "-c", script], env=clean, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "stateMachines" in done.stdout
