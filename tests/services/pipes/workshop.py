"""A queue and Express machines of the real rooms, and beside them targets that the test holds."""

import json
from pathlib import Path
from typing import Any

from tasuki.services import handovers, machines, pipes, queues
from tasuki.services.room import Room
from tasuki.services.switchboard import Ending, Switchboard
from tasuki.testing import House, ManualClock
from tasuki.values.config import Config
from tasuki.values.instant import Instant
from tests.services.pipes.stubs import ROLE, Given, StubTarget
from tests.stores import kept

PLACE = "us-east-1:000000000000:"
SOURCE = f"arn:aws:sqs:{PLACE}q"
SINK = f"arn:aws:sqs:{PLACE}sink"
BUS = f"arn:aws:events:{PLACE}event-bus/orders"
DESTINATION = f"arn:aws:events:{PLACE}api-destination/zip/01234567-0123-0123-0123-012345678901"
CLUSTER = f"arn:aws:ecs:{PLACE}cluster/jobs"


class Workshop:
    """`events` is the stub of buses and API destinations, `tasks` that of clusters. At `now` it finds what `path` holds."""

    def __init__(self, seed: int = 0, path: Path | None = None, now: Instant | None = None) -> None:
        self.seed = seed
        self.events, self.tasks = StubTarget("stub_events"), StubTarget("stub_tasks")

        def stubs(_config: Config, switchboard: Switchboard) -> Room:
            switchboard.targets |= {"events": self.events, "ecs": self.tasks}
            return Room("stubs")

        config = Config(data=Path(), dev=True)
        rooms = (handovers.room, queues.room, machines.room, pipes.room, stubs)
        store = kept(path) if path is not None else None
        clock = ManualClock(now) if now is not None else None
        self.house = House(*rooms, config=config, seed=seed, store=store, clock=clock)
        if now is None:
            self.house.unit(self.events.table)
            self.house.unit(self.tasks.table)
        self.url, self.sink_url = (
            self.house.call("sqs", "CreateQueue", QueueName=name)["QueueUrl"] for name in ("q", "sink")
        )

    def machine(self, states: dict[str, Any], kind: str = "EXPRESS", name: str = "m") -> str:
        """Make a machine of states, the first of which it begins with."""
        definition = json.dumps({"StartAt": next(iter(states)), "States": states})
        given = {"name": name, "definition": definition, "roleArn": ROLE, "type": kind}
        return str(self.house.call("stepfunctions", "CreateStateMachine", given)["stateMachineArn"])

    def answering(self, **state: Any) -> str:
        """Make an Express machine of one Pass state."""
        return self.machine({"P": {"Type": "Pass", "End": True, **state}})

    def pipe(self, target: str, batch: int = 10, **members: Any) -> None:
        source = {"SqsQueueParameters": {"BatchSize": batch}} | members.pop("source", {})
        given = {"Name": "p", "RoleArn": ROLE, "Source": SOURCE, "Target": target, "SourceParameters": source}
        self.house.call("pipes", "CreatePipe", {**given, **members})

    def update(self, **members: Any) -> None:
        self.house.call("pipes", "UpdatePipe", {"Name": "p", "RoleArn": ROLE, **members})

    def describe(self) -> dict[str, Any]:
        return self.house.call("pipes", "DescribePipe", Name="p")

    def send(self, *bodies: Any, drain: bool = True) -> list[str]:
        texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
        sent = [self.house.call("sqs", "SendMessage", QueueUrl=self.url, MessageBody=text) for text in texts]
        if drain:
            self.house.drain()
        return [message["MessageId"] for message in sent]

    def counts(self, url: str = "") -> tuple[int, int]:
        """Answer how many messages are visible, and in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        given = {"QueueUrl": url or self.url, "AttributeNames": names}
        found = self.house.call("sqs", "GetQueueAttributes", given)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])

    def sink(self) -> list[dict[str, Any]]:
        """Take all messages out of the sink."""
        found: list[dict[str, Any]] = []
        while True:
            given = {"QueueUrl": self.sink_url, "MaxNumberOfMessages": 10, "AttributeNames": ["All"]}
            some = self.house.call("sqs", "ReceiveMessage", given).get("Messages", [])
            if not some:
                return found
            found += some
            for message in some:
                handle = message["ReceiptHandle"]
                self.house.call("sqs", "DeleteMessage", QueueUrl=self.sink_url, ReceiptHandle=handle)

    def bodies(self) -> list[Any]:
        """Take all messages out of the sink; answer their bodies, read as JSON."""
        return [json.loads(message["Body"]) for message in self.sink()]

    def given(self) -> list[Given]:
        """Answer what the stub of buses and destinations was given."""
        return self.events.given(self.house)

    def finish(self, watcher: str | None, output: dict[str, Any], *, succeeded: bool = True) -> None:
        """Tell the pipe how a call to a destination ended."""
        assert watcher is not None
        self.house.unit(lambda tx: self.house.switchboard.finished(tx, watcher, Ending(succeeded, output)))
        self.house.drain()

    def outcomes(self) -> list[str]:
        found = self.house.call("tasuki", "ListHandovers", MaxResults=1000)["Handovers"]
        return sorted(handover["Outcome"] for handover in found)

    def counters(self) -> dict[str, int]:
        found = self.house.unit(lambda tx: pipes.counters(tx, "000000000000", "us-east-1", "p"))
        assert found is not None
        return found

    def rows(self, table: str) -> int:
        return int(self.house.unit(lambda tx: tx.all(f"SELECT count(*) FROM {table}"))[0][0])
