"""What a user of the kit would deploy: through boto3 only, as the environment leads it."""

import json
from typing import Any

import boto3

ROLE = "arn:aws:iam::000000000000:role/any"
RUN = "arn:aws:states:::ecs:runTask.sync"


def task_definition(family: str, **container: Any) -> str:
    one = {"name": "main", "image": family, "memory": 512, **container}
    made = boto3.client("ecs").register_task_definition(family=family, containerDefinitions=[one])
    return str(made["taskDefinition"]["taskDefinitionArn"])


def machine(name: str, **states: dict[str, Any]) -> str:
    names = list(states)
    chained = {
        one: state
        if {"End", "Next"} & state.keys() or state["Type"] in {"Fail", "Succeed"}
        else {**state, **after(names, one)}
        for one, state in states.items()
    }
    definition = json.dumps({"StartAt": names[0], "States": chained})
    made = boto3.client("stepfunctions").create_state_machine(name=name, definition=definition, roleArn=ROLE)
    return str(made["stateMachineArn"])


def after(names: list[str], name: str) -> dict[str, Any]:
    at = names.index(name) + 1
    return {"Next": names[at]} if at < len(names) else {"End": True}


def job(family: str, environment: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = {"TaskDefinition": family}
    if environment:
        pairs = [
            {"Name": name.removesuffix(".$"), "Value.$" if name.endswith(".$") else "Value": value}
            for name, value in environment.items()
        ]
        parameters["Overrides"] = {"ContainerOverrides": [{"Name": "main", "Environment": pairs}]}
    return {"Type": "Task", "Resource": RUN, "Parameters": parameters, "ResultPath": None, **more}


def start(arn: str, given: Any = None, **more: Any) -> str:
    text = json.dumps({} if given is None else given)
    return str(boto3.client("stepfunctions").start_execution(stateMachineArn=arn, input=text, **more)["executionArn"])


def queue(name: str, **attributes: Any) -> str:
    given = {key: str(value) for key, value in attributes.items()}
    return str(boto3.client("sqs").create_queue(QueueName=name, Attributes=given)["QueueUrl"])
