"""EventBridge Pipes: from a queue, through a filter, an enrichment and templates, to whatever the house can be given to."""

from tasuki.services.pipes.api import Api
from tasuki.services.pipes.calls import ROOM, CallWatcher, hold_call
from tasuki.services.pipes.flows import Flows
from tasuki.services.pipes.model import counters, list_counters
from tasuki.services.pipes.polls import Pump
from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config
from tasuki.values.operations import Operation

__all__ = ["counters", "room"]


def room(config: Config, switchboard: Switchboard) -> Room:
    """Build the pipes room. It takes from `sources`, gives to `targets`, and plugs in a watcher and ListPipeCounters."""
    flows = Flows()
    watcher = switchboard.watchers[ROOM] = CallWatcher(switchboard, flows)
    switchboard.house["ListPipeCounters"] = Operation("read", list_counters)
    return Room(
        name=ROOM,
        service="pipes",
        operations=Api(config, switchboard).operations(),
        polls=(Pump(switchboard, flows).poll(),),
        on_timer=watcher.on_timer,
        lock_owner=hold_call,
    )
