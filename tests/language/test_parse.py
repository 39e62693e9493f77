"""Definitions: what becomes of one that is right, and where every fault of a wrong one is found."""

from typing import Any

import pytest

from tasuki.language.definition import Choice, Fail, Map, Parallel, Pass, Retrier, Task
from tasuki.language.errors import InvalidDefinition, StatesError
from tasuki.language.parse import parse
from tasuki.values.documents import dumps
from tests.language.scopes import scope

LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:f"
PASS = {"Type": "Pass", "End": True}
BLOCK = {"StartAt": "I", "States": {"I": PASS}}


def machine(state: dict[str, Any], **more: Any) -> str:
    """Write a machine whose one state is `state`."""
    return dumps({"StartAt": "S", "States": {"S": state, **more}})


def diagnoses(text: str) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidDefinition) as caught:
        parse(text)
    return [(one.code, one.location, one.message) for one in caught.value.diagnoses]


def task(**fields: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": LAMBDA, "End": True, **fields}


def test_a_whole_machine() -> None:
    made = parse(
        dumps(
            {
                "Comment": "all of it",
                "StartAt": "P",
                "TimeoutSeconds": 60,
                "States": {
                    "P": {
                        "Type": "Parallel",
                        "Branches": [BLOCK, {"StartAt": "J", "States": {"J": PASS}}],
                        "ResultPath": "$.both",
                        "Next": "M",
                    },
                    "M": {
                        "Type": "Map",
                        "ItemsPath": "$.both",
                        "ItemSelector": {"x.$": "$$.Map.Item.Value", "y.$": "$var.z"},
                        "ItemProcessor": {"StartAt": "K", "States": {"K": PASS}},
                        "MaxConcurrency": 2,
                        "Next": "T",
                    },
                    "T": {
                        "Type": "Task",
                        "Resource": "arn:aws:states:::ecs:runTask.sync",
                        "Parameters": {"TaskDefinition.$": "$.td"},
                        "ResultSelector": {"id.$": "$.TaskArn"},
                        "ResultPath": None,
                        "OutputPath": None,
                        "TimeoutSeconds": 60,
                        "HeartbeatSecondsPath": "$.beat",
                        "Retry": [{"ErrorEquals": ["A"], "JitterStrategy": "FULL", "MaxDelaySeconds": 9}],
                        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "F", "ResultPath": "$.error[0]"}],
                        "Next": "C",
                    },
                    "C": {
                        "Type": "Choice",
                        "Choices": [{"Variable": "$.v", "StringEquals": "1", "Next": "E", "Assign": {"c": 1}}],
                        "Default": "F",
                    },
                    "F": {"Type": "Fail", "Error": "E", "CausePath": "$.why"},
                    "E": {"Type": "Succeed"},
                },
            }
        )
    )
    assert made.timeout_seconds == 60
    assert made.comment == "all of it"
    assert list(made.root.states) == ["P", "M", "T", "C", "F", "E"]
    assert set(made.blocks) == {"", "/States/P/Branches/0", "/States/P/Branches/1", "/States/M/ItemProcessor"}
    assert made.blocks[""] is made.root
    assert made.references == {"M": ("var",)}
    parallel, mapped, work, choice, fail = (made.root.states[name] for name in "PMTCF")
    assert isinstance(parallel, Parallel)
    assert [block.path for block in parallel.branches] == ["/States/P/Branches/0", "/States/P/Branches/1"]
    assert parallel.flow.result_path == ("both",)
    assert isinstance(mapped, Map)
    assert mapped.max_concurrency == 2
    assert mapped.items is not None
    assert mapped.items(scope({"both": [1]})) == [1]
    assert mapped.flow.parameters is None
    assert isinstance(work, Task)
    assert (work.resource.resource_type, work.resource.resource) == ("ecs", "runTask.sync")
    assert work.timeout_seconds == 60
    assert callable(work.heartbeat_seconds)
    assert work.heartbeat_seconds(scope({"beat": 5})) == 5
    assert work.flow.result_path == "discard"
    assert work.flow.output_path is not None
    assert work.flow.output_path(scope({"a": 1})) == {}
    assert work.retry == (Retrier(error_equals=("A",), max_delay_seconds=9, full_jitter=True),)
    assert work.catch[0].result_path == ("error", 0)
    assert isinstance(choice, Choice)
    assert choice.choices[0].assign is not None
    assert isinstance(fail, Fail)
    assert callable(fail.cause)
    assert (fail.error, fail.cause(scope({"why": "so"}))) == ("E", "so")


def test_a_result_of_null_is_a_result() -> None:
    absent, null = (parse(machine({**PASS, **more})).root.states["S"] for more in ({}, {"Result": None}))
    assert isinstance(absent, Pass)
    assert isinstance(null, Pass)
    assert absent.result is None
    assert null.result is not None
    assert null.result.value is None


def test_names_are_escaped_in_pointers() -> None:
    made = parse(dumps({"StartAt": "a/b~", "States": {"a/b~": {"Type": "Map", "Iterator": BLOCK, "End": True}}}))
    assert set(made.blocks) == {"", "/States/a~1b~0/Iterator"}


@pytest.mark.parametrize(
    ("arn", "kind", "service", "action", "pattern", "sdk"),
    [
        (LAMBDA, "lambda", "lambda", "f", "", False),
        (f"{LAMBDA}:$LATEST", "lambda", "lambda", "f:$LATEST", "", False),
        ("arn:aws:states:us-east-1:123456789012:activity:a", "activity", "states", "a", "", False),
        ("arn:aws:states:::sqs:sendMessage", "integration", "sqs", "sendMessage", "", False),
        (
            "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "integration",
            "sqs",
            "sendMessage",
            "waitForTaskToken",
            False,
        ),
        ("arn:aws:states:::states:startExecution.sync:2", "integration", "states", "startExecution", "sync:2", False),
        ("arn:aws-cn:states:::ecs:runTask.sync", "integration", "ecs", "runTask", "sync", False),
        ("arn:aws:states:::aws-sdk:sfn:startExecution", "integration", "sfn", "startExecution", "", True),
        ("arn:aws:states:us-east-1:123456789012:aws-sdk:s3:getObject", "integration", "s3", "getObject", "", True),
    ],
)
def test_resources(*, arn: str, kind: str, service: str, action: str, pattern: str, sdk: bool) -> None:
    state = parse(machine(task(Resource=arn))).root.states["S"]
    assert isinstance(state, Task)
    found = state.resource
    assert (found.kind, found.service, found.action, found.pattern, found.sdk) == (kind, service, action, pattern, sdk)


SCHEMA = "SCHEMA_VALIDATION_FAILED"
MISSING = "MISSING_TRANSITION_TARGET"

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({}, "/States/S", "These fields are required: [Type]"),
    (
        {"Type": "Nope"},
        "/States/S/Type",
        "The field 'Type' should have one of these values: [Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map]",
    ),
    ({"Type": ["Pass"]}, "/States/S/Type", "The field 'Type' should"),
    ({"Type": "Pass"}, "/States/S", "Exactly one of these fields is required: [Next, End]"),
    ({**PASS, "Next": "S"}, "/States/S", "Only one of these fields may be there: [Next, End]"),
    ({**PASS, "End": "true"}, "/States/S/End", "Expected value of type Boolean"),
    ({"Type": "Pass", "Next": 1}, "/States/S/Next", "Expected value of type String"),
    ({**PASS, "Retry": []}, "/States/S/Retry", "Field is not supported"),
    ({**PASS, "Output": 1}, "/States/S/Output", "Field is not supported"),
    ({**PASS, "InputPath": "a"}, "/States/S/InputPath", "Value is not a valid JSONPath"),
    ({**PASS, "InputPath": 1}, "/States/S/InputPath", "Expected value of type String"),
    ({**PASS, "ResultPath": "$.a[*]"}, "/States/S/ResultPath", "Value is not a Reference Path"),
    ({**PASS, "ResultPath": "$$.a"}, "/States/S/ResultPath", "Value is not a Reference Path"),
    ({**PASS, "ResultPath": "$var"}, "/States/S/ResultPath", "Value is not a Reference Path"),
    (
        {**PASS, "Parameters": {"a": {"b.$": "c"}}},
        "/States/S/Parameters/a",
        "The value for the field 'b.$' must be a valid JSONPath or a valid intrinsic function call",
    ),
    ({**PASS, "Parameters": {"b.$": "States.No()"}}, "/States/S/Parameters", "The value for the field 'b.$' must be"),
    ({**PASS, "Assign": {"a b": 1}}, "/States/S/Assign", "'a b' is not a valid name of a variable"),
    ({**PASS, "Assign": {"states.$": "$"}}, "/States/S/Assign", "'states' is not a valid name"),
    ({**PASS, "Assign": []}, "/States/S/Assign", "Expected value of type Object"),
    ({"Type": "Succeed", "End": True}, "/States/S/End", "Field is not supported"),
    ({"Type": "Succeed", "ResultPath": "$"}, "/States/S/ResultPath", "Field is not supported"),
    ({"Type": "Fail", "InputPath": "$"}, "/States/S/InputPath", "Field is not supported"),
    (
        {"Type": "Fail", "Error": "E", "ErrorPath": "$.e"},
        "/States/S",
        "Only one of these fields may be there: [Error, ErrorPath]",
    ),
    ({"Type": "Fail", "CausePath": "x"}, "/States/S/CausePath", "Value must be a valid JSONPath or"),
    ({"Type": "Fail", "Cause": 5}, "/States/S/Cause", "Expected value of type String"),
    ({"Type": "Wait", "End": True}, "/States/S", "Exactly one of these fields is required: [Seconds, SecondsPath,"),
    (
        {"Type": "Wait", "End": True, "Seconds": 1, "Timestamp": "x"},
        "/States/S",
        "Only one of these fields may be there",
    ),
    ({"Type": "Wait", "End": True, "Seconds": -1}, "/States/S/Seconds", "Value must be between 0 and 99999999"),
    ({"Type": "Wait", "End": True, "Seconds": "1"}, "/States/S/Seconds", "Expected value of type Integer"),
    (
        {"Type": "Wait", "End": True, "Timestamp": "2016-12-05 21:29:29Z"},
        "/States/S/Timestamp",
        "String does not match RFC3339 timestamp",
    ),
    ({"Type": "Task", "End": True}, "/States/S", "These fields are required: [Resource]"),
    (
        task(Resource="arn:aws:states:::dynamodb:query"),
        "/States/S/Resource",
        (
            "The resource provided arn:aws:states:::dynamodb:query is not recognized. The value is not a valid resource "
            "ARN, or the resource is not available in this region."
        ),
    ),
    (task(Resource="arn:aws:states:::sqs:sendMessage.sync"), "/States/S/Resource", "The resource provided"),
    (task(Resource="arn:aws:states:::aws-sdk:sqs:sendMessage.sync"), "/States/S/Resource", "The resource provided"),
    (task(Resource=f"{LAMBDA}:"), "/States/S/Resource", "The resource provided"),
    (task(TimeoutSeconds=0), "/States/S/TimeoutSeconds", "Value must be between 1 and 99999999"),
    (task(TimeoutSeconds=5, TimeoutSecondsPath="$.t"), "/States/S", "Only one of these fields may be there"),
    (task(TimeoutSeconds=5, HeartbeatSeconds=6), "/States/S/HeartbeatSeconds", "HeartbeatSeconds must not be greater"),
    (task(Credentials={}), "/States/S/Credentials", "The field 'RoleArn' is required but was missing"),
    (task(Credentials=None), "/States/S/Credentials", "Expected value of type Object"),
    (task(Retry={}), "/States/S/Retry", "Expected value of type Array"),
    (task(Retry=[1]), "/States/S/Retry[0]", "Expected value of type Object"),
    (task(Retry=[{}]), "/States/S/Retry[0]", "These fields are required: [ErrorEquals]"),
    (task(Retry=[{"ErrorEquals": []}]), "/States/S/Retry[0]/ErrorEquals", "Value cannot be empty"),
    (task(Retry=[{"ErrorEquals": [1]}]), "/States/S/Retry[0]/ErrorEquals", "Expected value of type String"),
    (
        task(Retry=[{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["A"]}]),
        "/States/S/Retry[0]/ErrorEquals",
        "States.ALL must appear alone and at the end",
    ),
    (
        task(Retry=[{"ErrorEquals": ["A"], "BackoffRate": 0.9}]),
        "/States/S/Retry[0]/BackoffRate",
        "Value must be between 1 and",
    ),
    (task(Retry=[{"ErrorEquals": ["A"], "IntervalSeconds": 0}]), "/States/S/Retry[0]/IntervalSeconds", "Value must be"),
    (task(Retry=[{"ErrorEquals": ["A"], "MaxAttempts": -1}]), "/States/S/Retry[0]/MaxAttempts", "Value must be"),
    (
        task(Retry=[{"ErrorEquals": ["A"], "MaxDelaySeconds": 0}]),
        "/States/S/Retry[0]/MaxDelaySeconds",
        "Value must be",
    ),
    (
        task(Retry=[{"ErrorEquals": ["A"], "JitterStrategy": "SOME"}]),
        "/States/S/Retry[0]/JitterStrategy",
        "The field 'Jitter",
    ),
    (task(Catch=[{"ErrorEquals": ["A"]}]), "/States/S/Catch[0]", "These fields are required: [Next]"),
    (task(Catch=[{"ErrorEquals": ["A"], "Next": "S", "Foo": 1}]), "/States/S/Catch[0]/Foo", "Field is not supported"),
    ({"Type": "Choice"}, "/States/S", "These fields are required: [Choices]"),
    ({"Type": "Choice", "Choices": []}, "/States/S/Choices", "Value cannot be empty"),
    (
        {"Type": "Choice", "Choices": [{"Variable": "$.v", "IsNull": True}]},
        "/States/S/Choices[0]",
        "These fields are required: [Next]",
    ),
    (
        {"Type": "Choice", "Choices": [{"Variable": "$.v", "StringEquals": 1, "Next": "S"}]},
        "/States/S/Choices[0]/StringEquals",
        "Expected value of type String",
    ),
    (
        {"Type": "Choice", "Choices": [{"And": [{"Variable": "$.v", "IsNull": 1}], "Next": "S"}]},
        "/States/S/Choices[0]/And[0]/IsNull",
        "Expected value of type Boolean",
    ),
    ({"Type": "Choice", "Choices": [{"Foo": 1, "Next": "S"}]}, "/States/S/Choices[0]/Foo", "Field is not supported"),
    ({"Type": "Choice", "End": True, "Choices": [1]}, "/States/S/End", "Field is not supported"),
    ({"Type": "Parallel", "End": True, "Branches": []}, "/States/S/Branches", "Value cannot be empty"),
    ({"Type": "Parallel", "End": True}, "/States/S", "These fields are required: [Branches]"),
    (
        {"Type": "Parallel", "End": True, "Branches": [{}]},
        "/States/S/Branches[0]",
        "These fields are required: [States, StartAt]",
    ),
    (
        {"Type": "Parallel", "End": True, "Branches": [{**BLOCK, "X": 1}]},
        "/States/S/Branches[0]/X",
        "Field is not supported",
    ),
    (
        {"Type": "Parallel", "End": True, "Branches": [{"StartAt": "I", "States": {"I": {"Type": "Pass"}}}]},
        "/States/S/Branches[0]/States/I",
        "Exactly one of these fields is required: [Next, End]",
    ),
    ({"Type": "Map", "End": True}, "/States/S", "These fields are required: [ItemProcessor]"),
    (
        {"Type": "Map", "End": True, "Iterator": BLOCK, "ItemsPath": None},
        "/States/S/ItemsPath",
        "Expected value of type String",
    ),
    (
        {"Type": "Map", "End": True, "Iterator": BLOCK, "ItemProcessor": BLOCK},
        "/States/S",
        "Only one of these fields may",
    ),
    (
        {"Type": "Map", "End": True, "Iterator": BLOCK, "ItemReader": {}},
        "/States/S/ItemReader",
        "Field is supported in DIST",
    ),
    (
        {"Type": "Map", "End": True, "Iterator": BLOCK, "MaxConcurrency": 1.5},
        "/States/S/MaxConcurrency",
        "Expected value of type Int",
    ),
    (
        {"Type": "Map", "End": True, "Iterator": BLOCK, "ToleratedFailurePercentage": 101},
        "/States/S/ToleratedFailurePercentage",
        "Value",
    ),
    (
        {"Type": "Map", "End": True, "ItemProcessor": {**BLOCK, "ProcessorConfig": {"Mode": "X"}}},
        "/States/S/ItemProcessor/ProcessorConfig/Mode",
        "The field 'Mode' should have one of these values",
    ),
]


@pytest.mark.parametrize(("state", "location", "message"), REFUSED)
def test_a_fault_of_a_state_is_found_where_it_is(state: dict[str, Any], location: str, message: str) -> None:
    found = diagnoses(machine(state))
    assert any(code == SCHEMA and at == location and text.startswith(message) for code, at, text in found), found


TOP: list[tuple[Any, list[tuple[str, str, str]]]] = [
    ({"States": {"S": PASS}}, [(SCHEMA, "/", "These fields are required: [StartAt]")]),
    ({"StartAt": "S", "States": {}}, [(SCHEMA, "/States", "Value cannot be empty")]),
    ({"StartAt": "S", "States": []}, [(SCHEMA, "/States", "Expected value of type Object")]),
    ({"StartAt": "S", "States": {"S": 1}}, [(SCHEMA, "/States/S", "Expected value of type Object")]),
    ({"StartAt": 1, "States": {"S": PASS}}, [(SCHEMA, "/StartAt", "Expected value of type String")]),
    ({**BLOCK, "Foo": 1}, [(SCHEMA, "/Foo", "Field is not supported")]),
    ({**BLOCK, "TimeoutSeconds": 0}, [(SCHEMA, "/TimeoutSeconds", "Value must be between 1 and 99999999")]),
    ({**BLOCK, "Version": "2.0"}, [(SCHEMA, "/Version", "The field 'Version' should have one of these values: [1.0]")]),
    (
        {**BLOCK, "QueryLanguage": "SQL"},
        [(SCHEMA, "/QueryLanguage", "The field 'QueryLanguage' should have one of these values: [JSONPath, JSONata]")],
    ),
    ({**BLOCK, "StartAt": "X"}, [(MISSING, "/StartAt", "Missing 'StartAt' target: X")]),
    (
        {"StartAt": "a", "States": {"a": {"Type": "Pass", "Next": "b"}}},
        [(MISSING, "/States/a/Next", "Missing 'Next' target: b")],
    ),
    (
        {
            "StartAt": "a",
            "States": {
                "a": {"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": True, "Next": "b"}], "Default": "c"}
            },
        },
        [
            (MISSING, "/States/a/Default", "Missing 'Default' target: c"),
            (MISSING, "/States/a/Choices[0]/Next", "Missing 'Next' target: b"),
        ],
    ),
    (
        {"StartAt": "a", "States": {"a": task(Catch=[{"ErrorEquals": ["A"], "Next": "b"}])}},
        [(MISSING, "/States/a/Catch[0]/Next", "Missing 'Next' target: b")],
    ),
    ({"StartAt": "a", "States": {"a": PASS, "b": PASS}}, [(MISSING, "/States/b", 'State "b" is not reachable.')]),
    (
        {"StartAt": "a", "States": {"a": {"Type": "Pass", "Next": "a"}}},
        [("MISSING_END_STATE", "/States", "No terminal state: one state must end the block")],
    ),
    (
        {
            "StartAt": "a",
            "States": {"a": {"Type": "Map", "End": True, "Iterator": {"StartAt": "a", "States": {"a": PASS}}}},
        },
        [("DUPLICATE_STATE_NAME", "/States/a/Iterator/States/a", "Duplicate State name: a")],
    ),
    (
        {"StartAt": "n" * 81, "States": {"n" * 81: PASS}},
        [("INVALID_STATE_NAME", "/States/" + "n" * 81, "The name of a state must have 1 to 80 characters")],
    ),
    (
        {"StartAt": "P", "States": {"P": {"Type": "Parallel", "End": True, "Branches": [{**BLOCK, "StartAt": "x"}]}}},
        [(MISSING, "/States/P/Branches[0]/StartAt", "Missing 'StartAt' target: x")],
    ),
]


@pytest.mark.parametrize(("definition", "expected"), TOP)
def test_a_fault_of_a_machine_is_found_where_it_is(definition: Any, expected: list[tuple[str, str, str]]) -> None:
    assert diagnoses(dumps(definition)) == expected


def test_every_fault_is_told_at_once() -> None:
    found = diagnoses(dumps({"StartAt": "a", "States": {"a": {"Type": "Pass", "X": 1}, "b": {"Type": "Nope"}}}))
    assert [at for _, at, _ in found] == ["/States/a/X", "/States/a", "/States/b/Type"]


@pytest.mark.parametrize("text", ["", " ", "1", "[]", "null", '"x"'])
def test_a_definition_is_an_object(text: str) -> None:
    assert diagnoses(text) == [(SCHEMA, "", "Definition must be a valid JSON object")]
    with pytest.raises(InvalidDefinition, match=r"object$"):
        parse(text)


def test_the_parser_says_where_json_ends() -> None:
    assert diagnoses("\n not a definition")[0][1] == '[Source: (String)"\n not a definition"; line: 2, column: 5]'
    ((code, location, _),) = diagnoses('{"StartAt": ')
    assert (code, location) == ("INVALID_JSON_DESCRIPTION", "/")


@pytest.mark.parametrize(
    "definition",
    [
        {**BLOCK, "QueryLanguage": "JSONata"},
        {"StartAt": "S", "States": {"S": {**PASS, "QueryLanguage": "JSONata", "Output": "{% 1 %}"}}},
        {
            "StartAt": "S",
            "QueryLanguage": "JSONata",
            "States": {
                "S": {
                    "Type": "Choice",
                    "Choices": [
                        {"Condition": "{% true %}", "Next": "W", "Output": "{% 1 %}", "Assign": {"a": "{% 1 %}"}}
                    ],
                    "Default": "W",
                },
                "W": {"Type": "Wait", "Seconds": "{% 5 %}", "Next": "M"},
                "M": {
                    "Type": "Map",
                    "Items": "{% [1] %}",
                    "MaxConcurrency": "{% 1 %}",
                    "ItemProcessor": {
                        "StartAt": "T",
                        "States": {
                            "T": {
                                "Type": "Task",
                                "Resource": LAMBDA,
                                "Arguments": {},
                                "TimeoutSeconds": "{% 4 %}",
                                "End": True,
                            }
                        },
                    },
                    "Next": "F",
                },
                "F": {"Type": "Fail", "Error": "{% 'e' %}"},
            },
        },
    ],
)
def test_jsonata_machines_and_states(definition: Any) -> None:
    states = parse(dumps(definition)).root.states
    assert {state.query_language for state in states.values()} == {"JSONata"}


def test_jsonata_complaints_stand_where_the_expression_does() -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "S", "Output": {"a/b": ["{% x %}"]}, "Assign": {"v": "{% 1 + %}"}}]
    task = {"Type": "Task", "Resource": LAMBDA, "End": True, "TimeoutSeconds": "{% y %}", "Catch": catch}
    choice = {"Type": "Choice", "Choices": [{"Condition": "{% z %}", "Next": "S"}], "Default": "S"}
    wait = {"Type": "Wait", "Timestamp": "{% w %}", "End": True}
    found = [
        (location, message.split("'")[1] if "'" in message else message)
        for state in (task, choice, wait)
        for _, location, message in diagnoses(machine({**state, "QueryLanguage": "JSONata"}))
    ]
    assert sorted(found) == [
        ("/States/S/Catch[0]/Assign/v", "Unexpected end of expression"),
        ("/States/S/Catch[0]/Output/a~1b[0]", "x"),
        ("/States/S/Choices[0]/Condition", "z"),
        ("/States/S/TimeoutSeconds", "y"),
        ("/States/S/Timestamp", "w"),
    ]


def test_labels_of_distributed_maps_are_names() -> None:
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    state = {
        "Type": "Map",
        "End": True,
        "ItemProcessor": {**BLOCK, "ProcessorConfig": config},
        "Label": "l",
    }
    assert parse(machine(state))
    for label in ("a b", "a/b", "", "x" * 41, "a\x7f"):
        assert diagnoses(machine({**state, "Label": label}))[0][:2] == ("INVALID_LABEL_NAME", "/States/S/Label")


def test_what_lies_too_deep_is_refused_not_fatal() -> None:
    deep: Any = {"Variable": "$.v", "IsNull": True}
    for _ in range(150):
        deep = {"Not": deep}
    parse(machine({"Type": "Choice", "Choices": [{**deep, "Next": "E"}], "Default": "E"}, E=PASS))
    inner: Any = {"StartAt": "s", "States": {"s": PASS}}
    for level in range(45):
        inner = {"StartAt": f"m{level}", "States": {f"m{level}": {"Type": "Map", "End": True, "Iterator": inner}}}
    assert diagnoses(dumps(inner))[0][0] == "TOO_DEEPLY_NESTED"
    text = dumps(deep)
    for _ in range(200):
        text = f'{{"Not":{text}}}'
    rule = f'{{"Not":{text},"Next":"E"}}'
    definition = (
        f'{{"StartAt":"S","States":{{"S":{{"Type":"Choice","Choices":[{rule}],"Default":"E"}},"E":{dumps(PASS)}}}}}'
    )
    with pytest.raises(InvalidDefinition):
        parse(definition.replace(text, '{"Not":' * 700 + text + "}" * 700))


NUMBERS: list[tuple[str, Any, str]] = [
    ("MaxConcurrencyPath", "x", 'The MaxConcurrencyPath field refers to value "x" which is not a valid integer: $.v'),
    ("MaxConcurrencyPath", {}, 'The MaxConcurrencyPath field refers to value "{}" which is not a valid integer: $.v'),
    ("MaxConcurrencyPath", -1, "MaxConcurrency cannot be negative."),
    ("ToleratedFailureCountPath", -1, "ToleratedFailureCount cannot be negative."),
    ("ToleratedFailurePercentagePath", -1.1, "ToleratedFailurePercentage must be between 0 and 100."),
    (
        "ToleratedFailurePercentagePath",
        "x",
        'The ToleratedFailurePercentagePath field refers to value "x" which is not a valid float: $.v',
    ),
]


@pytest.mark.parametrize(("field", "value", "cause"), NUMBERS)
def test_numbers_by_path(field: str, value: Any, cause: str) -> None:
    """Recorded: test_max_concurrency_path, test_map_state_tolerated_failure_count_path and _percentage_path."""
    state = parse(machine({"Type": "Map", "End": True, "Iterator": BLOCK, field: "$.v"})).root.states["S"]
    assert isinstance(state, Map)
    expression: Any = {
        "MaxConcurrencyPath": state.max_concurrency,
        "ToleratedFailureCountPath": state.tolerated_failure_count,
        "ToleratedFailurePercentagePath": state.tolerated_failure_percentage,
    }[field]
    assert expression(scope({"v": 5})) == 5
    with pytest.raises(StatesError) as caught:
        expression(scope({"v": value}))
    assert (caught.value.error, caught.value.cause) == ("States.Runtime", cause)


def test_a_map_wants_an_array() -> None:
    state = parse(machine({"Type": "Map", "End": True, "Iterator": BLOCK, "ItemsPath": "$.v"})).root.states["S"]
    assert isinstance(state, Map)
    assert state.items is not None
    with pytest.raises(StatesError, match=r'Reference path "\$\.v" must point to array\.'):
        state.items(scope({"v": {}}))
