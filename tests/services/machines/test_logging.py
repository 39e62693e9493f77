"""Logging configurations and what executions log, against what AWS recorded; and how long it is kept."""

import json
from typing import Any

import pytest

from tasuki.engine.history import HistoryEvent
from tasuki.services.machines.errors import InvalidLoggingConfiguration
from tasuki.services.machines.logging_levels import logging_of
from tasuki.services.machines.logging_records import log_history, logged
from tasuki.services.machines.model import LOGGING_OFF
from tasuki.services.machines.retention import LOG_DAYS, ROWS
from tests.engine.recorded import FOLDER, Matcher, expand, parsed
from tests.services.machines.stubs import PASS, WAIT, Play
from tests.services.machines.test_recorded import ACCOUNT, at, known, played

GROUP = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/vendedlogs/states/recorded"
FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "C"}}}
KNOWN = {"asl/sfn_api_logs/test_deleted_log_group": "there are no log groups yet, so any is taken to exist"}


def configuration(level: str = "ALL", *, data: bool = False, group: str = GROUP) -> dict[str, Any]:
    return {
        "level": level,
        "includeExecutionData": data,
        "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": f"{group}:*"}}],
    }


def records(play: Play, group: str = GROUP) -> list[dict[str, Any]]:
    """Read a log group to its end, one chunk at a time."""
    found: list[dict[str, Any]] = []
    place = -1
    while True:
        after = max(place, 0)
        page, place = play.house.unit(lambda tx, after=after: logged(tx, group, after, 1))  # type: ignore[misc]
        found += page
        if place == after:
            return found


def cases(area: str) -> list[dict[str, Any]]:
    path = FOLDER / "cases.jsonl"
    if not path.exists():
        return []
    with path.open() as lines:
        return [case for case in map(json.loads, lines) if case["area"] == area]


# -- recorded ------------------------------------------------------------------------------------------------------


def observed() -> list[Any]:
    """Answer the recorded executions whose log is recorded (or is empty: the level asks for nothing of it)."""
    found = [case for case in cases("logs:logs") if case["kind"] == "execution" and "_log_group" not in case["id"]]
    return [pytest.param(case, id=case["id"].removeprefix("asl/")) for case in found]


@pytest.mark.parametrize("case", observed())
def test_what_is_logged_is_what_was_recorded(case: dict[str, Any], recorded_play: Play) -> None:
    play = recorded_play
    *_, level, data = case["id"].removesuffix("]").split("_")
    execution = play.create(expand(case["definition"]), loggingConfiguration=configuration(level, data=data == "True"))
    play.call("StartExecution", stateMachineArn=execution, input=json.dumps(case["input"]))
    expected = case["expected"].get("observed_via", {}).get("logged_execution_events", [])
    found = records(play)
    for record in expected:
        record["details"] = {k: "role" if k == "roleArn" else v for k, v in record["details"].items()}
    for record in found:
        assert list(record) == [
            "id",
            "type",
            "details",
            "previous_event_id",
            "event_timestamp",
            "execution_arn",
            "redrive_count",
        ]
        record["details"] = {k: "role" if k == "roleArn" else v for k, v in record["details"].items()}
    assert not list(Matcher().differences(expected, parsed(found)))


def test_runs_of_a_machine_share_a_log_group(play: Play) -> None:
    arn = play.create(PASS, loggingConfiguration=configuration())
    executions = [play.start(arn) for _ in range(3)]
    found = records(play)
    assert [record["execution_arn"] for record in found] == [one for one in executions for _ in range(4)]
    assert [record["id"] for record in found] == ["1", "2", "3", "4"] * 3


@pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in cases("sfn_api_logs")])
def test_a_configuration_is_taken_and_described_as_recorded(
    case: dict[str, Any], recorded_play: Play, request: pytest.FixtureRequest
) -> None:
    if case["id"] in KNOWN:
        request.applymarker(pytest.mark.xfail(strict=True, reason=KNOWN[case["id"]]))
    play = recorded_play
    matcher = Matcher()
    answers: dict[int, Any] = {}
    for step in case["steps"]:
        if step["service"] == "logs":
            arn = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:log_group_name:*"
            answers[step["n"]] = {"logGroups": [{"arn": arn, "logGroupClass": "STANDARD"}]}
            continue
        answers[step["n"]] = played(play.house, step, answers)
        for expected in step.get("expect", []):
            answer = at(answers[step["n"]], expected["response_path"])
            differences = list(matcher.differences(known(expected["value"]), parsed(known(answer))))
            assert not differences, (step["op"], expected["key"], differences)
        for told in case.get("unbound_expectations", []):
            if told["after_step"] == step["n"]:
                error = answers[step["n"]]["Error"]
                assert f"({error['Code']})" in told["value"]["exception_value"]
                assert told["value"]["exception_value"].endswith(error["Message"])


# -- what else ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"level": "ERROR"}, "Must specify exactly one Log Destination."),
        (
            {**configuration(), "destinations": configuration()["destinations"] * 2},
            "Must specify exactly one Log Destination.",
        ),
        ({**configuration(), "destinations": [{}]}, "Log Destination not found."),
        (configuration(group="arn:aws:sqs:us-east-1:1:log-group"), "Log Destination not found."),
    ],
)
def test_a_configuration_that_contradicts_itself(play: Play, given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidLoggingConfiguration) as no:
        play.create(PASS, loggingConfiguration=given)
    assert no.value.message == f"Invalid Logging Configuration: {reason}"
    arn = play.create(PASS)
    with pytest.raises(InvalidLoggingConfiguration):
        play.call("UpdateStateMachine", stateMachineArn=arn, loggingConfiguration=given)


def test_executions_log_as_their_revision_says(play: Play) -> None:
    arn = play.create(WAIT)
    first = play.start(arn)
    play.call("UpdateStateMachine", stateMachineArn=arn, loggingConfiguration=configuration())
    second = play.start(arn)
    play.call("UpdateStateMachine", stateMachineArn=arn, loggingConfiguration=LOGGING_OFF)
    play.house.advance(seconds=60)
    assert {record["execution_arn"] for record in records(play)} == {second}
    assert len(play.events(first)) == len(records(play))
    ids = [record["id"] for record in records(play)]
    assert ids == [str(event["id"]) for event in play.events(second)]


def test_nothing_is_written_when_nothing_is_asked_for(play: Play) -> None:
    play.run(PASS)
    play.start(play.create(PASS, "e", loggingConfiguration=configuration("ERROR")))
    assert play.rows("logged") == 0


@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        ("ALL", "ExecutionStarted FailStateEntered TaskStateEntered LambdaFunctionScheduled ExecutionSucceeded"),
        (
            "ERROR",
            "TaskFailed TaskTimedOut TaskSubmitFailed WaitStateAborted MapIterationFailed FailStateEntered ExecutionAborted",
        ),
        ("FATAL", "ExecutionFailed ExecutionAborted ExecutionTimedOut"),
    ],
)
def test_levels(level: str, kinds: str) -> None:
    logging = logging_of(json.dumps(configuration(level)))
    assert logging is not None
    assert all(logging.asks_for(kind) for kind in kinds.split())
    assert logging.asks_for("ExecutionSucceeded") is (level == "ALL")
    assert logging.asks_for("TaskFailed") is (level != "FATAL")


def test_an_express_machine_logs_what_it_did(play: Play) -> None:
    arn = play.create(FAIL, type="EXPRESS", loggingConfiguration=configuration("FATAL"))
    play.start(arn)
    answer = play.call("StartSyncExecution", stateMachineArn=arn)
    found = records(play)
    assert [record["type"] for record in found] == ["ExecutionFailed"] * 2
    assert found[1]["execution_arn"] == answer["executionArn"]
    assert found[1]["details"] == {"error": "E", "cause": "C"}


def test_an_express_machine_logs_each_unit_once(play: Play) -> None:
    play.start(play.create(WAIT, type="EXPRESS", loggingConfiguration=configuration(data=True)))
    assert [record["id"] for record in records(play)] == ["1", "2"]
    play.house.advance(seconds=60)
    found = records(play)
    assert [record["id"] for record in found] == ["1", "2", "3", "4"]
    assert found[-1]["details"]["output"] == "{}"
    assert int(found[-1]["event_timestamp"]) - int(found[0]["event_timestamp"]) == 60_000


def test_what_was_logged_long_ago_is_forgotten_in_slices(play: Play) -> None:
    play.create(PASS)
    event = HistoryEvent(1, 0, play.house.now, "ExecutionStarted", None)
    text = json.dumps(configuration())

    def many(tx: Any) -> None:
        for _ in range(2 * ROWS + 5):
            log_history(tx, text, "arn", [event])

    play.house.unit(many)
    play.house.advance(days=LOG_DAYS - 1)
    assert play.rows("logged") == 2 * ROWS + 5
    play.house.advance(days=2)
    assert play.rows("logged") == 1  # the newest stays, so that no place is given twice
