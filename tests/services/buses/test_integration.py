"""Machines put events and are told of by events: `events:putEvents` as recorded, PF-22 and PF-27."""

import json
from typing import Any

import pytest

from tests.engine.recorded import Matcher, executions, expand
from tests.services.buses.stage import ACCOUNT, REGION, ROLE, Stage

PUT = "arn:aws:states:::events:putEvents"
CASES = [case for case in executions() if "test_put_events" in case["id"] and "events_task_service" in case["id"]]


def task(resource: str, parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "StartAt": "T",
        "States": {"T": {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True, **more}},
    }


def run(stage: Stage, definition: dict[str, Any], given: Any = None) -> dict[str, Any]:
    machine = stage.machine(definition, f"m{stage.house.chance.hex(6)}")
    arn = stage.house.call("stepfunctions", "StartExecution", stateMachineArn=machine, input=json.dumps(given or {}))[
        "executionArn"
    ]
    stage.house.drain()
    return stage.house.call("stepfunctions", "DescribeExecution", executionArn=arn)


def _fill(value: Any) -> Any:
    text = json.dumps(expand(value)).replace("<detail-type>", "kind").replace("<sqs_queue_url>", "u")
    return json.loads(text)


@pytest.mark.skipif(not CASES, reason="the recorded AWS answers are not beside this checkout")
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"].rpartition("/")[2]) for case in CASES])
def test_put_events_is_answered_as_recorded(stage: Stage, case: dict[str, Any]) -> None:
    stage.rule({"detail-type": ["kind"]}, {"Arn": stage.queue()})
    described = run(stage, _fill(case["definition"]), _fill(case["input"]))
    expected = case["expected"]
    assert described["status"] == expected["status"]
    matcher = Matcher()
    if expected["status"] == "SUCCEEDED":
        differences = list(matcher.differences(_fill(expected["output"]), json.loads(described["output"])))
    else:
        assert described["error"] == expected["error"]
        differences = list(matcher.differences(_fill(expected["cause"]), json.loads(described["cause"])))
    assert not differences
    events = stage.received()
    good = sum("EventId" in entry for entry in json.loads(described.get("output") or described["cause"])["Entries"])
    assert len(events) == good
    execution = described["executionArn"]
    for event in events:
        given = ["u"] if event["detail"] == {"Message": "HelloWorld2"} else []
        assert event["resources"] == [*given, described["stateMachineArn"], execution]
        assert event["detail"]["Message"].startswith("HelloWorld")


def test_all_four_recorded_cases_are_played() -> None:
    if not CASES:
        pytest.skip("the recorded AWS answers are not beside this checkout")
    assert len(CASES) == 4


def test_a_token_travels_in_an_event(stage: Stage) -> None:
    stage.rule({"source": ["shop"]}, {"Arn": stage.queue(), "InputPath": "$.detail.token"})
    entry = {"Source": "shop", "DetailType": "d", "Detail": {"token.$": "$$.Task.Token"}}
    machine = stage.machine(task(f"{PUT}.waitForTaskToken", {"Entries": [entry]}))
    arn = stage.house.call("stepfunctions", "StartExecution", stateMachineArn=machine)["executionArn"]
    stage.house.drain()
    (token,) = stage.received()
    stage.house.call("stepfunctions", "SendTaskSuccess", taskToken=token, output='{"ok":true}')
    stage.house.drain()
    described = stage.house.call("stepfunctions", "DescribeExecution", executionArn=arn)
    assert (described["status"], described["output"]) == ("SUCCEEDED", '{"ok":true}')


def test_parameters_that_are_none_end_the_state(stage: Stage) -> None:
    described = run(stage, task(PUT, {"Entry": []}))
    assert described["error"] == "States.Runtime"
    assert 'The field "Entry" is not supported by Step Functions' in described["cause"]


def test_a_call_that_is_refused_whole_can_be_caught(stage: Stage) -> None:
    caught = [{"ErrorEquals": ["EventBridge.ValidationException"], "ResultPath": "$", "Next": "E"}]
    definition = task(PUT, {"Entries": [{"Source": "s", "DetailType": "d", "Detail": {}}] * 11}, Catch=caught)
    definition["States"]["E"] = {"Type": "Pass", "End": True}
    cause = json.loads(run(stage, definition)["output"])["Cause"]
    assert "Member must have length less than or equal to 10" in cause


def test_standard_executions_tell_of_their_start_and_end(stage: Stage) -> None:
    """PF-22: nothing came on other tools; AWS's STANDARD executions tell RUNNING and how they ended."""
    stage.rule(
        {"source": ["aws.states"], "detail": {"status": ["RUNNING", "SUCCEEDED", "FAILED"]}}, {"Arn": stage.queue()}
    )
    good = run(stage, {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}, {"n": 1})
    bad = run(stage, {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E"}}})
    told = [(event["resources"], event["detail"]["status"]) for event in stage.received()]
    assert told == [
        ([good["executionArn"]], "RUNNING"),
        ([good["executionArn"]], "SUCCEEDED"),
        ([bad["executionArn"]], "RUNNING"),
        ([bad["executionArn"]], "FAILED"),
    ]


def test_what_is_told_of_an_execution_goes_under_its_trace(stage: Stage) -> None:
    """One correlation id tells of the execution, and of what became of its events: also of one that a target refused."""
    stage.rule({"source": ["aws.states"], "detail": {"status": ["FAILED"]}}, {"Arn": stage.queue()})
    bad = run(stage, {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E"}}})
    (event,) = stage.received()
    found = stage.house.call("tasuki", "ListHandovers", Trace=bad["traceHeader"])["Handovers"]
    assert [one["MessageId"] for one in found] == [event["id"]]


def test_nothing_is_kept_of_what_nobody_asks_for(stage: Stage) -> None:
    stage.rule({"source": ["shop"]}, {"Arn": stage.queue()})
    run(stage, {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
    assert stage.rows("bus_events") == 0
    assert stage.received() == []


def test_a_schedule_s_input_may_be_an_object(stage: Stage) -> None:
    """PF-27: `Target.Input` given as an object becomes its JSON text, once."""
    queue = stage.queue()
    parameters = {
        "Name": "s",
        "ScheduleExpression": "rate(1 hour)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": queue, "RoleArn": ROLE, "Input": {"job": {"n": 1}}},
    }
    described = run(stage, task("arn:aws:states:::aws-sdk:scheduler:createSchedule", parameters))
    assert described["status"] == "SUCCEEDED", described
    arn = f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/default/s"
    assert json.loads(described["output"]) == {"ScheduleArn": arn}
    kept = stage.house.call("scheduler", "GetSchedule", Name="s")
    assert json.loads(kept["Target"]["Input"]) == {"job": {"n": 1}}


def test_rules_are_made_by_machines(stage: Stage) -> None:
    put = task("arn:aws:states:::aws-sdk:eventbridge:putRule", {"Name": "made", "EventPattern": {"source": ["shop"]}})
    assert json.loads(run(stage, put)["output"]) == {"RuleArn": f"arn:aws:events:{REGION}:{ACCOUNT}:rule/made"}
    described = run(stage, task("arn:aws:states:::aws-sdk:eventbridge:describeRule", {"Name": "none"}))
    assert described["error"] == "EventBridge.ResourceNotFoundException"


def test_a_rule_that_a_machine_completes_hears_of_that_machine_s_end(stage: Stage) -> None:
    """All in one unit, which asked before whether anybody wants its events."""
    stage.rule({"source": ["aws.states"], "detail": {"status": ["SUCCEEDED"]}})
    parameters = {"Rule": "r", "Targets": [{"Id": "t", "Arn": stage.queue()}]}
    described = run(stage, task("arn:aws:states:::aws-sdk:eventbridge:putTargets", parameters))
    assert [event["detail"]["executionArn"] for event in stage.received()] == [described["executionArn"]]
