"""States that need nobody: Pass, Choice, Wait, Succeed, Fail; the context object; how documents are shared."""

from typing import Any

import pytest

from tasuki.engine.events import TimerFired
from tasuki.values.documents import Doc
from tests.engine.machines import TOKEN, machine, map_, pass_, task, wait
from tests.engine.player import BEGIN, EXECUTION_ARN, MACHINE_ARN, ROLE_ARN, Play


def test_pass_shapes_its_input() -> None:
    definition = machine(A=pass_(InputPath="$.a", Parameters={"b.$": "$.b"}, ResultPath="$.out", OutputPath="$.out"))
    assert Play(definition, {"a": {"b": 1}}).start().output == {"b": 1}


def test_a_result_wins_over_the_input_and_finds_its_place() -> None:
    assert Play(machine(A=pass_(Result=[1], ResultPath="$.r")), {"a": 1}).start().output == {"a": 1, "r": [1]}
    assert Play(machine(A=pass_(Result=[1], ResultPath=None)), {"a": 1}).start().output == {"a": 1}
    assert Play(machine(A=pass_(InputPath=None)), {"a": 1}).start().output == {}
    assert Play(machine(A=pass_(OutputPath=None)), {"a": 1}).start().output == {}


def test_a_document_that_nothing_changes_is_one_document() -> None:
    play = Play(machine(A=pass_(Next="B"), B=pass_(Result=2, ResultPath="$.b", Next="C"), C=wait(0)), {"a": 1}).start()
    documents = [
        event.details[name]
        for event in play.history
        if event.details
        for name in ("input", "output")
        if name in event.details
    ]
    assert all(isinstance(one, Doc) for one in documents)
    assert len({id(one) for one in documents}) == 2, "the input and what B made of it"


def test_big_integers_and_odd_texts_pass_through_untouched() -> None:
    text = '{"n": 123456789012345678901234567890, "f": 1.50, "t": "\\u00e9"}'
    play = Play(machine(A=wait(5, Next="B"), B=pass_()), input_text=text).run()
    assert play.finish is not None
    assert play.finish.output is not None
    assert play.finish.output.text == text


@pytest.mark.parametrize(("n", "goes_to"), [(1, "one"), (2, "rule"), (9, "other")])
def test_choice_takes_the_first_rule_that_matches(n: int, goes_to: str) -> None:
    choice = {
        "Type": "Choice",
        "Choices": [
            {"Variable": "$.n", "NumericEquals": 1, "Next": "One"},
            {"Variable": "$.n", "NumericLessThan": 3, "Next": "Rule", "Assign": {"by": "rule"}},
        ],
        "Default": "Other",
        "Assign": {"by": "other"},
    }
    definition = machine(
        A=pass_(Assign={"by": "one"}, Next="C"),
        C=choice,
        One=pass_(Parameters={"by.$": "$by"}),
        Rule=pass_(Parameters={"by.$": "$by"}),
        Other=pass_(Parameters={"by.$": "$by"}),
    )
    assert Play(definition, {"n": n}).start().output == {"by": goes_to}


def test_no_choice_matches() -> None:
    choice = {"Type": "Choice", "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "B"}]}
    play = Play(machine(A=choice, B=pass_()), {"n": 2}).start()
    assert play.finish is not None
    assert play.finish.error == "States.NoChoiceMatched"
    assert play.types == ["ExecutionStarted", "ChoiceStateEntered", "ExecutionFailed"]


def test_wait_waits_and_a_timer_that_is_early_or_late_does_no_harm() -> None:
    play = Play(machine(A=wait(10, Next="B"), B=wait(10))).start()
    play.tell(TimerFired(1))
    assert play.types == ["ExecutionStarted", "WaitStateEntered"]
    play.now = BEGIN + 10_000
    play.tell(TimerFired(1), TimerFired(1))
    assert play.types[2:] == ["WaitStateExited", "WaitStateEntered"]
    assert play.next_due() == (BEGIN + 20_000, 1)
    play.fire()
    assert play.status == "SUCCEEDED"
    assert play.history[-2].at == BEGIN + 20_000


def test_a_wait_for_a_moment_that_is_past_goes_on_at_once() -> None:
    play = Play(machine(A={"Type": "Wait", "Timestamp": "2016-03-14T01:59:00Z", "End": True})).start()
    assert play.status == "SUCCEEDED"


def test_succeed_ends_with_its_output() -> None:
    play = Play(machine(A={"Type": "Succeed", "OutputPath": "$.x"}), {"x": 3}).start()
    assert play.output == 3
    assert play.types == ["ExecutionStarted", "SucceedStateEntered", "SucceedStateExited", "ExecutionSucceeded"]


def test_fail_by_path() -> None:
    play = Play(machine(A={"Type": "Fail", "ErrorPath": "$.e", "CausePath": "$$.State.Name"}), {"e": "E"}).start()
    assert play.finish is not None
    assert (play.finish.error, play.finish.cause) == ("E", "A")


def test_the_context_object_of_a_pass() -> None:
    play = Play(machine(A=pass_(Parameters={"c.$": "$$"})), {"x": 1}).start()
    assert play.output["c"] == {
        "Execution": {
            "Id": EXECUTION_ARN,
            "Input": {"x": 1},
            "StartTime": "2023-11-14T22:13:20.000Z",
            "Name": "run",
            "RoleArn": ROLE_ARN,
            "RedriveCount": 0,
        },
        "StateMachine": {"Id": MACHINE_ARN, "Name": "machine"},
        "State": {"Name": "A", "EnteredTime": "2023-11-14T22:13:20.000Z"},
    }


def test_the_context_object_of_a_task_in_a_map() -> None:
    inner = {"StartAt": "T", "States": {"T": task(TOKEN, Parameters={"c.$": "$$"})}}
    play = Play(machine("W", W=wait(5, Next="M"), M=map_(inner)), ["item"]).start()
    play.fire()
    context = play.scheduled[0].parameters.value["c"]
    assert context["State"] == {"Name": "T", "EnteredTime": "2023-11-14T22:13:25.000Z", "RetryCount": 0}
    assert context["Map"] == {"Item": {"Index": 0, "Value": "item"}}
    assert context["Task"] == {"Token": play.scheduled[0].token}


@pytest.mark.parametrize("expression", ["States.UUID()", "States.MathRandom(1, 1000000)"])
def test_chance_comes_from_the_seed_and_the_event(expression: str) -> None:
    definition = machine(
        A=pass_(Parameters={"x.$": expression}, Next="B"), B=pass_(Parameters={"x.$": "$.x", "y.$": expression})
    )

    def drawn(seed: str) -> Any:
        return Play(definition, seed=seed).start().output

    assert drawn("one") == drawn("one") != drawn("two")
    assert drawn("one")["x"] != drawn("one")["y"]


def test_a_state_may_be_too_large() -> None:
    play = Play(machine(A=pass_(Parameters={"a.$": "$", "b.$": "$"})), "x" * 140_000).start()
    assert play.finish is not None
    assert play.finish.error == "States.DataLimitExceeded"
    assert play.finish.cause == (
        "The state/task 'A' returned a result with a size exceeding the maximum number of bytes service limit."
    )
