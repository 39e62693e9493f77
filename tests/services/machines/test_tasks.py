"""Tasks: integrations called in the same unit, their answers, errors, endings and cancellations."""

import json

import pytest

from tests.services.machines.stubs import Play, Refused, task

SEND = {"QueueUrl": "http://q", "MessageBody": "hello"}


def test_request_response_answers_at_once(play: Play) -> None:
    execution = play.run(task("sqs:sendMessage", SEND))
    (parameters, caller) = play.sqs.calls[0]
    assert parameters == SEND
    assert (caller.account, caller.region, caller.watcher, caller.origin) == (
        "000000000000",
        "us-east-1",
        None,
        execution,
    )
    assert caller.trace == play.describe(execution)["traceHeader"]
    output = play.output(execution)
    request_id = output["SdkResponseMetadata"]["RequestId"]
    assert output == {
        "MD5OfMessageBody": "5d41",
        "MessageId": "m-1",
        "SdkHttpMetadata": {
            "AllHttpHeaders": {
                "x-amzn-RequestId": [request_id],
                "Content-Length": ["45"],
                "Date": ["Thu, 01 Jan 2026 00:00:00 GMT"],
                "Content-Type": ["application/x-amz-json-1.0"],
            },
            "HttpHeaders": {
                "x-amzn-RequestId": request_id,
                "Content-Length": "45",
                "Date": "Thu, 01 Jan 2026 00:00:00 GMT",
                "Content-Type": "application/x-amz-json-1.0",
            },
            "HttpStatusCode": 200,
        },
        "SdkResponseMetadata": {"RequestId": request_id},
    }
    assert list(output) == sorted(output)
    assert play.types(execution)[1:6] == [
        "TaskStateEntered",
        "TaskScheduled",
        "TaskStarted",
        "TaskSucceeded",
        "TaskStateExited",
    ]
    assert play.left_over() == {}


def test_every_attempt_has_an_idempotency_key_of_its_own(play: Play) -> None:
    play.sqs.refusal = Refused("no")
    play.run(task("sqs:sendMessage", SEND, Retry=[{"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}]))
    play.house.advance(minutes=1)
    assert len({caller.idempotency for _, caller in play.sqs.calls}) == 3


def test_a_refused_call_has_aws_error_name_and_cause(play: Play) -> None:
    play.sqs.refusal = Refused("The request must contain the parameter MessageBody.")
    execution = play.run(task("sqs:sendMessage"))
    described = play.describe(execution)
    assert described["status"] == "FAILED"
    assert described["error"] == "SQS.AmazonSQSException"
    start, end = described["cause"].split("Request ID: ")
    assert (
        start
        == "The request must contain the parameter MessageBody. (Service: AmazonSQS; Status Code: 400; Error Code: MissingParameter; "
    )
    assert end.endswith("; Proxy: null)")
    assert play.types(execution)[-2:] == ["TaskFailed", "ExecutionFailed"]


def test_a_refused_submission_is_called_so_and_can_be_caught(play: Play) -> None:
    class ClientException(Refused):
        code = "ClientException"

    play.ecs.refusal = ClientException("no such family")
    machine = task("ecs:runTask.sync", {}, Catch=[{"ErrorEquals": ["ECS.ClientException"], "Next": "S"}])
    machine["States"]["S"] = {"Type": "Succeed"}
    execution = play.run(machine)
    assert play.output(execution)["Error"] == "ECS.ClientException"
    assert "TaskSubmitFailed" in play.types(execution)


@pytest.mark.parametrize("resource", ["sns:publish", "sqs:sendMessage.sync", "lambda:invoke"])
def test_what_nobody_offers_fails_in_words(play: Play, resource: str) -> None:
    definition = task(resource)
    made = play.call("ValidateStateMachineDefinition", definition=json.dumps(definition))
    if made["result"] == "FAIL":
        assert resource == "sqs:sendMessage.sync"
        return
    described = play.describe(play.run(definition))
    prefix = "SNS" if resource == "sns:publish" else "Lambda"
    assert (described["status"], described["error"]) == ("FAILED", f"{prefix}.SdkClientException")
    assert "Offered: ecs:runTask, sqs:sendMessage, states:startExecution, aws-sdk:sfn:*." in described["cause"]


def test_sync_waits_for_the_end_of_the_work(play: Play) -> None:
    execution = play.run(task("ecs:runTask.sync", {"TaskDefinition": "job"}))
    parameters, caller = play.ecs.calls[0]
    assert parameters == {"TaskDefinition": "job", "StartedBy": "AWS Step Functions"}
    assert caller.watcher is not None
    assert caller.watcher.startswith("machines:")
    assert play.describe(execution)["status"] == "RUNNING"
    play.house.advance(minutes=61)
    play.finish_task(output={"TaskArn": "t-1", "LastStatus": "STOPPED"})
    assert play.output(execution) == {"TaskArn": "t-1", "LastStatus": "STOPPED"}
    assert play.types(execution)[2:7] == [
        "TaskScheduled",
        "TaskStarted",
        "TaskSubmitted",
        "TaskSucceeded",
        "TaskStateExited",
    ]
    assert play.left_over() == {}


def test_work_that_ends_badly_is_a_failed_task_with_its_description(play: Play) -> None:
    execution = play.run(task("ecs:runTask.sync", {}))
    play.finish_task(succeeded=False, output={"StoppedReason": "OOM", "Containers": [{"ExitCode": 137}]})
    described = play.describe(execution)
    assert described["error"] == "States.TaskFailed"
    assert json.loads(described["cause"]) == {"StoppedReason": "OOM", "Containers": [{"ExitCode": 137}]}


def test_hearing_of_the_end_twice_or_too_late_is_harmless(play: Play) -> None:
    execution = play.run(task("ecs:runTask.sync", {}))
    play.finish_task()
    events = play.events(execution)
    play.finish_task()
    assert play.events(execution) == events
    assert play.left_over() == {}


def test_a_task_that_cannot_be_placed_is_amazonecs_unknown(play: Play) -> None:
    play.ecs.output = {"Tasks": [], "Failures": [{"Reason": "RESOURCE:MEMORY"}]}
    play.ecs.handle = None
    retry = [{"ErrorEquals": ["AmazonECS.Unknown"], "IntervalSeconds": 5, "MaxAttempts": 1}]
    execution = play.run(task("ecs:runTask.sync", {}, Retry=retry))
    play.ecs.output, play.ecs.handle = {"Tasks": [{}], "Failures": []}, "t"
    play.house.advance(seconds=5)
    play.finish_task()
    assert play.describe(execution)["status"] == "SUCCEEDED"
    failed = next(event for event in play.events(execution) if event["type"] == "TaskSubmitFailed")
    assert failed["taskSubmitFailedEventDetails"]["error"] == "AmazonECS.Unknown"
    assert json.loads(failed["taskSubmitFailedEventDetails"]["cause"])["Failures"] == [{"Reason": "RESOURCE:MEMORY"}]


def test_without_sync_failures_are_part_of_the_answer(play: Play) -> None:
    play.ecs.output = {"Tasks": [], "Failures": [{"Reason": "RESOURCE:MEMORY"}]}
    assert play.output(play.run(task("ecs:runTask", {})))["Failures"] == [{"Reason": "RESOURCE:MEMORY"}]


def test_stopping_stops_what_was_started(play: Play) -> None:
    execution = play.run(task("ecs:runTask.sync", {}))
    play.call("StopExecution", executionArn=execution)
    assert [handle for handle, _ in play.ecs.cancelled] == ["t-1"]
    assert play.left_over() == {}


def test_a_timeout_stops_what_was_started(play: Play) -> None:
    execution = play.run(task("ecs:runTask.sync", {}, TimeoutSeconds=30))
    play.house.advance(seconds=30)
    assert play.describe(execution)["error"] == "States.Timeout"
    assert [handle for handle, _ in play.ecs.cancelled] == ["t-1"]
    assert play.left_over() == {}


def test_a_branch_that_fails_at_once_stops_the_others_work(play: Play) -> None:
    branches = [task("ecs:runTask.sync", {}), {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E"}}}]
    for order in (branches, branches[::-1]):
        machine = {"StartAt": "P", "States": {"P": {"Type": "Parallel", "Branches": order, "End": True}}}
        play.call("DeleteStateMachine", stateMachineArn="arn:aws:states:us-east-1:000000000000:stateMachine:m")
        execution = play.run(machine)
        assert play.describe(execution)["error"] == "E"
        assert len(play.ecs.calls) == len(play.ecs.cancelled)
        assert play.left_over() == {}


def test_a_map_of_tasks_gathers_their_results_over_many_units(play: Play) -> None:
    processor = task("ecs:runTask.sync", {"Count.$": "$"})
    machine = {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemProcessor": processor, "End": True}}}
    execution = play.run(machine, list(range(5)))
    for call in (3, 0, 4, 1, 2):
        play.finish_task(call, output={"N": play.ecs.calls[call][0]["Count"]})
    assert play.output(execution) == [{"N": n} for n in range(5)]
    ids = [event["id"] for event in play.events(execution)]
    assert ids == list(range(1, len(ids) + 1))
    assert play.left_over() == {}


def test_a_crash_before_the_commit_leaves_nothing_and_the_unit_can_be_run_again(play: Play) -> None:
    arn = play.create(task("ecs:runTask.sync", {}))

    class Crash(Exception):
        pass

    def unit(tx: object) -> None:
        target = play.house.switchboard.targets["states"]
        target.deliver(tx, arn, "{}", "n", play.ecs.calls[0][1] if play.ecs.calls else caller)  # type: ignore[arg-type]
        raise Crash

    from tasuki.services.switchboard import Caller

    caller = Caller("000000000000", "us-east-1", "k", "")
    with pytest.raises(Crash):
        play.house.unit(unit)
    assert play.rows("executions") == 0
    execution = play.start(arn, name="n")
    play.finish_task()
    assert play.describe(execution)["status"] == "SUCCEEDED"
