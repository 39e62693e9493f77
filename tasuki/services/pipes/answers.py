"""What the ends of calls say: an enrichment's events, and the messages that a target could not work off. Pure.

Rules: pipes.md sections 5 and 8 (user guide, "Event enrichment in Amazon EventBridge Pipes" and "Amazon EventBridge Pipes error
handling").
"""

from typing import Any

from tasuki.services.pipes.errors import BadAnswer
from tasuki.services.switchboard import Ending
from tasuki.values.documents import loads
from tasuki.values.errors import MalformedDocument

LONGEST_REASON = 500
"""Of a failure's texts so much is kept, since it is kept for each message."""
_REASONS = ("Status", "Error", "Cause", "Body")


def failure(ending: Ending) -> str:
    """Answer why a call failed; empty when it succeeded."""
    if ending.succeeded:
        return ""
    if ending.cause:
        return f"{ending.error}: {ending.cause[:LONGEST_REASON]}"
    said = [str(ending.output[name])[:LONGEST_REASON] for name in _REASONS if ending.output.get(name) not in (None, "")]
    what = "the execution" if "ExecutionArn" in ending.output else "the call"
    return f"{what} ended with {': '.join(said) or ending.error}"


def answer_text(ending: Ending) -> str:
    """Answer what a call that succeeded answered: an execution's output, or the body of an HTTP response.

    Raises `BadAnswer` for a response of which a part was left behind: half an answer says nothing.
    """
    if ending.output.get("Truncated"):
        raise BadAnswer("the response is larger than an API destination may answer")
    answer = ending.output.get("Output", ending.output.get("Body"))
    return answer if isinstance(answer, str) else ""


def enriched_events(text: str) -> list[Any]:
    """Answer the events that an enrichment made: of an array its members, else the one that it is.

    An empty answer (nothing, `""`, `{}`, `[]`, null) is no event at all; `[{}]` is one, with nothing in it. A response that is not
    JSON is one text.
    """
    if not text.strip():
        return []
    try:
        answer = loads(text)
    except MalformedDocument:
        answer = text
    if answer is None or answer in ("", {}, []):
        return []
    return answer if isinstance(answer, list) else [answer]


def failed_items(text: str, ids: set[str]) -> tuple[set[str], str]:
    """Answer which of a batch's messages (`ids`) the target's answer names as failed, and why.

    Raises `BadAnswer` for an answer that names what it must not, or nothing properly: then the whole batch has failed. Text that
    doesn't begin like JSON's objects is an answer without items: many webhooks say `ok`. (AWS: "invalid JSON" fails the batch.)
    """
    if text.lstrip()[:1] != "{":
        return set(), ""
    try:
        answer = loads(text)
    except MalformedDocument:
        raise BadAnswer("the answer is no JSON") from None
    items = answer.get("batchItemFailures")
    if not items:
        return set(), ""
    named = (
        [one.get("itemIdentifier") if isinstance(one, dict) else None for one in items]
        if isinstance(items, list)
        else []
    )
    known = [one for one in named if isinstance(one, str) and one in ids]
    if len(known) < len(named) or not named:
        raise BadAnswer("batchItemFailures names what was not in the batch")
    return set(known), "the answer named the message in batchItemFailures"
