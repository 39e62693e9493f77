"""`trace`: what became of a message, an event or a tick, or where an execution came from. One correlation id joins the whole way."""

import re
from typing import Any

from tasuki.cli import screen
from tasuki.cli.complaints import Complaint
from tasuki.cli.events import short, task_of
from tasuki.cli.pages import describe_tasks, every, execution_arn
from tasuki.cli.reach import Reach
from tasuki.cli.tasks import row_of
from tasuki.values import documents

_MESSAGE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HINT = "give a message's id, an event's, a correlation id (Root=1-...), an execution or a task's ARN"
_LONGEST_REASON = 600
_WAITING = (
    "it waits in its queue still (tasuki queue ls), or for a pipe that is stopped (tasuki pipes), or was never sent"
)


def trace(reach: Reach, wanted: str, *, as_json: bool) -> None:
    """Show what was handed over, and what became of it: by a message's or event's id, a correlation id, an execution, a task."""
    if wanted.startswith(("Root=", "1-")):
        handovers = list_handovers(reach, Trace=wanted)
    else:
        handovers = _of(reach, wanted) if _MESSAGE.fullmatch(wanted) else []
        if not handovers:
            arn = wanted if _is_task(wanted) else _execution_arn(reach, wanted)
            handovers = list_handovers(reach, ExecutionArn=arn) or [{"ExecutionArn": arn}]
    if not handovers:
        raise Complaint(f"nothing was handed over under the correlation id {wanted}", hint=_HINT)
    for handover in handovers:
        story = handover | _became(reach, handover)
        if as_json:
            screen.show_json(story)
        else:
            _show(story)
    if not as_json and "ExecutionArn" in handovers[0] and len(handovers) == 1 and story.get("Trace"):
        _tell_of_more(reach, story)


def _tell_of_more(reach: Reach, story: dict[str, Any]) -> None:
    """Say how much else was handed over under a correlation id, such as events about how the execution went."""
    known = (story.get("MessageId"), story.get("SourceArn"))
    more = sum((one["MessageId"], one["SourceArn"]) != known for one in list_handovers(reach, Trace=story["Trace"]))
    if more:
        what = "1 more hand-over" if more == 1 else f"{more} more hand-overs"
        screen.line(f"           {what} under it: tasuki trace '{story['Trace']}'")


def _of(reach: Reach, identity: str) -> list[dict[str, Any]]:
    """Answer what a message or event came of, and then what was handed over of it."""
    return [*list_handovers(reach, ExecutionArn=identity), *list_handovers(reach, MessageId=identity)]


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


def _became(reach: Reach, handover: dict[str, Any]) -> dict[str, Any]:
    """Answer what a hand-over became at its target: `Kind`, and of an execution and of tasks how they are."""
    identity, target = handover.get("ExecutionArn") or "", handover.get("TargetArn") or ""
    if handover.get("Outcome", "").startswith("DEAD_LETTERED"):
        return {"Kind": "dead letter"}
    if ":states:" in identity:
        if ":express:" in identity:
            return {"Kind": "express execution"}
        return {"Kind": "execution", **_execution(reach, identity, must_be=not target)}
    if _is_task(identity):
        tasks = describe_tasks(reach, identity.split(","))
        return {"Kind": "task", "Tasks": [row_of(reach, task) for task in tasks]}
    kind = "call"
    if target.startswith("arn:aws:sqs:"):
        kind = "message"
    elif ":event-bus/" in target:
        kind = "event"
    return {"Kind": kind} if identity or handover.get("Outcome") in {"DELIVERED", "DUPLICATE"} else {}


def _is_task(arn: str) -> bool:
    return arn.startswith("arn:aws:ecs:") and ":task/" in arn


def _execution(reach: Reach, arn: str, *, must_be: bool) -> dict[str, Any]:
    """Describe an execution and the tasks it ran; nothing of one that is forgotten, unless it `must_be` there."""
    states = reach.client("stepfunctions")
    try:
        told = states.describe_execution(executionArn=arn)
    except states.exceptions.ExecutionDoesNotExist:
        if must_be:
            raise
        return {}
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
        what, where, by = _source(story)
        screen.line(f"{what:<10} {story['MessageId']} {where}")
        outcome, colon, why = story["Outcome"].partition(": ")
        screen.line(f"handover   {outcome} {story['At']} by {by}")
        if colon:
            screen.line(f"           {short(why, _LONGEST_REASON)}")
    kind, identity, to = story.get("Kind"), story.get("ExecutionArn", ""), _last_of(story.get("TargetArn", ""))
    if kind in {"execution", "express execution"}:
        screen.line(f"execution  {identity}")
        ended = f" to {screen.text_of(story['StopDate'])}" if story.get("StopDate") else ""
        if "Status" in story:
            screen.line(f"           {story['Status']} {screen.text_of(story['StartDate'])}{ended}")
        else:
            screen.line(f"           {'Express: it keeps no history' if kind != 'execution' else 'it is forgotten'}")
    elif kind == "message":
        screen.line(f"message    {identity} in {to}")
    elif kind == "dead letter":
        screen.line(f"letter     {identity} in the dead-letter queue; it was for {to}")
    elif kind == "event":
        screen.line(f"event      {identity} on {to.removeprefix('event-bus ')}")
    elif kind == "call":
        screen.line(f"call       {to}{' answered ' + identity if identity else ''}")
    elif kind == "task":
        for one in () if story["Tasks"] else identity.split(","):
            screen.line(f"task       {one.rpartition('/')[2]}, which is forgotten")
    elif to:
        screen.line(f"target     {to}")
    for task in story.get("Tasks", ()):
        end = "" if task["exit"] is None else f" exit {task['exit']}"
        where = f" on node {task['node']}" if task["node"] else ""
        screen.line(f"task       {task['task']} {task['definition']} {task['status']}{end}{where}")
    if story.get("Trace"):
        screen.line(f"trace      {story['Trace']}")


def _source(story: dict[str, Any]) -> tuple[str, str, str]:
    """Say what was handed over: what it is, where it stood, and who did it."""
    source = story["SourceArn"]
    if "PipeArn" in story:
        return "message", f"in {_last_of(source)}", f"pipe {story['PipeArn'].rpartition('/')[2]}"
    if source.startswith("arn:aws:scheduler:"):
        name = source.rpartition(":schedule/")[2].removeprefix("default/")
        return "tick", f"of {name}", f"schedule {name}"
    bus, _, name = source.rpartition(":rule/")[2].rpartition("/")
    return "event", f"on {bus or 'default'}", f"rule {name}"


def _last_of(arn: str) -> str:
    """Answer what people call what an ARN names."""
    if ":aws-sdk:" in arn:
        return arn[arn.index(":aws-sdk:") + 1 :]
    name = arn.split(":", 5)[-1]
    kind, slash, rest = name.partition("/")
    return f"{kind} {rest}" if slash else name.rpartition(":")[2]
