"""Rushes: several clients who want the same thing at the same moment, each from any node."""

from collections import Counter
from typing import Any

from tasuki.testing.simulation.actions_machines import SERVICE, draw_input
from tasuki.testing.simulation.actions_queues import COMING, note_receipt
from tasuki.testing.simulation.moody import IMAGES
from tasuki.testing.simulation.shapes import QUEUES, STANDARD, URL
from tasuki.testing.simulation.world import Call, Violation, World
from tasuki.values.documents import dumps


def _play(world: World, calls: list[Call]) -> str:
    return ", ".join(str(answer) for answer in world.ask_together(calls))


def _crowd(world: World) -> range:
    return range(world.chance.randrange(2, 5))


def starts(world: World) -> str:
    """StartExecution with one name and input: one execution."""
    name = world.chance.choice(tuple(STANDARD))
    title = f"r{len(world.told.executions)}-{world.chance.randrange(10_000)}"
    given = {"stateMachineArn": world.told.machines[name], "input": dumps(draw_input(world)), "name": title}

    def kept(said: dict[str, Any]) -> None:
        world.told.executions[said["executionArn"]] = name
        world.told.started["StartExecution", f"{name} {title}"].add(said["executionArn"])

    return f"rush to start {name}: {_play(world, [(SERVICE, 'StartExecution', given, kept) for _ in _crowd(world)])}"


def tasks(world: World) -> str:
    """RunTask with one client token: one lot of tasks."""
    token = f"r{len(world.told.requests)}"
    image = world.chance.choice(tuple(IMAGES))
    given = {"taskDefinition": image, "clientToken": token, "startedBy": token, "count": 2}
    world.told.requests.append(("RunTask", given, world.clock.now()))

    def kept(said: dict[str, Any]) -> None:
        arns = sorted(one["taskArn"] for one in said["tasks"])
        if arns:
            world.told.started["RunTask", token].add(" ".join(arns))

    return f"rush to run {image}: {_play(world, [('ecs', 'RunTask', given, kept) for _ in _crowd(world)])}"


def sends(world: World) -> str:
    """SendMessage, each its own."""
    queue, at, first = world.chance.choice(("jobs", "notes", "short", *COMING)), world.clock.now(), len(world.told.sent)
    calls: list[Call] = []
    for number in _crowd(world):
        key = f"m{first}-{number}"

        def kept(said: dict[str, Any], key: str = key) -> None:
            world.told.note_send(key, queue, said["MessageId"], at)

        body = dumps({"key": key, "kind": "a", "n": number})
        calls.append(("sqs", "SendMessage", {"QueueUrl": f"{URL}/{queue}", "MessageBody": body}, kept))
    return f"rush to send to {queue}: {_play(world, calls)}"


def receives(world: World) -> str:
    """ReceiveMessage from one queue: no two get the same message."""
    queue = world.chance.choice(("jobs", *QUEUES, *COMING))
    given = {"QueueUrl": f"{URL}/{queue}", "MaxNumberOfMessages": 5, "VisibilityTimeout": 60}
    got: Counter[str] = Counter()

    def kept(said: dict[str, Any]) -> None:
        for one in said.get("Messages", ()):
            got[one["MessageId"]] += 1
            note_receipt(world, queue, one)

    answers = _play(world, [("sqs", "ReceiveMessage", given, kept) for _ in _crowd(world)])
    twice = [message for message, count in got.items() if count > 1]
    if twice:
        raise Violation("no message is doubled", f"{twice[:3]} from {queue} were received twice at the same moment")
    return f"rush to receive from {queue}, {got.total()} received: {answers}"


def deletes(world: World) -> str:
    """DeleteMessage by one receipt: counted once."""
    if not world.told.receipts:
        return "rush to delete: nothing received"
    queue, receipt, _, key = world.chance.choice(world.told.receipts[-10:])

    def kept(_said: dict[str, Any]) -> None:
        world.told.removed[key].add(receipt)

    given = {"QueueUrl": f"{URL}/{queue}", "ReceiptHandle": receipt}
    return f"rush to delete {key}: {_play(world, [('sqs', 'DeleteMessage', given, kept) for _ in _crowd(world)])}"


def answers(world: World) -> str:
    """SendTaskSuccess and SendTaskFailure with one token: its task ends once."""
    if not world.told.tokens:
        return "rush to answer: no token"
    token = world.chance.choice(world.told.tokens[-8:])
    calls: list[Call] = []
    for number in _crowd(world):
        success: dict[str, Any] = {"taskToken": token, "output": '{"done":true}'}
        failure: dict[str, Any] = {"taskToken": token, "error": "Client"}
        calls.append(
            (SERVICE, "SendTaskFailure", failure, None) if number % 2 else (SERVICE, "SendTaskSuccess", success, None)
        )
    return f"rush to answer: {_play(world, calls)}"


def ends(world: World) -> str:
    """StopExecution, RedriveExecution and a token's answer at the same moment."""
    known = list(world.told.executions)
    if not known:
        return "rush to end: none"
    arn = world.chance.choice(known[-12:])
    calls: list[Call] = [
        (SERVICE, "StopExecution", {"executionArn": arn}, None),
        (SERVICE, "RedriveExecution", {"executionArn": arn}, None),
        (SERVICE, "StopExecution", {"executionArn": arn}, None),
    ]
    if world.told.tokens:
        calls.append((SERVICE, "SendTaskSuccess", {"taskToken": world.told.tokens[-1], "output": "{}"}, None))
    world.chance.shuffle(calls)
    return f"rush to end: {_play(world, calls)}"


def queues(world: World) -> str:
    """CreateQueue with one name."""
    name = world.chance.choice(COMING)
    calls: list[Call] = [("sqs", "CreateQueue", {"QueueName": name}, None) for _ in _crowd(world)]
    return f"rush to create {name}: {_play(world, calls)}"
