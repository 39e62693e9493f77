"""JSONata states in the engine: the date of a delivery, what each field makes, and what history says of failures."""

import json
from typing import Any

import pytest

from tasuki.engine.turn import MAX_STEP_FUEL
from tests.engine.player import Play, fail, succeed

DATE = (
    "{% $type($states.input.scheduledDate) = 'string' ? $states.input.scheduledDate\n"
    "   : $type($states.input.scheduledTime) = 'string'\n"
    "     ? $fromMillis($toMillis($states.input.scheduledTime), '[Y0001]-[M01]-[D01]', '+0900') : '' %}"
)
RESOURCE = "arn:aws:states:::sqs:sendMessage"
Types = list[tuple[int, str]]


def run(states: dict[str, Any], given: Any = None, *, handler: Any = None, mixed: bool = False, **top: Any) -> Play:
    definition = {"StartAt": next(iter(states)), "States": states, **top}
    if not mixed:
        definition["QueryLanguage"] = "JSONata"
    play = Play(definition, {} if given is None else given, **({"handler": handler} if handler else {}))
    play.start()
    play.run()
    return play


def output(state: dict[str, Any], given: Any = None, **more: Any) -> Any:
    play = run({"S": {"End": True, **state}}, given, **more)
    assert play.status == "SUCCEEDED", play.finish
    return play.output


def events(play: Play) -> Types:
    return [(event["previousEventId"], event["type"]) for event in play.wire()]


def cause(play: Play) -> str:
    assert play.finish is not None
    assert play.finish.error == "States.QueryEvaluationError"
    return play.finish.cause or ""


VECTORS: list[tuple[Any, str]] = [
    ({"scheduledTime": "2026-10-09T16:00:00Z"}, "2026-10-10"),
    ({"scheduledDate": "2026-10-10"}, "2026-10-10"),
    ({}, ""),
    ({"scheduledDate": "2026-10-10", "scheduledTime": "2026-12-31T16:00:00Z"}, "2026-10-10"),
    ({"scheduledTime": "2026-10-09T14:59:59Z"}, "2026-10-09"),
    ({"scheduledTime": "2026-10-09T15:00:00Z"}, "2026-10-10"),
    ({"scheduledTime": "2026-12-31T15:00:00Z"}, "2027-01-01"),
    ({"scheduledTime": "2026-10-09T16:00:00+09:00"}, "2026-10-09"),
    ({"scheduledDate": 5, "scheduledTime": "2026-10-09T14:59:59Z"}, "2026-10-09"),
    ({"scheduledDate": None, "scheduledTime": "2026-10-09T15:00:00Z"}, "2026-10-10"),
    ({"scheduledDate": ""}, ""),
]


@pytest.mark.parametrize(("given", "day"), VECTORS)
def test_the_day_of_a_delivery(given: Any, day: str) -> None:
    assert output({"Type": "Pass", "Output": {"scheduledDate": DATE}}, given) == {"scheduledDate": day}


@pytest.mark.parametrize("text", ["<aws.scheduler.scheduled-time>", ""])
def test_a_time_that_is_none_fails_loudly(text: str) -> None:
    play = run({"S": {"Type": "Pass", "Output": {"scheduledDate": DATE}, "End": True}}, {"scheduledTime": text})
    assert play.status == "FAILED"
    assert f'D3110: The argument of the toMillis function must be an ISO 8601 formatted timestamp. Given "{text}"' in (
        cause(play)
    )


def test_pf_08_an_absent_day_fails_a_jsonpath_task() -> None:
    parameters = {"QueueUrl": "q", "MessageBody": {"Value.$": "$.scheduledDate"}}
    task = {"Type": "Task", "Resource": RESOURCE, "Parameters": parameters, "End": True}
    play = run({"T": task}, mixed=True)
    assert play.finish is not None
    assert play.finish.error == "States.Runtime"


def test_pf_06_templates_are_evaluated() -> None:
    template = {"greeting": "{% 'Hello, ' & $states.input.name & '!' %}", "doubled": "{% $states.input.value * 2 %}"}
    made = output({"Type": "Pass", "Output": template}, {"name": "World", "value": 21})
    assert made == {"greeting": "Hello, World!", "doubled": 42}
    literal: dict[str, Any] = {"a": " {% 1 %} ", "b": [None, True, 0.5, {}, [], {"c": "{% [1] %}"}], 'd"': "$x"}
    assert output({"Type": "Pass", "Output": literal}) == {**literal, "b": [None, True, 0.5, {}, [], {"c": [1]}]}
    assert output({"Type": "Pass"}, {"kept": 1}) == {"kept": 1}


def test_pf_04_a_rule_has_its_own_output_and_assign() -> None:
    choice = {
        "Type": "Choice",
        "Choices": [
            {"Condition": "{% $states.input.n > 5 %}", "Output": {"rule": "{% $states.input.n %}"}, "Next": "S"},
            {"Condition": False, "Next": "S"},
            {"Condition": "{% $states.input.n > 3 %}", "Assign": {"v": "{% $states.input.n %}"}, "Next": "S"},
        ],
        "Output": "state",
        "Assign": {"v": 0},
        "Default": "S",
    }
    show = {"Type": "Pass", "Output": "{% [$states.input, $exists($v) ? $v : 'none'] %}", "End": True}
    answers = [run({"C": choice, "S": show}, {"n": n}).output for n in (6, 4, 1)]
    assert answers == [[{"rule": 6}, "none"], [{"n": 4}, 4], ["state", 0]]
    play = run({"C": {**choice, "Choices": [{"Condition": "{% 1 %}", "Next": "S"}]}, "S": show})
    assert (
        "'Choices[0]/Condition' returned an unexpected result type. Expected 'boolean', but was 'number' for"
        in cause(play)
    )


def test_tasks_take_arguments_and_give_results() -> None:
    task = {
        "Type": "Task",
        "Resource": RESOURCE,
        "Arguments": {"QueueUrl": "{% $states.input.url %}", "MessageBody": "{% $states.context.State.Name %}"},
        "TimeoutSeconds": "{% $states.input.n %}",
        "HeartbeatSeconds": "{% $states.input.n - 1 %}",
        "Credentials": {"RoleArn": "{% $states.input.role %}"},
        "Output": {"id": "{% $states.result.MessageId %}", "input": "{% $states.input.n %}"},
        "Assign": {"whole": "{% $states.result %}"},
        "Next": "Show",
    }
    show = {"Type": "Pass", "Output": "{% [$states.input, $whole] %}", "End": True}
    role = "arn:aws:iam::111111111111:role/other"
    play = run({"T": task, "Show": show}, {"url": "u", "n": 9, "role": role}, handler=succeed({"MessageId": "m"}))
    assert play.output == [{"id": "m", "input": 9}, {"MessageId": "m"}]
    (command,) = play.scheduled
    assert command.parameters.value == {"QueueUrl": "u", "MessageBody": "T"}
    assert (command.timeout_seconds, command.heartbeat_seconds) == (9, 8)
    scheduled = next(event for event in play.wire() if event["type"] == "TaskScheduled")
    assert scheduled["taskScheduledEventDetails"]["taskCredentials"] == {"roleArn": role}


def test_what_is_assigned_is_seen_by_the_next_state_only() -> None:
    states = {
        "A": {"Type": "Pass", "Assign": {"x": 1, "y": 2}, "Next": "B"},
        "B": {"Type": "Pass", "Assign": {"x": "{% $y %}", "y": "{% $x %}"}, "Output": "{% [$x, $y] %}", "Next": "C"},
        "C": {"Type": "Pass", "Output": ["{% $states.input %}", "{% $x %}", "{% $y %}"], "End": True},
    }
    play = run(states)
    assert play.output == [[1, 2], 2, 1]
    assert play.machine.references == {"B": ("x", "y"), "C": ("x", "y")}


def test_a_catcher_sees_the_error() -> None:
    task = {
        "Type": "Task",
        "Resource": RESOURCE,
        "Arguments": {"QueueUrl": "q", "MessageBody": "b"},
        "Catch": [
            {
                "ErrorEquals": ["States.ALL"],
                "Output": {"e": "{% $states.errorOutput.Error %}", "i": "{% $states.input %}"},
                "Assign": {"c": "{% $states.errorOutput.Cause %}"},
                "Next": "S",
            }
        ],
        "End": True,
    }
    show = {"Type": "Pass", "Output": "{% [$states.input, $c] %}", "End": True}
    assert run({"T": task, "S": show}, {"a": 1}, handler=fail()).output == [{"e": "Boom", "i": {"a": 1}}, "it broke"]
    catcher = {"ErrorEquals": ["States.ALL"], "Next": "S"}
    play = run({"T": {**task, "Catch": [catcher]}, "S": {"Type": "Succeed"}}, handler=fail())
    assert play.output == {"Error": "Boom", "Cause": "it broke"}
    play = run({"T": {**task, "Catch": [{**catcher, "Output": "{% $none %}"}]}, "S": show}, handler=fail())
    assert "'Catch[0]/Output' returned nothing" in cause(play)
    assert [kind for _, kind in events(play)][-3:] == ["TaskFailed", "EvaluationFailed", "ExecutionFailed"]


def test_failed_expressions_are_retried_and_caught() -> None:
    task = {
        "Type": "Task",
        "Resource": RESOURCE,
        "Arguments": {"QueueUrl": "q", "MessageBody": "{% $states.input.none %}"},
        "Retry": [{"ErrorEquals": ["States.QueryEvaluationError"], "MaxAttempts": 1}],
        "Catch": [{"ErrorEquals": ["States.QueryEvaluationError"], "Next": "S"}],
        "End": True,
    }
    play = run({"T": task, "S": {"Type": "Pass", "Output": "{% $states.input.Error %}", "End": True}})
    assert play.output == "States.QueryEvaluationError"
    assert events(play)[:6] == [
        (0, "ExecutionStarted"),
        (0, "TaskStateEntered"),
        (0, "EvaluationFailed"),
        (3, "EvaluationFailed"),
        (4, "TaskStateExited"),
        (5, "PassStateEntered"),
    ]
    failed = play.wire()[2]["evaluationFailedEventDetails"]
    assert failed["location"] == "Arguments/MessageBody"
    assert failed["state"] == "T"


def test_an_output_that_fails_after_the_work() -> None:
    task = {"Type": "Task", "Resource": RESOURCE, "Arguments": {"QueueUrl": "q", "MessageBody": "b"}, "End": True}
    play = run({"T": {**task, "Output": {"a": ["{% $states.result.none %}"]}}}, handler=succeed({}))
    assert events(play)[-3:] == [(4, "TaskSucceeded"), (5, "EvaluationFailed"), (6, "ExecutionFailed")]
    assert "the field 'Output/a[0]' returned nothing" in cause(play)


PASS: dict[str, Any] = {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}


def test_maps_and_their_items() -> None:
    inner = {"StartAt": "I", "States": {"I": {"Type": "Pass", "Output": "{% $states.input.v * $f %}", "End": True}}}
    state = {
        "Type": "Map",
        "Items": "{% $states.input.list %}",
        "ItemSelector": {"v": "{% $states.context.Map.Item.Value + $states.context.Map.Item.Index %}"},
        "MaxConcurrency": "{% 1 + 1 %}",
        "ToleratedFailureCount": "{% 0 %}",
        "ToleratedFailurePercentage": "{% 0.5 %}",
        "ItemProcessor": inner,
        "Output": "{% $sum($states.result) %}",
        "End": True,
    }
    play = run({"A": {"Type": "Pass", "Assign": {"f": 2}, "Next": "M"}, "M": state}, {"list": [1, 2, 3]})
    assert play.output == 18
    assert output({"Type": "Map", "Items": [1, "{% 2 %}"], "ItemProcessor": PASS}) == [1, 2]
    assert output({"Type": "Map", "ItemProcessor": PASS}, [1, 2]) == [1, 2]


@pytest.mark.parametrize(
    ("fields", "given", "words"),
    [
        ({"Items": "{% {'a': 1} %}"}, {}, "Expected 'array', but was 'object' for value: {\"a\":1}"),
        ({"Items": "{% $sum %}"}, {}, "returned an unsupported result type."),
        ({}, {"a": 1}, 'Map state input must be an array but was: {"a":1}'),
        ({"MaxConcurrency": "{% -1 %}"}, [], "MaxConcurrency cannot be negative."),
        ({"MaxConcurrency": "{% 1.5 %}"}, [], "The MaxConcurrency field must be an integer but was: 1.5"),
    ],
)
def test_maps_that_cannot_begin(fields: dict[str, Any], given: Any, words: str) -> None:
    play = run({"M": {"Type": "Map", "ItemProcessor": PASS, "End": True, **fields}}, given)
    assert cause(play).endswith(words)
    assert events(play)[1:] == [
        (0, "MapStateEntered"),
        (0, "EvaluationFailed"),
        (3, "MapStateFailed"),
        (4, "ExecutionFailed"),
    ]


def test_parallel_takes_arguments() -> None:
    other = {"StartAt": "J", "States": {"J": {"Type": "Pass", "End": True}}}
    state = {"Type": "Parallel", "Branches": [PASS, other], "Arguments": {"a": "{% $states.input.n %}"}}
    assert output({**state, "Output": "{% $states.result.a %}"}, {"n": 3}) == [3, 3]
    assert output(state, {"n": 3}) == [{"a": 3}, {"a": 3}]


@pytest.mark.parametrize(
    ("field", "value", "waits_ms"),
    [
        ("Seconds", "{% $states.input.n * 2 %}", 10_000),
        ("Seconds", 3, 3_000),
        ("Timestamp", "{% $fromMillis($millis() + 7000) %}", 7_000),
    ],
)
def test_waits(field: str, value: Any, waits_ms: int) -> None:
    state = {"Type": "Wait", field: value, "Output": "{% $now() %}", "End": True}
    play = Play({"QueryLanguage": "JSONata", "StartAt": "W", "States": {"W": state}}, {"n": 5})
    play.start()
    begin = play.now
    play.run()
    assert play.now - begin == waits_ms
    assert play.status == "SUCCEEDED"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"Seconds": "{% -1 %}"}, "Seconds cannot be negative."),
        ({"Seconds": "{% 'x' %}"}, "Expected 'number', but was 'string' for value: \"x\""),
        ({"Timestamp": "{% 5 %}"}, "Expected 'string', but was 'number' for value: 5"),
    ],
)
def test_waits_for_nothing_sensible(fields: dict[str, Any], words: str) -> None:
    assert cause(run({"W": {"Type": "Wait", "End": True, **fields}})).endswith(words)


def test_fail_says_what_expressions_say() -> None:
    play = run({"F": {"Type": "Fail", "Error": "{% 'E' & $states.input.n %}", "Cause": "{% $now() %}"}}, {"n": 1})
    assert play.finish is not None
    assert (play.finish.error, (play.finish.cause or "")[:4]) == ("E1", "2023")
    assert "'Cause' returned an unexpected result type" in cause(run({"F": {"Type": "Fail", "Cause": "{% 1 %}"}}))


def test_succeed_has_an_output() -> None:
    assert run({"S": {"Type": "Succeed", "Output": "{% $states.input.a %}"}}, {"a": [1]}).output == [1]


def test_languages_mix() -> None:
    states = {
        "P": {"Type": "Pass", "Parameters": {"a.$": "$.n"}, "Assign": {"v.$": "$.a"}, "Next": "J"},
        "J": {"Type": "Pass", "QueryLanguage": "JSONata", "Output": {"b": "{% $states.input.a + $v %}"}, "Next": "Q"},
        "Q": {"Type": "Pass", "OutputPath": "$.b", "End": True},
    }
    assert run(states, {"n": 4}, mixed=True).output == 8


def test_an_output_passed_on_whole_is_not_coded_again() -> None:
    state = {"Type": "Pass", "Output": "{% $states.input %}", "End": True}
    definition = {"QueryLanguage": "JSONata", "StartAt": "S", "States": {"S": state}}
    play = Play(definition, input_text='{"a":1}')
    play.start()
    entered, left = play.history[1].details, play.history[2].details
    assert entered is not None
    assert left is not None
    assert entered["input"] is left["output"]
    spaced = Play(definition, input_text='{"a": 1}')
    spaced.start()
    assert spaced.finish is not None
    assert spaced.finish.output is not None
    assert spaced.finish.output.text == '{"a":1}'


def test_a_large_output_is_refused() -> None:
    play = run({"S": {"Type": "Pass", "Output": "{% $pad('', 300000, 'x') %}", "End": True}})
    assert play.finish is not None
    assert play.finish.error == "States.DataLimitExceeded"


def test_what_is_drawn_is_the_same_when_it_is_decided_again() -> None:
    drawn = {"S": {"Type": "Pass", "Output": "{% [$uuid(), $random(), $shuffle([1..9])] %}", "End": True}}
    assert run(drawn).output == run(drawn).output


def test_a_step_yields_after_an_expression_that_took_long() -> None:
    busy = "{% $sum($map([1..80000], function($v){ $v })) %}"
    states = {name: {"Type": "Pass", "Output": busy, "Next": chr(ord(name) + 1)} for name in "ABC"}
    play = Play({"QueryLanguage": "JSONata", "StartAt": "A", "States": {**states, "D": {"Type": "Succeed"}}}, {})
    play.start()
    play.run()
    assert play.status == "SUCCEEDED"
    assert play.steps == 4
    assert MAX_STEP_FUEL < 1_000_000


def test_a_runaway_fails_its_state_and_can_be_caught() -> None:
    endless = "{% ($f := function($n){ $f($n + 1) }; $f(1)) %}"
    task = {
        "Type": "Task",
        "Resource": RESOURCE,
        "Arguments": {"QueueUrl": "q", "MessageBody": endless},
        "Catch": [{"ErrorEquals": ["States.QueryEvaluationError"], "Next": "S"}],
        "End": True,
    }
    play = run({"T": task, "S": {"Type": "Succeed", "Output": "{% $states.input.Cause %}"}})
    assert play.output.endswith("Expression evaluation timeout: Check for infinite loop")


def test_descriptions_name_the_variables_that_are_read() -> None:
    play = run({"A": {"Type": "Pass", "Assign": {"a": 1}, "Next": "B"}, "B": {"Type": "Succeed", "Output": "{% $a %}"}})
    assert json.loads(json.dumps(play.machine.references)) == {"B": ["a"]}
