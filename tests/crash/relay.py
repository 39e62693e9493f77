"""The relay that the crash tests run: jobs in a queue, a pipe, a machine, a task each, a results queue; and its witnesses.

On one node with its own file, or on several nodes that share a PostgreSQL database.

What each participant knows by itself, without asking the node, is the evidence: the driver knows which sends were
acknowledged; each task appends a line of its own to a file when it starts and another when it ends.
"""

import itertools
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tasuki.cli.own_node import OwnNode

ROLE = "arn:aws:iam::000000000000:role/crash"
QUEUES = "arn:aws:sqs:us-east-1:000000000000"

# A task writes down that it began (its own pid), lives a little, and that it ended. `fail` jobs fail at their first try.
SCRIPT = """
echo "began $$ $TRY" >> "marks/$JOB"
sleep $LIFE
echo "ended $$ $TRY" >> "marks/$JOB"
case "$JOB" in *-fail) [ "$TRY" = 0 ] && exit 3;; esac
exit 0
"""


def definition(results_url: str) -> str:
    """Route, run, announce; a failing job is tried again, a hopeless one is caught."""
    environment = [
        {"Name": "JOB", "Value.$": "$.job"},
        {"Name": "LIFE", "Value.$": "$.life"},
        {"Name": "TRY", "Value.$": "States.Format('{}', $$.State.RetryCount)"},
    ]
    run = {
        "Type": "Task",
        "Resource": "arn:aws:states:::ecs:runTask.sync",
        "Parameters": {
            "TaskDefinition.$": "$.version",
            "Overrides": {"ContainerOverrides": [{"Name": "main", "Environment": environment}]},
        },
        "ResultPath": "$.task",
        "TimeoutSeconds": 120,
        "Retry": [{"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 1, "MaxAttempts": 2}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Announce"}],
        "Next": "Announce",
    }
    choices = [{"Variable": "$.version", "StringEquals": name, "Next": "Run"} for name in ("v1", "v2")]
    announce = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage",
        "Parameters": {"QueueUrl": results_url, "MessageBody": {"job.$": "$.job", "by.$": "$$.Execution.Name"}},
        "End": True,
    }
    first = {"Type": "Pass", "InputPath": "$[0].body", "Next": "Route"}
    return json.dumps(
        {
            "StartAt": "First",
            "States": {
                "First": first,
                "Route": {"Type": "Choice", "Choices": choices, "Default": "Announce"},
                "Run": run,
                "Announce": announce,
            },
        }
    )


@dataclass
class Relay:
    """The nodes of one house, and what the driver knows. Each node has a data directory of its own, `DATA/node-N`."""

    data: Path
    seed: int
    store: str | None = None
    """The URL of the store that the nodes share; None: the one node's own file."""
    count: int = 1
    settings: str = ""
    """More lines of each node's [node] table."""
    nodes: list[OwnNode] = field(init=False)
    acknowledged: dict[str, str] = field(default_factory=dict)
    """Job to message id, for every send that was answered."""
    uncertain: set[str] = field(default_factory=set)
    """Jobs whose send was not answered: they may be there, or not."""
    chance: random.Random = field(init=False)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _clients: dict[tuple[int, str], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        (self.data / "marks").mkdir(parents=True)
        options = () if self.store is None else ("--store", self.store)
        self.nodes = [OwnNode(self.data / f"node-{number}", options=options) for number in range(self.count)]
        for node in self.nodes:
            node.data.mkdir()
            config = node.data / "tasuki.toml"
            config.write_text(
                f"[node]\nmemory = '4GiB'\n{self.settings}\n"
                f"[images.job]\nfolder = '..'\ncommand = ['/bin/sh', '-c', {json.dumps(SCRIPT)}]\n"
            )
            config.chmod(0o600)

    @property
    def node(self) -> OwnNode:
        """The first node."""
        return self.nodes[0]

    @property
    def sqs(self) -> Any:
        """A client of some node that runs."""
        return self.client("sqs")

    @property
    def states(self) -> Any:
        """A client of some node that runs."""
        return self.client("stepfunctions")

    def client(self, service: str) -> Any:
        """A client of some node that runs: boto3 as anybody uses it, but it gives up at once."""
        node = self.chance.choice([node for node in self.nodes if node.running] or self.nodes)
        key = (node.port, service)
        if key not in self._clients:
            self._clients[key] = self._connect(service, node)
        return self._clients[key]

    def _connect(self, service: str, node: OwnNode) -> Any:
        return boto3.client(
            service,
            endpoint_url=node.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30),
        )

    def build(self) -> None:
        """Create everything, as a user would."""
        for node in self.nodes:
            node.start()
        ecs, pipes = self.client("ecs"), self.client("pipes")
        self.jobs = self.sqs.create_queue(QueueName="jobs")["QueueUrl"]
        self.results = self.sqs.create_queue(QueueName="results")["QueueUrl"]
        for family in ("v1", "v2"):
            ecs.register_task_definition(
                family=family, containerDefinitions=[{"name": "main", "image": "job", "memory": 32}]
            )
        self.machine = self.states.create_state_machine(
            name="relay", definition=definition(self.results), roleArn=ROLE
        )["stateMachineArn"]
        pipes.create_pipe(
            Name="relay",
            Source=f"{QUEUES}:jobs",
            SourceParameters={"SqsQueueParameters": {"BatchSize": 1}},
            Target=self.machine,
            TargetParameters={
                "StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"},
                "InputTemplate": '{"body": <$.body>}',
            },
            RoleArn=ROLE,
        )

    def send(self) -> None:
        """Send one job; note whether it was acknowledged."""
        number = next(self._numbers)
        job = f"job-{number}" + ("-fail" if self.chance.random() < 0.15 else "")
        life = self.chance.choice(["0", "0.05", "0.3", "0.8"])
        version = self.chance.choice(["v1", "v2"])
        body = json.dumps({"job": job, "version": version, "life": life})
        self.uncertain.add(job)
        try:
            self.acknowledged[job] = self.sqs.send_message(QueueUrl=self.jobs, MessageBody=body)["MessageId"]
        except (BotoCoreError, ClientError):
            return
        self.uncertain.discard(job)

    def kill_all(self) -> None:
        """SIGKILL every node that runs, one right after the other."""
        for node in self.nodes:
            node.kill()

    def start_all(self) -> None:
        """Start every node that does not run."""
        for node in self.nodes:
            if not node.running:
                node.start()

    def stop_all(self) -> None:
        """End them in good order."""
        for node in self.nodes:
            node.stop()

    def shims(self) -> list[int]:
        """Answer the shims of all attempts that began and have not ended, by what they wrote down themselves."""
        found = []
        for started in self.data.glob("node-*/tasks/*/*/started"):
            facts = started.with_name("facts")
            over = facts.exists() and json.loads(facts.read_text() or "{}").get("phase") == "ended"
            pid = json.loads(started.read_text()).get("pid")  # a tombstone has none
            if pid and not over and Path(f"/proc/{pid}").exists():
                found.append(pid)
        return found

    def marks(self, job: str) -> list[list[str]]:
        """Answer what the job's own processes wrote down."""
        path = self.data / "marks" / job
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def executions(self, status: str | None = None) -> list[dict[str, Any]]:
        """Answer all executions, through the API."""
        given = {"stateMachineArn": self.machine} | ({"statusFilter": status} if status else {})
        pages = self.states.get_paginator("list_executions").paginate(**given)
        return [execution for page in pages for execution in page["executions"]]

    def history(self, arn: str) -> list[dict[str, Any]]:
        """Answer all events of an execution."""
        pages = self.states.get_paginator("get_execution_history").paginate(executionArn=arn)
        return [event for page in pages for event in page["events"]]

    def depth(self, url: str) -> int:
        """Answer how many messages a queue holds, in whatever state."""
        names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(found[name]) for name in names)

    def announced(self) -> list[dict[str, Any]]:
        """Take everything from the results queue."""
        taken: list[dict[str, Any]] = []
        while True:
            got = self.sqs.receive_message(QueueUrl=self.results, MaxNumberOfMessages=10, VisibilityTimeout=3600)
            if not got.get("Messages"):
                return taken
            taken += [json.loads(message["Body"]) for message in got["Messages"]]

    def until_quiet(self, within_s: float) -> None:
        """Wait until no job is on its way any more."""
        deadline = time.monotonic() + within_s
        while self.depth(self.jobs) or self.executions("RUNNING"):
            if time.monotonic() > deadline:
                running = [self.history(e["executionArn"])[-3:] for e in self.executions("RUNNING")[:3]]
                raise AssertionError(f"still on the way after {within_s} s: {running}")
            # a long poll on an empty queue is a wait that costs nobody anything
            self.sqs.receive_message(QueueUrl=self.idle, WaitTimeSeconds=1)

    @property
    def idle(self) -> str:
        """A queue in which there never is anything."""
        return str(self.sqs.create_queue(QueueName="idle")["QueueUrl"])
