"""What both acts need in the house: queues, a task definition, a machine, a schedule. Made with AWS's calls, as on AWS."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Client: TypeAlias = Callable[[str], Any]
"""Answers an AWS client of a service."""

HERE = Path(__file__).resolve().parent
ROLE = "arn:aws:iam::000000000000:role/clock"
ZONE = "Asia/Tokyo"
IMAGE = "score"
INPUT = '{"scheduledTime": "<aws.scheduler.scheduled-time>"}'
"""The planned time, put in by the schedule. An encoder that writes `<` as `\\u003c` would undo it: see `tasuki lint`."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The story's resources."""

    client: Client
    results_url: str
    machine_arn: str

    def schedule(self, name: str, expression: str) -> str:
        """Start the machine when an expression is due in Tokyo; answer the schedule's ARN."""
        made = self.client("scheduler").create_schedule(
            Name=name,
            ScheduleExpression=expression,
            ScheduleExpressionTimezone=ZONE,
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": self.machine_arn, "RoleArn": ROLE, "Input": INPUT},
        )
        return str(made["ScheduleArn"])

    def take(self) -> list[str]:
        """Receive and delete what the results queue has now; answer the bodies."""
        sqs, bodies = self.client("sqs"), []
        while found := sqs.receive_message(QueueUrl=self.results_url, MaxNumberOfMessages=10).get("Messages"):
            for message in found:
                sqs.delete_message(QueueUrl=self.results_url, ReceiptHandle=message["ReceiptHandle"])
                bodies.append(str(message["Body"]))
        return bodies


def build(client: Client) -> Stage:
    """Create everything but the schedule."""
    results, failures = (client("sqs").create_queue(QueueName=name)["QueueUrl"] for name in ("results", "failures"))
    client("ecs").register_task_definition(
        family=IMAGE,
        requiresCompatibilities=["FARGATE"],
        networkMode="awsvpc",
        cpu="256",
        memory="512",
        containerDefinitions=[{"name": "main", "image": IMAGE}],
    )
    text = (HERE / "machine.asl.json").read_text()
    definition = text.replace("${ResultsQueueUrl}", results).replace("${FailuresQueueUrl}", failures)
    made = client("stepfunctions").create_state_machine(name="nightly", definition=definition, roleArn=ROLE)
    return Stage(client, results, made["stateMachineArn"])
