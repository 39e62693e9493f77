"""A house with the machines room and stand-ins for the others, and short words for what the tests say."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasuki.services import machines
from tasuki.services.switchboard import Answer, Caller, Ending
from tasuki.store.store import Store, Tx
from tasuki.testing import House, ManualClock
from tasuki.testing.house import Builder, DutyBuilder
from tasuki.values.config import Config, Image
from tasuki.values.errors import DomainError

ROLE = "arn:aws:iam::000000000000:role/machines"
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": {"done": True}, "End": True}}}
WAIT = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}}


class Refused(DomainError):
    code = "MissingParameter"


class Stub:
    """An integration that notes its calls and answers what it is told to."""

    def __init__(self, prefix: str, output: dict[str, Any], handle: str | None = None) -> None:
        self.error_prefix = prefix
        self.output = output
        self.handle = handle
        self.refusal: DomainError | None = None
        self.calls: list[tuple[dict[str, Any], Caller]] = []
        self.cancelled: list[tuple[str, str]] = []

    def call(self, tx: Tx, parameters: dict[str, Any], caller: Caller) -> Answer:  # noqa: ARG002
        self.calls.append((parameters, caller))
        if self.refusal is not None:
            raise self.refusal
        return Answer(self.output, f"{self.handle}-{len(self.calls)}" if self.handle else None)

    def cancel(self, tx: Tx, handle: str, cause: str) -> None:  # noqa: ARG002
        self.cancelled.append((handle, cause))


class Play:
    """A house and its stubs."""

    def __init__(
        self,
        account: str = "000000000000",
        *,
        rooms: tuple[Builder, ...] = (),
        clock: ManualClock | None = None,
        store: Callable[[House], Store] | None = None,
        duties: tuple[DutyBuilder, ...] = (),
        images: dict[str, Image] | None = None,
        **quotas: int,
    ) -> None:
        config = Config(data=Path(), dev=True, account=account, memory_mib=1024, images=images or {}, quotas=quotas)
        self.house = House(machines.room, *rooms, config=config, clock=clock, store=store, duties=duties)
        self.sqs = Stub("SQS", {"MessageId": "m-1", "MD5OfMessageBody": "5d41"})
        self.ecs = Stub("ECS", {"Tasks": [{"TaskArn": "t-1"}], "Failures": []}, handle="t")
        self.house.switchboard.integrations.setdefault("sqs:sendMessage", self.sqs)
        self.house.switchboard.integrations.setdefault("ecs:runTask", self.ecs)

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("stepfunctions", operation, given)

    def create(self, definition: dict[str, Any], name: str = "m", **more: Any) -> str:
        made = self.call(
            "CreateStateMachine",
            name=name,
            definition=json.dumps(definition),
            roleArn=ROLE.replace("000000000000", self.house.config.account),
            **more,
        )
        return str(made["stateMachineArn"])

    def start(self, arn: str, given: Any = None, **more: Any) -> str:
        text = json.dumps({} if given is None else given)
        return str(self.call("StartExecution", stateMachineArn=arn, input=text, **more)["executionArn"])

    def run(self, definition: dict[str, Any], given: Any = None) -> str:
        """Create a machine and start it; answer the execution's ARN."""
        return self.start(self.create(definition), given)

    def describe(self, execution: str) -> dict[str, Any]:
        return self.call("DescribeExecution", executionArn=execution)

    def output(self, execution: str) -> Any:
        described = self.describe(execution)
        assert described["status"] == "SUCCEEDED", described
        return json.loads(described["output"])

    def events(self, execution: str) -> list[dict[str, Any]]:
        """Answer the whole history, over as many pages as it takes."""
        found: list[dict[str, Any]] = []
        more: dict[str, Any] = {}
        while True:
            page = self.call("GetExecutionHistory", executionArn=execution, maxResults=1000, **more)
            found += page["events"]
            if "nextToken" not in page:
                return found
            more = {"nextToken": page["nextToken"]}

    def types(self, execution: str) -> list[str]:
        return [event["type"] for event in self.events(execution)]

    def finish_task(self, call: int = -1, *, succeeded: bool = True, output: dict[str, Any] | None = None) -> None:
        """Say that what the ECS stub started has ended."""
        watcher = self.ecs.calls[call][1].watcher
        assert watcher is not None
        ending = Ending(succeeded, output or {"TaskArn": "t-1", "LastStatus": "STOPPED"})
        self.house.unit(lambda tx: self.house.switchboard.finished(tx, watcher, ending))
        self.house.drain()

    def rows(self, table: str) -> int:
        """Count the rows of a table: nothing may be left of what is over."""
        return int(self.house.unit(lambda tx: tx.all(f"SELECT count(*) FROM {table}"))[0][0])

    def left_over(self) -> dict[str, int]:
        """Answer what is left in the tables that only open executions have rows in."""
        counts = {table: self.rows(table) for table in ("frames", "results", "inbox", "ready")}
        counts["timers"] = self.rows("timers WHERE room = 'machines'")
        return {table: count for table, count in counts.items() if count}


_NEEDED = {"sqs:sendMessage": {"QueueUrl": "q", "MessageBody": "b"}, "ecs:runTask": {"TaskDefinition": "job"}}


def task(resource: str, parameters: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A machine of one Task; what its integration can't do without is added."""
    added = _NEEDED.get(resource.partition(".")[0], {})
    given = parameters or {}
    given = {**{name: value for name, value in added.items() if f"{name}.$" not in given}, **given}
    state = {"Type": "Task", "Resource": f"arn:aws:states:::{resource}", "Parameters": given, "End": True}
    return {"StartAt": "T", "States": {"T": {**state, **more}}}
