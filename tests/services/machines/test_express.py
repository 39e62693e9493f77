"""Express machines: started, waited for, bounded, refused, and gone on with after a restart."""

import json
from typing import Any

import pytest

from tasuki.services.machines.errors import (
    InvalidArn,
    InvalidDefinition,
    InvalidExecutionInput,
    InvalidName,
    StateMachineDoesNotExist,
    StateMachineTypeNotSupported,
)
from tasuki.services.machines.express import KEPT_MS
from tasuki.values.instant import to_iso
from tasuki.values.operations import NotYet, Principal, Request
from tests.services.machines.stubs import PASS, ROLE, WAIT, Play, Refused, task
from tests.services.machines.test_bounds import counter
from tests.services.machines.test_map_runs import machine

SEND = task("sqs:sendMessage", {"QueueUrl": "q", "MessageBody.$": "$"})


class Caller:
    """A client that waits for a StartSyncExecution, try by try, as the door does for it."""

    def __init__(self, play: Play, arn: str, given: Any = None, **more: Any) -> None:
        self.play = play
        self.request = Request(
            service="stepfunctions",
            operation="StartSyncExecution",
            input={"stateMachineArn": arn, "input": json.dumps({} if given is None else given), **more},
            request_id=play.house.chance.uuid(),
            principal=Principal("test"),
            account="000000000000",
            region="us-east-1",
            base_url="",
        )

    def look(self) -> Any:
        """Try once; answer the output, or `NotYet`."""
        operation = self.play.house.rooms["machines"].operations["StartSyncExecution"]
        assert operation.look is None
        return self.play.house.unit(lambda tx: operation.run(tx, self.request))


def express(play: Play, definition: dict[str, Any], name: str = "m", **more: Any) -> str:
    return play.create(definition, name, type="EXPRESS", **more)


def left(play: Play) -> dict[str, int]:
    """Answer what is left of executions that are over."""
    counts = {**play.left_over(), "express": play.rows("express"), "executions": play.rows("executions")}
    return {table: count for table, count in counts.items() if count}


def test_what_ends_at_once_is_answered_at_once_and_leaves_nothing(play: Play) -> None:
    arn = express(play, PASS)
    answer = play.call("StartSyncExecution", stateMachineArn=arn, input='{"a": 1}', name="n")
    uuid = answer["executionArn"].rpartition(":")[2]
    assert answer == {
        "executionArn": f"arn:aws:states:us-east-1:000000000000:express:m:n:{uuid}",
        "stateMachineArn": arn,
        "name": "n",
        "startDate": play.house.now,
        "stopDate": play.house.now,
        "status": "SUCCEEDED",
        "input": '{"a": 1}',
        "inputDetails": {"included": True},
        "output": '{"done":true}',
        "outputDetails": {"included": True},
        "billingDetails": {"billedDurationInMilliseconds": 100, "billedMemoryUsedInMB": 64},
    }
    assert left(play) == {}


def test_a_name_may_come_twice_and_each_is_an_execution_of_its_own(play: Play) -> None:
    arn = express(play, WAIT)
    first, second = play.start(arn, name="n"), play.start(arn, name="n")
    assert first != second
    assert first.rsplit(":", 1)[0] == second.rsplit(":", 1)[0]
    assert play.rows("express") == 2
    play.house.advance(seconds=60)
    assert left(play) == {}


def test_a_caller_waits_for_what_waits(play: Play) -> None:
    caller = Caller(play, express(play, WAIT), {"n": 1}, traceHeader="Root=1-a")
    first = caller.look()
    assert isinstance(first, NotYet)
    assert isinstance(caller.look(), NotYet)
    play.house.advance(seconds=59)
    assert isinstance(caller.look(), NotYet)
    play.house.advance(seconds=1)
    answer = caller.look()
    assert (answer["status"], answer["output"]) == ("SUCCEEDED", '{"n": 1}')
    assert answer["stopDate"] - answer["startDate"] == 60_000
    assert answer["billingDetails"]["billedDurationInMilliseconds"] == 60_000
    assert answer["traceHeader"] == "Root=1-a"
    assert first.topic == f"express:{answer['executionArn'].rpartition(':')[2]}"
    assert first.until > answer["startDate"] + 300_000
    assert left(play) == {}


def test_the_bell_rings_for_the_caller(play: Play) -> None:
    caller = Caller(play, express(play, WAIT))
    first = caller.look()
    rung = play.house.bell.subscribe((first.topic,))
    play.house.advance(seconds=59)
    assert not rung.is_set()
    play.house.advance(seconds=1)
    assert rung.is_set()


def test_five_minutes_is_the_end(play: Play) -> None:
    hour = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 3600, "End": True}}}
    caller = Caller(play, express(play, hour))
    caller.look()
    play.house.advance(minutes=5)
    answer = caller.look()
    assert (answer["status"], answer["stopDate"] - answer["startDate"]) == ("TIMED_OUT", 300_000)
    assert "output" not in answer
    assert left(play) == {}


def test_a_shorter_timeout_of_the_machine_counts(play: Play) -> None:
    caller = Caller(play, express(play, {**WAIT, "TimeoutSeconds": 7}))
    caller.look()
    play.house.advance(seconds=7)
    assert caller.look()["status"] == "TIMED_OUT"


def test_tasks_are_done_and_retried_with_their_delays(play: Play) -> None:
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "MaxAttempts": 2}]
    definition = task("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": "b"}, Retry=retry, ResultPath="$.sent")
    caller = Caller(play, express(play, definition), {"n": 1})
    play.sqs.refusal = Refused("no queue")
    assert isinstance(caller.look(), NotYet)
    play.house.advance(seconds=2)
    play.sqs.refusal = None
    play.house.advance(seconds=4)
    answer = caller.look()
    assert json.loads(answer["output"])["sent"]["MessageId"] == "m-1"
    assert len(play.sqs.calls) == 3
    keys = {caller.idempotency for _, caller in play.sqs.calls}
    assert len(keys) == 3
    assert all(key.startswith(answer["executionArn"]) for key in keys)


def test_a_failure_is_an_answer(play: Play) -> None:
    fail = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "C"}}}
    answer = play.call("StartSyncExecution", stateMachineArn=express(play, fail), input="{}")
    assert (answer["status"], answer["error"], answer["cause"]) == ("FAILED", "E", "C")
    assert "output" not in answer
    assert answer["outputDetails"] == {"included": True}


def test_data_are_left_out_when_asked(play: Play) -> None:
    answer = play.call("StartSyncExecution", stateMachineArn=express(play, PASS), includedData="METADATA_ONLY")
    assert "input" not in answer
    assert "output" not in answer
    assert answer["inputDetails"] == answer["outputDetails"] == {"included": False}


def test_branches_and_items_wait_side_by_side(play: Play) -> None:
    one = {"StartAt": "W", "States": {"W": {"Type": "Wait", "SecondsPath": "$", "End": True}}}
    definition = {
        "StartAt": "M",
        "States": {
            "M": {"Type": "Map", "ItemProcessor": one, "MaxConcurrency": 2, "Next": "B"},
            "B": {
                "Type": "Parallel",
                "Branches": [PASS, {"StartAt": "V", "States": {"V": {"Type": "Wait", "Seconds": 5, "End": True}}}],
                "End": True,
            },
        },
    }
    caller = Caller(play, express(play, definition), [3, 1, 2])
    caller.look()
    play.house.advance(seconds=8)
    answer = caller.look()
    assert json.loads(answer["output"]) == [{"done": True}, [3, 1, 2]]
    assert answer["stopDate"] - answer["startDate"] == 8_000


def test_a_unit_is_bounded_and_others_get_their_turn(play: Play) -> None:
    arn = express(play, counter(5_000))
    caller = Caller(play, arn, {"n": 0})
    assert isinstance(caller.look(), NotYet)
    quick = play.create(PASS, "quick")
    assert play.output(play.start(quick)) == {"done": True}
    play.house.drain()
    assert json.loads(caller.look()["output"]) == {"n": 5_000}  # some 30,000 events: Express has no limit of them
    assert play.rows("express") == 0


def test_an_execution_that_nobody_waits_for_begins_at_once(play: Play) -> None:
    execution = play.start(express(play, SEND), {"n": 1})
    assert ":express:m:" in execution
    assert [parameters["MessageBody"] for parameters, _ in play.sqs.calls] == [{"n": 1}]
    assert left(play) == {}


def test_the_context_has_nothing_of_redrive(play: Play) -> None:
    show = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Parameters": {"c.$": "$$.Execution"}, "End": True}}}
    answer = play.call("StartSyncExecution", stateMachineArn=express(play, show), name="n")
    assert json.loads(answer["output"])["c"] == {
        "Id": answer["executionArn"],
        "Input": {},
        "StartTime": to_iso(answer["startDate"]),
        "Name": "n",
        "RoleArn": ROLE,
    }


def test_an_answer_that_nobody_takes_is_forgotten(play: Play) -> None:
    caller = Caller(play, express(play, WAIT))
    caller.look()
    play.house.advance(seconds=60)
    assert play.rows("express") == 1
    play.house.advance(ms=KEPT_MS)
    assert left(play) == {}


def test_a_deleted_machine_ends_what_waits(play: Play) -> None:
    arn = express(play, WAIT)
    caller = Caller(play, arn)
    caller.look()
    play.call("DeleteStateMachine", stateMachineArn=arn)
    play.house.advance(seconds=60)
    assert caller.look()["status"] == "ABORTED"
    with pytest.raises(StateMachineDoesNotExist):
        Caller(play, arn).look()


def test_a_child_is_started_and_not_waited_for(play: Play) -> None:
    arn = express(play, SEND, "child")
    parent = task("states:startExecution", {"StateMachineArn": arn, "Input": {"n": 2}})
    output = play.output(play.run(parent))
    assert ":express:child:" in output["ExecutionArn"]
    play.house.drain()
    assert [parameters["MessageBody"] for parameters, _ in play.sqs.calls] == [{"n": 2}]
    assert play.rows("express") == 0


@pytest.mark.parametrize("pattern", ["sync", "sync:2"])
def test_a_child_cannot_be_waited_for_by_sync(play: Play, pattern: str) -> None:
    arn = express(play, PASS, "child")
    execution = play.run(task(f"states:startExecution.{pattern}", {"StateMachineArn": arn}))
    play.house.drain()
    described = play.describe(execution)
    assert (described["status"], described["error"]) == (
        "FAILED",
        "StepFunctions.StateMachineTypeNotSupportedException",
    )
    assert play.rows("express") == 0


def test_an_express_machine_starts_children(play: Play) -> None:
    child = play.create(PASS, "child")
    arn = express(play, task("states:startExecution", {"StateMachineArn": child, "Name": "c"}), "parent")
    assert play.call("StartSyncExecution", stateMachineArn=arn)["status"] == "SUCCEEDED"
    play.house.drain()
    assert play.output("arn:aws:states:us-east-1:000000000000:execution:child:c") == {"done": True}


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("arn:aws:states:::sqs:sendMessage.waitForTaskToken", "'.waitForTaskToken' service integration "),
        ("arn:aws:states:::ecs:runTask.sync", "'.sync' service integration "),
        ("arn:aws:states:::states:startExecution.sync:2", "'.sync:2' service integration "),
        ("arn:aws:states:us-east-1:000000000000:activity:a", "Activity ARN"),
    ],
)
def test_what_an_express_machine_may_not_do(play: Play, resource: str, message: str) -> None:
    token = {"QueueUrl": "q", "MessageBody.$": "$$.Task.Token"} if "Token" in resource else {}
    state = {"Type": "Task", "Resource": resource, "Parameters": token, "End": True}
    definition = {"StartAt": "T", "States": {"T": state}}
    with pytest.raises(InvalidDefinition) as no:
        express(play, definition)
    said = f"SCHEMA_VALIDATION_FAILED: Express state machine does not support {message} at /States/T/Resource"
    assert no.value.message == f"Invalid State Machine Definition: '{said}'"
    arn = express(play, PASS)
    with pytest.raises(InvalidDefinition):
        play.call("UpdateStateMachine", stateMachineArn=arn, definition=json.dumps(definition))


def test_an_express_machine_has_no_map_runs(play: Play) -> None:
    with pytest.raises(InvalidDefinition, match="does not support Map in DISTRIBUTED mode at /States/M"):
        express(play, machine(PASS))


def test_what_an_express_execution_does_not_have(play: Play) -> None:
    arn = express(play, WAIT)
    execution = play.start(arn)
    for operation in ("DescribeExecution", "StopExecution", "GetExecutionHistory", "DescribeStateMachineForExecution"):
        with pytest.raises(InvalidArn, match="Resource type not valid in this context: express"):
            play.call(operation, executionArn=execution)
    with pytest.raises(StateMachineTypeNotSupported, match="not supported by this type of state machine"):
        play.call("ListExecutions", stateMachineArn=arn)


def test_only_an_express_machine_is_waited_for(play: Play) -> None:
    arn = play.create(PASS)
    with pytest.raises(StateMachineTypeNotSupported, match="not supported by this type of state machine"):
        play.call("StartSyncExecution", stateMachineArn=arn)
    assert play.rows("executions") == 0
    arn = express(play, PASS, "e")
    with pytest.raises(InvalidName):
        play.call("StartSyncExecution", stateMachineArn=arn, name="a b")
    with pytest.raises(InvalidExecutionInput):
        play.call("StartSyncExecution", stateMachineArn=arn, input="{")
    with pytest.raises(StateMachineDoesNotExist):
        play.call("StartSyncExecution", stateMachineArn=arn + "x")


def test_the_type_is_described_and_never_changes(play: Play) -> None:
    arn = express(play, PASS)
    assert play.call("DescribeStateMachine", stateMachineArn=arn)["type"] == "EXPRESS"
    assert play.call("ListStateMachines")["stateMachines"][0]["type"] == "EXPRESS"


def waiting_for(arn: str, **more: Any) -> dict[str, Any]:
    """A machine of one Task that waits for an Express execution."""
    return task("aws-sdk:sfn:startSyncExecution", {"StateMachineArn": arn, "Input": {"n": 1}}, **more)


def test_a_task_waits_for_an_express_execution(play: Play) -> None:
    child = express(play, WAIT, "child")
    execution = play.run(waiting_for(child))
    play.house.advance(seconds=59)
    assert play.describe(execution)["status"] == "RUNNING"
    play.house.advance(seconds=1)
    output = play.output(execution)
    assert {name: output[name] for name in ("Status", "Output", "Input", "StateMachineArn", "BillingDetails")} == {
        "Status": "SUCCEEDED",
        "Output": '{"n":1}',
        "Input": '{"n":1}',
        "StateMachineArn": child,
        "BillingDetails": {"BilledDurationInMilliseconds": 60_000, "BilledMemoryUsedInMb": 64},
    }
    kinds = ["TaskScheduled", "TaskStarted", "TaskSucceeded"]
    assert [kind for kind in play.types(execution) if kind in kinds] == kinds
    assert play.rows("express") == 0
    assert play.left_over() == {}


def test_to_a_task_a_failed_execution_is_an_answer(play: Play) -> None:
    fail = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "C"}}}
    execution = play.run(waiting_for(express(play, fail, "child")))
    play.house.drain()
    output = play.output(execution)
    assert (output["Status"], output["Error"], output["Cause"]) == ("FAILED", "E", "C")


def test_a_task_cannot_wait_for_a_standard_execution(play: Play) -> None:
    execution = play.run(waiting_for(play.create(PASS, "child")))
    described = play.describe(execution)
    assert (described["status"], described["error"]) == ("FAILED", "Sfn.StateMachineTypeNotSupportedException")


def test_an_express_machine_waits_for_another(play: Play) -> None:
    parent = express(play, waiting_for(express(play, WAIT, "child"), ResultSelector={"s.$": "$.Status"}), "parent")
    caller = Caller(play, parent)
    assert isinstance(caller.look(), NotYet)
    play.house.advance(seconds=60)
    assert json.loads(caller.look()["output"]) == {"s": "SUCCEEDED"}
    assert left(play) == {}


def test_a_task_that_gave_up_does_not_hear_of_the_end(play: Play) -> None:
    execution = play.run(waiting_for(express(play, WAIT, "child"), TimeoutSeconds=5))
    play.house.advance(seconds=60)
    assert play.describe(execution)["error"] == "States.Timeout"
    assert play.rows("express") == 0


def test_a_machine_that_waits_for_itself_goes_round_in_bounded_units(play: Play) -> None:
    arn = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
    round_and_round = {**waiting_for(arn), "TimeoutSeconds": 2}
    round_and_round["States"]["W"] = {"Type": "Wait", "Seconds": 1, "Next": "T"}
    round_and_round["StartAt"] = "W"
    caller = Caller(play, express(play, round_and_round))
    assert isinstance(caller.look(), NotYet)
    play.house.advance(seconds=2)
    assert caller.look()["status"] == "TIMED_OUT"
