"""Whether an integration takes the parameters it is about to be given: asked before the task is scheduled.

Step Functions checks the names, what is required and the JSON types, and fails the state otherwise; the values are the
service's business. Integrations of services that no room offers are not looked at.
"""

from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Literal

from tasuki.language.definition import Resource
from tasuki.language.errors import StatesError
from tasuki.values.documents import dumps
from tasuki.values.sdk_shapes import Misfit, read, sdk_name
from tasuki.values.service_models import Action, service_model

SDK_MODELS = {
    "sqs": "sqs",
    "sfn": "stepfunctions",
    "ecs": "ecs",
    "pipes": "pipes",
    "scheduler": "scheduler",
    "eventbridge": "events",
}
"""Services in `aws-sdk:` resources, and what botocore calls them."""
_PLAIN = {
    ("sqs", "sendMessage"): (
        frozenset({"QueueUrl", "MessageBody"}),
        frozenset({"DelaySeconds", "MessageAttributes", "MessageDeduplicationId", "MessageGroupId"}),
    ),
    ("events", "putEvents"): (frozenset({"Entries"}), frozenset()),
    ("states", "startExecution"): (frozenset({"StateMachineArn"}), frozenset({"Input", "Name", "TraceHeader"})),
}
"""Integrations that take any JSON value somewhere: required and other names (developer guide, "Integrating services")."""


def check_parameters(resource: Resource, given: Any, field: Literal["Parameters", "Arguments"]) -> None:
    """Raise `StatesError` unless an integration takes `given`."""
    if resource.kind != "integration":
        return
    try:
        _check(resource, given)
    except Misfit as wrong:
        cause = f"The {field} '{dumps(given)}' could not be used to start the Task: [{wrong}]"
        raise StatesError("States.Runtime", cause) from None


def misfit(resource: Resource, given: Any) -> str | None:
    """Answer what an integration says of parameters it does not take. A null stands for a value that is not known yet."""
    try:
        _check(resource, given)
    except Misfit as wrong:
        return str(wrong)
    return None


def parameter_names(resource: Resource) -> list[str]:
    """Answer the names of the parameters that an integration takes; none for one that is not looked at."""
    plain = None if resource.sdk else _PLAIN.get((resource.service, resource.action))
    if plain is not None:
        return sorted(plain[0] | plain[1])
    action = sdk_action(resource.service, resource.action)
    return sorted(sdk_name(name) for name in action.input.members) if action is not None else []


def unknown_operation(resource: Resource) -> str | None:
    """Say that one of our services has no operation of this name, and which is nearest; None if it has, or is not ours."""
    if not resource.sdk or sdk_action(resource.service, resource.action) is not None:
        return None
    model = service_model(SDK_MODELS[resource.service]) if resource.service in SDK_MODELS else None
    if model is None:
        return None
    near = nearest(resource.action, [name[:1].lower() + name[1:] for name in model.names()])
    hint = f" The nearest is aws-sdk:{resource.service}:{near}." if near else ""
    return f"{model.spec['metadata']['serviceId'].upper()} has no operation {resource.action}.{hint}"


def nearest(name: str, names: list[str]) -> str:
    """Answer the name that a slip of the pen may have meant, or nothing."""
    by_small = {one.lower(): one for one in names}
    found = get_close_matches(name.lower(), by_small, n=1, cutoff=0.6)
    return by_small[found[0]] if found else ""


def _check(resource: Resource, given: Any) -> None:
    if not resource.sdk:
        names = _PLAIN.get((resource.service, resource.action))
        if names is not None:
            _check_names(given, *names)
        elif (resource.service, resource.action) == ("ecs", "runTask"):
            action = sdk_action("ecs", "runTask")
            assert action is not None
            read(action.input, given, implicit=False)
        return
    action = sdk_action(resource.service, resource.action)
    if action is not None:
        read(action.input, given)


def _check_names(given: Any, required: frozenset[str], others: frozenset[str]) -> None:
    if not isinstance(given, dict):
        raise Misfit("The value must be an OBJECT")
    for name in given:
        if name not in required and name not in others:
            raise Misfit(f'The field "{name}" is not supported by Step Functions')
    for name in sorted(required):
        if name not in given:
            raise Misfit(f"The field '{name}' is required but was missing")


@lru_cache(maxsize=256)
def sdk_action(service: str, action: str) -> Action | None:
    """Answer the operation that `aws-sdk:SERVICE:ACTION` names, if its service is one of ours and has it."""
    model = service_model(SDK_MODELS[service]) if service in SDK_MODELS else None
    return model.action(action[:1].upper() + action[1:]) if model is not None else None
