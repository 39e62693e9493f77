"""boto3 from outside: unchanged AWS code against a real node."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tasuki.cli.own_node import OwnNode
from tests.clients.conftest import ROLE, Boto, client_of, write_images

pytestmark = pytest.mark.clients


def queue(boto: Boto, name: str, **attributes: str) -> tuple[str, str]:
    sqs = boto("sqs")
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def receive(boto: Boto, url: str, count: int) -> list[dict[str, Any]]:
    """Long-poll until `count` messages have come; an empty answer means that no more come."""
    sqs = boto("sqs")
    bodies: list[dict[str, Any]] = []
    while len(bodies) < count:
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=20).get("Messages", [])
        if not messages:
            break
        bodies += [json.loads(message["Body"]) for message in messages]
        sqs.delete_message_batch(
            QueueUrl=url,
            Entries=[{"Id": str(at), "ReceiptHandle": m["ReceiptHandle"]} for at, m in enumerate(messages)],
        )
    return bodies


def run_and_tell(family: str, results: str) -> dict[str, Any]:
    """A machine that runs a task for each message and announces its end, good or bad."""
    tell = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": True}
    return {
        "StartAt": "Run",
        "States": {
            "Run": {
                "Type": "Task",
                "Resource": "arn:aws:states:::ecs:runTask.sync",
                "Parameters": {
                    "TaskDefinition": family,
                    "Overrides": {
                        "ContainerOverrides": [
                            {"Name": "main", "Environment": [{"Name": "WHO", "Value.$": "$[0].body"}]}
                        ]
                    },
                },
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "TellFailure"}],
                "Next": "TellEnd",
            },
            "TellEnd": {
                **tell,
                "Parameters": {
                    "QueueUrl": results,
                    "MessageBody": {
                        "task.$": "$.TaskArn",
                        "exit.$": "$.Containers[0].ExitCode",
                        "execution.$": "$$.Execution.Id",
                        "created.$": "$.CreatedAt",
                        "started.$": "$.StartedAt",
                    },
                },
            },
            "TellFailure": {
                **tell,
                "Parameters": {
                    "QueueUrl": results,
                    "MessageBody": {"error.$": "$.Error", "cause.$": "$.Cause", "execution.$": "$$.Execution.Id"},
                },
            },
        },
    }


def wire(boto: Boto, name: str, image: str, memory: int = 32) -> tuple[str, str]:
    """Queue, pipe, machine, task definition and results queue; answer the two queues' URLs."""
    source, source_arn = queue(boto, f"{name}-in")
    results, _ = queue(boto, f"{name}-out")
    boto("ecs").register_task_definition(
        family=name, containerDefinitions=[{"name": "main", "image": image, "memory": memory}]
    )
    machine = boto("stepfunctions").create_state_machine(
        name=name, definition=json.dumps(run_and_tell(name, results)), roleArn=ROLE
    )
    boto("pipes").create_pipe(
        Name=name,
        RoleArn=ROLE,
        Source=source_arn,
        SourceParameters={"SqsQueueParameters": {"BatchSize": 1}},
        Target=machine["stateMachineArn"],
        TargetParameters={"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}},
    )
    return source, results


def test_a_message_becomes_a_task_and_its_result_a_message(boto: Boto) -> None:
    source, results = wire(boto, "one", "hello")
    boto("sqs").send_message(QueueUrl=source, MessageBody="world")
    [told] = receive(boto, results, 1)
    assert told["exit"] == 0

    states = boto("stepfunctions")
    [task] = boto("ecs").describe_tasks(tasks=[told["task"]])["tasks"]
    assert (task["lastStatus"], task["containers"][0]["exitCode"]) == ("STOPPED", 0)
    events = states.get_execution_history(executionArn=told["execution"])["events"]
    kinds = [event["type"] for event in events]
    assert kinds[:5] == ["ExecutionStarted", "TaskStateEntered", "TaskScheduled", "TaskStarted", "TaskSubmitted"]
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))


def test_a_failing_task_is_caught_with_its_exit_code(boto: Boto) -> None:
    source, results = wire(boto, "broken", "fails")
    boto("sqs").send_message(QueueUrl=source, MessageBody="x")
    [told] = receive(boto, results, 1)
    assert told["error"] == "States.TaskFailed"
    assert json.loads(told["cause"])["Containers"][0]["ExitCode"] == 3


def test_an_image_without_mapping_names_the_line_to_add(boto: Boto) -> None:
    source, results = wire(boto, "unmapped", "nowhere")
    boto("sqs").send_message(QueueUrl=source, MessageBody="x")
    [told] = receive(boto, results, 1)
    assert "nowhere" in told["cause"]
    assert "tasuki.toml" in told["cause"]


def test_a_hundred_messages_at_once_are_a_hundred_tasks_with_no_setting_changed(boto: Boto) -> None:
    source, results = wire(boto, "burst", "quick", memory=16)
    sqs = boto("sqs")
    batches = [[{"Id": str(at), "MessageBody": f"job-{batch}-{at}"} for at in range(10)] for batch in range(10)]
    with ThreadPoolExecutor(10) as senders:
        list(senders.map(lambda entries: sqs.send_message_batch(QueueUrl=source, Entries=entries), batches))
    told = receive(boto, results, 100)
    assert len(told) == 100
    assert {one["exit"] for one in told} == {0}
    assert len({one["task"] for one in told}) == 100
    assert len({one["execution"] for one in told}) == 100
    waits = [one["started"] - one["created"] for one in told]
    assert max(waits) < 10_000, "a task waited more than 10 s for its turn"


def test_what_does_not_fit_the_memory_waits_its_turn_and_is_lost_in_no_case(tmp_path: Path) -> None:
    write_images(tmp_path, quick="true")
    with (tmp_path / "tasuki.toml").open("a") as settings:
        settings.write('[node]\nmemory = "64MiB"\n')
    with OwnNode(tmp_path) as small:
        boto = client_of(small)
        source, results = wire(boto, "tight", "quick", memory=32)
        states = boto("stepfunctions")
        [machine] = states.list_state_machines()["stateMachines"]
        definition = json.loads(states.describe_state_machine(stateMachineArn=machine["stateMachineArn"])["definition"])
        definition["States"]["Run"]["Retry"] = [
            {"ErrorEquals": ["AmazonECS.Unknown"], "IntervalSeconds": 1, "BackoffRate": 1, "MaxAttempts": 50}
        ]
        states.update_state_machine(stateMachineArn=machine["stateMachineArn"], definition=json.dumps(definition))
        boto("sqs").send_message_batch(
            QueueUrl=source, Entries=[{"Id": str(at), "MessageBody": str(at)} for at in range(8)]
        )
        told = receive(boto, results, 8)
        assert [one["exit"] for one in told] == [0] * 8
        failures = 0
        for one in told:
            events = states.get_execution_history(executionArn=one["execution"])["events"]
            causes = [e["taskSubmitFailedEventDetails"]["cause"] for e in events if e["type"] == "TaskSubmitFailed"]
            causes += [e["taskFailedEventDetails"]["cause"] for e in events if e["type"] == "TaskFailed"]
            assert all("RESOURCE:MEMORY" in cause for cause in causes)
            failures += len(causes)
        assert failures > 0, "all eight fitted at once, so nothing was shown"


def test_errors_are_awss_own(boto: Boto) -> None:
    with pytest.raises(ClientError) as no_queue:
        boto("sqs").get_queue_url(QueueName="nothing-here")
    assert no_queue.value.response["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"
    with pytest.raises(boto("stepfunctions").exceptions.InvalidDefinition) as bad:
        boto("stepfunctions").create_state_machine(
            name="bad", definition='{"StartAt": "A", "States": {"A": {"Type": "Pass"}}}', roleArn=ROLE
        )
    assert "/States/A" in str(bad.value)
    with pytest.raises(ClientError) as no_machine:
        boto("stepfunctions").describe_state_machine(
            stateMachineArn="arn:aws:states:us-east-1:000000000000:stateMachine:none"
        )
    assert no_machine.value.response["Error"]["Code"] == "StateMachineDoesNotExist"
