"""EventBridge Pipes: from a queue, through a filter and a template, to a state machine."""

from tasuki.services.pipes.api import Api
from tasuki.services.pipes.model import counters
from tasuki.services.pipes.polls import Pump
from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config

__all__ = ["counters", "room"]


def room(config: Config, switchboard: Switchboard) -> Room:
    """Build the pipes room. It plugs in nothing; it takes from `sources` and gives to `targets`."""
    return Room(
        name="pipes",
        service="pipes",
        operations=Api(config, switchboard).operations(),
        polls=(Pump(switchboard).poll(),),
    )
