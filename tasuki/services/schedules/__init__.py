"""Schedules: EventBridge Scheduler."""

from tasuki.services.room import Room
from tasuki.services.schedules.api import operations
from tasuki.services.schedules.polls import polls
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config

__all__ = ["room"]


def room(config: Config, switchboard: Switchboard) -> Room:  # noqa: ARG001
    """Build the room, and plug in what it offers."""
    return Room(name="schedules", service="scheduler", operations=operations(), polls=polls())
