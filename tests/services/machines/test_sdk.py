"""`aws-sdk:` integrations: what our own rooms offer, called from a Task."""

import random
from typing import Any

import pytest

from tasuki.language.integration_lint import OFFERED, OFFERED_OF
from tasuki.language.integration_parameters import SDK_MODELS
from tasuki.services import buses, deliveries, pipes, queues, schedules, tasks
from tasuki.store.store import Tx
from tasuki.values.documents import loads
from tasuki.values.operations import Operation, Request
from tasuki.values.sdk_shapes import Misfit, read, sdk_name, show
from tasuki.values.service_models import Shape, service_model
from tests.services.machines.stubs import PASS, Play, Refused, task

SDK = "arn:aws:states:::aws-sdk:"


@pytest.fixture
def play() -> Any:
    play = Play(rooms=(queues.room, tasks.room, pipes.room, deliveries.room, buses.room, schedules.room))
    with play.house:
        yield play


def queue(play: Play, name: str = "q", **attributes: str) -> str:
    return str(play.house.call("sqs", "CreateQueue", {"QueueName": name, "Attributes": attributes})["QueueUrl"])


def called(play: Play, action: str, parameters: dict[str, Any], given: Any = None) -> Any:
    """Answer the output of a machine that calls one operation."""
    execution = play.start(play.create(task(f"aws-sdk:{action}", parameters), f"m{play.house.chance.hex(8)}"), given)
    play.house.drain()
    return play.output(execution)


def failure(play: Play, action: str, parameters: dict[str, Any], **more: Any) -> tuple[str, str]:
    execution = play.start(play.create(task(f"aws-sdk:{action}", parameters, **more), f"m{play.house.chance.hex(8)}"))
    play.house.drain()
    described = play.describe(execution)
    assert described["status"] == "FAILED"
    return described["error"], described["cause"]


def test_names_are_those_of_the_sdk_for_java() -> None:
    names = ("MD5OfBody", "stateMachineArn", "AWSAccountIds", "ETag", "DBInstanceArn", "SSEKMSKeyId", "taskArns", "SFN")
    assert [sdk_name(name) for name in names] == [
        "Md5OfBody",
        "StateMachineArn",
        "AwsAccountIds",
        "ETag",
        "DbInstanceArn",
        "SsekmsKeyId",
        "TaskArns",
        "Sfn",
    ]


def test_an_execution_is_started_as_recorded(play: Play) -> None:
    """Recorded: aws_sdk_task_service/test_sfn_start_execution, ..._implicit_json_serialisation."""
    child = play.create(PASS, "child")
    machine = task("aws-sdk:sfn:startExecution", {"StateMachineArn": child, "Input": {"key": "value"}, "Name": "c"})
    execution = play.run(machine)
    play.house.drain()
    output = play.output(execution)
    started = child.replace(":stateMachine:", ":execution:") + ":c"
    assert output == {"ExecutionArn": started, "StartDate": "2026-01-01T00:00:00.000Z"}
    assert loads(play.describe(started)["input"]) == {"key": "value"}
    events = play.events(execution)
    assert [event["type"] for event in events][2:5] == ["TaskScheduled", "TaskStarted", "TaskSucceeded"]
    assert events[2]["taskScheduledEventDetails"]["resourceType"] == "aws-sdk:sfn"
    assert loads(events[4]["taskSucceededEventDetails"]["output"]) == output


def test_messages_are_sent_and_received(play: Play) -> None:
    url = queue(play)
    sent = called(play, "sqs:sendMessage", {"QueueUrl": url, "MessageBody": {"a": 1}})
    assert set(sent) == {"Md5OfMessageBody", "MessageId"}
    received = called(play, "sqs:receiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20})
    (message,) = received["Messages"]
    assert (message["Body"], message["MessageId"]) == ('{"a":1}', sent["MessageId"])
    assert set(message) == {"Body", "Md5OfBody", "MessageId", "ReceiptHandle"}
    # A long poll that finds nothing answers at once.
    assert called(play, "sqs:receiveMessage", {"QueueUrl": url, "WaitTimeSeconds": 20}) == {}
    assert called(play, "sqs:deleteMessage", {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}) == {}
    assert called(play, "sqs:getQueueUrl", {"QueueName": "q"}) == {"QueueUrl": url}


def test_tasks_and_pipes_are_called_in_pascal_case(play: Play) -> None:
    registered = called(
        play,
        "ecs:registerTaskDefinition",
        {"Family": "f", "ContainerDefinitions": [{"Name": "main", "Image": "job", "Memory": 64}]},
    )
    assert registered["TaskDefinition"]["ContainerDefinitions"][0]["Name"] == "main"
    assert registered["TaskDefinition"]["RegisteredAt"].endswith("Z")
    assert called(play, "pipes:listPipes", {}) == {"Pipes": []}


@pytest.mark.parametrize(
    ("action", "parameters", "error", "cause"),
    [
        (
            "sqs:sendMessage",
            {"QueueUrl": "http://127.0.0.1:4566/000000000000/none", "MessageBody": "x"},
            "Sqs.QueueDoesNotExistException",
            "The specified queue does not exist. (Service: Sqs, Status Code: 400, Request ID: ",
        ),
        (
            "sfn:sendTaskSuccess",
            {"TaskToken": "nonsense", "Output": "{}"},
            "Sfn.InvalidTokenException",
            "Invalid Token: 'Invalid token' (Service: Sfn, Status Code: 400, Request ID: ",
        ),
        (
            "sfn:listExecutions",
            {"StateMachineArn": "a", "MaxResults": 1001},
            "Sfn.ValidationException",
            "1 validation error detected: Value '1001' at 'maxResults' failed to satisfy constraint: ",
        ),
        ("sqs:receiveMessage", {"QueueUrl": None}, "Sqs.SqsException", "The request must contain the parameter QueueUrl."),
        ("ecs:runTask", {"TaskDefinition": "none"}, "Ecs.ClientException", "TaskDefinition not found. (Service: Ecs, "),
    ],
)  # fmt: skip
def test_errors_have_the_names_and_causes_of_the_sdk(
    play: Play, action: str, parameters: dict[str, Any], error: str, cause: str
) -> None:
    told = failure(play, action, parameters)
    assert told[0] == error
    assert told[1].startswith(cause), told[1]
    assert told[1].endswith(") (SDK Attempt Count: 1)")


@pytest.mark.parametrize(
    ("resource", "parameters", "complaint"),
    [
        ("aws-sdk:sqs:sendMessage", {"QueueUrl": "q", "MessageBody": "b", "queueUrl": 1}, 'The field "queueUrl" is not supported by Step Functions'),
        ("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": "b", "MessageSystemAttributes": {}}, 'The field "MessageSystemAttributes" is not supported by Step Functions'),
        ("sqs:sendMessage.waitForTaskToken", {"MessageBody.$": "$$.Task.Token", "QueueURL": "q"}, 'The field "QueueURL" is not supported by Step Functions'),
        ("states:startExecution.sync:2", {"Input": {}}, "The field 'StateMachineArn' is required but was missing"),
        ("ecs:runTask.sync", {"Cluster": "c"}, "The field 'TaskDefinition' is required but was missing"),
        ("ecs:runTask", {"TaskDefinition": "t", "Overrides": {"ContainerOverrides": [{"Environment": [{"Name": "N", "Value": 3}]}]}}, "The value for the field 'Overrides.ContainerOverrides.Environment.Value' must be a STRING"),
        ("ecs:runTask", {"TaskDefinition": "t", "overrides": {}}, 'The field "overrides" is not supported by Step Functions'),
        ("aws-sdk:sqs:sendMessage", {"QueueUrl": "q"}, "The field 'MessageBody' is required but was missing"),
        ("aws-sdk:sqs:sendMessage", {"QueueUrl": 7, "MessageBody": "b"}, "The value for the field 'QueueUrl' must be a STRING"),
        ("aws-sdk:ecs:runTask", {"TaskDefinition": "t", "Overrides": {"ContainerOverrides": {}}}, "The value for the field 'Overrides.ContainerOverrides' must be a ARRAY"),
        ("aws-sdk:sqs:receiveMessage", {"QueueUrl": "q", "WaitTimeSeconds": 1.5}, "The value for the field 'WaitTimeSeconds' must be an INTEGER"),
        ("aws-sdk:sqs:receiveMessage", {"QueueUrl": "q", "WaitTimeSeconds": "1"}, "The value for the field 'WaitTimeSeconds' must be a NUMBER"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit_end_the_state_before_it_is_scheduled(
    play: Play, resource: str, parameters: dict[str, Any], complaint: str
) -> None:
    machine = task(resource, parameters)
    machine["States"]["T"]["Parameters"] = parameters
    execution = play.run(machine)
    described = play.describe(execution)
    assert described["error"] == "States.Runtime"
    start, _, end = described["cause"].partition(" could not be used to start the Task: ")
    assert start.startswith(
        "An error occurred while executing the state 'T' (entered at the event id #2). The Parameters '{"
    )
    assert end == f"[{complaint}]"
    assert play.types(execution) == ["ExecutionStarted", "TaskStateEntered", "ExecutionFailed"]


def test_a_service_without_a_room_fails_the_task_and_can_be_caught(play: Play) -> None:
    error, cause = failure(play, "dynamodb:putItem", {})
    assert error == "DynamoDb.SdkClientException"
    assert "is not offered here. Offered: ecs:runTask, " in cause
    assert "aws-sdk:sfn:*" in cause
    for resource, prefix in (("sns:publish", "SNS"), ("lambda:invoke", "Lambda"), ("aws-sdk:sqs:fly", "Sqs")):
        caught = [{"ErrorEquals": ["States.ALL"], "Next": "E"}]
        machine = task(resource, {}, Catch=caught)
        machine["States"]["E"] = {"Type": "Pass", "End": True}
        execution = play.start(play.create(machine, prefix))
        assert play.output(execution)["Error"] == f"{prefix}.SdkClientException"


def test_a_slip_in_an_operation_s_name_is_called_one(play: Play) -> None:
    _, cause = failure(play, "sqs:sendMesage", {})
    assert cause.endswith(
        f"The resource {SDK}sqs:sendMesage does not exist: SQS has no operation sendMesage. "
        "The nearest is aws-sdk:sqs:sendMessage."
    )
    _, cause = failure(play, "ecs:createService", {"ServiceName": "s"})
    assert "is not offered here. Offered of aws-sdk:ecs: createCluster, " in cause


def test_lint_knows_what_the_rooms_offer(play: Play) -> None:
    switchboard = play.house.switchboard
    assert {name for name in switchboard.integrations if not name.startswith("aws-sdk:")} == OFFERED
    for service in SDK_MODELS.values():
        model = service_model(service)
        assert model is not None
        offered = {name for of, name in switchboard.operations if of == service}
        assert offered == OFFERED_OF.get(service, set(model.names()))


def waiting(url: str) -> dict[str, Any]:
    message = {"QueueUrl": url, "MessageBody": {"Token.$": "$$.Task.Token"}}
    return {
        "Type": "Task",
        "Resource": f"{SDK}sqs:sendMessage.waitForTaskToken",
        "Parameters": message,
        "HeartbeatSeconds": 30,
        "End": True,
    }


def answering(url: str) -> dict[str, Any]:
    """Receive a token, give a sign of life, and answer it."""
    return {
        "StartAt": "Receive",
        "States": {
            "Receive": {
                "Type": "Task",
                "Resource": f"{SDK}sqs:receiveMessage",
                "Parameters": {"QueueUrl": url},
                "ResultSelector": {"Message.$": "States.StringToJson($.Messages[0].Body)"},
                "Next": "Beat",
            },
            "Beat": {
                "Type": "Task",
                "Resource": f"{SDK}sfn:sendTaskHeartbeat",
                "Parameters": {"TaskToken.$": "$.Message.Token"},
                "ResultPath": None,
                "Next": "Answer",
            },
            "Answer": {
                "Type": "Task",
                "Resource": f"{SDK}sfn:sendTaskSuccess",
                "Parameters": {"TaskToken.$": "$.Message.Token", "Output": {"done": True}},
                "End": True,
            },
        },
    }


def test_a_machine_answers_the_tokens_of_another(play: Play) -> None:
    url = queue(play)
    waits = play.start(play.create({"StartAt": "W", "States": {"W": waiting(url)}}, "waits"))
    assert play.describe(waits)["status"] == "RUNNING"
    answers = play.start(play.create(answering(url), "answers"))
    play.house.drain()
    assert play.output(answers) == {}
    assert play.output(waits) == {"done": True}
    assert "TaskSubmitted" in play.types(waits)
    assert play.left_over() == {}


def test_an_execution_answers_its_own_token_in_the_unit_that_made_it(play: Play) -> None:
    url = queue(play)
    branches = [{"StartAt": "W", "States": {"W": waiting(url)}}, answering(url)]
    both = {"StartAt": "P", "States": {"P": {"Type": "Parallel", "Branches": branches, "End": True}}}
    execution = play.run(both)
    play.house.drain()
    assert play.output(execution) == [{"done": True}, {}]
    assert play.left_over() == {}


def test_an_execution_stops_itself(play: Play) -> None:
    machine = task("aws-sdk:sfn:stopExecution", {"ExecutionArn.$": "$$.Execution.Id", "Cause": "enough"})
    machine["States"]["T"] |= {"Next": "W"}
    del machine["States"]["T"]["End"]
    machine["States"]["W"] = {"Type": "Wait", "Seconds": 60, "End": True}
    execution = play.run(machine)
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["cause"]) == ("ABORTED", "enough")
    assert play.left_over() == {}


def test_what_an_operation_wrote_before_it_said_no_is_undone(play: Play) -> None:
    create = play.house.switchboard.operations["sqs", "CreateQueue"]

    def run(tx: Tx, request: Request) -> dict[str, Any]:
        create.run(tx, request)
        raise Refused("after all, no")

    play.house.switchboard.operations["sqs", "CreateQueue"] = Operation("write", run)
    error, cause = failure(play, "sqs:createQueue", {"QueueName": "half"})
    assert (error, cause[:13]) == ("Sqs.SqsException", "after all, no")
    assert called(play, "sqs:listQueues", {}) == {}


def test_values_of_all_kinds_are_read_and_shown() -> None:
    model = service_model("sqs")
    assert model is not None
    send = model.action("SendMessage")
    assert send is not None
    given = {
        "QueueUrl": "q",
        "MessageBody": ["x"],
        "DelaySeconds": 3.0,
        "MessageAttributes": {"Camel": {"DataType": "Binary", "BinaryValue": "é"}, "Gone": None},
        "MessageGroupId": None,
    }
    assert read(send.input, given) == {
        "QueueUrl": "q",
        "MessageBody": '["x"]',
        "DelaySeconds": 3,
        "MessageAttributes": {"Camel": {"DataType": "Binary", "BinaryValue": "é".encode()}},
    }
    with pytest.raises(Misfit, match="must be a STRING"):
        read(send.input, given, implicit=False)
    states = service_model("stepfunctions")
    assert states is not None
    describe = states.action("DescribeExecution")
    assert describe is not None
    assert show(describe.output, {"startDate": 5, "inputDetails": {"included": True}, "error": None}) == {
        "StartDate": "1970-01-01T00:00:00.005Z",
        "InputDetails": {"Included": True},
    }
    assert show(None, {}) == {}


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+09:00", "9999-12-31T23:59:59-09:00", "2026-01-31T06:00:00", 7])
def test_a_time_that_is_no_date_does_not_fit(time: Any) -> None:
    model = service_model("events")
    put = model.action("PutEvents") if model is not None else None
    assert put is not None
    assert read(put.input, {"Entries": [{"Time": "2026-01-31T06:00:00Z"}]})["Entries"][0]["Time"] == 1_769_839_200_000
    with pytest.raises(Misfit, match="must be a valid ISO 8601 timestamp"):
        read(put.input, {"Entries": [{"Time": time}]})


ODD: list[Any] = [
    None,
    True,
    -1,
    10**400,
    2**63,
    1.5,
    "",
    "x",
    "\0",
    "{",
    [],
    {},
    "arn:aws:sqs:us-east-1:000000000000:q",
]
PARTS = {"stepfunctions": "sfn", "sqs": "sqs", "ecs": "ecs", "pipes": "pipes"}


def something(shape: Shape, source: random.Random, depth: int = 0) -> Any:
    """Make parameters that mostly fit the model."""
    if depth and source.random() < 0.15:
        return source.choice(ODD)
    if shape.kind == "structure":
        members = [
            one for one in shape.members.values() if one.name in shape.required or source.random() < 0.3 / (depth + 1)
        ]
        return {sdk_name(one.name): something(one.shape, source, depth + 1) for one in members}
    if shape.kind == "list":
        return [something(shape.element.shape, source, depth + 1) for _ in range(source.randrange(3))]
    if shape.kind == "map":
        return {"a": something(shape.pair[1].shape, source, depth + 1)}
    if shape.enum:
        return source.choice(shape.enum)
    plain = {"boolean": True, "integer": 1, "long": 1, "double": 0.5, "float": 0.5, "timestamp": "2026-01-01T00:00:00Z"}
    return plain.get(shape.kind, "q")


def test_whatever_is_called_with_whatever_comes_to_an_end(play: Play) -> None:
    source = random.Random(7)
    for service, name in sorted(play.house.switchboard.operations):
        model = service_model(service) if service in PARTS else None
        action = model.action(name) if model is not None else None
        if action is None or name in {"GetActivityTask", "StartSyncExecution"}:  # these wait
            continue
        for _ in range(3):
            machine = task(f"aws-sdk:{PARTS[service]}:{name[0].lower()}{name[1:]}")
            machine["States"]["T"]["Parameters"] = something(action.input, source)
            execution = play.start(play.create(machine, f"m{play.house.chance.hex(8)}"))
            play.house.drain()
            assert play.describe(execution)["status"] in {"SUCCEEDED", "FAILED"}, machine
