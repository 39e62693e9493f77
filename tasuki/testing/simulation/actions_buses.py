"""What clients do with buses, rules, targets and events, and with what is outside of the house."""

from typing import Any

from tasuki.testing.simulation.actions_machines import ROLE
from tasuki.testing.simulation.actions_schedules import BIN, LETTERS
from tasuki.testing.simulation.shapes import TICKS
from tasuki.testing.simulation.told_rules import OF_THE_HOUSE, PATTERNS, Event, bus_of, rule_arn
from tasuki.testing.simulation.world import World
from tasuki.values.documents import dumps

SERVICE = "events"
POLICIES = {
    "r1": (0, 60),
    "r2": (3, 900),
    "r3": (6, 3 * 3_600),
    "r4": (2, 86_400),
    "h": (3, 3_600),
    "f": (1, 3_600),
    "k1": (2, 3_600),
    "k2": (5, 600),
}
"""By the rule's name, so that they never change. `h` hears of the house itself (and starts nothing: that would go round for ever),
`f` passes on to another bus, `k1` and `k2` have schedules."""
BUSES = ("default", "default", "orders", "far")
_HERE = "us-east-1:000000000000"
_PASSES_ON = {"default": "orders", "orders": "default", "far": "default"}
_SCHEDULES = ("rate(25 minutes)", "rate(1 hour)", "rate(2 days)", "cron(5/40 * * * ? *)", "cron(0 3 * * ? *)")
_INPUT = {"n": 2, "s": 1, "items": [], "image": "quick"}


def create_fixed(world: World) -> None:
    """Create the endpoint outside that rules and pipes call."""
    basic = {"BasicAuthParameters": {"Username": "anna", "Password": "secret"}}
    made = world.ask(
        SERVICE, "CreateConnection", {"Name": "outside", "AuthorizationType": "BASIC", "AuthParameters": basic}
    )
    assert made.said is not None, f"the connection was refused: {made.refused}"
    world.told.connection = made.said["ConnectionArn"]
    create_destination(world)


def create_destination(world: World) -> str:
    """CreateApiDestination."""
    given = {
        "Name": "hook",
        "ConnectionArn": world.told.connection,
        "InvocationEndpoint": "https://hook.example/take",
        "HttpMethod": "POST",
        "InvocationRateLimitPerSecond": world.chance.choice((1, 5, 300)),
    }

    def kept(said: dict[str, Any]) -> None:
        world.told.destination = said["ApiDestinationArn"]

    return f"create destination: {world.ask(SERVICE, 'CreateApiDestination', given, kept)}"


def change_destination(world: World) -> str:
    """DeleteApiDestination, with calls under way perhaps; or it is there again, and is another one."""
    if world.chance.random() < 0.35:
        return f"delete destination: {world.ask(SERVICE, 'DeleteApiDestination', {'Name': 'hook'})}"
    return create_destination(world)


def create_bus(world: World) -> str:
    """CreateEventBus."""
    name = world.chance.choice(BUSES[2:])
    return f"create bus {name}: {world.ask(SERVICE, 'CreateEventBus', {'Name': name})}"


def delete_bus(world: World) -> str:
    """DeleteEventBus: its rules first, mostly."""
    name = world.chance.choice(BUSES[2:])
    for arn in world.told.rules.there():
        if bus_of(arn) == name and world.chance.random() < 0.8:
            forget(world, arn)
    return f"delete bus {name}: {world.ask(SERVICE, 'DeleteEventBus', {'Name': name})}"


def put_rule(world: World) -> str:
    """PutRule: a new one, or said anew; with a pattern, or with a schedule."""
    chance = world.chance
    name = chance.choice(tuple(POLICIES))
    has_schedule = name.startswith("k")
    bus = "default" if has_schedule or name == "h" else chance.choice(BUSES)
    arn = rule_arn(bus, name)
    state = "DISABLED" if chance.random() < 0.15 else "ENABLED"
    given: dict[str, Any] = {"Name": name, "EventBusName": bus, "State": state}
    pattern = schedule = ""
    if has_schedule:
        given["ScheduleExpression"] = schedule = chance.choice(_SCHEDULES)
    else:
        pattern = chance.choice([one for one in PATTERNS if (one in OF_THE_HOUSE) == (name == "h")])
        given["EventPattern"] = PATTERNS[pattern][0]

    def kept(_said: dict[str, Any]) -> None:
        enabled = state == "ENABLED"
        world.told.rules.change(arn, world.clock.now(), pattern=pattern, schedule=schedule, enabled=enabled)

    answer = world.ask(SERVICE, "PutRule", given, kept)
    if answer.said is not None and not world.told.rules.eras[arn][-1].targets:
        return f"put rule {bus}/{name} {pattern or schedule}: {answer}; {put_targets(world, arn)}"
    return f"put rule {bus}/{name} {pattern or schedule}: {answer}"


def _template(key: str) -> dict[str, Any]:
    paths = {"id": "$.id", "time": "$.time"}
    return {"InputTransformer": {"InputPathsMap": paths, "InputTemplate": f'{{"key":"{key}"}}'}}


def _targets(world: World, arn: str) -> list[dict[str, Any]]:
    """Draw targets, each with an ARN of its own."""
    chance, told = world.chance, world.told
    name = arn.rpartition("/")[2]
    retries, age = POLICIES[name]
    own = "r:<aws.events.rule-arn>@<time>" if name.startswith("k") else "ev:<id>:<aws.events.rule-arn>"
    all_kinds: dict[str, dict[str, Any]] = {
        "queue": {"Arn": f"arn:aws:sqs:{_HERE}:{TICKS}", **_template(f"{own}:q")},
        "bin": {"Arn": f"arn:aws:sqs:{_HERE}:{BIN}", **_template(f"{own}:b")},
        "machine": {
            "Arn": told.machines[chance.choice(("choose", "announce"))],
            "RoleArn": ROLE,
            "Input": dumps(_INPUT),
        },
        "task": {
            "Arn": f"arn:aws:ecs:{_HERE}:cluster/default",
            "RoleArn": ROLE,
            "EcsParameters": {"TaskDefinitionArn": f"arn:aws:ecs:{_HERE}:task-definition/quick"},
        },
        "outside": {"Arn": told.destination, "RoleArn": ROLE, **_template(f"{own}:o")},
    }
    if name == "f":
        all_kinds = {"bus": {"Arn": f"arn:aws:events:{_HERE}:event-bus/{_PASSES_ON[bus_of(arn)]}"}}
    if name == "h":
        del all_kinds["machine"], all_kinds["task"]
    weights = {"task": 0.2, "machine": 0.4, "outside": 0.6}
    chosen = [kind for kind in all_kinds if chance.random() < weights.get(kind, 0.8)]
    policy = {"MaximumRetryAttempts": retries, "MaximumEventAgeInSeconds": age}
    made = []
    for kind in chosen:
        target = {"Id": kind, "RetryPolicy": policy, **all_kinds[kind]}
        letters = chance.choice((LETTERS, LETTERS, LETTERS, "nowhere", ""))
        if letters:
            target["DeadLetterConfig"] = {"Arn": f"arn:aws:sqs:{_HERE}:{letters}"}
        made.append(target)
    return made


def _place(arn: str) -> dict[str, Any]:
    return {"Rule": arn.rpartition("/")[2], "EventBusName": bus_of(arn)}


def put_targets(world: World, arn: str) -> str:
    """PutTargets."""
    targets = _targets(world, arn)
    if not targets:
        return "no targets"

    def kept(_said: dict[str, Any]) -> None:
        before = world.told.rules.eras[arn][-1].targets
        after = {**before, **{target["Id"]: target["Arn"] for target in targets}}
        world.told.rules.change(arn, world.clock.now(), targets=after)

    return f"put {len(targets)} targets: {world.ask(SERVICE, 'PutTargets', {**_place(arn), 'Targets': targets}, kept)}"


def _clear(world: World, arn: str) -> str:
    def kept(_said: dict[str, Any]) -> None:
        if arn not in world.told.rules.gone:
            world.told.rules.change(arn, world.clock.now(), targets={})

    ids = ["queue", "bin", "machine", "task", "outside", "bus"]
    return str(world.ask(SERVICE, "RemoveTargets", {**_place(arn), "Ids": ids}, kept))


def forget(world: World, arn: str) -> str:
    """RemoveTargets and DeleteRule."""

    def kept(_said: dict[str, Any]) -> None:
        world.told.rules.delete(arn, world.clock.now())

    cleared = _clear(world, arn)
    given = {"Name": arn.rpartition("/")[2], "EventBusName": bus_of(arn)}
    return f"{cleared}, {world.ask(SERVICE, 'DeleteRule', given, kept)}"


def change_rule(world: World) -> str:
    """EnableRule, DisableRule, PutTargets, RemoveTargets, DeleteRule."""
    known = world.told.rules.there()
    if not known:
        return "change a rule: none"
    arn = world.chance.choice(known)
    what = world.chance.choice(("EnableRule", "DisableRule", "targets", "clear", "delete"))
    if what == "targets":
        return f"targets of {arn[40:]}: {put_targets(world, arn)}"
    if what == "clear":
        return f"clear {arn[40:]}: {_clear(world, arn)}"
    if what == "delete":
        return f"delete {arn[40:]}: {forget(world, arn)}"

    def kept(_said: dict[str, Any]) -> None:
        world.told.rules.change(arn, world.clock.now(), enabled=what == "EnableRule")

    given = {"Name": arn.rpartition("/")[2], "EventBusName": bus_of(arn)}
    return f"{what} {arn[40:]}: {world.ask(SERVICE, what, given, kept)}"


def put_events(world: World) -> str:
    """PutEvents: several, sometimes one that is refused, to buses that are there or not."""
    chance = world.chance
    entries: list[dict[str, Any]] = []
    for _ in range(chance.choice((1, 1, 3, 10))):
        detail = {"kind": chance.choice("abc"), "n": chance.randrange(4), "key": "e"}
        if chance.random() < 0.05:
            detail["pad"] = "x" * 20_000
        entry: dict[str, Any] = {"Source": chance.choice(("shop", "shed", "bank")), "DetailType": "Order"}
        entry |= {"Detail": dumps(detail), "EventBusName": chance.choice(BUSES)}
        entries.append(entry)
    if chance.random() < 0.2:
        entries[0]["Detail"] = "[]"

    def kept(said: dict[str, Any]) -> None:
        from tasuki.values.documents import loads

        for entry, answer in zip(entries, said["Entries"], strict=True):
            if "EventId" not in answer:
                continue
            detail = loads(entry["Detail"])
            told = Event(
                entry["EventBusName"],
                answer["EventId"],
                entry["Source"],
                detail["kind"],
                detail["n"],
                world.clock.now(),
            )
            world.told.rules.take(told)

    return f"put {len(entries)} events: {world.ask(SERVICE, 'PutEvents', {'Entries': entries}, kept)}"


def end_all(world: World) -> None:
    """Delete all rules: what they matched is still tried."""
    for arn in world.told.rules.there():
        forget(world, arn)
