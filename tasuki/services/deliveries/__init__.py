"""Deliveries: what schedules and rules hand to their targets, tried until it is taken or given up.

=============  ====================================================================================
module         what it holds
=============  ====================================================================================
trying         `switchboard.post`: a try, a refusal, the next try, the dead letter
model          a delivery as it is kept, and the pauses between its tries (pure)
polls          who holds a delivery whose timer is due
api            ListDeliveries, an operation of our own
=============  ====================================================================================

No API of AWS's: EventBridge and Scheduler keep what they could not deliver somewhere behind their targets' retry policies.
"""

from tasuki.services.deliveries.api import list_deliveries
from tasuki.services.deliveries.model import NAME
from tasuki.services.deliveries.polls import hold_owner
from tasuki.services.deliveries.trying import Trying
from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config
from tasuki.values.operations import Operation

__all__ = ["room"]


def room(config: Config, switchboard: Switchboard) -> Room:  # noqa: ARG001
    """Build the room: plugs in `post`, the watcher `deliveries` and ListDeliveries."""
    trying = Trying(switchboard)
    switchboard.post = trying.post
    switchboard.watchers[NAME] = trying
    switchboard.house["ListDeliveries"] = Operation(
        "read", lambda tx, request: list_deliveries(tx, request, switchboard)
    )
    return Room(name=NAME, on_timer=trying.fire, lock_owner=hold_owner)
