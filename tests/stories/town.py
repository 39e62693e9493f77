"""The whole house under the manual clock: queues, pipes, machines, tasks and hand-overs on one file, and a scripted world.

`restart` ends the node and opens another on what the file holds; the world outside (the tasks) goes on meanwhile.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from tasuki.cli.reach import Reach
from tasuki.runtime.attendant import Attendant
from tasuki.services import handovers, machines, pipes, queues, tasks
from tasuki.testing import House, ManualClock
from tasuki.testing.clock import duration_ms
from tasuki.testing.scripted import Script, ScriptedRunner
from tasuki.values.attempts import Launch
from tasuki.values.config import Config, Image
from tests.stores import kept

ROLE = "arn:aws:iam::000000000000:role/any"
ROOMS = (handovers.room, queues.room, tasks.room, machines.room, pipes.room)
SYNC = "arn:aws:states:::ecs:runTask.sync"
SEND = "arn:aws:states:::sqs:sendMessage"
FIRE_AND_FORGET = {"StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"}}


class Town:
    """Queues, machines and pipes are made by name; every image of `scripts` has a task definition of its name."""

    def __init__(self, folder: Path, scripts: dict[str, Script], *, memory_mib: int = 64_000, **quotas: int) -> None:
        self.clock = ManualClock()
        self.scripts = scripts
        self.runner = ScriptedRunner(self.clock, scripts)
        images = {name: Image(name, Path(f"/images/{name}"), ("run",)) for name in scripts}
        self.config = Config(data=folder, dev=True, memory_mib=memory_mib, images=images, quotas=quotas)
        self._lives = 0
        self.house = self._open()
        for name in scripts:
            self.define(name)

    def _open(self) -> House:
        def attendant(house: House) -> Attendant:
            return Attendant(
                store=house.store,
                runner=self.runner,
                bell=house.bell,
                config=house.config,
                switchboard=house.switchboard,
                clock=house.clock,
            )

        self._lives += 1
        return House(
            *ROOMS,
            duties=(attendant,),
            config=self.config,
            seed=self._lives,
            clock=self.clock,
            store=kept(self.config.data / "tasuki.db"),
        )

    def restart(self, **away: float) -> None:
        """Drop the node, let the world go on for a while, and open another node on the same file."""
        self.house.close()
        if away:
            self.clock.set(self.clock.now() + duration_ms(**away))  # type: ignore[arg-type]
        self.house = self._open()
        self.house.drain()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, bad: BaseException | None, at: TracebackType | None) -> None:
        self.house.close()

    # -- short words -----------------------------------------------------------------------------------------

    def sqs(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("sqs", operation, given)

    def states(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("stepfunctions", operation, given)

    def ecs(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("ecs", operation, given)

    def pipes(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("pipes", operation, given)

    def define(self, family: str, image: str = "", **container: Any) -> str:
        one = {"name": "main", "image": image or family, "memory": 64, **container}
        made = self.ecs("RegisterTaskDefinition", family=family, containerDefinitions=[one])
        return str(made["taskDefinition"]["taskDefinitionArn"])

    def queue(self, name: str, **attributes: Any) -> str:
        given = {key: str(value) for key, value in attributes.items()}
        return str(self.sqs("CreateQueue", QueueName=name, Attributes=given)["QueueUrl"])

    def send(self, url: str, *bodies: Any) -> None:
        """Send each body as JSON, and let the house do what comes of it."""
        for body in bodies:
            self.sqs("SendMessage", QueueUrl=url, MessageBody=json.dumps(body))
        self.house.drain()

    def take(self, url: str) -> list[Any]:
        """Receive and delete all that is visible; answer the decoded bodies."""
        bodies: list[Any] = []
        while found := self.sqs("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in found:
                self.sqs("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                bodies.append(json.loads(message["Body"]))
        return bodies

    def counts(self, url: str) -> tuple[int, int]:
        """Answer how many messages wait, and how many are in flight."""
        found = self.sqs("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return tuple(int(found[f"ApproximateNumberOfMessages{one}"]) for one in ("", "NotVisible"))  # type: ignore[return-value]

    def machine(self, definition: dict[str, Any], name: str = "m") -> str:
        made = self.states("CreateStateMachine", name=name, definition=json.dumps(definition), roleArn=ROLE)
        return str(made["stateMachineArn"])

    def pipe(self, queue: str, machine: str, name: str = "p", batch: int = 1, **target: Any) -> None:
        found = self.sqs("GetQueueAttributes", QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]
        self.pipes(
            "CreatePipe",
            Name=name,
            RoleArn=ROLE,
            Source=found["QueueArn"],
            SourceParameters={"SqsQueueParameters": {"BatchSize": batch}},
            Target=machine,
            TargetParameters={**FIRE_AND_FORGET, **target},
        )

    def start(self, machine: str, given: Any = None) -> str:
        made = self.states("StartExecution", stateMachineArn=machine, input=json.dumps({} if given is None else given))
        self.house.drain()
        return str(made["executionArn"])

    def execution(self, arn: str) -> dict[str, Any]:
        return self.states("DescribeExecution", executionArn=arn)

    def executions(self, machine: str) -> list[dict[str, Any]]:
        """Answer the descriptions of a machine's executions, oldest first."""
        listed = self.states("ListExecutions", stateMachineArn=machine, maxResults=1000)["executions"]
        return [self.execution(one["executionArn"]) for one in reversed(listed)]

    def statuses(self, machine: str) -> list[str]:
        return [one["status"] for one in self.executions(machine)]

    def events(self, execution: str) -> list[dict[str, Any]]:
        found = self.states("GetExecutionHistory", executionArn=execution, maxResults=1000)
        assert "nextToken" not in found, "longer than a page"
        return list(found["events"])

    def tasks(self, status: str = "RUNNING") -> list[dict[str, Any]]:
        arns = self.ecs("ListTasks", desiredStatus=status)["taskArns"]
        return list(self.ecs("DescribeTasks", tasks=arns)["tasks"]) if arns else []

    @property
    def started(self) -> list[str]:
        """The images of all attempts that were ever begun, in order."""
        return [launch.containers[0].image for launch in self.runner.started]

    @property
    def reach(self) -> Reach:
        """The house as the examples see it: boto3's words, straight into the rooms."""
        return cast("Reach", _Reach(lambda: self.house))


class _Reach:
    def __init__(self, house: Callable[[], House]) -> None:
        self._house = house

    def client(self, service: str) -> Any:
        return _Client(self._house, service)


class _Client:
    def __init__(self, house: Callable[[], House], service: str) -> None:
        self._house, self._service = house, service

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        operation = re.sub(r"(^|_)(\w)", lambda found: found[2].upper(), name)
        return lambda **given: self._house().call(self._service, operation, given)


def environment(launch: Launch) -> dict[str, str]:
    return dict(launch.containers[0].environment)


def chain(**states: dict[str, Any]) -> dict[str, Any]:
    """A machine of states that follow each other in the order given, unless they say where to go."""
    names = list(states)
    for name, after in zip(names, [*names[1:], None], strict=True):
        state = states[name]
        if state["Type"] not in {"Choice", "Succeed", "Fail"} and not {"Next", "End"} & state.keys():
            states[name] = {**state, **({"Next": after} if after else {"End": True})}
    return {"StartAt": names[0], "States": states}


def job(image: str, variables: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A state that runs a task to its end. `variables` whose names end in `.$` are paths."""
    parameters: dict[str, Any] = {"TaskDefinition.$" if image.startswith("$") else "TaskDefinition": image}
    if variables:
        pairs = [
            {"Name": name.removesuffix(".$"), "Value.$" if name.endswith(".$") else "Value": value}
            for name, value in variables.items()
        ]
        parameters["Overrides"] = {"ContainerOverrides": [{"Name": "main", "Environment": pairs}]}
    return {"Type": "Task", "Resource": SYNC, "Parameters": parameters, "ResultPath": None, **more}


def tell(url: str, body: Any, **more: Any) -> dict[str, Any]:
    """A state that puts a message on a queue. `body` is a template."""
    parameters = {"QueueUrl": url, "MessageBody": body}
    return {"Type": "Task", "Resource": SEND, "Parameters": parameters, "ResultPath": None, **more}
