"""Queues: SQS standard queues, durable.

=============  ====================================================================================
module         what it holds
=============  ====================================================================================
api            the table of operations; queues, attributes, permissions, tags
sending        SendMessage, batches
receiving      ReceiveMessage, DeleteMessage, ChangeMessageVisibility
moves          message move tasks
shelf          messages in the store: put, claim, bury, redrive, expire
settling       messages in the store: delete, hold longer, give back
tallies        how many there are, and what became of them
checks         what may be in a message, its size and MD5s (pure)
attributes     what a queue can be set to (pure)
policy         AddPermission's document (pure)
model          queue, content, receipt (pure)
polls          expiry, sweeping, moving
plugs          for pipes (`sqs` source) and machines (`sqs:sendMessage`)
target         for whoever delivers (`sqs` target), and for dead letters
=============  ====================================================================================
"""

from tasuki.services.queues.api import Limits, operations
from tasuki.services.queues.plugs import QueueSource, SendMessage
from tasuki.services.queues.polls import polls
from tasuki.services.queues.shelf import find_queue
from tasuki.services.queues.tallies import conservation, counters
from tasuki.services.queues.target import QueueTarget, bury
from tasuki.services.room import Room
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config

__all__ = ["conservation", "counters", "find_queue", "room"]


def room(config: Config, switchboard: Switchboard) -> Room:
    """Build the room, and plug in what it offers to pipes, machines and whoever delivers."""
    limits = Limits(
        in_flight=config.quotas.get("sqs_in_flight", Limits().in_flight),
        recreate_wait_s=config.quotas.get("sqs_recreate_wait_s", Limits().recreate_wait_s),
    )
    switchboard.sources["sqs"] = QueueSource(limits.in_flight)
    switchboard.integrations["sqs:sendMessage"] = SendMessage()
    switchboard.targets["sqs"] = QueueTarget()
    switchboard.bury = bury
    return Room(name="queues", service="sqs", operations=operations(limits), polls=polls())
