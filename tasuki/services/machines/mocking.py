"""Mocked results of TestState, compared with what the service would have answered.

The shapes come from the services' models; fields are named as Step Functions names them (`ExecutionArn`, where the API
says `executionArn`). Words of complaints as recorded: state:field_validation_mode/*.
"""

from typing import Any

from tasuki.language.definition import Resource
from tasuki.services.machines.errors import ValidationException
from tasuki.values.sdk_shapes import sdk_name
from tasuki.values.service_models import Member, Shape, service_model

_SERVICES = {
    "states": "stepfunctions",
    "sfn": "stepfunctions",
    "eventbridge": "events",
    "cloudwatchlogs": "logs",
    "elasticmapreduce": "emr",
    "elasticloadbalancing": "elb",
    "elasticloadbalancingv2": "elbv2",
    "costexplorer": "ce",
    "databasemigration": "dms",
    "directory": "ds",
    "cognitoidentityprovider": "cognito-idp",
    "servicediscovery": "servicediscovery",
    "sagemakerruntime": "sagemaker-runtime",
    "apigateway": "apigateway",
}
"""Step Functions' names of services that are not botocore's."""
_POLLED: dict[tuple[str, str], tuple[str, ...]] = {
    ("states", "startExecution"): ("DescribeExecution",),
    ("ecs", "runTask"): ("DescribeTasks", "tasks"),
    ("batch", "submitJob"): ("DescribeJobs", "jobs"),
    ("glue", "startJobRun"): ("GetJobRun", "JobRun"),
    ("codebuild", "startBuild"): ("BatchGetBuilds", "builds"),
    ("athena", "startQueryExecution"): ("GetQueryExecution",),
}
"""What a `.sync` task's result is: the operation that is polled, and the member of its answer."""
_TEXTS = frozenset({"string", "character", "timestamp"})
_NUMBERS = frozenset({"integer", "long", "float", "double", "short", "bigdecimal", "biginteger"})
_DEEPEST = 40
_PREFIX = "Mock result schema validation error: "


def check_result(resource: Resource, result: Any, *, strict: bool) -> None:
    """Compare a mocked result with the service's shape. `strict` demands what is required. Raises `ValidationException`."""
    shape = _shape_of(resource)
    if shape is None:
        return
    if not isinstance(result, dict):
        raise ValidationException("Mocked result must be a JSON object.")
    # `.sync:2` answers Input and Output as documents, which the model calls texts.
    free = frozenset({"Input", "Output"}) if resource.pattern == "sync:2" else frozenset()
    complaint = _complaint(shape, result, strict, free, 0)
    if complaint is not None:
        raise ValidationException(_PREFIX + complaint)


def _shape_of(resource: Resource) -> Shape | None:
    """Answer the shape of a task's result; None when anything goes."""
    if resource.kind != "integration" or resource.pattern == "waitForTaskToken":
        return None
    name = _SERVICES.get(resource.service, resource.service)
    polled = _POLLED.get((resource.service, resource.action)) if resource.pattern else (_pascal(resource.action),)
    if polled is None:
        return None
    operation, *members = polled
    service = service_model(name)
    action = service.action(operation) if service is not None else None
    shape = action.output if action is not None else None
    for member in members:
        if shape is None:
            return None
        shape = shape.members[member].shape
        if shape.kind == "list":
            shape = shape.element.shape
    return shape


def _complaint(shape: Shape, value: dict[str, Any], strict: bool, free: frozenset[str], depth: int) -> str | None:
    """Answer what is wrong with an object, or None."""
    if depth > _DEEPEST:
        return None
    if strict:
        for name in shape.required:
            if not _names(name) & value.keys():
                return f"Required field '{_pascal(name)}' is missing"
    for name, member in shape.members.items():
        for shown in sorted(_names(name) & value.keys()):
            if shown not in free and value[shown] is not None:
                found = _wrong(member.shape, value[shown], shown, strict, depth)
                if found is not None:
                    return found
    return None


def _wrong(shape: Shape, value: Any, name: str, strict: bool, depth: int) -> str | None:
    """Answer what is wrong with the value of a field, or None. A blob may be anything: Step Functions decodes it."""
    kind = shape.kind
    if kind in _TEXTS:
        if not isinstance(value, str):
            return f"Field '{name}' must be a string"
        return f"Field '{name}' is not an expected value" if shape.enum and value not in shape.enum else None
    if kind in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"Field '{name}' must be a number"
        if shape.minimum is not None and value < shape.minimum:
            return f"Field '{name}' is less than the minimum value"
        return (
            f"Field '{name}' exceeds the maximum value" if shape.maximum is not None and value > shape.maximum else None
        )
    if kind == "boolean":
        return None if isinstance(value, bool) else f"Field '{name}' must be a boolean"
    if kind == "structure" and not shape.document:
        if not isinstance(value, dict):
            return f"Field '{name}' must be an object"
        return _complaint(shape, value, strict, frozenset(), depth + 1)
    if kind == "list":
        if not isinstance(value, list):
            return f"Field '{name}' must be an array"
        return _first(shape.element, value, name, strict, depth)
    if kind == "map":
        if not isinstance(value, dict):
            return f"Field '{name}' must be an object"
        return _first(shape.pair[1], list(value.values()), name, strict, depth)
    return None


def _first(member: Member, values: list[Any], name: str, strict: bool, depth: int) -> str | None:
    if depth > _DEEPEST:
        return None
    found = (_wrong(member.shape, value, name, strict, depth + 1) for value in values if value is not None)
    return next((one for one in found if one is not None), None)


def _names(member: str) -> frozenset[str]:
    """Answer how Step Functions may spell a member: its first letter upper, or as the Java SDK writes its words."""
    return frozenset({_pascal(member), sdk_name(member)})


def _pascal(member: str) -> str:
    return member[:1].upper() + member[1:]
