"""Queue policies: what AddPermission adds and RemovePermission takes away. Pure; kept, and not enforced.

Form as AWS writes it (recorded): version 2008-10-17, the statement's Sid is the label, one action or principal stands
alone, several stand in a list.
"""

import re
from typing import Any

from tasuki.services.queues.errors import InvalidParameterValue, OverLimit
from tasuki.values.documents import dumps, loads

ACTIONS = frozenset(
    {
        "*",
        "SendMessage",
        "ReceiveMessage",
        "DeleteMessage",
        "ChangeMessageVisibility",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
        "ListMessageMoveTasks",
        "CancelMessageMoveTask",
        "StartMessageMoveTask",
    }
)


def add_statement(policy: str | None, arn: str, label: str, accounts: list[str], actions: list[str]) -> str:
    """Answer the policy with a statement more. Raises for a label that exists, and AWS's quotas."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", label):
        raise InvalidParameterValue.of(
            label, "Label", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length."
        )
    for action in actions:
        if action not in ACTIONS:
            raise InvalidParameterValue.of(
                f"SQS:{action}", "ActionName", "Only the queue owner is allowed to invoke this action."
            )
    for account in accounts:
        if not re.fullmatch(r"\d{12}", account):
            raise InvalidParameterValue.of([account], "PrincipalId", "Unable to verify.")
    document = _document(policy, arn)
    statements = document["Statement"]
    if any(statement.get("Sid") == label for statement in statements):
        raise InvalidParameterValue.of(label, "Label", "Already exists.")
    if len(statements) >= 20 or len(accounts) > 50 or len(actions) > 7:
        raise OverLimit("A policy holds at most 20 statements, each with at most 50 principals and 7 actions.")
    statements.append(
        {
            "Sid": label,
            "Effect": "Allow",
            "Principal": {"AWS": _one_or_many([f"arn:aws:iam::{account}:root" for account in accounts])},
            "Action": _one_or_many([f"SQS:{action}" for action in actions]),
            "Resource": arn,
        }
    )
    return dumps(document)


def remove_statement(policy: str | None, arn: str, label: str) -> str:
    """Answer the policy without that statement; an empty text when it was the last."""
    document = _document(policy, arn)
    kept = [statement for statement in document["Statement"] if statement.get("Sid") != label]
    if len(kept) == len(document["Statement"]):
        raise InvalidParameterValue.of(label, "Label", "can't find label.")
    return dumps({**document, "Statement": kept}) if kept else ""


def _document(policy: str | None, arn: str) -> dict[str, Any]:
    if not policy:
        return {"Version": "2008-10-17", "Id": f"{arn}/SQSDefaultPolicy", "Statement": []}
    document: dict[str, Any] = loads(policy)
    statements = document.get("Statement", [])
    document["Statement"] = statements if isinstance(statements, list) else [statements]
    return document


def _one_or_many(names: list[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else names
