"""Answers recorded from AWS, and definitions that run there. They lie beside a checkout: `conformance` skips without them."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from tasuki.language.definition import Choice, Pass
from tasuki.language.errors import Diagnosis, InvalidDefinition
from tasuki.language.parse import parse
from tasuki.values.documents import dumps, loads
from tests.language.scopes import scope

TOKENS = {
    "<partition>": "aws",
    "<region>": "us-east-1",
    '"activity_arn"': '"arn:aws:states:us-east-1:111111111111:activity:a"',
}
RANDOM = {"RandomNumberGenerated", "generated-uuid"}
"""What stands in recorded outputs for what AWS drew."""


def rows(path: Path) -> Iterator[Any]:
    with path.open() as lines:
        for line in lines:
            yield loads(line)


def text_of(case: Any) -> str:
    text = str(case["definition_text"]) if case.get("definition_text") is not None else dumps(case["definition"])
    for token, meaning in TOKENS.items():
        text = text.replace(token, meaning)
    return re.sub(r"<([\w-]+)>", r"\1", text)


def diagnoses(text: str) -> list[Diagnosis]:
    try:
        parse(text)
    except InvalidDefinition as refused:
        return refused.diagnoses
    return []


Property: TypeAlias = Callable[[str, object], None]
"""pytest's `record_property`: how many cases a test went through (tests/recorded_summary.py)."""


def test_the_recorded_refusals(conformance: Path, record_property: Property) -> None:
    """Code, text and location, as AWS said them. What depends on EXPRESS or on other machines is for other tests."""
    met = 0
    for case in rows(conformance / "asl" / "cases.jsonl"):
        expected = case.get("expected", {})
        if case["kind"] == "create_error":
            said = re.fullmatch("Invalid State Machine Definition: '(.*)'", expected.get("error_message") or "")
            if said is None or "Express" in said[1]:
                continue
            assert ", ".join(map(str, diagnoses(text_of(case)))) == said[1], case["id"]
        elif case["kind"] == "validate_definition" and "Express" not in dumps(expected):
            found = [
                {name: getattr(one, name) for name in ("code", "location", "message", "severity") if getattr(one, name)}
                for one in diagnoses(text_of(case))
            ]
            assert found == expected["response"]["diagnostics"], case["id"]
        else:
            continue
        met += 1
    assert met == 11
    record_property("cases", met)


def test_labels_that_are_refused(conformance: Path, record_property: Property) -> None:
    cases = [case for case in rows(conformance / "asl" / "cases.jsonl") if "label_invalid" in case["id"]]
    assert len(cases) > 80
    accepted = [
        case["id"] for case in cases if [one.code for one in diagnoses(text_of(case))] != ["INVALID_LABEL_NAME"]
    ]
    assert accepted == []
    record_property("cases", len(cases))


def test_the_recorded_choices(conformance: Path) -> None:
    """Every operator: the state that AWS went to."""
    met = 0
    for case in rows(conformance / "asl" / "cases.jsonl"):
        if not case["area"].startswith("choice_operators"):
            continue
        machine = parse(text_of(case))
        state = machine.root.states[machine.root.start_at]
        assert isinstance(state, Choice)
        here = scope(case["input"])
        chosen = next((rule.next for rule in state.choices if rule.test(here)), state.default)
        assert chosen is not None
        target = machine.root.states[chosen]
        assert isinstance(target, Pass)
        assert target.result is not None
        assert target.result.value == case["expected"]["output"], case["id"]
        met += 1
    assert met > 300


def test_the_recorded_intrinsics(conformance: Path) -> None:
    met = 0
    for case in rows(conformance / "asl" / "cases.jsonl"):
        area, language = case["area"], case.get("query_language")
        if not area.startswith("intrinsic_functions") or language != "JSONPath" or not case.get("exact"):
            continue
        wanted = case["expected"]["output"].get("FunctionResult")
        state = next(iter(parse(text_of(case)).root.states.values()))
        assert isinstance(state, Pass)
        if (isinstance(wanted, str) and wanted in RANDOM) or state.flow.output_path is not None:
            continue
        assert state.flow.parameters is not None
        made = state.flow.parameters(scope(case["input"], context={"Execution": {"Input": case["input"]}}))
        assert made["FunctionResult"] == wanted, case["id"]
        assert type(made["FunctionResult"]) is type(wanted), case["id"]
        met += 1
    assert met > 70


def test_recorded_machines_are_accepted(conformance: Path) -> None:
    accepted = 0
    for case in rows(conformance / "asl" / "cases.jsonl"):
        if case["kind"] == "execution":
            assert diagnoses(text_of(case)) == [], case["id"]
            accepted += 1
    assert accepted > 850


def test_definitions_in_use_are_accepted(conformance: Path, record_property: Property) -> None:
    """Definitions that were deployed on AWS, in both query languages."""
    root = conformance / "definitions"
    accepted = 0
    for row in rows(root / "index.jsonl"):
        found = diagnoses(dumps(_filled(loads((root / row["file"]).read_bytes()), "")))
        assert found == [], f"{row['file']}: {found}"
        accepted += 1
    assert accepted == 199
    record_property("cases", accepted)


RESOURCE = "AWS does not take a Resource that is no ARN of a function, an activity or an integration"
LITERAL = "a text that is not wholly between {% and %} is a literal (developer guide)"
OTHERWISE: dict[str, str] = {
    "asl-validator/invalid-jsonata-surround-syntax-no-close": LITERAL,
    "asl-validator/invalid-jsonata-surround-syntax-no-open": LITERAL,
    "asl-validator/invalid-jsonata-surround-syntax-no-spaces": "blanks inside {% and %} are not asked for",
    "asl-validator/invalid-math-add": "what a function is given is looked at when it is called",
    "asl-validator/valid-assign": "a variable's name is an identifier (developer guide): no hyphen",
    "asl-validator/valid-cfn-definition-substitutions": RESOURCE,
    "asl-validator/valid-map-noconfig": "ItemReader and ResultWriter are for distributed mode, which is not the default",
    "asl-validator/valid-map-with-item-batcher-jsonata": (
        "JSONPath below a JSONata machine: refused (recorded: INVALID_DOWNGRADE_QUERY_LANGUAGE)"
    ),
    "asl-validator/valid-path-array-context": "Jayway's paths have no script expressions",
    "asl-validator/valid-task-credentials": "Credentials without RoleArn: refused (recorded: test_invalid_credentials_field)",
    "asl-validator/valid-task-parameters": RESOURCE,
    "asl-validator/valid-task-timeout-jsonata": RESOURCE,
}
"""Where we side with AWS against a linter. All of statelint's `valid` ones that we refuse have the Resource `foo:bar`."""


def test_linters_agree_where_aws_does_not_say_otherwise(conformance: Path) -> None:
    agreed = 0
    for case in rows(conformance / "definitions" / "validators" / "cases.jsonl"):
        found = diagnoses(case.get("definition_text") or dumps(case["definition"]))
        same = (not found) == (case["expected"] == "valid")
        if not same and case["id"].startswith("statelint/"):
            assert any("The resource provided foo:bar" in one.message for one in found), case["id"]
        else:
            assert same == (case["id"] not in OTHERWISE), (case["id"], found)
        agreed += same
    assert agreed == 106


def _filled(value: Any, key: str) -> Any:
    """Put something for each `${Name}`, as the data's README asks."""
    if isinstance(value, dict):
        return {name: _filled(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, key) for inner in value]
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"\$\{[^}]*\}", value):
        if key == "Resource":
            return "arn:aws:lambda:us-east-1:123456789012:function:f"
        if key.endswith("Seconds") or key in {"MaxConcurrency", "MaxAttempts", "ToleratedFailurePercentage"}:
            return 1 if key.startswith("Heartbeat") else 5
    return re.sub(r"\$\{[^}]*\}", "word", value.replace("${AWS::Partition}", "aws"))
