"""What clients do with machines, executions, tokens and activities."""

from typing import Any

from tasuki.testing.simulation.moody import IMAGES
from tasuki.testing.simulation.shapes import ARN, EXPRESS, STANDARD
from tasuki.testing.simulation.world import World
from tasuki.values.documents import dumps

ROLE = "arn:aws:iam::000000000000:role/any"
SERVICE = "stepfunctions"
_RECENT = 25


def create_fixed(world: World) -> None:
    """Create the machines and the activity."""
    world.ask(SERVICE, "CreateActivity", {"name": "press"})
    for kind, shapes in (("STANDARD", STANDARD), ("EXPRESS", EXPRESS)):
        for name, shape in shapes.items():
            given = {"name": name, "definition": dumps(shape), "roleArn": ROLE, "type": kind}
            made = world.ask(SERVICE, "CreateStateMachine", given)
            assert made.said is not None, f"machine {name} was refused: {made.refused}"
            world.told.machines[name] = made.said["stateMachineArn"]


def draw_input(world: World) -> dict[str, Any]:
    """Draw an input that every machine takes."""
    chance = world.chance
    waits = (0, 1, 5, 60, 300)
    items = [{"n": chance.randrange(4), "s": chance.choice(waits)} for _ in range(chance.randrange(5))]
    return {
        "n": chance.randrange(4),
        "s": chance.choice(waits),
        "items": items,
        "image": chance.choice(tuple(IMAGES)),
    }


def start(world: World) -> str:
    """StartExecution: with a name, which makes it safe to repeat, or without."""
    name = world.chance.choice(tuple(STANDARD))
    given: dict[str, Any] = {"stateMachineArn": world.told.machines[name], "input": dumps(draw_input(world))}
    named = world.chance.random() < 0.6
    if named:
        given["name"] = f"e{len(world.told.executions)}-{world.chance.randrange(10_000)}"
        world.told.requests.append(("StartExecution", given, world.clock.now()))

    def kept(said: dict[str, Any]) -> None:
        world.told.executions[said["executionArn"]] = name
        if named:
            world.told.started["StartExecution", f"{name} {given['name']}"].add(said["executionArn"])

    return f"start {name}: {world.ask(SERVICE, 'StartExecution', given, kept)}"


def repeat_start(world: World) -> str:
    """The same StartExecution again: the same answer, or a refusal once it has ended."""
    known = world.told.repeatable("StartExecution", world.clock.now())
    if not known:
        return "repeat: none"
    given = world.chance.choice(known)
    name = given["stateMachineArn"].rpartition(":")[2]

    def kept(said: dict[str, Any]) -> None:
        world.told.started["StartExecution", f"{name} {given['name']}"].add(said["executionArn"])

    return f"repeat the start of {given['name']}: {world.ask(SERVICE, 'StartExecution', given, kept)}"


def start_express(world: World) -> str:
    """StartExecution or StartSyncExecution of an Express machine."""
    name = world.chance.choice(tuple(EXPRESS))
    operation = world.chance.choice(("StartExecution", "StartSyncExecution"))
    given = {"stateMachineArn": world.told.machines[name], "input": dumps(draw_input(world))}
    return f"{operation} {name}: {world.ask(SERVICE, operation, given)}"


def _execution(world: World) -> str | None:
    known = list(world.told.executions)
    return world.chance.choice(known[-_RECENT:]) if known else None


def stop(world: World) -> str:
    """StopExecution."""
    arn = _execution(world)
    return f"stop: {world.ask(SERVICE, 'StopExecution', {'executionArn': arn}) if arn else 'none'}"


def redrive(world: World) -> str:
    """RedriveExecution, with a client token sometimes, and twice."""
    known = list(world.told.executions)
    if not known:
        return "redrive: none"
    given = {"executionArn": world.chance.choice(known)}
    if world.chance.random() < 0.5:
        given["clientToken"] = f"t{world.chance.randrange(5)}"
    answers = [str(world.ask(SERVICE, "RedriveExecution", given)) for _ in range(world.chance.randrange(1, 3))]
    return f"redrive an execution: {', '.join(answers)}"


def answer(world: World) -> str:
    """SendTaskSuccess, -Failure or -Heartbeat: in time, late, twice."""
    tokens = world.told.tokens
    if not tokens:
        return "token: none"
    token = world.chance.choice(tokens[-8:] if world.chance.random() < 0.8 else tokens)
    operation = world.chance.choice(("SendTaskSuccess", "SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"))
    given = {"taskToken": token}
    if operation == "SendTaskSuccess":
        given["output"] = '{"done":true}'
    elif operation == "SendTaskFailure":
        given |= {"error": "Client", "cause": "said so"}
    answers = [str(world.ask(SERVICE, operation, given)) for _ in range(world.chance.randrange(1, 3))]
    return f"{operation}: {', '.join(answers)}"


def work(world: World) -> str:
    """GetActivityTask: the token is answered later, by `answer`, or never."""
    given = {"activityArn": f"{ARN}:activity:press", "workerName": "anna"}

    def kept(said: dict[str, Any]) -> None:
        if said.get("taskToken"):
            world.told.tokens.append(said["taskToken"])

    return f"work: {world.ask(SERVICE, 'GetActivityTask', given, kept)}"


def update(world: World) -> str:
    """UpdateStateMachine: open executions stay on their revision."""
    name = world.chance.choice(tuple(STANDARD))
    shape = {**STANDARD[name], "Comment": f"revision {world.chance.randrange(1_000)}"}
    given = {"stateMachineArn": world.told.machines[name], "definition": dumps(shape)}
    return f"update {name}: {world.ask(SERVICE, 'UpdateStateMachine', given)}"
