"""Promises about tasks (P4): none runs twice, every one that began ended, what runs is known."""

from collections import Counter

from tasuki.testing.simulation import queries
from tasuki.testing.simulation.world import Violation, World


def no_task_runs_twice(world: World) -> None:
    """Of the attempts of a task at most one ever began."""
    began = Counter(launch.key.task for launch in world.started)
    twice = [task for task, count in began.items() if count > 1]
    if twice:
        raise Violation("no task runs twice", f"tasks that began more than once: {twice[:3]}")


def running_tasks_are_known(world: World) -> None:
    """What runs is a task that has not stopped, by its present attempt; what says that it runs, does."""
    rows = world.look(lambda tx: tx.all(queries.TASKS))
    alive = set(world.alive)
    known = {(row[0], row[1]) for row in rows if row[3] is None}
    strays = [key for key in alive if tuple(key) not in known]
    if strays:
        raise Violation("running tasks are known", f"the runner runs what the house has given up: {strays[:3]}")
    ghosts = [row[0] for row in rows if row[2] == "RUNNING" and (row[0], row[1]) not in alive]
    if ghosts:
        raise Violation("running tasks are known", f"said to run and do not: {ghosts[:3]}")


def every_task_that_began_ended(world: World) -> None:
    """At the end: everything that ever began has stopped, in the runner and in the house."""
    open_tasks = [row[0] for row in world.look(lambda tx: tx.all(queries.TASKS)) if row[3] is None]
    alive = world.alive
    if open_tasks or alive:
        raise Violation("every task that began ended", f"open tasks {open_tasks[:3]}, running attempts {alive[:3]}")
