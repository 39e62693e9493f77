"""What the room plugs into the switchboard: buses as targets, `events:putEvents`, and what its own deliveries say."""

from collections.abc import Mapping
from typing import Any

from tasuki.services.buses.errors import FailedEntry, InvalidJson, NoSuchBus, ValidationException
from tasuki.services.buses.model import Bus, Event
from tasuki.services.buses.polls import HOPS, INVALID
from tasuki.services.buses.putting import MOST_BYTES, is_detail, keep, pass_on, put_all
from tasuki.services.buses.shelf import find_bus
from tasuki.services.switchboard import NOTHING, Answer, Caller, Delivery, Refusal, Target
from tasuki.store.store import Tx
from tasuki.values.arns import parse_arn
from tasuki.values.documents import dumps
from tasuki.values.sdk_shapes import Misfit, read
from tasuki.values.service_checks import check
from tasuki.values.service_models import Action, service_model

MOST_ENTRIES = 10


class BusTarget:
    """A bus as pipes, schedules and rules see it (switchboard `Target`); API destinations are handed on to `destinations`.

    The payload becomes an event's detail: a JSON object, anything else is refused. What comes from a rule of another bus passes
    as it is.
    """

    takes_arrays = False
    takes_text = False

    def __init__(self, destinations: Target | None = None) -> None:
        self._destinations = destinations

    def check(self, tx: Tx, arn: str, parameters: dict[str, Any]) -> str | None:
        """Answer None if the bus is there and the event will have a type and a source, else why not."""
        other = self._other(arn)
        if other is not None:
            return other.check(tx, arn, parameters)
        if _find(tx, arn) is None:
            return f"Event bus {arn} does not exist."
        missing = [name for name in ("DetailType", "Source") if not parameters.get(name)]
        if missing:
            return f"{missing[0]} is required for events to {arn}."
        if str(parameters["Source"]).startswith("aws."):
            return f"Source {parameters['Source']} is not allowed: what begins with aws. is reserved."
        return None

    def waits(self, tx: Tx, arn: str) -> bool | None:
        """Nothing answers an event."""
        other = self._other(arn)
        if other is not None:
            return other.waits(tx, arn)
        return False if _find(tx, arn) is not None else None

    def deliver(
        self,
        tx: Tx,
        arn: str,
        payload: str,
        name: str | None,
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,
    ) -> str:
        """Put an event on the bus; answer its id. Raises `NoSuchBus`, `ThirdBus`, `ValidationException`."""
        other = self._other(arn)
        if other is not None:
            return other.deliver(tx, arn, payload, name, caller, parameters=parameters)
        bus = _find(tx, arn)
        if bus is None:
            raise NoSuchBus(f"Event bus {arn} does not exist.")
        if HOPS in parameters:
            return pass_on(tx, bus, payload, parameters[HOPS], caller.trace)
        _check_detail(payload)
        event = Event(
            id=tx.chance.uuid(),
            source=parameters["Source"],
            detail_type=parameters["DetailType"],
            account=bus.account,
            region=bus.region,
            at=parameters.get("Time", tx.now),
            resources=tuple(parameters.get("Resources") or ()),
            detail=payload,
        )
        keep(tx, [(bus.name, event, caller.trace)])
        return event.id

    def _other(self, arn: str) -> Target | None:
        return self._destinations if ":api-destination/" in arn else None


def _find(tx: Tx, arn: str) -> Bus | None:
    parts = parse_arn(arn)
    return find_bus(tx, parts.account, parts.region, arn) if parts is not None else None


def _check_detail(payload: str) -> None:
    if not is_detail(payload):
        raise ValidationException(f"Detail is malformed. An event's detail is a JSON object; it is {payload:.80}.")
    if len(payload.encode()) > MOST_BYTES:
        raise ValidationException("Total size of the entries in the request is over the limit.")


class PutEvents:
    """`events:putEvents` of Step Functions (switchboard `Integration`; recorded: events_task_service).

    The ARNs of the machine and of the execution are appended to each event's Resources. A failed entry fails the task; those
    that did not fail are events all the same.
    """

    error_prefix = "EventBridge"

    def call(self, tx: Tx, parameters: dict[str, Any], caller: Caller) -> Answer:
        """Put events. Raises `FailedEntry`, `Validation` and `ValidationException`."""
        action = _put_events()
        try:
            given = read(action.input, parameters)
        except Misfit as wrong:
            raise ValidationException(str(wrong)) from None
        check(action.service, action.input, given)
        entries = [
            {**entry, "Resources": [*entry.get("Resources", ()), *_origin(caller.origin)]} for entry in given["Entries"]
        ]
        answer = put_all(tx, entries, caller.account, caller.region, caller.trace)
        if answer["FailedEntryCount"]:
            raise FailedEntry(dumps(dict(sorted(answer.items()))))
        return Answer(dict(sorted(answer.items())))

    def cancel(self, tx: Tx, handle: str, cause: str) -> None:
        """Do nothing: what was put is put."""


def _put_events() -> Action:
    model = service_model("events")
    action = model.action("PutEvents") if model is not None else None
    assert action is not None, "botocore has it"
    return action


def _origin(execution: str) -> tuple[str, ...]:
    """Answer the ARNs of an execution's machine and of itself."""
    arn = parse_arn(execution)
    if arn is None or arn.service != "states":
        return ()
    machine = arn.resource.split(":")[1].partition("/")[0]
    return str(arn._replace(resource=f"stateMachine:{machine}")), execution


# -- deliveries ---------------------------------------------------------------------------------------------

_CODES = {
    "AccessDeniedException": "NO_PERMISSIONS",
    "NO_PERMISSIONS": "NO_PERMISSIONS",
    "ClusterNotFoundException": "NO_RESOURCE",
    "AWS.SimpleQueueService.NonExistentQueue": "NO_RESOURCE",
    "ResourceNotFoundException": "NO_RESOURCE",
    "StateMachineDoesNotExist": "NO_RESOURCE",
    "ExecutionAlreadyExists": "RESOURCE_ALREADY_EXISTS",
    "ExecutionLimitExceeded": "RESOURCE_LIMIT_EXCEEDED",
    "LimitExceededException": "RESOURCE_LIMIT_EXCEEDED",
    "OverLimit": "RESOURCE_LIMIT_EXCEEDED",
    "ThrottlingException": "THROTTLING",
    "RequestThrottled": "THROTTLING",
    "TooManyRequestsException": "THROTTLING",
    "ClientException": "INVALID_PARAMETER",
    "InvalidExecutionInput": "INVALID_PARAMETER",
    "InvalidMessageContents": "INVALID_PARAMETER",
    "InvalidParameterException": "INVALID_PARAMETER",
    "InvalidParameterValue": "INVALID_PARAMETER",
    "MissingParameter": "INVALID_PARAMETER",
    "AWS.SimpleQueueService.UnsupportedOperation": "INVALID_PARAMETER",
    "ValidationException": "INVALID_PARAMETER",
    "INVALID_JSON": "INVALID_JSON",
    "THIRD_ACCOUNT_HOP_DETECTED": "THIRD_ACCOUNT_HOP_DETECTED",
    "MaximumEventAgeInSeconds": "TIMEOUT",
    # How calls to API destinations end (calls_requests.py).
    **{
        name: name
        for name in (
            "CONNECTION_FAILURE",
            "ERROR_FROM_TARGET",
            "NO_RESOURCE",
            "SDK_CLIENT_ERROR",
            "THROTTLING",
            "TIMEOUT",
        )
    },
}
_FINAL = frozenset(
    {
        "INVALID_JSON",
        "INVALID_PARAMETER",
        "NO_PERMISSIONS",
        "NO_RESOURCE",
        "RESOURCE_ALREADY_EXISTS",
        "SDK_CLIENT_ERROR",
        "THIRD_ACCOUNT_HOP_DETECTED",
    }
)
"""What trying again will not mend: straight to the dead-letter queue (user guide, "Using dead-letter queues")."""


class RuleSender:
    """What rules' deliveries say (switchboard `Sender`). Their payloads are made when the event is matched."""

    def payload(self, tx: Tx, delivery: Delivery, attempt: int, try_id: str) -> str:  # noqa: ARG002 - the same each time
        """Answer the payload. Raises `InvalidJson` where none could be made."""
        if INVALID in delivery.context:
            raise InvalidJson(delivery.context[INVALID])
        return delivery.payload

    def is_final(self, refusal: Refusal) -> bool:
        """Tell whether trying again makes no sense."""
        return _CODES.get(refusal.code) in _FINAL

    def dead_letter(
        self,
        delivery: Delivery,
        attempt: int,
        try_id: str,  # noqa: ARG002 - Scheduler's alone
        refusal: Refusal,
        exhausted: str,
    ) -> dict[str, str]:
        """Answer the attributes of the dead letter (user guide, "Using dead-letter queues"); empty ones are left out."""
        attributes = {
            "RULE_ARN": delivery.source,
            "TARGET_ARN": delivery.target,
            "ERROR_CODE": _CODES.get(refusal.code, "ERROR_FROM_TARGET"),
            "ERROR_MESSAGE": refusal.message,
            "EXHAUSTED_RETRY_CONDITION": exhausted,
            "RETRY_ATTEMPTS": str(max(0, attempt - 1)),
        }
        return {name: value for name, value in attributes.items() if value}
