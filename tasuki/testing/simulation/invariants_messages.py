"""Promises about messages (P1, P3, P8): none lost, none doubled, what is deleted stays away, every one accounted for.

An acknowledged send is always one of: standing in a queue, deleted by a client, taken by a pipe, expired, purged. The sums
are kept by the key in a message's body, since a redrive gives it a new id. Order in FIFO queues is to come here.
"""

from collections import Counter

from tasuki.services.queues import conservation, find_queue
from tasuki.store.store import Tx
from tasuki.testing.simulation import queries
from tasuki.testing.simulation.census import Standing, by_key
from tasuki.testing.simulation.told import Sent
from tasuki.testing.simulation.world import Violation, World


def conservation_holds(world: World) -> None:
    """P8, by the room's own count: what came to a queue stands there or is counted as what became of it."""

    def unit(tx: Tx) -> list[str]:
        return [row[2] for row in tx.all(queries.QUEUES) if not conservation(tx, find_queue(tx, *row))]

    wrong = world.look(unit)
    if wrong:
        raise Violation("conservation holds", f"the counters of {', '.join(wrong)} do not add up")


def census_of(world: World) -> tuple[list[Standing], Counter[str]]:
    """Take a census; invariants that are checked together share one."""
    if world.counted is None:
        world.counted = world.look(world.census.take)
    return world.counted, by_key(world.counted)


def no_message_is_doubled(world: World) -> None:
    """No id stands twice; no key stands more often than it was sent, nor more often than it stood before."""
    standing, counts = census_of(world)
    told = world.told
    ids = Counter(one.id for one in standing)
    twice = [one for one, count in ids.items() if count > 1]
    if twice:
        raise Violation("no message is doubled", f"message ids that stand twice: {twice[:3]}")
    for one in standing:
        told.ids[one.id] = one.key
        if one.attempt:
            told.attempts[one.id] = one.attempt
        if one.key not in told.sent:  # a machine sent it: once, whatever happened to its units
            told.sent[one.key] = Sent(one.queue, one.sent_at)
            told.copies[one.key] = told.most[one.key] = 1
    for key, count in counts.items():
        if count > told.most[key]:
            raise Violation(
                "no message is doubled",
                f"{key} stands {count} times, after {told.most[key]}; {told.copies[key]} sends of it were committed",
            )
    for key in list(told.most):
        if not counts[key]:
            del told.most[key]
        else:
            told.most[key] = counts[key]


def deleted_messages_stay_away(world: World) -> None:
    """A message that was deleted by the receipt that counts stands nowhere."""
    standing, _ = census_of(world)
    back = [one.key for one in standing if one.id in world.told.buried]
    if back:
        raise Violation("deleted messages stay away", f"{back[:3]} were deleted and stand in a queue again")


def no_message_is_lost(world: World) -> None:
    """Whatever was sent and does not stand in a queue has a reason not to.

    A pipe may take a message whose id nobody saw (a redrive gave it a new one just before): as many keys may be missing.
    """
    _, counts = census_of(world)
    told, now = world.told, world.clock.now()
    handed: Counter[str] = Counter()
    unknown = 0
    for message, _ in world.look(lambda tx: tx.all(queries.HANDED_OVER)):
        key = told.ids.get(message)
        if key is None:
            unknown += 1
        else:
            handed[key] += 1
    missing = []
    for key, copies in told.copies.items():
        gone = copies - counts[key]
        if gone <= 0 or gone <= len(told.removed.get(key, ())) + told.purged[key] + handed[key]:
            continue
        if now < told.expires_at(key):
            missing.append(key)
    if len(missing) > unknown:
        raise Violation(
            "no message is lost", f"{missing[:5]} stand nowhere, and no client, pipe, purge or expiry took them"
        )


def no_message_is_handed_over_twice(world: World) -> None:
    """A pipe gives a message to one execution of a Standard machine, and that is there."""
    twice = world.look(lambda tx: tx.all(queries.HANDED_OVER_TWICE))
    if twice:
        raise Violation("no message is handed over twice", f"{[f'{row[0]}: {row[1]} times' for row in twice[:3]]}")
    nobody = world.look(lambda tx: tx.all(queries.HANDED_TO_NOBODY))
    if nobody:
        raise Violation("no message is handed over twice", f"handed to executions that are not there: {nobody[:3]}")


def bodies_lie_beside_messages(world: World) -> None:
    """Large bodies and the messages they belong to come and go together."""
    row = world.look(lambda tx: tx.all(queries.LOST_BODIES))[0]
    swept = world.look(lambda tx: tx.all(queries.ABANDONED))[0][0]
    if row[1] or (row[0] and not swept):
        raise Violation(
            "bodies lie beside messages", f"{row[0]} bodies without a message, {row[1]} the other way round"
        )
