"""Names, ARNs and answers of machines and executions. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from tasuki.services.machines.errors import InvalidArn, InvalidName, LabelledArn, TooManyTags
from tasuki.values.arns import Arn, parse_arn
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import Instant

NAME_MAX = 80
"""Characters in the name of a machine or execution (API model)."""
TAGS_MAX = 50
LOGGING_OFF = {"level": "OFF", "includeExecutionData": False}
TRACING_OFF = {"enabled": False}

_FORBIDDEN = re.compile(r"[\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")


def check_name(name: str) -> str:
    """Answer `name`. Raises `InvalidName` (CreateStateMachine, "A name must not contain")."""
    if not 0 < len(name) <= NAME_MAX or _FORBIDDEN.search(name):
        raise InvalidName(name)
    return name


def machine_arn(account: str, region: str, name: str) -> str:
    """Build a machine's ARN."""
    return f"arn:aws:states:{region}:{account}:stateMachine:{name}"


def execution_arn(account: str, region: str, machine: str, name: str) -> str:
    """Build the ARN of a Standard execution."""
    return f"arn:aws:states:{region}:{account}:execution:{machine}:{name}"


def express_arn(account: str, region: str, machine: str, name: str, identity: str) -> str:
    """Build the ARN of an Express execution; `identity` is a UUID, since names may repeat."""
    return f"arn:aws:states:{region}:{account}:express:{machine}:{name}:{identity}"


def parse_machine_arn(text: str) -> tuple[Arn, str]:
    """Take a machine's ARN apart: (parts, machine name).

    A version or alias (`...:NAME:3`) answers a name with a colon, which no machine has.
    Raises InvalidArn, LabelledArn.
    """
    parts = _states_arn(text)
    kind, _, name = parts.resource.partition(":")
    if kind != "stateMachine" or not name:
        raise InvalidArn(f"Resource type not valid in this context: {kind}")
    if "/" in name:
        raise LabelledArn(text)
    return parts, name


def parse_execution_arn(text: str) -> tuple[Arn, str, str]:
    """Take an execution's ARN apart: (parts, machine name, execution name). Raises `InvalidArn`."""
    parts = _states_arn(text)
    kind, _, rest = parts.resource.partition(":")
    if kind != "execution":
        raise InvalidArn(f"Resource type not valid in this context: {kind}")
    machine, _, name = rest.partition(":")
    if not machine or not name:
        raise InvalidArn(f"Invalid ARN prefix: {text}")
    return parts, machine, name


def _states_arn(text: str) -> Arn:
    parts = parse_arn(text)
    if parts is None or parts.service != "states":
        raise InvalidArn(f"Invalid ARN prefix: {text}")
    return parts


def merged_tags(tags: list[dict[str, str]], more: list[dict[str, Any]], arn: str) -> list[dict[str, str]]:
    """Answer tags with more put in, each key once, in the order they came. Raises `TooManyTags`."""
    merged = {tag["key"]: tag["value"] for tag in tags}
    merged.update({tag.get("key", ""): tag.get("value", "") for tag in more})
    if len(merged) > TAGS_MAX:
        raise TooManyTags(arn)
    return [{"key": key, "value": value} for key, value in merged.items()]


def same_settings(stored: str, given: Mapping[str, Any] | None, default: Mapping[str, Any]) -> bool:
    """Tell whether a stored configuration is the one that is given."""
    return bool(loads(stored) == settings(given, default))


def settings(given: Mapping[str, Any] | None, default: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a configuration with its defaults filled in."""
    return {**default, **(given or {})}


def encode_settings(given: Mapping[str, Any] | None, default: Mapping[str, Any]) -> str:
    """Answer a configuration as it is stored."""
    return dumps(settings(given, default))


def redrive_facts(status: str) -> dict[str, Any]:
    """Answer what DescribeExecution says about redriving."""
    if status in {"SUCCEEDED", "RUNNING"}:
        return {
            "redriveCount": 0,
            "redriveStatus": "NOT_REDRIVABLE",
            "redriveStatusReason": f"Execution is {status} and cannot be redriven",
        }
    return {"redriveCount": 0, "redriveStatus": "REDRIVABLE"}


def trace_header(hex24: str, now: Instant) -> str:
    """Make a correlation id in the form of a trace header: `Root=1-8hex-24hex` (X-Ray, "Tracing header")."""
    return f"Root=1-{now // 1000:08x}-{hex24}"
