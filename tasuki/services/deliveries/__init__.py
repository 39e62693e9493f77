"""Deliveries: what schedules and rules hand to their targets, tried until it is taken or given up."""

from tasuki.services.deliveries.api import operations
from tasuki.services.deliveries.polls import polls
from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config

__all__ = ["room"]


def room(config: Config, switchboard: Switchboard) -> Room:  # noqa: ARG001
    """Build the room, and plug in what it offers."""
    return Room(name="deliveries", service=None, operations=operations(), polls=polls())
