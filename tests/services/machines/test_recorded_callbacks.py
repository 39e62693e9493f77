"""Whole histories recorded on AWS of machines that call queues and other machines, played with both real rooms."""

import json
from functools import cache
from typing import Any

import pytest

from tasuki.services import queues
from tests.engine.recorded import FOLDER, Matcher, expand, parsed
from tests.services.machines.stubs import Play
from tests.services.machines.test_recorded import ACCOUNT

PLAYED = (
    "asl/callback:",
    "asl/services:sqs_task_service",
    "asl/error_handling:task_service_sqs",
    "asl/timeouts:heartbeats",
)
NEEDS = frozenset({"sqs_queue", "state_machine"})
KNOWN: dict[str, str] = {}
HTTP = frozenset({"SdkHttpMetadata", "SdkResponseMetadata"})


@cache
def cases() -> list[dict[str, Any]]:
    path = FOLDER / "cases.jsonl"
    if not path.exists():
        return []
    with path.open() as lines:
        found = [json.loads(line) for line in lines]
    return [
        case
        for case in found
        if case["kind"] == "execution"
        and case["id"].startswith(PLAYED)
        and case["query_language"] == "JSONPath"
        and {need["kind"] for need in case["needs"]} <= NEEDS
        and {"task:sqs", "task:states"} & set(case["features"])
        and not case["id"].split("/")[-1].startswith("test_multiple_")  # their drivers' rhythm is not recorded
    ]


def test_the_recordings_are_there() -> None:
    if not FOLDER.exists():
        pytest.skip("the recorded AWS answers (../shared/conformance) are not beside this checkout")
    assert len(cases()) >= 15


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_a_history_is_as_recorded(case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if case["id"] in KNOWN:
        request.applymarker(pytest.mark.xfail(strict=True, reason=KNOWN[case["id"]]))
    play = Play(ACCOUNT, rooms=(queues.room,))
    try:
        url = play.house.call("sqs", "CreateQueue", QueueName="recorded")["QueueUrl"]
        given = json.loads(json.dumps(expand(case["input"])).replace("<ArnPart_0idx>", "child"))
        for word in ("<sqs_queue_url>", "sqs_queue_url"):
            given = {name: url if value == word else value for name, value in given.items()}
        if given.get("QueueUrl") == "<no_such_sqs_queue_url>":
            given["QueueUrl"] = (
                "no-such-queue-"
                + case["expected"]["history"][4]["taskFailedEventDetails"]["cause"]
                .split("no-such-queue-")[1]
                .split(":")[0]
            )
        for need in case["needs"]:
            if need.get("role", "").startswith("child"):
                play.create(expand(need["definition"]), "child")
        execution = play.start(play.create(expand(case["definition"]), "recorded"), given)
        play.house.drain()
        if case["expected"]["status"] == "SUCCEEDED":
            answer_callbacks(play, url)
        play.house.advance(days=2)
        differences = list(
            Matcher().differences(
                without_http(case["expected"]["history"]), without_http(parsed(play.events(execution)))
            )
        )
        assert not differences
    finally:
        play.house.close()


def answer_callbacks(play: Play, url: str) -> None:
    """Do what the recorder's helper machine did: answer each message that brings a token with its text."""
    while True:
        received = play.house.call("sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=1).get("Messages", [])
        if not received:
            return
        body = received[0]["Body"]
        play.house.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=received[0]["ReceiptHandle"])
        if body.startswith("{"):
            message = json.loads(body)
            play.house.advance(seconds=1)
            play.call("SendTaskHeartbeat", taskToken=message["TaskToken"])
            play.call("SendTaskSuccess", taskToken=message["TaskToken"], output=json.dumps(message["Message"]))
            play.house.drain()


def without_http(value: Any) -> Any:
    """Leave out what AWS's HTTP layer adds: it has headers of its own."""
    if isinstance(value, dict):
        return {name: without_http(inner) for name, inner in value.items() if name not in HTTP}
    if isinstance(value, list):
        return [without_http(inner) for inner in value]
    return value
