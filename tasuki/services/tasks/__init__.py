"""Tasks: ECS clusters, task definitions and on-demand tasks.

=============  ====================================================================================
module         what it holds
=============  ====================================================================================
api            the table of operations; clusters, task definitions, tags
tasks_api      RunTask, StopTask, DescribeTasks, ListTasks
definitions    what a task definition may be (pure)
model          a task's row, what an attempt runs (pure)
shapes         tasks as ECS and as Step Functions show them (pure)
starting       RunTask
claiming       what a node of several takes
placing        whether there is room for a task
nodes          the nodes that share a store: joining, renewing, giving up (statements: queries_nodes)
nodes_api      ListNodes, an operation of our own
stopping       StopTask
telling        state changes as events of the default bus
attending      what the attendant does in units: claim, settle, end
finding        by name or ARN
polls          forgetting
plugs          `ecs:runTask` for machines, the keys of running tasks for the door
target         a cluster, for whoever delivers
=============  ====================================================================================
"""

import os

from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.services.tasks.api import operations
from tasuki.services.tasks.nodes import refuse_new_key
from tasuki.services.tasks.nodes_api import list_nodes
from tasuki.services.tasks.plugs import RunTask, credential
from tasuki.services.tasks.polls import SHOWN_MS, on_timer
from tasuki.services.tasks.setting import NAME, Setting
from tasuki.services.tasks.target import ClusterTarget
from tasuki.values.config import Config
from tasuki.values.instant import DAY

__all__ = ["machine_mib", "refuse_new_key", "room", "setting_of"]

MOST_TASKS = 1000


def machine_mib() -> int:
    """Answer how much memory this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") >> 20


def setting_of(config: Config, switchboard: Switchboard) -> Setting:
    """Work out the room's setting; the attendant needs it too. Tasks may use three quarters of the machine's memory."""
    return Setting(
        config=config,
        switchboard=switchboard,
        memory_mib=config.memory_mib if config.memory_mib is not None else machine_mib() * 3 // 4,
        most_tasks=config.quotas.get("running_tasks", MOST_TASKS),
        shown_ms=config.quotas.get("stopped_tasks_days", SHOWN_MS // DAY) * DAY,
    )


def room(config: Config, switchboard: Switchboard) -> Room:
    """Build the room, and plug in what it offers to machines, to the door and to whoever delivers."""
    setting = setting_of(config, switchboard)
    switchboard.integrations["ecs:runTask"] = RunTask(setting)
    switchboard.targets["ecs"] = ClusterTarget(setting)
    switchboard.credentials.append(credential)
    switchboard.house["ListNodes"] = list_nodes(setting)
    return Room(
        name=NAME, service="ecs", operations=operations(setting), on_timer=lambda tx, _key: on_timer(tx, setting)
    )
