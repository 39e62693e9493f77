"""Buses: EventBridge buses, rules and their targets, connections and API destinations.

===================  ================================================================================
module               what it holds
===================  ================================================================================
api                  the table of operations
buses_api            buses and their permissions
rules_api            rules and their targets
tagging, paging      tags, pages of listings
putting              PutEvents, the house's own events: what a rule might want is kept
polls                events held against rules; planned times of rules
shelf                buses and rules as rows; their compiled rules; who wants an event
targets, inputs      what a target may be, and what it gets of an event (pure)
model                buses, rules, events (pure)
plugs                buses as targets, `events:putEvents`, what deliveries of rules say
connections,         connections, API destinations and the calls to them (with their own operations, errors and
destinations, calls  statements)
===================  ================================================================================
"""

from tasuki.services.buses import polls
from tasuki.services.buses.api import operations
from tasuki.services.buses.destinations import DestinationTarget, turn, withdraw
from tasuki.services.buses.model import NAME
from tasuki.services.buses.plugs import BusTarget, PutEvents, RuleSender
from tasuki.services.buses.putting import publish, wants
from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config

__all__ = ["room"]


def room(config: Config, switchboard: Switchboard) -> Room:
    """Build the room: plugs in the target `events`, the sender `buses`, `events:putEvents`, `wants`, `publish`, `withdraw` and `turn`."""
    switchboard.targets["events"] = BusTarget(DestinationTarget())
    switchboard.senders[NAME] = RuleSender()
    switchboard.integrations["events:putEvents"] = PutEvents()
    switchboard.wants, switchboard.publish = wants, publish
    switchboard.withdraw, switchboard.turn = withdraw, turn
    return Room(
        name=NAME,
        service="events",
        operations=operations(config, switchboard),
        polls=(polls.Matching(switchboard).poll(),),
        on_timer=lambda tx, key: polls.fire(tx, switchboard, key),
        lock_owner=polls.hold_owner,
    )
