"""What an execution wants done elsewhere: integrations called in the same unit, their answers as events.

Error names and causes as Step Functions builds them from its Java SDK (states.md section 9; recorded:
error_handling/task_service_sqs): `SQS.AmazonSQSException` with `MESSAGE (Service: AmazonSQS; Status Code: 400; Error
Code: MissingParameter; Request ID: ...; Proxy: null)`.
"""

from typing import Any

from tasuki.engine.commands import CancelTask, ScheduleTask
from tasuki.engine.events import Event, TaskFailed, TaskStarted, TaskSubmitted, TaskSucceeded
from tasuki.language.definition import Resource
from tasuki.services.sdk import SdkCall, sdk_call, sdk_refusal, why_not_offered
from tasuki.services.switchboard import Answer, Caller, Integration, Switchboard
from tasuki.store.store import Tx
from tasuki.values.documents import Doc, dumps
from tasuki.values.errors import DomainError
from tasuki.values.instant import to_datetime

_JAVA_NAMES = {"sqs": "AmazonSQS", "ecs": "AmazonECS", "states": "AWSStepFunctions"}
"""How the Java SDK calls a service in its error texts."""
_ALWAYS_GENERIC = {"sqs": "AmazonSQSException"}
"""Services all of whose errors have one name."""
_PREFIXES = {
    "aws-sdk:dynamodb": "DynamoDb",
    "aws-sdk:cloudwatchlogs": "CloudWatchLogs",
    "aws-sdk:eventbridge": "EventBridge",
    "aws-sdk:secretsmanager": "SecretsManager",
    "codebuild": "CodeBuild",
    "dynamodb": "DynamoDB",
    "eks": "EKS",
    "events": "EventBridge",
    "http": "States.Http",
    "mediaconvert": "MediaConvert",
    "sagemaker": "SageMaker",
    "sns": "SNS",
}
"""How errors of services begin that no room offers, where it is not just the name with a capital."""
_UNREACHED = "SdkClientException"
"""What the SDK says by itself, without a service (recorded: test_send_message_no_such_queue)."""
_SAID_WHOLE = frozenset({_UNREACHED, "FailedEntry"})
"""Errors whose cause is the message and nothing else (recorded: events_task_service/test_put_events_malformed_detail)."""
_WITHOUT_METADATA = frozenset({"events"})
"""Services whose HTTP response is not shown (recorded: events_task_service/test_put_events_base)."""
_CONTENT_TYPES = {"ecs": "application/x-amz-json-1.1"}
_STARTED_BY = "AWS Step Functions"


class Wishes:
    """Calls integrations for one execution, and remembers what it started in this unit."""

    def __init__(
        self, tx: Tx, switchboard: Switchboard, *, execution: int, arn: str, account: str, region: str, trace: str
    ) -> None:
        self._tx = tx
        self._switchboard = switchboard
        self._execution = execution
        self._arn = arn
        self._account, self._region = account, region
        self._trace = trace
        self.handles: dict[tuple[int, int], str] = {}
        """What was started in this unit, by frame and attempt."""

    def schedule(self, wish: ScheduleTask) -> Event:
        """Have a task done; answer what came of it at once."""
        resource = wish.resource
        at = "submit" if resource.pattern else "running"
        integration = self._offered(resource)
        if integration is None:
            return TaskFailed(
                wish.frame,
                wish.attempt,
                *self._not_offered(resource),
                at if resource.kind == "integration" else "schedule",
            )
        parameters = wish.parameters.value
        if not isinstance(parameters, dict):
            cause = f"The parameters of {resource.arn} must be a JSON object."
            return TaskFailed(wish.frame, wish.attempt, "States.Runtime", cause, "schedule")
        if resource.service == "ecs" and resource.pattern.startswith("sync"):
            parameters = {**parameters, "StartedBy": _STARTED_BY}
        request_id = self._tx.chance.uuid()
        try:
            answer = integration.call(self._tx, parameters, self._caller(wish))
        except DomainError as no:
            if isinstance(integration, SdkCall):
                error, cause = sdk_refusal(integration, no, request_id)
            else:
                error, cause = _refusal(resource.service, integration.error_prefix, no, request_id)
            return TaskFailed(wish.frame, wish.attempt, error, cause, at)
        if answer.later:
            return TaskStarted(wish.frame, wish.attempt)
        if resource.pattern and not resource.sdk and answer.output.get("Failures"):
            return self._not_placed(wish, integration, answer)
        shown = answer.output
        if not resource.sdk and resource.service not in _WITHOUT_METADATA:
            shown = self._with_sdk_metadata(resource.service, shown, request_id)
        output = Doc(shown)
        if not resource.pattern:
            return TaskSucceeded(wish.frame, wish.attempt, output)
        handle = answer.handle if resource.pattern.startswith("sync") else None
        if handle is not None:
            self.handles[wish.frame, wish.attempt] = handle
        return TaskSubmitted(wish.frame, wish.attempt, output, handle)

    def cancel(self, wish: CancelTask, handle: str | None) -> None:
        """Stop what a `.sync` task started (StopTask, StopExecution), best effort, as AWS does."""
        integration = self._offered(wish.resource)
        if handle is not None and integration is not None:
            integration.cancel(self._tx, handle, wish.cause)

    def _offered(self, resource: Resource) -> Integration | None:
        if resource.kind != "integration":
            return None
        if resource.sdk:
            own = self._switchboard.integrations.get(f"aws-sdk:{resource.service}:{resource.action}")
            return own or sdk_call(self._switchboard, resource)
        return self._switchboard.integrations.get(f"{resource.service}:{resource.action}")

    def _not_offered(self, resource: Resource) -> tuple[str, str]:
        """Answer error and cause of a service without a room: as of one that cannot be reached, so Catch sees it."""
        cause = why_not_offered(self._switchboard, resource)
        prefix = _PREFIXES.get(resource.resource_type) or resource.service.capitalize()
        return f"{prefix}.{_UNREACHED}", cause

    def _caller(self, wish: ScheduleTask) -> Caller:
        resource = wish.resource
        pattern = resource.pattern
        watcher = None
        if pattern.startswith("sync"):
            watcher = f"machines:{self._execution}:{wish.frame}:{wish.attempt}"
            if pattern == "sync:2":
                watcher += ":2"
        elif resource.sdk and not pattern:
            # Heeded by the calls alone whose answer comes later. An Express execution has no number, but a name.
            who = self._execution or self._arn.rpartition(":")[2]
            watcher = f"machines:{who}:{wish.frame}:{wish.attempt}:call"
        return Caller(
            account=self._account,
            region=self._region,
            idempotency=f"{self._arn}/{wish.frame}/{wish.attempt}",
            trace=self._trace,
            watcher=watcher,
            origin=self._arn,
        )

    def _not_placed(self, wish: ScheduleTask, integration: Integration, answer: Answer) -> Event:
        """RunTask answered Failures: nothing runs that could be waited for (ecs.md section 5)."""
        if answer.handle is not None:
            integration.cancel(self._tx, answer.handle, "RunTask could not place all tasks")
        return TaskFailed(wish.frame, wish.attempt, "AmazonECS.Unknown", dumps(answer.output), "submit")

    def _with_sdk_metadata(self, service: str, output: dict[str, Any], request_id: str) -> dict[str, Any]:
        """Add what Step Functions shows of the HTTP response (recorded: sqs_task_service, ecs_task_service)."""
        headers = {
            "x-amzn-RequestId": request_id,
            "Content-Length": str(len(dumps(output))),
            "Date": f"{to_datetime(self._tx.now):%a, %d %b %Y %H:%M:%S GMT}",
            "Content-Type": _CONTENT_TYPES.get(service, "application/x-amz-json-1.0"),
        }
        added = {
            "SdkHttpMetadata": {
                "AllHttpHeaders": {name: [value] for name, value in headers.items()},
                "HttpHeaders": headers,
                "HttpStatusCode": 200,
            },
            "SdkResponseMetadata": {"RequestId": request_id},
        }
        return dict(sorted({**output, **added}.items()))


def _refusal(service: str, prefix: str, no: DomainError, request_id: str) -> tuple[str, str]:
    """Answer the error name and cause of a call that was refused, or that reached nobody (`SdkClientException`)."""
    if no.code in _SAID_WHOLE:
        return f"{prefix}.{no.code}", no.message
    name = _ALWAYS_GENERIC.get(service) or (no.code if no.code.endswith("Exception") else f"{no.code}Exception")
    code = no.query_code or no.code
    java = _JAVA_NAMES.get(service, service)
    cause = (
        f"{no.message} (Service: {java}; Status Code: {no.status}; Error Code: {code}; Request ID: {request_id}; "
        "Proxy: null)"
    )
    return f"{prefix}.{name}", cause
