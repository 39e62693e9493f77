"""The operations of SQS, and those on queues themselves. Those on messages: sending.py, receiving.py, moves.py.

What changes a queue says so (`shelf.begin_change`) before it writes: no unit that uses the queue runs meanwhile, so each of them sees one
queue from its beginning to its end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tasuki.services.queues import moves, policy, queries, receiving, sending, shelf, tallies
from tasuki.services.queues.attributes import (
    COUNTED,
    DEFAULTS,
    KNOWN,
    allows_source,
    check_attributes,
    columns,
    first_difference,
    merge,
    shown,
)
from tasuki.services.queues.errors import (
    InvalidAttributeName,
    InvalidParameterValue,
    MissingRequiredParameter,
    PurgeQueueInProgress,
    QueueDeletedRecently,
    QueueDoesNotExist,
    QueueNameExists,
    UnsupportedOperation,
)
from tasuki.services.queues.model import Queue, is_queue_name, queue_url
from tasuki.services.queues.sending import queue_of
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values.arns import build_arn
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import MINUTE, SECOND
from tasuki.values.operations import Operation, Operations, Request
from tasuki.values.pages import BadPageToken

_BAD_NAME = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
_BAD_FIFO_NAME = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo "
    "suffix and be 1 to 80 in length"
)
_NO_FIFO_YET = (
    "FIFO queues come with a later release of Tasuki; this one has standard queues only. "
    "Create the queue without FifoQueue and without the .fifo suffix."
)
_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What can be set under [quotas]: `sqs_in_flight` and `sqs_recreate_wait_s` (0 lets a name be used again at once)."""

    in_flight: int = receiving.IN_FLIGHT_CAP
    recreate_wait_s: int = 60


def operations(limits: Limits) -> Operations:
    """Answer the table of operations."""
    writes: dict[str, Callable[[Tx, Request], dict[str, Any]]] = {
        "AddPermission": add_permission,
        "CancelMessageMoveTask": moves.cancel_message_move_task,
        "ChangeMessageVisibility": receiving.change_message_visibility,
        "ChangeMessageVisibilityBatch": receiving.change_message_visibility_batch,
        "CreateQueue": partial(create_queue, limits=limits),
        "DeleteMessage": receiving.delete_message,
        "DeleteMessageBatch": receiving.delete_message_batch,
        "DeleteQueue": partial(delete_queue, limits=limits),
        "PurgeQueue": purge_queue,
        "RemovePermission": remove_permission,
        "SendMessage": sending.send_message,
        "SendMessageBatch": sending.send_message_batch,
        "SetQueueAttributes": set_queue_attributes,
        "StartMessageMoveTask": moves.start_message_move_task,
        "TagQueue": tag_queue,
        "UntagQueue": untag_queue,
    }
    reads: dict[str, Callable[[Tx, Request], dict[str, Any]]] = {
        "GetQueueAttributes": get_queue_attributes,
        "GetQueueUrl": get_queue_url,
        "ListDeadLetterSourceQueues": list_dead_letter_source_queues,
        "ListMessageMoveTasks": moves.list_message_move_tasks,
        "ListQueueTags": list_queue_tags,
        "ListQueues": list_queues,
    }
    return {
        **{name: Operation("write", run) for name, run in writes.items()},
        **{name: Operation("read", run) for name, run in reads.items()},
        "ReceiveMessage": Operation(
            "poll", partial(receiving.receive_message, cap=limits.in_flight), look=receiving.look_receive
        ),
    }


# -- queues -------------------------------------------------------------------------------------------------


def create_queue(tx: Tx, request: Request, limits: Limits) -> dict[str, Any]:
    """CreateQueue: the same name with the same attributes answers the queue there is."""
    name: str = request.input.get("QueueName") or ""
    given: Mapping[str, str] = request.input.get("Attributes") or {}
    _check_name(name, given)
    checked = check_attributes(given)
    url = {"QueueUrl": queue_url(request, name)}
    row = tx.one(queries.QUEUE, (request.account, request.region, name))
    if row is not None:
        current, *_ = _details(tx, Queue(*row))
        differing = first_difference(current, checked)
        if differing is not None:
            raise QueueNameExists(differing)
        return url
    deleted = tx.one(queries.DELETED_AT, (request.account, request.region, name))
    if deleted is not None and tx.now - deleted[0] < limits.recreate_wait_s * SECOND:
        raise QueueDeletedRecently(limits.recreate_wait_s)
    attributes = merge(DEFAULTS, checked)
    _check_dlq(tx, request, name, given, attributes)
    shelf.begin_change(tx)
    made = tx.one(queries.INSERT_SHELF)
    assert made is not None, "an insert answers its id"
    delay, visibility, retention, wait, size, dlq, receives = columns(attributes)
    tags = dumps(request.input.get("tags") or {})
    queue = tx.one(
        queries.INSERT_QUEUE,
        (
            *(request.account, request.region, name, made[0], tx.now, tx.now),
            *(delay, visibility, retention, wait, size, dlq, receives, dumps(attributes), tags),
        ),
    )
    assert queue is not None, "an insert answers its id"
    tx.run(queries.OWN_SHELF, (queue[0], made[0]))
    tx.ring("queues")
    return url


def _check_name(name: str, given: Mapping[str, str]) -> None:
    fifo = (given.get("FifoQueue") or "").lower() == "true"
    if fifo and not (name.endswith(".fifo") and is_queue_name(name[:-5]) and len(name) <= 80):
        raise InvalidParameterValue(_BAD_FIFO_NAME)
    if fifo:
        raise UnsupportedOperation(_NO_FIFO_YET)
    if not is_queue_name(name):
        raise InvalidParameterValue(_BAD_NAME)


def _check_dlq(tx: Tx, request: Request, name: str, given: Mapping[str, str], attributes: Mapping[str, str]) -> None:
    """Refuse a dead-letter queue that does not exist, or does not let this queue use it."""
    dlq_arn = columns(attributes)[5]
    if dlq_arn is None or not given.get("RedrivePolicy"):
        return
    value = given["RedrivePolicy"]
    source_arn = build_arn("sqs", request.region, request.account, name)
    if dlq_arn == source_arn:
        return  # AWS lets a queue be its own (recorded)
    dlq = shelf.find_by_arn(tx, dlq_arn, request.account, request.region)
    if dlq is None:
        raise InvalidParameterValue.of(value, "RedrivePolicy", "Dead letter target does not exist.")
    allow, *_ = _details(tx, dlq)
    if not allows_source(allow.get("RedriveAllowPolicy"), source_arn):
        raise InvalidParameterValue.of(
            value, "RedrivePolicy", "The dead-letter queue's RedriveAllowPolicy does not permit this source queue."
        )


def delete_queue(tx: Tx, request: Request, limits: Limits) -> dict[str, Any]:
    """DeleteQueue: gone at once; its messages are swept afterwards."""
    queue = queue_of(tx, request)
    shelf.begin_change(tx)
    tx.run(queries.DELETE_QUEUE, (queue.id,))
    tx.run(queries.ABANDON_SHELF, (queue.shelf,))
    tx.run(queries.DROP_COUNTERS, (queue.shelf,))
    tx.run(queries.FORGET_NAMES, (tx.now - limits.recreate_wait_s * SECOND,))
    tx.run(queries.REST_NAME, (queue.account, queue.region, queue.name, tx.now))
    tx.ring("queues.sweep")
    tx.ring("queues.move")
    tx.ring(queue.topic, 1_000_000)  # whoever waits for it hears that it is gone
    tx.ring("queues")
    return {}


def purge_queue(tx: Tx, request: Request) -> dict[str, Any]:
    """PurgeQueue: an empty shelf at once, whatever stood on the old one counts as purged and is swept afterwards."""
    queue = queue_of(tx, request)
    *_, purged_at = _details(tx, queue)
    if purged_at is not None and tx.now - purged_at < MINUTE:
        raise PurgeQueueInProgress(queue.name)
    shelf.begin_change(tx)
    made = tx.one(queries.INSERT_SHELF)
    assert made is not None, "an insert answers its id"
    tx.run(queries.OWN_SHELF, (queue.id, made[0]))
    tx.run(queries.TAKE_COUNTERS, (made[0], queue.shelf))
    tx.run(queries.REPLACE_SHELF, (made[0], tx.now, queue.id))
    tx.run(queries.ABANDON_SHELF, (queue.shelf,))
    tx.run(queries.DROP_COUNTERS, (queue.shelf,))
    tx.ring("queues.sweep")
    return {}


def get_queue_url(tx: Tx, request: Request) -> dict[str, Any]:
    """GetQueueUrl."""
    owner = request.input.get("QueueOwnerAWSAccountId") or request.account
    if owner != request.account:
        raise QueueDoesNotExist
    queue = shelf.find_queue(tx, request.account, request.region, request.input.get("QueueName") or "")
    return {"QueueUrl": queue_url(request, queue.name)}


def list_queues(tx: Tx, request: Request) -> dict[str, Any]:
    """ListQueues: by name, from a prefix; a token only when MaxResults was given (API reference)."""
    prefix: str = request.input.get("QueueNamePrefix") or ""
    after = _page_start(tx, request, f"ListQueues {prefix}")
    limit = request.input.get("MaxResults")
    _check_page(limit)
    scope = (request.account, request.region, after, prefix, prefix + "\x7f", (limit or _PAGE) + 1)
    names = [row[0] for row in tx.all(queries.LIST_QUEUES, scope)] if "\0" not in prefix else []
    return _page(tx, request, "QueueUrls", names, f"ListQueues {prefix}")


def list_dead_letter_source_queues(tx: Tx, request: Request) -> dict[str, Any]:
    """ListDeadLetterSourceQueues: whose RedrivePolicy names this queue. The member is spelled `queueUrls`."""
    queue = queue_of(tx, request)
    query = f"ListDeadLetterSourceQueues {queue.name}"
    after = _page_start(tx, request, query)
    limit = request.input.get("MaxResults")
    _check_page(limit)
    scope = (queue.arn, request.account, request.region, after, (limit or _PAGE) + 1)
    names = [row[0] for row in tx.all(queries.SOURCES, scope)]
    return {"queueUrls": [], **_page(tx, request, "queueUrls", names, query)}


def _check_page(limit: int | None) -> None:
    if limit is not None and not 1 <= limit <= _PAGE:
        raise InvalidParameterValue.of(limit, "MaxResults", "MaxResults must be an integer between 1 and 1000.")


def _page_start(tx: Tx, request: Request, query: str) -> str:
    token = request.input.get("NextToken")
    if not token:
        return ""
    try:
        return str(page_tokens(tx).open(query, token))
    except BadPageToken:
        raise InvalidParameterValue("Invalid or expired next token.") from None


def _page(tx: Tx, request: Request, member: str, names: list[str], query: str) -> dict[str, Any]:
    limit: int | None = request.input.get("MaxResults")
    page = names[: limit or _PAGE]
    answer: dict[str, Any] = {member: [queue_url(request, name) for name in page]} if page else {}
    if limit is not None and len(names) > limit:
        answer["NextToken"] = page_tokens(tx).seal(query, page[-1])
    return answer


# -- attributes, permissions, tags --------------------------------------------------------------------------


def _details(tx: Tx, queue: Queue) -> tuple[dict[str, str], dict[str, str], int, int, int | None]:
    """Answer (attributes, tags, created at, modified at, purged at)."""
    row = tx.one(queries.DETAILS, (queue.id,))
    assert row is not None, "the queue was found in this unit"
    return loads(row[0]), loads(row[1]), row[2], row[3], row[4]


def get_queue_attributes(tx: Tx, request: Request) -> dict[str, Any]:
    """GetQueueAttributes: those that were asked for and are set."""
    queue = queue_of(tx, request)
    names: list[str] = request.input.get("AttributeNames") or []
    for name in names:
        if name not in KNOWN:
            raise InvalidAttributeName(f"Unknown Attribute {name}.")
    attributes, _, created_at, modified_at, _ = _details(tx, queue)
    everything = shown(queue, attributes, created_at // SECOND, modified_at // SECOND)
    if "All" in names or not COUNTED.isdisjoint(names):
        visible, in_flight, delayed = tallies.counts(tx, queue)
        everything["ApproximateNumberOfMessages"] = str(visible)
        everything["ApproximateNumberOfMessagesNotVisible"] = str(in_flight)
        everything["ApproximateNumberOfMessagesDelayed"] = str(delayed)
    chosen = everything if "All" in names else {name: everything[name] for name in names if name in everything}
    return {"Attributes": chosen} if chosen else {}


def set_queue_attributes(tx: Tx, request: Request) -> dict[str, Any]:
    """SetQueueAttributes: applies at once (AWS takes up to a minute, retention up to 15)."""
    queue = queue_of(tx, request)
    given: Mapping[str, str] = request.input.get("Attributes") or {}
    if not given:
        raise MissingRequiredParameter("Attribute.Name")
    _change(tx, request, queue, given)
    return {}


def _change(tx: Tx, request: Request, queue: Queue, given: Mapping[str, str]) -> None:
    current, *_ = _details(tx, queue)
    attributes = merge(current, check_attributes(given))
    _check_dlq(tx, request, queue.name, given, attributes)
    delay, visibility, retention, wait, size, dlq, receives = columns(attributes)
    shelf.begin_change(tx)
    changed = (tx.now, delay, visibility, retention, wait, size, dlq, receives, dumps(attributes), queue.id)
    tx.run(queries.UPDATE_QUEUE, changed)
    if retention != queue.retention_s:
        tx.run(queries.SET_SWEEP, (tx.now, queue.shelf))
        tx.ring("queues.sweep")


def add_permission(tx: Tx, request: Request) -> dict[str, Any]:
    """AddPermission: a statement more in the queue's policy."""
    queue = queue_of(tx, request)
    given = request.input
    accounts, actions = given.get("AWSAccountIds") or [], given.get("Actions") or []
    if not accounts:
        raise MissingRequiredParameter("PrincipalId")
    if not actions:
        raise MissingRequiredParameter("ActionName")
    current, *_ = _details(tx, queue)
    changed = policy.add_statement(current.get("Policy"), queue.arn, given.get("Label") or "", accounts, actions)
    _change(tx, request, queue, {"Policy": changed})
    return {}


def remove_permission(tx: Tx, request: Request) -> dict[str, Any]:
    """RemovePermission: a statement less."""
    queue = queue_of(tx, request)
    current, *_ = _details(tx, queue)
    changed = policy.remove_statement(current.get("Policy"), queue.arn, request.input.get("Label") or "")
    _change(tx, request, queue, {"Policy": changed})
    return {}


def tag_queue(tx: Tx, request: Request) -> dict[str, Any]:
    """TagQueue: adds and overwrites; at most 50."""
    queue = queue_of(tx, request)
    _, tags, *_ = _details(tx, queue)
    tags = {**tags, **(request.input.get("Tags") or {})}
    if len(tags) > 50:
        raise InvalidParameterValue(f"Too many tags added for queue {queue.name}.")
    shelf.begin_change(tx)
    tx.run(queries.UPDATE_TAGS, (dumps(tags), queue.id))
    return {}


def untag_queue(tx: Tx, request: Request) -> dict[str, Any]:
    """UntagQueue: tags that are not there are no error."""
    queue = queue_of(tx, request)
    _, tags, *_ = _details(tx, queue)
    gone = set(request.input.get("TagKeys") or ())
    shelf.begin_change(tx)
    tx.run(queries.UPDATE_TAGS, (dumps({key: value for key, value in tags.items() if key not in gone}), queue.id))
    return {}


def list_queue_tags(tx: Tx, request: Request) -> dict[str, Any]:
    """ListQueueTags."""
    queue = queue_of(tx, request)
    _, tags, *_ = _details(tx, queue)
    return {"Tags": tags} if tags else {}
