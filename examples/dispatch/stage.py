"""What the story needs in the house: queues, task definitions, a machine, a pipe. Made with AWS's calls, as on AWS."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasuki.cli.reach import Reach
from tasuki.values import documents

HERE = Path(__file__).resolve().parent
ROLE = "arn:aws:iam::000000000000:role/dispatch"
MEMORY_MIB = 512


@dataclass(frozen=True, slots=True)
class Stage:
    """The story's resources."""

    reach: Reach
    jobs_url: str
    results_url: str
    failures_url: str
    machine_arn: str
    pipe: str

    def deploy(self, release: str) -> None:
        """Bring out a release: task definition revisions, the machine, the pipe. Running jobs are not disturbed."""
        for version in ("v1", "v2"):
            register(self.reach, version, release)
        definition = machine_definition(self.results_url, self.failures_url, release)
        self.reach.client("stepfunctions").update_state_machine(stateMachineArn=self.machine_arn, definition=definition)
        self.reach.client("pipes").update_pipe(
            Name=self.pipe, RoleArn=ROLE, TargetParameters=_target_parameters(release)
        )

    def send(self, job: dict[str, Any]) -> str:
        """Send one job; answer the message's id."""
        sent = self.reach.client("sqs").send_message(QueueUrl=self.jobs_url, MessageBody=documents.dumps(job))
        return str(sent["MessageId"])

    def take(self, url: str) -> list[dict[str, Any]]:
        """Receive and delete what a queue has now; answer the bodies."""
        sqs = self.reach.client("sqs")
        bodies = []
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0).get("Messages"):
            for message in messages:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                bodies.append(documents.loads(message["Body"]))
        return bodies


def build(reach: Reach, release: str = "1") -> Stage:
    """Create everything."""
    sqs = reach.client("sqs")
    dead = sqs.create_queue(QueueName="dispatch-dead")["QueueUrl"]
    # What the pipe can't hand over goes there at last. A minute hides a message for longer than any hand-over takes.
    redrive = documents.dumps({"deadLetterTargetArn": _queue_arn(reach, dead), "maxReceiveCount": 5})
    careful = {"VisibilityTimeout": "60", "RedrivePolicy": redrive}
    jobs = sqs.create_queue(QueueName="dispatch-jobs", Attributes=careful)["QueueUrl"]
    results, failures = (sqs.create_queue(QueueName=f"dispatch-{name}")["QueueUrl"] for name in ("results", "failures"))
    for version in ("v1", "v2"):
        register(reach, version, release)
    machine = reach.client("stepfunctions").create_state_machine(
        name="dispatch", definition=machine_definition(results, failures, release), roleArn=ROLE
    )["stateMachineArn"]
    reach.client("pipes").create_pipe(
        Name="dispatch",
        RoleArn=ROLE,
        Source=_queue_arn(reach, jobs),
        SourceParameters={"SqsQueueParameters": {"BatchSize": 1}},
        Target=machine,
        TargetParameters=_target_parameters(release),
        # A job that is sent twice runs once: its execution is named after it. AWS ignores the tag.
        Tags={"tasuki:execution-name": "$.body.jobId"},
    )
    return Stage(reach, jobs, results, failures, machine, "dispatch")


def _queue_arn(reach: Reach, url: str) -> str:
    found = reach.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(found["Attributes"]["QueueArn"])


def machine_definition(results_url: str, failures_url: str, release: str) -> str:
    """Fill in the template's `${Names}`, as a deployment tool does."""
    values = {"ResultsQueueUrl": results_url, "FailuresQueueUrl": failures_url, "Release": release}
    return re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], (HERE / "machine.asl.json").read_text())


def register(reach: Reach, version: str, release: str) -> None:
    """Register the next revision of an engine's task definition."""
    reach.client("ecs").register_task_definition(
        family=f"routing-{version}",
        containerDefinitions=[
            {
                "name": "engine",
                "image": f"routing-{version}",
                "memory": MEMORY_MIB,
                "essential": True,
                "environment": [{"name": "RELEASE", "value": release}],
            }
        ],
    )


def _target_parameters(release: str) -> dict[str, Any]:
    template = '{"messageId": <$.messageId>, "pipeRelease": "%s", "job": <$.body>}' % release  # noqa: UP031 - braces
    return {
        "InputTemplate": template,
        "StepFunctionStateMachineParameters": {"InvocationType": "FIRE_AND_FORGET"},
    }


def write_images(data: Path, instances: Path, results: Path) -> None:
    """Write the node's `tasuki.toml`: which folder, command and environment an image name stands for."""
    blocks = [
        f"""[images."routing-{version}"]
folder = {documents.dumps(str(HERE / "engines" / version))}
command = ["python", "solve.py"]
venv = {documents.dumps(str(HERE / "engines" / version / ".venv"))}
environment = {{ INSTANCES_FOLDER = {documents.dumps(str(instances))}, RESULTS_FOLDER = {documents.dumps(str(results))} }}
"""
        for version in ("v1", "v2")
    ]
    target = data / "tasuki.toml"
    target.write_text("\n".join(blocks))
    target.chmod(0o600)
