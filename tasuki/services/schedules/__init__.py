"""Schedules: EventBridge Scheduler."""

from tasuki.services.room import Room
from tasuki.services.schedules.api import Api
from tasuki.services.schedules.coming import list_schedule_ticks
from tasuki.services.schedules.groups import Groups
from tasuki.services.schedules.model import NAME
from tasuki.services.schedules.polls import Ticking, emptying
from tasuki.services.schedules.senders import ScheduleSender
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config
from tasuki.values.operations import Operation

__all__ = ["room"]


def room(config: Config, switchboard: Switchboard) -> Room:
    """Build the room. It posts deliveries as the sender `schedules`, hears of their end, and plugs in ListScheduleTicks."""
    ticking = Ticking(switchboard)
    switchboard.senders[NAME] = ScheduleSender()
    switchboard.watchers[NAME] = ticking
    switchboard.house["ListScheduleTicks"] = Operation("read", list_schedule_ticks)
    return Room(
        name=NAME,
        service="scheduler",
        operations={**Api(config, switchboard).operations(), **Groups(config).operations()},
        polls=(emptying(),),
        on_timer=ticking.fire,
        lock_owner=ticking.hold,
    )
