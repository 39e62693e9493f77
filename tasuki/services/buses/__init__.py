"""Buses: EventBridge buses, rules and their targets, connections and API destinations."""

from tasuki.services.buses.api import operations
from tasuki.services.buses.polls import polls
from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config

__all__ = ["room"]


def room(config: Config, switchboard: Switchboard) -> Room:  # noqa: ARG001
    """Build the room, and plug in what it offers."""
    return Room(name="buses", service="events", operations=operations(), polls=polls())
