"""A node whose database goes away for a while, as its clients see it."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.own_postgres import NoServer, OwnServer
from tests.postgres import own_server

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def owned() -> Iterator[OwnServer]:
    try:
        one = own_server()
    except NoServer as why:
        pytest.skip(str(why))
    with one:
        yield one


@pytest.fixture
def node(owned: OwnServer, tmp_path: Path) -> Iterator[str]:
    """A node's URL."""
    words = ("up", "--data", str(tmp_path), "--port", "0", "--dev", "--json")
    process = subprocess.Popen(
        [sys.executable, "-m", "tasuki.cli.main", *words],
        env={**os.environ, "TASUKI_STORE": owned.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()


def client(node: str, tries: int) -> Any:
    """A client of boto3's that tries so often."""
    return boto3.client(
        "sqs",
        endpoint_url=node,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": tries}),
    )


def test_clients_wait_out_a_restart_and_hear_of_an_outage(owned: OwnServer, node: str) -> None:
    sqs = client(node, 4)
    queue = sqs.create_queue(QueueName="q")["QueueUrl"]
    blow = threading.Thread(target=owned.restart, args=("immediate",))
    sent = [sqs.send_message(QueueUrl=queue, MessageBody=f"before {n}")["MessageId"] for n in range(5)]
    blow.start()
    while blow.is_alive():
        sent.append(sqs.send_message(QueueUrl=queue, MessageBody="during")["MessageId"])
    sent.append(sqs.send_message(QueueUrl=queue, MessageBody="after")["MessageId"])
    names = ["ApproximateNumberOfMessages"]
    counted = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"][names[0]]
    assert int(counted) >= len(set(sent)) == len(sent)  # one that was tried again may be there twice

    owned.stop()
    with pytest.raises(ClientError) as caught:
        client(node, 1).send_message(QueueUrl=queue, MessageBody="into nothing")
    assert caught.value.response["Error"]["Code"] == "ServiceUnavailable"
    assert "Nothing was stored; send it again" in caught.value.response["Error"]["Message"]
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    owned.start()
    assert sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"][names[0]] == counted
