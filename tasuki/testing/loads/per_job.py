"""A task per job: queue, pipe, machine (Choice by version, `.sync`, Retry, Catch) and tasks, all of them the house's own.

The pipe's calls at the queue are counted as it makes them. It makes none while there is nothing: it waits for the bell. What
AWS's Pipes poll in the same time is another matter, and is worked out (`figures.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tasuki.services import handovers, machines, pipes
from tasuki.services.switchboard import Received, Source
from tasuki.store.store import Tx
from tasuki.testing.loads.jobs import Job
from tasuki.testing.loads.ledger import Ledger
from tasuki.testing.loads.plan import Plan, TaskPerJob, Version
from tasuki.testing.loads.stage import CONTAINER, ROLE, Stage, environment
from tasuki.testing.scripted import Script
from tasuki.values.attempts import Launch
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import HOUR, Instant

JOB = "JOB"
FOR_EVER = 99_999_999
"""The most that MaxAttempts may be."""


class _Watched:
    """A source whose calls are counted."""

    def __init__(self, source: Source, ledger: Ledger) -> None:
        self._source, self._ledger = source, ledger

    def check(self, tx: Tx, arn: str) -> str | None:
        return self._source.check(tx, arn)

    def nearest(self, tx: Tx, arns: Sequence[str]) -> Mapping[str, Instant | None]:
        return self._source.nearest(tx, arns)

    def count(self, tx: Tx, arn: str) -> int:
        return self._source.count(tx, arn)

    def receive(self, tx: Tx, arn: str, limit: int, max_bytes: int, hold_ms: int = 0) -> list[Received]:
        found = self._source.receive(tx, arn, limit, max_bytes, hold_ms)
        self._ledger.calls["ReceiveMessage"] += 1
        self._ledger.calls["empty"] += not found
        self._ledger.piped += len(found)
        return found

    def delete(self, tx: Tx, arn: str, receipts: Sequence[str]) -> None:
        self._ledger.calls["DeleteMessage"] += 1
        self._source.delete(tx, arn, receipts)

    def release(self, tx: Tx, arn: str, receipts: Sequence[str], delay_ms: int) -> None:
        self._source.release(tx, arn, receipts, delay_ms)

    def leave(self, tx: Tx, arn: str, receipts: Sequence[str], received: Instant) -> None:
        self._source.leave(tx, arn, receipts, received)


class PerJob:
    """Plays a task per job."""

    def __init__(self, plan: Plan, jobs: list[Job], setting: TaskPerJob) -> None:
        self._plan, self._jobs, self._setting = plan, jobs, setting
        self.ledger = Ledger()
        self._open = len(jobs)

    def play(self) -> Ledger:
        """Play it all; answer what was written down."""
        rooms = (handovers.room, machines.room, pipes.room)
        with Stage(self._plan, self.ledger, self._script, self._bury, *rooms) as self._stage:
            stage = self._stage
            sources = stage.house.switchboard.sources
            sources["sqs"] = _Watched(sources["sqs"], self.ledger)
            self._build()
            for job in self._jobs:
                stage.at(job.arrives, lambda job=job: self._send(job))  # type: ignore[misc]
            stage.at(self._plan.ends, self._look_again)
            stage.play(lambda: self._open == 0)
            self._close()
        return self.ledger

    def _build(self) -> None:
        stage = self._stage
        dead = stage.dead_queue()
        self._url = stage.queue("jobs", RedrivePolicy={"deadLetterTargetArn": stage.arn(dead), "maxReceiveCount": 3})
        definition = dumps(machine(self._plan.versions, self._setting, dead))
        made = stage.house.call("stepfunctions", "CreateStateMachine", name="jobs", definition=definition, roleArn=ROLE)
        self._machine = made["stateMachineArn"]
        stage.house.call(
            "pipes",
            "CreatePipe",
            Name="jobs",
            RoleArn=ROLE,
            Source=stage.arn(self._url),
            SourceParameters={"SqsQueueParameters": {"BatchSize": 1}},
            Target=self._machine,
            TargetParameters={"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}},
        )
        stage.house.drain()

    def _bury(self, body: str) -> None:
        self._jobs[loads(body)["job"]].buried = True

    def _send(self, job: Job) -> None:
        body = dumps({"job": job.number, "version": job.version.name})
        self._stage.sqs("SendMessage", QueueUrl=self._url, MessageBody=body)

    def _look_again(self) -> None:
        """Come back every hour until all is over: tasks end in the house's own time."""
        self._stage.at(self._stage.now + HOUR, self._look_again)

    # -- a task ----------------------------------------------------------------------------------------------

    def _script(self, launch: Launch) -> Script:
        job, now = self._jobs[int(environment(launch)[JOB])], self._stage.now
        fails, start_ms = job.fails(), job.version.start_ms
        began = now + start_ms
        job.try_begins(began)
        stay = self.ledger.begin(job.version, now)

        def end(_: Launch) -> None:
            stay.ended = ended = self._stage.now
            job.ended += 1
            self.ledger.starting_ms += start_ms
            if fails:
                self.ledger.failed += 1
                self.ledger.wasted_ms += ended - began
                self._open -= job.tries >= self._setting.tries
            else:
                self._open -= job.done is None
                self.ledger.worked(job, began, ended)

        return Script(start_ms + job.works_ms, exit_code=1 if fails else 0, on_end=end)

    # -- the end ---------------------------------------------------------------------------------------------

    def _close(self) -> None:
        stage, ledger = self._stage, self.ledger
        stage.clear_dead()
        ledger.ends = max([self._plan.ends, *(stay.lasted_ms(stage.now) + stay.began for stay in ledger.stays)])
        entered = ordered = scheduled = 0
        for execution in self._all("ListExecutions", "executions", stateMachineArn=self._machine):
            given = {"executionArn": execution["executionArn"], "includeExecutionData": False}
            for event in self._all("GetExecutionHistory", "events", **given):
                kind = event["type"]
                entered += kind.endswith("StateEntered")
                ordered += kind == "TaskStateEntered"
                scheduled += kind == "TaskScheduled"
        ledger.transitions = entered + scheduled - ordered
        ledger.refused = max(0, scheduled - sum(job.buried for job in self._jobs) - len(ledger.stays))

    def _all(self, operation: str, member: str, **given: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token: dict[str, str] = {}
        while True:
            page = self._stage.house.call("stepfunctions", operation, {**given, **token, "maxResults": 1000})
            found += page[member]
            if "nextToken" not in page:
                return found
            token = {"nextToken": page["nextToken"]}


def machine(versions: tuple[Version, ...], setting: TaskPerJob, dead: str) -> dict[str, Any]:
    """Answer the machine: which version, its task to the end, again where that may help, and else the dead-letter queue."""
    full = {
        "ErrorEquals": ["AmazonECS.Unknown"],
        "IntervalSeconds": setting.full_retry_s,
        "BackoffRate": 1,
        "MaxAttempts": FOR_EVER,
    }
    again = {
        "ErrorEquals": ["States.TaskFailed"],
        "IntervalSeconds": setting.retry_s,
        "BackoffRate": setting.backoff_rate,
        "MaxAttempts": setting.tries - 1,
    }
    states: dict[str, Any] = {
        "Unwrap": {"Type": "Pass", "Parameters": {"job.$": "States.StringToJson($[0].body)"}, "Next": "WhichVersion"},
        "WhichVersion": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.job.version", "StringEquals": one.name, "Next": f"Run {one.name}"} for one in versions
            ],
            "Default": "Bury",
        },
        "Bury": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage",
            "Parameters": {"QueueUrl": dead, "MessageBody.$": "$.job"},
            "Next": "Failed",
        },
        "Failed": {"Type": "Fail", "Error": "JobFailed"},
    }
    for one in versions:
        variable = {"Name": JOB, "Value.$": "States.Format('{}', $.job.job)"}
        states[f"Run {one.name}"] = {
            "Type": "Task",
            "Resource": "arn:aws:states:::ecs:runTask.sync",
            "Parameters": {
                "TaskDefinition": one.name,
                "Overrides": {"ContainerOverrides": [{"Name": CONTAINER, "Environment": [variable]}]},
            },
            "ResultPath": None,
            "Retry": [full, again],
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "Bury"}],
            "End": True,
        }
    return {"Comment": "One job: its version's task, to its end", "StartAt": "Unwrap", "States": states}
