"""What can be said of a Task's integration before it runs: whether it exists, is served here, and takes its parameters.

AWS accepts most of it at creation, so only `lint` complains.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tasuki.language.check import blocks_of
from tasuki.language.definition import Resource
from tasuki.language.integration_parameters import (
    SDK_MODELS,
    misfit,
    nearest,
    parameter_names,
    sdk_action,
    unknown_operation,
)
from tasuki.language.jsonata_templates import is_query
from tasuki.language.payload import escape
from tasuki.language.resources import parse_resource

OFFERED = frozenset({"ecs:runTask", "events:putEvents", "sqs:sendMessage", "states:startExecution"})
"""Integrations that the rooms plug into the switchboard: a test holds both against each other."""
OFFERED_OF_ECS = frozenset(
    {
        "CreateCluster",
        "DeleteCluster",
        "DeregisterTaskDefinition",
        "DescribeClusters",
        "DescribeTaskDefinition",
        "DescribeTasks",
        "ListClusters",
        "ListTagsForResource",
        "ListTaskDefinitionFamilies",
        "ListTaskDefinitions",
        "ListTasks",
        "RegisterTaskDefinition",
        "RunTask",
        "StopTask",
        "TagResource",
        "UntagResource",
    }
)
"""What the tasks room has of ECS."""
OFFERED_OF_EVENTS = frozenset(
    {
        *(f"{verb}ApiDestination" for verb in ("Create", "Delete", "Describe", "Update")),
        *(f"{verb}Connection" for verb in ("Create", "Deauthorize", "Delete", "Describe", "Update")),
        *(f"{verb}EventBus" for verb in ("Create", "Delete", "Describe", "Update")),
        *(f"{verb}Rule" for verb in ("Delete", "Describe", "Disable", "Enable", "Put")),
        "ListApiDestinations",
        "ListConnections",
        "ListEventBuses",
        "ListRuleNamesByTarget",
        "ListRules",
        "ListTagsForResource",
        "ListTargetsByRule",
        "PutEvents",
        "PutPermission",
        "PutTargets",
        "RemovePermission",
        "RemoveTargets",
        "TagResource",
        "TestEventPattern",
        "UntagResource",
    }
)
"""What the buses room has of EventBridge."""
OFFERED_OF = {"ecs": OFFERED_OF_ECS, "events": OFFERED_OF_EVENTS}
"""Of the other services in `SDK_MODELS` there is everything (tested, too)."""
_PARTS = {"ecs": " (tasks and clusters)", "eventbridge": " (no archives, replays, partners and endpoints)"}
_UNSUPPORTED = re.compile(r'The field "(.*)" is not supported by Step Functions')


class Slip(NamedTuple):
    """A complaint about an integration: code, severity, place, why, fix."""

    code: str
    severity: str
    location: str
    message: str
    fix: str


def states_in(value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Go through every state: its pointer, itself, its query language."""
    root = value.get("QueryLanguage", "JSONPath")
    for pointer, block in blocks_of(value):
        outer = block.get("QueryLanguage", root)
        for name, state in block["States"].items():
            yield f"{pointer}/States/{escape(name)}", state, state.get("QueryLanguage", outer)


def integrations(value: dict[str, Any]) -> Iterator[Slip]:
    """Complain about the integrations of a definition that AWS accepts."""
    for at, state, language in states_in(value):
        resource = parse_resource(state["Resource"]) if state["Type"] == "Task" else None
        if resource is None or resource.kind == "activity":
            continue
        yield from _absent(resource, at)
        field = "Arguments" if language == "JSONata" else "Parameters"
        if resource.kind == "integration" and isinstance(state.get(field), dict):
            yield from _unfit(resource, _known(state[field], language), f"{at}/{field}")


def _absent(resource: Resource, at: str) -> Iterator[Slip]:
    slip = unknown_operation(resource)
    if slip is not None:
        message = f"{slip} The state fails whenever it runs."
        yield Slip("NO_SUCH_OPERATION", "WARNING", f"{at}/Resource", message, "Correct the operation's name.")
    elif not _is_offered(resource):
        name = "lambda:invoke" if resource.kind == "lambda" else f"{resource.resource_type}:{resource.action}"
        yield Slip(
            "NOT_OFFERED_HERE",
            "WARNING",
            f"{at}/Resource",
            f"AWS has {name}, this node has not: the state fails whenever it runs here.",
            f"Catch the failure, or use what is offered: {', '.join([*sorted(OFFERED), *_services()])}.",
        )


def _services() -> list[str]:
    return [f"aws-sdk:{name}:*{_PARTS.get(name, '')}" for name in SDK_MODELS]


def _is_offered(resource: Resource) -> bool:
    if resource.kind != "integration":
        return False
    if not resource.sdk:
        return f"{resource.service}:{resource.action}" in OFFERED
    action = sdk_action(resource.service, resource.action)
    if action is None:
        return False
    offered = OFFERED_OF.get(action.service.name)
    return offered is None or action.name in offered


def _known(template: Any, language: str) -> Any:
    """Answer a template with null for each value that is known only when it runs."""
    if isinstance(template, dict):
        if language == "JSONata":
            return {key: _known(inner, language) for key, inner in template.items()}
        return {
            key.removesuffix(".$"): None if key.endswith(".$") else _known(inner, language)
            for key, inner in template.items()
        }
    if isinstance(template, list):
        return [_known(inner, language) for inner in template]
    return None if language == "JSONata" and is_query(template) else template


def _unfit(resource: Resource, given: Any, at: str) -> Iterator[Slip]:
    wrong = misfit(resource, given)
    if wrong is None:
        return
    names = parameter_names(resource)
    unsupported = _UNSUPPORTED.fullmatch(wrong)
    inside = unsupported is not None and unsupported[1] not in given
    near = nearest(unsupported[1], names) if unsupported is not None and not inside else ""
    fix = f"Did you mean {near}? " if near else ""
    yield Slip(
        "WRONG_PARAMETERS",
        "ERROR",
        at,
        f"{resource.resource_type}:{resource.action} does not take this: {wrong}. "
        "The execution fails here with States.Runtime, which no Catch takes.",
        "It stands inside one of the parameters: correct its name, or remove it."
        if inside
        else f"{fix}It takes {', '.join(names) or 'no parameters'}.",
    )
