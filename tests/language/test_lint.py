"""Lint: one machine a finding, and none for what is right."""

import json
from pathlib import Path
from typing import Any

from tasuki.language.lint import Finding, lint
from tasuki.language.shapes import ANYTHING, NOTHING_INSIDE, Shape, join, look, put, shape_of, without

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
END = {"Type": "Succeed"}
SYNC = "arn:aws:states:::ecs:runTask.sync"
SEND = "arn:aws:states:::sqs:sendMessage"


def machine(start: str = "A", **states: Any) -> dict[str, Any]:
    return {"StartAt": start, "States": states}


def found(definition: dict[str, Any], *, pipe_target: bool = False) -> list[tuple[str, str]]:
    return [(one.code, one.location) for one in lint(json.dumps(definition), pipe_target=pipe_target)]


def task(resource: str = SEND, **more: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": resource, **({} if "Next" in more else {"End": True}), **more}


def test_what_aws_refuses_comes_first_and_alone() -> None:
    (one,) = lint(json.dumps(machine(A=END, B=END)))
    assert one == Finding(
        "MISSING_TRANSITION_TARGET",
        "ERROR",
        "/States/B",
        'State "B" is not reachable.',
        "Name a state of the same States object, or remove the state that nothing leads to.",
    )
    assert lint("{")[0].code == "INVALID_JSON_DESCRIPTION"


def test_what_aws_warns_of() -> None:
    rule = {"Not": {"Variable": "$.a", "StringEquals": "$.b"}, "Next": "B"}
    definition = machine(
        A={"Type": "Choice", "Choices": [rule], "Default": "B"},
        B={"Type": "Pass", "Result": {"x": ["$.y"]}, "Next": "C"},
        C={"Type": "Pass", "Parameters": {"n": "States.Format('{}', 1)", "price": "$5", "m.$": "$.x"}, "End": True},
    )
    assert found(definition) == [
        ("NO_PATH", "/States/A/Choices[0]/Not/StringEquals"),
        ("PASS_RESULT_IS_STATIC", "/States/B/Result/x/0"),
        ("NO_DOLLAR", "/States/C/Parameters/n"),
    ]


def test_a_path_that_nothing_fills() -> None:
    definition = machine(
        A={"Type": "Pass", "Parameters": {"order": {"id.$": "$.id"}}, "Next": "B"},
        B=task(Parameters={"QueueUrl": "q", "MessageBody.$": "States.Format('{} $.x', $.order.number)"}, Next="C"),
        C={"Type": "Wait", "SecondsPath": "$.whatever", "End": True},
    )
    assert found(definition) == [("PATH_NEVER_FILLED", "/States/B/Parameters/MessageBody.$")]
    assert "$.order.number" in lint(json.dumps(definition))[0].message


def test_a_result_selector_says_what_a_task_leaves() -> None:
    definition = machine(
        A=task(ResultSelector={"id.$": "$.MessageId"}, ResultPath="$.sent", Next="B"),
        B={"Type": "Pass", "InputPath": "$.sent.MessageId", "End": True},
    )
    assert found(definition) == [("PATH_NEVER_FILLED", "/States/B/InputPath")]


def test_a_key_that_is_there_on_some_ways_only() -> None:
    """A catcher fills a path that the good way doesn't, and both ways meet."""
    definition = machine(
        A={"Type": "Pass", "Result": {"n": 1}, "Next": "B"},
        B=task(
            ResultPath=None, Catch=[{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "C"}], Next="C"
        ),
        C={"Type": "Pass", "Parameters": {"why.$": "$.error.Cause"}, "End": True},
    )
    assert found(definition) == [("VALUE_MAY_BE_ABSENT", "/States/C/Parameters/why.$")]


def test_a_key_that_the_machine_itself_asks_for() -> None:
    """The article's pitfall: one state asks whether there is a date, the next one takes it for granted."""
    asks = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.scheduledDate", "IsPresent": True, "Next": "Log"}],
        "Default": "Solve",
    }
    solve = task(Parameters={"QueueUrl": "q", "MessageBody": {"Value.$": "$.scheduledDate"}})
    log = {"Type": "Pass", "Next": "Solve"}
    assert found(machine("Asks", Asks=asks, Log=log, Solve=solve)) == [
        ("VALUE_MAY_BE_ABSENT", "/States/Solve/Parameters/MessageBody/Value.$")
    ]
    sets = {"Type": "Pass", "Result": "", "ResultPath": "$.scheduledDate", "Next": "Solve"}
    mended = machine("Asks", Asks={**asks, "Default": "Sets"}, Log=log, Sets=sets, Solve=solve)
    assert found(mended) == []


def test_a_rule_that_asks_first_may_look_then() -> None:
    present, equal = {"Variable": "$.a", "IsPresent": True}, {"Variable": "$.a", "StringEquals": "x"}
    missing = {"Variable": "$.a", "IsPresent": False}

    def chosen(rule: dict[str, Any]) -> list[tuple[str, str]]:
        return found(
            machine(
                A={"Type": "Pass", "Result": {}, "Next": "B"},
                B={"Type": "Choice", "Choices": [{**rule, "Next": "C"}], "Default": "C"},
                C=END,
            )
        )

    assert chosen({"And": [present, equal]}) == []
    assert chosen({"Or": [missing, equal]}) == []
    assert chosen({"And": [equal, present]}) == [("PATH_NEVER_FILLED", "/States/B/Choices[0]/And[0]/Variable")]
    assert chosen({"And": [{"Not": present}, equal]}) == [("PATH_NEVER_FILLED", "/States/B/Choices[0]/And[1]/Variable")]


def test_paths_below_a_map_are_judged_by_its_selector() -> None:
    inner = machine("One", One={"Type": "Pass", "Parameters": {"x.$": "$.job.id", "y.$": "$.day"}, "End": True})
    definition = machine(
        A={
            "Type": "Map",
            "ItemsPath": "$.jobs",
            "ItemSelector": {"job.$": "$$.Map.Item.Value"},
            "ItemProcessor": inner,
            "End": True,
        }
    )
    assert found(definition) == [("PATH_NEVER_FILLED", "/States/A/ItemProcessor/States/One/Parameters/y.$")]


def test_branches_get_the_parameters_of_their_parallel() -> None:
    branch = machine("One", One={"Type": "Pass", "InputPath": "$.b", "End": True})
    definition = machine(A={"Type": "Parallel", "Parameters": {"a": 1}, "Branches": [branch], "End": True})
    assert found(definition) == [("PATH_NEVER_FILLED", "/States/A/Branches[0]/States/One/InputPath")]


def test_a_loop_comes_to_rest() -> None:
    definition = machine(
        A={"Type": "Pass", "Parameters": {"last.$": "$", "more": {"last.$": "$"}}, "Next": "B"},
        B={"Type": "Choice", "Choices": [{"Variable": "$.last.last", "IsPresent": True, "Next": "A"}], "Default": "C"},
        C=END,
    )
    assert found(definition) == []


def test_what_comes_from_outside_is_not_complained_of() -> None:
    definition = machine(
        A=task(
            Parameters={"QueueUrl.$": "$.a", "MessageBody.$": "$.b[0].c", "MessageGroupId.$": "$$.Execution.Name"},
            Next="B",
        ),
        B={"Type": "Pass", "OutputPath": "$.MessageId", "End": True},
    )
    assert found(definition) == []


def test_a_variable_that_nobody_assigns() -> None:
    definition = machine(
        A={"Type": "Pass", "Assign": {"total": 1}, "Next": "B"},
        B={"Type": "Pass", "Parameters": {"a.$": "$total", "b.$": "$totale"}, "End": True},
    )
    (one,) = lint(json.dumps(definition))
    assert (one.code, one.location) == ("VARIABLE_NEVER_ASSIGNED", "/States/B")
    assert "$totale" in one.message
    assert "$total" in one.fix


def test_a_variable_of_another_scope() -> None:
    reader = {"Type": "Pass", "Parameters": {"a.$": "$outer"}, "Next": "Q"}
    block = {"StartAt": "P", "States": {"P": reader, "Q": {"Type": "Pass", "Assign": {"inner": 1}, "End": True}}}
    child = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **block}
    last = {"Type": "Pass", "Parameters": {"a.$": "$inner"}, "End": True}
    for inner, expected in ((block, []), (child, [("VARIABLE_NEVER_ASSIGNED", "/States/M/ItemProcessor/States/P")])):
        definition = machine(
            A={"Type": "Pass", "Assign": {"outer": 1}, "Next": "M"},
            M={"Type": "Map", "ItemProcessor": inner, "Next": "Z"},
            Z=last,
        )
        assert found(definition) == [("VARIABLE_NEVER_ASSIGNED", "/States/Z"), *expected]
        assert "another scope" in lint(json.dumps(definition))[0].message


def test_work_that_may_never_answer() -> None:
    token, activity = f"{SEND}.waitForTaskToken", "arn:aws:states:us-east-1:000000000000:activity:work"
    for resource in (SYNC, token, activity):
        assert found(machine(A=task(resource))) == [("NO_TIMEOUT", "/States/A")]
        for field, value in (("TimeoutSeconds", 60), ("HeartbeatSecondsPath", "$.beat")):
            assert found(machine(A=task(resource, **{field: value}))) == []
    assert found(machine(A=task(SEND))) == []


def test_handlers_that_never_have_their_turn() -> None:
    def retried(*names: list[str]) -> list[tuple[str, str]]:
        return found(machine(A=task(Retry=[{"ErrorEquals": one} for one in names])))

    assert retried(["A"], ["B"], ["States.ALL"]) == []
    assert retried(["States.TaskFailed"], ["States.Timeout"], ["States.ALL"]) == []
    assert retried(["States.TaskFailed"], ["A"]) == [("RETRIER_NEVER_MATCHES", "/States/A/Retry[1]/ErrorEquals")]
    assert retried(["A", "B"], ["B"], ["C", "B"]) == [("RETRIER_NEVER_MATCHES", "/States/A/Retry[1]/ErrorEquals")]
    assert retried(["States.Timeout"], ["States.HeartbeatTimeout"]) == [
        ("RETRIER_NEVER_MATCHES", "/States/A/Retry[1]/ErrorEquals")
    ]
    assert retried(["States.HeartbeatTimeout"], ["States.Timeout"]) == []
    assert retried(["States.Runtime"]) == [("RETRIER_NEVER_MATCHES", "/States/A/Retry[0]/ErrorEquals")]
    catch = [{"ErrorEquals": [name], "Next": "B"} for name in ("X", "X")]
    assert found(machine(A=task(Catch=catch), B=END)) == [("CATCHER_NEVER_MATCHES", "/States/A/Catch[1]/ErrorEquals")]


def test_a_pipe_s_machine_tells_somebody_when_it_fails() -> None:
    work = "arn:aws:states:::ecs:runTask"
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Tell"}]
    bare = machine(A=task(work))
    assert found(bare) == []
    assert found(bare, pipe_target=True) == [("NO_FAILURE_NOTICE", "/States/A")]
    # What tells, and what runs only after an error, needs no notice of its own.
    told = machine(A=task(work, Catch=catch), Tell=task(work, Next="Failed"), Failed={"Type": "Fail"})
    assert found(told, pipe_target=True) == []
    assert found(machine(A=task(SEND)), pipe_target=True) == []
    inside = {"Type": "Parallel", "Branches": [bare], "End": True}
    assert found(machine("P", P=inside), pipe_target=True) == [("NO_FAILURE_NOTICE", "/States/P/Branches[0]/States/A")]
    assert found(machine("P", P={**inside, "Catch": catch}, Tell=END), pipe_target=True) == []


def test_the_examples_are_clean() -> None:
    files = sorted(EXAMPLES.glob("*/*.asl.json"))
    assert files
    for file in files:
        assert lint(file.read_text(), pipe_target=True) == [], file


def test_deployed_definitions_have_no_paths_that_are_wrong(conformance: Path) -> None:
    """They run, so a path of theirs that we complain of is a mistake of ours."""
    folder = conformance / "definitions"
    seen = 0
    for line in (folder / "index.jsonl").read_text().splitlines():
        file = json.loads(line)["file"]
        wrong = [
            one for one in lint((folder / file).read_text()) if one.code.startswith(("PATH_", "VALUE_", "VARIABLE_"))
        ]
        assert not wrong, (file, wrong)
        seen += 1
    assert seen >= 190


def test_shapes() -> None:
    known = shape_of({"a": {"b": 1}, "c": []})
    assert look(known, ["a", "b"]) == ("always", NOTHING_INSIDE)
    assert look(known, ["a", "x"])[0] == "never"
    assert look(known, ["c", 0, "x"])[0] == "unknown"
    assert look(put(known, ["d", "e"], ANYTHING), ["d", "f"])[0] == "never"
    assert look(join(known, NOTHING_INSIDE), ["a", "b"])[0] == "maybe"
    assert look(join(known, ANYTHING), ["a", "b"])[0] == "unknown"
    assert look(without(ANYTHING, ["a", "b"]), ["a", "b"])[0] == "never"
    assert look(join(without(ANYTHING, ["a"]), ANYTHING), ["a"])[0] == "maybe"
    assert join(known, known) is known
    assert Shape() == ANYTHING
