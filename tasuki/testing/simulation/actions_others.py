"""What clients do with tasks, what time does, and the faults that are acts of their own."""

from typing import Any

from tasuki.store.store import Tx
from tasuki.testing.simulation import queries
from tasuki.testing.simulation.faults import Crash
from tasuki.testing.simulation.hosts import LOST_MS
from tasuki.testing.simulation.moody import IMAGES
from tasuki.testing.simulation.world import World
from tasuki.values.errors import StoreError
from tasuki.values.instant import DAY, HOUR, MINUTE, SECOND

# -- tasks ----------------------------------------------------------------------------------------------------


def create_fixed(world: World) -> None:
    """Register a task definition for every image."""
    for image in IMAGES:
        one = {"name": "main", "image": image, "memory": 64}
        world.ask("ecs", "RegisterTaskDefinition", {"family": image, "containerDefinitions": [one]})


def run_task(world: World) -> str:
    """RunTask with a client token, which is given again sometimes."""
    told = world.told
    known = told.repeatable("RunTask", world.clock.now())
    if known and world.chance.random() < 0.4:
        given = world.chance.choice(known)
    else:
        token = f"r{len(told.requests)}"
        given = {
            "taskDefinition": world.chance.choice(tuple(IMAGES)),
            "clientToken": token,
            "startedBy": token,
            "count": world.chance.randrange(1, 3),
        }
        told.requests.append(("RunTask", given, world.clock.now()))

    def kept(said: dict[str, Any]) -> None:
        arns = sorted(one["taskArn"] for one in said["tasks"])
        if arns:
            told.started["RunTask", given["clientToken"]].add(" ".join(arns))

    return f"run {given['count']} {given['taskDefinition']} as {given['clientToken']}: {world.ask('ecs', 'RunTask', given, kept)}"


def _tasks(world: World) -> list[str]:
    listed = world.ask("ecs", "ListTasks", {"desiredStatus": "RUNNING"})
    return list((listed.said or {}).get("taskArns", ()))


def stop_task(world: World) -> str:
    """StopTask, twice sometimes."""
    found = _tasks(world)
    if not found:
        return "stop a task: none"
    given = {"task": world.chance.choice(found), "reason": "enough"}
    answers = [str(world.ask("ecs", "StopTask", given)) for _ in range(world.chance.randrange(1, 3))]
    return f"stop a task: {', '.join(answers)}"


def lose_task(world: World) -> str:
    """A host loses a task that runs."""
    running = [(host, key) for host in world.hosts for key in host.runner.alive()]
    if not running or world.weather.calm:
        return "lose a task: none"
    world.weather.counts["task lost by its host"] += 1
    host, key = world.chance.choice(running)
    host.runner.lose(key)
    node = world.nodes[host.number]
    if node is not None:
        node.hear(["tasks"])
    return "lose a task"


def lose_host(world: World) -> str:
    """A host falls silent, and all that ran there ends; the other nodes give it up, and it comes back."""
    if len(world.hosts) < 2 or world.weather.calm:
        return "lose a host: none"
    world.weather.counts["host lost"] += 1
    host = world.chance.choice(world.hosts)
    node = world.nodes[host.number]
    if node is not None:
        world.bury(node)
    host.gone = True
    for key in host.runner.alive():
        host.runner.lose(key)
    world.advance(LOST_MS)
    while True:
        survivor = world.node()
        try:
            host.give_up(survivor)
            break
        except Crash:
            world.bury(survivor)
        except StoreError:
            continue
    host.gone = False
    return f"lose host {host.name}"


# -- time and faults ------------------------------------------------------------------------------------------


def wait_a_little(world: World) -> str:
    """Some seconds or minutes pass."""
    by_ms = world.chance.choice((1, SECOND, 5 * SECOND, 20 * SECOND, MINUTE, 10 * MINUTE))
    world.advance(by_ms)
    return f"{by_ms / SECOND:g} s pass"


def wait_long(world: World) -> str:
    """Hours or days pass."""
    by_ms = world.chance.choice((HOUR, 2 * HOUR, 5 * HOUR, DAY, 2 * DAY))
    world.advance(by_ms)
    return f"{by_ms / HOUR:g} h pass"


def sleep(world: World) -> str:
    """The clock moves while no node looks: everything that was due meanwhile is late."""
    by_ms = world.chance.choice((30 * SECOND, 10 * MINUTE, HOUR))
    world.clock.set(world.clock.now() + by_ms)
    if not world.weather.calm:
        world.weather.counts["late timers"] += 1
    return f"{by_ms / SECOND:g} s pass and nobody looks"


def fire_again(world: World) -> str:
    """A timer that was fired is fired once more, unless it was set anew meanwhile."""
    if not world.fired or world.weather.calm:
        return "fire again: none"
    room, key = world.chance.choice(world.fired)
    world.weather.counts["timer fired twice"] += 1
    node = world.node()

    def again(tx: Tx) -> None:
        tx.run(queries.FIRE_AGAIN, (room, key, tx.now))
        tx.ring("timers")

    try:
        node.unit(again)
    except Crash:
        world.bury(node)
    except StoreError:
        return "fire again: no database"
    return f"fire {room} {key} again"


def kill(world: World) -> str:
    """A node dies between two units; it stays dead for a while, perhaps."""
    node = world.node()
    if world.weather.calm:
        return "kill: none"
    world.weather.counts["crash between units"] += 1
    world.bury(node)
    if world.chance.random() < 0.5:
        world.revive()
    return "kill a node"
