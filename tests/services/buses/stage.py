"""A house with buses and all that they deliver to, and short words for what the tests say."""

import json
from pathlib import Path
from typing import Any

from tasuki.services import buses, deliveries, handovers, machines, queues, schedules, tasks
from tasuki.testing import House
from tasuki.values.config import Config, Image

ROLE = "arn:aws:iam::000000000000:role/events"
REGION, ACCOUNT = "us-east-1", "000000000000"
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}


class Stage:
    """A house and what is on stage in it."""

    def __init__(self, **more: Any) -> None:
        config = Config(
            data=Path(),
            dev=True,
            memory_mib=1024,
            images={"job": Image("job", Path(), ("true",))},
            quotas=more.pop("quotas", {}),
        )
        rooms = (handovers.room, queues.room, tasks.room, machines.room, deliveries.room, buses.room, schedules.room)
        self.house = House(*rooms, config=config, **more)

    def events(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.house.call("events", operation, given)

    def queue(self, name: str = "q", **attributes: str) -> str:
        """Make a queue; answer its ARN."""
        self.house.call("sqs", "CreateQueue", QueueName=name, Attributes=attributes)
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"

    def received(self, name: str = "q", *, attributes: bool = False) -> list[Any]:
        """Take all messages of a queue; answer their bodies as JSON (and their attributes)."""
        url = f"http://127.0.0.1:4566/{ACCOUNT}/{name}"
        found: list[Any] = []
        while True:
            given = {"QueueUrl": url, "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
            messages = self.house.call("sqs", "ReceiveMessage", given).get("Messages", [])
            if not messages:
                return found
            for message in messages:
                body = json.loads(message["Body"])
                said = {key: one["StringValue"] for key, one in message.get("MessageAttributes", {}).items()}
                found.append((body, said) if attributes else body)
                self.house.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def machine(self, definition: dict[str, Any] | None = None, name: str = "m", **more: Any) -> str:
        given = {"name": name, "definition": json.dumps(definition or PASS), "roleArn": ROLE, **more}
        return str(self.house.call("stepfunctions", "CreateStateMachine", given)["stateMachineArn"])

    def rule(
        self, pattern: Any = None, *targets: dict[str, Any], name: str = "r", bus: str = "default", **more: Any
    ) -> str:
        """Make a rule with targets; Ids are given where they are left out. Answer its ARN."""
        given: dict[str, Any] = {"Name": name, "EventBusName": bus, **more}
        if pattern is not None:
            given["EventPattern"] = json.dumps(pattern)
        arn = str(self.events("PutRule", **given)["RuleArn"])
        if targets:
            listed = [{"Id": f"t{number}", **target} for number, target in enumerate(targets)]
            put = self.events("PutTargets", Rule=name, EventBusName=bus, Targets=listed)
            assert put["FailedEntryCount"] == 0, put
        return arn

    def put(self, detail: Any = None, source: str = "shop", kind: str = "order", **more: Any) -> str:
        """Put an event; answer its id."""
        entry = {"Source": source, "DetailType": kind, "Detail": json.dumps(detail or {}), **more}
        (answer,) = self.events("PutEvents", Entries=[entry])["Entries"]
        self.house.drain()
        return str(answer["EventId"])

    def rows(self, table: str) -> int:
        return int(self.house.unit(lambda tx: tx.all(f"SELECT count(*) FROM {table}"))[0][0])

    def executions(self, machine: str) -> list[dict[str, Any]]:
        """Answer the executions of a machine, described, oldest first."""
        listed = self.house.call("stepfunctions", "ListExecutions", stateMachineArn=machine)["executions"]
        return [
            self.house.call("stepfunctions", "DescribeExecution", executionArn=one["executionArn"])
            for one in reversed(listed)
        ]
