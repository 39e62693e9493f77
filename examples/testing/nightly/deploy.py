"""Deploys the nightly scoring with boto3: the same calls on AWS, on a Tasuki node and in a test."""

import json
from typing import Any

import boto3

ROLE = "arn:aws:iam::000000000000:role/nightly"
# The day that a run is for, in Tokyo: given, or that of the planned time, or none. Never "today".
SCHEDULED_DATE = (
    "{% $type($states.input.scheduledDate) = 'string' ? $states.input.scheduledDate"
    " : $type($states.input.scheduledTime) = 'string'"
    " ? $fromMillis($toMillis($states.input.scheduledTime), '[Y0001]-[M01]-[D01]', '+0900') : '' %}"
)
MACHINE = {
    "StartAt": "ScheduledDate",
    "States": {
        "ScheduledDate": {
            "Type": "Pass",
            "QueryLanguage": "JSONata",
            "Output": {"scheduledDate": SCHEDULED_DATE},
            "Next": "Score",
        },
        "Score": {
            "Type": "Task",
            "Resource": "arn:aws:states:::ecs:runTask.sync",
            "Parameters": {
                "LaunchType": "FARGATE",
                "TaskDefinition": "score",
                "Overrides": {
                    "ContainerOverrides": [
                        {
                            "Name": "main",
                            "Environment": [{"Name": "SCHEDULED_DATE", "Value.$": "$.scheduledDate"}],
                        }
                    ]
                },
            },
            "ResultPath": None,
            "Retry": [
                {"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 300, "BackoffRate": 2, "MaxAttempts": 2}
            ],
            "End": True,
        },
    },
}


def deploy() -> None:
    """Make the results queue, the task definition, the machine and its schedule."""
    sqs, ecs, states = boto3.client("sqs"), boto3.client("ecs"), boto3.client("stepfunctions")
    dead = queue(sqs, "results-dead")
    redrive = {"deadLetterTargetArn": dead, "maxReceiveCount": 3}
    queue(sqs, "results", VisibilityTimeout="60", RedrivePolicy=json.dumps(redrive))
    ecs.register_task_definition(
        family="score",
        requiresCompatibilities=["FARGATE"],
        networkMode="awsvpc",
        cpu="256",
        memory="512",
        containerDefinitions=[{"name": "main", "image": "score"}],
    )
    machine = states.create_state_machine(name="nightly", definition=json.dumps(MACHINE), roleArn=ROLE)
    boto3.client("scheduler").create_schedule(
        Name="nightly",
        ScheduleExpression="cron(0 1 * * ? *)",
        ScheduleExpressionTimezone="Asia/Tokyo",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={
            "Arn": machine["stateMachineArn"],
            "RoleArn": ROLE,
            "Input": '{"scheduledTime": "<aws.scheduler.scheduled-time>"}',
        },
    )


def queue(sqs: Any, name: str, **attributes: str) -> str:
    """Make a queue; answer its ARN."""
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(found["Attributes"]["QueueArn"])
