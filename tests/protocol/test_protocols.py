"""Requests as botocore writes them, answers as botocore reads them: it is the oracle for every protocol."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tasuki.values.instant import from_datetime
from tests.protocol.knocking import NOON, Script, error_of, knock, make_app, sign, understood, written

NOW = from_datetime(NOON)
BLOB = b"\x00\xffblob"
URL = "http://127.0.0.1:4566/000000000000/jobs"
MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:m"

ROUND_TRIPS: list[tuple[str, str, dict[str, Any], dict[str, Any] | None, dict[str, Any]]] = [
    # service, operation, input, input as rooms get it (None: the same), output of the room
    (
        "sqs",
        "SendMessage",
        {
            "QueueUrl": URL,
            "MessageBody": 'a "b" ü 😀',
            "DelaySeconds": 5,
            "MessageAttributes": {
                "n": {"DataType": "Number", "StringValue": "1"},
                "b": {"DataType": "Binary", "BinaryValue": BLOB},
            },
        },
        None,
        {"MessageId": "m-1", "MD5OfMessageBody": "0" * 32},
    ),
    (
        "sqs",
        "ReceiveMessage",
        {"QueueUrl": URL, "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]},
        None,
        {
            "Messages": [
                {
                    "MessageId": "m",
                    "Body": "x<y>&",
                    "Attributes": {"SenderId": "me"},
                    "MessageAttributes": {"b": {"DataType": "Binary", "BinaryValue": BLOB}},
                }
            ]
        },
    ),
    (
        "sqs",
        "CreateQueue",
        {"QueueName": "q", "Attributes": {"DelaySeconds": "3"}, "tags": {"k": "v"}},
        None,
        {"QueueUrl": URL},
    ),
    (
        "stepfunctions",
        "CreateStateMachine",
        {"name": "m", "definition": "{}", "roleArn": "arn:aws:iam::1:role/r", "type": "STANDARD", "publish": True},
        None,
        {"stateMachineArn": MACHINE, "creationDate": NOW},
    ),
    (
        "stepfunctions",
        "GetExecutionHistory",
        {"executionArn": "arn:x", "maxResults": 10, "reverseOrder": True},
        None,
        {
            "events": [
                {
                    "timestamp": NOW + 123,
                    "type": "ExecutionStarted",
                    "id": 1,
                    "previousEventId": 0,
                    "executionStartedEventDetails": {"input": "{}", "inputDetails": {"truncated": False}},
                }
            ]
        },
    ),
    (
        "ecs",
        "RunTask",
        {
            "taskDefinition": "routing:1",
            "count": 2,
            "overrides": {
                "containerOverrides": [{"name": "c", "environment": [{"name": "A", "value": "1"}], "memory": 64}]
            },
        },
        None,
        {
            "tasks": [{"taskArn": "arn:t", "createdAt": NOW, "containers": [{"name": "c", "exitCode": 0}]}],
            "failures": [],
        },
    ),
    (
        "pipes",
        "CreatePipe",
        {
            "Name": "p",
            "Source": "arn:aws:sqs:us-east-1:000000000000:jobs",
            "Target": MACHINE,
            "RoleArn": "arn:aws:iam::000000000000:role/r",
            "SourceParameters": {"SqsQueueParameters": {"BatchSize": 5}},
            "Tags": {"a": "b"},
        },
        None,
        {"Arn": "arn:p", "Name": "p", "DesiredState": "RUNNING", "CurrentState": "CREATING", "CreationTime": NOW},
    ),
    (
        "pipes",
        "ListPipes",
        {"NamePrefix": "a_b.c", "Limit": 5, "DesiredState": "RUNNING"},
        None,
        {"Pipes": [{"Name": "p"}]},
    ),
    (
        "pipes",
        "ListTagsForResource",
        {"resourceArn": "arn:aws:pipes:us-east-1:000000000000:pipe/p"},
        None,
        {"tags": {"a": "b"}},
    ),
    (
        "pipes",
        "UntagResource",
        {"resourceArn": "arn:aws:pipes:us-east-1:000000000000:pipe/p", "tagKeys": ["a", "b c"]},
        None,
        {},
    ),
    (
        "sns",
        "Publish",
        {
            "TopicArn": "arn:t",
            "Message": "héllo & <you>",
            "MessageAttributes": {"b": {"DataType": "Binary", "BinaryValue": BLOB}},
        },
        None,
        {"MessageId": "m-1"},
    ),
    (
        "sns",
        "CreateTopic",
        {"Name": "t", "Attributes": {"DisplayName": "d"}, "Tags": [{"Key": "k", "Value": "v"}]},
        None,
        {"TopicArn": "arn:t"},
    ),
    ("sns", "ListTopics", {}, None, {"Topics": [{"TopicArn": "arn:1"}, {"TopicArn": "arn:2"}], "NextToken": "n"}),
    (
        "lambda",
        "ListFunctions",
        {"MaxItems": 5, "Marker": "x/y"},
        None,
        {"Functions": [{"FunctionName": "f", "Timeout": 3}]},
    ),
    (
        "lambda",
        "CreateFunction",
        {"FunctionName": "f", "Role": "arn:aws:iam::000000000000:role/r", "Code": {"ZipFile": BLOB}, "Publish": True},
        None,
        {"FunctionName": "f", "CodeSize": 3},
    ),
]


@pytest.mark.parametrize(
    ("service", "operation", "given", "expected", "output"), ROUND_TRIPS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_botocore_and_a_room_understand_each_other(
    service: str, operation: str, given: dict[str, Any], expected: dict[str, Any] | None, output: dict[str, Any]
) -> None:
    script = Script(answers={operation: output})
    heard = knock(make_app(script), written(service, operation, given))
    assert heard.status in {200, 201}, heard
    assert script.seen[0].input == (given if expected is None else expected)
    answer = understood(service, operation, heard)
    metadata = answer.pop("ResponseMetadata")
    assert metadata["RequestId"] == heard.headers["x-amzn-requestid"] == script.seen[0].request_id
    assert _instants(answer) == output


def _instants(value: Any) -> Any:
    if isinstance(value, datetime):
        return from_datetime(value.astimezone(UTC))
    if isinstance(value, dict):
        return {name: _instants(inner) for name, inner in value.items()}
    return [_instants(inner) for inner in value] if isinstance(value, list) else value


def test_a_payload_goes_through_untouched() -> None:
    script = Script(answers={"Invoke": {"StatusCode": 200, "Payload": BLOB, "FunctionError": "Unhandled"}})
    request = written(
        "lambda", "Invoke", {"FunctionName": "a:b", "InvocationType": "RequestResponse", "Payload": b"{not json"}
    )
    heard = knock(make_app(script), request)
    assert script.seen[0].input == {"FunctionName": "a:b", "InvocationType": "RequestResponse", "Payload": b"{not json"}
    assert heard.body == BLOB
    assert heard.headers["x-amz-function-error"] == "Unhandled"


def test_a_request_knows_where_it_came_from() -> None:
    script = Script()
    request = written("sqs", "ListQueues", {}, region="eu-west-1", host="localhost:4566")
    knock(make_app(script), request.add("x-amzn-trace-id", "Root=1-2-3"))
    seen = script.seen[0]
    assert (seen.service, seen.operation, seen.region, seen.account) == (
        "sqs",
        "ListQueues",
        "eu-west-1",
        "000000000000",
    )
    assert (seen.base_url, seen.trace) == ("http://localhost:4566", "Root=1-2-3")


def test_the_sync_prefix_of_the_host_is_stripped() -> None:
    script = Script()
    heard = knock(make_app(script), written("sqs", "ListQueues", {}, host="sync-localhost:4566"))
    assert heard.status == 200
    assert script.seen[0].base_url == "http://localhost:4566"


def test_an_operation_without_output_answers_an_empty_body() -> None:
    heard = knock(make_app(Script()), written("sqs", "DeleteMessage", {"QueueUrl": URL, "ReceiptHandle": "r"}))
    assert (heard.status, heard.body) == (200, b"")


def test_members_that_are_none_are_left_out() -> None:
    heard = knock(make_app(Script(answers={"SendMessage": {"MessageId": "m", "SequenceNumber": None}})), _send("x"))
    assert heard.body == b'{"MessageId":"m"}'


def test_unknown_members_and_nulls_are_passed_over() -> None:
    script = Script()
    body = b'{"QueueName": "q", "tags": null, "Later": [1]}'
    heard = knock(make_app(script), sign("sqs", headers={"X-Amz-Target": "AmazonSQS.CreateQueue"}, body=body))
    assert heard.status == 200
    assert script.seen[0].input == {"QueueName": "q"}


def test_health_needs_no_signature() -> None:
    request = sign("sqs", "GET", "/_tasuki/health")
    request.headers = [("host", "127.0.0.1:4566")]
    heard = knock(make_app(Script()), request)
    assert (heard.status, heard.body) == (200, b'{"status":"ok"}')


@pytest.mark.parametrize(
    ("service", "operation", "expected"),
    [
        (
            "stepfunctions",
            "StopExecution",
            (400, "UnknownOperationException", "Tasuki doesn't offer states:StopExecution"),
        ),
        ("sqs", "PurgeQueue", (400, "InvalidAction", "Tasuki doesn't offer sqs:PurgeQueue")),
        ("pipes", "StopPipe", (400, "UnknownOperationException", "Tasuki doesn't offer pipes:StopPipe")),
        ("sns", "DeleteTopic", (400, "InvalidAction", "Tasuki doesn't offer sns:DeleteTopic")),
        ("dynamodb", "ListTables", (400, "UnknownOperationException", "Tasuki doesn't offer the service 'dynamodb'")),
        ("s3", "ListBuckets", (400, "InvalidAction", "Tasuki doesn't offer the service 's3'")),
        ("ec2", "DescribeRegions", (400, "InvalidAction", "Tasuki doesn't offer the service 'ec2'")),
        ("iam", "ListUsers", (400, "InvalidAction", "Tasuki doesn't offer the service 'iam'")),
        ("batch", "ListJobs", (400, "UnknownOperationException", "Tasuki doesn't offer the service 'batch'")),
        ("route53", "ListHostedZones", (400, "InvalidAction", "Tasuki doesn't offer the service 'route53'")),
    ],
)
def test_what_is_not_offered_is_refused_in_its_own_protocol(
    service: str, operation: str, expected: tuple[int, str, str]
) -> None:
    given = {
        "StopExecution": {"executionArn": "arn:x"},
        "PurgeQueue": {"QueueUrl": URL},
        "StopPipe": {"Name": "p"},
        "DeleteTopic": {"TopicArn": "arn:t"},
        "ListJobs": {"jobQueue": "q"},
    }.get(operation, {})
    heard = knock(make_app(Script()), written(service, operation, given))
    assert error_of(service, operation, heard) == expected


def test_an_operation_that_nobody_knows() -> None:
    heard = knock(make_app(Script()), sign("sqs", headers={"X-Amz-Target": "AmazonSQS.Nonsense"}, body=b"{}"))
    assert error_of("sqs", "ListQueues", heard) == (400, "InvalidAction", "There is no operation Nonsense of 'sqs'")
    heard = knock(make_app(Script()), sign("pipes", "GET", "/v9/nothing"))
    assert error_of("pipes", "ListPipes", heard)[:2] == (404, "UnknownOperationException")


def test_cbor_is_refused_clearly() -> None:
    request = sign("sqs", path="/service/AmazonSQS/operation/ListQueues", headers={"Smithy-Protocol": "rpc-v2-cbor"})
    heard = knock(make_app(Script()), request)
    assert heard.status == 400
    assert b"CBOR" in heard.body


def _send(body: str) -> Any:
    return written("sqs", "SendMessage", {"QueueUrl": URL, "MessageBody": body})
