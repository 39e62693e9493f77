"""`aws-sdk:SERVICE:ACTION`: any operation of any room, called from a Task or a schedule, in the caller's own unit.

The room's own operation runs, on a request made of the Task's parameters; what it checks and says is what a client
would get. Long polls answer at once. What an operation wrote before it said no is undone.

Step Functions' own operations never step an execution here, since one is in hand: they leave their news in the inbox
(`running.in_hand`).

A universal target of Scheduler, `arn:aws:scheduler:::aws-sdk:SERVICE:ACTION`, is the same call (scheduler.md section 5): its
payload is the operation's input in JSON. Members may be written as the API names them (`stateMachineArn`) or as the SDK
does (`StateMachineArn`); both are found in the wild.
"""

import re
from dataclasses import dataclass
from typing import Any

from tasuki.language.definition import Resource
from tasuki.language.integration_parameters import SDK_MODELS, nearest, sdk_action, unknown_operation
from tasuki.services.holding import held
from tasuki.services.switchboard import Answer, Caller, Switchboard
from tasuki.store.store import Tx
from tasuki.values.documents import loads
from tasuki.values.errors import DomainError, MalformedDocument
from tasuki.values.operations import NotYet, Operation, Principal, Request
from tasuki.values.sdk_shapes import Misfit, read, sdk_name, show
from tasuki.values.service_checks import check
from tasuki.values.service_models import Action, Shape, service_model

_CALLER = Principal("states.amazonaws.com")
_SCHEDULER = Principal("scheduler.amazonaws.com")
_UNIVERSAL = re.compile(r"arn:aws[a-z-]*:scheduler:::aws-sdk:([^:]*):([^:]*)")
_UNIVERSAL_MODELS = {**SDK_MODELS, "scheduler": "scheduler", "eventbridge": "events"}
"""Services in universal targets (the SDK's identifiers, in lower case), and what botocore calls them."""
_READ_ONLY = re.compile(
    "get|describe|list|poll|receive|search|scan|query|select|read|lookup|discover|validate|batchGet|batchDescribe|batchRead"
    "|transactGet|adminGet|adminList|testMigration|retrieve|testConnection|translateDocument|isAuthorized|invokeModel"
)
"""How actions begin that Scheduler refuses (user guide, "Using universal targets", unsupported actions)."""


class NotCallable(DomainError):
    """What a universal target names, or is given, is no call."""

    code = "ValidationException"


@dataclass(slots=True)
class SdkCall:
    """One operation, as an integration (`switchboard.Integration`)."""

    error_prefix: str
    action: Action
    operation: Operation
    url: str
    principal: Principal = _CALLER

    def call(self, tx: Tx, parameters: dict[str, Any], caller: Caller) -> Answer:
        """Do it, in this unit. Raises the room's errors, `Validation` and `MissingParameter`."""
        given = read(self.action.input, parameters)
        check(self.action.service, self.action.input, given)
        request = Request(
            service=self.action.service.name,
            operation=self.action.name,
            input=given,
            request_id=tx.chance.uuid(),
            principal=self.principal,
            account=caller.account,
            region=caller.region,
            base_url=self.url,
            trace=caller.trace or None,
        )
        answer = self._run(tx, request)
        return Answer(show(self.action.output, answer.answer if isinstance(answer, NotYet) else answer))

    def _run(self, tx: Tx, request: Request) -> dict[str, Any] | NotYet:
        if self.operation.kind == "read":
            return self.operation.run(tx, request)
        return held(tx, lambda: self.operation.run(tx, request))

    def cancel(self, tx: Tx, handle: str, cause: str) -> None:
        """Do nothing: what was called is done."""


def sdk_call(switchboard: Switchboard, resource: Resource) -> SdkCall | None:
    """Answer the operation that a resource names, or None when no room offers it."""
    action = sdk_action(resource.service, resource.action)
    operation = switchboard.operations.get((action.service.name, action.name)) if action is not None else None
    if action is None or operation is None:
        return None
    prefix = sdk_name(action.service.spec["metadata"]["serviceId"])
    return SdkCall(prefix, action, operation, switchboard.url)


def sdk_services(switchboard: Switchboard) -> list[str]:
    """Answer the services that can be called, by their names in resources."""
    offered = {service for service, _ in switchboard.operations}
    return [f"aws-sdk:{name}:*" for name, model in SDK_MODELS.items() if model in offered]


def why_not_offered(switchboard: Switchboard, resource: Resource) -> str:
    """Say why a resource cannot be called here: a slip in its name, or an operation or service without a room."""
    slip = unknown_operation(resource)
    if slip is not None:
        return f"The resource {resource.arn} does not exist: {slip}"
    model = SDK_MODELS.get(resource.service) if resource.sdk else None
    if model is not None:
        names = sorted(name for service, name in switchboard.operations if service == model)
        if names:
            offered = ", ".join(name[:1].lower() + name[1:] for name in names)
            return f"The resource {resource.arn} is not offered here. Offered of aws-sdk:{resource.service}: {offered}."
    own = sorted(name for name in switchboard.integrations if not name.startswith("aws-sdk:"))
    offered = ", ".join(own + sdk_services(switchboard))
    return f"The resource {resource.arn} is not offered here. Offered: {offered or 'nothing'}."


def sdk_refusal(call: SdkCall, no: DomainError, request_id: str) -> tuple[str, str]:
    """Answer the error name and cause of a call that was refused (states.md section 9; recorded: aws_sdk/*).

    Errors that the service's model doesn't know have the service's own name.
    """
    prefix = call.error_prefix
    known = call.action.service.error(no.code) is not None
    name = no.code if known else prefix
    if not name.endswith("Exception"):
        name += "Exception"
    where = f"(Service: {prefix}, Status Code: {no.status}, Request ID: {request_id}) (SDK Attempt Count: 1)"
    return f"{prefix}.{name}", f"{no.message} {where}"


# -- universal targets ------------------------------------------------------------------------------------------


def is_universal(arn: str) -> bool:
    """Tell whether an ARN has the form of a universal target."""
    return arn.startswith("arn:aws") and ":scheduler:::aws-sdk:" in arn


def universal_problem(switchboard: Switchboard, arn: str) -> str | None:
    """Answer None if a universal target can be called here, else why not: for whoever creates a schedule."""
    try:
        _universal_call(switchboard, arn)
    except NotCallable as no:
        return no.message
    return None


def call_universal(switchboard: Switchboard, tx: Tx, arn: str, payload: str, caller: Caller) -> str:
    """Call a universal target in this unit; answer what it became: an execution's or task's ARN, a message's id, or nothing.

    Raises `NotCallable`, and what the operation raises.
    """
    call = _universal_call(switchboard, arn)
    try:
        parameters = loads(payload)
    except MalformedDocument as bad:
        raise NotCallable(f"The input of {arn} must be a JSON object with the operation's parameters: {bad}") from None
    try:
        output = call.call(tx, _in_sdk_names(call.action.input, parameters), caller).output
    except Misfit as wrong:
        said = str(wrong).replace("Step Functions", call.action.name)
        raise NotCallable(f"The input of {arn} does not fit the operation: {said}") from None
    tasks = output.get("Tasks") or [{}]
    return str(output.get("ExecutionArn") or output.get("MessageId") or tasks[0].get("TaskArn") or "")


def _universal_call(switchboard: Switchboard, arn: str) -> SdkCall:
    found = _UNIVERSAL.fullmatch(arn)
    if found is None:
        raise NotCallable(f"{arn} is not a universal target: arn:aws:scheduler:::aws-sdk:SERVICE:ACTION.")
    service, action = found.groups()
    rooms = {name for name, _ in switchboard.operations}
    model = _UNIVERSAL_MODELS.get(service)
    offered = sorted(name for name, of in _UNIVERSAL_MODELS.items() if of in rooms)
    if model is None or model not in rooms:
        near = nearest(service, offered)
        hint = f" Did you mean {near}?" if near else ""
        raise NotCallable(f"No service {service} is offered here ({arn}). Offered: {', '.join(offered)}.{hint}")
    actions = service_model(model)
    assert actions is not None, "a room has its service's model"
    if action[:1].isupper():
        raise NotCallable(
            f"Actions begin with a lower-case letter: {action[:1].lower() + action[1:]}, not {action} ({arn})."
        )
    known = actions.action(action[:1].upper() + action[1:])
    if known is None:
        near = nearest(action, [name[:1].lower() + name[1:] for name in actions.names()])
        hint = f" Did you mean {near}?" if near else ""
        raise NotCallable(f"The service {service} has no action {action} ({arn}).{hint}")
    if _READ_ONLY.match(action):
        raise NotCallable(f"{action} only reads: Scheduler does not take it as a target ({arn}).")
    operation = switchboard.operations.get((model, known.name))
    if operation is None:
        raise NotCallable(f"The action {action} of {service} is not offered here ({arn}).")
    prefix = sdk_name(actions.spec["metadata"]["serviceId"])
    return SdkCall(prefix, known, operation, switchboard.url, _SCHEDULER)


def read_either(shape: Shape, value: Any) -> dict[str, Any]:
    """Turn parameters into an operation's input, whether written as the API or as the SDK names them. Raises `Misfit`."""
    return read(shape, _in_sdk_names(shape, value), implicit=False)


def _in_sdk_names(shape: Shape, value: Any) -> Any:
    """Answer parameters with their members named as the SDK does; what the model does not know stays as it is."""
    if shape.document:
        return value
    if shape.kind == "list" and isinstance(value, list):
        return [_in_sdk_names(shape.element.shape, inner) for inner in value]
    if shape.kind == "map" and isinstance(value, dict):
        return {key: _in_sdk_names(shape.pair[1].shape, inner) for key, inner in value.items()}
    if shape.kind == "structure" and isinstance(value, dict):
        by_sdk = {sdk_name(name): name for name in shape.members}
        named = {}
        for key, inner in value.items():
            name = key if key in shape.members else by_sdk.get(key)
            named[key if name is None else sdk_name(name)] = (
                inner if name is None else _in_sdk_names(shape.members[name].shape, inner)
            )
        return named
    return value
