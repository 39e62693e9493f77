"""What a schedule can call: templated targets, one for each kind of room, and universal ones.

===========  ===========================================  =======================================================================
target       Arn                                          Input
===========  ===========================================  =======================================================================
machine      `arn:aws:states:R:A:stateMachine:NAME`       JSON: the execution's input
queue        `arn:aws:sqs:R:A:NAME`                       any text: the message
cluster      `arn:aws:ecs:R:A:cluster/NAME`, and          JSON object: RunTask's `overrides`
             EcsParameters
event bus    `arn:aws:events:R:A:event-bus/NAME`, and     JSON object: the event's detail
             EventBridgeParameters
universal    `arn:aws:scheduler:::aws-sdk:SERVICE:ACTION` JSON object: the operation's input
===========  ===========================================  =======================================================================

Without Input a target gets a notification that says which schedule fired when (`notification`); tasks get no overrides, and an
operation no input.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasuki.services.schedules.errors import ValidationException
from tasuki.services.sdk import is_universal, universal_problem
from tasuki.services.switchboard import PAYLOAD, Switchboard
from tasuki.values import documents
from tasuki.values.arns import Arn, parse_arn
from tasuki.values.errors import MalformedDocument

MAX_INPUT_BYTES = 262_144
UNIVERSAL = "universal"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of templated target: what stands behind the account in its ARN, and what it takes."""

    what: str
    resource: str
    block: str | None = None
    needs_block: bool = False
    takes: str = ""
    """`json`, `object` or empty: any text."""


KINDS = {
    "states": Kind("state machines", "stateMachine:", takes="json"),
    "sqs": Kind("standard queues", "", block="SqsParameters"),
    "ecs": Kind("clusters (with EcsParameters)", "cluster/", block="EcsParameters", needs_block=True, takes="object"),
    "events": Kind(
        "event buses (with EventBridgeParameters)",
        "event-bus/",
        block="EventBridgeParameters",
        needs_block=True,
        takes="object",
    ),
}
"""By the service part of the ARN."""
_BLOCKS = (
    "EcsParameters",
    "EventBridgeParameters",
    "EventBridgePutEventsV2Parameters",
    "EventBridgePutRawEventsParameters",
    "KinesisParameters",
    "SageMakerPipelineParameters",
    "SqsParameters",
)


def check_target(switchboard: Switchboard, target: Mapping[str, Any]) -> None:
    """Refuse a target that this house can never call. Raises `ValidationException` with the field and what is offered."""
    text = target["Arn"]
    arn = parse_arn(text)
    if arn is None or "\0" in text:
        raise ValidationException(f"Target.Arn {text} is not an ARN. {_offered(switchboard)}")
    blocks = [name for name in _BLOCKS if target.get(name) is not None]
    if len(blocks) > 1:
        raise ValidationException(f"Target has {' and '.join(blocks)}; give at most one, the one of its Arn.")
    if is_universal(text):
        problem = universal_problem(switchboard, text)
        if problem is not None:
            raise ValidationException(f"Target.Arn: {problem}")
        kind = Kind(UNIVERSAL, "", takes="object")
    else:
        kind = _templated(switchboard, arn)
    if blocks and blocks[0] != kind.block:
        raise ValidationException(f"Target.{blocks[0]} is not for {text}: leave it out.")
    if kind.needs_block and not blocks:
        raise ValidationException(f"Target.{kind.block} must be given for {text}.")
    _check_input(target.get("Input"), kind, text)


def _templated(switchboard: Switchboard, arn: Arn) -> Kind:
    kind = KINDS.get(arn.service)
    if kind is None or arn.service not in switchboard.targets or not arn.resource.startswith(kind.resource):
        raise ValidationException(f"Target.Arn {arn} can't be called here. {_offered(switchboard)}")
    if arn.service == "sqs" and arn.resource.endswith(".fifo"):
        raise ValidationException(
            f"Target.Arn {arn} is a FIFO queue, which is not offered yet. {_offered(switchboard)}"
        )
    return kind


def _offered(switchboard: Switchboard) -> str:
    kinds = [kind.what for service, kind in KINDS.items() if service in switchboard.targets]
    return (
        f"This Tasuki offers {', '.join((*kinds, 'arn:aws:scheduler:::aws-sdk:SERVICE:ACTION of its own services'))}."
    )


def _check_input(text: str | None, kind: Kind, arn: str) -> None:
    if text is None:
        return
    if len(text) > MAX_INPUT_BYTES // 4 and (size := len(text.encode())) > MAX_INPUT_BYTES:
        raise ValidationException(f"Target.Input has {size} bytes; at most {MAX_INPUT_BYTES} are allowed.")
    if not kind.takes:
        return
    try:
        value = documents.loads(text)
    except MalformedDocument as bad:
        raise ValidationException(f"Target.Input must be well-formed JSON for {arn}: {bad}.") from None
    if kind.takes == "object" and not isinstance(value, dict):
        raise ValidationException(f"Target.Input must be a JSON object for {arn}.")


# -- what a delivery says -----------------------------------------------------------------------------------


def parameters(target: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a target's parameters as `switchboard.Target` wants them, but for what comes out of Input."""
    arn = parse_arn(target["Arn"])
    assert arn is not None, "a target was checked"
    if arn.service == "states":
        return {"InvocationType": "FIRE_AND_FORGET"}
    if arn.service == "ecs":
        return _run_task(target["EcsParameters"])
    return dict(target.get(KINDS[arn.service].block or "") or {}) if arn.service in KINDS else {}


def notification(arn: str, account: str, region: str, time: str, event_id: str) -> str:
    """Answer what a target gets that was given no Input (seen in the wild: `detail` is text)."""
    return documents.dumps(
        {
            "version": "0",
            "id": event_id,
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": account,
            "time": time,
            "region": region,
            "resources": [arn],
            "detail": "{}",
        }
    )


def _run_task(given: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {"TaskDefinitionArn": "TaskDefinition", "TaskCount": "Count"}
    made = {renamed.get(name, name): value for name, value in given.items() if name != "Tags"}
    if given.get("Tags"):
        made["Tags"] = [tag for one in given["Tags"] for tag in _tags(one)]
    return {**made, "Overrides": PAYLOAD}


def _tags(one: Mapping[str, str]) -> list[dict[str, str]]:
    """Answer the tags of one map: `{"key": K, "value": V}` in any case, or `{K: V}`. The model says only: a map of texts."""
    lower = {name.lower(): value for name, value in one.items()}
    if set(lower) == {"key", "value"}:
        return [{"Key": lower["key"], "Value": lower["value"]}]
    return [{"Key": name, "Value": value} for name, value in one.items()]
