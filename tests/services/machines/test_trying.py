"""TestState: the recorded answers of AWS, and what they do not say."""

import json
from functools import cache
from typing import Any

import pytest

from tasuki.values.errors import DomainError
from tests.engine.recorded import FOLDER, Matcher, expand, parsed
from tests.services.machines.stubs import Play, Refused

ACCOUNT = "111111111111"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/tester"
NEEDS_LAMBDA = "calls a Lambda function: no room of ours runs functions yet"

GROWN = "the model that botocore ships allows functions more memory by now than AWS's did then"


@cache
def cases() -> list[dict[str, Any]]:
    path = FOLDER / "cases.jsonl"
    if not path.exists():
        return []
    with path.open() as lines:
        return [case for case in map(json.loads, lines) if case["kind"] == "test_state"]


def test_the_recordings_are_there() -> None:
    if not FOLDER.exists():
        pytest.skip("the recorded AWS answers (../shared/conformance) are not beside this checkout")
    assert len(cases()) == 147


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"].removeprefix("asl/state:"))
def test_a_state_is_tested_as_recorded(case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if any(need["kind"] == "lambda" for need in case["needs"]):
        request.applymarker(pytest.mark.xfail(strict=True, reason=NEEDS_LAMBDA))
    if "MemorySize" in json.dumps(case["params"]) and "more_than_maximum" in case["id"]:
        request.applymarker(pytest.mark.xfail(strict=True, reason=GROWN))
    expected = case["expected"]
    answer = tried(case)
    if "error_code" in expected:
        assert answer == {"error": expected["error_code"], "message": expected["error_message"]}
        return
    wanted = {name: value for name, value in expected["response"].items() if name != "ResponseMetadata"}
    differences = list(Matcher().differences(wanted, parsed(answer)))
    assert not differences, "\n".join(differences)


def tried(case: dict[str, Any]) -> dict[str, Any]:
    play = Play(ACCOUNT)
    given = expand({**case["params"], "definition": json.dumps(expand(case["definition"]))})
    if "roleArn" in given:
        given["roleArn"] = ROLE
    try:
        return play.call("TestState", **{name: value for name, value in given.items() if value is not None})
    except DomainError as no:
        return {"error": no.code, "message": no.message}
    finally:
        play.house.close()


SEND: dict[str, Any] = {
    "Type": "Task",
    "Resource": "arn:aws:states:::sqs:sendMessage",
    "Parameters": {"QueueUrl": "q", "MessageBody.$": "$.body"},
    "ResultSelector": {"id.$": "$.MessageId"},
    "ResultPath": "$.sent",
    "Retry": [{"ErrorEquals": ["Throttled"], "IntervalSeconds": 3, "MaxAttempts": 2, "BackoffRate": 2}],
    "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.why", "Next": "Sorry"}],
    "Next": "Thanks",
}
MAPPED: dict[str, Any] = {
    "Type": "Map",
    "ItemsPath": "$.jobs",
    "ItemSelector": {"n.$": "$$.Map.Item.Index", "job.$": "$$.Map.Item.Value", "day.$": "$.day"},
    "MaxConcurrency": 2,
    "ItemProcessor": {"StartAt": "One", "States": {"One": {"Type": "Pass", "End": True}}},
    "ResultPath": "$.done",
    "End": True,
}


def attempt(play: Play, definition: dict[str, Any], given: Any = None, **more: Any) -> dict[str, Any]:
    text = json.dumps({} if given is None else given)
    answer = play.call("TestState", definition=json.dumps(definition), input=text, **more)
    return {name: json.loads(value) if name == "output" else value for name, value in answer.items()}


def refusal(play: Play, definition: dict[str, Any], given: Any = None, **more: Any) -> tuple[str, str]:
    with pytest.raises(DomainError) as no:
        attempt(play, definition, given, **more)
    return no.value.code, no.value.message


def failing(error: str) -> dict[str, Any]:
    return {"errorOutput": {"error": error, "cause": "as said"}}


def test_a_task_without_a_mock_really_calls_its_service(play: Play) -> None:
    answer = attempt(play, SEND, {"body": "hello"}, roleArn=ROLE, inspectionLevel="DEBUG")
    assert (answer["status"], answer["nextState"]) == ("SUCCEEDED", "Thanks")
    assert answer["output"] == {"body": "hello", "sent": {"id": "m-1"}}
    assert [parameters for parameters, _ in play.sqs.calls] == [{"QueueUrl": "q", "MessageBody": "hello"}]
    assert json.loads(answer["inspectionData"]["result"])["MessageId"] == "m-1"
    assert json.loads(answer["inspectionData"]["afterResultSelector"]) == {"id": "m-1"}


def test_a_service_that_refuses_is_an_error_like_any_other(play: Play) -> None:
    play.sqs.refusal = Refused("The queue is closed")
    answer = attempt(play, SEND, {"body": "hello"}, roleArn=ROLE, inspectionLevel="DEBUG")
    assert (answer["status"], answer["nextState"]) == ("CAUGHT_ERROR", "Sorry")
    assert answer["error"] == "SQS.AmazonSQSException"
    assert answer["output"]["why"]["Cause"] == answer["cause"]
    assert answer["inspectionData"]["errorDetails"] == {"catchIndex": 0}


def test_what_a_retrier_has_used_decides_what_comes_next(play: Play) -> None:
    def tries(used: int) -> dict[str, Any]:
        return attempt(
            play,
            SEND,
            {"body": ""},
            mock=failing("Throttled"),
            stateConfiguration={"retrierRetryCount": used},
            inspectionLevel="DEBUG",
        )

    backoffs = [tries(used)["inspectionData"]["errorDetails"] for used in (0, 1)]
    assert backoffs == [
        {"retryIndex": 0, "retryBackoffIntervalSeconds": 3},
        {"retryIndex": 0, "retryBackoffIntervalSeconds": 6},
    ]
    assert [tries(used)["status"] for used in (0, 1, 2)] == ["RETRIABLE", "RETRIABLE", "CAUGHT_ERROR"]
    assert not play.sqs.calls


def test_a_map_shows_what_its_iterations_would_get(play: Play) -> None:
    given = {"day": "Monday", "jobs": ["a", "b"]}
    answer = attempt(play, MAPPED, given, mock={"result": "[1, 2]"}, inspectionLevel="DEBUG")
    assert answer["output"] == {**given, "done": [1, 2]}
    data = answer["inspectionData"]
    assert json.loads(data["afterItemsPath"]) == ["a", "b"]
    assert json.loads(data["afterItemSelector"]) == [
        {"n": 0, "job": "a", "day": "Monday"},
        {"n": 1, "job": "b", "day": "Monday"},
    ]
    assert data["maxConcurrency"] == 2


def distributed(**more: Any) -> dict[str, Any]:
    block = {**MAPPED["ItemProcessor"], "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    return {"Type": "Map", "ItemProcessor": block, "End": True, **more}


def read_from(kind: str, **more: Any) -> dict[str, Any]:
    arguments = {"Bucket": "b", "Key": "k"}
    return {
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {"InputType": kind, **more},
        "Parameters": arguments,
    }


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (read_from("CSV", CSVHeaderLocation="FIRST_ROW"), "id,to\n1,Ada\n2,Bo\n3,Cy\n"),
        (read_from("JSONL"), '{"id":"1","to":"Ada"}\n{"id":"2","to":"Bo"}\n{"id":"3","to":"Cy"}\n'),
        (read_from("JSON"), '[{"id":"1","to":"Ada"},{"id":"2","to":"Bo"},{"id":"3","to":"Cy"}]'),
    ],
)
def test_what_an_item_reader_found_can_be_given(play: Play, reader: dict[str, Any], text: str) -> None:
    state = distributed(
        ItemReader=reader,
        ItemSelector={"to.$": "$$.Map.Item.Value.to"},
        ItemBatcher={"MaxItemsPerBatch": 2, "BatchInput": {"day": "Monday"}},
        ToleratedFailurePercentage=30,
    )
    configuration = {"mapItemReaderData": text, "mapIterationFailureCount": 1}
    answer = attempt(
        play, state, mock={"result": "[1, 2, 3]"}, stateConfiguration=configuration, inspectionLevel="DEBUG"
    )
    data = answer["inspectionData"]
    assert json.loads(data["afterItemsPath"])[1] == {"id": "2", "to": "Bo"}
    assert json.loads(data["afterItemBatcher"]) == [
        {"BatchInput": {"day": "Monday"}, "Items": [{"to": "Ada"}, {"to": "Bo"}]},
        {"BatchInput": {"day": "Monday"}, "Items": [{"to": "Cy"}]},
    ]
    assert data["toleratedFailurePercentage"] == 30.0
    assert (answer["status"], answer["error"]) == ("FAILED", "States.ExceedToleratedFailureThreshold")


def test_an_expression_that_fails_is_told_where(play: Play) -> None:
    answer = attempt(play, SEND, {"boddy": ""}, roleArn=ROLE)
    assert answer["status"] == "FAILED"
    assert answer["error"] == "States.Runtime"
    assert answer["cause"].startswith(
        "An error occurred while executing the state 'StateName' (entered at the event id #2). "
    )
    assert not play.sqs.calls


def test_variables_come_in_and_are_shown_with_those_that_were_assigned(play: Play) -> None:
    state = {"Type": "Pass", "Parameters": {"a.$": "$x"}, "Assign": {"y.$": "$.a"}, "End": True}
    answer = attempt(play, state, {"k": 2}, variables='{"x": 1}', inspectionLevel="DEBUG")
    assert answer["output"] == {"a": 1}
    assert json.loads(answer["inspectionData"]["variables"]) == {"x": 1, "y": 1}


def test_a_wait_is_over_at_once_unless_a_test_may_not_take_so_long(play: Play) -> None:
    assert attempt(play, {"Type": "Wait", "Seconds": 300, "Next": "N"}, {"k": 1}) == {
        "status": "SUCCEEDED",
        "output": {"k": 1},
        "nextState": "N",
    }
    late = attempt(play, {"Type": "Wait", "Seconds": 301, "Next": "N"})
    assert (late["status"], late["error"]) == ("FAILED", "States.Timeout")


def test_a_choice_that_leads_nowhere_fails(play: Play) -> None:
    rule = {"Variable": "$.n", "NumericEquals": 1, "Next": "One"}
    state = {"Type": "Choice", "Choices": [rule]}
    assert attempt(play, state, {"n": 1})["nextState"] == "One"
    assert attempt(play, state, {"n": 2})["error"] == "States.NoChoiceMatched"


def test_what_is_refused_beside_what_is_recorded(play: Play) -> None:
    wait_for_token = {**SEND, "Resource": f"{SEND['Resource']}.waitForTaskToken"}
    machine: dict[str, Any] = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    one = {"mock": {"result": "{}"}}
    assert refusal(play, machine, stateName="Q") == ("ValidationException", "State not found in definition")
    assert refusal(play, wait_for_token, roleArn=ROLE)[0] == "InvalidDefinition"
    assert refusal(play, SEND, context="{}", roleArn=ROLE)[1].endswith("when a mock is not specified.")
    assert refusal(play, SEND, **one, context='{"Task": {"Token": "t"}}')[1].startswith(
        "Context object contains 'Task'"
    )
    assert refusal(play, SEND, **one, context="[]")[1] == "Context object must be a valid JSON object"
    assert refusal(play, SEND, mock={})[0] == "ValidationException"
    assert refusal(play, MAPPED, mock=failing("E"), stateConfiguration={"errorCausedByState": "Two"})[1].startswith(
        "State 'Two' not found"
    )
    with pytest.raises(DomainError) as no:
        play.call("TestState", definition=json.dumps(machine["States"]["P"]), input="{")
    assert no.value.code == "InvalidExecutionInput"


def test_a_mock_of_a_sync_task_looks_like_the_finished_job(play: Play) -> None:
    state = {
        **SEND,
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Parameters": {"StateMachineArn": "m"},
    }
    job = {
        "ExecutionArn": "e",
        "StateMachineArn": "m",
        "Status": "SUCCEEDED",
        "StartDate": "2026-01-01T00:00:00Z",
        "Output": {"routes": 3},
    }
    del state["ResultSelector"]
    assert attempt(play, state, mock={"result": json.dumps(job)})["output"] == {"sent": job}
    wrong = refusal(play, state, mock={"result": json.dumps({**job, "Status": "DONE"})})
    assert wrong[1] == "Mock result schema validation error: Field 'Status' is not an expected value"
    assert (
        attempt(play, state, mock={"result": '{"Status": 1}', "fieldValidationMode": "NONE"})["status"] == "SUCCEEDED"
    )


def test_an_answer_that_comes_later_is_not_waited_for(play: Play) -> None:
    arn = play.create({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9, "End": True}}}, type="EXPRESS")
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:sfn:startSyncExecution",
        "Parameters": {"StateMachineArn": arn},
        "End": True,
    }
    before = play.left_over()
    assert refusal(play, state, roleArn=ROLE)[0] == "InvalidDefinition"
    assert play.left_over() == before


def test_nothing_is_left_behind(play: Play) -> None:
    attempt(play, SEND, {"body": "hello"}, roleArn=ROLE)
    attempt(play, SEND, {"body": "hello"}, mock=failing("Throttled"))
    assert play.left_over() == {}
    assert play.rows("executions") == play.rows("machines") == 0
