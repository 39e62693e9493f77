"""What clients do with schedules and their groups, and with the queue and the bus that come and go under them."""

from typing import Any

from tasuki.testing.simulation.actions_machines import ROLE
from tasuki.testing.simulation.actions_queues import take_away
from tasuki.testing.simulation.shapes import TICKS, URL
from tasuki.testing.simulation.told_schedules import ARN, arn_of
from tasuki.testing.simulation.world import World
from tasuki.values.documents import dumps
from tasuki.values.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_iso

SERVICE = "scheduler"
NAMES = ("s1", "s2", "s3", "s4", "s5")
GROUPS = ("default", "g1", "g2")
_PLACES = ("default", "default", "g1", "g2")
POLICIES = {
    "s1": (0, 60),
    "s2": (2, 900),
    "s3": (5, 3 * 3_600),
    "s4": (1, 86_400),
    "s5": (8, 120),
}
"""By name, so that they never change: how many times a tick is tried again, and for how many seconds."""
BIN = "bin"
LETTERS = "letters"
LETTERS_KEPT = 14 * DAY
_QUEUE = "arn:aws:sqs:us-east-1:000000000000:"
_KEY = "t:<aws.scheduler.schedule-arn>@<aws.scheduler.scheduled-time>"
_SAID = {"key": _KEY, "attempt": "<aws.scheduler.attempt-number>"}
_INPUT = {"n": 2, "s": 1, "items": [], "image": "quick", "planned": "<aws.scheduler.scheduled-time>"}
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
_RATES = ("rate(20 minutes)", "rate(1 hour)", "rate(7 hours)", "rate(1 day)")
_CRONS = ("cron(0/30 * * * ? *)", "cron(15 */2 * * ? *)", "cron(30 2 * * ? *)", "cron(0 6 ? * MON-FRI *)")


def create_fixed(world: World) -> None:
    """Create the queue of dead letters and the groups."""
    attributes = {"MessageRetentionPeriod": str(LETTERS_KEPT // SECOND)}
    world.ask("sqs", "CreateQueue", {"QueueName": LETTERS, "Attributes": attributes})
    world.told.retention[LETTERS] = LETTERS_KEPT
    for name in GROUPS[1:]:
        world.ask(SERVICE, "CreateScheduleGroup", {"Name": name})


def draw_target(world: World, name: str) -> dict[str, Any]:
    """Draw what a schedule calls: of any kind, and not always there."""
    chance = world.chance
    retries, age = POLICIES[name]
    target: dict[str, Any] = {
        "RoleArn": ROLE,
        "RetryPolicy": {"MaximumRetryAttempts": retries, "MaximumEventAgeInSeconds": age},
    }
    letters = chance.choice((LETTERS, LETTERS, LETTERS, "nowhere", ""))
    if letters:
        target["DeadLetterConfig"] = {"Arn": _QUEUE + letters}
    kind = chance.choice(("queue", "queue", "queue", "bin", "bin", "machine", "task", "bus", "send", "start", "nobody"))
    match kind:
        case "queue" | "bin":
            target |= {"Arn": _QUEUE + (TICKS if kind == "queue" else BIN), "Input": dumps(_SAID)}
        case "machine" | "nobody":
            machine = world.told.machines[chance.choice(("announce", "choose", "wait"))]
            target |= {"Arn": machine if kind == "machine" else machine + "x", "Input": dumps(_INPUT)}
        case "task":
            family = chance.choice(("quick", "quick", "none-such"))
            environment = [{"name": "main", "environment": [{"name": "PLANNED", "value": _KEY}]}]
            target |= {
                "Arn": "arn:aws:ecs:us-east-1:000000000000:cluster/default",
                "EcsParameters": {"TaskDefinitionArn": f"arn:aws:ecs:us-east-1:000000000000:task-definition/{family}"},
                "Input": dumps({"containerOverrides": environment}),
            }
        case "bus":
            target |= {
                "Arn": f"arn:aws:events:us-east-1:000000000000:event-bus/{chance.choice(('default', 'orders'))}",
                "EventBridgeParameters": {"DetailType": "Tick", "Source": "clock"},
                "Input": dumps({**_SAID, "kind": "a", "n": 2}),
            }
        case "send":
            queue = chance.choice((TICKS, TICKS, BIN))
            given = {"QueueUrl": f"{URL}/{queue}", "MessageBody": dumps(_SAID).replace('"', '\\"')}
            text = f'{{"QueueUrl":"{given["QueueUrl"]}","MessageBody":"{given["MessageBody"]}"}}'
            target |= {"Arn": "arn:aws:scheduler:::aws-sdk:sqs:sendMessage", "Input": text}
        case _:
            given = {"StateMachineArn": world.told.machines["choose"], "Input": dumps(_INPUT)}
            target |= {"Arn": "arn:aws:scheduler:::aws-sdk:sfn:startExecution", "Input": dumps(given)}
    return target


def draw_times(world: World) -> dict[str, Any]:
    """Draw when a schedule fires."""
    chance, now = world.chance, world.clock.now()
    given: dict[str, Any] = {"FlexibleTimeWindow": {"Mode": "OFF"}}
    kind = chance.choice(("at", "rate", "rate", "cron", "cron", "burst"))
    if kind == "at":
        at = now + chance.choice((-MINUTE, 0, 30 * SECOND, 10 * MINUTE, 5 * HOUR, DAY))
        given["ScheduleExpression"] = f"at({to_iso(at)[:19]})"
    elif kind == "burst":
        given |= {"ScheduleExpression": "rate(1 minute)", "EndDate": now + 20 * MINUTE}
    else:
        given["ScheduleExpression"] = chance.choice(_RATES if kind == "rate" else _CRONS)
        given["ScheduleExpressionTimezone"] = chance.choice(_ZONES)
        _draw_dates(world, given, now)
    if kind != "burst" and chance.random() < 0.3:
        given["FlexibleTimeWindow"] = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": chance.choice((1, 15, 20))}
    return given


def _draw_dates(world: World, given: dict[str, Any], now: Instant) -> None:
    chance = world.chance
    if chance.random() < 0.4:
        given["StartDate"] = now + chance.choice((-4 * MINUTE, 0, 90 * SECOND, 3 * HOUR))
    if chance.random() < 0.4:
        given["EndDate"] = now + chance.choice((4 * HOUR, 9 * HOUR, 3 * DAY))


def _draw(world: World) -> dict[str, Any]:
    chance = world.chance
    name = chance.choice(NAMES)
    given = {"Name": name, "Target": draw_target(world, name), **draw_times(world)}
    group = chance.choice(_PLACES)
    if group != "default":
        given["GroupName"] = group
    if chance.random() < 0.15:
        given["State"] = "DISABLED"
    if chance.random() < 0.4:
        given["ActionAfterCompletion"] = "DELETE"
    return given


def create(world: World) -> str:
    """CreateSchedule, sometimes with a client token, and then twice."""
    given = _draw(world)
    twice = world.chance.random() < 0.3
    if twice:
        given["ClientToken"] = f"k{world.chance.randrange(1_000_000)}"
        given.pop("ActionAfterCompletion", None)  # its token would be forgotten with it
    arn, made = arn_of(given), False

    def kept(_said: dict[str, Any]) -> None:
        nonlocal made
        if made and "ClientToken" in given:
            return  # the same request, granted before
        made = True
        world.told.schedules.created(given, world.clock.now())

    answers = [str(world.ask(SERVICE, "CreateSchedule", given, kept)) for _ in range(2 if twice else 1)]
    return f"schedule {arn.removeprefix(ARN)} {given['ScheduleExpression']}: {', '.join(answers)}"


def _known(world: World) -> list[str]:
    return [arn for arn in world.told.schedules.lives if world.told.schedules.current(arn) is not None]


def _place(arn: str) -> dict[str, Any]:
    group, _, name = arn.removeprefix(ARN).partition("/")
    return {"Name": name, "GroupName": group}


def update(world: World) -> str:
    """UpdateSchedule: other times, another target, enabled or disabled, or nothing new at all."""
    known = _known(world)
    if not known:
        return "update a schedule: none"
    chance, arn = world.chance, world.chance.choice(known)
    life = world.told.schedules.current(arn)
    assert life is not None, "it is known"
    given = {name: value for name, value in life.eras[-1].given.items() if name != "ClientToken"} | _place(arn)
    what = chance.choice(("times", "target", "state", "state", "nothing"))
    if what == "times":
        for name in ("StartDate", "EndDate", "ScheduleExpressionTimezone"):
            given.pop(name, None)
        given |= draw_times(world)
    elif what == "target":
        given["Target"] = draw_target(world, given["Name"])
    elif what == "state":
        given["State"] = "ENABLED" if given.get("State") == "DISABLED" else "DISABLED"

    def kept(_said: dict[str, Any]) -> None:
        world.told.schedules.updated(given, world.clock.now())

    return f"update {what} of {arn.removeprefix(ARN)}: {world.ask(SERVICE, 'UpdateSchedule', given, kept)}"


def delete(world: World) -> str:
    """DeleteSchedule."""
    known = _known(world)
    if not known:
        return "delete a schedule: none"
    return forget(world, world.chance.choice(known))


def forget(world: World, arn: str) -> str:
    """Delete a schedule."""

    def kept(_said: dict[str, Any]) -> None:
        world.told.schedules.deleted(arn, world.clock.now())

    return f"delete {arn.removeprefix(ARN)}: {world.ask(SERVICE, 'DeleteSchedule', _place(arn), kept)}"


def create_group(world: World) -> str:
    """CreateScheduleGroup."""
    name = world.chance.choice(GROUPS[1:])
    return f"create group {name}: {world.ask(SERVICE, 'CreateScheduleGroup', {'Name': name})}"


def delete_group(world: World) -> str:
    """DeleteScheduleGroup: its schedules go in slices, and may fire meanwhile."""
    name = world.chance.choice(GROUPS[1:])

    def kept(_said: dict[str, Any]) -> None:
        world.told.schedules.group_deleted(name)

    return f"delete group {name}: {world.ask(SERVICE, 'DeleteScheduleGroup', {'Name': name}, kept)}"


def come_and_go(world: World) -> str:
    """A queue that others send to is created, or deleted."""
    if world.chance.random() < 0.6:
        return f"create {BIN}: {world.ask('sqs', 'CreateQueue', {'QueueName': BIN})}"
    return f"drop {BIN}: {take_away(world, BIN, 'DeleteQueue')}"


def end_all(world: World) -> None:
    """Delete all schedules: what they fired is still tried."""
    for arn in _known(world):
        forget(world, arn)
