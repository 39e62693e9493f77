"""`trace`: what became of a message, or where an execution came from. One correlation id joins the whole way."""

import re
from typing import Any

from tasuki.cli import screen
from tasuki.cli.complaints import Complaint
from tasuki.cli.events import task_of
from tasuki.cli.pages import describe_tasks, every, execution_arn
from tasuki.cli.reach import Reach
from tasuki.cli.tasks import row_of
from tasuki.values import documents

_MESSAGE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HINT = "give a message's id, a correlation id (Root=1-...) or an execution"
_WAITING = (
    "it waits in its queue still (tasuki queue ls), or for a pipe that is stopped (tasuki pipes), or was never sent"
)


def trace(reach: Reach, wanted: str, *, as_json: bool) -> None:
    """Show message, hand-over, execution and tasks that belong to a message id, a correlation id or an execution."""
    if wanted.startswith(("Root=", "1-")):
        handovers = list_handovers(reach, Trace=wanted)
    else:
        handovers = list_handovers(reach, MessageId=wanted) if _MESSAGE.fullmatch(wanted) else []
        if not handovers:
            arn = _execution_arn(reach, wanted)
            handovers = list_handovers(reach, ExecutionArn=arn) or [{"ExecutionArn": arn}]
    if not handovers:
        raise Complaint(f"nothing was handed over under the correlation id {wanted}", hint=_HINT)
    for handover in handovers:
        story = handover | _execution(reach, handover.get("ExecutionArn"))
        if as_json:
            screen.show_json(story)
        else:
            _show(story)


def _execution_arn(reach: Reach, wanted: str) -> str:
    """Find the execution that is meant. Says of a message that was not handed over that it may still wait."""
    try:
        return execution_arn(reach, wanted)
    except Complaint as why:
        if wanted.startswith("arn:"):
            raise
        if _MESSAGE.fullmatch(wanted):
            raise Complaint(f"the message {wanted} was not handed over", hint=_WAITING, name=why.name) from None
        raise Complaint(f"no message, correlation id or execution is called {wanted}", hint=_HINT) from None


def list_handovers(reach: Reach, **wanted: str) -> list[dict[str, Any]]:
    """Call ListHandovers, the house's own operation, in AWS's JSON protocol; answer all pages."""
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = dict(wanted)
    while True:
        page = call_house(reach, "ListHandovers", request)
        found += page["Handovers"]
        if "NextToken" not in page:
            return found
        request["NextToken"] = page["NextToken"]


def call_house(reach: Reach, operation: str, request: dict[str, Any], *, answer_within_s: int = 10) -> Any:
    """Call an operation of the house's own service. Raises `Complaint`."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    from botocore.httpsession import URLLib3Session

    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"Tasuki.{operation}"}
    call = AWSRequest("POST", reach.url + "/", headers, documents.dumpb(request))
    SigV4Auth(Credentials(reach.access_key, reach.secret_key), "tasuki", reach.region).add_auth(call)
    reply = URLLib3Session(timeout=answer_within_s).send(call.prepare())
    answer = documents.loads(reply.content or b"{}")
    if reply.status_code != 200:
        raise Complaint(
            f"{str(answer.get('__type', reply.status_code)).rpartition('#')[2]}: {answer.get('message', '')}"
        )
    return answer


def _execution(reach: Reach, arn: str | None) -> dict[str, Any]:
    """Describe an execution and the tasks it ran."""
    if not arn:
        return {}
    told = reach.client("stepfunctions").describe_execution(executionArn=arn)
    events = every(reach, "stepfunctions", "get_execution_history", "events", executionArn=arn)
    tasks = [task for event in events if (task := task_of(event))]
    return {
        "Status": told["status"],
        "StartDate": told["startDate"],
        "StopDate": told.get("stopDate"),
        "Trace": told.get("traceHeader"),
        "Tasks": [row_of(reach, task) for task in (describe_tasks(reach, tasks) if tasks else [])],
    }


def _show(story: dict[str, Any]) -> None:
    if "MessageId" in story:
        screen.line(f"message    {story['MessageId']} in {story['SourceArn'].rpartition(':')[2]}")
        screen.line(f"handover   {story['Outcome']} {story['At']} by {story.get('PipeArn', '').rpartition('/')[2]}")
    if "Status" in story:
        ended = f" to {screen.text_of(story['StopDate'])}" if story["StopDate"] else ""
        screen.line(f"execution  {story['ExecutionArn']}")
        screen.line(f"           {story['Status']} {screen.text_of(story['StartDate'])}{ended}")
        for task in story["Tasks"]:
            end = "" if task["exit"] is None else f" exit {task['exit']}"
            where = f" on node {task['node']}" if task["node"] else ""
            screen.line(f"task       {task['task']} {task['definition']} {task['status']}{end}{where}")
    if story.get("Trace"):
        screen.line(f"trace      {story['Trace']}")
