"""A rule's targets: what they may be, and what a delivery to one is. Pure.

PutTargets accepts a target that isn't there, as AWS does; what is sent to it goes to its dead-letter queue. A target of a
service that has no room here is refused at once, since nothing could ever reach it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tasuki.rules.paths import MISSING, compile_path
from tasuki.services.buses.errors import ValidationException
from tasuki.services.buses.inputs import Renderer, Seen, compile_input
from tasuki.services.buses.model import MAX_AGE_MS, MAX_RETRIES
from tasuki.services.switchboard import PAYLOAD
from tasuki.values.arns import Arn, parse_arn
from tasuki.values.documents import dumps
from tasuki.values.instant import SECOND

_NEEDS_ROLE = frozenset({"ecs", "states"})
_KINDS = {
    "sqs": "standard SQS queues",
    "states": "Step Functions state machines",
    "ecs": "ECS clusters (with EcsParameters)",
    "events": "event buses and API destinations",
}
_Parameters: TypeAlias = Callable[[Seen], dict[str, Any]]
"""Takes what was seen, answers what the target's room wants to know."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A compiled target."""

    rule: str
    """The rule's ARN."""
    arn: str
    render: Renderer
    parameters: _Parameters
    max_age_ms: int
    max_retries: int
    dead_letter: str | None


def compile_target(target: Mapping[str, Any], rule_arn: str, rule_name: str) -> Aim:
    """Check and compile a target as PutTargets gives it. Raises `ValidationException`."""
    policy = target.get("RetryPolicy") or {}
    arn = parse_arn(target["Arn"])
    assert arn is not None, "a target that is offered has an ARN"
    render = compile_input(target, rule_arn, rule_name)
    return Aim(
        rule=rule_arn,
        arn=target["Arn"],
        render=render,
        parameters=_parameters(arn, target),
        max_age_ms=policy["MaximumEventAgeInSeconds"] * SECOND if "MaximumEventAgeInSeconds" in policy else MAX_AGE_MS,
        max_retries=policy.get("MaximumRetryAttempts", MAX_RETRIES),
        dead_letter=_dead_letter(target),
    )


def unoffered(target: Mapping[str, Any], offered: Mapping[str, Any]) -> str | None:
    """Say why nothing could ever be delivered to a target here, or None."""
    arn = parse_arn(target["Arn"])
    if arn is not None and arn.service in offered and _is_offered(arn):
        return None
    kinds = ", ".join(words for service, words in _KINDS.items() if service in offered)
    return f"The target {target['Arn']} is not offered here. Offered are {kinds or 'no targets'}."


def _is_offered(arn: Arn) -> bool:
    if arn.service == "events":
        return _is_bus(arn) or _is_destination(arn)
    return not (arn.service == "sqs" and arn.resource.endswith(".fifo"))


def _is_bus(arn: Arn) -> bool:
    return arn.service == "events" and arn.resource.startswith("event-bus/")


def _is_destination(arn: Arn) -> bool:
    return arn.service == "events" and arn.resource.startswith("api-destination/")


def _dead_letter(target: Mapping[str, Any]) -> str | None:
    text: str | None = (target.get("DeadLetterConfig") or {}).get("Arn")
    if text is None:
        return None
    arn = parse_arn(text)
    if arn is None or arn.service != "sqs" or arn.resource.endswith(".fifo"):
        raise ValidationException(
            f"DeadLetterConfig.Arn of target {target['Id']} must be the ARN of a standard SQS queue; it is {text}."
        )
    return text


def _parameters(arn: Arn, target: Mapping[str, Any]) -> _Parameters:
    if arn.service in _NEEDS_ROLE and not target.get("RoleArn"):
        raise ValidationException(f"RoleArn is required for target {target['Arn']}.")
    if arn.service == "ecs":
        return _of_task(target)
    if arn.service == "sqs":
        group = (target.get("SqsParameters") or {}).get("MessageGroupId")
        given = {"MessageGroupId": group} if group else {}
        return lambda _seen: given
    if arn.service == "states":
        return lambda _seen: {"InvocationType": "FIRE_AND_FORGET"}
    if _is_bus(arn):
        if any(target.get(name) for name in ("Input", "InputPath", "InputTransformer")):
            raise ValidationException(
                f"Target {target['Id']} is an event bus, which gets events as they are: leave out Input, InputPath and "
                "InputTransformer."
            )
        return lambda _seen: {}
    return _of_request(target)


def _of_task(target: Mapping[str, Any]) -> _Parameters:
    """RunTask's parameters; of the event nothing is passed on unless the target says what (scheduler.md section 9)."""
    given = target.get("EcsParameters")
    if not given:
        raise ValidationException(f"EcsParameters is required for target {target['Arn']}.")
    run = {key: value for key, value in given.items() if key not in {"TaskDefinitionArn", "TaskCount"}}
    run = pascal({"TaskDefinition": given["TaskDefinitionArn"], "Count": given.get("TaskCount", 1), **run})
    if any(target.get(name) for name in ("Input", "InputPath", "InputTransformer")):
        run["Overrides"] = PAYLOAD
    return lambda _seen: run


def _of_request(target: Mapping[str, Any]) -> _Parameters:
    """HttpParameters; a whole value that is a path finds it in the event (user guide, "Dynamic path parameters")."""
    given = target.get("HttpParameters") or {}

    def parameters(seen: Seen) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, list):
                found[name] = [_found(one, seen) for one in value]
            else:
                found[name] = {key: _found(one, seen) for key, one in value.items()}
        return found

    return parameters


def _found(text: str, seen: Seen) -> str:
    find = compile_path(text) if text.startswith("$.") else None
    if find is None:
        return text
    value = find(seen.event)
    if value is MISSING:
        return ""
    return value if isinstance(value, str) else dumps(value)


def pascal(value: Any) -> Any:
    """Raise the first letter of every member name, at every depth."""
    if isinstance(value, dict):
        return {key[:1].upper() + key[1:]: pascal(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [pascal(inner) for inner in value]
    return value
