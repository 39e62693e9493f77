"""Lint: integrations that are not there, JSONata that means something else, and refusals with why and fix."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasuki.language.lint import Finding, lint, survey
from tasuki.language.parse import parse

PREFIX = "arn:aws:states:::"


def findings(language: str = "JSONata", **states: Any) -> list[Finding]:
    return lint(json.dumps({"QueryLanguage": language, "StartAt": next(iter(states)), "States": states}))


def found(language: str = "JSONata", **states: Any) -> list[tuple[str, str, str]]:
    return [(one.severity, one.code, one.location) for one in findings(language, **states)]


def task(resource: str, **more: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": PREFIX + resource, "End": True, **more}


def a_pass(**more: Any) -> dict[str, Any]:
    return {"Type": "Pass", "End": True, **more}


def test_an_operation_that_the_service_does_not_have() -> None:
    (one,) = findings(A=task("aws-sdk:sqs:sendMesage", Arguments={}))
    assert (one.severity, one.code, one.location) == ("WARNING", "NO_SUCH_OPERATION", "/States/A/Resource")
    assert one.message.startswith("SQS has no operation sendMesage. The nearest is aws-sdk:sqs:sendMessage.")
    assert one.fix


@pytest.mark.parametrize("resource", ["lambda:invoke", "aws-sdk:s3:getObject", "aws-sdk:ecs:createService"])
def test_an_integration_without_a_room(resource: str) -> None:
    definition = {"StartAt": "A", "States": {"A": task(resource)}}
    assert parse(json.dumps(definition)).root.start_at == "A"  # CreateStateMachine takes it, as AWS does
    (one,) = findings("JSONPath", A=task(resource))
    assert (one.severity, one.code, one.location) == ("WARNING", "NOT_OFFERED_HERE", "/States/A/Resource")
    assert resource in one.message
    assert "sqs:sendMessage" in one.fix


def test_a_lambda_function_s_arn() -> None:
    state = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:f", "End": True}
    assert found(A=state) == [("WARNING", "NOT_OFFERED_HERE", "/States/A/Resource")]


def test_parameters_that_an_integration_does_not_take() -> None:
    wrong = [("ERROR", "WRONG_PARAMETERS", "/States/A/Arguments")]
    (one,) = findings(A=task("ecs:runTask", Arguments={"Clster": "c", "TaskDefinition": "t"}))
    assert (one.severity, one.code, one.location) == wrong[0]
    assert 'The field "Clster" is not supported' in one.message
    assert one.fix.startswith("Did you mean Cluster?")
    assert found(A=task("sqs:sendMessage", Arguments={"MessageBody": 1})) == wrong
    (one,) = findings(
        A=task("aws-sdk:sqs:sendMessage", Arguments={"QueueUrl": "q", "MessageBody": "b", "DelaySeconds": "1"})
    )
    assert "must be a NUMBER" in one.message
    (one,) = findings(A=task("ecs:runTask", Arguments={"TaskDefinition": "t", "Overrides": {"Cpus": "1"}}))
    assert one.fix.startswith("It stands inside")
    assert found("JSONPath", A=task("sqs:sendMessage", Parameters={"MessageBody.$": "$"})) == [
        ("ERROR", "WRONG_PARAMETERS", "/States/A/Parameters")
    ]


def test_parameters_that_are_known_only_later() -> None:
    overrides = {"ContainerOverrides": "{% $states.input.all %}"}
    assert (
        found(
            A=task("ecs:runTask", Arguments={"TaskDefinition": "{% 't' %}", "Count": "{% 1 %}", "Overrides": overrides})
        )
        == []
    )
    assert found(A=task("sqs:sendMessage", Arguments="{% $states.input %}")) == []
    assert found("JSONPath", A=task("sqs:sendMessage")) == []
    given = {"QueueUrl.$": "$.q", "MessageBody": {"a.$": "$.b"}, "DelaySeconds.$": "$.n"}
    assert found("JSONPath", A=task("sqs:sendMessage", Parameters=given)) == []


@pytest.mark.parametrize("text", ["$states.input.a", "no. {% $states.input.a %}", "{% $states.input.a", "1 %}"])
def test_text_that_looks_like_an_expression(text: str) -> None:
    assert found(A=a_pass(Output={"v": [text]})) == [("WARNING", "TEXT_NOT_EXPRESSION", "/States/A/Output/v[0]")]
    assert (
        found(A=a_pass(Output={"v": f"{{% '{text[0]}' %}}", "w": "$5, $statesman", "Comment": "plain"}, Comment=text))
        == []
    )


def test_an_expression_in_a_state_of_json_path() -> None:
    assert found("JSONPath", A=a_pass(Parameters={"v": "{% 1 %}"})) == [
        ("WARNING", "TEXT_NOT_EXPRESSION", "/States/A/Parameters/v")
    ]


def test_functions_that_there_are_not() -> None:
    assert found(A=a_pass(Output="{% $eval('1') %}")) == [("ERROR", "NO_EVAL", "/States/A/Output")]
    assert found(A=a_pass(Output="{% '$eval(1)' %}")) == []
    (one,) = findings(A=a_pass(Output="{% $uppercas('a') %}"))
    assert (one.code, one.location) == ("NO_SUCH_FUNCTION", "/States/A")
    assert one.message.startswith("There is no such function: $uppercas.")
    assert one.fix == "Did you mean $uppercase?"
    assert found(A=a_pass(Output="{% ($f := function($x) { $x }; $f(1)) %}")) == []
    assert [code for _, code, _ in found(A=a_pass(Output="{% $nofunc %}"))] == ["VARIABLE_NEVER_ASSIGNED"]


def test_a_result_where_there_is_none() -> None:
    query = "{% $states.result %}"
    assert found(A=a_pass(Output=query)) == [("WARNING", "NO_RESULT_HERE", "/States/A/Output")]
    arguments = {"QueueUrl": "q", "MessageBody": query}
    caught = [{"ErrorEquals": ["States.ALL"], "Next": "B", "Output": query}]
    state = task("sqs:sendMessage", Arguments=arguments, Output=query, Assign={"x": query}, Catch=caught)
    assert found(A=state, B=a_pass()) == [
        ("WARNING", "NO_RESULT_HERE", "/States/A/Arguments/MessageBody"),
        ("WARNING", "NO_RESULT_HERE", "/States/A/Catch[0]/Output"),
    ]


def test_an_assign_that_reads_itself() -> None:
    count = a_pass(Assign={"n": "{% $n + 1 %}", "m": "{% $exists($m) ? $m : 0 %}"})
    assert found(A=count) == [("WARNING", "VARIABLE_NOT_YET_ASSIGNED", "/States/A/Assign/n")]
    first = {"Type": "Pass", "Assign": {"n": 0}, "Next": "A"}
    assert found(F=first, A=count) == []


def test_choices() -> None:
    def rules(*conditions: Any) -> list[tuple[str, str, str]]:
        choices = [{"Condition": one, "Next": "B"} for one in conditions]
        return found(A={"Type": "Choice", "Choices": choices}, B=a_pass())

    assert rules("{% $states.input.a %}") == [("WARNING", "NO_DEFAULT", "/States/A")]
    for whole in (["{% $states.input.a %}", "{% $not($states.input.a) %}"], [True], ["{% true %}"]):
        assert rules(*whole) == []
    assert rules("{% 'a = b' %}", True) == [("WARNING", "CONDITION_IS_TEXT", "/States/A/Choices[0]/Condition")]
    pair = [{"Variable": "$.a", "IsPresent": yes, "Next": "B"} for yes in (True, False)]
    assert found("JSONPath", A={"Type": "Choice", "Choices": pair}, B=a_pass()) == []


def test_a_field_of_the_other_language() -> None:
    (one,) = findings(A=task("sqs:sendMessage", Parameters={}))
    assert (
        one.message == "Field is not supported: Parameters belongs to JSONPath, and the QueryLanguage here is JSONata."
    )
    assert one.fix.startswith("Use Arguments")
    (one,) = findings("JSONPath", A=task("sqs:sendMessage", Arguments={}))
    assert one.fix.startswith("Use Parameters")
    inner = {"StartAt": "I", "States": {"I": a_pass(ResultPath="$.x", QueryLanguage="JSONata")}}
    (one,) = findings("JSONPath", A={"Type": "Parallel", "Branches": [inner], "End": True})
    assert (one.location, one.fix.split(",")[0]) == (
        "/States/A/Branches[0]/States/I/ResultPath",
        "Use Output or Assign",
    )


def test_text_that_is_not_json() -> None:
    for text, end in (
        ('{"a": 1,\n "b": }', "line 2, column 7"),
        ('{"é": "ü", x}', "line 1, column 12"),
        ("{", "line 1, column 2"),
    ):
        seen = survey(text)
        assert not seen.whole
        assert seen.findings[0].message.endswith(end)
    assert "YAML" in lint("# mine\nStartAt: A\nStates:\n  A:\n")[0].message
    assert survey(json.dumps({"StartAt": "A", "States": {"A": a_pass()}})).whole


def test_deployed_definitions_hold_no_slips(conformance: Path) -> None:
    """They run: what is not offered here and a missing Default are all that can be said of them."""
    folder = conformance / "definitions"
    known = {"NOT_OFFERED_HERE", "NO_DEFAULT", "NO_TIMEOUT", "SCHEMA_VALIDATION_FAILED"}
    for line in (folder / "index.jsonl").read_text().splitlines():
        file = json.loads(line)["file"]
        assert {one.code for one in lint((folder / file).read_text())} <= known, file
