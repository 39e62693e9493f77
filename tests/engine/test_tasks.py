"""Tasks: answers, deadlines, heartbeats, tokens, retries and catches."""

from typing import Any

import pytest

from tasuki.engine.events import Heartbeat, TaskFailed, TaskStarted, TaskSubmitted, TaskSucceeded, TimerFired
from tasuki.values.documents import Doc
from tests.engine.machines import ALL, SYNC, TOKEN, WORK, machine, pass_, task
from tests.engine.player import BEGIN, Play, fail, succeed

FAILING = {"Error": "Boom", "Cause": "it broke"}


def test_a_request_and_its_response() -> None:
    play = Play(machine(A=task(Parameters={"QueueUrl.$": "$.q"}, ResultPath="$.sent")), {"q": "u"}, succeed({"id": 1}))
    play.start()
    assert play.output == {"q": "u", "sent": {"id": 1}}
    assert play.scheduled[0].parameters.value == {"QueueUrl": "u"}
    assert play.types == [
        "ExecutionStarted",
        "TaskStateEntered",
        "TaskScheduled",
        "TaskStarted",
        "TaskSucceeded",
        "TaskStateExited",
        "ExecutionSucceeded",
    ]


def test_scheduled_work_names_its_resource_and_region() -> None:
    play = Play(machine(A=task(TOKEN, TimeoutSeconds=60, HeartbeatSeconds=5))).start()
    details = play.wire()[2]["taskScheduledEventDetails"]
    assert details == {
        "resourceType": "sns",
        "resource": "publish.waitForTaskToken",
        "region": "us-east-1",
        "parameters": "{}",
        "timeoutInSeconds": 60,
        "heartbeatInSeconds": 5,
    }


def test_submitted_work_goes_on_when_it_ends_and_is_cancelled_by_its_handle() -> None:
    play = Play(machine(A=task(SYNC, Next="B"), B=task(SYNC, TimeoutSeconds=10))).start()
    play.submit({"started": 1}, "handle-1").succeed({"ended": 1})
    play.submit({"started": 2}, "handle-2").run()
    assert play.types.count("TaskSubmitted") == 2
    assert [(one.handle, one.attempt) for one in play.cancelled] == [("handle-2", 2)]
    assert play.finish is not None
    assert (play.status, play.finish.error, play.finish.cause) == ("FAILED", "States.Timeout", None)


def test_ecs_tasks_are_started_by_step_functions() -> None:
    play = Play(machine(A=task("arn:aws:states:::ecs:runTask.sync", Parameters={"TaskDefinition": "t"}))).start()
    assert play.scheduled[0].parameters.value == {"StartedBy": "AWS Step Functions", "TaskDefinition": "t"}


def test_a_token_is_fresh_for_each_attempt_and_seen_in_the_context() -> None:
    again = [{"ErrorEquals": ALL, "IntervalSeconds": 1, "MaxAttempts": 1}]
    definition = machine(A=task(TOKEN, Parameters={"MessageBody.$": "$$.Task.Token"}, Retry=again))
    play = Play(definition).start().fail()
    play.fire()
    tokens = [one.token for one in play.scheduled]
    assert [one.parameters.value["MessageBody"] for one in play.scheduled] == tokens
    assert len(set(tokens)) == 2
    other = Play(definition, seed="other").start()
    assert other.scheduled[0].token not in tokens, "the seed is the secret"
    assert Play(definition).start().scheduled[0].token == tokens[0], "deciding again draws the same"


def test_a_task_without_token_has_none() -> None:
    play = Play(machine(A=task(Parameters={"c.$": "$$"}))).start()
    assert play.scheduled[0].token is None
    assert "Task" not in play.scheduled[0].parameters.value["c"]


# Stale and repeated events


@pytest.mark.parametrize(
    "event",
    [
        TaskSucceeded(1, 1, Doc(1)),
        TaskFailed(1, 1, "E", "c"),
        TaskSubmitted(1, 1, Doc(1)),
        TaskStarted(1, 1),
        Heartbeat(1, 1),
        TaskSucceeded(7, 2, Doc(1)),
        TimerFired(1),
        TimerFired(0),
        TimerFired(9),
    ],
    ids=repr,
)
def test_what_no_longer_fits_changes_nothing(event: Any) -> None:
    play = Play(machine(A=task(TOKEN, Next="B"), B=task(TOKEN, TimeoutSeconds=60))).start().succeed()
    before, frames, rows = play.wire(), play.frames(), play.rows.body_writes
    play.tell(event)
    assert (play.wire(), play.frames(), play.rows.body_writes) == (before, frames, rows)
    assert play.finish is None


def test_an_answer_told_twice_counts_once() -> None:
    play = Play(machine(A=task(Next="B"), B=task())).start()
    first = play.scheduled[0]
    answer = TaskSucceeded(first.frame, first.attempt, Doc("one"))
    play.tell(answer).tell(answer)
    assert play.types.count("TaskSucceeded") == 1
    assert len(play.scheduled) == 2


def test_nothing_happens_after_the_end() -> None:
    play = Play(machine(A=task(TimeoutSeconds=5))).start().succeed()
    events = len(play.history)
    play.now += 60_000
    play.succeed().tell(TimerFired(1), TimerFired(0)).stop()
    assert (len(play.history), play.status) == (events, "SUCCEEDED")


def test_a_started_execution_is_not_started_again() -> None:
    play = Play(machine(A=task())).start()
    assert play.start().types == ["ExecutionStarted", "TaskStateEntered", "TaskScheduled"]


# Timeouts and heartbeats


def test_a_timeout_counts_from_the_schedule() -> None:
    play = Play(machine(A=task(TimeoutSeconds=5))).start()
    assert play.next_due() == (BEGIN + 5_000, 1)
    play.now = BEGIN + 4_999
    play.tell(TimerFired(1))
    assert play.status == "RUNNING"
    play.fire()
    play.tell(TimerFired(1))
    assert play.types[-3:] == ["TaskStarted", "TaskTimedOut", "ExecutionFailed"]
    assert play.types.count("TaskTimedOut") == 1


def test_a_timeout_by_path() -> None:
    play = Play(machine(A=task(TimeoutSecondsPath="$.t")), {"t": 7}).start()
    assert play.next_due() == (BEGIN + 7_000, 1)


def test_a_timeout_by_a_path_that_is_no_number_fails_the_state() -> None:
    play = Play(machine(A=task(TimeoutSecondsPath="$.t")), {"t": "soon"}).start()
    assert play.types == ["ExecutionStarted", "TaskStateEntered", "ExecutionFailed"]
    assert play.finish is not None
    assert play.finish.error == "States.Runtime"
    assert str(play.finish.cause).startswith(
        "An error occurred while executing the state 'A' (entered at the event id #2). "
    )


def test_heartbeats_keep_a_task_alive_and_write_no_history() -> None:
    play = Play(machine(A=task(TOKEN, HeartbeatSeconds=5, TimeoutSeconds=60))).start().submit()
    events, body = len(play.history), play.rows.bodies[1]
    for _ in range(4):
        play.now += 4_000
        play.tell(Heartbeat(1, 1))
    assert len(play.history) == events
    assert play.rows.bodies[1] == body, "a heartbeat rewrites no documents"
    assert play.next_due() == (play.now + 5_000, 1)
    play.succeed("done")
    assert play.output == "done"


@pytest.mark.parametrize("name", ["States.HeartbeatTimeout", "States.Timeout", "States.ALL"])
def test_a_missed_heartbeat_is_a_timeout_that_has_a_name_of_its_own(name: str) -> None:
    catch = [{"ErrorEquals": ["States.TaskFailed"], "Next": "Wrong"}, {"ErrorEquals": [name], "Next": "B"}]
    play = Play(machine(A=task(TOKEN, HeartbeatSeconds=5, Catch=catch), B=pass_(), Wrong=pass_()))
    play.start().submit().run()
    assert play.output == {"Error": "States.Timeout", "Cause": ""}
    assert play.types[5:7] == ["TaskTimedOut", "TaskStateExited"]


# Retry


def test_backoff_and_its_limit() -> None:
    retry = [{"ErrorEquals": ["Boom"], "IntervalSeconds": 2, "BackoffRate": 3, "MaxAttempts": 4, "MaxDelaySeconds": 20}]
    play = Play(machine(A=task(Retry=retry)), handler=fail()).start()
    delays = []
    while play.status == "RUNNING":
        due = play.next_due()
        assert due is not None
        delays.append(due[0] - play.now)
        play.fire()
    assert delays == [2_000, 6_000, 18_000, 20_000]
    assert len(play.scheduled) == 5
    assert [one.attempt for one in play.scheduled] == [1, 2, 3, 4, 5]


def test_jitter_is_drawn_within_the_delay_and_again_the_same() -> None:
    retry = [{"ErrorEquals": ALL, "IntervalSeconds": 100, "MaxAttempts": 3, "JitterStrategy": "FULL"}]
    dues = []
    for seed in ("a", "a", "b"):
        play = Play(machine(A=task(Retry=retry)), handler=fail(), seed=seed).start()
        due = play.next_due()
        assert due is not None
        assert 0 <= due[0] - BEGIN <= 100_000
        dues.append(due[0])
    assert dues[0] == dues[1] != dues[2]


def test_each_retrier_counts_for_itself_and_the_context_counts_all() -> None:
    retry = [
        {"ErrorEquals": ["X"], "MaxAttempts": 1},
        {"ErrorEquals": ["Y"], "MaxAttempts": 1},
    ]
    catch = [{"ErrorEquals": ALL, "Next": "B"}]
    play = Play(machine(A=task(Parameters={"n.$": "$$.State.RetryCount"}, Retry=retry, Catch=catch), B=pass_()))
    play.start().fail("X").fire()
    play.fail("Y").fire()
    assert [one.parameters.value for one in play.scheduled] == [{"n": 0}, {"n": 1}, {"n": 2}]
    play.fail("X", "used up")
    assert play.output == {"Error": "X", "Cause": "used up"}


def test_a_retrier_that_is_used_up_is_not_skipped() -> None:
    retry = [{"ErrorEquals": ["X"], "MaxAttempts": 0}, {"ErrorEquals": ALL}]
    play = Play(machine(A=task(Retry=retry))).start().fail("X")
    assert play.status == "FAILED"


def test_counters_start_anew_with_each_visit() -> None:
    retry = [{"ErrorEquals": ALL, "MaxAttempts": 1}]
    choice = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.again", "BooleanEquals": True, "Next": "A"}],
        "Default": "E",
    }
    play = Play(machine(A=task(Retry=retry, Next="C"), C=choice, E=pass_())).start().fail()
    play.fire()
    play.succeed({"again": True}).fail()
    assert play.fire(), "the second visit has its own try"
    play.succeed({"again": False})
    assert play.status == "SUCCEEDED"


def test_a_late_answer_to_an_attempt_that_was_given_up_changes_nothing() -> None:
    retry = [{"ErrorEquals": ALL, "MaxAttempts": 2}]
    play = Play(machine(A=task(TOKEN, TimeoutSeconds=5, Retry=retry))).start().submit()
    play.fire()
    events = len(play.history)
    play.succeed("late", place=0)
    assert len(play.history) == events, "while it waits for its next try"
    play.fire()
    events = len(play.history)
    play.succeed("late", place=0)
    assert len(play.history) == events, "while the next try runs"
    play.succeed("in time")
    assert play.output == "in time"
    assert [one.attempt for one in play.cancelled] == [1]


def test_runtime_errors_are_not_retried_nor_caught() -> None:
    handlers: dict[str, Any] = {"Retry": [{"ErrorEquals": ALL}], "Catch": [{"ErrorEquals": ALL, "Next": "B"}]}
    play = Play(machine(A=task(Parameters={"x.$": "$.missing"}, **handlers), B=pass_())).start()
    assert play.types == ["ExecutionStarted", "TaskStateEntered", "ExecutionFailed"]
    assert play.history[-1].previous == 2
    assert play.frames() == []


# Catch


def test_a_caught_error_goes_to_its_place_in_the_raw_input() -> None:
    catch = [{"ErrorEquals": ["Boom"], "ResultPath": "$.error", "Next": "B", "Assign": {"what.$": "$.Error"}}]
    definition = machine(
        A=task(InputPath="$.in", OutputPath="$.nowhere", Catch=catch, Assign={"never": 1}),
        B=pass_(Parameters={"all.$": "$", "what.$": "$what"}),
    )
    play = Play(definition, {"in": {"x": 1}}, fail()).start()
    assert play.output == {"all": {"in": {"x": 1}, "error": FAILING}, "what": "Boom"}
    exited = play.wire()[5]
    assert exited["stateExitedEventDetails"]["assignedVariables"] == {"what": '"Boom"'}


def test_a_caught_error_can_be_dropped() -> None:
    catch = [{"ErrorEquals": ALL, "ResultPath": None, "Next": "B"}]
    play = Play(machine(A=task(Catch=catch), B=pass_()), {"kept": 1}, fail()).start()
    assert play.output == {"kept": 1}


def test_an_error_without_name_or_cause() -> None:
    catch = [{"ErrorEquals": ALL, "Next": "B"}]
    play = Play(machine(A=task(Catch=catch), B=pass_()), handler=fail(None, None)).start()
    assert play.output == {"Error": "", "Cause": ""}
    play = Play(machine(A=task()), handler=fail(None, None)).start()
    assert play.wire()[-1]["executionFailedEventDetails"] == {}


def test_what_fails_in_the_catcher_fails_the_execution() -> None:
    catch = [{"ErrorEquals": ALL, "ResultPath": "$.a", "Next": "B"}]
    play = Play(machine(A=task(Catch=catch), B=pass_()), "text", fail()).start()
    assert play.status == "FAILED"
    assert play.finish is not None
    assert play.finish.error == "States.ResultPathMatchFailure"
    assert str(play.finish.cause).startswith("An error occurred while executing the state 'A'")


@pytest.mark.parametrize(("at", "kinds"), [
    ("schedule", ["TaskFailed"]),
    ("start", ["TaskStartFailed"]),
    ("submit", ["TaskStarted", "TaskSubmitFailed"]),
    ("running", ["TaskStarted", "TaskFailed"]),
])  # fmt: skip
def test_where_work_failed_shows_in_the_event(at: str, kinds: list[str]) -> None:
    play = Play(machine(A=task())).start()
    play.tell(TaskFailed(1, 1, "E", None, at))
    assert play.types[3:] == [*kinds, "ExecutionFailed"]


# Other families


def test_lambda_events() -> None:
    arn = "arn:aws:lambda:us-east-1:111111111111:function:f"
    play = Play(machine(A=task(arn)), {"a": 1}, succeed(2)).start()
    assert play.types[2:5] == ["LambdaFunctionScheduled", "LambdaFunctionStarted", "LambdaFunctionSucceeded"]
    assert play.wire()[2]["lambdaFunctionScheduledEventDetails"] == {
        "resource": arn,
        "input": '{"a": 1}',
        "inputDetails": {"truncated": False},
    }
    assert "lambdaFunctionStartedEventDetails" not in play.wire()[3]


def test_an_activity_counts_from_when_it_is_taken() -> None:
    arn = "arn:aws:states:us-east-1:111111111111:activity:a"
    play = Play(machine(A=task(arn, TimeoutSeconds=10, HeartbeatSeconds=3))).start()
    assert play.scheduled[0].token is not None
    play.now += 2_000
    play.tell(TaskStarted(1, 1, "worker"), TaskStarted(1, 1, "twice"))
    assert play.wire()[-1]["activityStartedEventDetails"] == {"workerName": "worker"}
    assert play.next_due() == (BEGIN + 5_000, 1)
    play.run()
    assert play.types[-2:] == ["ActivityTimedOut", "ExecutionFailed"]


def test_a_result_that_is_too_large_can_be_caught() -> None:
    catch = [{"ErrorEquals": ["States.DataLimitExceeded"], "Next": "B"}]
    play = Play(machine(A=task(WORK, Catch=catch), B=pass_()), handler=succeed("é" * 131_072)).start()
    assert play.output["Error"] == "States.DataLimitExceeded"
    assert play.output["Cause"] == (
        "The state/task 'sns' returned a result with a size exceeding the maximum number of bytes service limit."
    )


def test_a_result_of_just_the_largest_size_passes() -> None:
    play = Play(machine(A=task()), handler=succeed("a" * (262_144 - 2))).start()
    assert play.status == "SUCCEEDED"
