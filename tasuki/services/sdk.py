"""`aws-sdk:SERVICE:ACTION`: any operation of any room, called from a Task or a schedule, in the caller's own unit.

The room's own operation runs, on a request made of the Task's parameters; what it checks and says is what a client
would get. Long polls answer at once. What an operation wrote before it said no is undone.

Step Functions' own operations never step an execution here, since one is in hand: they leave their news in the inbox
(`running.in_hand`).
"""

from dataclasses import dataclass
from typing import Any

from tasuki.language.definition import Resource
from tasuki.language.integration_parameters import SDK_MODELS, sdk_action, unknown_operation
from tasuki.services.holding import held
from tasuki.services.switchboard import Answer, Caller, Switchboard
from tasuki.store.store import Tx
from tasuki.values.errors import DomainError
from tasuki.values.operations import NotYet, Operation, Principal, Request
from tasuki.values.sdk_shapes import read, sdk_name, show
from tasuki.values.service_checks import check
from tasuki.values.service_models import Action

_CALLER = Principal("states.amazonaws.com")


@dataclass(slots=True)
class SdkCall:
    """One operation, as an integration (`switchboard.Integration`)."""

    error_prefix: str
    action: Action
    operation: Operation
    url: str

    def call(self, tx: Tx, parameters: dict[str, Any], caller: Caller) -> Answer:
        """Do it, in this unit. Raises the room's errors, `Validation` and `MissingParameter`."""
        given = read(self.action.input, parameters)
        check(self.action.service, self.action.input, given)
        request = Request(
            service=self.action.service.name,
            operation=self.action.name,
            input=given,
            request_id=tx.chance.uuid(),
            principal=_CALLER,
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
