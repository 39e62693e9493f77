"""How tools of this kind fail their users, from public bug reports: each has a number, and the right behaviour as a test.

Here are those that no other test shows; `tests/requirements.toml` says where each of the others is.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasuki.services.switchboard import Ending
from tasuki.services.tasks import attending
from tasuki.services.tasks.setting import Setting
from tasuki.store.store import Tx
from tasuki.testing.scripted import Script
from tasuki.values.attempts import HOST_LOST, OUT_OF_MEMORY, ContainerReport, Key, Report
from tests.stories.town import SEND, Town, chain, job

QUICK = Script.lasting(minutes=10)


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    scripts = {
        "quick": QUICK,
        "slow-to-stop": Script(forever=True, drain_ms=25_000),
        "broken": Script.lasting(exit_code=1, minutes=1),
    }
    with Town(tmp_path, scripts) as made:
        yield made


def output(town: Town, definition: dict[str, Any], given: Any) -> Any:
    """Run a machine that takes no time; answer its output."""
    described = town.execution(town.start(town.machine(definition), given))
    assert described["status"] == "SUCCEEDED", described
    return json.loads(described["output"])


# -- paths, choices, input and output --------------------------------------------------------------------------


def test_a_filter_in_a_result_selector(town: Town) -> None:
    """PF-09: Step Functions' own filter syntax, where definitions use it."""
    rows = [{"Status": "201"}, {"Status": "500"}]
    selector = {"FailedTasks.$": "$[0][?(@.Status != '201')]"}
    block = {"StartAt": "All", "States": {"All": {"Type": "Pass", "End": True}}}
    definition = chain(Each={"Type": "Parallel", "Branches": [block], "ResultSelector": selector})
    assert output(town, definition, rows) == {"FailedTasks": [{"Status": "500"}]}


SHAPED = {"InputPath": "$.in", "OutputPath": "$.out"}
INNER = {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}


@pytest.mark.parametrize(
    ("state", "given", "expected"),
    [
        ({"Type": "Wait", "Seconds": 0, **SHAPED}, {"in": {"out": 1, "x": 2}}, 1),
        ({"Type": "Succeed", **SHAPED}, {"in": {"out": 1, "x": 2}}, 1),
        (
            {"Type": "Parallel", "Branches": [INNER], "InputPath": "$.in", "OutputPath": "$[0].out"},
            {"in": {"out": 1}},
            1,
        ),
        (
            {"Type": "Map", "ItemProcessor": INNER, "InputPath": "$.in", "OutputPath": "$[1]"},
            {"in": [{"out": 0}, {"out": 1}]},
            {"out": 1},
        ),
    ],
    ids=["Wait", "Succeed", "Parallel", "Map"],
)
def test_input_and_output_paths_hold_in_every_state(
    town: Town, state: dict[str, Any], given: Any, expected: Any
) -> None:
    """PF-10: they are not ignored outside of Task and Pass."""
    assert output(town, chain(S=state), given) == expected


def test_a_choice_looks_through_its_input_path(town: Town) -> None:
    """PF-10: `$.tutor` is looked for in `$.attributes`, and OutputPath shapes what goes on."""
    choice = {
        "Type": "Choice",
        "InputPath": "$.attributes",
        "OutputPath": "$.tutor",
        "Choices": [{"Variable": "$.tutor", "IsPresent": True, "Next": "Found"}],
        "Default": "Missing",
    }
    found, missing = {"Type": "Pass", "End": True}, {"Type": "Fail", "Error": "Missing"}
    definition = chain(C=choice, Found=found, Missing=missing)
    assert output(town, definition, {"attributes": {"tutor": "Ada"}}) == "Ada"


def test_a_choice_by_the_timestamp_of_a_path(town: Town) -> None:
    """PF-11: a comparison, not a silent false."""
    rule = {"Variable": "$.end", "TimestampGreaterThanPath": "$.begin", "Next": "Later"}
    choice = {"Type": "Choice", "Choices": [rule], "Default": "Not"}
    definition = chain(C=choice, Later={"Type": "Succeed"}, Not={"Type": "Fail"})
    assert output(town, definition, {"begin": "2026-10-09T16:00:00Z", "end": "2026-10-10T00:00:01+01:00"})


def test_a_fault_of_an_intrinsic_function_can_be_caught(town: Town) -> None:
    """PF-11: an index out of range is States.IntrinsicFailure, and Catch sees it."""
    catch = [{"ErrorEquals": ["States.IntrinsicFailure"], "Next": "Caught"}]
    state = {
        "Type": "Task",
        "Resource": SEND,
        "Parameters": {"QueueUrl": "q", "MessageBody.$": "States.ArrayGetItem($.list, 7)"},
        "Catch": catch,
        "End": True,
    }
    caught = output(town, chain(S=state, Caught={"Type": "Succeed"}), {"list": [1]})
    assert caught["Error"] == "States.IntrinsicFailure"


def test_every_kind_of_state_uses_the_same_details_in_history(town: Town) -> None:
    """PF-12: stateEnteredEventDetails and stateExitedEventDetails for all, or SDKs read nothing."""
    choice = {"Type": "Choice", "Choices": [{"Variable": "$", "IsPresent": True, "Next": "Wait"}]}
    definition = chain(
        Pass={"Type": "Pass", "Next": "Choice"},
        Choice=choice,
        Wait={"Type": "Wait", "Seconds": 0},
        Parallel={"Type": "Parallel", "Branches": [INNER], "ResultPath": None},
        Map={"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": chain(J={"Type": "Pass"}), "ResultPath": None},
        Task=job("quick"),
        Succeed={"Type": "Succeed"},
    )
    definition["States"]["Task"]["Next"] = "Succeed"
    execution = town.start(town.machine(definition), {"items": [1]})
    town.house.advance(minutes=10)
    seen = {"Entered": set(), "Exited": set()}  # type: dict[str, set[str]]
    for event in town.events(execution):
        for kind, names in seen.items():
            if event["type"].endswith(f"State{kind}"):
                names.add(event["type"].removesuffix(f"State{kind}"))
                assert event[f"state{kind}EventDetails"]["name"]
    all_kinds = {"Pass", "Choice", "Wait", "Parallel", "Map", "Task", "Succeed"}
    assert seen == {"Entered": all_kinds, "Exited": all_kinds}


# -- executions --------------------------------------------------------------------------------------------------


def test_a_retrier_has_awss_defaults_and_then_it_is_caught(town: Town) -> None:
    """PF-16: three retries after 1, 2 and 4 s; RetryCount counts; then Catch."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
    run = job("broken", {"TRY.$": "States.Format('{}', $$.State.RetryCount)"}, Retry=[{"ErrorEquals": ["States.ALL"]}])
    execution = town.start(town.machine(chain(Run={**run, "Catch": catch, "End": True}, Caught={"Type": "Succeed"})))
    began = town.house.now
    town.house.advance(hours=1)
    assert town.execution(execution)["status"] == "SUCCEEDED"
    starts = [(task["startedAt"] - began) / 1000 for task in town.tasks("STOPPED")]
    assert starts == [0, 61, 123, 187]
    tries = [launch.containers[0].environment["TRY"] for launch in town.runner.started]
    assert tries == ["0", "1", "2", "3"]


def test_the_ids_of_a_parallels_events_leave_no_gap_and_point_back(town: Town) -> None:
    """PF-21: also when branches take turns."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
    blocks = [
        chain(First=job("quick")),
        chain(Second=job("broken", Catch=catch, Next="Caught"), Caught={"Type": "Pass"}),
        chain(Third=job("quick")),
    ]
    execution = town.start(town.machine(chain(All={"Type": "Parallel", "Branches": blocks})))
    town.house.advance(hours=1)
    events = town.events(execution)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert all(0 <= event["previousEventId"] < event["id"] for event in events)
    assert events[-1]["type"] == "ExecutionSucceeded"


def test_a_stop_wins_over_what_the_task_says_later(town: Town) -> None:
    """PF-21: ABORTED stays, though the task ends by itself in the same instant, or after."""
    execution = town.start(town.machine(chain(Run=job("quick"))))
    town.clock.set(town.clock.now() + 10 * 60_000)  # it has ended, and nobody has looked yet
    town.states("StopExecution", executionArn=execution)
    town.house.advance(hours=1)
    described = town.execution(execution)
    assert described["status"] == "ABORTED"
    assert not {"error", "cause", "output"} & described.keys()
    assert town.events(execution)[-1]["executionAbortedEventDetails"] == {}


def test_a_token_goes_over_a_real_queue_and_comes_back(town: Town) -> None:
    """PF-24: the message is sent, with the token in it; SendTaskSuccess ends the state."""
    url = town.queue("work")
    state = {
        "Type": "Task",
        "Resource": SEND + ".waitForTaskToken",
        "Parameters": {"QueueUrl": url, "MessageBody": {"token.$": "$$.Task.Token"}},
    }
    execution = town.start(town.machine(chain(Ask=state)))
    [message] = town.take(url)
    assert town.execution(execution)["status"] == "RUNNING"
    town.states("SendTaskSuccess", taskToken=message["token"], output='{"answer": 42}')
    town.house.drain()
    assert json.loads(town.execution(execution)["output"]) == {"answer": 42}


# -- queues ------------------------------------------------------------------------------------------------------


def test_a_new_queue_takes_messages_of_a_mebibyte(town: Town) -> None:
    """PF-37: the default of MaximumMessageSize is SQS's of 2025; a group id is fine on a standard queue."""
    url = town.queue("q")
    attributes = town.sqs("GetQueueAttributes", QueueUrl=url, AttributeNames=["MaximumMessageSize"])["Attributes"]
    assert attributes == {"MaximumMessageSize": "1048576"}
    for n in range(2):
        town.sqs("SendMessage", QueueUrl=url, MessageBody=str(n), MessageGroupId="tenant")
    found = town.sqs("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [message["Body"] for message in found] == ["0", "1"], "no order is enforced between messages of a group"


# -- tasks -------------------------------------------------------------------------------------------------------


def settle(town: Town, *reports: Report) -> list[Ending]:
    """Tell the tasks room what a runner reports; answer what it told whoever watches."""
    told: list[Ending] = []

    class Watching:
        def finished(self, tx: Tx, key: str, ending: Ending) -> None:  # noqa: ARG002 - the switchboard's own words
            told.append(ending)

    town.house.switchboard.watchers["machines"] = Watching()
    setting = Setting(town.config, town.house.switchboard, 1_000, 100, 1_000)
    for report in reports:
        town.house.unit(lambda tx, one=report: attending.settle(tx, setting, [one]))  # type: ignore[misc]
    return told


def running(town: Town, image: str) -> Key:
    town.start(town.machine(chain(Run=job(image))))
    return town.runner.started[-1].key


def test_a_task_is_stopped_when_it_has_ended_and_not_when_a_flag_says_so(town: Town) -> None:
    """PF-54: a container that went over its memory is told as such, and the task is RUNNING for as long as it runs."""
    side = {"name": "side", "image": "quick", "memory": 64, "essential": False}
    main = {"name": "main", "image": "quick", "memory": 64}
    town.ecs("RegisterTaskDefinition", family="pair", containerDefinitions=[main, side])
    key = running(town, "pair")
    died = ContainerReport("side", 2, 137, OUT_OF_MEMORY, ended=True)
    assert settle(town, Report(key, "running", (ContainerReport("main", pid=1), died))) == []
    [task] = town.tasks()
    assert (task["lastStatus"], task["desiredStatus"]) == ("RUNNING", "RUNNING")
    assert [one["lastStatus"] for one in task["containers"]] == ["RUNNING", "STOPPED"]
    assert task["containers"][1]["reason"] == OUT_OF_MEMORY


def test_sync_waits_until_the_stopped_task_is_gone(town: Town) -> None:
    """PF-55: StopTask only asks; the state ends when the process has."""
    execution = town.start(town.machine(chain(Run=job("slow-to-stop"))))
    [task] = town.tasks()
    town.ecs("StopTask", task=task["taskArn"])
    town.house.advance(seconds=24)
    assert town.execution(execution)["status"] == "RUNNING"
    town.house.advance(seconds=1)
    assert town.execution(execution)["status"] == "FAILED"
    assert town.tasks("STOPPED")[0]["lastStatus"] == "STOPPED"


@pytest.mark.parametrize("first", ["ended", "lost"])
def test_whoever_is_first_says_how_a_task_ended(town: Town, first: str) -> None:
    """PF-58: given up for lost at the moment it finishes, it is one of the two and never both."""
    key = running(town, "quick")
    done = Report(key, "ended", (ContainerReport("main", 1, 0, None, ended=True),), "EssentialContainerExited", "")
    lost = Report(key, "ended", (), "InfrastructureHealth", HOST_LOST)
    reports = (done, lost) if first == "ended" else (lost, done)
    told = settle(town, *reports, *reports)
    assert [ending.succeeded for ending in told] == [first == "ended"]
    [task] = town.tasks("STOPPED")
    assert task["stopCode"] == reports[0].stop_code


# -- time ----------------------------------------------------------------------------------------------------------


def test_one_advance_plays_everything_that_is_due_in_order(town: Town) -> None:
    """PF-60: three steps of a back-off, a task of ten minutes and two waits, all settled at their own instants."""
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 60, "BackoffRate": 2, "MaxAttempts": 3}]
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]
    blocks = [
        chain(Long=job("quick")),
        chain(Wait={"Type": "Wait", "Seconds": 90}, Again={"Type": "Wait", "Seconds": 300}),
        chain(Broken=job("broken", Retry=retry, Catch=catch, Next="Caught"), Caught={"Type": "Pass"}),
    ]
    execution = town.start(town.machine(chain(All={"Type": "Parallel", "Branches": blocks})))
    began = town.house.now
    town.house.advance(hours=3)
    described = town.execution(execution)
    assert (described["status"], described["stopDate"] - began) == ("SUCCEEDED", (4 * 60 + 60 + 120 + 240) * 1000)
    instants = [event["timestamp"] for event in town.events(execution)]
    assert instants == sorted(instants)
    ends = {
        (task["taskDefinitionArn"].rpartition("/")[2], (task["executionStoppedAt"] - began) // 1000)
        for task in town.tasks("STOPPED")
    }
    assert ends == {("quick:1", 600), *(("broken:1", at) for at in (60, 180, 360, 660))}
