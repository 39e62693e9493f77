"""`queue ls`, `show`, `send`, `receive` and `purge`."""

import sys
from pathlib import Path
from typing import Any

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint
from tasuki.cli.pages import every, queue_url
from tasuki.cli.reach import Reach
from tasuki.values import documents
from tasuki.values.errors import MalformedDocument

COLUMNS = ("queue", "waiting", "in_flight", "delayed", "dead_letters_go_to")


def ls(reach: Reach, *, as_json: bool) -> None:
    """List the queues with how full they are."""
    rows = [_row(_attributes(reach, url)) for url in every(reach, "sqs", "list_queues", "QueueUrls")]
    if as_json:
        screen.show_json(rows)
    else:
        screen.show_table(rows, COLUMNS, empty="no queue yet; make one with CreateQueue")


def show(reach: Reach, name: str, *, as_json: bool) -> None:
    """Show every attribute of a queue."""
    url = queue_url(reach, name)
    attributes = {"QueueUrl": url, **_attributes(reach, url)}
    if as_json:
        screen.show_json(attributes)
    else:
        for key, value in attributes.items():
            screen.line(f"{key:<40} {value}")


def send(reach: Reach, name: str, body: str, delay_s: int, *, as_json: bool) -> None:
    """Send one message; `body` is text, or `@FILE`."""
    if body.startswith("@"):
        try:
            body = Path(body[1:]).read_text()
        except OSError as missing:
            raise Complaint(f"{body[1:]}: {missing.strerror}", Code.USAGE) from None
    parameters: dict[str, Any] = {"QueueUrl": queue_url(reach, name), "MessageBody": body}
    if delay_s:
        parameters["DelaySeconds"] = delay_s
    sent = reach.client("sqs").send_message(**parameters)
    if as_json:
        screen.show_json({"MessageId": sent["MessageId"]})
    else:
        screen.line(sent["MessageId"])


def receive(reach: Reach, name: str, count: int, hidden_s: int, *, delete: bool, as_json: bool) -> None:
    """Receive up to `count` messages (a receive like any other: it counts) and, if told so, delete them."""
    url, sqs = queue_url(reach, name), reach.client("sqs")
    messages: list[dict[str, Any]] = []
    while len(messages) < count:
        page = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=min(10, count - len(messages)),
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
            # What was shown must not come again within this command.
            VisibilityTimeout=max(hidden_s, 20),
        ).get("Messages", [])
        if not page:
            break
        messages += page
    for message in messages:
        if delete:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        elif not hidden_s:
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    if as_json:
        screen.show_json(messages)
    elif not messages:
        screen.line("nothing to receive")
    else:
        for message in messages:
            tries = message.get("Attributes", {}).get("ApproximateReceiveCount", "?")
            screen.line(f"{message['MessageId']}  received {tries}x  {message['Body']}")


def ask_to_purge(name: str) -> None:
    """Ask whether all of a queue's messages may go. Raises `Complaint` unless the answer is yes."""
    import typer

    try:
        agreed = typer.confirm(f"Delete every message of {name}?", err=True)
    except typer.Abort:
        screen.line("", sys.stderr)
        raise Complaint("nobody is there to ask, so nothing was purged", Code.USAGE, hint="don't ask: --yes") from None
    if not agreed:
        raise Complaint("nothing was purged")


def purge(reach: Reach, name: str, *, as_json: bool) -> None:
    """Delete every message of a queue."""
    url = queue_url(reach, name)
    reach.client("sqs").purge_queue(QueueUrl=url)
    if as_json:
        screen.show_json({"QueueUrl": url, "purged": True})
    else:
        screen.line(f"purged {url.rpartition('/')[2]}")


def _attributes(reach: Reach, url: str) -> dict[str, str]:
    return dict(reach.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"]).get("Attributes", {}))


def _row(attributes: dict[str, str]) -> dict[str, Any]:
    return {
        "queue": attributes.get("QueueArn", "").rpartition(":")[2],
        "waiting": int(attributes.get("ApproximateNumberOfMessages", 0)),
        "in_flight": int(attributes.get("ApproximateNumberOfMessagesNotVisible", 0)),
        "delayed": int(attributes.get("ApproximateNumberOfMessagesDelayed", 0)),
        "dead_letters_go_to": _dead_letter_queue(attributes.get("RedrivePolicy")),
    }


def _dead_letter_queue(policy: str | None) -> str | None:
    if not policy:
        return None
    try:
        return str(documents.loads(policy)["deadLetterTargetArn"]).rpartition(":")[2]
    except (MalformedDocument, KeyError, TypeError):
        return None
