"""boto3, unchanged, against the door on a loopback port, with operations that answer from a script."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
import uvicorn
from botocore.config import Config as ClientConfig
from botocore.exceptions import ClientError

from tasuki.protocol.wire import settings
from tasuki.runtime.clock import SystemClock
from tasuki.values.config import Config
from tasuki.values.errors import DomainError
from tests.protocol.knocking import KEY, SECRET, Script, make_door

pytestmark = pytest.mark.clients


class ExecutionExists(DomainError):
    code = "ExecutionAlreadyExists"


class NoQueue(DomainError):
    code = "QueueDoesNotExist"
    query_code = "AWS.SimpleQueueService.NonExistentQueue"


class PipeNotFound(DomainError):
    code = "NotFoundException"
    status = 404


ANSWERS: dict[str, Any] = {
    "CreateQueue": {"QueueUrl": "http://127.0.0.1/000000000000/q"},
    "SendMessage": {"MessageId": "m", "MD5OfMessageBody": "841a2d689ad86bd1611447453c22c6fc"},
    "ReceiveMessage": {},
    "DeleteMessage": NoQueue("The specified queue does not exist."),
    "CreateStateMachine": {"stateMachineArn": "arn:m", "creationDate": 1_796_040_000_123},
    "StartExecution": ExecutionExists("Execution Already Exists: 'arn:e'"),
    "RunTask": {"tasks": [{"taskArn": "arn:t", "lastStatus": "PENDING"}], "failures": []},
    "DescribePipe": PipeNotFound("Pipe p does not exist."),
    "ListPipes": {"Pipes": [{"Name": "p", "CreationTime": 1_796_040_000_000}]},
}


class Clients:
    def __init__(self, port: int, script: Script) -> None:
        self.port, self.script = port, script

    def __call__(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=ClientConfig(retries={"total_max_attempts": 1}),
        )


@pytest.fixture(scope="module")
def client() -> Iterator[Clients]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    script = Script(answers=ANSWERS)
    clock = SystemClock()
    door = make_door(script, config=Config(data=Path(), port=port, dev=True), clock=clock, real_clock=clock)
    server = uvicorn.Server(settings(door, loop="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    yield Clients(port, script)
    server.should_exit = True
    thread.join()
    listener.close()


def test_sqs(client: Clients) -> None:
    sqs = client("sqs")
    url = sqs.create_queue(QueueName="q", Attributes={"DelaySeconds": "1"})["QueueUrl"]
    assert sqs.send_message(QueueUrl=url, MessageBody="body")["MessageId"] == "m"
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    with pytest.raises(sqs.exceptions.QueueDoesNotExist) as gone:
        sqs.delete_message(QueueUrl=url, ReceiptHandle="r")
    error = gone.value.response["Error"]
    assert (error["Code"], error["QueryErrorCode"]) == ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
    assert error["Type"] == "Sender"


def test_step_functions(client: Clients) -> None:
    states = client("stepfunctions")
    made = states.create_state_machine(name="m", definition="{}", roleArn="arn:aws:iam::000000000000:role/r")
    assert made["creationDate"].astimezone(UTC) == datetime(2026, 11, 30, 12, 0, 0, 123_000, tzinfo=UTC)
    with pytest.raises(states.exceptions.ExecutionAlreadyExists, match="Execution Already Exists: 'arn:e'"):
        states.start_execution(stateMachineArn="arn:m", input="{}")
    with pytest.raises(ClientError, match="Tasuki doesn't offer states:StopExecution") as refused:
        states.stop_execution(executionArn="arn:e")
    assert refused.value.response["Error"]["Code"] == "UnknownOperationException"


def test_ecs(client: Clients) -> None:
    assert client("ecs").run_task(taskDefinition="t")["tasks"][0]["taskArn"] == "arn:t"


def test_pipes(client: Clients) -> None:
    pipes = client("pipes")
    assert pipes.list_pipes()["Pipes"][0]["CreationTime"].timestamp() == 1_796_040_000
    with pytest.raises(pipes.exceptions.NotFoundException, match="Pipe p does not exist") as missing:
        pipes.describe_pipe(Name="p")
    assert missing.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_a_service_that_is_not_offered(client: Clients) -> None:
    with pytest.raises(ClientError, match="Tasuki doesn't offer the service 'dynamodb'"):
        client("dynamodb").list_tables()


def test_many_requests_on_one_connection(client: Clients) -> None:
    sqs = client("sqs")
    ids = {sqs.list_queues()["ResponseMetadata"]["RequestId"] for _ in range(20)}
    assert len(ids) == 20
