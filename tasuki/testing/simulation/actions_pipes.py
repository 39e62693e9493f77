"""What clients do with pipes: every kind of target, filters, windows, templates, enrichment; stopped and deleted with batches on their way."""

from typing import Any

from tasuki.testing.simulation.actions_machines import ROLE
from tasuki.testing.simulation.actions_queues import PIPED
from tasuki.testing.simulation.actions_schedules import BIN
from tasuki.testing.simulation.shapes import TICKS
from tasuki.testing.simulation.world import World

PIPES = ("p1", "p2", "p3", "p4")
_MACHINES = ("choose", "wait", "announce", "job", "quick", "batch", "partial")
_FILTER = '{"body":{"kind":["a","b"]}}'
_TEMPLATE = '{"n":1,"s":2,"image":"quick","items":[],"from":<$.body>}'
_NAMED = '{"itemIdentifier":<$.messageId>,"n":<$.body.n>}'
_EVENT = '{"key":<$.body.key>,"kind":<$.body.kind>,"n":<$.body.n>}'
_PARTS = ("StartPipe", "StopPipe", "DeletePipe")
_HERE = "us-east-1:000000000000"


def create_pipe(world: World) -> str:
    """CreatePipe, or UpdatePipe of one that is there: other batches, another filter."""
    chance = world.chance
    name, queue = chance.choice(PIPES), chance.choice(("jobs", "jobs", "jobs", *PIPED))
    given = {
        "Name": name,
        "RoleArn": ROLE,
        "Source": f"arn:aws:sqs:us-east-1:000000000000:{queue}",
        **(_to_machine(world) if chance.random() < 0.5 else _to_others(world)),
    }
    answer = world.ask("pipes", "CreatePipe", given)
    if answer.refused == "ConflictException" and chance.random() < 0.5:
        changed = {"Name": name, "RoleArn": ROLE, "SourceParameters": _source(world, (1, 10))}
        return f"update pipe {name}: {world.ask('pipes', 'UpdatePipe', changed)}"
    target, enriched = given["Target"].rpartition(":")[2], " enriched" if "Enrichment" in given else ""
    return f"pipe {name}, {queue}{enriched} to {target}: {answer}"


def _source(world: World, batches: tuple[int, ...]) -> dict[str, Any]:
    chance = world.chance
    source: dict[str, Any] = {"SqsQueueParameters": {"BatchSize": chance.choice(batches)}}
    if chance.random() < 0.3:
        source["SqsQueueParameters"]["MaximumBatchingWindowInSeconds"] = chance.choice((1, 20))
    if chance.random() < 0.4:
        source["FilterCriteria"] = {"Filters": [{"Pattern": _FILTER}]}
    return source


def _to_machine(world: World) -> dict[str, Any]:
    chance = world.chance
    target = chance.choice(_MACHINES)
    waits = target == "partial" or (target in {"quick", "batch"} and chance.random() < 0.6)
    kind = "REQUEST_RESPONSE" if waits else "FIRE_AND_FORGET"
    parameters: dict[str, Any] = {"StepFunctionStateMachineParameters": {"InvocationType": kind}}
    if target == "partial":
        parameters["InputTemplate"] = _NAMED
    elif chance.random() < 0.3:
        parameters["InputTemplate"] = _TEMPLATE
    return {
        "SourceParameters": _source(world, (1, 2, 10)),
        "Target": world.told.machines[target],
        "TargetParameters": parameters,
    }


def _to_others(world: World) -> dict[str, Any]:
    """A queue, tasks, a bus or the endpoint outside; a queue perhaps with an enrichment before it."""
    chance, told = world.chance, world.told
    kind = chance.choice(("queue", "queue", "bin", "bus", "tasks", "outside"))
    batches: tuple[int, ...] = (1, 2, 10)
    given: dict[str, Any] = {"TargetParameters": {}}
    match kind:
        case "queue" | "bin":
            given["Target"] = f"arn:aws:sqs:{_HERE}:{TICKS if kind == 'queue' else BIN}"
            if chance.random() < 0.6:
                given["Enrichment"] = told.machines[chance.choice(("enrich", "enrich", "enrich_late"))]
                given["EnrichmentParameters"] = {"InputTemplate": '{"id":<$.messageId>,"n":<$.body.n>}'}
            else:
                given["TargetParameters"] = {"InputTemplate": "<$.body>"}
        case "bus":
            given["Target"] = f"arn:aws:events:{_HERE}:event-bus/{chance.choice(('default', 'orders'))}"
            parameters = {"DetailType": "Piped", "Source": "pipe"}
            given["TargetParameters"] = {"EventBridgeEventBusParameters": parameters, "InputTemplate": _EVENT}
        case "tasks":
            batches = (1,)
            parameters = {"TaskDefinitionArn": f"arn:aws:ecs:{_HERE}:task-definition/quick"}
            given["Target"] = f"arn:aws:ecs:{_HERE}:cluster/default"
            given["TargetParameters"] = {"EcsTaskParameters": parameters}
        case _:
            batches = (1,)
            given["Target"] = told.destination
            given["TargetParameters"] = {"InputTemplate": _EVENT}
    return {"SourceParameters": _source(world, batches), **given}


def change_pipe(world: World) -> str:
    """StartPipe, StopPipe or DeletePipe: batches that are on their way end as they began."""
    name, operation = world.chance.choice(PIPES), world.chance.choice(_PARTS)
    return f"{operation} {name}: {world.ask('pipes', operation, {'Name': name})}"
