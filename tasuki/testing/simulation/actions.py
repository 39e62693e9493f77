"""The vocabulary of the simulation: what may happen in a step, and how often."""

from collections.abc import Callable
from typing import TypeAlias

from tasuki.testing.simulation import actions_buses as buses
from tasuki.testing.simulation import actions_machines as machines
from tasuki.testing.simulation import actions_others as others
from tasuki.testing.simulation import actions_pipes as pipes
from tasuki.testing.simulation import actions_queues as queues
from tasuki.testing.simulation import actions_rushes as rushes
from tasuki.testing.simulation import actions_schedules as schedules
from tasuki.testing.simulation.world import World

Action: TypeAlias = Callable[[World], str]

ACTIONS: tuple[tuple[float, Action], ...] = (
    (12, queues.send),
    (5, queues.send_batch),
    (12, queues.receive),
    (10, queues.delete),
    (4, queues.delete_batch),
    (4, queues.change_visibility),
    (1, queues.purge),
    (4, queues.create),
    (1, queues.drop),
    (3, queues.redrive),
    (1, queues.cancel_redrive),
    (22, machines.start),
    (3, machines.repeat_start),
    (4, machines.start_express),
    (3, machines.stop),
    (3, machines.redrive),
    (10, machines.answer),
    (6, machines.work),
    (1, machines.update),
    (4, others.run_task),
    (3, others.stop_task),
    (2, others.lose_task),
    (1, others.lose_host),
    (8, pipes.create_pipe),
    (4, pipes.change_pipe),
    (2, rushes.starts),
    (2, rushes.tasks),
    (3, rushes.sends),
    (3, rushes.receives),
    (2, rushes.deletes),
    (3, rushes.answers),
    (2, rushes.ends),
    (1, rushes.queues),
    (12, schedules.create),
    (6, schedules.update),
    (2, schedules.delete),
    (2, schedules.create_group),
    (0.3, schedules.delete_group),
    (2, schedules.come_and_go),
    (5, buses.put_rule),
    (4, buses.change_rule),
    (12, buses.put_events),
    (1.5, buses.create_bus),
    (0.7, buses.delete_bus),
    (0.7, buses.change_destination),
    (24, others.wait_a_little),
    (4, others.wait_long),
    (4, others.sleep),
    (3, others.fire_again),
    (3, others.kill),
)
"""Weight and action."""

_WEIGHTS = [weight for weight, _ in ACTIONS]
_ALL = [action for _, action in ACTIONS]


def draw(world: World) -> Action:
    """Draw what happens next."""
    return world.chance.choices(_ALL, _WEIGHTS)[0]


def furnish(world: World) -> None:
    """Create what is there from the start."""
    queues.create_fixed(world)
    others.create_fixed(world)
    machines.create_fixed(world)
    schedules.create_fixed(world)
    buses.create_fixed(world)


def populate(world: World) -> None:
    """Do what clients do on their first day: queues, pipes, schedules and rules, so that even a short run has some of each."""
    for action in (queues.create, pipes.create_pipe, schedules.create, buses.put_rule) * 3:
        world.note(action(world))
