"""The API against call traces recorded on AWS: every step of each trace, answers and refusals compared whole.

What the door answers (validation against the model) is left to the door's tests; traces that call other services are not
played; each case that differs has its reason in `KNOWN` and must differ.
"""

import json
import re
from functools import cache
from typing import Any

import pytest

from tasuki.testing import House
from tasuki.values.errors import DomainError
from tests.engine.recorded import FOLDER, Matcher, expand, parsed
from tests.services.machines.stubs import Play

MODEL_CHECKS = ("ValidationException",)
UNSAID = {"traceHeader", "encryptionConfiguration", "redriveCount"}
"""What AWS says in newer recordings than some of these, or we say on purpose (the correlation id)."""
ACCOUNT = "111111111111"
KNOWN: dict[str, str] = {
    "asl/sfn_api/test_list_sms_pagination": "recorded in an account with some fifty other machines: more pages than ours",
    "asl/sfn_api_variable_references/test_base_variable_references_in_assign_templates[BASE_REFERENCE_IN_WAIT]": (
        "the recorder replaced the definition's own TimestampPath"
    ),
}
WELL_FORMED = {
    "invalid_execution_arn": "arn:aws:states:us-east-1:111111111111:execution:nobody:nothing",
    "sm_nonexistent_arn": "arn:aws:states:us-east-1:111111111111:stateMachine:nobody",
}
"""Words that stand for an ARN in two cases whose answer is DoesNotExist, not InvalidArn."""


ELSEWHERE = "calls services that the machines room does not have"


@cache
def traces() -> list[dict[str, Any]]:
    """Answer the traces, but those of logging configurations (test_logging.py)."""
    path = FOLDER / "cases.jsonl"
    if not path.exists():
        return []
    with path.open() as lines:
        found = [case for case in map(json.loads, lines) if case["kind"] == "api_trace"]
    return [case for case in found if case["area"] != "sfn_api_logs"]


def params() -> list[Any]:
    """Answer the traces; those that the room cannot play are skipped."""
    served = Play()
    operations = served.house.rooms["machines"].operations
    served.house.close()
    skip = pytest.mark.skip(reason=ELSEWHERE)
    return [
        pytest.param(
            case, id=case["id"], marks=[] if {step["op"] for step in case["steps"]} <= set(operations) else skip
        )
        for case in traces()
    ]


def test_the_recordings_are_there() -> None:
    if not FOLDER.exists():
        pytest.skip("the recorded AWS answers (../shared/conformance) are not beside this checkout")
    assert len(traces()) == 153
    assert sum(not param.marks for param in params()) >= 128


@pytest.mark.parametrize("case", params())
def test_a_trace_is_answered_as_recorded(case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if case["id"] in KNOWN:
        request.applymarker(pytest.mark.xfail(strict=True, reason=KNOWN[case["id"]]))
    play = Play(ACCOUNT)
    matcher = Matcher()
    answers: dict[int, Any] = {}
    try:
        for step in case["steps"]:
            answers[step["n"]] = played(play.house, step, answers)
            for expected in step.get("expect", []):
                if expected["value"].get("Error", {}).get("Code") in MODEL_CHECKS:
                    continue
                answer = at(answers[step["n"]], expected["response_path"])
                wanted = known(with_activity(expected["value"], answers))
                differences = list(matcher.differences(wanted, parsed(known(answer))))
                assert not differences, (step["op"], expected["key"], differences)
            for told in case.get("unbound_expectations", []):
                if told["after_step"] == step["n"] and "An error occurred" in json.dumps(told["value"]):
                    assert_refused(told["value"], answers[step["n"]], matcher)
    finally:
        play.house.close()


def played(house: House, step: dict[str, Any], answers: dict[int, Any]) -> Any:
    """Make one call of a trace; answer its output, or its error in botocore's shape."""
    given = expand(step["params"])
    for reference in step.get("refs", []):
        value = at(answers[reference["from"]], reference["path"])
        *path, last = reference["param"]
        holder = at(given, path)
        # "activity_arn" is what the recordings hold where a definition names the activity made before.
        holder[last] = holder[last].replace("activity_arn", value) if reference.get("part_of") else value
    given = {name: WELL_FORMED.get(value, value) if isinstance(value, str) else value for name, value in given.items()}
    if given.get("name", "").startswith("<"):
        given["name"] = given["name"].strip("<>")
    if None in given.values() or None in [v for tag in given.get("tags") or [] for v in tag.values()]:
        return None  # the client itself refuses it
    house.drain()
    try:
        return house.call("stepfunctions", step["op"], given)
    except DomainError as no:
        return {"Error": {"Code": no.code, "Message": no.message}, "message": no.message}


def at(value: Any, path: list[Any]) -> Any:
    """Answer what stands at a path."""
    for step in path:
        value = value[step]
    return value


def known(value: Any) -> Any:
    """Leave out what one side alone says."""
    if isinstance(value, dict):
        return {
            name: known(inner) for name, inner in value.items() if name not in UNSAID and name != "ResponseMetadata"
        }
    if isinstance(value, list):
        return [known(inner) for inner in value]
    return value


def with_activity(told: Any, answers: dict[int, Any]) -> Any:
    """Put the activity's ARN where the recorder wrote a word for it."""
    arns = [answer["activityArn"] for answer in answers.values() if answer and "activityArn" in answer]
    return json.loads(json.dumps(told).replace("activity_arn", arns[0])) if arns else told


def assert_refused(told: Any, answer: Any, matcher: Matcher) -> None:
    """Compare a refusal that the recorder wrote down as text."""
    text = told if isinstance(told, str) else told["exception_value"]
    found = re.fullmatch(r"An error occurred \((\w+)\) when calling the \w+ operation: (.*)", text, re.DOTALL)
    assert found, text
    message = found[2].replace("<partition>", "aws").replace("<region>", "us-east-1")
    for word, arn in WELL_FORMED.items():
        if found[1].endswith("DoesNotExist"):
            message = message.replace(word, arn)
    if "failed to satisfy constraint" in message:
        return  # the door says that
    assert answer["Error"]["Code"] == found[1]
    assert not list(matcher.differences(message, answer["Error"]["Message"]))
