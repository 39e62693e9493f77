"""Handovers: the record of what was passed on, from which message to which execution, and with what outcome."""

from tasuki.services.handovers import api, model
from tasuki.services.handovers.polls import Retention
from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config


def room(config: Config, switchboard: Switchboard) -> Room:
    """Build the handovers room; it takes the record of the whole house."""
    switchboard.record = model.record
    switchboard.record_all = model.record_all
    switchboard.handed_over = model.handed_over
    return Room(name="handovers", service="tasuki", operations=api.OPERATIONS, polls=(Retention(config).poll(),))
