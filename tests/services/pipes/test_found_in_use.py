"""Pipes that people deploy, through the door of a whole house.

The definitions are in `../shared/conformance/definitions/pipes.jsonl` (see tests/engine/recorded.py for where it is looked for).
They were deployed on AWS by their authors: those whose parts this house offers are taken as they are, the others are refused at
the part that is missing.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tasuki.testing import Kit
from tests.engine.recorded import FOLDER

FOUND = FOLDER.parent / "definitions" / "pipes.jsonl"
PLACE = "us-east-1:000000000000:"
ROLE = "arn:aws:iam::000000000000:role/any"
BUS = {"Target": f"arn:aws:events:{PLACE}event-bus/default"}
STANDARD = {"Target": f"arn:aws:states:{PLACE}stateMachine:STANDARD"}
EXPRESS = f"arn:aws:states:{PLACE}stateMachine:EXPRESS"
LOGS = {"Target": f"arn:aws:logs:{PLACE}log-group:g"}
DESTINATION = f"arn:aws:events:{PLACE}api-destination/d/1"
LAMBDA = f"arn:aws:lambda:{PLACE}function:f"
OFFERED: dict[str, dict[str, str]] = {
    "pipe-000": STANDARD,
    "pipe-001": STANDARD,
    "pipe-020": BUS,
    "pipe-021": {"Enrichment": EXPRESS, **BUS},
    "pipe-022": STANDARD,
    "pipe-027": {"Target": EXPRESS},
    "pipe-028": {"Target": f"arn:aws:sqs:{PLACE}target"},
    "pipe-029": STANDARD,
}
MISSING: dict[str, tuple[str, dict[str, str]]] = {
    "pipe-010": ("Source", {"Source": f"arn:aws:sqs:{PLACE}q.fifo", "Target": f"arn:aws:sqs:{PLACE}t.fifo"}),
    "pipe-015": ("Target", {"Enrichment": DESTINATION, **LOGS}),
    "pipe-016": ("Target", {"Enrichment": DESTINATION, **LOGS}),
    "pipe-017": ("Enrichment", {"Enrichment": LAMBDA, "Target": DESTINATION}),
    "pipe-018": ("Target", {"Target": f"arn:aws:batch:{PLACE}job-queue/q"}),
    "pipe-019": ("Target", LOGS),
    "pipe-023": ("Target", {"Target": f"arn:aws:timestream:{PLACE}database/d/table/t"}),
}
STREAM = {"Source": f"arn:aws:kinesis:{PLACE}stream/s", "Target": BUS["Target"]}


def found() -> dict[str, dict[str, Any]]:
    if not FOUND.exists():
        return {}
    rows = [json.loads(filled(line)) for line in FOUND.read_text("utf-8").splitlines()]
    return {row["id"]: row["properties"] for row in rows}


def filled(text: str) -> str:
    """Put something for what a template would fill in; the parts of a pipe are put in later."""
    text = text.replace("${MQSecretARN}", f"arn:aws:secretsmanager:{PLACE}secret:s")
    text = text.replace("${PipeDLQueue.Arn}", f"arn:aws:sqs:{PLACE}dead")
    return re.sub(r"\$\{\w+\}", "word", text)


PIPES = found()
needs_them = pytest.mark.skipif(not PIPES, reason="the definitions found in use are not here")


@pytest.fixture(scope="module")
def house() -> Iterator[Kit]:
    with Kit() as kit:
        for name in ("source", "target"):
            kit.client("sqs").create_queue(QueueName=name)
        definition = json.dumps({"StartAt": "S", "States": {"S": {"Type": "Succeed"}}})
        for kind in ("STANDARD", "EXPRESS"):
            kit.client("stepfunctions").create_state_machine(name=kind, definition=definition, roleArn=ROLE, type=kind)
        yield kit


def create(house: Kit, name: str, parts: dict[str, str]) -> None:
    said = {key: value for key, value in PIPES[name].items() if key not in {"Name", "Tags"}}
    given: dict[str, Any] = {**said, "Name": name, "RoleArn": ROLE, "Source": f"arn:aws:sqs:{PLACE}source", **parts}
    if "LogConfiguration" in given:
        group = {"LogGroupArn": f"arn:aws:logs:{PLACE}log-group:g"}
        given["LogConfiguration"] = {**given["LogConfiguration"], "CloudwatchLogsLogDestination": group}
    house.client("pipes").create_pipe(**given)


@needs_them
@pytest.mark.parametrize("name", OFFERED)
def test_what_this_house_offers_is_taken(house: Kit, name: str) -> None:
    create(house, name, OFFERED[name])
    described = house.client("pipes").describe_pipe(Name=name)
    assert described["CurrentState"] == "RUNNING"
    given = PIPES[name]
    assert described["TargetParameters"] == given.get("TargetParameters", {})
    assert described["SourceParameters"].get("FilterCriteria") == given.get("SourceParameters", {}).get(
        "FilterCriteria"
    )


@needs_them
@pytest.mark.parametrize("name", sorted(PIPES.keys() - OFFERED.keys()))
def test_what_it_does_not_is_refused_where_it_stands(house: Kit, name: str) -> None:  # PF-39
    field, parts = MISSING.get(name, ("Source", STREAM))
    said = PIPES[name].get("SourceParameters") or {}
    assert name in MISSING or "SqsQueueParameters" not in said
    if "Enrichment" in PIPES[name]:
        parts = {"Enrichment": LAMBDA, **parts}
    with pytest.raises(ClientError) as refused:
        create(house, name, parts)
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    answer: Any = refused.value.response
    (entry,) = answer["fieldList"]
    assert entry["name"].split(".")[0].removesuffix("Parameters") == field
    with pytest.raises(ClientError, match="does not exist"):
        house.client("pipes").describe_pipe(Name=name)
