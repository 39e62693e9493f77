"""What clients do with queues. Each action says in a few words what it did."""

from typing import Any

from tasuki.testing.simulation.census import Standing
from tasuki.testing.simulation.shapes import QUEUES, TICKS, URL
from tasuki.testing.simulation.world import Violation, World
from tasuki.values.documents import dumps, loads
from tasuki.values.instant import SECOND

COMING = ("q1", "q2", "q3", "q4")
"""Queues that come and go."""
PIPED = ("jobs", *COMING)
"""Queues that pipes may read: there a receipt that a client has may not be the latest."""
LARGE = 40_000
_ARN = "arn:aws:sqs:us-east-1:000000000000:"


def create_fixed(world: World) -> None:
    """Create the queues that are there from the start."""
    for name, attributes in QUEUES.items():
        world.ask("sqs", "CreateQueue", {"QueueName": name, "Attributes": attributes})
        if "MessageRetentionPeriod" in attributes:
            world.told.retention[name] = int(attributes["MessageRetentionPeriod"]) * SECOND


def _any_queue(world: World) -> str:
    return world.chance.choice((*QUEUES, *COMING, "jobs", "jobs"))


def _body(world: World, key: str) -> str:
    body: dict[str, Any] = {"key": key, "kind": world.chance.choice("abc"), "n": world.chance.randrange(4)}
    world.told.numbers[key] = body["n"]
    if world.chance.random() < 0.08:
        body["pad"] = "x" * world.chance.randrange(2_000, LARGE)
    return dumps(body)


def _key(world: World) -> str:
    return f"m{len(world.told.sent)}"


def send(world: World) -> str:
    """SendMessage, sometimes delayed, sometimes large."""
    queue, key = _any_queue(world), _key(world)
    given: dict[str, Any] = {"QueueUrl": f"{URL}/{queue}", "MessageBody": _body(world, key)}
    if world.chance.random() < 0.3:
        given["DelaySeconds"] = world.chance.choice((0, 1, 30, 900))
    at = world.clock.now()
    answer = world.ask(
        "sqs", "SendMessage", given, lambda said: world.told.note_send(key, queue, said["MessageId"], at)
    )
    return f"send {key} to {queue}: {answer}"


def send_batch(world: World) -> str:
    """SendMessageBatch."""
    queue = _any_queue(world)
    first, at = len(world.told.sent), world.clock.now()
    keys = {str(n): f"m{first + n}" for n in range(world.chance.randrange(1, 11))}
    entries = [{"Id": one, "MessageBody": _body(world, key)} for one, key in keys.items()]

    def kept(said: dict[str, Any]) -> None:
        for one in said.get("Successful", ()):
            world.told.note_send(keys[one["Id"]], queue, one["MessageId"], at)

    answer = world.ask("sqs", "SendMessageBatch", {"QueueUrl": f"{URL}/{queue}", "Entries": entries}, kept)
    return f"send {len(keys)} to {queue}: {answer}"


def receive(world: World) -> str:
    """ReceiveMessage; task tokens in bodies are kept."""
    queue = _any_queue(world)
    given: dict[str, Any] = {"QueueUrl": f"{URL}/{queue}", "MaxNumberOfMessages": world.chance.randrange(1, 11)}
    if world.chance.random() < 0.4:
        given["VisibilityTimeout"] = world.chance.choice((0, 1, 20, 600))
    count = 0

    def kept(said: dict[str, Any]) -> None:
        nonlocal count
        count += len(said.get("Messages", ()))
        for one in said.get("Messages", ()):
            note_receipt(world, queue, one)

    answer = world.ask("sqs", "ReceiveMessage", given, kept)
    return f"receive {count} from {queue}: {answer}"


def note_receipt(world: World, queue: str, message: dict[str, Any]) -> None:
    """Remember a received message. One that was deleted for good is a violation."""
    body = loads(message["Body"])
    if message["MessageId"] in world.told.buried:
        raise Violation("deleted messages stay away", f"{body['key']} was deleted and received again from {queue}")
    key, receipt = str(body["key"]), message["ReceiptHandle"]
    world.told.latest[message["MessageId"]] = (queue, receipt, key)
    world.told.receipts.append((queue, receipt, message["MessageId"], key))
    if "token" in body:
        world.told.tokens.append(body["token"])


def delete(world: World) -> str:
    """DeleteMessage: with a fresh receipt, or with an old one, or one that was used before."""
    told = world.told
    if not told.receipts:
        return "delete: nothing received"
    late = world.chance.random() < 0.3
    queue, receipt, message, key = world.chance.choice(told.receipts[:] if late else told.receipts[-10:])
    decides = queue not in PIPED and told.latest[message] == (queue, receipt, key)
    there = any(one.id == message for one in _census(world, queue))

    def kept(_said: dict[str, Any]) -> None:
        told.removed[key].add(receipt)

    answer = world.ask("sqs", "DeleteMessage", {"QueueUrl": f"{URL}/{queue}", "ReceiptHandle": receipt}, kept)
    if answer.said is not None and decides and there:
        told.buried.add(message)
        if any(one.id == message for one in _census(world, queue)):
            raise Violation(
                "deleted messages stay away", f"{key} was deleted from {queue} by its receipt and stands there"
            )
    return f"delete {key} from {queue}: {answer}"


def delete_batch(world: World) -> str:
    """DeleteMessageBatch of the last receipts of one queue."""
    told = world.told
    if not told.receipts:
        return "delete: nothing received"
    queue = told.receipts[-1][0]
    chosen = [one for one in told.receipts[-10:] if one[0] == queue]
    entries = [{"Id": str(n), "ReceiptHandle": one[1]} for n, one in enumerate(chosen)]

    def kept(said: dict[str, Any]) -> None:
        for one in said.get("Successful", ()):
            told.removed[chosen[int(one["Id"])][3]].add(chosen[int(one["Id"])][1])

    answer = world.ask("sqs", "DeleteMessageBatch", {"QueueUrl": f"{URL}/{queue}", "Entries": entries}, kept)
    return f"delete {len(entries)} from {queue}: {answer}"


def change_visibility(world: World) -> str:
    """ChangeMessageVisibility, also to 0 and with old receipts."""
    if not world.told.receipts:
        return "visibility: nothing received"
    queue, receipt, _, key = world.chance.choice(world.told.receipts[-20:])
    timeout = world.chance.choice((0, 5, 60, 40_000))
    given = {"QueueUrl": f"{URL}/{queue}", "ReceiptHandle": receipt, "VisibilityTimeout": timeout}
    return f"visibility of {key} in {queue} to {timeout}: {world.ask('sqs', 'ChangeMessageVisibility', given)}"


def purge(world: World) -> str:
    """PurgeQueue."""
    queue = _any_queue(world)
    if queue == TICKS:
        return "purge: none"  # whatever is delivered there is looked for
    answer = take_away(world, queue, "PurgeQueue")
    return f"purge {queue}: {answer}"


def create(world: World) -> str:
    """CreateQueue: one of those that come and go, with a dead-letter queue perhaps."""
    name = world.chance.choice(COMING)
    attributes: dict[str, str] = {}
    if world.chance.random() < 0.5:
        attributes["RedrivePolicy"] = dumps({"deadLetterTargetArn": f"{_ARN}dead", "maxReceiveCount": 2})
    answer = world.ask("sqs", "CreateQueue", {"QueueName": name, "Attributes": attributes})
    return f"create {name}: {answer}"


def drop(world: World) -> str:
    """DeleteQueue."""
    name = world.chance.choice(COMING)
    return f"drop {name}: {take_away(world, name, 'DeleteQueue')}"


def take_away(world: World, queue: str, operation: str) -> str:
    """Purge or delete a queue; what stood there is accounted for."""
    standing = _census(world, queue)

    def kept(_said: dict[str, Any]) -> None:
        for one in standing:
            world.told.purged[one.key] += 1
        standing.clear()

    return str(world.ask("sqs", operation, {"QueueUrl": f"{URL}/{queue}"}, kept))


def _census(world: World, queue: str) -> list[Standing]:
    return world.look(lambda tx: world.census.take(tx, queue=queue))


def redrive(world: World) -> str:
    """StartMessageMoveTask out of the dead-letter queue, to where messages came from or elsewhere."""
    given: dict[str, Any] = {"SourceArn": f"{_ARN}dead"}
    if world.chance.random() < 0.4:
        given["DestinationArn"] = f"{_ARN}notes"
    if world.chance.random() < 0.5:
        given["MaxNumberOfMessagesPerSecond"] = world.chance.randrange(1, 20)
    return f"redrive: {world.ask('sqs', 'StartMessageMoveTask', given)}"


def cancel_redrive(world: World) -> str:
    """CancelMessageMoveTask."""
    listed = world.ask("sqs", "ListMessageMoveTasks", {"SourceArn": f"{_ARN}dead"})
    handles = [one["TaskHandle"] for one in (listed.said or {}).get("Results", ()) if "TaskHandle" in one]
    if not handles:
        return "cancel redrive: none"
    return f"cancel redrive: {world.ask('sqs', 'CancelMessageMoveTask', {'TaskHandle': handles[0]})}"
