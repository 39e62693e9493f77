"""A task that calls back: with the endpoint and the key that it was given, as unchanged boto3 code finds them."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError

from tasuki.cli.own_node import OwnNode
from tests.clients.conftest import ROLE, Boto, client_of, write_images
from tests.clients.test_boto3 import queue, receive

pytestmark = pytest.mark.clients

CALLS_BACK = """
import json, os
import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session

def refusal(call, **given):
    try:
        call(**given)
    except ClientError as bad:
        return bad.response["Error"]["Code"]
    return "none"

def clock():
    key = Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "Tasuki.AdvanceClock"}
    call = AWSRequest("POST", os.environ["AWS_ENDPOINT_URL"] + "/", headers, b'{"By": "1h"}')
    SigV4Auth(key, "tasuki", os.environ["AWS_REGION"]).add_auth(call)
    return json.loads(URLLib3Session().send(call.prepare()).content)["__type"].rpartition("#")[2]

sqs, ecs, events = boto3.client("sqs"), boto3.client("ecs"), boto3.client("events")
sqs.send_message(QueueUrl=os.environ["QUEUE"], MessageBody="from inside")
said = {
    "delete": refusal(sqs.delete_queue, QueueUrl=os.environ["QUEUE"]),
    "run": refusal(ecs.run_task, taskDefinition="caller"),
    "rule": refusal(events.put_rule, Name="mine", ScheduleExpression="rate(1 minute)"),
    "clock": clock(),
    "put": events.put_events(Entries=[{"Source": "caller", "DetailType": "done", "Detail": "{}"}])["FailedEntryCount"],
    "task": os.environ["TASUKI_TASK_ARN"],
    "key": os.environ["AWS_ACCESS_KEY_ID"],
    "secret": os.environ["AWS_SECRET_ACCESS_KEY"],
}
boto3.client("stepfunctions").send_task_success(taskToken=os.environ["TOKEN"], output=json.dumps(said))
"""


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[OwnNode]:
    write_images(tmp_path, caller=f'exec "{sys.executable}" caller.py')
    (tmp_path / "caller.py").write_text(CALLS_BACK)
    with OwnNode(tmp_path) as node:
        yield node


def call_back(boto: Boto, work: str, results: str) -> None:
    """Run the caller in a state that waits for its token, and announce what it said."""
    boto("ecs").register_task_definition(
        family="caller", containerDefinitions=[{"name": "main", "image": "caller", "memory": 256}]
    )
    variables = [{"Name": "QUEUE", "Value": work}, {"Name": "TOKEN", "Value.$": "$$.Task.Token"}]
    states = {
        "Ask": {
            "Type": "Task",
            "Resource": "arn:aws:states:::ecs:runTask.waitForTaskToken",
            "Parameters": {
                "TaskDefinition": "caller",
                "Overrides": {"ContainerOverrides": [{"Name": "main", "Environment": variables}]},
            },
            "TimeoutSeconds": 60,
            "Next": "Tell",
        },
        "Tell": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage",
            "Parameters": {"QueueUrl": results, "MessageBody.$": "$"},
            "End": True,
        },
    }
    states_of = boto("stepfunctions")
    machine = states_of.create_state_machine(
        name="ask", definition=json.dumps({"StartAt": "Ask", "States": states}), roleArn=ROLE
    )
    states_of.start_execution(stateMachineArn=machine["stateMachineArn"])


def test_a_task_calls_back_with_a_key_of_its_own_that_may_do_little_and_ends_with_it(caller: OwnNode) -> None:
    boto = client_of(caller)
    work, _ = queue(boto, "work")
    results, _ = queue(boto, "results")
    heard, arn = queue(boto, "heard")
    boto("events").put_rule(Name="hear", EventPattern='{"source": ["caller"]}')
    boto("events").put_targets(Rule="hear", Targets=[{"Id": "q", "Arn": arn}])
    call_back(boto, work, results)
    [said] = receive(boto, results, 1)
    assert (said["delete"], said["run"]) == ("AccessDenied", "AccessDeniedException")
    assert (said["rule"], said["clock"]) == ("AccessDeniedException", "AccessDeniedException")
    assert [rule["Name"] for rule in boto("events").list_rules()["Rules"]] == ["hear"]
    [event] = receive(boto, heard, 1)
    assert (said["put"], event["detail-type"]) == (0, "done"), "what it did, it may announce"
    [message] = boto("sqs").receive_message(QueueUrl=work)["Messages"]
    assert message["Body"] == "from inside", "what it may do was done, and the queue is still there"

    while boto("ecs").describe_tasks(tasks=[said["task"]])["tasks"][0]["lastStatus"] != "STOPPED":
        pass  # it has said its last word; the process ends
    late = boto3.Session(said["key"], said["secret"], region_name="us-east-1")
    with pytest.raises(ClientError) as refused:
        late.client("sqs", endpoint_url=caller.url).get_queue_url(QueueName="work")
    assert refused.value.response["Error"]["Code"] == "InvalidClientTokenId"
    with pytest.raises(ClientError) as refused:
        late.client("stepfunctions", endpoint_url=caller.url).send_task_heartbeat(taskToken="any")
    assert refused.value.response["Error"]["Code"] == "UnrecognizedClientException"
