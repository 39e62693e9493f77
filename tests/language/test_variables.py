"""Scopes of variables, and what `$states` has where."""

from typing import Any

import pytest

from tasuki.language.errors import InvalidDefinition
from tasuki.language.parse import parse
from tasuki.values.documents import dumps

ALL = ["States.ALL"]


def diagnoses(definition: Any) -> list[tuple[str, str, str]]:
    try:
        parse(dumps(definition))
    except InvalidDefinition as refused:
        return [(one.code, one.location, one.message) for one in refused.diagnoses]
    return []


def chain(**states: Any) -> dict[str, Any]:
    """Answer a block whose states follow each other."""
    names = list(states)
    made = {}
    for place, (name, state) in enumerate(states.items()):
        ends = {"End": True} if place + 1 == len(names) else {"Next": names[place + 1]}
        made[name] = {"Type": "Pass", **state, **ends}
    return {"StartAt": names[0], "States": made}


def map_(block: Any, **fields: Any) -> dict[str, Any]:
    return {"Type": "Map", "ItemProcessor": block, **fields}


INNER = chain(I={"Assign": {"x.$": "$"}})
REFUSED = "The variable 'x' is assigned in an outer scope, and can only be read here"
DISTRIBUTED = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **INNER}
BEYOND = chain(N=map_(INNER))


@pytest.mark.parametrize(
    ("definition", "location"),
    [
        (chain(A={"Assign": {"x": 1}}, M=map_(INNER)), "/States/M/ItemProcessor/States/I/Assign"),
        (
            chain(A={"Assign": {"x": 1}}, P={"Type": "Parallel", "Branches": [chain(B={}), INNER]}),
            "/States/P/Branches[1]/States/I/Assign",
        ),
        (
            chain(A={"Assign": {"x": 1}}, B={}, M=map_(BEYOND)),
            "/States/M/ItemProcessor/States/N/ItemProcessor/States/I/Assign",
        ),
    ],
)
def test_an_inner_scope_assigns_no_outer_name(definition: Any, location: str) -> None:
    assert diagnoses(definition) == [("SCHEMA_VALIDATION_FAILED", location, REFUSED)]


def test_a_loop_comes_back_to_what_it_assigned() -> None:
    choice = {"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": True, "Next": "M"}], "Default": "E"}
    states = {"M": map_(INNER, Assign={"x": 1}, Next="C"), "C": choice, "E": {"Type": "Succeed"}}
    assert [one[2] for one in diagnoses({"StartAt": "M", "States": states})] == [REFUSED]


@pytest.mark.parametrize(
    "definition",
    [
        chain(M=map_(INNER), A={"Assign": {"x": 1}}),
        chain(P={"Type": "Parallel", "Branches": [INNER, chain(J={"Assign": {"x": 2}})]}),
        chain(A={"Assign": {"x": 1}}, M=map_(DISTRIBUTED)),
        # Recorded: AWS takes it.
        chain(M=map_(INNER, Catch=[{"ErrorEquals": ALL, "Assign": {"x": 1}, "Next": "A"}]), A={}),
    ],
    ids=["later", "siblings", "distributed", "caught"],
)
def test_names_that_never_meet_may_be_the_same(definition: Any) -> None:
    assert diagnoses(definition) == []


def jsonata(**fields: Any) -> list[tuple[str, str, str]]:
    task = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Arguments": {"FunctionName": "f"}, **fields}
    return diagnoses({"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": {**task, "End": True}}})


@pytest.mark.parametrize(
    ("expression", "absent"),
    [
        ("$states.errorOutput.Error", ["errorOutput"]),
        ("[$states.item, $states . `errorOutput`, $states.input.item]", ["item", "errorOutput"]),
        ("$states.input.errorOutput & $states.context.x & $string($states) & $x.errorOutput", []),
        ("$states.result & '$states.item' /* $states.item */", []),
        ("$states[0].input", []),
    ],
)
def test_states_has_what_it_has(expression: str, absent: list[str]) -> None:
    code = "UNSUPPORTED_JSONATA_EXPRESSION"
    found = [(code, "/States/A/Output/v[0]", f"Field '$states.{name}' does not exist.") for name in absent]
    assert jsonata(Output={"v": [f"{{% {expression} %}}"]}) == found


def test_a_catcher_sees_the_error() -> None:
    catch = {
        "ErrorEquals": ALL,
        "Next": "A",
        "Output": "{% $states.errorOutput %}",
        "Assign": {"e": "{% $states.errorOutput.Error %}"},
    }
    assert jsonata(Catch=[catch]) == []
    assert jsonata(TimeoutSeconds="{% $states.errorOutput %}")[0][1] == "/States/A/TimeoutSeconds"
