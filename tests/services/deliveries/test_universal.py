"""Universal targets of Scheduler: any operation of the house; and machines and clusters, as schedules give to them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tasuki.services import machines, tasks
from tasuki.services.sdk import universal_problem
from tasuki.values.documents import dumps
from tests.services.deliveries.bench import URL, Bench

SDK = "arn:aws:scheduler:::aws-sdk:"
ROLE = "arn:aws:iam::000000000000:role/r"
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(machines.room, tasks.room)
    yield made
    made.house.close()


def machine(bench: Bench, name: str = "m", **more: Any) -> str:
    given = {"name": name, "definition": dumps(PASS), "roleArn": ROLE, **more}
    arn: str = bench.house.call("stepfunctions", "CreateStateMachine", given)["stateMachineArn"]
    return arn


def executions(bench: Bench, arn: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bench.house.call("stepfunctions", "ListExecutions", stateMachineArn=arn)["executions"]
    return found


def describe(bench: Bench, arn: str) -> dict[str, Any]:
    return bench.house.call("stepfunctions", "DescribeExecution", executionArn=arn)


def failure(bench: Bench, arn: str, payload: str) -> str:
    bench.post(target=arn, payload=payload, max_retries=0)
    return bench.outcomes()[-1].removeprefix("DROPPED: MaximumRetryAttempts: ")


def test_a_message_is_sent_by_the_api_itself(bench: Bench) -> None:
    bench.queue("jobs")
    bench.post(target=SDK + "sqs:sendMessage", payload=dumps({"QueueUrl": URL + "jobs", "MessageBody": "hi <attempt>"}))
    assert [body for body, _ in bench.letters("jobs")] == ["hi 1"]
    assert bench.outcomes() == ["DELIVERED"]


@pytest.mark.parametrize("names", [("StateMachineArn", "Name", "Input"), ("stateMachineArn", "name", "input")])
def test_an_execution_gets_the_name_that_the_schedule_gives_it(bench: Bench, names: tuple[str, str, str]) -> None:
    arn = machine(bench)
    payload = dict(zip(names, (arn, "run-<id>", '{"at": 1}'), strict=True))
    bench.post(target=SDK + "sfn:startExecution", payload=dumps(payload))
    bench.house.drain()
    [shown] = executions(bench, arn)
    assert shown["name"] == f"run-{bench.sender.tries[0][3]}"
    found = describe(bench, shown["executionArn"])
    assert (found["status"], found["input"]) == ("SUCCEEDED", '{"at": 1}')
    handover = bench.house.call("tasuki", "ListHandovers", {})["Handovers"][0]
    assert handover["ExecutionArn"] == shown["executionArn"]


def test_a_refused_call_is_a_refused_try(bench: Bench) -> None:
    send = SDK + "sqs:sendMessage"
    gone = failure(bench, send, dumps({"QueueUrl": URL + "none", "MessageBody": "x"}))
    assert gone.startswith("AWS.SimpleQueueService.NonExistentQueue: ")
    assert failure(bench, send, "{").startswith(f"ValidationException: The input of {send} must be a JSON object")
    assert failure(bench, send, "").startswith(f"ValidationException: The input of {send} must be a JSON object")
    assert 'The field "Colour" is not supported by SendMessage' in failure(bench, send, '{"Colour": 1}')
    assert "The value for the field '' must be a OBJECT" in failure(bench, send, "[]")
    assert "'MessageBody' is required" in failure(bench, send, dumps({"QueueUrl": URL + "none"}))
    assert bench.left_over() == (0, 0)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("sqs:sendMessage", None),
        ("sfn:startExecution", None),
        ("ecs:runTask", None),
        ("sqs:createQueue", None),
        ("sqs:sendMesage", f"The service sqs has no action sendMesage ({SDK}sqs:sendMesage). Did you mean sendMessage?"),
        ("sqs:SendMessage", "Actions begin with a lower-case letter: sendMessage, not SendMessage"),
        ("sqs:getQueueUrl", "getQueueUrl only reads"),
        ("sqs:receiveMessage", "receiveMessage only reads"),
        ("sfn:listExecutions", "listExecutions only reads"),
        ("ecs:createService", "The action createService of ecs is not offered here"),
        ("s3:putObject", "No service s3 is offered here"),
        ("SQS:sendMessage", "No service SQS is offered here"),
        ("stepfunctions:startExecution", "No service stepfunctions is offered here"),
        ("sqs", "is not a universal target"),
    ],
)  # fmt: skip
def test_whoever_creates_a_schedule_hears_what_cannot_be_called(bench: Bench, target: str, said: str | None) -> None:
    problem = universal_problem(bench.house.switchboard, SDK + target)
    if said is None:
        assert problem is None
    else:
        assert problem is not None
        assert said in problem
        assert failure(bench, SDK + target, "{}") == f"ValidationException: {problem}"


@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_a_machine_is_started_and_not_waited_for(bench: Bench, kind: str) -> None:
    arn = machine(bench, type=kind)
    bench.post(target=arn, payload='{"date": "2026-01-01"}', watcher="watcher:w")
    assert bench.outcomes() == ["DELIVERED"]
    assert len(bench.told) == 1, "taken is enough"
    handover = bench.house.call("tasuki", "ListHandovers", {})["Handovers"][0]
    bench.house.drain()
    assert (":execution:m:" if kind == "STANDARD" else ":express:m:") in handover["ExecutionArn"]
    if kind == "STANDARD":
        found = describe(bench, handover["ExecutionArn"])
        assert (found["status"], found["input"]) == ("SUCCEEDED", '{"date": "2026-01-01"}')


def test_a_machine_that_comes_back_gets_the_execution_once(bench: Bench) -> None:
    arn = machine(bench)
    bench.house.call("stepfunctions", "DeleteStateMachine", stateMachineArn=arn)
    bench.house.drain()
    bench.post(target=arn, payload='{"attempt": "<attempt>"}')
    assert "StateMachineDoesNotExist" in bench.outcomes()[0]
    machine(bench)
    bench.house.advance(minutes=1)
    [shown] = executions(bench, arn)
    assert describe(bench, shown["executionArn"])["input"] == '{"attempt": "2"}'
    bench.house.advance(days=1)
    assert len(executions(bench, arn)) == 1


def test_a_house_that_is_full_of_executions_is_tried_until_there_is_room() -> None:
    bench = Bench(machines.room, open_executions=1)
    try:
        waits = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 100, "End": True}}}
        arn = machine(bench, definition=dumps(waits))
        for number in range(3):
            bench.post(target=arn, payload="{}", source_id=str(number))
        assert len(executions(bench, arn)) == 1
        assert [one["Error"] for one in bench.listed()] == ["ExecutionLimitExceeded"] * 2
        bench.house.advance(hours=2)
        assert [one["status"] for one in executions(bench, arn)] == ["SUCCEEDED"] * 3
        assert bench.left_over() == (0, 0)
    finally:
        bench.house.close()


def test_an_operation_that_waits_is_started(bench: Bench) -> None:
    arn = machine(bench, type="EXPRESS")
    bench.post(target=SDK + "sfn:startSyncExecution", payload=dumps({"StateMachineArn": arn}))
    assert bench.outcomes() == ["DELIVERED"]


def test_an_input_that_is_no_json_is_refused(bench: Bench) -> None:
    arn = machine(bench)
    assert failure(bench, arn, "no json").startswith("InvalidExecutionInput: ")
    assert executions(bench, arn) == []


def test_a_cluster_without_the_definition_is_tried_again(bench: Bench) -> None:
    cluster = "arn:aws:ecs:us-east-1:000000000000:cluster/default"
    bench.post(target=cluster, payload="{}", parameters={"TaskDefinition": "nightly"})
    assert bench.outcomes() == ["FAILED: ClientException: TaskDefinition not found. (attempt 1)"]
    assert bench.left_over() == (1, 1)
